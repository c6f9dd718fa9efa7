use expect_test::{Expect, expect};

use super::{check, made};

/// The sites of a file: their text, and their options.
fn sites(source: &str, expect: &Expect) {
    let (_, sites) = made(source).unwrap();
    let mut out = String::new();
    for site in sites {
        out += &source[site.at.start as usize..site.at.end as usize];
        for (name, key, value) in site.options {
            let [key, value] = [key, value].map(|at| &source[at.start as usize..at.end as usize]);
            out += &format!(" | {name}: {key:?} {value:?}");
        }
        out.push('\n');
    }
    expect.assert_eq(&out);
}

#[test]
fn calls() {
    check("definePlan({ name: 'a' })", &expect!["definePlan(__ab_at(0,{ name: 'a' }));"]);
    check(
        "ctx.viewer({ a }).core.take(b, { c: 1 },).sort?.(d)?.take(e)",
        &expect![
            "ctx.viewer(__ab_at(0,{ a })).core.take(b, __ab_at(1,{ c: 1 }),).sort?.(__ab_at(2,d))?.take(__ab_at(3,e));"
        ],
    );
    check(
        "x.concat(); x.take(); x.concat(a); x.concat(...a); x.take(...a, b); take(a)",
        &expect![
            "x.concat(...__ab_at(0,[])); x.take(...__ab_at(1,[])); x.concat(__ab_at(2,a)); x.concat(...__ab_at(3,a)); x.take(...a, __ab_at(4,b)); take(a);"
        ],
    );
    check(
        "ctx.requireCapability('a', { b: 1 })",
        &expect!["ctx.requireCapability('a', __ab_at(0,{ b: 1 }));"],
    );
    check(
        "E.const(1); Pred.cmp('<', a, b); E.constNull(); e.E.x(a)",
        &expect![
            "E.const(__ab_at(0,1)); Pred.cmp('<', a, __ab_at(1,b)); E.constNull(...__ab_at(2,[])); e.E.x(a);"
        ],
    );
    check(
        "coalesce(P.a, 1); min(a, b); Math.min(a, b); regex(a, 'b')",
        &expect![[
            r#"coalesce(__ab_get(0,P,"a"), __ab_at(1,1)); min(a, __ab_at(2,b)); Math.min(a, b); regex(a, __ab_at(3,'b'));"#
        ]],
    );
    check(
        "x.take<T>({ a: 1 } as B); x['take'](a); new x.take(a)",
        &expect!["x.take (__ab_at(0,{ a: 1 } )); x['take'](__ab_at(1,a)); new (x.take)(a);"],
    );
    check(
        "x.take(a, () => b + c); x.take(yield_, a = b)",
        &expect![[r#"x.take(a, __ab_at(0,() => __ab_op(1,"+",b,c))); x.take(yield_, __ab_at(2,a = b));"#]],
    );
}

#[test]
fn places_of_options() {
    sites(
        "definePlan({ name: 'a', 'b': c as D, e, build(ctx) {}, get f() {}, [g]: h, ...i })",
        &expect![[r#"
        definePlan | name: "name" "'a'" | b: "'b'" "c as D" | e: "e" "e" | build: "build" "(ctx) {}"
    "#]],
    );
    sites(
        "x.take(({ a: 1 } satisfies B) as C); x.core.sort(a, <D>{ b: (2) })",
        &expect![[r#"
        take | a: "a" "1"
        sort | b: "b" "(2)"
    "#]],
    );
    sites(
        "x.take(a); E.add(b, 1); coalesce({ c: 1 })",
        &expect![[r#"
        take
        E.add(b, 1)
        coalesce({ c: 1 })
    "#]],
    );
    sites(
        "a + Key.b * 2; EP.c.d; !a; a && b; a ? b : c; if (a) b; x -= 1",
        &expect![[r#"
        a + Key.b * 2
        Key.b * 2
        Key.b
        EP.c.d
        EP.c
        !a
        a && b
        a ? b : c
        a
        x -= 1
    "#]],
    );
}
