//! Ops that take as long as they are told at the moment, or fail.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anabranch_engine::Check;
use anabranch_plan::OpError;
use anabranch_plan::op::{Demand, Form, Inputs, Node, NodePlan, Op, Ops, Spec, StartedWork};
use anabranch_plan::source::Sources;

/// The instructions for nodes, by id; other nodes are left as they are.
#[derive(Clone, Default)]
pub(super) struct Moods(Arc<Mutex<HashMap<String, Option<Duration>>>>);

impl Moods {
    /// From now on a node takes so long.
    pub(super) fn takes(&self, node: &str, time: Duration) {
        self.0.lock().unwrap().insert(node.to_owned(), Some(time));
    }

    /// From now on a node fails.
    pub(super) fn fails(&self, node: &str) {
        self.0.lock().unwrap().insert(node.to_owned(), None);
    }

    /// From now on all is well.
    pub(super) fn forget(&self) {
        self.0.lock().unwrap().clear();
    }

    pub(super) fn ops(&self) -> Ops {
        let mut ops = Ops::builtin();
        for op in Ops::builtin().iter().filter(|op| op.spec().name != "core::timeout") {
            ops.add(Moody { op: Arc::clone(op), moods: self.clone() });
        }
        ops
    }

    fn of(&self, node: &str) -> Option<Option<Duration>> {
        self.0.lock().unwrap().get(node).copied()
    }
}

struct Moody {
    op: Arc<dyn Op>,
    moods: Moods,
}

impl Op for Moody {
    fn spec(&self) -> &Spec {
        self.op.spec()
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let NodePlan { build, .. } = self.op.plan(node)?;
        let again = self.op.plan(node)?;
        let (moods, node) = (self.moods.clone(), node.id().to_owned());
        let built = move |demand: &Demand, sources: &mut Sources<'_>| match build(demand, sources) {
            // What reads is left alone, as what it read before may have to stand in for it.
            Form::Wait(form) => Form::Wait(form),
            form => moody(form, moods, node),
        };
        Some(NodePlan { build: Box::new(built), ..again })
    }
}

fn moody(form: Form, moods: Moods, node: String) -> Form {
    Form::wait(move |inputs: Inputs, call| {
        let (form, mood) = (form.clone(), moods.of(&node));
        async move {
            match mood {
                Some(Some(time)) if !time.is_zero() => call.clock.sleep_until(call.clock.now() + time).await,
                Some(None) => return Err(OpError::Value("in a mood".to_owned())),
                _ => {}
            }
            match form {
                Form::Compute(form) => form.run(&inputs, &call, &Check::never()),
                Form::Wait(form) => match form.start(inputs, &call) {
                    StartedWork::Ready(rows) => rows,
                    StartedWork::Later(rows) => rows.await,
                },
            }
        }
    })
}
