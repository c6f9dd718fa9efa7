use expect_test::expect;

use super::{check, made};

#[test]
fn not_erasable() {
    check(
        "enum A { B }\nexport const enum C { D }",
        &expect![[r#"
        "A": an enum cannot be erased; use an object: `const Color = { red: "red" } as const`
        "C": an enum cannot be erased; use an object: `const Color = { red: "red" } as const`
    "#]],
    );
    check(
        "namespace A { export const b = 1 }\nnamespace B.C { let d }",
        &expect![[r#"
        "A": a namespace with values cannot be erased; use a module of its own, or an object
        "B": a namespace with values cannot be erased; use a module of its own, or an object
    "#]],
    );
    check(
        "class A { constructor(private a, readonly b: C, public override c = 1) {} }",
        &expect![[r#"
        "private a": a parameter cannot declare a field; declare the field and assign it in the constructor
        "readonly b: C": a parameter cannot declare a field; declare the field and assign it in the constructor
        "public override c = 1": a parameter cannot declare a field; declare the field and assign it in the constructor
    "#]],
    );
    check(
        "@a class B { @c() d; @e f() {} }",
        &expect![[r#"
        "@a": decorators cannot be erased; call the function where its result is needed
        "@c()": decorators cannot be erased; call the function where its result is needed
        "@e": decorators cannot be erased; call the function where its result is needed
    "#]],
    );
}

#[test]
fn not_of_these_modules() {
    check(
        "import a = require('a'); import b = c.d; export = e",
        &expect![[r#"
        "import a = require('a');": `import x = ..` cannot be erased; use `import x from "./x"`
        "import b = c.d;": `import x = ..` cannot be erased; use `const x = y.z`, or `type X = Y.Z`
        "export = e": `export =` is of another module system; use `export default`
    "#]],
    );
    check(
        "import('a'); import.meta.url; a + import('b')",
        &expect![[r#"
        "import('a')": a plan cannot import while it runs; import at the top: `import { x } from "./x"`
        "import.meta": a plan does not know where it is; write what you need as a constant
        "import('b')": a plan cannot import while it runs; import at the top: `import { x } from "./x"`
    "#]],
    );
    check(
        "import a from 'a' with { type: 'json' }; export * from 'b' with { c: 'd' }",
        &expect![[r#"
        "{ type: 'json' }": an import has no attributes here; import TypeScript, or write the data out
        "{ c: 'd' }": an import has no attributes here; import TypeScript, or write the data out
    "#]],
    );
    check(
        "class A { accessor b = 1 }",
        &expect![[r#"
        "accessor b = 1": `accessor` cannot be erased; write a getter and a setter
    "#]],
    );
    check(
        "{ using a = b }",
        &expect![[r#"
        "using a = b": a plan has nothing to dispose of; use `const`
    "#]],
    );
    check(
        "export as namespace A",
        &expect![[r#"
        "export as namespace A": a plan exports no global namespace; remove this line
    "#]],
    );
    check(
        "let a = <div>b</div>",
        &expect![[r#"
            "<div>b</div>": a plan has no use for JSX; write a plain expression
        "#]],
    );
    check(
        "let a = <b c={d} />; enum E {}",
        &expect![[r#"
            "<b c={d} />": a plan has no use for JSX; write a plain expression
        "#]],
    );
}

#[test]
fn names_of_the_compiler() {
    check(
        "let __ab_op = 1; __ab_get(2); function __ab_f() {} a.__ab_b; import { c as __ab_c } from 'd'",
        &expect![[r#"
        "__ab_op": the name `__ab_op` begins with `__ab_`, which is kept for the compiler; call it something else
        "__ab_get": the name `__ab_get` begins with `__ab_`, which is kept for the compiler; call it something else
        "__ab_f": the name `__ab_f` begins with `__ab_`, which is kept for the compiler; call it something else
        "__ab_c": the name `__ab_c` begins with `__ab_`, which is kept for the compiler; call it something else
    "#]],
    );
    check(
        "\\u005f_ab_op()",
        &expect![[r#"
        "\\u005f_ab_op": the name `__ab_op` begins with `__ab_`, which is kept for the compiler; call it something else
    "#]],
    );
}

#[test]
fn not_typescript() {
    check(
        "let a = ;",
        &expect![[r#"
        ";": Unexpected token; -
    "#]],
    );
    check(
        "let a: number = 'b",
        &expect![[r#"
        "'b": Unterminated string; -
    "#]],
    );
    check(
        "f(",
        &expect![[r#"
        "": Expected `)` but found `EOF`; -
    "#]],
    );
    check(
        "return 1",
        &expect![[r#"
        "return": A 'return' statement can only be used within a function body.; -
    "#]],
    );
    check(
        "class A { constructor() {} constructor() {} } let a; let a; enum B {}",
        &expect![[r#"
        "B": an enum cannot be erased; use an object: `const Color = { red: "red" } as const`
    "#]],
    );
    check(
        "const a; enum B {}",
        &expect![[r#"
        "a": Missing initializer in const declaration; Add an initializer (e.g. ` = undefined`) here
        "B": an enum cannot be erased; use an object: `const Color = { red: "red" } as const`
    "#]],
    );
    check(
        "a ?? b || c",
        &expect![[r#"
        "a ?? b || c": Logical expressions and coalesce expressions cannot be mixed; Wrap either expression by parentheses
    "#]],
    );
}

#[test]
fn not_too_many() {
    let faults = made(&"const a; enum B {}\n".repeat(10_000)).unwrap_err();
    assert_eq!(faults.len(), 1000);
    assert_eq!(faults[3].at.map(|at| at.start), Some(33));
}

#[test]
fn faults_leave_no_sites() {
    let mut sites = Vec::new();
    let faults = crate::syntax::rewrite(0, "a + b; enum C {}", &[], &|_, _| false, &mut sites);
    assert!(faults.is_err() && sites.is_empty());
    assert!(made("a + b").unwrap().1.len() == 1);
}
