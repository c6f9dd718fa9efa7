use rquickjs::{Context, Runtime};

use super::made;

/// Each part of the code that is the source's own is found there again.
fn check(source: &str, parts: &[(&str, &str)]) {
    let (unit, _) = made(source).unwrap();
    for (part, original) in parts {
        let at = unit.code.find(part).expect("the code has the part");
        let before = &unit.code[..at];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, str::len) + 1;
        let found = unit.original(line as u32, column as u32) as usize;
        assert!(source[found..].starts_with(original), "{part:?} is at {:?} of {source:?}", &source[found..]);
    }
}

#[test]
fn the_way_back() {
    check(
        "let a: A = b + c\nlet d = e as E\n",
        &[("a ", "a:"), ("b,", "b +"), ("c)", "c\n"), ("d", "d ="), ("e ", "e as")],
    );
    check("a\n  + b\n  + f(c)", &[("b)", "b\n"), ("f(", "f(c)"), ("c)", "c)")]);
    check("interface A {\n  b: C\n}\nfail()", &[("fail", "fail()")]);
}

#[test]
fn new_text_is_where_it_was_put() {
    check(
        "x = a * b && !c",
        &[("__ab_logic", "a * b && !c"), ("__ab_op", "a * b &&"), ("__ab_unary", "!c"), ("()=>", " && !c")],
    );
    check("x.take({ a: Key.b })", &[("__ab_at", "{ a"), ("__ab_get", "Key.b")]);
}

#[test]
fn strange_lines() {
    check("let ä: A = '😀' + b; fail()", &[("'😀'", "'😀'"), ("b)", "b;"), ("fail", "fail")]);
    check("\u{feff}let a: A\r\n\tfail(a)\r\n", &[("let", "let"), ("fail", "fail"), ("a)", "a)")]);
}

#[test]
fn places_that_are_not_there() {
    let (unit, _) = made("a: A; b as B\n").map_err(|faults| format!("{faults:?}")).unwrap();
    assert_eq!(unit.original(0, 0), 0);
    assert_eq!(unit.original(1, 1000), 12);
    assert_eq!(unit.original(2, 1), 13);
    assert_eq!(unit.original(1000, 1), 13);
    assert_eq!(unit.original(u32::MAX, u32::MAX), 13);
    assert_eq!(made("'ä😀'").unwrap().0.original(1, 6), 3);
}

/// The location that the engine reports for an error, and the source there.
fn thrown(source: &str) -> String {
    let (unit, _) = made(source).unwrap();
    let context = Context::full(&Runtime::new().unwrap()).unwrap();
    let stack = context.with(|ctx| {
        ctx.eval::<(), _>("globalThis.__ab_op = (site, operator, a, b) => a + b").unwrap();
        let failed = ctx.eval::<(), _>(unit.code.as_str());
        assert!(failed.is_err(), "{source}");
        ctx.catch().as_exception().and_then(|exception| exception.stack()).unwrap()
    });
    let place = stack.lines().next().unwrap().trim_end_matches(')');
    let mut numbers = place.rsplit(':').map(|number| number.parse().unwrap());
    let (column, line) = (numbers.next().unwrap(), numbers.next().unwrap());
    source[unit.original(line, column) as usize..].to_owned()
}

#[test]
fn places_of_the_engine() {
    for before in
        ["", "let a: A = 1; ", "'ä😀' + 1; ", "\u{feff}", "let a = '' +\n '\\\n'; ", "\t/* ä\r\n */\t"]
    {
        let source = format!("{before}fail(1) + 2");
        assert_eq!(thrown(&source), "fail(1) + 2", "{source:?}");
    }
    assert_eq!(thrown("let ä: A = 1\nlet ä = 2"), "= 2");
}
