use super::made;

/// Each part of the code that is the source's own is found there again.
fn check(source: &str, parts: &[(&str, &str)]) {
    let (unit, _) = made(source).unwrap();
    for (part, original) in parts {
        let at = unit.code.find(part).expect("the code has the part");
        let before = &unit.code[..at];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1;
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
}
