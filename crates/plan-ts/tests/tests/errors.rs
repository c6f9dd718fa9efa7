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
        expect![[""]],
    );
}

#[test]
fn kinds_of_values() {
    check("kinds", "return v.take({ count: P.weight });", expect![[""]]);
    check("kinds", "return v.vm({ outKey: 2001, expr: v });", expect![[""]]);
    check("kinds", "return v.concat({ rhs: 'n0' });", expect![[""]]);
    check("kinds", "return v.follow({ endpoint: 'ep_0001' });", expect![[""]]);
    check("kinds", "return v.filter({ pred: 3 });", expect![[""]]);
    check("kinds", "return v.sort({ key: Key.id, by: Key.id });", expect![[""]]);
    check("kinds", "return v.sort({});", expect![[""]]);
    check("kinds", "return v.take(3);", expect![[""]]);
    check("kinds", "return v.take({ count: NaN });", expect![[""]]);
    check("kinds", "return v.sort({ key: Key.id, order: 'down' });", expect![[""]]);
    check("kinds", "return v.sort({ key: Key.likes });", expect![[""]]);
    check("kinds", "return v.vm({ outKey: Key.id, expr: 1 });", expect![[""]]);
}

#[test]
fn javascript_does_not_branch_on_requests_and_rows() {
    check("branch", "if (P.explore) return v; return v.take({ count: 1 });", expect![[""]]);
    check("branch", "while (Key.id > 3 && P.explore) { }\nreturn v;", expect![[""]]);
    check("branch", "return P.explore ? v : v.take({ count: 1 });", expect![[""]]);
    check("branch", "switch (P.weight) { case 1: return v; }\nreturn v;", expect![[""]]);
    check("branch", "return v.take({ count: `${P.weight}`.length });", expect![[""]]);
    check("branch", "const by = Math.log(Key.likes);\nreturn v;", expect![[""]]);
}

#[test]
fn syntax_and_run_time() {
    check("syntax", "return v.take({ count: 1 );", expect![[""]]);
    check("syntax", "enum A { B }\nreturn v;", expect![[""]]);
    check("syntax", "const deep = { a: undefined as any };\nreturn deep.a.b.c(v);", expect![[""]]);
    check("syntax", "throw new Error('not today');", expect![[""]]);
    check("syntax", "return v.tkae({ count: 1 });", expect![[""]]);
    check("syntax", "v.take({ count: 1 });", expect![[""]]);
    check("syntax", "return [];", expect![[""]]);
    check("syntax", "return new Date();", expect![[""]]);
    check("syntax", "return v.take({ count: Math.random() });", expect![[""]]);
    check("syntax", "return Key.id % 2 ? v : v;", expect![[""]]);
}

#[test]
fn warnings_have_places_too() {
    check("warnings", "v.take({ count: 1 });\nreturn v.filter({ pred: Key.likes > 1 });", expect![[""]]);
}

#[test]
fn whole_files() {
    let check = |text: &str, expected: Expect| {
        let folder = Folder::new(
            "errors-file",
            &[("a.plan.ts", text), ("b.plan.ts", ""), ("c.fragment.ts", "export const c: = 1;")],
        );
        expected.assert_eq(&folder.problems("a.plan.ts"));
    };
    check("", expect![[""]]);
    check(
        "import { x } from './b.plan';\nimport { y } from 'lodash';\nimport { z } from '../../outside';\nimport c from './c.fragment';",
        expect![[""]],
    );
    check(
        "import { definePlan } from 'anabranch';\nexport default definePlan({ name: 'b', build: (ctx) => ctx.test.fixedSource() });",
        expect![[""]],
    );
    check(
        "import { definePlan } from 'anabranch';\nexport default definePlan({ nam: 'a', deadlineMs: -1, build: (ctx) => ctx.test.fixedSource() });",
        expect![[""]],
    );
    check(
        "import { definePlan } from 'anabranch';\ndefinePlan({ name: 'a', build: (ctx) => ctx.test.fixedSource() });\ndefinePlan({ name: 'a', build: (ctx) => ctx.test.fixedSource() });",
        expect![[""]],
    );
    check("import { nothing } from 'anabranch';", expect![[""]]);
    check("const x = 'é' /* ü */ + Key.nope;", expect![[""]]);
}
