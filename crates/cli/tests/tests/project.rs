//! `anabranch.toml`, as the verbs use it.

use expect_test::{Expect, expect};

use crate::binary::{CommandOutput, in_folder, patient_examples, scratch};
use crate::recipe::timeless;

const REQUEST: &str = r#"{"user_id": 7, "request_id": "r"}"#;

/// Runs the example `new_faces` below a folder with this project file.
fn run(test: &str, endpoints: &str) -> CommandOutput {
    let folder = scratch(test);
    let path = |name: &str| patient_examples().join(name).to_str().unwrap().to_owned();
    let (registry, plans, data) = (path("registry"), path("plans"), path("data.json"));
    let text =
        format!("[plan]\nregistry = '{registry}'\nplans = '{plans}'\n{endpoints}").replace("DATA", &data);
    std::fs::write(folder.join("anabranch.toml"), text).unwrap();
    let below = folder.join("some/folder");
    std::fs::create_dir_all(&below).unwrap();
    in_folder(&below, &["plan", "run", "new_faces", "--table"], REQUEST)
}

fn check(test: &str, endpoints: &str, expected: &Expect) {
    let said = run(test, endpoints);
    let folder = scratch(test).to_str().unwrap().to_owned();
    let shown = format!("{}{}exit {}\n", said.stdout, said.stderr, said.code);
    expected.assert_eq(&shown.replace(&folder, "FOLDER"));
}

#[test]
fn a_project_is_found_from_below() {
    check(
        "found",
        "[plan.endpoints.ep_0001]\nsource = 'memory'\ndata = ['DATA']",
        &expect![[r#"
            id  country
            --  -------
            57  CA
            54  US
             9  FR
            52  US
            21  BR
            37  CA
            47  FR
            18  BR
            new_faces: 8 rows for request r, 3 trips, 53 commands
            exit 0
        "#]],
    );
}

#[test]
fn an_endpoint_may_be_told_to_fail() {
    let failing = "[plan.endpoints.redis_default]\nsource = 'memory'\ndata = ['DATA']\nfail_every = 2";
    // How long they waited decides how wide the table is.
    let narrow = |line: &str| {
        line.split_whitespace().filter(|word| !word.starts_with("--")).collect::<Vec<_>>().join(" ")
    };
    let said = timeless(&run("failing", failing).stderr);
    expect![[r#"
        new_faces: 0 rows for request r, 2 trips, 2 commands
        degraded:
        node reason fallback rows waited detail

        suggested error empty 0 TIME no connection to redis_default: trip 4 was told to fail
        friends error empty 0 TIME no connection to redis_default: trip 2 was told to fail"#]]
    .assert_eq(&said.lines().map(narrow).collect::<Vec<_>>().join("\n"));
}

#[test]
fn what_is_wrong_has_its_place() {
    check(
        "unknown",
        "[plan.endpoints.redis_defalt]\nsource = 'memory'",
        &expect![[r#"
            error: FOLDER/anabranch.toml:4:17: plan.endpoints.redis_defalt: the registry has no such endpoint
              4 | [plan.endpoints.redis_defalt]
                |                 ^^^^^^^^^^^^^
              help: did you mean `redis_default`?
            exit 1
        "#]],
    );
    check(
        "no_data",
        "[plan.endpoints.redis_default]\nsource = 'memory'\ndata = ['none.json', 'a.txt']",
        &expect![[r#"
            error: FOLDER/anabranch.toml:6:9: plan.endpoints.redis_default, data[0], FOLDER/none.json: cannot be read: No such file or directory (os error 2)
              6 | data = ['none.json', 'a.txt']
                |         ^^^^^^^^^^^
            error: FOLDER/anabranch.toml:6:22: plan.endpoints.redis_default, data[1], FOLDER/a.txt: cannot be read: No such file or directory (os error 2)
              6 | data = ['none.json', 'a.txt']
                |                      ^^^^^^^
            2 errors
            exit 1
        "#]],
    );
    check(
        "unencrypted",
        "[plan.endpoints.redis_default]\nsource = 'redis'\nauthorities = 'anabranch.toml'",
        &expect![[r#"
            error: FOLDER/anabranch.toml:6:1: plan.endpoints.redis_default, authorities: certificates are named, but the connection is not encrypted
              6 | authorities = 'anabranch.toml'
                | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
              help: write rediss:// in `url`
            exit 1
        "#]],
    );
    check(
        "no_url",
        "[plan.endpoints.redis_default]\nsource = 'redis'\nurl = 'redis://host:none'",
        &expect![[r#"
            error: FOLDER/anabranch.toml:6:1: plan.endpoints.redis_default, url: `none` in `host:none` is no port
            exit 1
        "#]],
    );
    check(
        "encrypted",
        "[plan.endpoints.redis_default]\nsource = 'http'\nurl = 'https://host'",
        &expect![[r#"
            error: FOLDER/anabranch.toml:6:1: plan.endpoints.redis_default, url: an HTTP endpoint is reached without encryption (write http://, or put a proxy in between)
            exit 1
        "#]],
    );
}
