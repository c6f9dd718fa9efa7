//! Plans of a common shape with random timeouts, fallbacks and regions, and ops that take as long as they are told.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::Check;
use anabranch_plan::op::{Demand, Form, Inputs, Node, NodePlan, Op, Ops, Spec, StartedWork};
use anabranch_plan::source::Sources;
use anabranch_plan::source::{Memory, MemoryData, Source};
use anabranch_plan::{Config, Engine, OpError, Plan};
use anabranch_rows::Rows;
use anabranch_testkit::{Rng, Sim};
use serde_json::{Value, json};

use super::examples;
use crate::naive::world::registries;

/// The fault of a node.
#[derive(Clone, Copy, Debug)]
pub(super) enum Trouble {
    Stall,
    Fail,
    Slow(Duration),
}

impl Trouble {
    pub(super) fn random(rng: &mut Rng) -> Trouble {
        match rng.within(0..3) {
            0 => Trouble::Stall,
            1 => Trouble::Fail,
            _ => Trouble::Slow(super::odd(rng, 60)),
        }
    }
}

/// A node, as the model sees it.
#[derive(Clone, Debug, Default)]
pub(super) struct ModelNode {
    pub(super) id: String,
    pub(super) op: String,
    pub(super) inputs: Vec<usize>,
    pub(super) takes: Duration,
    pub(super) timeout: Option<Duration>,
    /// The name of its last fallback, which cannot fail.
    pub(super) sure: Option<&'static str>,
    /// The node that stands in for it.
    pub(super) spare: Option<usize>,
    pub(super) is_region: bool,
    /// True if it is the region of one node alone, which nobody wrote.
    pub(super) is_alone: bool,
}

pub(super) struct Case {
    /// Inputs first.
    pub(super) nodes: Vec<ModelNode>,
    pub(super) deadline: Duration,
    /// The file of an example; otherwise it is written from the nodes.
    pub(super) example: Option<Value>,
}

impl Case {
    /// Two or three branches of reads and expressions from one viewer, put together, then sorted and cut.
    pub(super) fn new(rng: &mut Rng) -> Case {
        let deadline = super::odd(rng, 90) + Duration::from_millis(20);
        let mut case = Case { nodes: Vec::new(), deadline, example: None };
        let viewer = case.add(rng, "core::viewer", &[]);
        let mut branches = Vec::new();
        for _ in 0..rng.within(2..4) {
            let first = case.nodes.len();
            let mut at = case.add(rng, "core::follow", &[viewer]);
            at = case.add(rng, "core::media", &[at]);
            if rng.percent(60) {
                at = case.add(rng, "core::vm", &[at]);
            }
            case.guard(rng, first);
            if rng.percent(50) {
                at = case.region(rng, at, viewer);
                if rng.percent(30) {
                    at = case.add(rng, "core::take", &[at]);
                    at = case.region(rng, at, viewer);
                }
            }
            branches.push(at);
        }
        let mut all = branches[0];
        for branch in &branches[1..] {
            all = case.add(rng, "core::concat", &[all, *branch]);
        }
        let first = case.nodes.len();
        let sorted = case.add(rng, "core::sort", &[all]);
        case.add(rng, "core::take", &[sorted]);
        if rng.percent(20) {
            case.guard(rng, first);
        }
        case
    }

    fn add(&mut self, rng: &mut Rng, op: &'static str, inputs: &[usize]) -> usize {
        let id = format!("n{}", self.nodes.len());
        let takes = match op {
            "core::viewer" | "core::follow" | "core::media" => super::odd(rng, 20),
            _ if rng.percent(30) => super::odd(rng, 5),
            _ => Duration::ZERO,
        };
        self.nodes.push(ModelNode {
            id,
            op: op.to_owned(),
            inputs: inputs.to_vec(),
            takes,
            ..ModelNode::default()
        });
        self.nodes.len() - 1
    }

    /// Gives some nodes from `first` on a timeout or a fallback.
    fn guard(&mut self, rng: &mut Rng, first: usize) {
        for node in &mut self.nodes[first..] {
            if rng.percent(40) {
                node.sure = Some("empty");
            }
            if rng.percent(if node.sure.is_some() { 50 } else { 5 }) {
                node.timeout = Some(super::odd(rng, 40).max(Duration::from_millis(1)));
            }
        }
    }

    fn region(&mut self, rng: &mut Rng, inner: usize, viewer: usize) -> usize {
        let mut inputs = vec![inner];
        let mut spare = None;
        if rng.percent(40) {
            let cheap = self.add(rng, "core::follow", &[viewer]);
            let cheap = if rng.percent(50) { self.add(rng, "core::media", &[cheap]) } else { cheap };
            inputs.push(cheap);
            spare = Some(cheap);
        }
        let region = self.add(rng, "core::timeout", &inputs);
        let node = &mut self.nodes[region];
        node.is_region = true;
        node.takes = Duration::ZERO;
        node.spare = spare;
        node.sure = rng.percent(80).then_some("empty");
        node.timeout =
            (rng.percent(70) || (node.sure.is_none() && spare.is_none())).then(|| super::odd(rng, 40));
        region
    }

    /// The plan file.
    pub(super) fn text(&self) -> String {
        if let Some(example) = &self.example {
            return serde_json::to_string_pretty(example).unwrap();
        }
        let node = |(at, node): (usize, &ModelNode)| {
            let id = |at: usize| self.nodes[at].id.clone();
            let params = match node.op.as_str() {
                "core::viewer" => json!({"endpoint": "ep_0001"}),
                // No two reads are the same, so none is shared.
                "core::follow" | "core::media" => json!({"endpoint": "ep_0001", "fanout": 10 + at}),
                "core::vm" => json!({"out_key": 2001, "expr_id": "score"}),
                "core::concat" => json!({"rhs": id(node.inputs[1])}),
                "core::sort" => json!({"by": 1, "order": "desc"}),
                "core::take" => json!({"count": 1000 + at}),
                _ => json!({}),
            };
            let mut text = json!({"node_id": node.id, "op": node.op, "inputs": [], "params": params});
            text["inputs"] = node.inputs.first().map_or(json!([]), |input| json!([id(*input)]));
            let spare = node.spare.map(|spare| json!({"node": id(spare)}));
            let list: Vec<Value> = spare.into_iter().chain(node.sure.map(|word| json!(word))).collect();
            if !list.is_empty() {
                text["fallback"] = json!(list);
            }
            if let Some(timeout) = node.timeout {
                // Timeouts are whole milliseconds; `Case::timeout` says the same.
                text["timeout_ms"] = json!(whole(timeout).as_millis() as u64);
            }
            text
        };
        let nodes: Vec<Value> = self.nodes.iter().enumerate().map(node).collect();
        let plan = json!({
            "schema_version": 1, "plan_name": "trouble", "nodes": nodes,
            "outputs": [self.nodes.last().unwrap().id],
            "expr_table": {"score": {"op": "key_ref", "key": "id"}},
        });
        serde_json::to_string_pretty(&plan).unwrap()
    }

    /// How long a node may take.
    pub(super) fn timeout(&self, node: usize) -> Option<Duration> {
        self.nodes[node].timeout.map(whole)
    }

    pub(super) fn plan(&self, sim: &Sim, trouble: &[(usize, Trouble)]) -> Plan {
        let data = r#"{"lists": {"follow:1": [2, 3], "media:2": [4, 5], "media:3": [6]}}"#;
        let (registries, data) = match self.example {
            Some(_) => (examples::registries(), examples::data()),
            None => (registries(), Arc::new(MemoryData::from_json("data", data).unwrap())),
        };
        let source = Arc::new(Memory::new("ep_0001", data, sim.clock())) as Arc<dyn Source>;
        let sources = registries.endpoints.iter().map(|_| Arc::clone(&source)).collect();
        let mut config = Config::new(registries, sources);
        let orders = self.nodes.iter().enumerate().map(|(at, node)| {
            let trouble = trouble.iter().find(|(other, _)| *other == at).map(|(_, trouble)| *trouble);
            (node.id.clone(), Order { takes: node.takes, trouble })
        });
        let orders: Arc<Vec<(String, Order)>> = Arc::new(orders.collect());
        let mut ops = Ops::builtin();
        for op in Ops::builtin().iter().filter(|op| op.spec().name != "core::timeout") {
            ops.add(ScriptedOp { op: Arc::clone(op), orders: Arc::clone(&orders) });
        }
        config.ops = ops;
        let engine = Engine::on(sim.engine(&anabranch_engine::Config::default()), config);
        engine
            .compile(&self.text(), Path::new("."))
            .unwrap_or_else(|error| panic!("{error}\n{}", self.text()))
    }
}

fn whole(timeout: Duration) -> Duration {
    Duration::from_millis(timeout.as_millis().max(1) as u64)
}

/// How long a node is to take, and what is wrong with it.
#[derive(Clone, Copy)]
struct Order {
    takes: Duration,
    trouble: Option<Trouble>,
}

/// An op that takes as long as it is told.
struct ScriptedOp {
    op: Arc<dyn Op>,
    orders: Arc<Vec<(String, Order)>>,
}

impl Op for ScriptedOp {
    fn spec(&self) -> &Spec {
        self.op.spec()
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let order = self.orders.iter().find(|(id, _)| id == node.id()).unwrap().1;
        let NodePlan { build, .. } = self.op.plan(node)?;
        let again = self.op.plan(node)?;
        let told = move |demand: &Demand, sources: &mut Sources<'_>| slowed(build(demand, sources), order);
        Some(NodePlan { build: Box::new(told), ..again })
    }
}

fn slowed(form: Form, order: Order) -> Form {
    Form::wait(move |inputs: Inputs, call| {
        let form = form.clone();
        async move {
            let late = match order.trouble {
                Some(Trouble::Slow(more)) => more,
                _ => Duration::ZERO,
            };
            let takes = order.takes + late;
            if !takes.is_zero() {
                call.clock.sleep_until(call.clock.now() + takes).await;
            }
            match order.trouble {
                Some(Trouble::Stall) => std::future::pending().await,
                Some(Trouble::Fail) => return Err(OpError::Value("told to fail".to_owned())),
                _ => {}
            }
            let rows: Result<Rows, OpError> = match form {
                Form::Compute(form) => form.run(&inputs, &call, &Check::never()),
                Form::Wait(form) => match form.start(inputs, &call) {
                    StartedWork::Ready(rows) => rows,
                    StartedWork::Later(rows) => rows.await,
                },
            };
            rows
        }
    })
}
