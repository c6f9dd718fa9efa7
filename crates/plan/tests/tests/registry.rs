//! Registries: rankd's TOML files load; everything wrong is told at once, with its file, entry and field.

use anabranch_plan::Registries;
use expect_test::{Expect, expect};

const KEYS: &str = r#"
[[key]]
key_id = 1
name = "id"
type = "int"
nullable = false
allow_write = false

[[key]]
key_id = 2001
name = "final_score"
type = "float"
nullable = false
default = 0

[[key]]
key_id = 3001
name = "country"
type = "string"
nullable = true
status = "deprecated"
replaced_by = 2001
"#;

const ENDPOINTS: &str = r#"
version = 1
[[endpoint]]
endpoint_id = "ep_0001"
name = "users"
kind = "redis"
  [endpoint.resolver]
  type = "static"
  host = "127.0.0.1"
  port = 6379
  [endpoint.policy]
  max_inflight = 64
"#;

fn check(files: &[(&str, &str)], env: Option<&str>, expect: Expect) {
    let text = match Registries::parse(files.iter().copied(), env) {
        Ok((registries, warnings)) => {
            let warnings: String = warnings.iter().map(|warning| format!("\nwarning: {warning}")).collect();
            format!("{}{warnings}", registries.summary())
        }
        Err(problems) => problems.to_string(),
    };
    expect.assert_eq(&text);
}

#[test]
fn loads() {
    let params = "[[param]]\nparam_id = 7\nname = 'weight'\ntype = 'float'\nnullable = false\ndefault = 1";
    let files = [("keys.toml", KEYS), ("params.toml", params), ("endpoints.dev.toml", ENDPOINTS)];
    check(
        &files,
        None,
        expect![[
            r#"{"capabilities":0,"endpoint_registry_digest":"850d95eb083299f4203ab4719cc1d4ac9cc4559e1f1983c0999837ce605ce215","endpoints":1,"env":"dev","features":0,"keys":3,"params":1}"#
        ]],
    );
    let (registries, _) = Registries::parse(files, None).unwrap();
    let param = registries.params.named("weight").unwrap();
    expect![[r#"
        ParamEntry {
            id: 7,
            index: 0,
            name: "weight",
            kind: Float,
            shape: One,
            nullable: false,
            status: Active,
            allow_read: true,
            allow_write: true,
            default: Some(
                Float(
                    1.0,
                ),
            ),
            doc: "",
        }
    "#]]
    .assert_debug_eq(param);
    let endpoint = registries.endpoints.get("ep_0001").unwrap();
    expect![[r#"
        Endpoint {
            index: 0,
            id: "ep_0001",
            name: "users",
            kind: Redis,
            host: "127.0.0.1",
            port: 6379,
            max_inflight: Some(
                64,
            ),
            connect_timeout: None,
            request_timeout: None,
        }
    "#]]
    .assert_debug_eq(endpoint);
    let country = registries.keys.named("country").unwrap();
    assert!(!country.allow_write, "what is deprecated is not written unless it says so");
}

#[test]
fn keys_alone_are_enough_and_needed() {
    check(
        &[("keys.toml", KEYS)],
        None,
        expect![[
            r#"{"capabilities":0,"endpoint_registry_digest":"1038daeddcbbd28c7ee6feb49e2ddbb6ea1587d4e9f8b3282ef5ed1813165f23","endpoints":0,"env":null,"features":0,"keys":3,"params":0}"#
        ]],
    );
    check(
        &[],
        None,
        expect!["keys.toml: is missing (a registry folder has at least this file, with the key `id`)"],
    );
}

#[test]
fn syntax_errors_have_a_line_and_column() {
    check(
        &[("keys.toml", "[[key]]\nkey_id = = 3"), ("params.toml", "x = 'é' y")],
        None,
        expect![[r#"
        keys.toml:2:10: extra `=`, expected nothing
        params.toml:1:9: unexpected key or value, expected newline, `#`"#]],
    );
}

#[test]
fn all_wrong_keys_at_once() {
    let keys = r#"
        schema_version = 2
        colour = 1
        [[key]]
        key_id = 2
        name = "id"
        type = "float"
        nullable = true
        [[key]]
        key_id = 2
        name = "score"
        type = "floaty"
        nullable = "no"
        nulable = false
        [[key]]
        key_id = 5
        name = "score"
        type = "int"
        nullable = false
        replaced_by = 9
        [[key]]
        key_id = -1
        type = "string"
        status = "gone"
        default = 3
        nullable = true
        [[key]]
        key_id = 6
        name = "bundle"
        type = "feature_bundle"
        nullable = true
        default = 1979-05-27
        [[key]]
        key_id = 7
        name = "far"
        type = "float"
        nullable = false
        default = inf
    "#;
    check(
        &[("keys.toml", keys)],
        None,
        expect![[r#"
            keys.toml, key `bundle`, default: no field is a date; write "1979-05-27" for a string
            keys.toml, key `far`, default: must be a finite number, not inf
            keys.toml, schema_version: version 2 is not known; this program reads version 1
            keys.toml, colour: there is no such field
            keys.toml, key `id`, key_id: the key `id` has number 1, not 2
            keys.toml, key `id`, type: the key `id` is an int
            keys.toml, key `id`, nullable: the key `id` is never null; write false
            keys.toml, key `id`, allow_write: no plan writes the key `id`; write false
            keys.toml, key `score`, key_id: `2` is taken by an earlier entry
            keys.toml, key `score`, type: must be one of `int`, `float`, `string`, `bool`, `feature_bundle`, not `floaty`
            keys.toml, key `score`, nullable: must be true or false, not the string `no`
            keys.toml, key `score`, nulable: there is no such field (did you mean `nullable`?)
            keys.toml, key `score`, name: `score` is taken by an earlier entry
            keys.toml, key `score`, default: a key that is never null needs one (add a default, or make it nullable)
            keys.toml, key 4, key_id: must be a whole number from 0 to 4294967295, not -1
            keys.toml, key 4, name: is missing; it must be a string
            keys.toml, key 4, status: must be one of `active`, `deprecated`, `blocked`, not `gone`
            keys.toml, key 4, default: must be of type string, as the entry is, not 3
            keys.toml, key `bundle`, default: a feature_bundle has none
            keys.toml, key `score`, replaced_by: there is no key 9"#]],
    );
}

#[test]
fn the_id_is_what_it_is() {
    let keys = "[[key]]\nkey_id = 3\nname = 'x'\ntype = 'int'\nnullable = true";
    check(
        &[("keys.toml", keys)],
        None,
        expect![[
            r#"keys.toml: the key `id` is missing (add [[key]] key_id = 1, name = "id", type = "int", nullable = false, allow_write = false)"#
        ]],
    );
    let keys = "[[key]]\nkey_id = 1\nname = 'x'\ntype = 'string'\nnullable = true";
    check(
        &[("keys.toml", keys)],
        None,
        expect![[r#"
        keys.toml, key `x`, name: key 1 is called `id`
        keys.toml, key `x`, type: the key `id` is an int
        keys.toml, key `x`, nullable: the key `id` is never null; write false
        keys.toml, key `x`, allow_write: no plan writes the key `id`; write false"#]],
    );
}

#[test]
fn params_and_features() {
    let params = r#"
        [[param]]
        param_id = 1
        name = "a"
        type = "int"
        nullable = true
        default = 1.5
        [[param]]
        param_id = 1
        name = "a"
        type = "feature_bundle"
        nullable = true
    "#;
    let features = r#"
        [[feature]]
        feature_id = 1
        stage = "esr"
        name = "age"
        type = "float"
        nullable = true
        [[feature]]
        feature_id = 2
        stage = "esr"
        name = "age"
        type = "float"
        nullable = true
        weight = 3
    "#;
    check(
        &[("keys.toml", KEYS), ("params.toml", params), ("features.toml", features)],
        None,
        expect![[r#"
            params.toml, param `a`, default: must be of type int, as the entry is, not 1.5
            params.toml, param `a`, param_id: `1` is taken by an earlier entry
            params.toml, param `a`, type: must be one of `int`, `float`, `string`, `bool`, `int_list`, `string_list`, not `feature_bundle`
            params.toml, param `a`, name: `a` is taken by an earlier entry
            features.toml, feature `age`, name: `esr.age` is taken by an earlier entry
            features.toml, feature `age`, weight: there is no such field"#]],
    );
}

#[test]
fn capabilities() {
    let capabilities = r#"
        schema_version = 1
        [[capability]]
        id = "cap.rfc.0001.fine.v1"
        status = "implemented"
        payload_schema = '{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}'
        [[capability]]
        id = "cap.rfc.1.short.v1"
        status = "done"
        [[capability]]
        id = "cap.rfc.0001.fine.v1"
        status = "draft"
        payload_schema = '{"type":"object",}'
        [[capability]]
        id = "cap.rfc.0002.shape.v1"
        status = "draft"
        payload_schema = '''
        {"type": "array", "minItems": 3, "properties": {"a": {"type": "text"}, "b": 3}, "required": [1]}
        '''
    "#;
    check(
        &[("keys.toml", KEYS), ("capabilities.toml", capabilities)],
        None,
        expect![[r#"
        capabilities.toml, capability `cap.rfc.1.short.v1`, id: must look like `cap.rfc.0001.some_name.v1`, not `cap.rfc.1.short.v1`
        capabilities.toml, capability `cap.rfc.1.short.v1`, status: must be one of `implemented`, `deprecated`, `draft`, `blocked`, not `done`
        capabilities.toml, capability `cap.rfc.0001.fine.v1`, id: `cap.rfc.0001.fine.v1` is taken by an earlier entry
        capabilities.toml, capability `cap.rfc.0001.fine.v1`, payload_schema: line 1, column 18: trailing comma
        capabilities.toml, capability `cap.rfc.0002.shape.v1`, payload_schema, type: must be one of `object`, not `array`
        capabilities.toml, capability `cap.rfc.0002.shape.v1`, payload_schema, properties, a, type: must be one of `boolean`, `string`, `number`, `integer`, `array`, `object`, not `text`
        capabilities.toml, capability `cap.rfc.0002.shape.v1`, payload_schema, properties, b: must be an object, not 3
        capabilities.toml, capability `cap.rfc.0002.shape.v1`, payload_schema, required: must be strings, not 1
        capabilities.toml, capability `cap.rfc.0002.shape.v1`, payload_schema, minItems: there is no such field"#]],
    );
}

#[test]
fn validation() {
    let validation = r#"
        [patterns]
        plan_name = "^[a-z"
        node = "x"
        [limits]
        max_fanout = -3
        plan_schema_version = 2
        [enums]
        regex_flags = ["", "i", "g"]
    "#;
    check(
        &[("keys.toml", KEYS), ("validation.toml", validation)],
        None,
        expect![[r#"
        validation.toml, patterns, plan_name: is not a regex: unclosed character class
        validation.toml, patterns, node: there is no such field
        validation.toml, limits, max_fanout: must be a whole number from 0 to 4294967295, not -3
        validation.toml, limits, plan_schema_version: this program reads plans of version 1
        validation.toml, enums, regex_flags: this program has ["", "i"]; the file cannot change that"#]],
    );
    let validation = "[limits]\nmax_fanout = 5\n[patterns]\nplan_name = '^[a-z]+$'";
    let files = [("keys.toml", KEYS), ("validation.toml", validation)];
    let limits = Registries::parse(files, None).unwrap().0.limits;
    assert_eq!((limits.max_fanout, limits.plan_name.as_str()), (5, "^[a-z]+$"));
}

#[test]
fn endpoints() {
    let endpoints = r#"
        [[endpoint]]
        endpoint_id = "users"
        name = "users"
        kind = "mysql"
          [endpoint.resolver]
          type = "consul"
          host = ""
          port = 70000
          [endpoint.policy]
          max_inflight = 0
          request_timeout_ms = "20"
          retries = 3
        [[endpoint]]
        endpoint_id = "ep_0001"
        name = "users"
        kind = "http"
        [[endpoint]]
        endpoint_id = "ep_0001"
        name = "other"
        kind = "http"
        resolver = { type = "magic", host = "h", port = 1 }
    "#;
    check(
        &[("keys.toml", KEYS), ("endpoints.dev.toml", endpoints)],
        None,
        expect![[r#"
        endpoints.dev.toml, endpoint `users`, endpoint_id: must start with `ep_`, not `users`
        endpoints.dev.toml, endpoint `users`, kind: must be one of `redis`, `http`, not `mysql`
        endpoints.dev.toml, endpoint `users`, resolver, type: the resolver `consul` does not exist yet (`static` with a host and a port does)
        endpoints.dev.toml, endpoint `users`, resolver, host: must not be empty
        endpoints.dev.toml, endpoint `users`, resolver, port: must be from 1 to 65535, not 70000
        endpoints.dev.toml, endpoint `users`, policy, max_inflight: must be at least 1 (leave it out for the default)
        endpoints.dev.toml, endpoint `users`, policy, request_timeout_ms: must be a whole number from 0 to 4294967295, not the string `20`
        endpoints.dev.toml, endpoint `users`, policy, retries: there is no such field
        endpoints.dev.toml, endpoint `users`, name: `users` is taken by an earlier entry
        endpoints.dev.toml, endpoint `users`, resolver: is missing; it must be an object
        endpoints.dev.toml, endpoint `other`, endpoint_id: `ep_0001` is taken by an earlier entry
        endpoints.dev.toml, endpoint `other`, resolver, type: must be `static`, not `magic`"#]],
    );
    let long = ENDPOINTS.replace("ep_0001", &format!("ep_{}", "1".repeat(62)));
    check(
        &[("keys.toml", KEYS), ("endpoints.dev.toml", &long)],
        None,
        expect!["endpoints.dev.toml, endpoint `users`, endpoint_id: has 65 characters; at most 64 may be"],
    );
}

#[test]
fn environments_agree() {
    let http = ENDPOINTS.replace("redis", "http");
    let renamed = ENDPOINTS.replace("users", "people");
    let renumbered = ENDPOINTS.replace("ep_0001", "ep_0002");
    check(
        &[
            ("keys.toml", KEYS),
            ("endpoints.dev.toml", ENDPOINTS),
            ("endpoints.prod.toml", &http),
            ("endpoints.stage.toml", &renamed),
            ("endpoints.test.toml", &renumbered),
        ],
        None,
        expect![[r#"
            endpoints.prod.toml, endpoint `ep_0001`, kind: is `http`, but `redis` in endpoints.dev.toml; environments must agree
            endpoints.stage.toml, endpoint `ep_0001`, name: is `people`, but `users` in endpoints.dev.toml; environments must agree
            endpoints.test.toml, endpoint `ep_0001`: is missing; endpoints.dev.toml has it
            endpoints.dev.toml, endpoint `ep_0002`: is missing; endpoints.test.toml has it"#]],
    );
    let elsewhere = ENDPOINTS.replace("6379", "6380");
    let files = [("keys.toml", KEYS), ("endpoints.dev.toml", ENDPOINTS), ("endpoints.prod.toml", &elsewhere)];
    let port = |env| Registries::parse(files, env).unwrap().0.endpoints.get("ep_0001").unwrap().port;
    assert_eq!((port(None), port(Some("prod"))), (6379, 6380));
    check(
        &files,
        Some("moon"),
        expect!["endpoints.moon.toml: is missing; there are endpoints of: dev, prod"],
    );
    let files = [("keys.toml", KEYS), ("endpoints.prod.toml", &elsewhere)];
    assert_eq!(Registries::parse(files, None).unwrap().0.env.as_deref(), Some("prod"));
    let files = [("keys.toml", KEYS), ("endpoints.a.toml", ENDPOINTS), ("endpoints.b.toml", ENDPOINTS)];
    check(&files, None, expect!["endpoints: which environment? There are endpoints of: a, b (name one)"]);
}

fn generated(env: &str, registry_digest: &str, config_digest: &str) -> String {
    format!(
        r#"{{"schema_version": 1, "env": "{env}", "registry_digest": "{registry_digest}",
            "config_digest": "{config_digest}", "endpoints": [
            {{"endpoint_id": "ep_0001", "kind": "redis", "name": "users", "policy": {{"max_inflight": 64}},
              "resolver": {{"type": "static", "host": "127.0.0.1", "port": 6379}}}}]}}"#
    )
}

#[test]
fn generated_endpoints_must_match_their_digests() {
    // The digests of {"entries":[{"endpoint_id":..,"kind":..,"name":..}],"schema_version":1} and of
    // {"endpoints":[..],"schema_version":1}, computed with another tool.
    let registry = "850d95eb083299f4203ab4719cc1d4ac9cc4559e1f1983c0999837ce605ce215";
    let config = "753cfc3bc28b36edd13133bc4e543eb12670b5e77bd2e6ee6486e1bd5b8a3c40";
    let text = generated("dev", registry, config);
    check(
        &[("keys.toml", KEYS), ("endpoints.dev.json", &text)],
        None,
        expect![[
            r#"{"capabilities":0,"endpoint_registry_digest":"850d95eb083299f4203ab4719cc1d4ac9cc4559e1f1983c0999837ce605ce215","endpoints":1,"env":"dev","features":0,"keys":3,"params":0}"#
        ]],
    );
    check(
        &[("keys.toml", KEYS), ("endpoints.prod.json", &text)],
        None,
        expect!["endpoints.prod.json, env: the file is of environment `dev`, not `prod`"],
    );
    let text = generated("dev", config, registry);
    check(
        &[("keys.toml", KEYS), ("endpoints.dev.json", &text)],
        None,
        expect![[r#"
        endpoints.dev.json, registry_digest: does not match the endpoints of the file, whose digest is 850d95eb083299f4203ab4719cc1d4ac9cc4559e1f1983c0999837ce605ce215 (generate the file anew)
        endpoints.dev.json, config_digest: does not match the endpoints of the file, whose digest is 753cfc3bc28b36edd13133bc4e543eb12670b5e77bd2e6ee6486e1bd5b8a3c40 (generate the file anew)"#]],
    );
    let toml = ENDPOINTS.replace("6379", "7000");
    let files = [("keys.toml", KEYS), ("endpoints.dev.toml", &toml), ("endpoints.dev.json", &text)];
    let (registries, _) = Registries::parse(files, None).unwrap();
    assert_eq!(registries.endpoints.get("ep_0001").unwrap().port, 7000, "the file that people write counts");
    check(
        &[("keys.toml", KEYS), ("endpoints.dev.json", "{\"env\": \"dev\",\n 3}")],
        None,
        expect!["endpoints.dev.json:2:2: key must be a string"],
    );
}

#[test]
fn names_of_files() {
    check(
        &[("keys.toml", KEYS), ("capabilites.toml", ""), ("tasks.toml", "???")],
        None,
        expect!["capabilites.toml: is not the name of a registry file (did you mean `capabilities.toml`?)"],
    );
}

#[test]
fn a_folder() {
    let folder = std::env::temp_dir().join(format!("anabranch-registry-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("keys.toml"), KEYS).unwrap();
    std::fs::write(folder.join("endpoints.dev.toml"), ENDPOINTS).unwrap();
    std::fs::write(folder.join("tasks.toml"), "not read").unwrap();
    std::fs::write(folder.join("parms.toml"), "not read").unwrap();
    let loaded = Registries::load(&folder, None);
    std::fs::remove_dir_all(&folder).unwrap();
    let (registries, warnings) = loaded.unwrap();
    assert_eq!(registries.endpoints.iter().len(), 1);
    expect!["DIR/parms.toml: is not a registry file and is not read (did you mean `params.toml`?)"]
        .assert_eq(&warnings[0].to_string().replace(&folder.display().to_string(), "DIR"));
    let missing = Registries::load(&folder, None).unwrap_err().to_string();
    assert!(missing.contains("the registry folder cannot be read"), "{missing}");
}

#[test]
fn the_registries_of_rankd() {
    let Some(folder) = crate::compat::folder() else { return };
    let (registries, warnings) = Registries::load(&folder.join("registry"), None).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    expect![[r#"{"capabilities":2,"endpoint_registry_digest":"551d9ea15487d6a5d38e8ee3e623b1ae858d87f977f680b605c8baf38c6a6024","endpoints":2,"env":"dev","features":2,"keys":8,"params":3}"#]].assert_eq(&registries.summary().to_string());
}
