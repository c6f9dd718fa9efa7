use expect_test::expect;

use super::check;

#[test]
fn binary() {
    check("Key.id * W", &expect![[r#"__ab_op(0,"*",__ab_get(1,Key,"id"),W);"#]]);
    check(
        "a + b - c * d / e % f ** g",
        &expect![[
            r#"__ab_op(0,"-",__ab_op(1,"+",a,b),__ab_op(2,"%",__ab_op(3,"/",__ab_op(4,"*",c,d),e),__ab_op(5,"**",f,g)));"#
        ]],
    );
    check(
        "a == b; a != b; a === b; a !== b; a < b; a <= b; a > b; a >= b; a in b",
        &expect![[
            r#"__ab_op(0,"==",a,b); __ab_op(1,"!=",a,b); __ab_op(2,"===",a,b); __ab_op(3,"!==",a,b); __ab_op(4,"<",a,b); __ab_op(5,"<=",a,b); __ab_op(6,">",a,b); __ab_op(7,">=",a,b); __ab_op(8,"in",a,b);"#
        ]],
    );
    check(
        "a | b & c ^ d << e >> f >>> g; a instanceof b",
        &expect!["a | b & c ^ d << e >> f >>> g; a instanceof b;"],
    );
    check("class A { #a; b(c) { return #a in c } }", &expect!["class A { #a; b(c) { return #a in c; } }"]);
    check(
        "(a + b) * (c as D + e)",
        &expect![[r#"__ab_op(0,"*",(__ab_op(1,"+",a,b)),(__ab_op(2,"+",c ,e)));"#]],
    );
    check(
        "for (let a = ('b' in c); ;) {}",
        &expect![[r#"for (let a = (__ab_op(0,"in",'b',c)); ;) {__ab_at();}"#]],
    );
    check(
        "a\n  + // b\n  c",
        &expect![[r#"
        __ab_op(0,"+",a

        ,c);"#]],
    );
    check(
        "a+ +b - -c",
        &expect![[r#"__ab_op(0,"-",__ab_op(1,"+",a,__ab_unary(2,"+",b)),__ab_unary(3,"-",c));"#]],
    );
}

#[test]
fn logic() {
    check("a && b || c", &expect![[r#"__ab_logic(1,"||",__ab_logic(0,"&&",a,()=>(b)),()=>(c));"#]]);
    check("a ?? (b || c)", &expect![[r#"__ab_logic(1,"??",a,()=>((__ab_logic(0,"||",b,()=>(c)))));"#]]);
    check("a && { b: 1 }", &expect![[r#"__ab_logic(0,"&&",a,()=>({ b: 1 }));"#]]);
    check("a ? b : c ? d : e", &expect!["__ab_if(1,a,()=>(b),()=>(__ab_if(0,c,()=>(d),()=>(e))));"]);
    check(
        "(a ? b : c) ? d\n : e",
        &expect![[r#"
        __ab_if(1,(__ab_if(0,a,()=>(b),()=>(c))),()=>(d
        ),()=>(e));"#]],
    );
    check(
        "a && function () { return this } || (() => arguments)",
        &expect![[
            r#"__ab_logic(1,"||",__ab_logic(0,"&&",a,()=>(function () { return this; })),()=>((() => arguments)));"#
        ]],
    );
}

/// A function cannot wait for the one around it.
#[test]
fn logic_that_waits_stays() {
    check(
        "async function f() { return a && await b }",
        &expect!["async function f() { return __ab_test(0,a) && await b; }"],
    );
    check(
        "async function f() { return a + 1 ? await b : c == d }",
        &expect![[
            r#"async function f() { return __ab_test(2,__ab_op(0,"+",a,1)) ? await b : __ab_op(1,"==",c,d); }"#
        ]],
    );
    check(
        "async function f() { return (await a) && b }",
        &expect![[r#"async function f() { return __ab_logic(0,"&&",(await a),()=>(b)); }"#]],
    );
    check(
        "async function f() { return a && (async () => await b) }",
        &expect![[r#"async function f() { return __ab_logic(0,"&&",a,()=>((async () => await b))); }"#]],
    );
    check(
        "function* f() { true || (yield a); b ?? (yield); c &&= yield d; c += yield d; }",
        &expect![[
            r#"function* f() { true || (yield a); __ab_test(0,b) ?? (yield); c &&= yield d; c = __ab_op(1,"+",c,yield d); }"#
        ]],
    );
    check(
        "await a && b; b && (await a || c)",
        &expect![[
            r#"__ab_logic(0,"&&",await a,()=>(b)); __ab_test(2,b) && (__ab_logic(1,"||",await a,()=>(c)));"#
        ]],
    );
}

#[test]
fn unary() {
    check(
        "!a; -a; +a; - 1; !0; -1n; ~a; typeof a; void a; !(a); - -a; !!a",
        &expect![[
            r#"__ab_unary(0,"!",a); __ab_unary(1,"-",a); __ab_unary(2,"+",a); - 1; !0; -1n; ~a; __ab_typeof(typeof a==="undefined"?void 0:a); void a; __ab_unary(3,"!",(a)); __ab_unary(4,"-",__ab_unary(5,"-",a)); __ab_unary(6,"!",__ab_unary(7,"!",a));"#
        ]],
    );
    check(
        "-\n// b\na",
        &expect![[r#"
        __ab_unary(0,"-",

        a);"#]],
    );
}

/// Words before an operand stay words.
#[test]
fn words_stay_apart() {
    check("function f() { return-a }", &expect![[r#"function f() { return __ab_unary(0,"-",a); }"#]]);
    check("function f() { return(a)+b }", &expect![[r#"function f() { return __ab_op(0,"+",(a),b); }"#]]);
    check(
        "typeof-a; void!a; if (a) b; else-c",
        &expect![[
            r#"__ab_typeof( __ab_unary(0,"-",a)); void __ab_unary(1,"!",a); if (__ab_test(2,a)) b; else __ab_unary(3,"-",c);"#
        ]],
    );
    check("function* f() { yield-a }", &expect![[r#"function* f() { yield __ab_unary(0,"-",a); }"#]]);
    check(
        "switch (a) { case-b: case(c)+d: case\"e\": default: }",
        &expect![[
            r#"switch (__ab_test(0,a)) { case __ab_test(1, __ab_unary(2,"-",b)): case __ab_test(3, __ab_op(4,"+",(c),d)): case"e": default: }"#
        ]],
    );
    check(
        "for (const a of-b) throw!c",
        &expect![[r#"for (const a of __ab_unary(0,"-",b)) throw __ab_unary(1,"!",c);"#]],
    );
    check(
        "a in-b; a instanceof(c)?.d",
        &expect![[r#"__ab_op(0,"in",a, __ab_unary(1,"-",b)); a instanceof(c)?.d;"#]],
    );
    check("export default-a", &expect![[r#"export default __ab_unary(0,"-",a);"#]]);
}

#[test]
fn members_of_registries() {
    check(
        "Key.a; P.b; EP.c; EP.c.d; EP.c.d.e; Key.a.b",
        &expect![[
            r#"__ab_get(0,Key,"a"); __ab_get(1,P,"b"); __ab_get(2,EP,"c"); __ab_get(3,__ab_get(4,EP,"c"),"d"); __ab_get(5,__ab_get(6,EP,"c"),"d").e; __ab_get(7,Key,"a").b;"#
        ]],
    );
    check(
        "(Key).a; Key!.b; (EP.c as D)!.e; EP\n  .c\n  .d",
        &expect![[
            r#"__ab_get(0,(Key),"a"); __ab_get(1,Key ,"b"); __ab_get(2,(__ab_get(3,EP,"c") ) ,"e"); __ab_get(4,__ab_get(5,EP,"c"),"d");"#
        ]],
    );
    check(
        "Key?.a; EP?.c.d; EP.c?.d; Key.a?.b; (EP?.c).d",
        &expect![[r#"Key?.a; EP?.c.d; __ab_get(0,EP,"c")?.d; __ab_get(1,Key,"a")?.b; (EP?.c).d;"#]],
    );
    check(
        "Key.a = 1; Key.a.b = 1; delete Key.a; delete (Key.a); Key.a++; [Key.a] = b; ({ c: P.d } = e)",
        &expect![[
            r#"Key.a = 1; __ab_get(0,Key,"a").b = 1; delete Key.a; delete (Key.a); Key.a++; [Key.a] = b; ({ c: P.d } = e);"#
        ]],
    );
    check(
        "P.f(); P.f.g(); P.f`x`; (P.f)(); P.f!(); new P.F(a); new P.F; new Key.a.b(c)",
        &expect![[
            r#"P.f(); __ab_get(0,P,"f").g(); P.f`x`; (P.f)(); P.f (); new (__ab_get(1,P,"F"))(a); new (__ab_get(2,P,"F")); new (__ab_get(3,Key,"a").b)(c);"#
        ]],
    );
    check("Key['a']; key.a; a.Key.b; Key.#a", &expect!["Key['a']; key.a; a.Key.b; Key.#a;"]);
    check("Key.as; Key.\\u0061", &expect![[r#"__ab_get(0,Key,"as"); __ab_get(1,Key,"a");"#]]);
    check(
        "({ Key, P: P.a, [Key.b]: Key.c })",
        &expect![[r#"({ Key, P: __ab_get(0,P,"a"), [__ab_get(1,Key,"b")]: __ab_get(2,Key,"c") });"#]],
    );
    check(
        "const { a = Key.b } = Key; class A extends Key.b {}",
        &expect![[r#"const { a = __ab_get(0,Key,"b") } = Key; class A extends __ab_get(1,Key,"b") {}"#]],
    );
}

#[test]
fn assignments() {
    check("x = a + b", &expect![[r#"x = __ab_op(0,"+",a,b);"#]]);
    check(
        "x += a; x -= a; x *= a; x /= a; x %= a; x **= a",
        &expect![[
            r#"x = __ab_op(0,"+",x,a); x = __ab_op(1,"-",x,a); x = __ab_op(2,"*",x,a); x = __ab_op(3,"/",x,a); x = __ab_op(4,"%",x,a); x = __ab_op(5,"**",x,a);"#
        ]],
    );
    check("x |= a; x <<= a", &expect!["x |= a; x <<= a;"]);
    check(
        "x &&= a; x ||= a; x ??= a",
        &expect![[
            r#"x = __ab_logic(0,"&&",x,()=>(a)); x = __ab_logic(1,"||",x,()=>(a)); x = __ab_logic(2,"??",x,()=>(a));"#
        ]],
    );
    check(
        "(x) += a; x /* b */ *= // c\n a",
        &expect![[r#"
        (x) = __ab_op(0,"+",x,a); x /* b */ =
         __ab_op(1,"*",x,a);"#]],
    );
    check("x += y -= z", &expect![[r#"x = __ab_op(1,"+",x,y = __ab_op(0,"-",y,z));"#]]);
    check(
        "a.b += c; a[b] *= c + d; a! += b",
        &expect![[r#"a.b += c; a[b] *= __ab_op(0,"+",c,d); a  += b;"#]],
    );
    check(
        "a.b ??= c; a[b] &&= d",
        &expect![[r#"
        "a.b ??= c": `??=` on a member hides what it decides by; write it out: `a.b = a.b ?? c`
        "a[b] &&= d": `&&=` on a member hides what it decides by; write it out: `a.b = a.b ?? c`
    "#]],
    );
}

#[test]
fn tests() {
    check(
        "if (a) b; else if (c == d) e",
        &expect![[r#"if (__ab_test(0,a)) b; else if (__ab_test(1,__ab_op(2,"==",c,d))) e;"#]],
    );
    check(
        "while (a) { } do { } while (a); for (; a; ) { } while (true) { }",
        &expect![
            "while (__ab_test(0,a)) {__ab_at(); } do {__ab_at(); } while (__ab_test(1,a)); for (; __ab_test(2,a); ) {__ab_at(); } while (true) {__ab_at(); }"
        ],
    );
    check(
        "if (a, b) c; for (; a, b; ) { }",
        &expect!["if (__ab_test(0,(a, b))) c; for (; __ab_test(1,(a, b)); ) {__ab_at(); }"],
    );
    check(
        "switch (a) { case b: c; case d, e: }",
        &expect!["switch (__ab_test(0,a)) { case __ab_test(1,b): c; case __ab_test(2,(d, e)): }"],
    );
    check(
        "for (const a in b) c; for (const a of b) c",
        &expect!["for (const a in b) c; for (const a of b) c;"],
    );
}
