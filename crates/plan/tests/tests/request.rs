//! Requests: what they set, and what is refused.

use anabranch_plan::{Registries, Request, Scalar, UserId};
use anabranch_rows::{Batch, Column, Key, Rows};
use expect_test::{Expect, expect};

fn registries() -> Registries {
    let keys = "key = [{ key_id = 1, name = 'id', type = 'int', nullable = false, allow_write = false }]";
    let params = "
        param = [
            { param_id = 1, name = 'weight', type = 'float', nullable = false, default = 0.5 },
            { param_id = 2, name = 'pattern', type = 'string', nullable = true, default = 'x' },
            { param_id = 3, name = 'count', type = 'int', nullable = false },
            { param_id = 4, name = 'fast', type = 'bool', nullable = false },
            { param_id = 5, name = 'fixed', type = 'bool', nullable = false, allow_write = false },
            { param_id = 6, name = 'old', type = 'bool', nullable = false, status = 'deprecated', allow_write = true },
            { param_id = 7, name = 'off', type = 'bool', nullable = false, status = 'blocked' },
        ]";
    Registries::parse([("keys.toml", keys), ("params.toml", params)], None).unwrap().0
}

fn check(text: &str, expect: Expect) {
    let shown = match Request::parse(text, &registries()) {
        Ok(request) => format!(
            "{} {:?} {:?}\n{:?}\n{:?}",
            request.user_id(),
            request.request_id,
            request.plan,
            request.params(),
            request.warnings
        ),
        Err(error) => error.to_json(),
    };
    expect.assert_eq(&shown);
}

#[test]
fn requests() {
    check(
        r#"{"user_id": 1}"#,
        expect![[r#"
        1 None None
        [Some(Float(0.5)), Some(Text("x")), None, None, None, None, None]
        []"#]],
    );
    check(
        r#"{"user_id": "0123", "request_id": "r", "plan": "feed", "param_overrides": {
            "weight": 2, "pattern": null, "count": 3.0, "fast": true}}"#,
        expect![[r#"
            123 Some("r") Some("feed")
            [Some(Float(2.0)), None, Some(Int(3)), Some(Bool(true)), None, None, None]
            []"#]],
    );
    check(
        r#"{"user_id": 4294967295, "param_overrides": null, "request_id": 7}"#,
        expect![[r#"
        4294967295 None None
        [Some(Float(0.5)), Some(Text("x")), None, None, None, None, None]
        ["`request_id` must be a string, not 7; it has no effect"]"#]],
    );
    check(
        r#"{"user_id": 1, "fragment_versions": {}, "output_keys": [], "request_id": null}"#,
        expect![[r#"
            1 None None
            [Some(Float(0.5)), Some(Text("x")), None, None, None, None, None]
            ["`fragment_versions` has no effect", "`output_keys` has no effect"]"#]],
    );
}

/// A misspelt field would have no effect.
#[test]
fn unknown_fields_are_refused() {
    check(
        r#"{"user_id": 1, "param_override": {}, "q": 1}"#,
        expect![[
            r#"{"error":"Invalid request","detail":"there is no field `param_override` (did you mean `param_overrides`?); there is no field `q`"}"#
        ]],
    );
}

#[test]
fn users() {
    for (user, id) in [
        ("1", "1"),
        ("9223372036854775807", "9223372036854775807"),
        ("\"0123\"", "123"),
        ("\"4294967296\"", "4294967296"),
        ("\"99999999999999999999\"", "99999999999999999999"),
        ("\"ann\"", "ann"),
        ("\"a b/é:7\"", "a b/é:7"),
        ("\"123abc\"", "123abc"),
    ] {
        let request = Request::parse(format!("{{\"user_id\": {user}}}"), &registries()).unwrap();
        assert_eq!(request.user_id().to_string(), id);
        let is_int = id.parse::<i64>().ok();
        assert_eq!(request.user_id().as_int(), is_int);
        assert_eq!(request.user_id(), &UserId::from(id));
        assert_eq!(is_int.is_none(), request.user_id().row_id() < 0);
    }
    for user in [
        "0",
        "-1",
        "9223372036854775808",
        "1.0",
        "1e3",
        "true",
        "null",
        "[]",
        "\"\"",
        "\" 123\"",
        "\"+1\"",
        "\"-1\"",
        "\"0\"",
        "\"a\\n\"",
        "\"a \"",
    ] {
        let error = Request::parse(format!("{{\"user_id\": {user}}}"), &registries()).unwrap_err();
        assert_eq!(error.error, "Invalid request", "{user}");
    }
    check(
        r#"{"user_id": 0}"#,
        expect![[
            r#"{"error":"Invalid request","detail":"`user_id` must be a whole number from 1 to 9223372036854775807, or a string of at most 256 bytes, not 0"}"#
        ]],
    );
    let long = format!("{{\"user_id\": \"{}\"}}", "x".repeat(257));
    let error = Request::parse(long, &registries()).unwrap_err();
    assert!(error.detail.ends_with("not a string of 257 bytes"), "{error}");
    check("{}", expect![[r#"{"error":"Invalid request","detail":"`user_id` is missing"}"#]]);
}

/// The rule of rankd, where the registry asks for it.
#[test]
fn users_up_to_a_limit() {
    let limits = "[limits]\nmax_user_id = 4294967295";
    let (registries, _) =
        Registries::parse([("keys.toml", KEYS), ("validation.toml", limits)], None).unwrap();
    let parse = |user: &str| Request::parse(format!("{{\"user_id\": {user}}}"), &registries);
    assert_eq!(parse("4294967295").unwrap().user_id().as_int(), Some(4_294_967_295));
    assert_eq!(parse("\"0123\"").unwrap().user_id().as_int(), Some(123));
    for user in ["4294967296", "\"4294967296\"", "\"ann\"", "0"] {
        parse(user).unwrap_err();
    }
    expect!["Invalid request: `user_id` must be a whole number from 1 to 4294967295, or a string of one, not the string `12 3`"]
        .assert_eq(&parse("\"12 3\"").unwrap_err().to_string());
}

const KEYS: &str = "
    key = [
        { key_id = 1, name = 'id', type = 'int', nullable = false, allow_write = false },
        { key_id = 2, name = 'price', type = 'float', nullable = true },
        { key_id = 3, name = 'stock', type = 'int', nullable = false, default = 0 },
        { key_id = 4, name = 'title', type = 'string', nullable = true },
        { key_id = 5, name = 'fresh', type = 'bool', nullable = true },
        { key_id = 6, name = 'gone', type = 'bool', nullable = true, status = 'blocked' },
        { key_id = 7, name = 'bundle', type = 'feature_bundle', nullable = true },
    ]";

/// The candidates of a request as columns, or why it is refused.
fn candidates(json: &str, expect: Expect) {
    let (registries, _) = Registries::parse([("keys.toml", KEYS)], None).unwrap();
    let shown = match Request::parse(format!("{{\"user_id\": 1, \"candidates\": {json}}}"), &registries) {
        Ok(request) => request.candidates().map_or("none".to_owned(), |rows| {
            let column = |key: Key, column: &Column| {
                let cells = (0..column.len())
                    .map(|row| column.get(row).map_or("-".to_owned(), |cell| cell.to_string()));
                format!("{key}: {}", cells.collect::<Vec<_>>().join(" "))
            };
            let columns = rows.batch().columns().iter().map(|(key, values)| column(*key, values));
            let ids = rows.ids().map(|id| id.to_string()).collect::<Vec<_>>().join(" ");
            [format!("ids: {ids}")].into_iter().chain(columns).collect::<Vec<_>>().join("\n")
        }),
        Err(error) => error.detail,
    };
    expect.assert_eq(&shown);
}

#[test]
fn candidates_have_three_forms() {
    candidates("null", expect!["none"]);
    candidates("[]", expect!["ids: "]);
    candidates(r#"[3, 9223372036854775807, "-5", 3]"#, expect!["ids: 3 9223372036854775807 -5 3"]);
    candidates(
        r#"[{"id": 1, "price": 2, "title": "a"}, 7, {"id": "2", "fresh": true, "price": null}]"#,
        expect![[r#"
            ids: 1 7 2
            2: 2 - -
            4: a - -
            5: - - true"#]],
    );
    candidates(
        r#"{"id": [1, 2], "stock": [3.0, -4], "title": ["a", null]}"#,
        expect![[r#"
            ids: 1 2
            3: 3 -4
            4: a -"#]],
    );
}

#[test]
fn wrong_candidates_are_told_by_row_and_column() {
    candidates(
        "7",
        expect!["`candidates` must be a list of ids, a list of objects, or an object of columns, not 7"],
    );
    candidates(
        r#"[1, 1.5, null, {"price": 1}, {"id": 1, "price": "x", "prize": 1, "gone": true, "bundle": 1}, [2]]"#,
        expect![
            "candidates[1], `id`: must be an integer of 64 bits or a string of one, not 1.5; candidates[2], `id`: must be an integer of 64 bits or a string of one, not null; candidates[3], `id`: must be an integer of 64 bits or a string of one, not nothing; candidates[4]: key `bundle` is a feature bundle, not a column; candidates[4]: key `gone` is blocked; candidates[4], `price`: must be a finite number, not the string `x`; candidates[4]: there is no key `prize` (did you mean `price`?); candidates[5], `id`: must be an integer of 64 bits or a string of one, not a list"
        ],
    );
    candidates(
        r#"[{"id": 1, "stock": 1}, {"id": 2}]"#,
        expect!["candidates[1], `stock`: is missing, and may not be null"],
    );
    candidates(
        r#"{"id": [1, 2], "price": [1], "title": "a", "stock": [1, "many"], "fresh": [1, 2]}"#,
        expect![
            "candidates[0], `fresh`: must be true or false, not 1; candidates[1], `fresh`: must be true or false, not 2; `candidates`, column `price`: has 1 values, and there are 2 ids; candidates[1], `stock`: must be an integer of 64 bits, not the string `many`; `candidates`, column `title`: must be a list of values, not the string `a`"
        ],
    );
    candidates(r#"{"price": [1]}"#, expect!["`candidates` has no column `id`"]);
    candidates(
        &format!("[{}1]", "1,".repeat(100_000)),
        expect!["`candidates` has 100001 rows; at most 100000 are allowed"],
    );
    let wrong = format!("[{}1]", "null,".repeat(50));
    let many =
        Request::parse(format!("{{\"user_id\": 1, \"candidates\": {wrong}}}"), &registries()).unwrap_err();
    assert!(many.detail.ends_with("; and more") && many.detail.matches("candidates[").count() == 20);
}

/// A program's candidates are checked too: a kernel relies on the kinds.
#[test]
fn candidates_of_a_program_are_checked() {
    let (registries, _) = Registries::parse([("keys.toml", KEYS)], None).unwrap();
    let mut request = Request::new(1, &registries);
    let with = |key: u32, column: Column| Rows::new(Batch::with_columns(vec![1], vec![(Key(key), column)]));
    request.set_candidates(with(2, Column::floats([Some(0.5)])), &registries).unwrap();
    for (rows, expect) in [
        (
            with(2, Column::ints([Some(1)])),
            expect!["Invalid request: the column `price` is int, but the key is not"],
        ),
        (with(9, Column::ints([Some(1)])), expect!["Invalid request: there is no key 9"]),
        (
            with(3, Column::ints([None])),
            expect!["Invalid request: the column `stock` has nulls, and its key may not be null"],
        ),
    ] {
        expect.assert_eq(&request.set_candidates(rows, &registries).unwrap_err().to_string());
    }
}

#[test]
fn no_json() {
    check(
        "",
        expect![[
            r#"{"error":"Invalid JSON input","detail":"the request is empty; the smallest one is {\"user_id\": 1}"}"#
        ]],
    );
    check(
        "{\"user_id\": 1,\n}",
        expect![[r#"{"error":"Invalid JSON input","detail":"line 2, column 1: trailing comma"}"#]],
    );
    check(
        "{\"user_id\": 1, \"user_id\": 2}",
        expect![[
            r#"{"error":"Invalid JSON input","detail":"line 1, column 24: field `user_id` is there twice"}"#
        ]],
    );
    check("[1]", expect![[r#"{"error":"Invalid request","detail":"must be an object, not a list"}"#]]);
    check(
        &format!("{{\"user_id\": 1, \"x\": \"{}\"}}", "x".repeat(4 << 20)),
        expect![[
            r#"{"error":"Invalid request","detail":"the request has 4194327 bytes; at most 4 MiB are allowed"}"#
        ]],
    );
    let error = Request::parse(b"{\"user_id\": \"\xff\"}", &registries()).unwrap_err();
    assert_eq!(error.error, "Invalid JSON input");
}

#[test]
fn all_wrong_overrides_at_once() {
    check(
        r#"{"user_id": 1, "param_overrides": {"wieght": 1, "unlike": 1, "weight": null, "pattern": 3, "count": 1.5,
            "fast": "yes", "fixed": true, "old": true, "off": true}}"#,
        expect![[
            r#"{"error":"Invalid param_overrides","detail":"`count` must be an int of 64 bits, not 1.5; `fast` must be a bool, not the string `yes`; `fixed` is not writable; `off` is blocked; `old` is deprecated; `pattern` must be a string or null, not 3; there is no parameter `unlike`; `weight` must be a finite float, not null; there is no parameter `wieght` (did you mean `weight`?)"}"#
        ]],
    );
    check(
        r#"{"user_id": 1, "param_overrides": {"count": 9223372036854775808, "weight": "NaN"}}"#,
        expect![[
            r#"{"error":"Invalid param_overrides","detail":"`count` must be an int of 64 bits, not 9223372036854775808; `weight` must be a finite float, not the string `NaN`"}"#
        ]],
    );
    check(
        r#"{"user_id": 1, "param_overrides": {"count": -9223372036854775808, "weight": -0.0}}"#,
        expect![[r#"
        1 None None
        [Some(Float(-0.0)), Some(Text("x")), Some(Int(-9223372036854775808)), None, None, None, None]
        []"#]],
    );
    check(
        r#"{"user_id": 1, "param_overrides": {"count": 1e19}}"#,
        expect![[
            r#"{"error":"Invalid param_overrides","detail":"`count` must be an int of 64 bits, not 1e+19"}"#
        ]],
    );
    check(
        r#"{"user_id": 1, "param_overrides": [1]}"#,
        expect![[r#"{"error":"Invalid param_overrides","detail":"must be an object, not a list"}"#]],
    );
}

#[test]
fn set_by_name() {
    let registries = registries();
    let mut request = Request::new(7, &registries);
    request.set("weight", Some(Scalar::Int(2)), &registries).unwrap();
    request.set("pattern", None, &registries).unwrap();
    expect!["[Some(Float(2.0)), None, None, None, None, None, None]"]
        .assert_eq(&format!("{:?}", request.params()));
    for (name, value) in [
        ("wait", None),
        ("weight", None),
        ("weight", Some(Scalar::Float(f64::NAN))),
        ("count", Some(Scalar::Float(1.0))),
        ("fixed", Some(Scalar::Bool(true))),
    ] {
        request.set(name, value, &registries).unwrap_err();
    }
    let error = request.set("wait", None, &registries).unwrap_err();
    expect!["Invalid param_overrides: there is no parameter `wait`"].assert_eq(&error.to_string());
}
