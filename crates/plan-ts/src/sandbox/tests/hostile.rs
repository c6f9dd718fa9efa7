//! Code that tries operations that a plan must not use.

use expect_test::expect;

use super::{check, check_inside, hasty, job, recorded, recorded_of, told};
use crate::job::Job;

/// The result of code: a text, or an error.
fn value(code: &str) -> String {
    let code = format!(
        "let v; try {{ v = String((() => {{ {code} }})()); }} catch (error) {{ v = `${{error.name}}: ${{error.message}}`; }}
        definePlan({{ v, build: (ctx) => ctx.viewer() }})"
    );
    let recorded = recorded(&code);
    match recorded.plan.as_ref().and_then(|plan| plan.options.get("v")) {
        Some(value) if recorded.faults.is_empty() => value.as_str().unwrap_or_default().to_owned(),
        _ => told(&recorded),
    }
}

#[test]
fn there_is_no_way_to_code_clock_or_chance() {
    let tries = [
        "return eval('1')",
        "return (0, eval)('1')",
        "return Function('return 1')()",
        "return new Function('return 1')()",
        "return ({}).constructor.constructor('return 1')()",
        "return (async () => {}).constructor('return 1')()",
        "return (function* () {}).constructor('yield 1')()",
        "return Object.getPrototypeOf(async function* () {}).constructor('yield 1')()",
        "return Reflect.construct(Object.getPrototypeOf(() => {}).constructor, ['return 1'])()",
        "return (class { static x = 1 }).constructor('return 1')()",
        "return new Date()",
        "return globalThis.Date",
        "return performance.now()",
        "return Math.random()",
        "return new WeakRef({})",
        "return new FinalizationRegistry(() => {})",
        "return setTimeout(() => {}, 1)",
        "return console.log(1)",
        "return typeof std + typeof os + typeof process + typeof require + typeof fetch + typeof queueMicrotask",
        "return typeof Error.prepareStackTrace + typeof Error.captureStackTrace",
        "return typeof SharedArrayBuffer + typeof Atomics + typeof Uint8Array",
    ];
    let all: String = tries.iter().map(|code| format!("{code} -> {}\n", value(code))).collect();
    expect![[r#"
        return eval('1') -> TypeError: `eval` is not there
        return (0, eval)('1') -> TypeError: `eval` is not there
        return Function('return 1')() -> TypeError: `Function` is not there
        return new Function('return 1')() -> TypeError: `Function` is not there
        return ({}).constructor.constructor('return 1')() -> TypeError: a constructor of functions is not there
        return (async () => {}).constructor('return 1')() -> TypeError: a constructor of functions is not there
        return (function* () {}).constructor('yield 1')() -> TypeError: a constructor of functions is not there
        return Object.getPrototypeOf(async function* () {}).constructor('yield 1')() -> TypeError: a constructor of functions is not there
        return Reflect.construct(Object.getPrototypeOf(() => {}).constructor, ['return 1'])() -> TypeError: a constructor of functions is not there
        return (class { static x = 1 }).constructor('return 1')() -> TypeError: a constructor of functions is not there
        return new Date() -> TypeError: `Date` is not there
        return globalThis.Date -> TypeError: `Date` is not there
        return performance.now() -> TypeError: `performance` is not there
        return Math.random() -> TypeError: `Math.random` is not there
        return new WeakRef({}) -> ReferenceError: WeakRef is not defined
        return new FinalizationRegistry(() => {}) -> ReferenceError: FinalizationRegistry is not defined
        return setTimeout(() => {}, 1) -> TypeError: `setTimeout` is not there
        return console.log(1) -> undefined
        return typeof std + typeof os + typeof process + typeof require + typeof fetch + typeof queueMicrotask -> undefinedundefinedundefinedundefinedundefinedundefined
        return typeof Error.prepareStackTrace + typeof Error.captureStackTrace -> undefinedundefined
        return typeof SharedArrayBuffer + typeof Atomics + typeof Uint8Array -> undefinedundefinedundefined
    "#]].assert_eq(&all);
}

#[test]
fn intrinsics_and_tokens_are_frozen() {
    let tries = [
        "Array.prototype.push = () => 1",
        "Object.prototype.toJSON = () => 1",
        "Object.defineProperty(Object.prototype, 'x', { get: () => 1 })",
        "Array.prototype[Symbol.iterator] = null",
        "({}).__proto__.polluted = 1",
        "Object.setPrototypeOf(Array.prototype, null)",
        "globalThis.Key = 1",
        "globalThis.fresh = 1",
        "JSON.stringify = () => 'x'",
        "Reflect.apply = () => 1",
        "Error.prototype.toString = () => 'x'",
        "Error.prepareStackTrace = () => 'x'",
        "Error.stackTraceLimit = 0",
        "Promise.prototype.then = () => 1",
        "Map.prototype.get = () => 1",
        "RegExp.prototype.exec = () => 1",
        "Array[Symbol.species]; Object.defineProperty(Array, Symbol.species, { value: null })",
        "Object.getPrototypeOf([].values()).next = null",
        "Object.getPrototypeOf(function* () {}()).next = null",
        "Object.getPrototypeOf(Object.getPrototypeOf((async function* () {})())).next = null",
        "Object.getPrototypeOf(''.matchAll(/x/g)).next = null",
        "Key.id.x = 1",
        "Object.getPrototypeOf(Key.id).toString = 1",
        "Key.fresh = 1",
        "delete Key.id",
        "E.add = 1",
        "definePlan.x = 1",
        "const { constructor } = Object.getPrototypeOf(Key.id); return constructor === Object",
    ];
    let all: String = tries.iter().map(|code| format!("{code} -> {}\n", value(code))).collect();
    expect![[r#"
        Array.prototype.push = () => 1 -> TypeError: 'push' is read-only
        Object.prototype.toJSON = () => 1 -> TypeError: object is not extensible
        Object.defineProperty(Object.prototype, 'x', { get: () => 1 }) -> TypeError: object is not extensible
        Array.prototype[Symbol.iterator] = null -> TypeError: 'Symbol.iterator' is read-only
        ({}).__proto__.polluted = 1 -> TypeError: object is not extensible
        Object.setPrototypeOf(Array.prototype, null) -> TypeError: object is not extensible
        globalThis.Key = 1 -> TypeError: 'Key' is read-only
        globalThis.fresh = 1 -> TypeError: object is not extensible
        JSON.stringify = () => 'x' -> TypeError: 'stringify' is read-only
        Reflect.apply = () => 1 -> TypeError: 'apply' is read-only
        Error.prototype.toString = () => 'x' -> TypeError: 'toString' is read-only
        Error.prepareStackTrace = () => 'x' -> TypeError: object is not extensible
        Error.stackTraceLimit = 0 -> TypeError: object is not extensible
        Promise.prototype.then = () => 1 -> TypeError: 'then' is read-only
        Map.prototype.get = () => 1 -> TypeError: 'get' is read-only
        RegExp.prototype.exec = () => 1 -> TypeError: 'exec' is read-only
        Array[Symbol.species]; Object.defineProperty(Array, Symbol.species, { value: null }) -> TypeError: property is not configurable
        Object.getPrototypeOf([].values()).next = null -> TypeError: 'next' is read-only
        Object.getPrototypeOf(function* () {}()).next = null -> TypeError: 'next' is read-only
        Object.getPrototypeOf(Object.getPrototypeOf((async function* () {})())).next = null -> TypeError: 'next' is read-only
        Object.getPrototypeOf(''.matchAll(/x/g)).next = null -> TypeError: 'next' is read-only
        Key.id.x = 1 -> TypeError: object is not extensible
        Object.getPrototypeOf(Key.id).toString = 1 -> TypeError: 'toString' is read-only
        Key.fresh = 1 -> TypeError: object is not extensible
        delete Key.id -> TypeError: could not delete property
        E.add = 1 -> TypeError: 'add' is read-only
        definePlan.x = 1 -> TypeError: object is not extensible
        const { constructor } = Object.getPrototypeOf(Key.id); return constructor === Object -> true
    "#]].assert_eq(&all);
}

#[test]
fn prototypes_of_rows_are_frozen() {
    check_inside(
        "for (const it of [rows, ctx, rows.test, ctx.core, Object.getPrototypeOf(rows)]) {
            try { Object.getPrototypeOf(it).take = 1; throw 'open'; } catch (error) { if (error === 'open') throw error; }
            try { new (it.constructor)(7); } catch {}
        }",
        expect![[r#"
            test::fixed_source[] {}
            {} -> [0]
        "#]],
    );
}

#[test]
fn getters_and_proxies_are_read_once_and_may_throw() {
    check_inside(
        "let reads = 0; const once = { get count() { return ++reads; } };
        rows = rows.take(once).take(once);
        rows = rows.take(new Proxy({ a: 1, b: [1] }, {}));
        rows = rows.take(new Proxy({ x: 1 }, { ownKeys: () => ['x', 'y'], getOwnPropertyDescriptor: () => ({ value: 1, enumerable: true, configurable: true }), get: (_, name) => name + '!' }));
        rows.take({ get count() { throw new Error('thrown in a getter'); } });",
        expect![[r#"
            0:6:45: Error: thrown in a getter
            test::fixed_source[] {}
            core::take[0] {"count":1}
            core::take[1] {"count":2}
            core::take[2] {"a":1,"b":[1]}
            core::take[3] {"x":"x!","y":"y!"}
            {} -> []
        "#]],
    );
    check_inside(
        "rows.take({ list: new Proxy([1, 2], { get: (list, name) => name === 'length' ? 3 : 7 }) })",
        expect![[r#"
        test::fixed_source[] {}
        core::take[0] {"list":[7,7,7]}
        {} -> [0]
    "#]],
    );
    check_inside(
        "rows.take(new Proxy({}, { getPrototypeOf() { throw 'trap' } }))",
        expect![[r#"
        nowhere: the plan's code threw "trap"
        test::fixed_source[] {}
        {} -> []
    "#]],
    );
    check(
        "throw { get stack() { throw 1 }, toString() { throw 2 } }",
        expect![[r#"
        nowhere: the plan's code threw an object
    "#]],
    );
    check(
        "const e = new Error('x'); Object.defineProperty(e, 'message', { get() { throw e } }); throw e",
        expect![[r#"
        0:1:15: the plan's code threw an error that cannot be shown
    "#]],
    );
    check(
        "throw Object.assign(new Error(), { message: '\\ud800'.repeat(1000) })",
        expect![[r#"
        0:1:53: TypeError: 'message' is read-only
    "#]],
    );
    check(
        "throw new Proxy(new Error('x'), { get() { throw 1 } })",
        expect![[r#"
        nowhere: the plan's code threw an object
    "#]],
    );
}

#[test]
fn what_has_no_end_is_ended() {
    let endless = "while (true) {}";
    for code in [
        endless.to_owned(),
        format!("({{ get x() {{ {endless} }} }}).x"),
        format!("definePlan({{ get name() {{ {endless} }}, build: (ctx) => ctx.viewer() }})"),
        format!("definePlan({{ build: (ctx) => {{ {endless} }} }})"),
        format!("JSON.stringify({{ toJSON() {{ {endless} }} }})"),
        format!("[2, 1].sort(() => {{ {endless} }})"),
        "/^(a+)+$/.test('a'.repeat(40) + 'b')".to_owned(),
        format!("(async () => {{ await 1; {endless} }})()"),
        "const again = async () => { await 1; again(); }; again()".to_owned(),
        format!("(function* () {{ {endless} }})().next()"),
        "for (const x of (function* () { while (true) yield 1; })()) ;".to_owned(),
        format!("try {{ {endless} }} catch {{ {endless} }} finally {{ {endless} }}"),
        "const f = () => { try { f(); } finally { f(); } }; f()".to_owned(),
        format!("throw {{ get stack() {{ {endless} }}, toString() {{ {endless} }} }}"),
        format!(
            "const e = new Error('x'); Object.defineProperty(e, 'message', {{ get() {{ {endless} }} }}); throw e"
        ),
    ] {
        let told = told(&recorded_of(&hasty(), &code));
        assert!(
            told.contains("more than 0.2 s of CPU time")
                || told.contains("cannot be shown")
                || told.contains("an object"),
            "{code}: {told}"
        );
    }
}

#[test]
fn what_is_too_large_is_ended() {
    for code in [
        "const a = []; while (true) a.push(new Array(1000).fill(1))",
        "let s = 'x'; while (true) s += s",
        "'x'.repeat(2 ** 30)",
        "new Array(2 ** 32 - 1).fill(0)",
        "Array.from({ length: 2 ** 40 }, () => 1)",
        "const m = new Map(); for (let i = 0; ; i++) m.set(i, {})",
        "let o = {}; while (true) o = { o, x: [1, 2, 3] }",
        "'a'.padEnd(2 ** 30, 'bc')",
        "'x'.repeat(1e7).normalize('NFKD')",
        "definePlan({ s: 'x'.repeat(2 ** 24), build: (ctx) => ctx.viewer({ s: 'x'.repeat(2 ** 24) }) })",
    ] {
        let told = told(&recorded_of(&hasty(), code));
        let ends = ["of memory", "string too long", "invalid", "of CPU time"];
        assert!(ends.iter().any(|end| told.contains(end)), "{code}: {told}");
    }
}

#[test]
fn recursion_without_end_is_ended() {
    for code in [
        "const f = () => f() + 1; f()",
        "const f = (x) => [x].map(f); f(1)",
        "const o = { get x() { return this.x } }; o.x",
        "let a = []; for (let i = 0; i < 100000; i++) a = [a]; JSON.stringify(a)",
        "const p = new Proxy({}, { get: (_, name, self) => self[name] }); p.x",
        "let r = '(?:'.repeat(100000) + ')'.repeat(100000); new RegExp(r)",
    ] {
        let told = told(&recorded_of(&hasty(), code));
        let ends = ["stack", "of memory", "of CPU time"];
        assert!(ends.iter().any(|end| told.contains(end)), "{code}: {told}");
    }
}

#[test]
fn a_plan_has_bounds() {
    check_inside(
        "let x = Key.id; for (let i = 0; i < 200; i++) x = __ab_op(i, '+', x, 1);",
        expect![[r#"
        site 99: an expression nested deeper than 100 (compute a column with `vm` first, and go on from that)
        test::fixed_source[] {}
        {} -> [0]
    "#]],
    );
    check_inside(
        "let x = Key.id; for (let i = 0; i < 60; i++) x = __ab_op(i, '+', x, x);",
        expect![[r#"
        site 12: an expression of more than 10000 parts (compute a column with `vm` first, and go on from that)
        test::fixed_source[] {}
        {} -> [0]
    "#]],
    );
    let many = recorded(
        "definePlan({ build(ctx) { let r; for (let i = 0; i < 10001; i++) r = ctx.viewer(__ab_at(i, {})); return r } })",
    );
    assert_eq!(many.faults[0].what, "a plan has at most 10000 nodes");
    assert_eq!((many.faults[0].site, many.plan.unwrap().nodes.len()), (Some(10_000), 10_000));
    let roomy = Job { memory: 256 << 20, ..job() };
    let faults = recorded_of(
        &roomy,
        "definePlan({ build(ctx) { for (let i = 0; i < 5000; i++) __ab_get(i, Key, 'nope' + i); return ctx.viewer() } })",
    );
    assert_eq!(faults.faults.len(), 1001);
    assert_eq!(faults.faults[1000].what, "more than 1000 faults: the rest is not told");
    let wide = recorded_of(
        &roomy,
        "let o = [1]; for (let i = 0; i < 40; i++) o = [o, o]; definePlan({ build: (ctx) => ctx.viewer({ o }) })",
    );
    assert_eq!(wide.faults[0].what, "the options of a plan have at most 300000 values");
}

#[test]
fn the_same_code_records_the_same() {
    let code = "const m = new Map([['b', 1], ['a', 2]]); definePlan({ a: [...m.keys()], o: { z: 1, a: 2 },
        build: (ctx) => [1, 2, 3].map((n) => ctx.viewer({ n }).vm({ x: __ab_op(n, '*', Key.id, n) })) }); nope";
    assert_eq!(told(&recorded(code)), told(&recorded(code)));
}

#[test]
fn what_rewritten_code_calls_can_be_called_by_any() {
    check_inside(
        "const op = globalThis['__ab_op'], at = globalThis['__ab_at'], get = globalThis['__ab_get'];
        let turn = 0; const shifty = { toString: () => (turn++ ? 'x' : 'id'), toJSON() { for (;;) ; } };
        rows = rows.take(at(shifty, { a: op({ toJSON() { for (;;) ; } }, '+', Key.id, 1), b: op(-1, '+', Key.id, 1) }));
        rows = rows.take(at(1.5, { c: get(0, Key, shifty), d: op(2 ** 40, '<', Key.id, 1) }));
        op(shifty, 'in', Key.id, 1);
        Pred.cmp(Key.id, 1, 2);
        for (const odd of [undefined, null, 5, ctx, ctx.core, { node: 0 }]) {
            try { rows.take.call(odd, {}); throw 'called'; } catch (error) { if (error === 'called') throw error; }
        }",
        expect![[r#"
            0:6:26: `in` takes a list, not 1 (write `x in [1, 2, 3]` or `x in ["a", "b"]`)
            0:7:18: no comparison: an expression (one of == != < <= > >=)
            test::fixed_source[] {}
            core::take[0] {"a":{"$":"expr","ir":{"a":{"key":"id","op":"key_ref"},"b":{"op":"const_number","value":1},"op":"add"}},"b":{"$":"expr","ir":{"a":{"key":"id","op":"key_ref"},"b":{"op":"const_number","value":1},"op":"add"}}}
            core::take[1] {"c":{"$":"expr","ir":{"key":"id","op":"key_ref"}},"d":{"$":"pred","ir":{"a":{"key":"id","op":"key_ref"},"b":{"op":"const_number","value":1},"cmp":"<","op":"cmp"}}}
            {} -> [2]
        "#]],
    );
}
