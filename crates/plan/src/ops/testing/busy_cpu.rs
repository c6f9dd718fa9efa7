//! `test::busy_cpu`: its input, after work that needs a core.

use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::Check;
use anabranch_engine::clock::{Clock as _, SystemClock};
use anabranch_rows::Rows;

use crate::call::Call;
use crate::error::OpError;
use crate::op::{
    Compute, Contract, Effect, Form, Inputs, Mark, Node, NodePlan, Op, ParamKind, ParamSpec, RowsNeeded,
    Spec, Takes,
};
use crate::ops::input;

pub(in crate::ops) struct BusyCpu;

static SPEC: Spec = Spec {
    name: "test::busy_cpu",
    doc: "Gives back its input after keeping a core busy for a while.",
    inputs: 1,
    params: &[ParamSpec::required("busy_wait_ms", ParamKind::Int(0, 3_600_000), "how long it takes")],
    writes: Effect::Keys(&[]),
    contract: Contract::SameRows,
    mark: Mark::Expensive,
    distinct: true,
};

impl Op for BusyCpu {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let millis = u64::try_from(node.int("busy_wait_ms")?).ok()?;
        let busy = Busy(Duration::from_millis(millis));
        let takes = [Takes::passing([]).rows(RowsNeeded::AsAsked)];
        Some(NodePlan::new(node.input(0).clone(), takes, |_, _| Form::Compute(Arc::new(busy))))
    }
}

struct Busy(Duration);

impl Compute for Busy {
    fn cost(&self, _rows: usize) -> Duration {
        self.0
    }

    fn run(&self, inputs: &Inputs, _: &Call, check: &Check<'_>) -> Result<Rows, OpError> {
        // A core is busy in real time, regardless of the request's clock.
        let until = SystemClock.now() + self.0;
        while SystemClock.now() < until {
            if check.should_stop() {
                return Err(OpError::Stopped);
            }
            std::hint::spin_loop();
        }
        Ok(input(inputs, 0).clone())
    }
}
