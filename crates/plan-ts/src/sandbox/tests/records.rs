//! What the prelude records.

use expect_test::expect;

use super::{check, check_inside, check_value};

#[test]
fn a_plan_is_recorded_call_by_call() {
    check(
        "import { definePlan as define, CandidateSet } from 'anabranch';
        export default define(__ab_at(0, { name: 'x', build(ctx) {
            const rows = ctx.viewer({ endpoint: __ab_get(3, __ab_get(2, EP, 'redis'), 'users'), trace: undefined });
            ctx.requireCapability('cap', { a: [1, null] });
            return [rows.take(__ab_at(4, { count: 1 })), rows.test.sleep({ durationMs: 2 }).core.concat({ rhs: rows })];
        } }))",
        expect![[r#""#]],
    );
}

#[test]
fn operators_make_expressions_of_tokens() {
    let key = "__ab_get(1, Key, 'id')";
    check_value("__ab_op(0, '*', Key.id, 2)", expect![[r#""#]]);
    check_value("__ab_op(0, '**', P.weight, 2)", expect![[r#""#]]);
    check_value(&format!("__ab_op(0, '-', 1, {key})"), expect![[r#""#]]);
    check_value("__ab_op(0, '===', Key.country, 'de')", expect![[r#""#]]);
    check_value("__ab_op(0, '!==', Key.country, null)", expect![[r#""#]]);
    check_value("__ab_op(0, '==', undefined, Key.country)", expect![[r#""#]]);
    check_value("__ab_op(0, 'in', Key.id, [1, 2])", expect![[r#""#]]);
    check_value("['a'].includes(Key.country)", expect![[r#""#]]);
    check_value("__ab_logic(0, '&&', Key.id, () => __ab_op(1, '>', Key.id, 3))", expect![[r#""#]]);
    check_value("__ab_logic(0, '??', P.weight, () => 0.5)", expect![[r#""#]]);
    check_value("__ab_logic(0, '&&', true, () => Key.id)", expect![[r#""#]]);
    check_value("__ab_if(0, __ab_op(1, '<', Key.id, 3), () => 1, () => Key.score)", expect![[r#""#]]);
    check_value("__ab_unary(0, '!', Key.id)", expect![[r#""#]]);
    check_value("__ab_unary(0, '-', Key.id)", expect![[r#""#]]);
    check_value("__ab_op(0, '+', __ab_op(0, '<', Key.id, 3), 1)", expect![[r#""#]]);
}

#[test]
fn functions_make_expressions_of_tokens() {
    check_value("E.coalesce(P.weight, E.const(1), E.constNull())", expect![[r#""#]]);
    check_value("E.clamp(E.key(Key.id), 0, E.param(P.weight))", expect![[r#""#]]);
    check_value(
        "Pred.and(Pred.cmp('>', Key.id, 1), Pred.not(Key.id), Pred.in(Key.id, [3]))",
        expect![[r#""#]],
    );
    check_value("Pred.or(Pred.isNull(Key.id), Pred.notNull(Key.id), Pred.constBool(true))", expect![[r#""#]]);
    check_value("regex(Key.country, '^d', 'i')", expect![[r#""#]]);
    check_value("regex(lower(Key.country), P.pattern)", expect![[r#""#]]);
    check_value("max(Key.id, 1, min(3, 2))", expect![[r#""#]]);
    check_value("E.if(Key.id, 1, 'x')", expect![[r#""#]]);
    check_value("coalesce(Key.id, null)", expect![[r#""#]]);
}

#[test]
fn plain_values_compute_as_ever() {
    check(
        "let n = 0; for (let i = 0; __ab_test(1, __ab_op(2, '<', i, 10)); i++) n = __ab_op(3, '+', n, i);
        definePlan({ n, m: min(3, 2), u: upper('a'), c: coalesce(null, 4), t: [1].includes(1), build: (ctx) => ctx.viewer() })",
        expect![[r#""#]],
    );
}

#[test]
fn wrong_parts_of_expressions_are_told_with_their_site() {
    check_value("__ab_op(7, '%', Key.id, 2)", expect![[r#""#]]);
    check_value("__ab_op(7, '+', Key.id, undefined)", expect![[r#""#]]);
    check_value("__ab_op(7, '+', Key.id, NaN)", expect![[r#""#]]);
    check_value("__ab_op(7, '+', Key.id, {})", expect![[r#""#]]);
    check_value("__ab_op(7, '+', Key.id, EP.redis.users)", expect![[r#""#]]);
    check_value("__ab_op(7, 'in', Key.id, [Key.score])", expect![[r#""#]]);
    check_value("__ab_op(7, 'in', 'x', Key.score)", expect![[r#""#]]);
    check_value("__ab_logic(7, '||', Key.id, () => 0.5)", expect![[r#""#]]);
    check_value("__ab_if(7, Key.id, () => ({}), () => 1)", expect![[r#""#]]);
    check_value("__ab_op(7, '+', Key.id, '\\ud800')", expect![[r#""#]]);
    check_value("E.pow(__ab_at(7, Key.id))", expect![[r#""#]]);
    check_value("E.key(__ab_at(7, 'id'))", expect![[r#""#]]);
    check_value("Pred.cmp('=', Key.id, __ab_at(7, 3))", expect![[r#""#]]);
    check_value("regex(Key.country, __ab_at(7, /a/))", expect![[r#""#]]);
    check_value("regex(Key.country, 'a', __ab_at(7, 'g'))", expect![[r#""#]]);
    check_value("`${Key.id}`", expect![[r#""#]]);
    check_value("Math.log(Key.id)", expect![[r#""#]]);
    check_value("Math.sqrt(Key.id)", expect![[r#""#]]);
    check_value("Key.country.toLowerCase()", expect![[r#""#]]);
    check_value("Key.country.length", expect![[r#""#]]);
    check_value("[..._x(Key.id)]; function _x(x) { return x }", expect![[r#""#]]);
}

#[test]
fn unknown_names_are_told_all_at_once() {
    check_inside(
        "__ab_get(1, Key, 'scroe'); Key['idd']; const { wieght } = P; __ab_get(3, __ab_get(2, EP, 'rediss'), 'users');
        __ab_get(4, EP.redis, 'user'); rows = rows.tkae({}).take({ count: 1 });
        rows.viewer(); ctx.take(); rows.test.slep({}); ctx.tset;",
        expect![[r#""#]],
    );
    check_inside(
        "if (__ab_test(1, Key.id)) throw 'never'; while (__ab_test(2, __ab_get(3, Key, 'nope'))) { throw 'never' }",
        expect![[r#""#]],
    );
}

#[test]
fn options_are_data_or_faults() {
    check_inside(
        "rows.take(__ab_at(1, { a: NaN, b: () => 1, c: Symbol('x'), d: 1n, e: new Map(), f: [1, [undefined]], g: { $: 1 } }));
        const self = {}; self.self = self; rows.take(__ab_at(2, { self }));
        let deep = 1; for (let i = 0; i < 70; i++) deep = [deep]; rows.take(__ab_at(3, { deep }));
        rows.take(__ab_at(4, 5)); rows.take(__ab_at(5, rows)); rows.take({}, __ab_at(6, {})); rows.take(__ab_at(7, [1]));
        rows.take({ [Symbol.iterator]: 1 }); rows.take({ text: '\\ud800' }); rows.take({ ctx, space: rows.test });",
        expect![[r#""#]],
    );
    check_inside(
        "rows.take({ ['__proto__']: 1, toJSON: 'x', constructor: { prototype: null }, n: -0, big: 1e21, f: 0.1 });
        rows.take(Object.create(null)); rows.take(Object.freeze({ list: Object.freeze([true]) }));",
        expect![[r#""#]],
    );
}

#[test]
fn what_build_returns_must_be_rows() {
    for (code, expect) in [
        ("", expect![[r#""#]]),
        ("return []", expect![[r#""#]]),
        ("return [ctx.viewer(), 1]", expect![[r#""#]]),
        ("return [,]", expect![[r#""#]]),
        ("return ctx", expect![[r#""#]]),
        ("return (async () => ctx.viewer())()", expect![[r#""#]]),
        ("return Object.create(Object.getPrototypeOf(ctx.viewer()))", expect![[r#""#]]),
        ("return new Proxy(ctx.viewer(), {})", expect![[r#""#]]),
        ("throw new Error('no')", expect![[r#""#]]),
    ] {
        check(&format!("definePlan({{ build(ctx) {{ {code} }} }})"), expect);
    }
}

#[test]
fn a_file_defines_one_plan() {
    check("", expect![[r#""#]]);
    check("definePlan(__ab_at(1, 5))", expect![[r#""#]]);
    check("definePlan(__ab_at(1, {}))", expect![[r#""#]]);
    check(
        "let keep; definePlan({ build: (ctx) => keep = ctx.viewer() }); definePlan(__ab_at(2, {})); keep.take(__ab_at(3, {}));",
        expect![[r#""#]],
    );
}

#[test]
fn an_uncaught_error_is_told_with_its_place() {
    check("const a = 1;\n  a.b.c();", expect![[r#""#]]);
    check("throw 5", expect![[r#""#]]);
    check("throw null", expect![[r#""#]]);
    check(
        "function f() { return g(); }\nfunction g() { throw new RangeError('far'); }\nf()",
        expect![[r#""#]],
    );
    check("nope()", expect![[r#""#]]);
    check("let x = ;", expect![[r#""#]]);
    check("import { nope } from 'anabranch'", expect![[r#""#]]);
    check("import './other'", expect![[r#""#]]);
    check("await new Promise(() => {})", expect![[r#""#]]);
    check("await 1; throw new Error('after')", expect![[r#""#]]);
}
