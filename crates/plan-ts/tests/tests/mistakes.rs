//! Code that is easily written with another meaning than intended.

use expect_test::{Expect, expect};

use crate::world::problems_of;

fn check(test: &str, body: &str, expected: Expect) {
    expected.assert_eq(&problems_of(&format!("mistakes-{test}"), body));
}

#[test]
fn ids_are_strings_and_each_is_there_once() {
    check(
        "ids",
        "return v.take({ id: 5, count: 1 }).take({ id: Key.id, count: 1 });",
        expect![[r#"
        error: a.plan.ts:4:21: `id` must be a string, not 5
          4 | return v.take({ id: 5, count: 1 }).take({ id: Key.id, count: 1 });
            |                     ^
        error: a.plan.ts:4:47: `id` must be a string, not the key `id`
          4 | return v.take({ id: 5, count: 1 }).take({ id: Key.id, count: 1 });
            |                                               ^^^^^^
    "#]],
    );
    check(
        "ids",
        "return v.take({ count: 3 }).take({ id: 'n1', count: 1 });",
        expect![[r#"
        error: a.plan.ts:4:40: two nodes are called `n1`
          4 | return v.take({ count: 3 }).take({ id: 'n1', count: 1 });
            |                                        ^^^^
          help: nodes without an `id` are called n0, n1, ... as they are called: choose another name
    "#]],
    );
    check(
        "ids",
        "const top = (x: CandidateSet) => x.take({ id: 'top', count: 3 });\nreturn top(top(top(v)));",
        expect![[r#"
            error: a.plan.ts:4:47: two nodes are called `top`
              4 | const top = (x: CandidateSet) => x.take({ id: 'top', count: 3 });
                |                                               ^^^^^
        "#]],
    );
}

#[test]
fn values_are_no_conditions() {
    check(
        "conditions",
        "return v.filter({ pred: Key.id });",
        expect![[r#"
        error: a.plan.ts:4:25: an int is compared with a bool
          4 | return v.filter({ pred: Key.id });
            |                         ^^^^^^
          help: a condition is true or false: compare it, as in `x > 0`; to take something else instead of null write `x ?? y`
    "#]],
    );
    check(
        "conditions",
        "return v.vm({ outKey: Key.score, expr: Key.country || Key.id > 3 });",
        expect![[r#"
        error: a.plan.ts:4:40: a string is compared with a bool
          4 | return v.vm({ outKey: Key.score, expr: Key.country || Key.id > 3 });
            |                                        ^^^^^^^^^^^^^^^^^^^^^^^^^
          help: a condition is true or false: compare it, as in `x > 0`; to take something else instead of null write `x ?? y`
    "#]],
    );
    check(
        "conditions",
        "return v.filter({ pred: Key.id == true });",
        expect![[r#"
        error: a.plan.ts:4:25: an int is compared with a bool
          4 | return v.filter({ pred: Key.id == true });
            |                         ^^^^^^^^^^^^^^
    "#]],
    );
}

#[test]
fn calls_tell_where_they_are() {
    check(
        "calls",
        "const one = [1].concat([2]);\nreturn v.take();",
        expect![[r#"
        error: a.plan.ts:5:10: `take` needs `count`: a whole number
          5 | return v.take();
            |          ^^^^
    "#]],
    );
    check(
        "calls",
        "const given = [{ cout: 1 }];\nreturn v.take(...given);",
        expect![[r#"
        error: a.plan.ts:5:10: `take` has no option `cout`
          5 | return v.take(...given);
            |          ^^^^
          help: did you mean `count`?
        error: a.plan.ts:5:10: `take` needs `count`: a whole number
          5 | return v.take(...given);
            |          ^^^^
    "#]],
    );
    check(
        "calls",
        "const name = 'take' as const;\nreturn v[name]({ cout: 1 });",
        expect![[r#"
            error: a.plan.ts:5:10: `take` needs `count`: a whole number
              5 | return v[name]({ cout: 1 });
                |          ^^^^
            error: a.plan.ts:5:18: `take` has no option `cout`
              5 | return v[name]({ cout: 1 });
                |                  ^^^^
              help: did you mean `count`?
        "#]],
    );
}

#[test]
fn keys_are_no_data() {
    check(
        "data",
        "return v.fill({ keys: [Key.country], value: Key.topic });",
        expect![[r#"
        error: a.plan.ts:4:23: `fill`, `keys`: key `country` has no registered default
          4 | return v.fill({ keys: [Key.country], value: Key.topic });
            |                       ^^^^^^^^^^^^^
          help: give a `value`, or register a default
        error: a.plan.ts:4:45: `value`: takes a plain value, not the key `topic`
          4 | return v.fill({ keys: [Key.country], value: Key.topic });
            |                                             ^^^^^^^^^
    "#]],
    );
    check(
        "data",
        "return v.lookup({ endpoint: EP.redis.redis_default, key: 'post:{id}', fields: [Key.topic],
  fallback: { default: { topic: Key.country } } });",
        expect![[r#"
            error: a.plan.ts:5:13: `fallback`: takes a plain value, not the key `country`
              5 |   fallback: { default: { topic: Key.country } } });
                |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        "#]],
    );
    check(
        "data",
        "class Page { count = 3; }\nreturn v.take(new Page());",
        expect![[r#"
        error: a.plan.ts:5:10: `take` needs `count`: a whole number
          5 | return v.take(new Page());
            |          ^^^^
        error: a.plan.ts:5:10: `take` takes an object of options, not an object of a class
          5 | return v.take(new Page());
            |          ^^^^
          help: write `take({ option: value })`
    "#]],
    );
}

#[test]
fn what_async_functions_throw() {
    check(
        "async",
        "async function check() { throw new RangeError('weights'); }\ncheck();\nreturn v;",
        expect![[r#"
            error: a.plan.ts:4:36: RangeError: weights
              4 | async function check() { throw new RangeError('weights'); }
                |                                    ^^^^^^^^^^
        "#]],
    );
    check(
        "async",
        "(async () => { await null; `${Key.id}`; })();\nreturn v;",
        expect![[r#"
        error: a.plan.ts:4:31: an expression has no value while the plan is built: it stands for one that a request brings
          4 | (async () => { await null; `${Key.id}`; })();
            |                               ^^^
          help: operators (but for `x++` and `a.b += x`) and log, exp, min, max, abs, pow, clamp, lower, upper make expressions; text and property names cannot be made of one
    "#]],
    );
    check("async", "Promise.reject(1).catch(() => 2);\nreturn v;", expect![""]);
}

#[test]
fn whole_numbers_are_exact() {
    check(
        "exact",
        "return v.filter({ pred: Key.id in [9007199254740993] || Key.id == -0x20_0000_0000_0001 });",
        expect![[r#"
            error: a.plan.ts:4:36: JavaScript has no number 9007199254740993: it would be 9007199254740992
              4 | return v.filter({ pred: Key.id in [9007199254740993] || Key.id == -0x20_0000_0000_0001 });
                |                                    ^^^^^^^^^^^^^^^^
              help: let requests bring it in a parameter; if it need not be exact, write it as `1.5e20`
            error: a.plan.ts:4:68: JavaScript has no number 0x20000000000001: it would be 9007199254740992
              4 | 07199254740993] || Key.id == -0x20_0000_0000_0001 });
                |                               ^^^^^^^^^^^^^^^^^^^
              help: let requests bring it in a parameter; if it need not be exact, write it as `1.5e20`
        "#]],
    );
    check(
        "exact",
        "return v.filter({ pred: Key.id in [9007199254740992, 1_000, 0x10, 1e20, 0.1, 1.] });",
        expect![""],
    );
}
