//! Everything wrong is told at once, where it is.

use expect_test::{Expect, expect};

use crate::world::{Folder, problems_of};

fn check(test: &str, body: &str, expected: Expect) {
    expected.assert_eq(&problems_of(&format!("errors-{test}"), body));
}

#[test]
fn everything_at_once() {
    check(
        "all",
        "const store = EP.redis.defalt;
return v.follow({ endpoint: store, fanot: 3 })
  .vm({ outKey: Key.scroe, expr: Key.title * 2 })
  .filter({ pred: Key.topic == 3 || Key.id > P.wieght })
  .sort({ key: Key.likes, oder: 'desc' })
  .take({ count: 'ten' });",
        expect![[r#"
            error: a.plan.ts:4:15: there is no redis endpoint `defalt`
              4 | const store = EP.redis.defalt;
                |               ^^^^^^^^^^^^^^^
              help: there is `redis_default`
            error: a.plan.ts:5:36: `follow` has no option `fanot`
              5 | return v.follow({ endpoint: store, fanot: 3 })
                |                                    ^^^^^
              help: did you mean `fanout`?
            error: a.plan.ts:6:17: there is no key `scroe`
              6 |   .vm({ outKey: Key.scroe, expr: Key.title * 2 })
                |                 ^^^^^^^^^
              help: did you mean `score`?
            error: a.plan.ts:6:34: `mul` takes numbers, not a string
              6 |   .vm({ outKey: Key.scroe, expr: Key.title * 2 })
                |                                  ^^^^^^^^^
            error: a.plan.ts:7:46: there is no parameter `wieght`
              7 |   .filter({ pred: Key.topic == 3 || Key.id > P.wieght })
                |                                              ^^^^^^^^
              help: did you mean `weight`?
            error: a.plan.ts:8:27: `sort` has no option `oder`
              8 |   .sort({ key: Key.likes, oder: 'desc' })
                |                           ^^^^
              help: did you mean `order`?
            error: a.plan.ts:9:18: `take`, `count`: must be a whole number from 1, not the string `ten`
              9 |   .take({ count: 'ten' });
                |                  ^^^^^
        "#]],
    );
}

#[test]
fn kinds_of_values() {
    check(
        "kinds",
        "return v.take({ count: P.weight });",
        expect![[r#"
        error: a.plan.ts:4:24: `count` must be a whole number, not the parameter `weight`
          4 | return v.take({ count: P.weight });
            |                        ^^^^^^^^
          help: what a request or a row brings is not known when the plan is built
    "#]],
    );
    check(
        "kinds",
        "return v.vm({ outKey: 2001, expr: v });",
        expect![[r#"
            error: a.plan.ts:4:23: `outKey` must be a key, as in Key.id, not 2001
              4 | return v.vm({ outKey: 2001, expr: v });
                |                       ^^^^
            error: a.plan.ts:4:35: `expr` must be an expression, as in Key.id * 2, not rows
              4 | return v.vm({ outKey: 2001, expr: v });
                |                                   ^
        "#]],
    );
    check(
        "kinds",
        "return v.concat({ rhs: 'n0' });",
        expect![[r#"
        error: a.plan.ts:4:24: `rhs` must be rows, not "n0"
          4 | return v.concat({ rhs: 'n0' });
            |                        ^^^^
    "#]],
    );
    check(
        "kinds",
        "return v.follow({ endpoint: 'ep_0001' });",
        expect![[r#"
        error: a.plan.ts:4:29: `endpoint` must be an endpoint, as in EP.redis.NAME, not "ep_0001"
          4 | return v.follow({ endpoint: 'ep_0001' });
            |                             ^^^^^^^^^
    "#]],
    );
    check(
        "kinds",
        "return v.filter({ pred: 3 });",
        expect![[r#"
            error: a.plan.ts:4:25: `pred` must be a predicate, as in Key.id > 5, not 3
              4 | return v.filter({ pred: 3 });
                |                         ^
        "#]],
    );
}

#[test]
fn options_that_are_wrong() {
    check(
        "kinds",
        "return v.sort({ key: Key.id, by: Key.id });",
        expect![[r#"
        error: a.plan.ts:4:17: `key` and `by` are the same option
          4 | return v.sort({ key: Key.id, by: Key.id });
            |                 ^^^
    "#]],
    );
    check(
        "kinds",
        "return v.sort({});",
        expect![[r#"
            error: a.plan.ts:4:10: `sort` needs `key` (or `by`): a key, as in Key.id, or a list of keys, as in [{ key: Key.id, order: "desc" }]
              4 | return v.sort({});
                |          ^^^^
        "#]],
    );
    check(
        "kinds",
        "return v.take(3);",
        expect![[r#"
            error: a.plan.ts:4:10: `take` needs `count`: a whole number
              4 | return v.take(3);
                |          ^^^^
            error: a.plan.ts:4:10: `take` takes an object of options, not 3
              4 | return v.take(3);
                |          ^^^^
              help: write `take({ option: value })`
        "#]],
    );
    check(
        "kinds",
        "return v.take({ count: NaN });",
        expect![[r#"
        error: a.plan.ts:4:24: `count` is NaN, which no plan can say
          4 | return v.take({ count: NaN });
            |                        ^^^
    "#]],
    );
}

#[test]
fn what_the_loader_finds() {
    check(
        "kinds",
        "return v.sort({ key: Key.id, order: 'down' });",
        expect![[r#"
        error: a.plan.ts:4:37: `sort`, `order`: must be one of `asc`, `desc`, not the string `down`
          4 | return v.sort({ key: Key.id, order: 'down' });
            |                                     ^^^^^^
    "#]],
    );
    check(
        "kinds",
        "return v.sort({ key: Key.likes });",
        expect![[r#"
        error: a.plan.ts:4:22: `sort`, `key`: the rows have no column `likes` here
          4 | return v.sort({ key: Key.likes });
            |                      ^^^^^^^^^
          help: a node before this one has to make it
    "#]],
    );
    check(
        "kinds",
        "return v.vm({ outKey: Key.id, expr: 1 });",
        expect![[r#"
        error: a.plan.ts:4:23: `vm`, `outKey`: ids cannot be written
          4 | return v.vm({ outKey: Key.id, expr: 1 });
            |                       ^^^^^^
    "#]],
    );
}

#[test]
fn javascript_does_not_branch_on_requests_and_rows() {
    check(
        "branch",
        "if (P.explore) return v; return v.take({ count: 1 });",
        expect![[r#"
        error: a.plan.ts:4:5: this is known only when a request comes; JavaScript has run by then
          4 | if (P.explore) return v; return v.take({ count: 1 });
            |     ^^^^^^^^^
          help: to choose between rows write `rows.if({ pred, then, else })`; inside an expression `condition ? a : b`
    "#]],
    );
    check(
        "branch",
        "while (Key.id > 3 && P.explore) { }\nreturn v;",
        expect![[r#"
        error: a.plan.ts:4:8: this is known only when a request comes; JavaScript has run by then
          4 | while (Key.id > 3 && P.explore) { }
            |        ^^^^^^^^^^^^^^^^^^^^^^^
          help: to choose between rows write `rows.if({ pred, then, else })`; inside an expression `condition ? a : b`
    "#]],
    );
    check(
        "branch",
        "return P.explore ? v : v.take({ count: 1 });",
        expect![[r#"
            error: a.plan.ts:4:8: the condition is known only when a request comes; JavaScript has run by then
              4 | return P.explore ? v : v.take({ count: 1 });
                |        ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
              help: to choose between rows write `rows.if({ pred, then, else })`
        "#]],
    );
    check(
        "branch",
        "switch (P.weight) { case 1: return v; }\nreturn v;",
        expect![[r#"
        error: a.plan.ts:4:9: this is known only when a request comes; JavaScript has run by then
          4 | switch (P.weight) { case 1: return v; }
            |         ^^^^^^^^
          help: to choose between rows write `rows.if({ pred, then, else })`; inside an expression `condition ? a : b`
    "#]],
    );
    check(
        "branch",
        "return v.take({ count: `${P.weight}`.length });",
        expect![[r#"
            error: a.plan.ts:4:27: an expression has no value while the plan is built: it stands for one that a request brings
              4 | return v.take({ count: `${P.weight}`.length });
                |                           ^
              help: operators (but for `x++` and `a.b += x`) and log, exp, min, max, abs, pow, clamp, lower, upper make expressions; text and property names cannot be made of one
        "#]],
    );
    check(
        "branch",
        "const by = Math.log(Key.likes);\nreturn v;",
        expect![[r#"
            error: a.plan.ts:4:21: Math.log takes numbers, and this is an expression
              4 | const by = Math.log(Key.likes);
                |                     ^^^
              help: write `log(x)`
        "#]],
    );
}

#[test]
fn syntax() {
    check(
        "syntax",
        "return v.take({ count: 1 );",
        expect![[r#"
        error: a.plan.ts:4:26: Expected `,` or `}` but found `)`
          4 | return v.take({ count: 1 );
            |                          ^
    "#]],
    );
    check(
        "syntax",
        "enum A { B }\nreturn v;",
        expect![[r#"
        error: a.plan.ts:4:6: an enum cannot be erased
          4 | enum A { B }
            |      ^
          help: use an object: `const Color = { red: "red" } as const`
    "#]],
    );
    check(
        "syntax",
        "const deep = { a: undefined as any };\nreturn deep.a.b.c(v);",
        expect![[r#"
            error: a.plan.ts:5:8: TypeError: cannot read property 'b' of undefined
              5 | return deep.a.b.c(v);
                |        ^^^^
        "#]],
    );
}

#[test]
fn run_time() {
    check(
        "syntax",
        "throw new Error('not today');",
        expect![[r#"
            error: a.plan.ts:4:11: Error: not today
              4 | throw new Error('not today');
                |           ^^^^^
        "#]],
    );
    check(
        "syntax",
        "return v.tkae({ count: 1 });",
        expect![[r#"
            error: a.plan.ts:4:10: there is no method `tkae` of rows
              4 | return v.tkae({ count: 1 });
                |          ^^^^
              help: did you mean `take`?
        "#]],
    );
    check(
        "syntax",
        "v.take({ count: 1 });",
        expect![[r#"
            error: a.plan.ts:2:47: `build` returns nothing
              2 | export default definePlan({ name: "a", build: (ctx) => {
                |                                               ^^^^^^^^^^
              help: return rows, a list of rows, or an object of rows by name
        "#]],
    );
}

#[test]
fn what_is_not_there() {
    check(
        "syntax",
        "return [];",
        expect![[r#"
            error: a.plan.ts:2:47: `build` returns an empty list
              2 | export default definePlan({ name: "a", build: (ctx) => {
                |                                               ^^^^^^^^^^
              help: return rows, a list of rows, or an object of rows by name
        "#]],
    );
    check(
        "syntax",
        "return new Date();",
        expect![[r#"
            error: a.plan.ts:4:12: `Date` is not there
              4 | return new Date();
                |            ^^^^
              help: plans are deterministic: what depends on the time belongs into the request
        "#]],
    );
    check(
        "syntax",
        "return v.take({ count: Math.random() });",
        expect![[r#"
            error: a.plan.ts:4:29: `Math.random` is not there
              4 | return v.take({ count: Math.random() });
                |                             ^^^^^^
              help: plans are deterministic: the same files make the same plan
        "#]],
    );
    check(
        "syntax",
        "return Key.id % 2 ? v : v;",
        expect![[r#"
            error: a.plan.ts:4:8: the condition is known only when a request comes; JavaScript has run by then
              4 | return Key.id % 2 ? v : v;
                |        ^^^^^^^^^^^^^^^^^^
              help: to choose between rows write `rows.if({ pred, then, else })`
        "#]],
    );
}

#[test]
fn warnings_have_places_too() {
    check(
        "warnings",
        "v.take({ count: 1 });\nreturn v.filter({ pred: Key.likes > 1 });",
        expect![[r#"
            warning: a.plan.ts:4:3: `take`: no output needs it: it is not run
              4 | v.take({ count: 1 });
                |   ^^^^
            warning: a.plan.ts:5:25: key 1001 (`likes`) is null in all rows here
              5 | return v.filter({ pred: Key.likes > 1 });
                |                         ^^^^^^^^^
              help: no node before this one makes it
        "#]],
    );
}

fn check_file(test: &str, text: &str, expected: Expect) {
    let files = [("a.plan.ts", text), ("b.plan.ts", ""), ("c.fragment.ts", "export const c: = 1;")];
    expected.assert_eq(&Folder::new(&format!("errors-{test}"), &files).problems("a.plan.ts"));
}

#[test]
fn whole_files() {
    check_file(
        "imports",
        "",
        expect![[r#"
            error: a.plan.ts: the file defines no plan (write `export default definePlan({ name: "..", build: (ctx) => .. })`)
        "#]],
    );
    check_file(
        "imports",
        "import { x } from './b.plan';\nimport { y } from 'lodash';\nimport { z } from '../../outside';\nimport c from './c.fragment';",
        expect![[r#"
            error: a.plan.ts:1:19: `./b.plan` is a plan, and plans do not import plans
              1 | import { x } from './b.plan';
                |                   ^^^^^^^^^^
              help: move what they share into a file NAME.fragment.ts
            error: a.plan.ts:2:19: there is no package `lodash`
              2 | import { y } from 'lodash';
                |                   ^^^^^^^^
              help: plans import from "anabranch", and from files of their folder: "./..."
            error: a.plan.ts:3:19: there is no file `../../outside`
              3 | import { z } from '../../outside';
                |                   ^^^^^^^^^^^^^^^
              help: a path is relative to the file that imports it; `.ts` may be left out
            error: c.fragment.ts:1:17: Unexpected token
              1 | export const c: = 1;
                |                 ^
        "#]],
    );
}

#[test]
fn whole_plans() {
    check_file(
        "plans",
        "import { definePlan } from 'anabranch';\nexport default definePlan({ name: 'b', build: (ctx) => ctx.test.fixedSource() });",
        expect![[r#"
            error: a.plan.ts:2:35: the plan is called `b`, its file `a.plan.ts`
              2 | export default definePlan({ name: 'b', build: (ctx) => ctx.test.fixedSource() });
                |                                   ^^^
              help: call both the same: `a`, or b.plan.ts
        "#]],
    );
    check_file(
        "plans",
        "import { definePlan } from 'anabranch';\nexport default definePlan({ nam: 'a', deadlineMs: -1, build: (ctx) => ctx.test.fixedSource() });",
        expect![[r#"
            error: a.plan.ts:2:16: the plan has no name
              2 | export default definePlan({ nam: 'a', deadlineMs: -1, build: (ctx) => ctx.test.fixedSource() });
                |                ^^^^^^^^^^
              help: write definePlan({ name: "...", build: (ctx) => ... })
            error: a.plan.ts:2:29: a plan has no option `nam`
              2 | export default definePlan({ nam: 'a', deadlineMs: -1, build: (ctx) => ctx.test.fixedSource() });
                |                             ^^^
              help: did you mean `name`?
            error: a.plan.ts:2:51: `deadlineMs`: must be a whole number of milliseconds from 1 to 3600000, not -1
              2 | export default definePlan({ nam: 'a', deadlineMs: -1, build: (ctx) => ctx.test.fixedSource() });
                |                                                   ^^
        "#]],
    );
    check_file(
        "plans",
        "import { definePlan } from 'anabranch';\ndefinePlan({ name: 'a', build: (ctx) => ctx.test.fixedSource() });\ndefinePlan({ name: 'a', build: (ctx) => ctx.test.fixedSource() });",
        expect![[r#"
            error: a.plan.ts:3:1: a plan is defined a second time
              3 | definePlan({ name: 'a', build: (ctx) => ctx.test.fixedSource() });
                | ^^^^^^^^^^
              help: a file has one `definePlan`; what plans share goes into a fragment
        "#]],
    );
    check_file(
        "plans",
        "import { nothing } from 'anabranch';",
        expect![[r#"
            error: a.plan.ts:1:25: `anabranch` does not export `nothing`
              1 | import { nothing } from 'anabranch';
                |                         ^^^^^^^^^^^
        "#]],
    );
    check_file(
        "plans",
        "const x = 'é' /* ü */ + Key.nope;",
        expect![[r#"
        error: a.plan.ts:1:25: there is no key `nope`
          1 | const x = 'é' /* ü */ + Key.nope;
            |                         ^^^^^^^^
    "#]],
    );
}

/// A loop without a body has no call that the engine would know the place of.
#[test]
fn an_endless_loop_is_reported_where_it_is() {
    for body in ["const x = 1;\n\nwhile (true) {}\nreturn v;", "const x = 1;\n\nfor (;;);\nreturn v;"] {
        let told = problems_of("endless", body);
        assert!(told.starts_with("error: a.plan.ts:6:"), "{told}");
    }
}
