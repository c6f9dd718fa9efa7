use expect_test::expect;

use super::check;

#[test]
fn annotations() {
    check("let a: number = 1, b!: string;", &expect!["let a  = 1, b ;"]);
    check("const { a, b }: { a: 1; b: 2 } = c;", &expect!["const { a, b }  = c;"]);
    check(
        "function f<T extends U>(this: Window, a?: T, b: T = c, ...d: T[]): a is T { return a }",
        &expect!["function f (  a , b  = c, ...d )  { return a; }"],
    );
    check("function f(this: Window) {}", &expect!["function f( ) {}"]);
    check("function f(a /* x */ ? /* y */ ) {}", &expect!["function f(a /* x */   /* y */ ) {}"]);
    check("try {} catch (e: unknown) {}", &expect!["try {} catch (e ) {}"]);
    check("for (const a of b as string[]) c", &expect!["for (const a of b ) c;"]);
    check("for (let i: number = 0; ; ) {}", &expect!["for (let i  = 0; ; ) {__ab_at();}"]);
}

#[test]
fn arrows() {
    check("const f = <T,>(a: T): T => a", &expect!["const f =  (a ) => a;"]);
    check(
        "const f = async <T>(a?: T): Promise<T> => { await a }",
        &expect!["const f = async  (a ) => { await a; };"],
    );
    check(
        "const f = (a: A, { b }: B = {}): { c: C } => ({ c: b })",
        &expect!["const f = (a , { b }  = {}) => ({ c: b });"],
    );
    check("const f = (a): a is\n string => a", &expect!["const f = (a) => a;"]);
    check("const f = (): () => void => () => {}", &expect!["const f = () => () => {};"]);
    check("const f = async <\nT\n>\n(a: T) => a", &expect!["const f = async  (a ) => a;"]);
    check("function g() { return <T>\n(a: T) => a }", &expect!["function g() { return  (a ) => a; }"]);
}

#[test]
fn expressions() {
    check("a as B; a satisfies B; a! ; a!.b!(); a as B as C;", &expect!["a ; a ; a  ; a .b (); a  ;"]);
    check(
        "f<T>(a); new F<T>(a); new F<T>; f?.<T>(a); tag<T>`x`; const g = f<T>;",
        &expect!["f (a); new F (a); new F ; f?. (a); tag `x`; const g = f ;"],
    );
    check(
        "a! = b; (a as B) = c; (<B>a) = c; [a as B, b!] = c; a!++; ({ a: b! } = c);",
        &expect!["a  = b; (a ) = c; ((a)) = c; [a , b ] = c; a ++; ({ a: b  } = c);"],
    );
    check(
        "(a as B)\n++c",
        &expect![[r#"
        (a );
        ++c;"#]],
    );
    check("const a = b as const", &expect!["const a = b ;"]);
    check("if (a as boolean) b", &expect!["if (__ab_test(0,a )) b;"]);
    check("a?.b!.c; a?.b!(); (a?.b)!.c; a!?.b", &expect!["a?.b .c; a?.b (); (a?.b) .c; a ?.b;"]);
    check("`${a as string} ${b!}`", &expect!["`${a } ${b }`;"]);
}

/// Without the parentheses, the rest would be a block, a function, or on the next line.
#[test]
fn assertions_in_angles() {
    check("<any>{ a: 1 }.b", &expect!["({ a: 1 }.b);"]);
    check("const f = () => <any>{ a: 1 }", &expect!["const f = () => ({ a: 1 });"]);
    check("function f() { return <any>\na }", &expect!["function f() { return (a); }"]);
    check("export default <any>function () {}", &expect!["export default (function () {});"]);
    check(
        "function* f() { yield <any>\na; throw <\nany>b }",
        &expect!["function* f() { yield (a); throw (b); }"],
    );
    check("<A><B>Key.a", &expect![[r#"((__ab_get(0,Key,"a")));"#]]);
}

#[test]
fn declarations() {
    check(
        "type A = B\ninterface C { d: E }\nf()",
        &expect![[r#"
        ;
        ;
        f();"#]],
    );
    check(
        "declare const a: number; declare function f(): void; declare class C {} declare enum E { A }",
        &expect!["; ; ; ;"],
    );
    check(
        "declare module \"x\" { const a: 1 }\ndeclare global { var b: 2 }\ndeclare namespace N { let c: 3 }",
        &expect![[r#"
        ;
        ;
        ;"#]],
    );
    check("namespace N { export interface A {} type B = A; namespace M { type C = B } }", &expect![";"]);
    check(
        "function f(a: string): void\nfunction f(a: number): void\nfunction f(a) {}",
        &expect![[r#"
        ;
        ;
        function f(a) {}"#]],
    );
    check("export declare const a: number; export type B = C; export interface D {}", &expect!["; ; ;"]);
    check("export default interface A {}", &expect![";"]);
    check(
        "export default function f(a: A): B;\nexport default function f(a) {}",
        &expect![[r#"
        ;
        export default function f(a) {}"#]],
    );
    check("import type A = require(\"a\")", &expect![";"]);
}

#[test]
fn classes() {
    check("abstract class A<T> extends B<T> implements C<T>, D { }", &expect!["  class A  extends B    { }"]);
    check("export default abstract class A implements B {}", &expect!["export default   class A   {}"]);
    check(
        "export abstract class A {}\nconst b = class implements C {}",
        &expect![[r#"
        export   class A {}
        const b = class   {};"#]],
    );
    check(
        "class A {\n  a: number\n  b?: string = 'x'\n  readonly c!: C\n  private static d = 1\n  declare e: E\n  ['f']?: F\n  [g: string]: G\n}",
        &expect![[r#"
            class A {
              a ;
              b   = 'x';
                c  ;
                static d = 1;
              ;
              ['f']  ;
              ;
            }"#]],
    );
    check(
        "abstract class A {\n  abstract a: A\n  abstract b(): B\n  protected override async c?(): C {}\n  d(): void\n  d(a?) {}\n  constructor(a: A) { super() }\n  private get e(): E { return 1 }\n  set e(a: E) {}\n}",
        &expect![[r#"
              class A {
              ;
              ;
                  async c ()  {}
              ;
              d(a ) {}
              constructor(a ) { super(); }
                get e()  { return 1; }
              set e(a ) {}
            }"#]],
    );
    check(
        "class A { get: B\n set: B\n static: B\n async?: B\n c() {} 'd'\n *e() {} #f: F\n in\n g }",
        &expect![[r#"
            class A { get ;
             set ;
             static ;
             async  ;
             c() {} 'd';
             *e() {} #f ;
             in;
             g; }"#]],
    );
    check(
        "class A { static { a = b as C } public\n*d() {} }",
        &expect![[r#"
        class A { static { a = b ; } public;
        *d() {} }"#]],
    );
}
