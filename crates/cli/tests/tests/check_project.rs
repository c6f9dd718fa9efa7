//! `plan check` finds in a project and its registry all that `plan run` would refuse.

use std::path::PathBuf;

use expect_test::{Expect, expect};

use crate::binary::{in_folder, patient_examples, scratch};

/// A folder with a project of these endpoints and the plan `rows`, which reads `user:{id}`.
fn project(test: &str, endpoints: &str, files: &[(&str, &str)]) -> PathBuf {
    let folder = scratch(test);
    let registry = patient_examples().join("registry");
    let text = format!("[plan]\nregistry = '{}'\nplans = '.'\n\n{endpoints}", registry.display());
    std::fs::write(folder.join("anabranch.toml"), text).unwrap();
    std::fs::write(folder.join("rows.plan.json"), ROWS).unwrap();
    for (name, text) in files {
        std::fs::write(folder.join(name), text).unwrap();
    }
    folder
}

const ROWS: &str = r#"{"schema_version": 1, "plan_name": "rows", "nodes": [
  {"node_id": "viewer", "op": "core::viewer", "inputs": [], "params": {"endpoint": "redis_default"}}],
  "outputs": ["viewer"]}"#;

/// Checks what `plan check` says, and that `plan run` refuses the same.
fn check(test: &str, endpoints: &str, files: &[(&str, &str)], expected: &Expect) {
    let folder = project(test, endpoints, files);
    let said = in_folder(&folder, &["plan", "check", "rows"], "");
    expected.assert_eq(&said.shown_from(&folder));
    assert_eq!(said.code, 1);
    let run = in_folder(&folder, &["plan", "run", "rows", "--request", r#"{"user_id": 1}"#], "");
    let first = said.stderr.lines().next().unwrap();
    assert_eq!((run.code, run.stderr.lines().next().unwrap()), (1, first));
}

#[test]
fn endpoints_that_the_registry_does_not_have() {
    check(
        "check_endpoint",
        "[plan.endpoints.redis_defualt]\nsource = 'memory'\n",
        &[],
        &expect![[r#"
            stderr: error: FOLDER/anabranch.toml:5:17: plan.endpoints.redis_defualt: the registry has no such endpoint
            stderr:   5 | [plan.endpoints.redis_defualt]
            stderr:     |                 ^^^^^^^^^^^^^^
            stderr:   help: did you mean `redis_default`?
            stderr: FOLDER/anabranch.toml: refused, 1 error
            stderr: rows: fine
            exit 1
        "#]],
    );
}

#[test]
fn fields_with_a_typo() {
    check(
        "check_typo",
        "[plan.endpoints.redis_default]\nsorce = 'memory'\ndata = ['data.json']\n",
        &[],
        &expect![[r#"
            stderr: error: FOLDER/anabranch.toml:6:1: plan.endpoints.redis_default, sorce: there is no field `sorce`
            stderr:   6 | sorce = 'memory'
            stderr:     | ^^^^^^^^^^^^^^^^
            stderr:   help: did you mean `source`?
            exit 1
        "#]],
    );
}

#[test]
fn data_files() {
    let data = "[plan.endpoints.redis_default]\nsource = 'memory'\ndata = [\n  'missing.json',\n  'users.csv',\n  \
                'users.csv=user:{ident}',\n  'open.csv=user:{id}',\n  { file = 'odd.txt' },\n]\n";
    let files = [("users.csv", "id,country\n1,NO\n"), ("open.csv", "id,country\n1,\"NO\n"), ("odd.txt", "")];
    check(
        "check_data",
        data,
        &files,
        &expect![[r#"
            stderr: error: FOLDER/anabranch.toml:8:3: plan.endpoints.redis_default, data[0], FOLDER/missing.json: cannot be read: No such file or directory (os error 2)
            stderr:   8 |   'missing.json',
            stderr:     |   ^^^^^^^^^^^^^^
            stderr: error: FOLDER/anabranch.toml:9:3: plan.endpoints.redis_default, data[1], FOLDER/users.csv: a table needs a pattern for the keys of its rows
            stderr:   9 |   'users.csv',
            stderr:     |   ^^^^^^^^^^^
            stderr:   help: write the pattern behind the file: `users.csv=user:{id}`
            stderr: error: FOLDER/anabranch.toml:10:3: plan.endpoints.redis_default, data[2], FOLDER/users.csv, pattern `user:{ident}`: the table has no column `ident`; it has id, country
            stderr:   10 |   'users.csv=user:{ident}',
            stderr:      |   ^^^^^^^^^^^^^^^^^^^^^^^^
            stderr: error: FOLDER/anabranch.toml:11:3: plan.endpoints.redis_default, data[3], FOLDER/open.csv, line 2: a quoted cell has no closing quote
            stderr:   11 |   'open.csv=user:{id}',
            stderr:      |   ^^^^^^^^^^^^^^^^^^^^
            stderr:   help: close it with `"`, or write `""` for a quote inside of a cell
            stderr: error: FOLDER/anabranch.toml:12:3: plan.endpoints.redis_default, data[4], FOLDER/odd.txt: files that end in `.txt` are not read
            stderr:   12 |   { file = 'odd.txt' },
            stderr:      |   ^^^^^^^^^^^^^^^^^^^^
            stderr:   help: use a .json, .csv or .parquet file
            stderr: FOLDER/anabranch.toml: refused, 5 errors
            stderr: rows: fine
            exit 1
        "#]],
    );
}

#[test]
fn addresses() {
    let with_url = |url: &str| format!("[plan.endpoints.redis_default]\nsource = 'redis'\nurl = '{url}'\n");
    check(
        "check_url_scheme",
        &with_url("reddis://cache:6379"),
        &[],
        &expect![[r#"
            stderr: error: FOLDER/anabranch.toml:7:1: plan.endpoints.redis_default, url: must start with redis://, rediss://, redis-cluster://, rediss-cluster://
            exit 1
        "#]],
    );
    check(
        "check_url_port",
        &with_url("redis://cache:port"),
        &[],
        &expect![[r#"
            stderr: error: FOLDER/anabranch.toml:7:1: plan.endpoints.redis_default, url: `port` in `cache:port` is no port
            stderr: FOLDER/anabranch.toml: refused, 1 error
            stderr: rows: fine
            exit 1
        "#]],
    );
    check(
        "check_url_secret",
        &with_url("redis://me:hunter2@cache:port"),
        &[],
        &expect![[r#"
        stderr: error: FOLDER/anabranch.toml:7:1: plan.endpoints.redis_default, url: `port` in `cache:port` is no port
        stderr: FOLDER/anabranch.toml: refused, 1 error
        stderr: rows: fine
        exit 1
    "#]],
    );
    let http = "[plan.endpoints.redis_default]\nsource = 'http'\nurl = 'http://a b/'\n";
    check(
        "check_url_http",
        http,
        &[],
        &expect![[r#"
            stderr: error: FOLDER/anabranch.toml:7:1: plan.endpoints.redis_default, url: is not a URL that can be reached: invalid uri character
            stderr: FOLDER/anabranch.toml: refused, 1 error
            stderr: rows: fine
            exit 1
        "#]],
    );
}

#[test]
fn certificates() {
    let tls = "[plan.endpoints.redis_default]\nsource = 'redis'\nurl = 'rediss://cache:6380'\nauthorities = 'ca.pem'\n";
    let _ = std::fs::remove_file(scratch("check_tls_missing").join("ca.pem"));
    check(
        "check_tls_missing",
        tls,
        &[],
        &expect![[r#"
        stderr: error: FOLDER/anabranch.toml:8:1: plan.endpoints.redis_default, authorities: FOLDER/ca.pem cannot be read: No such file or directory (os error 2)
        stderr:   8 | authorities = 'ca.pem'
        stderr:     | ^^^^^^^^^^^^^^^^^^^^^^
        stderr: FOLDER/anabranch.toml: refused, 1 error
        stderr: rows: fine
        exit 1
    "#]],
    );
    check(
        "check_tls_empty",
        tls,
        &[("ca.pem", "not a certificate")],
        &expect![[r#"
        stderr: error: FOLDER/anabranch.toml:8:1: plan.endpoints.redis_default, authorities: FOLDER/ca.pem holds no certificate in PEM format
        stderr:   8 | authorities = 'ca.pem'
        stderr:     | ^^^^^^^^^^^^^^^^^^^^^^
        stderr: FOLDER/anabranch.toml: refused, 1 error
        stderr: rows: fine
        exit 1
    "#]],
    );
}

#[test]
fn a_registry_with_errors_says_where() {
    let folder = project("check_registry", "", &[]);
    let registry = folder.join("registry");
    std::fs::create_dir_all(&registry).unwrap();
    let keys = "[[key]]\nkey_id = 1\nname = \"id\"\ntype = \"int\"\nnullable = false\nallow_write = false\n\n\
                [[key]]\nkey_id = 2\nname = \"price\"\ntype = \"flaot\"\nnullabel = true\n";
    std::fs::write(registry.join("keys.toml"), keys).unwrap();
    let said = in_folder(&folder, &["plan", "check", "rows", "--registry", "registry"], "");
    expect![[r#"
        stderr: error: registry/keys.toml:11:1: key `price`, type: must be one of `int`, `float`, `string`, `bool`, `feature_bundle`, not `flaot`
        stderr:   11 | type = "flaot"
        stderr:      | ^^^^^^^^^^^^^^
        stderr: error: registry/keys.toml:10:8: key `price`, nullable: is missing; it must be true or false
        stderr:   10 | name = "price"
        stderr:      |        ^^^^^^^
        stderr: error: registry/keys.toml:12:1: key `price`, nullabel: there is no such field
        stderr:   12 | nullabel = true
        stderr:      | ^^^^^^^^^^^^^^^
        stderr:   help: did you mean `nullable`?
        stderr: 3 errors
        exit 1
    "#]].assert_eq(&said.shown_from(&folder));
}

#[test]
fn problems_of_the_project_as_json() {
    let folder = project("check_json", "[plan.endpoints.redis_defualt]\nsource = 'memory'\n", &[]);
    let said = in_folder(&folder, &["plan", "check", "rows", "--json"], "");
    expect![[r#"
        [
          {
            "errors": [
              {
                "column": 17,
                "help": "did you mean `redis_default`?",
                "line": 5,
                "place": "FOLDER/anabranch.toml:5:17",
                "what": "plan.endpoints.redis_defualt: the registry has no such endpoint",
                "width": 14
              }
            ],
            "project": "FOLDER/anabranch.toml",
            "warnings": []
          },
          {
            "errors": [],
            "plan": "rows",
            "warnings": []
          }
        ]
        exit 1
    "#]]
    .assert_eq(&said.shown_from(&folder));
}

#[test]
fn tables_with_a_pattern_behind_their_name() {
    let endpoints = "[plan.endpoints.redis_default]\nsource = 'memory'\ndata = ['users.csv=user:{id}']\n";
    let folder = project("check_pattern", endpoints, &[("users.csv", "id,country\n1,NO\n")]);
    assert_eq!(
        in_folder(&folder, &["plan", "check", "rows"], "").shown_from(&folder),
        "stderr: rows: fine\nexit 0\n"
    );
    let said =
        in_folder(&folder, &["plan", "run", "rows", "--table"], r#"{"user_id": 1, "request_id": "r"}"#);
    expect![[r#"
        id  country
        --  -------
         1  NO
        stderr: rows: 1 row for request r, 1 trip, 1 command
        exit 0
    "#]]
    .assert_eq(&said.shown_from(&folder));
}

/// A plan that reads no store has all the rows it asks for.
#[test]
fn a_plan_without_reads_needs_no_rows() {
    let folder = scratch("check_no_reads");
    let registry = patient_examples().join("registry");
    let registry = registry.to_str().unwrap();
    let made = ROWS
        .replace("core::viewer", "test::fixed_source")
        .replace(r#""endpoint": "redis_default""#, r#""row_count": 1"#);
    std::fs::write(folder.join("made.plan.json"), made).unwrap();
    std::fs::write(folder.join("read.plan.json"), ROWS).unwrap();
    // Above the target folder there may be a project file.
    let run = |plan: &str| {
        in_folder(
            &folder,
            &["plan", "run", plan, "--registry", registry, "--table"],
            r#"{"user_id": 1, "request_id": "r"}"#,
        )
    };
    expect![[r#"
        id
        --
         1
        stderr: rows: 1 row for request r, 0 trips, 0 commands
        exit 0
    "#]]
    .assert_eq(&run("made.plan.json").shown_from(&folder));
    expect![[r#"
        id
        --
         1
        stderr: warning: rows: no option and no project file says where they come from, so every store is empty (give --data FILE, --redis ADDRESS or --env NAME)
        stderr: rows: 1 row for request r, 1 trip, 1 command
        exit 0
    "#]].assert_eq(&run("read.plan.json").shown_from(&folder));
}

#[test]
fn keys_and_endpoints_by_name() {
    let plan = r#"{"schema_version": 1, "plan_name": "named", "nodes": [
  {"node_id": "viewer", "op": "core::viewer", "inputs": [], "params": {"endpoint": "redis_default"}},
  {"node_id": "scored", "op": "core::vm", "inputs": ["viewer"], "params": {"out_key": "score", "expr_id": "e"}},
  {"node_id": "top", "op": "core::topk", "inputs": ["scored"], "params": {"by": "score", "count": 1}}],
  "outputs": ["top"],
  "expr_table": {"e": {"op": "const_number", "value": 2}}}"#;
    let wrong =
        plan.replace("\"by\": \"score\"", "\"by\": \"scor\"").replace("redis_default", "redis_defalt");
    let endpoints = "[plan.endpoints.redis_default]\nsource = 'memory'\n";
    let folder = project("check_names", endpoints, &[("named.plan.json", plan), ("wrong.plan.json", &wrong)]);
    let said = in_folder(&folder, &["plan", "check", "named", "wrong"], "");
    expect![[r#"
        stderr: named: fine
        stderr: error: FOLDER/./wrong.plan.json:2:72: node `viewer` (core::viewer), endpoint: there is no endpoint `redis_defalt`
        stderr:   2 | er", "inputs": [], "params": {"endpoint": "redis_defalt"}},
        stderr:     |                               ^^^^^^^^^^^^^^^^^^^^^^^^^^
        stderr:   help: did you mean `redis_default`?
        stderr: error: FOLDER/./wrong.plan.json:4:75: node `top` (core::topk), by: there is no key `scor`
        stderr:   4 | puts": ["scored"], "params": {"by": "scor", "count": 1}}],
        stderr:     |                               ^^^^^^^^^^^^
        stderr:   help: did you mean `score`?
        stderr: wrong: refused, 2 errors
        exit 1
    "#]].assert_eq(&said.shown_from(&folder));
}

/// A plan of a stranger is loaded in little memory, whatever rows it would make.
#[test]
fn a_plan_that_is_only_checked_makes_no_rows() {
    let folder = project("check_makes_no_rows", "", &[]);
    let nodes = (0..200).map(|number| {
        let rows = 1_000_000 - number;
        format!(
            r#"{{"node_id": "n{number}", "op": "test::fixed_source", "inputs": [], "params": {{"row_count": {rows}}}}}"#
        )
    });
    let outputs = (0..200).map(|number| format!("\"n{number}\""));
    let (nodes, outputs) = (nodes.collect::<Vec<_>>().join(","), outputs.collect::<Vec<_>>().join(","));
    let plan = format!(
        r#"{{"schema_version": 1, "plan_name": "rows", "nodes": [{nodes}], "outputs": [{outputs}]}}"#
    );
    std::fs::write(folder.join("rows.plan.json"), plan).unwrap();
    // The rows would take 1.6 GB.
    let script = "ulimit -v 1000000 && exec \"$0\" plan check rows";
    let mut shell = std::process::Command::new("sh");
    let checked =
        shell.args(["-c", script, env!("CARGO_BIN_EXE_anabranch")]).current_dir(&folder).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}
