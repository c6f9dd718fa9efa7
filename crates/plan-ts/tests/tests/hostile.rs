//! Sources of a stranger: what of them gets to a terminal.

use expect_test::expect;

use crate::world::problems_of;

#[test]
fn terminals_are_not_told_what_to_do() {
    let raw =
        problems_of("escapes", "throw new Error('\u{1b}[2J \\u001b]0;x\\u0007\\nerror: fake'); //\u{1b}[31m");
    assert!(!raw.contains('\u{1b}') && !raw.contains('\u{7}'), "{raw:?}");
    expect![[r#"
        error: a.plan.ts:4:11: Error: \u{1b}[2J \u{1b}]0;x\u{7} error: fake
          4 | throw new Error('\u{1b}[2J \u001b]0;x\u0007\nerror: fake'); //\u{1b}[31m
            |           ^^^^^
    "#]]
    .assert_eq(&raw);
    let key = problems_of("escapes", "return v.take({ count: Key['\\u001b[31m'] });");
    expect![[r#"
        error: a.plan.ts:4:24: there is no key `\u{1b}[31m`
          4 | return v.take({ count: Key['\u001b[31m'] });
            |                        ^^^
    "#]]
    .assert_eq(&key);
}
