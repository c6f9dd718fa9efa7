use expect_test::{Expect, expect};

use super::{check, scan, told};

fn found(source: &str, expect: &Expect) {
    let out = match scan(3, source) {
        Ok(scan) => {
            let imports = scan.imports.iter().map(|import| {
                let at = &source[import.at.start as usize..import.at.end as usize];
                format!("import {} {at}\n", import.specifier)
            });
            let types = scan.types.iter().map(|name| format!("type {name}\n"));
            let values = scan.values.iter().map(|name| format!("value {name}\n"));
            let forwards = scan.forwards.iter().map(|it| format!("of {}: {:?}\n", it.specifier, it.names));
            imports.chain(types).chain(values).chain(forwards).collect()
        }
        Err(faults) => told(source, &faults),
    };
    expect.assert_eq(&out);
}

#[test]
fn imports_are_found() {
    found(
        "import a from './a'; import { b } from \"./b\"; import './a'; import * as c from 'c'",
        &expect![[r#"
        import ./a './a'
        import ./b "./b"
        import c 'c'
    "#]],
    );
    found(
        "import type A from './a'; import { type B } from './b'; import {} from './c'; import { d, type E } from './d'",
        &expect![[r#"
        import ./c './c'
        import ./d './d'
    "#]],
    );
    found(
        "export * from './a'; export { b } from './b'; export type * from './c'; export type { D } from './d'; export { type E } from './e'",
        &expect![[r#"
            import ./a './a'
            import ./b './b'
            type D
            type E
            of ./a: None
            of ./b: Some(("b", "b"))
        "#]],
    );
    found("let a = import('./a')", &expect![]);
    found(
        "import a from",
        &expect![[r#"
        "": Unexpected token; -
    "#]],
    );
}

#[test]
fn types_are_found() {
    found(
        "export interface A {} export type B = 1; export declare const C: 1; export class D {} export const E = 1",
        &expect![[r#"
            type A
            type B
            type C
            value D
            value E
        "#]],
    );
    found(
        "interface A {} type B = 1; const B = 1; export { A, A as C, B, type B as D }; export default A",
        &expect![[r#"
            type A
            type C
            type D
            type default
            value B
        "#]],
    );
    found(
        "export default interface A {}",
        &expect![[r#"
        type default
    "#]],
    );
    found(
        "export type { A } from './a'; export * as b from './b'; export type * as C from './c'",
        &expect![[r#"
            import ./b './b'
            type A
            type C
            value b
        "#]],
    );
    found(
        "import { a, b as c } from './a'; import d from './d'; export { a, c as e }; export { f as g } from './f'; export default d; export * from './h'",
        &expect![[r#"
            import ./a './a'
            import ./d './d'
            import ./f './f'
            import ./h './h'
            of ./a: Some(("a", "a"))
            of ./a: Some(("b", "e"))
            of ./f: Some(("f", "g"))
            of ./d: Some(("default", "default"))
            of ./h: None
        "#]],
    );
}

#[test]
fn types_are_dropped() {
    check(
        "import { TypeA, b } from './a'; import { c, TypeD, } from './a'",
        &expect!["import {   b } from './a'; import { c,   } from './a';"],
    );
    check(
        "import { TypeA } from './a'; import { type B } from 'b'; import type C from 'c'; import type { D } from 'd'",
        &expect!["; ; ; ;"],
    );
    check(
        "import a, { type B, TypeC } from './a'; import T, { d } from './type'; import U, * as e from './type'",
        &expect![
            "import a, {     } from './a'; import   { d } from './type'; import   * as e from './type';"
        ],
    );
    check(
        "import { TypeA as B, c as d } from './a'; export { B, d }; export default B",
        &expect!["import {   c as d } from './a'; export {   d }; ;"],
    );
    check(
        "import { TypeA } from 'a'; import {} from './b'; import { type as c, type type as D } from './c'",
        &expect!["import { TypeA } from 'a'; import {} from './b'; import { type as c,   } from './c';"],
    );
    check(
        "export { TypeA, b } from './a'; export { TypeC } from './a'; export { type D, TypeE as F } from './a'",
        &expect!["export {   b } from './a'; ; ;"],
    );
    check(
        "export type { A } from './a'; export type * from './b'; export * from './c'; export * as d from './d'",
        &expect!["; ; export * from './c'; export * as d from './d';"],
    );
    check(
        "interface A {} const b = 1; export { A, b }; export { A as C }; export {}",
        &expect!["; const b = 1; export {   b }; ; export {};"],
    );
    check(
        "interface A {} const A = 1; export { A }; interface B {} export default B",
        &expect!["; const A = 1; export { A }; ; ;"],
    );
    check(
        "import { a as \"b c\" } from 'd'",
        &expect![[r#"
        "\"b c\"": Identifier expected.; -
    "#]],
    );
    check(
        "import { \"b c\" as a } from 'd'; export { a as \"e f\" }",
        &expect![[r#"import { "b c" as a } from 'd'; export { a as "e f" };"#]],
    );
}
