//! Requests: what they set, and what is refused.

use anabranch_plan::{Registries, Request, Scalar};
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
            request.user_id, request.request_id, request.plan, request.params, request.warnings
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
        ["`request_id` is no string but 7; it has no effect"]"#]],
    );
    check(
        r#"{"user_id": 1, "fragment_versions": {}, "output_keys": [], "param_override": {}, "request_id": null}"#,
        expect![[r#"
            1 None None
            [Some(Float(0.5)), Some(Text("x")), None, None, None, None, None]
            ["`fragment_versions` has no effect", "`output_keys` has no effect", "there is no field `param_override`; it has no effect"]"#]],
    );
}

#[test]
fn users() {
    for user in [
        "0",
        "-1",
        "4294967296",
        "1.0",
        "1e3",
        "99999999999999999999",
        "true",
        "null",
        "[]",
        "\"\"",
        "\" 123\"",
        "\"123abc\"",
        "\"+1\"",
        "\"-1\"",
        "\"0\"",
        "\"4294967296\"",
        "\"99999999999999999999\"",
        "\"１\"",
    ] {
        let error = Request::parse(format!("{{\"user_id\": {user}}}"), &registries()).unwrap_err();
        assert_eq!(error.error, "Invalid request", "{user}");
    }
    check(
        r#"{"user_id": "12 3"}"#,
        expect![[
            r#"{"error":"Invalid request","detail":"`user_id` must be a whole number from 1 to 4294967295, or a string of one, not the string `12 3`"}"#
        ]],
    );
    check("{}", expect![[r#"{"error":"Invalid request","detail":"`user_id` is missing"}"#]]);
}

#[test]
fn no_json() {
    check(
        "",
        expect![[
            r#"{"error":"Invalid JSON input","detail":"there is no request; the least is {\"user_id\": 1}"}"#
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
        &format!("{{\"user_id\": 1, \"x\": \"{}\"}}", "x".repeat(1 << 20)),
        expect![[r#"{"error":"Invalid request","detail":"the request has 1048599 bytes; 1048576 may be"}"#]],
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
        .assert_eq(&format!("{:?}", request.params));
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
