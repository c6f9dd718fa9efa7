//! The language of plans, and its translation to plan JSON.

use anabranch_plan::Problems;
use anabranch_plan::expr::{Expr, Pred};
use expect_test::{Expect, expect, expect_file};
use serde_json::{Value, json};

use crate::world::{Folder, json_of};

/// The translation of an expression, compared as the loader shows it.
fn check_expr(source: &str, expected: Expect) {
    let body = format!("return v.vm({{ outKey: Key.score, expr: {source} }});");
    let json = json_of("expr", &body);
    let ir = &json["expr_table"][json["nodes"][1]["params"]["expr_id"].as_str().unwrap()];
    expected.assert_eq(&Expr::parse(ir, "", &mut Problems::default()).unwrap().to_string());
}

fn check_pred(source: &str, expected: Expect) {
    let body = format!("return v.filter({{ pred: {source} }});");
    let json = json_of("pred", &body);
    let ir = &json["pred_table"][json["nodes"][1]["params"]["pred_id"].as_str().unwrap()];
    expected.assert_eq(&Pred::parse(ir, "", &mut Problems::default()).unwrap().to_string());
}

#[test]
fn natural_expressions() {
    check_expr("Key.id * coalesce(P.weight, 0.5)", expect!["#1 * coalesce($4, 0.5)"]);
    check_expr("(Key.likes + 1) / -Key.age_hours - 2 ** 3", expect!["(#1001 + 1) / -#1002 - 8"]);
    check_expr("1_000 * 0x10 + +Key.id", expect!["16000 + #1"]);
    check_expr(
        "min(Key.likes, 5, P.weight) + max(1, Key.id) + abs(-Key.id)",
        expect!["min(min(#1001, 5), $4) + max(1, #1) + abs(-#1)"],
    );
    check_expr(
        "log(1 + Key.likes) * exp(-P.freshness) + pow(Key.id, 2) + Key.id ** 2",
        expect!["log(1 + #1001) * exp(-$1) + pow(#1, 2) + pow(#1, 2)"],
    );
    check_expr("clamp(Key.age_hours, 0, 48)", expect!["clamp(#1002, 0, 48)"]);
    check_expr("Key.age_hours < 24 ? Key.likes : Key.likes / 2", expect!["if(#1002 < 24, #1001, #1001 / 2)"]);
    check_expr(
        "floor(Key.likes / 2) + ceil(P.weight) + round(0.5 * Key.likes) + length(Key.title)",
        expect!["floor(#1001 / 2) + ceil($4) + round(0.5 * #1001) + length(#3003)"],
    );
    check_expr("hash(7, Key.id) % 100 + mod(Key.likes, 3)", expect!["hash(7, #1) % 100 + #1001 % 3"]);
    check_expr("now() - Key.age_hours * 3600", expect!["now() - #1002 * 3600"]);
    check_expr("Key.likes + floor(2.5) + round(-2.5) + length('né')", expect!["#1001 + 2 + (-3) + 2"]);
    check_expr("P.weight ?? 0.5", expect!["coalesce($4, 0.5)"]);
    check_expr("P.explore ? 1 : 0", expect!["if($3 == true, 1, 0)"]);
    check_expr("5", expect!["5"]);
    check_expr("E.add(E.key(Key.id), E.mul(E.param(P.weight), E.const(2)))", expect!["#1 + $4 * 2"]);
    check_expr(
        "E.if(Pred.cmp('>', Key.id, 3), E.constNull(), E.clamp(Key.id, 1, 2))",
        expect!["if(#1 > 3, null, clamp(#1, 1, 2))"],
    );
}

#[test]
fn natural_predicates() {
    check_pred(
        "Key.id > 5 && !(Key.likes <= 3 || Key.age_hours * 2 >= 10)",
        expect!["#1 > 5 and not (#1001 <= 3 or #1002 * 2 >= 10)"],
    );
    check_pred(
        "Key.topic == 'science' || 'rivers' === Key.topic",
        expect![[r##"#3002 == "science" or "rivers" == #3002"##]],
    );
    check_pred("Key.topic != null && Key.country !== P.muted", expect!["not_null(#3002) and #3001 != $2"]);
    check_pred("Key.likes == null", expect!["is_null(#1001)"]);
    check_pred(
        "Key.topic in ['a', 'b'] || [1, 2, 3].includes(Key.id)",
        expect![[r##"#3002 in ["a", "b"] or #1 in [1, 2, 3]"##]],
    );
    check_pred(
        "regex(Key.title, '^A', 'i') && !regex(Key.topic, P.muted)",
        expect![[r#"regex(#3003, "^A", "i") and not regex(#3002, $2)"#]],
    );
    check_pred("lower(Key.title) == upper(Key.topic)", expect!["lower(#3003) == upper(#3002)"]);
    check_pred("P.explore && Key.id < 9", expect!["$3 == true and #1 < 9"]);
    check_pred("true", expect!["true"]);
    check_pred(
        "Pred.and(Pred.in(Key.id, [1]), Pred.isNull(Key.topic), Pred.notNull(Key.likes))",
        expect!["#1 in [1] and is_null(#3002) and not_null(#1001)"],
    );
    check_pred(
        "Pred.or(Pred.not(Pred.constBool(false)), Pred.regex(Key.title, 'x'))",
        expect![[r#"not false or regex(#3003, "x")"#]],
    );
}

/// The nodes of a plan in plan JSON.
fn nodes_of(test: &str, body: &str) -> Vec<Value> {
    json_of(test, body)["nodes"].as_array().unwrap().clone()
}

#[test]
fn expressions_through_constants_functions_and_loops() {
    let body = "
        const weights: readonly number[] = [0.5, 0.25];
        const weigh = (x: number, by: number): number => x * by;
        let sum = 0 as number;
        for (const w of weights) sum += weigh(Key.likes, w);
        const popular = Key.likes > 10, fresh = Key.age_hours < 24;
        return v.vm({ outKey: Key.score, expr: sum }).filter({ pred: popular && fresh });";
    let json = json_of("through", body);
    let expr = Expr::parse(&json["expr_table"]["e0"], "", &mut Problems::default()).unwrap();
    expect!["0 + #1001 * 0.5 + #1001 * 0.25"].assert_eq(&expr.to_string());
    let pred = Pred::parse(&json["pred_table"]["p0"], "", &mut Problems::default()).unwrap();
    expect!["#1001 > 10 and #1002 < 24"].assert_eq(&pred.to_string());
}

#[test]
fn the_same_expression_is_there_once() {
    let body = "const twice = Key.id * 2;
        return v.vm({ outKey: Key.score, expr: twice }).vm({ outKey: Key.popularity, expr: Key.id * 2 });";
    assert_eq!(json_of("once", body)["expr_table"].as_object().unwrap().len(), 1);
}

#[test]
fn fan_outs_have_a_default_and_sorts_two_names() {
    let body = "const store = EP.redis.redis_default;
        return v.follow({ endpoint: store }).media({ endpoint: store, fanout: 3 })
            .fanout({ endpoint: store, key: 'media:{id}' })
            .sort({ key: Key.id }).sort({ by: Key.id, order: 'desc' });";
    let nodes = nodes_of("defaults", body);
    assert_eq!(nodes[1]["params"], json!({"endpoint": "ep_0001", "fanout": 100}));
    assert_eq!(nodes[2]["params"], json!({"endpoint": "ep_0001", "fanout": 3}));
    assert_eq!(nodes[3]["params"], json!({"endpoint": "ep_0001", "key": "media:{id}", "limit": 100}));
    assert_eq!(nodes[4]["params"], json!({"by": 1}));
    assert_eq!(nodes[5]["params"], json!({"by": 1, "order": "desc"}));
}

#[test]
fn what_every_node_takes() {
    let body = "const spare = v.test.sleep({ durationMs: 1 });
        return v
            .follow({ endpoint: EP.redis.redis_default, fallback: [{ stale: { maxAgeMs: 9, minKnown: 0.9 } }, spare] })
            .core.vm({ id: 'scored', outKey: Key.score, expr: clamp(Key.id, 0, 1), trace: 'label', timeoutMs: 50,
                range: { score: [0, 1] }, fallback: { default: { score: 0.5 } } });";
    let nodes = nodes_of("universal", body);
    assert_eq!(nodes[2]["fallback"], json!([{"stale": {"max_age_ms": 9, "min_known": 0.9}}, {"node": "n1"}]));
    let scored = json!({
        "node_id": "scored", "op": "core::vm", "inputs": ["n2"],
        "params": {"out_key": 2001, "expr_id": "e0", "trace": "label"},
        "timeout_ms": 50, "range": {"score": [0, 1]}, "fallback": {"default": {"score": 0.5}},
    });
    assert_eq!(nodes[3], scored);
}

#[test]
fn fragments_constants_and_types_of_other_files() {
    let folder = Folder::new(
        "fragments",
        &[
            (
                "a.plan.ts",
                "
            import { definePlan, type CandidateSet } from '@ranking-dsl/runtime';
            import { ranked, LIMIT, Shape } from './shared/rank.fragment';
            import * as more from './more.ts';
            const shape: Shape = { count: LIMIT };
            const page = (rows: CandidateSet) => rows.take(shape);
            export default definePlan({ name: 'a', deadlineMs: 100, nodeTimeoutMs: 50,
              build: (ctx) => page(ranked(ctx.viewer({ endpoint: more.store }))) });",
            ),
            (
                "shared/rank.fragment.ts",
                "
            import { BONUS } from '../more';
            export interface Shape { count: number }
            export const LIMIT = 5;
            export function ranked<T extends { vm: any }>(rows: T): T {
              return rows.vm({ outKey: Key.score, expr: Key.id + BONUS }).sort({ key: Key.score });
            }",
            ),
            ("more.ts", "export const BONUS = 2 * 3, store = EP.redis.redis_default;"),
        ],
    );
    let built = folder.compile("a.plan.ts").unwrap_or_else(|_| panic!("{}", folder.problems("a.plan.ts")));
    expect_file!["fragments.json"].assert_eq(&built.text);
    let again = folder.compile("a.plan.ts").unwrap().text;
    assert_eq!(again, built.text, "the same sources make the same JSON");
    std::fs::write(folder.0.join("more.ts"), "export const BONUS = 6, store = EP.redis.redis_default;")
        .unwrap();
    let other = folder.compile("a.plan.ts").unwrap().text;
    assert_ne!(other, built.text, "the digest is of all sources");
}

#[test]
fn several_outputs_and_capabilities() {
    let body = "ctx.requireCapability('cap.rfc.0001.extensions_capabilities.v1', {});
        return [v, v.take({ count: 1, extensions: { 'cap.rfc.0001.extensions_capabilities.v1': {} } })];";
    let json = json_of("outputs", body);
    assert_eq!(json["outputs"], json!(["n0", "n1"]));
    assert_eq!(json["capabilities_required"], json!(["cap.rfc.0001.extensions_capabilities.v1"]));
    assert_eq!(json["extensions"], json!({"cap.rfc.0001.extensions_capabilities.v1": {}}));
    assert_eq!(json["nodes"][1]["extensions"], json["extensions"]);
}

#[test]
fn sort_by_several_keys_and_pages() {
    let body = "return v.lookup({ endpoint: EP.redis.redis_default, key: 'user:{id}', fields: [Key.likes] }).sort({ by: [{ key: Key.likes, order: 'desc' }, Key.id] }).topk({ key: Key.likes, count: 3, offset: 2 })
        .take({ count: 5, offset: 10 }).select({ columns: [Key.likes, 'country'] });";
    let json = json_of("pages", body);
    let params: Vec<&Value> =
        json["nodes"].as_array().unwrap()[2..].iter().map(|node| &node["params"]).collect();
    assert_eq!(params[0], &json!({"by": [{"key": 1001, "order": "desc"}, 1]}));
    assert_eq!(params[1], &json!({"by": 1001, "count": 3, "offset": 2}));
    assert_eq!(params[2], &json!({"count": 5, "offset": 10}));
    assert_eq!(params[3], &json!({"columns": ["likes", "country"]}));
}

#[test]
fn outputs_have_names() {
    let json = json_of("named", "return { main: v, 'the rest': v.take({ count: 1, id: 'one' }) };");
    assert_eq!(json["outputs"], json!([{"node": "n0", "name": "main"}, {"node": "one", "name": "the rest"}]));
    let json = json_of("unnamed", "return [v, v.take({ count: 1, id: 'one' })];");
    assert_eq!(json["outputs"], json!(["n0", "one"]));
}

#[test]
fn a_condition_on_the_viewer() {
    let body = "const c = ctx.candidates({ columns: [Key.likes] });
        return c.if({ on: v, pred: Key.country == 'NO', then: c.take({ count: 1 }) });";
    let json = json_of("condition", body);
    assert_eq!(json["nodes"][1]["params"], json!({"columns": ["likes"]}));
    assert_eq!(json["nodes"][3]["params"], json!({"on": "n0", "pred_id": "p0", "then": "n2"}));
}

#[test]
fn code_prints_lines() {
    let body = "console.log('columns', ['a', 1, { deep: [[[[1]]]] }], Key.likes, v, null, undefined);
        console.warn(`two\\nlines \\u001b[31m`);
        for (let i = 0; i < 300; i++) console.log(i);
        return v;";
    let text = format!(
        "export default definePlan({{ name: \"a\", build: (ctx) => {{\nconst v = ctx.viewer({{ endpoint: EP.redis.redis_default }});\n{body}\n}} }});\n"
    );
    let printed = Folder::new("prints", &[("a.plan.ts", &text)]).printed("a.plan.ts");
    expect![[r#"
        a.plan.ts:3:75: columns ["a", 1, {deep: [[...]]}] an expression rows null undefined
        a.plan.ts:4:17: two lines \u{1b}[31m"#]]
    .assert_eq(&printed[..2].join("\n"));
    assert_eq!(printed.len(), 201);
    assert!(printed[200].ends_with("more than 200 lines: the rest is not printed"), "{}", printed[200]);
}
