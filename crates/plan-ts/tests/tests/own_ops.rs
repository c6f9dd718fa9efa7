//! Ops of somebody else, whose names and options are called like something of ours.

use anabranch_plan::Engine;
use anabranch_plan::op::{
    Contract, Demand, Effect, Form, Mark, Node, NodePlan, Op, ParamKind, ParamSpec, Spec, Takes,
};
use anabranch_plan::source::Sources;
use anabranch_plan_ts::Compiler;
use anabranch_testkit::Sim;
use serde_json::{Value, json};

use crate::world::{Folder, config};

/// Gives back its rows.
struct Own(&'static str);

const PARAMS: &[ParamSpec] = &[
    ParamSpec::optional("id", ParamKind::Text, "whose"),
    ParamSpec::optional("timeout_ms", ParamKind::Int(0, 9), "how long"),
    ParamSpec::optional("range", ParamKind::Text, "how far"),
    ParamSpec::optional("constructor", ParamKind::Bool, "whether"),
];

impl Op for Own {
    fn spec(&self) -> &Spec {
        Box::leak(Box::new(Spec {
            name: self.0,
            doc: "Does nothing.",
            inputs: 1,
            params: PARAMS,
            writes: Effect::Unknown,
            contract: Contract::SameRows,
            mark: Mark::Auto,
            distinct: false,
        }))
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let same = |_: &Demand, _: &mut Sources<'_>| {
            Form::compute(0.0, |inputs, _, _| Ok(inputs[0].clone().expect("it needs its input")))
        };
        Some(NodePlan::new(node.input(0).clone(), [Takes::passing([])], same))
    }
}

/// The nodes of a plan whose `build` returns this.
fn nodes_of(test: &str, rows: &str) -> Vec<Value> {
    let sim = Sim::new(1);
    let mut config = config(&sim);
    for name in ["core::constructor", "core::then", "core::value_of", "mine::to_string", "mine::constructor"]
    {
        config.ops.add(Own(name));
    }
    let runs = sim.engine(&config.runs);
    let engine = Engine::on(runs, config);
    let text = format!(
        "export default definePlan({{ name: 'a', build: (ctx) => ctx.test.fixedSource({{ rowCount: 3 }}){rows} }});"
    );
    let folder = Folder::new(test, &[("a.plan.ts", &text)]);
    let built = Compiler::in_place().compile(&engine, &folder.0.join("a.plan.ts"), &folder.0).built;
    let built = built.unwrap_or_else(|problems| panic!("{:?}", problems.errors));
    let json: Value = serde_json::from_str(&built.text).unwrap();
    json["nodes"].as_array().unwrap().clone()
}

#[test]
fn methods_of_any_name() {
    let rows = ".constructor().then().valueOf().mine.toString().mine.constructor()";
    let ops: Vec<Value> = nodes_of("own-names", rows).iter().map(|node| node["op"].clone()).collect();
    let expected = [
        "test::fixed_source",
        "core::constructor",
        "core::then",
        "core::value_of",
        "mine::to_string",
        "mine::constructor",
    ];
    assert_eq!(ops, expected);
}

#[test]
fn options_of_its_own_come_first() {
    let rows = ".mine.toString({ id: 'whose', timeoutMs: 3, range: 'far', constructor: true }).take({ count: 1, id: 'last' })";
    let nodes = nodes_of("own-options", rows);
    let params = json!({"id": "whose", "timeout_ms": 3, "range": "far", "constructor": true});
    assert_eq!(
        nodes[1],
        json!({"node_id": "n1", "op": "mine::to_string", "inputs": ["n0"], "params": params})
    );
    assert_eq!(nodes[2]["node_id"], "last");
}
