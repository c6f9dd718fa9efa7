//! Errors of the loader of plan JSON, in the words of TypeScript and with their places.

use expect_test::{Expect, expect};

use crate::world::problems_of;

fn check(test: &str, body: &str, expected: Expect) {
    expected.assert_eq(&problems_of(&format!("loader-{test}"), body));
}

#[test]
fn capabilities() {
    check(
        "cap",
        "ctx.requireCapability('cap.x', {});\nreturn v;",
        expect![[r#"
        error: a.plan.ts:4:5: `requireCapability`: `cap.x` is not supported: no such capability is registered
          4 | ctx.requireCapability('cap.x', {});
            |     ^^^^^^^^^^^^^^^^^
    "#]],
    );
    let id = "'cap.rfc.0001.extensions_capabilities.v1'";
    check(
        "cap",
        &format!("ctx.requireCapability({id}, {{ a: 1 }});\nreturn v;"),
        expect![[r#"
        error: a.plan.ts:4:5: `requireCapability`: the payload may not have `a`
          4 | ctx.requireCapability('cap.rfc.0001.extensions_capabilities.v1', { a: 1 });
            |     ^^^^^^^^^^^^^^^^^
    "#]],
    );
    check(
        "cap",
        &format!("ctx.requireCapability({id}, {{ a: Key.id * 2 }});\nreturn v;"),
        expect![[r#"
        error: a.plan.ts:4:5: `requireCapability`: takes plain values and keys, not an expression
          4 | ctx.requireCapability('cap.rfc.0001.extensions_capabilities.v1', { a: Key.id * 2 });
            |     ^^^^^^^^^^^^^^^^^
    "#]],
    );
    check(
        "cap",
        &format!("ctx.requireCapability({id}, [v]);\nreturn v;"),
        expect![[r#"
        error: a.plan.ts:4:5: `requireCapability`: takes plain values and keys, not rows
          4 | ctx.requireCapability('cap.rfc.0001.extensions_capabilities.v1', [v]);
            |     ^^^^^^^^^^^^^^^^^
    "#]],
    );
    check(
        "cap",
        &format!(
            "ctx.requireCapability({id}, {{}}); ctx.requireCapability({id});\nctx.requireCapability({id}, {{ a: Key.id }});\nreturn v;"
        ),
        expect![[r#"
            error: a.plan.ts:5:5: `cap.rfc.0001.extensions_capabilities.v1` was given something else before
              5 | ctx.requireCapability('cap.rfc.0001.extensions_capabilities.v1', { a: Key.id });
                |     ^^^^^^^^^^^^^^^^^
        "#]],
    );
    check(
        "cap",
        &format!("return v.take({{ count: 1, extensions: {{ [{id}]: {{}} }} }});"),
        expect![[r#"
        error: a.plan.ts:4:39: `take`, `extensions`: the plan does not require this capability
          4 | return v.take({ count: 1, extensions: { ['cap.rfc.0001.extensions_capabilities.v1']: {} } });
            |                                       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          help: call `ctx.requireCapability` with it
    "#]],
    );
}

#[test]
fn names_of_options_and_ops() {
    check(
        "words",
        "return v.take({ count: 1, fallback: 'timeout_ms' });",
        expect![[r#"
        error: a.plan.ts:4:37: `take`, `fallback`: must be `fail`, `empty`, `pass`, { default: { key: value } }, { stale: { maxAgeMs } } or rows, not the string `timeout_ms`
          4 | return v.take({ count: 1, fallback: 'timeout_ms' });
            |                                     ^^^^^^^^^^^^
    "#]],
    );
    check(
        "words",
        "return v.timeout({});",
        expect![[r#"
        error: a.plan.ts:4:10: `timeout`, `timeoutMs`: a region without a `timeoutMs` and a `fallback` does nothing
          4 | return v.timeout({});
            |          ^^^^^^^
    "#]],
    );
    check(
        "words",
        "return [v, v.take({ count: 1 }).timeout({ timeoutMs: 5, fallback: 'empty' }), v.timeout({ timeoutMs: 5, fallback: 'empty' })];",
        expect![[r#"
        error: a.plan.ts:4:81: `timeout`: node `n0` is also read by others, or an output: it cannot be given up for this one
          4 | s: 5, fallback: 'empty' }), v.timeout({ timeoutMs: 5, fallback: 'empty' })];
            |                               ^^^^^^^
          help: let them all read this node, or put `timeoutMs` and `fallback` on the node itself
    "#]],
    );
    check(
        "words",
        "return v.if({ pred: Key.id > 3, then: v, else: v });",
        expect![[r#"
            error: a.plan.ts:4:21: `if`, `pred`: it reads the column `id`, and the node does not say of which row
              4 | return v.if({ pred: Key.id > 3, then: v, else: v });
                |                     ^^^^^^^^^^
              help: `on` names a node whose first row is read, such as the viewer; `filter` chooses among rows
        "#]],
    );
}

#[test]
fn nodes_with_odd_names() {
    check(
        "odd",
        "return v.take({ id: 'a`b\\nc', count: -1 });",
        expect![[r#"
        error: a.plan.ts:4:21: `id` must match ^[A-Za-z0-9_]+$
          4 | return v.take({ id: 'a`b\nc', count: -1 });
            |                     ^^^^^^^^
        error: a.plan.ts:4:38: `take`, `count`: must be a whole number from 1, not -1
          4 | return v.take({ id: 'a`b\nc', count: -1 });
            |                                      ^^
    "#]],
    );
    let id = "a".repeat(70);
    check(
        "long",
        &format!("return v.take({{ id: '{id}',\n count: -1 }});"),
        expect![[r#"
        error: a.plan.ts:5:9: `take`, `count`: must be a whole number from 1, not -1
          5 |  count: -1 });
            |         ^^
    "#]],
    );
}
