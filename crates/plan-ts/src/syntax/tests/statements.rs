use expect_test::expect;

use super::check;

#[test]
fn each_statement_has_its_semicolon() {
    check(
        "'use strict'\nlet a = 1\na\n;(b)\ndebugger",
        &expect![[r#"
        'use strict';
        let a = 1;
        a
        ;(b);
        debugger;"#]],
    );
    check(
        "for (;;) { if (a) break\nelse continue }",
        &expect![[r#"
        for (;;) { if (__ab_test(0,a)) break;
        else continue; }"#]],
    );
    check(
        "function f() { return\n}\nfunction g() { return a\n}\nfunction h() { throw a }",
        &expect![[r#"
        function f() { return;
        }
        function g() { return a;
        }
        function h() { throw a; }"#]],
    );
    check(
        "do a\nwhile (b) c",
        &expect![[r#"
        do a;
        while (__ab_test(0,b)); c;"#]],
    );
    check("l: for (;;) break l", &expect!["l: for (;;) break l;"]);
    check(
        "export const a = 1\nexport default a\n",
        &expect![[r#"
        export const a = 1;
        export default a;
    "#]],
    );
    check(
        "import \"a\"\nimport b from \"b\"\nexport { b }\nexport * from \"c\"\nexport { d } from \"d\"\n(e)",
        &expect![[r#"
        import "a";
        import b from "b";
        export { b };
        export * from "c";
        export { d } from "d";
        (e);"#]],
    );
    check(
        "export default function () {}\n(a)",
        &expect![[r#"
        export default function () {}
        (a);"#]],
    );
    check(
        "export default class {}\n(a)",
        &expect![[r#"
        export default class {}
        (a);"#]],
    );
}

/// Removing a type must not join the tokens around it.
#[test]
fn lines_stay_apart() {
    check(
        "let a = b as C\n(d)",
        &expect![[r#"
        let a = b ;
        (d);"#]],
    );
    check(
        "let a = b as C\n[d].e",
        &expect![[r#"
        let a = b ;
        [d].e;"#]],
    );
    check(
        "let a = b!\n`c`",
        &expect![[r#"
        let a = b 
        `c`;"#]],
    );
    check(
        "a\ntype B = C\n(d)",
        &expect![[r#"
        a;
        ;
        (d);"#]],
    );
    check(
        "a = b\ninterface C {}\n/d/.test(e)",
        &expect![[r#"
        a = b;
        ;
        /d/.test(e);"#]],
    );
    check(
        "let a: B\n(c)",
        &expect![[r#"
        let a ;
        (c);"#]],
    );
    check(
        "let a = f<B>\nlet c",
        &expect![[r#"
        let a = f ;
        let c;"#]],
    );
}

#[test]
fn comments_stay() {
    check(
        "// a\nlet b /* c */ = 1 // d\n/* e */",
        &expect![[r#"
        // a
        let b /* c */ = 1; // d
        /* e */"#]],
    );
    check(
        "a /* b */ + // c\n d",
        &expect![[r#"
        __ab_op(0,"+",a
        ,d);"#]],
    );
    check(
        "f(// a\n)",
        &expect![[r#"
        f(// a
        );"#]],
    );
    check(
        "x.concat(// a\n)",
        &expect![[r#"
            x.concat(// a
            ...__ab_at(0,[]));"#]],
    );
    check(
        "a // b\n as C",
        &expect![[r#"
        "": Expected a semicolon or an implicit semicolon after a statement, but found none; Try inserting a semicolon here
    "#]],
    );
}

#[test]
fn strange_texts() {
    check("\u{feff}let a: B = c + d", &expect![[r#"﻿let a  = __ab_op(0,"+",c,d);"#]]);
    check(
        "#!/usr/bin/env anabranch\nlet a: B",
        &expect![[r#"
        #!/usr/bin/env anabranch
        let a ;"#]],
    );
    check(
        "let a: B\r\nlet c = a\r\n  + d\r\n",
        &expect![[r#"
            let a ;␍
            let c = __ab_op(0,"+",a
            ,d);␍
        "#]],
    );
    check(
        "\tlet ä: B = ö+ü\n\tlet \u{1d4b3}: C = '😀' + a as D\n",
        &expect![[r#"
            ␉let ä  = __ab_op(0,"+",ö,ü);
            ␉let 𝒳  = __ab_op(1,"+",'😀',a) ;
        "#]],
    );
    check("let a: B\u{2028}c", &expect!["let a ; c;"]);
    check("", &expect![]);
    check("let \\u0061b: B = \\u{61}+1", &expect![[r#"let \u0061b  = __ab_op(0,"+",\u{61},1);"#]]);
}
