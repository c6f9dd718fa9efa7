//! Plan files: what is wrong is told all at once, each with its node and field.

use anabranch_plan::document::Document;
use anabranch_plan::effects::plan_info;
use anabranch_plan::op::{Contract, Effect, Mark, Node, NodePlan, Op, Ops, ParamKind, ParamSpec, Spec};
use anabranch_plan::registry::EndpointKind;
use anabranch_plan::{Problems, Registries};
use expect_test::{Expect, expect};
use serde_json::json;

/// An op that is never run.
struct Fake(Spec);

impl Op for Fake {
    fn spec(&self) -> &Spec {
        &self.0
    }

    fn plan(&self, _: &mut Node<'_>) -> Option<NodePlan> {
        None
    }
}

const fn param(name: &'static str, kind: ParamKind, required: bool) -> ParamSpec {
    ParamSpec { name, kind, required, doc: "" }
}

const fn spec(name: &'static str, inputs: usize, params: &'static [ParamSpec], writes: Effect) -> Spec {
    let contract = Contract::Any;
    Spec { name, doc: "", inputs, params, writes, contract, mark: Mark::Auto, distinct: false }
}

fn ops() -> Ops {
    let mut ops = Ops::default();
    ops.add(Fake(spec("fake::source", 0, &[], Effect::Keys(&[3001, 2001, 3001]))));
    const FETCH: &[ParamSpec] = &[
        param("endpoint", ParamKind::Endpoint(Some(EndpointKind::Redis)), true),
        param("fanout", ParamKind::Int(1, 1000), true),
        param("weight", ParamKind::Float, false),
    ];
    ops.add(Fake(spec("fake::fetch", 1, FETCH, Effect::Named("country"))));
    const SCORE: &[ParamSpec] =
        &[param("out_key", ParamKind::Key, true), param("expr_id", ParamKind::Expr, true)];
    ops.add(Fake(spec("fake::score", 1, SCORE, Effect::FromParam("out_key"))));
    const KEEP: &[ParamSpec] = &[param("pred_id", ParamKind::Pred, true)];
    ops.add(Fake(spec("fake::keep", 1, KEEP, Effect::Keys(&[]))));
    const MERGE: &[ParamSpec] = &[
        param("rhs", ParamKind::Node, true),
        param("others", ParamKind::Nodes, false),
        param("order", ParamKind::Choice(&["asc", "desc"]), false),
        param("strict", ParamKind::Bool, false),
        param("label", ParamKind::Text, false),
        param("rules", ParamKind::Json, false),
    ];
    const CASES: &[(&str, Effect)] = &[("asc", Effect::Keys(&[1])), ("desc", Effect::Unknown)];
    ops.add(Fake(spec("fake::merge", 1, MERGE, Effect::Switch("order", CASES))));
    ops
}

fn registries() -> Registries {
    let keys = "
        key = [
            { key_id = 1, name = 'id', type = 'int', nullable = false, allow_write = false },
            { key_id = 2001, name = 'final_score', type = 'float', nullable = true },
            { key_id = 3001, name = 'country', type = 'string', nullable = true },
        ]";
    let endpoints = "
        endpoint = [
            { endpoint_id = 'ep_0001', name = 'users', kind = 'redis', resolver = { type = 'static', host = 'h', port = 1 } },
            { endpoint_id = 'ep_0002', name = 'api', kind = 'http', resolver = { type = 'static', host = 'h', port = 1 } },
        ]";
    let capabilities = r#"
        [[capability]]
        id = "cap.rfc.0001.base.v1"
        status = "implemented"
        payload_schema = '''{"type": "object", "additionalProperties": false, "required": ["why"],
            "properties": {"why": {"type": "string"}, "level": {"type": "number"}, "deep": {"type": "object"},
                           "list": {"type": "array"}, "on": {"type": "boolean"}, "any": {}}}'''
        [[capability]]
        id = "cap.rfc.0002.bare.v1"
        status = "deprecated"
        [[capability]]
        id = "cap.rfc.0003.draft.v1"
        status = "draft"
    "#;
    let files = [("keys.toml", keys), ("endpoints.dev.toml", endpoints), ("capabilities.toml", capabilities)];
    Registries::parse(files, None).unwrap().0
}

fn parse(text: &str) -> (Option<Document>, Problems) {
    let mut problems = Problems::default();
    let document = Document::parse(text, &ops(), &registries(), &mut problems);
    assert_eq!(document.is_some(), problems.is_fine(), "{problems}");
    (document, problems)
}

fn check(text: &str, expect: Expect) {
    let (document, problems) = parse(text);
    let mut lines: Vec<String> = problems.errors.iter().map(|error| error.to_string()).collect();
    lines.extend(problems.warnings.iter().map(|warning| format!("warning: {warning}")));
    if let Some(document) = document {
        for node in &document.nodes {
            lines.push(format!("{} {:?} {:?} {:?}", node.id, node.inputs, node.args, node.trace));
        }
        lines.push(format!("outputs {:?}", document.outputs));
    }
    expect.assert_eq(&lines.join("\n"));
}

/// A plan of these nodes; the last line names the output.
fn plan(nodes: &str, rest: &str) -> String {
    format!(r#"{{"schema_version":1,"plan_name":"p","nodes":[{nodes}]{rest}}}"#)
}

const SOURCE: &str = r#"{"node_id":"s","op":"fake::source","inputs":[]}"#;

#[test]
fn a_plan() {
    check(
        r#"{
          "schema_version": 1, "plan_name": "p",
          "nodes": [
            {"node_id":"m","op":"fake::merge","inputs":["f"],"params":{
                "rhs":"s","others":["s","f"],"order":"asc","strict":true,"label":"é","rules":[1],"trace":"t"}},
            {"node_id":"s","op":"fake::source","inputs":[],"params":null},
            {"node_id":"f","op":"fake::fetch","inputs":["s"],
             "params":{"endpoint":"ep_0001","fanout":10.0,"weight":null,"trace":null}}
          ],
          "outputs": ["m", "m"],
          "built_by": {"tool": "dslc"}
        }"#,
        expect![[r#"
            m [2, 1, 1, 2] [Some(Nodes([1])), Some(Nodes([2, 3])), Some(Value(Text("asc"))), Some(Value(Bool(true))), Some(Value(Text("é"))), Some(Json(Array [Number(1)]))] Some("t")
            s [] [] None
            f [1] [Some(Endpoint(0)), Some(Value(Int(10))), None] None
            outputs [0, 0]"#]],
    );
}

#[test]
fn text_that_is_no_plan() {
    check("", expect!["line 1, column 0: not a JSON plan: EOF while parsing a value"]);
    check(
        "{\"schema_version\": 1,\n  \"nodes\": [}",
        expect!["line 2, column 13: not a JSON plan: expected value"],
    );
    check("[]", expect!["plan: must be an object, not a list"]);
    check("{} x", expect!["line 1, column 4: not a JSON plan: trailing characters"]);
    check(
        "{\"nodes\": [],\n \"a\": {\"x\": 1, \"x\": 2}}",
        expect!["line 2, column 18: not a JSON plan: field `x` is there twice"],
    );
    check(
        &"[".repeat(1000),
        expect![
            "line 1, column 301: not a JSON plan: nested deeper than 300 levels; an expression may have 256 of them"
        ],
    );
    check(
        &plan(SOURCE, ",\"outputs\":[\"s\"],\"x\":1e999"),
        expect!["line 1, column 119: not a JSON plan: number out of range"],
    );
    check(&" ".repeat((16 << 20) + 1), expect!["plan: has 16777217 bytes; a plan file may have 16777216"]);
}

#[test]
fn fields_of_the_plan() {
    check(
        "{}",
        expect![[r#"
        schema_version: is missing; it must be a whole number
        plan_name: is missing; it must be a string
        nodes: is missing; it must be a list
        outputs: is missing; it must be a list"#]],
    );
    check(
        r#"{"schema_version":2,"plan_name":"a-b","nodes":{},"outputs":"x","expr_table":[],"pred_table":null,
            "capabilities_required":{},"extensions":3,"built_by":"me","node":[],"outpust":[]}"#,
        expect![[r#"
            schema_version: version 2 is not known; this program reads version 1
            nodes: must be a list, not an object
            outputs: must be a list, not the string `x`
            expr_table: must be an object, not a list
            pred_table: must be an object, not null
            capabilities_required: must be a list, not an object
            extensions: must be an object, not 3
            built_by: must be an object, not the string `me`
            node: there is no such field (did you mean `nodes`?)
            outpust: there is no such field (did you mean `outputs`?)"#]],
    );
    check(
        r#"{"schema_version":1.5,"plan_name":3,"nodes":[],"outputs":[]}"#,
        expect![[r#"
        schema_version: must be a whole number, not 1.5
        plan_name: must be a string, not 3
        outputs: must not be empty (name the nodes whose rows are the answer)"#]],
    );
    check(
        &plan(SOURCE, r#","outputs":["t", 3, "sn"]"#),
        expect![[r#"
            outputs: there is no node `t`
            outputs: must be ids of nodes, not 3
            outputs: there is no node `sn`"#]],
    );
}

#[test]
fn fields_of_nodes() {
    let nodes = r#"
        {"node_id":"a b","op":"fake::source","inputs":[]},
        {"node_id":"s","op":"fake::sauce","inputs":["s1"]},
        {"node_id":"s","op":"unlike::any","inputs":[1]},
        {"op":"fake::source","inputs":[],"param":{}},
        {"node_id":7,"op":8,"inputs":9,"params":10,"extensions":11},
        "s",
        {"node_id":"t"}"#;
    check(
        &plan(nodes, r#","outputs":["s"]"#),
        expect![[r#"
            node `s`, node_id: nodes[1] and nodes[2] have the same id
            node `a b` (fake::source), node_id: `a b` does not match ^[A-Za-z0-9_]+$
            node `s` (fake::sauce), op: there is no op `fake::sauce` (did you mean `fake::source`?)
            node `s` (fake::sauce), inputs: there is no node `s1`
            node `s` (unlike::any), op: there is no op `unlike::any`
            node `s` (unlike::any), inputs: must be ids of nodes, not 1
            nodes[3], node_id: is missing; it must be a string
            nodes[3], param: there is no such field (did you mean `params`?)
            nodes[4], node_id: must be a string, not 7
            nodes[4], op: must be a string, not 8
            nodes[4], inputs: must be a list, not 9
            nodes[4], params: must be an object, not 10
            nodes[4], extensions: must be an object, not 11
            nodes[5]: must be an object, not the string `s`
            node `t`, op: is missing; it must be a string
            node `t`, inputs: is missing; it must be a list"#]],
    );
}

#[test]
fn inputs_of_nodes() {
    let nodes = r#"
        {"node_id":"s","op":"fake::source","inputs":["f"]},
        {"node_id":"f","op":"fake::fetch","inputs":[],"params":{"endpoint":"ep_0001","fanout":1}},
        {"node_id":"g","op":"fake::fetch","inputs":["s","f"],"params":{"endpoint":"ep_0001","fanout":1}}"#;
    check(
        &plan(nodes, r#","outputs":["g"]"#),
        expect![[r#"
        node `s` (fake::source), inputs: fake::source takes 0 nodes, not 1
        node `f` (fake::fetch), inputs: fake::fetch takes 1 node, not 0
        node `g` (fake::fetch), inputs: fake::fetch takes 1 node, not 2"#]],
    );
}

#[test]
fn parameters() {
    let nodes = format!(
        r#"{SOURCE},
        {{"node_id":"a","op":"fake::fetch","inputs":["s"],"params":{{"fanout":0,"endpoint":null,"weight":"w","fanuot":1}}}},
        {{"node_id":"b","op":"fake::fetch","inputs":["s"],"params":{{"fanout":1.5,"endpoint":"ep_0003","trace":1}}}},
        {{"node_id":"c","op":"fake::fetch","inputs":["s"],"params":{{"fanout":1e300,"endpoint":"ep_0002"}}}},
        {{"node_id":"d","op":"fake::fetch","inputs":["s"],"params":{{"fanout":99999999999999999999,"endpoint":"users"}}}},
        {{"node_id":"e","op":"fake::merge","inputs":["s"],"params":{{
            "rhs":"x","others":["s",1,"y"],"order":"up","strict":"yes","label":5}}}},
        {{"node_id":"f","op":"fake::merge","inputs":["s"],"params":{{"rhs":["s"],"others":"s","order":1}}}},
        {{"node_id":"g","op":"fake::score","inputs":["s"],"params":{{"out_key":7,"expr_id":"e9"}}}},
        {{"node_id":"h","op":"fake::score","inputs":["s"],"params":{{"out_key":-1,"expr_id":3}}}},
        {{"node_id":"i","op":"fake::score","inputs":["s"],"params":{{"out_key":"final_score"}}}},
        {{"node_id":"j","op":"fake::keep","inputs":["s"],"params":{{"pred_id":"p1"}}}}"#
    );
    check(
        &plan(&nodes, r#","outputs":["e"]"#),
        expect![[r#"
            node `a` (fake::fetch), fanuot: fake::fetch has no such parameter (did you mean `fanout`?)
            node `a` (fake::fetch), endpoint: is missing; it must be the id or name of a redis endpoint
            node `a` (fake::fetch), fanout: must be a whole number from 1 to 1000, not 0
            node `a` (fake::fetch), weight: must be a number, not the string `w`
            node `b` (fake::fetch), trace: must be a string or null, not 1
            node `b` (fake::fetch), endpoint: there is no endpoint `ep_0003` (did you mean `ep_0001`?)
            node `b` (fake::fetch), fanout: must be a whole number from 1 to 1000, not 1.5
            node `c` (fake::fetch), endpoint: endpoint `ep_0002` is of kind http; fake::fetch needs redis
            node `c` (fake::fetch), fanout: must be a whole number from 1 to 1000, not 1e+300
            node `d` (fake::fetch), fanout: must be a whole number from 1 to 1000, not 1e+20
            node `e` (fake::merge), rhs: there is no node `x`
            node `e` (fake::merge), others: must be a list of ids of nodes, not 1
            node `e` (fake::merge), others: there is no node `y`
            node `e` (fake::merge), order: must be one of `asc`, `desc`, not the string `up`
            node `e` (fake::merge), strict: must be true or false, not the string `yes`
            node `e` (fake::merge), label: must be a string, not 5
            node `f` (fake::merge), rhs: must be the id of a node, not a list
            node `f` (fake::merge), others: must be a list of ids of nodes, not the string `s`
            node `f` (fake::merge), order: must be one of `asc`, `desc`, not 1
            node `g` (fake::score), out_key: there is no key 7
            node `g` (fake::score), expr_id: there is no `e9` in expr_table
            node `h` (fake::score), out_key: there is no key -1
            node `h` (fake::score), expr_id: must be the id of an entry of expr_table, not 3
            node `i` (fake::score), expr_id: is missing; it must be the id of an entry of expr_table
            node `j` (fake::keep), pred_id: there is no `p1` in pred_table"#]],
    );
}

#[test]
fn circles() {
    let node = |id: &str, input: &str, rhs: &str| {
        format!(r#"{{"node_id":"{id}","op":"fake::merge","inputs":["{input}"],"params":{{"rhs":"{rhs}"}}}}"#)
    };
    let nodes = [
        SOURCE.to_owned(),
        node("a", "s", "b"),
        node("b", "c", "s"),
        node("c", "s", "a"),
        node("self", "s", "self"),
        node("after", "a", "self"),
    ];
    check(
        &plan(&nodes.join(","), r#","outputs":["after"]"#),
        expect![[r#"
        node `a` (fake::merge), inputs: the nodes form a circle: `a` needs `b` needs `c` needs `a`
        node `self` (fake::merge), inputs: the nodes form a circle: `self` needs `self`"#]],
    );
    let mut ring: Vec<String> =
        (0..9_999).map(|at| node(&format!("n{at}"), "s", &format!("n{}", at + 1))).collect();
    ring[9_998] = node("n9998", "s", "n0");
    ring.push(SOURCE.to_owned());
    check(
        &plan(&ring.join(","), r#","outputs":["s"]"#),
        expect![
            "node `n0` (fake::merge), inputs: the nodes form a circle: `n0` needs `n1` needs `n2` needs `n3` needs `n4` needs `n5` needs `n6` needs `n7` needs 9991 more needs `n0`"
        ],
    );
}

#[test]
fn too_much() {
    let nodes = vec![SOURCE; 10_001].join(",");
    check(&plan(&nodes, r#","outputs":["s"]"#), expect!["nodes: has 10001 entries; a plan may have 10000"]);
    let others = vec!["\"s\""; 1_001].join(",");
    let merge = format!(
        r#"{{"node_id":"m","op":"fake::merge","inputs":["s"],"params":{{"rhs":"s","others":[{others}]}}}}"#
    );
    check(
        &plan(&format!("{SOURCE},{merge}"), r#","outputs":["m"]"#),
        expect!["node `m` (fake::merge), others: names 1001 nodes; at most 1000 may be"],
    );
}

#[test]
fn a_deep_chain() {
    let mut nodes = vec![SOURCE.to_owned()];
    for at in 0..9_999 {
        let input = if at == 0 { "s".to_owned() } else { format!("n{}", at - 1) };
        nodes.push(format!(
            r#"{{"node_id":"n{at}","op":"fake::merge","inputs":["{input}"],"params":{{"rhs":"{input}"}}}}"#
        ));
    }
    let (document, _) = parse(&plan(&nodes.join(","), r#","outputs":["n9998"]"#));
    assert_eq!(document.unwrap().nodes.len(), 10_000);
}

const BASE: &str = r#""capabilities_required":["cap.rfc.0001.base.v1"]"#;
const BARE: &str = r#""capabilities_required":["cap.rfc.0002.bare.v1"]"#;

/// A plan of one source with more fields.
fn source_and(rest: &str) -> String {
    plan(SOURCE, &format!(r#","outputs":["s"],{rest}"#))
}

#[test]
fn required_capabilities() {
    check(
        &source_and(
            r#""capabilities_required":["cap.rfc.0002.bare.v1",3,"cap.rfc.0001.base.v1","cap.rfc.0001.base.v1",
                "cap.rfc.0003.draft.v1","cap.rfc.0001.bose.v1","else"]"#,
        ),
        expect![[r#"
            capabilities_required: must be strings, not 3
            capabilities_required: must be sorted, but `cap.rfc.0001.base.v1` comes after `cap.rfc.0002.bare.v1`
            capabilities_required: `cap.rfc.0001.base.v1` is there twice
            capabilities_required: `cap.rfc.0003.draft.v1` is registered but not supported yet
            capabilities_required: must be sorted, but `cap.rfc.0001.bose.v1` comes after `cap.rfc.0003.draft.v1`
            capabilities_required: `cap.rfc.0001.bose.v1` is not supported: no such capability is registered (did you mean `cap.rfc.0001.base.v1`?)
            capabilities_required: `else` is not supported: no such capability is registered"#]],
    );
}

#[test]
fn payloads_of_capabilities() {
    check(
        &source_and(&format!(r#"{BASE},"extensions":{{"cap.rfc.0001.base.v1":{{"why":"x","any":[]}}}}"#)),
        expect![[r#"
        s [] [] None
        outputs [0]"#]],
    );
    check(
        &source_and(&format!(
            r#"{BASE},"extensions":{{"cap.rfc.0002.bare.v1":{{}},"cap.rfc.0001.base.v1":{{
                "smuggled":1,"level":"high","deep":[],"list":{{}},"on":0}}}}"#
        )),
        expect![[r#"
            extensions.cap.rfc.0001.base.v1: the payload lacks `why`
            extensions.cap.rfc.0001.base.v1: `deep` must be of type object, not a list
            extensions.cap.rfc.0001.base.v1: `level` must be of type number, not the string `high`
            extensions.cap.rfc.0001.base.v1: `list` must be of type array, not an object
            extensions.cap.rfc.0001.base.v1: `on` must be of type boolean, not 0
            extensions.cap.rfc.0001.base.v1: the payload may not have `smuggled`
            extensions.cap.rfc.0002.bare.v1: the plan does not require this capability (add it to capabilities_required)"#]],
    );
    check(
        &source_and(&format!(r#"{BASE},"extensions":{{"cap.rfc.0001.base.v1":null}}"#)),
        expect![
            "extensions.cap.rfc.0001.base.v1: the payload must be an object, not null (write {} or leave the key out)"
        ],
    );
    check(
        &source_and(&format!(r#"{BASE},"extensions":{{"cap.rfc.0001.base.v1":[]}}"#)),
        expect![
            "extensions.cap.rfc.0001.base.v1: the payload must be an object, not a list (write {} or leave the key out)"
        ],
    );
}

#[test]
fn capabilities_without_payload() {
    check(
        &source_and(&format!(r#"{BARE},"extensions":{{"cap.rfc.0002.bare.v1":{{}}}}"#)),
        expect![
            "extensions.cap.rfc.0002.bare.v1: this capability takes no payload, but has an object (leave the key out)"
        ],
    );
    check(
        &source_and(&format!(r#"{BARE},"extensions":{{"cap.rfc.0002.bare.v1":null}}"#)),
        expect![[r#"
        s [] [] None
        outputs [0]"#]],
    );
}

#[test]
fn payloads_in_nodes() {
    let node = r#"{"node_id":"s","op":"fake::source","inputs":[],"extensions":{
        "cap.rfc.0001.base.v1":{"why":3},"cap.rfc.0002.bare.v1":null}}"#;
    check(
        &plan(node, &format!(r#","outputs":["s"],{BASE}"#)),
        expect![[r#"
            node `s` (fake::source), extensions.cap.rfc.0001.base.v1: `why` must be of type string, not 3
            node `s` (fake::source), extensions.cap.rfc.0002.bare.v1: the plan does not require this capability (add it to capabilities_required)"#]],
    );
}

#[test]
fn tables() {
    let nodes = format!(
        r#"{SOURCE},
        {{"node_id":"a","op":"fake::score","inputs":["s"],"params":{{"out_key":2001,"expr_id":"e1"}}}},
        {{"node_id":"b","op":"fake::keep","inputs":["a"],"params":{{"pred_id":"p1"}}}}"#
    );
    let tables = r#","outputs":["b"],
        "expr_table":{"e1":{"op":"const_number","value":2},"e2":{"op":"const_null"}},
        "pred_table":{"p1":{"op":"const_bool","value":true},"p2":{"op":"const_bool","value":true}}"#;
    check(
        &plan(&nodes, tables),
        expect![[r#"
        warning: expr_table.e2: no node uses it
        warning: pred_table.p2: no node uses it
        s [] [] None
        a [0] [Some(Key(Key(2001))), Some(Table("e1"))] None
        b [1] [Some(Table("p1"))] None
        outputs [2]"#]],
    );
    let tables = r#","outputs":["b"],"expr_table":{"e1":{"op":"wat"}},"pred_table":{"p1":7}"#;
    check(
        &plan(&nodes, tables),
        expect![[r#"
            expr_table.e1.op: unknown expression op `wat` (there are neg, abs, log, exp, floor, ceil, round, length, lower, upper, add, sub, mul, div, mod, min, max, pow, coalesce, const_number, const_null, const_string, const_bool, key_ref, param_ref, clamp, if, now, hash)
            pred_table.p1: a predicate is an object, not 7"#]],
    );
}

#[test]
fn info() {
    let nodes = format!(
        r#"{SOURCE},
        {{"node_id":"f","op":"fake::fetch","inputs":["s"],"params":{{"endpoint":"ep_0001","fanout":1}}}},
        {{"node_id":"m","op":"fake::merge","inputs":["s"],"params":{{"rhs":"f","order":"asc"}}}},
        {{"node_id":"n","op":"fake::merge","inputs":["s"],"params":{{"rhs":"f"}}}}"#
    );
    let rest = r#","outputs":["m","n"],"capabilities_required":["cap.rfc.0001.base.v1"],
        "extensions":{"cap.rfc.0001.base.v1":{"why":"x","level":1}}"#;
    let info = plan_info(&parse(&plan(&nodes, rest)).0.unwrap(), &ops(), &registries());
    expect![[r#"
        {
          "capabilities_digest": "sha256:32f6ec1a2e718901b0139dab0b0f214c07dcdfea1cb1bb5aeffa0543a7914839",
          "capabilities_required": [
            "cap.rfc.0001.base.v1"
          ],
          "extensions": {
            "cap.rfc.0001.base.v1": {
              "level": 1,
              "why": "x"
            }
          },
          "nodes": [
            {
              "node_id": "s",
              "op": "fake::source",
              "writes_eval": {
                "keys": [
                  2001,
                  3001
                ],
                "kind": "Exact"
              }
            },
            {
              "node_id": "f",
              "op": "fake::fetch",
              "writes_eval": {
                "keys": [
                  3001
                ],
                "kind": "Exact"
              }
            },
            {
              "node_id": "m",
              "op": "fake::merge",
              "writes_eval": {
                "keys": [
                  1
                ],
                "kind": "Exact"
              }
            },
            {
              "node_id": "n",
              "op": "fake::merge",
              "writes_eval": {
                "keys": [],
                "kind": "Unknown"
              }
            }
          ],
          "plan_name": "p"
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&info).unwrap());
    let info = plan_info(&parse(&plan(SOURCE, r#","outputs":["s"]"#)).0.unwrap(), &ops(), &registries());
    assert_eq!(info["capabilities_digest"], "");
}

/// A sum of 130 terms leans to the left, 130 levels deep.
#[test]
fn a_long_sum_loads_and_a_longer_one_is_refused_with_our_limit() {
    let sum = |terms: usize| {
        let mut sum = json!({"op": "const_number", "value": 1});
        for _ in 1..terms {
            sum = json!({"op": "add", "a": sum, "b": {"op": "const_number", "value": 1}});
        }
        plan(SOURCE, &format!(",\"outputs\":[\"s\"],\"expr_table\":{{\"e\":{sum}}}"))
    };
    let errors = |text: &str| parse(text).1.to_string();
    assert_eq!(errors(&sum(130)), "");
    assert_eq!(errors(&sum(256)), "");
    let refused = "an expression may be nested 256 levels deep; this one is deeper \
                   (compute a part of it in a column of its own first)";
    assert_eq!(errors(&sum(257)), format!("expr_table.e: {refused}"));
    assert!(errors(&sum(400)).ends_with("an expression may have 256 of them"), "{}", errors(&sum(400)));
}
