//! An expression is an object to JavaScript, and objects are true, equal to nothing else, and in no list. No plan is
//! built by that.

use expect_test::{Expect, expect};

use crate::world::{json_of, problems_of};

/// The errors of an expression, one line each.
fn check(test: &str, source: &str, expected: Expect) {
    let body = format!("const p = {source};\nreturn v.filter({{ pred: p }});");
    let told = problems_of(&format!("natives-{test}"), &body);
    let lines = told.lines().filter(|line| !line.contains(" | "));
    expected.assert_eq(&lines.collect::<Vec<_>>().join("\n"));
}

#[test]
fn what_decides_by_a_function_needs_an_answer() {
    for source in [
        "[1, 2].filter((x) => Key.id > x).length > 1",
        "[1, 2].some((x) => Key.id > x)",
        "![1, 2].every((x) => Key.id > x)",
        "[1, 2].find((x) => Key.id == x) === 1",
        "[1, 2].findIndex((x) => Key.id == x) >= 0",
        "[1, 2].findLast((x) => x == Key.id) === 1",
        "[1, 2].values().some((x) => x == Key.id)",
        "[Key.id > 1, Key.id < 9].every(Boolean)",
        "[false, Key.id < 9].some(Boolean)",
    ] {
        let told =
            problems_of("natives-deciding", &format!("const p = {source};\nreturn v.filter({{ pred: p }});"));
        assert!(told.starts_with("error: a.plan.ts:4:"), "{source}: {told}");
        assert!(told.contains("this is known only when a request comes"), "{source}: {told}");
    }
}

#[test]
fn what_is_looked_for_is_not_known() {
    check(
        "finding",
        "['a', 'b'].indexOf(Key.country) >= 0",
        expect![[r#"
        error: a.plan.ts:4:30: `indexOf` looks for an expression, and not for what it will be
          help: for what a row or request brings write `x in [1, 2]`, or `condition ? a : b` for each case"#]],
    );
    check(
        "finding",
        "!new Set(['a', 'b']).has(Key.country)",
        expect![[r#"
        error: a.plan.ts:4:36: `has` looks for an expression, and not for what it will be
          help: for what a row or request brings write `x in [1, 2]`, or `condition ? a : b` for each case"#]],
    );
    check(
        "finding",
        "(new Map([['a', true]]).get(Key.country) ?? false)",
        expect![[r#"
        error: a.plan.ts:4:39: `get` looks for an expression, and not for what it will be
          help: for what a row or request brings write `x in [1, 2]`, or `condition ? a : b` for each case"#]],
    );
    check(
        "finding",
        "Object.is(Key.id, 3)",
        expect!["error: a.plan.ts:4:21: `is` takes plain values, and this is an expression"],
    );
    check(
        "finding",
        "Number.isInteger(Key.id)",
        expect!["error: a.plan.ts:4:28: `isInteger` takes plain values, and this is an expression"],
    );
    check(
        "finding",
        "JSON.stringify({ v }) === '{}'",
        expect![[r#"
        error: a.plan.ts:4:16: rows have no value while the plan is built
          help: `concat`, `union` and `join` put rows together"#]],
    );
    check(
        "finding",
        "['number'].includes(typeof Key.id)",
        expect![[r#"
        error: a.plan.ts:4:38: what `typeof` says of an expression is no part of an expression
          help: an expression is made of keys, parameters, numbers, strings, true, false and null"#]],
    );
    check(
        "finding",
        "JSON.stringify(Key.id) === '3'",
        expect![[r#"
        error: a.plan.ts:4:26: an expression has no value while the plan is built: it stands for one that a request brings
          help: operators (but for `x++` and `a.b += x`) and log, exp, min, max, abs, pow, clamp, lower, upper make expressions; text and property names cannot be made of one"#]],
    );
}

#[test]
fn typeof_knows_no_more() {
    check(
        "typeof",
        "((x: number) => typeof x === 'number')(Key.id)",
        expect![[r#"
        error: a.plan.ts:4:27: `typeof` cannot tell what an expression will be
          help: write a function for each kind of values"#]],
    );
    check(
        "typeof",
        "((x: number) => { switch (typeof x) { case 'number': return true; default: return false; } })(Key.id)",
        expect![[r#"
        error: a.plan.ts:4:37: this is known only when a request comes; JavaScript has run by then
          help: to choose between rows write `rows.if({ pred, then, else })`; inside an expression `condition ? a : b`"#]],
    );
    check(
        "typeof",
        "((by?: number) => { if (by !== undefined) return Key.id > by; return true; })(P.weight)",
        expect![[r#"
        error: a.plan.ts:4:35: this is known only when a request comes; JavaScript has run by then
          help: if the question is whether something was given at all, write `typeof x === "undefined"`, or `x ?? value`"#]],
    );
    check(
        "typeof",
        "((by?: number) => { if (typeof by !== 'undefined') return Key.id > by; return true; })(P.weight)",
        expect![""],
    );
    check("typeof", "typeof nobody === 'undefined' && typeof v.take === 'function'", expect![""]);
}

#[test]
fn what_is_not_there_is_left_out() {
    let body = "const all = [Key.id > 1, false, undefined, Boolean(P.explore)].filter(Boolean);
        return v.filter({ pred: all.reduce((a, b) => a && b) });";
    let preds = json_of("natives-absent", body)["pred_table"].take();
    let same = "return v.filter({ pred: Key.id > 1 && P.explore });";
    assert_eq!(preds, json_of("natives-absent", same)["pred_table"]);
}

#[test]
fn in_is_about_items() {
    check(
        "in",
        "((x: string) => x in ['a', 'b'])('a')",
        expect![[r#"
        error: a.plan.ts:4:27: `in` asks a list of plain values for an index, not for an item
          help: write `list.includes(x)`"#]],
    );
    check(
        "in",
        "[Key.id > 1, Key.id > 2].includes(true)",
        expect![[r#"
        error: a.plan.ts:4:45: `includes` looks for an expression, and not for what it will be
          help: for what a row or request brings write `x in [1, 2]`, or `condition ? a : b` for each case"#]],
    );
    check("in", "'a' in { a: 1 } && Symbol.iterator in [] && ['a'].includes('a')", expect![""]);
}

#[test]
fn what_was_told_is_not_told_again() {
    let bad = "[Key.idd].map((x) => typeof x === 'number' && new Set([1]).has(x) && Number.isNaN(x) && x in [1])[0]";
    check(
        "told",
        bad,
        expect![[r#"
        error: a.plan.ts:4:12: there is no key `idd`
          help: did you mean `id`?"#]],
    );
}
