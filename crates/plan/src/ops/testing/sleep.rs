//! `test::sleep`: its input, later.

use std::sync::Arc;
use std::time::Duration;

use crate::call::Call;
use crate::error::OpError;
use crate::op::{
    Contract, Effect, Form, Inputs, Mark, Node, NodePlan, Op, ParamKind, ParamSpec, RowsNeeded, Spec,
    StartedWork, Takes, Wait,
};
use crate::ops::input;

pub(in crate::ops) struct Sleep;

static SPEC: Spec = Spec {
    name: "test::sleep",
    doc: "Gives back its input after a while, or fails then.",
    inputs: 1,
    params: &[
        ParamSpec::required("duration_ms", ParamKind::Int(0, 3_600_000), "how long it takes"),
        ParamSpec::optional("fail_after_sleep", ParamKind::Bool, "whether it then fails; no if not given"),
    ],
    writes: Effect::Keys(&[]),
    contract: Contract::SameRows,
    mark: Mark::Auto,
    distinct: true,
};

impl Op for Sleep {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let millis = u64::try_from(node.int("duration_ms")?).ok()?;
        let sleeper = Sleeper {
            duration: Duration::from_millis(millis),
            fails: node.bool("fail_after_sleep").unwrap_or(false),
        };
        let takes = [Takes::passing([]).rows(RowsNeeded::AsAsked)];
        Some(NodePlan::new(node.input(0).clone(), takes, |_, _| Form::Wait(Arc::new(sleeper))))
    }
}

struct Sleeper {
    duration: Duration,
    fails: bool,
}

impl Wait for Sleeper {
    fn start(self: Arc<Self>, inputs: Inputs, call: &Arc<Call>) -> StartedWork {
        let awake = match self.fails {
            true => Err(OpError::Value("intentional failure (fail_after_sleep=true)".to_owned())),
            false => Ok(input(&inputs, 0).clone()),
        };
        if self.duration.is_zero() {
            return StartedWork::Ready(awake);
        }
        let sleep = call.clock.sleep_until(call.clock.now() + self.duration);
        StartedWork::Later(Box::pin(async move {
            sleep.await;
            awake
        }))
    }
}
