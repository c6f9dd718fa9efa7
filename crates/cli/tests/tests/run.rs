//! `plan run` on the examples.

use expect_test::{Expect, expect};

use crate::binary::{anabranch, examples, in_folder, patient_examples, root, scratch};

const REQUEST: &str = r#"{"user_id": 7, "request_id": "r1"}"#;

fn check(plan: &str, request: &str, expected: &Expect) {
    let said = anabranch(&["plan", "run", plan, "--table"], request);
    expected.assert_eq(&said.shown());
}

#[test]
fn the_examples_answer_posts() {
    check(
        "feed",
        REQUEST,
        &expect![[r#"
          id  likes  age_hours  author   score  popularity  topic    title
        ----  -----  ---------  ------  ------  ----------  -------  --------------------------
        1301     51       13.2      13  4.4232      3.9512  rivers   Where the delta begins
        4304     51         33      43  3.6312      3.9512  travel   The border cafe
        1302     28       18.8      13  3.6153      3.3673  science  Counting stars badly
        5502     13        9.3      55  3.2671      2.6391  food     Pickles for beginners
        5904      9        1.2      59  3.2546      2.3026  food     Pickles for beginners
        4202      9          5      42  3.1026      2.3026  science  A kinder battery
        4303     14       18.3      43  2.9761      2.7081  travel   The border cafe
        4203     26       36.4      42  2.8398      3.2958  rivers   A braided river from above
        2504      7        6.7      25  2.8114      2.0794  music    Songs for long trains
        5902     20         33      59  2.7245      3.0445  food     Five ways with lentils
        stderr: feed: 10 rows for request r1, 6 trips, 67 commands
        exit 0
    "#]],
    );
    check(
        "trending",
        REQUEST,
        &expect![[r#"
          id  likes  age_hours  score  topic    title
        ----  -----  ---------  -----  -------  --------------------------
         801    554        2.2  5.996  travel   Maps I trust
        4101     27         14   0.99  science  Why bees turn
        5303    133       42.7  0.976  travel   Maps I trust
         304     91       47.2  0.966  rivers   A braided river from above
        4904      6       18.9  0.682  science  Counting stars badly
        stderr: trending: 5 rows for request r1, 3 trips, 51 commands
        exit 0
    "#]],
    );
}

#[test]
fn the_examples_answer_people() {
    check(
        "new_faces",
        REQUEST,
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
            stderr: new_faces: 8 rows for request r1, 3 trips, 53 commands
            exit 0
        "#]],
    );
    check(
        "home",
        REQUEST,
        &expect![[r#"
          id
        ----
        1303
        1304
        4202
        4201
        2504
        2502
        5901
        5902
        4303
        4302
        4102
        4103
        stderr: home: 12 rows for request r1, 3 trips, 12 commands
        exit 0
    "#]],
    );
}

#[test]
fn one_side_of_an_if_runs() {
    let explore = |explore: bool| {
        let request =
            format!(r#"{{"user_id": 7, "request_id": "r", "param_overrides": {{"explore": {explore}}}}}"#);
        let said = anabranch(&["plan", "run", "home", "--table"], &request);
        said.stderr
    };
    expect![[r#"
        home: 12 rows for request r, 3 trips, 12 commands
        home: 10 rows for request r, 2 trips, 6 commands
    "#]]
    .assert_eq(&format!("{}{}", explore(true), explore(false)));
}

#[test]
fn the_answer_is_one_line_of_json() {
    let said = anabranch(&["plan", "run", "trending"], REQUEST);
    let generated = said.answer()["engine_request_id"].as_str().unwrap().to_owned();
    expect![[r#"
        {"request_id":"r1","engine_request_id":"GENERATED","candidates":[{"id":801,"fields":{"age_hours":2.2,"score":5.996,"topic":"travel","title":"Maps I trust","likes":554}},{"id":4101,"fields":{"age_hours":14.0,"score":0.99,"topic":"science","title":"Why bees turn","likes":27}},{"id":5303,"fields":{"age_hours":42.7,"score":0.976,"topic":"travel","title":"Maps I trust","likes":133}},{"id":304,"fields":{"age_hours":47.2,"score":0.966,"topic":"rivers","title":"A braided river from above","likes":91}},{"id":4904,"fields":{"age_hours":18.9,"score":0.6819999999999999,"topic":"science","title":"Counting stars badly","likes":6}}],"ledger":[]}
    "#]].assert_eq(&said.stdout.replace(&generated, "GENERATED"));
    assert_eq!(said.stderr, "");
}

#[test]
fn a_file_needs_no_project() {
    let examples = patient_examples();
    let path = |name: &str| examples.join(name).to_str().unwrap().to_owned();
    let (plan, registry, data) = (path("plans/feed.plan.json"), path("registry"), path("data.json"));
    let args = ["plan", "run", &plan, "--registry", &registry, "--data", &data];
    let by_file = in_folder(&scratch("a_file"), &args, REQUEST);
    assert_eq!(by_file.ids(), anabranch(&["plan", "run", "feed"], REQUEST).ids());
    let sequential: Vec<&str> =
        args.iter().copied().chain(["--sequential", "--inline-threshold", "0"]).collect();
    assert_eq!(by_file.ids(), in_folder(&root(), &sequential, REQUEST).ids());
}

#[test]
fn a_request_may_be_an_option() {
    let said = anabranch(&["plan", "run", "new_faces", "--request", r#"{"user_id": "7"}"#], "");
    assert_eq!(said.ids(), anabranch(&["plan", "run", "new_faces"], REQUEST).ids());
}

#[test]
fn a_bad_request_is_answered_on_stdout() {
    let check = |request: &str, expected: Expect| {
        expected.assert_eq(&anabranch(&["plan", "run", "feed"], request).shown());
    };
    check(
        "{",
        expect![[r#"
        {"error":"Invalid JSON input","detail":"line 1, column 1: EOF while parsing an object"}
        exit 1
    "#]],
    );
    check(
        "{}",
        expect![[r#"
        {"error":"Invalid request","detail":"`user_id` is missing"}
        exit 1
    "#]],
    );
    check(
        r#"{"user_id": 1, "param_overrides": {"freshnes": 1, "explore": 3}}"#,
        expect![[r#"
        {"error":"Invalid param_overrides","detail":"`explore` must be a bool, not 3; there is no parameter `freshnes` (did you mean `freshness`?)"}
        exit 1
    "#]],
    );
}

#[test]
fn without_rows_there_is_a_warning() {
    let examples = patient_examples();
    let (plan, registry) = (examples.join("plans/new_faces.plan.json"), examples.join("registry"));
    let args = ["plan", "run", plan.to_str().unwrap(), "--registry", registry.to_str().unwrap(), "--table"];
    expect![[r#"
        id
        --
        stderr: warning: rows: no option and no project file says where they come from, so every store is empty (give --data FILE, --redis ADDRESS or --env NAME)
        stderr: new_faces: 0 rows for request r1, 1 trip, 1 command
        exit 0
    "#]].assert_eq(&in_folder(&scratch("no_rows"), &args, REQUEST).shown());
}

#[test]
fn what_goes_wrong_says_where() {
    let check = |args: &[&str], expected: Expect| {
        let args: Vec<&str> = ["plan", "run"].iter().chain(args).copied().collect();
        expected.assert_eq(&anabranch(&args, REQUEST).shown());
    };
    check(
        &["fed"],
        expect![[r#"
        stderr: error: no plan `fed` in ROOT/examples/plans/plans; did you mean `feed`?
        exit 1
    "#]],
    );
    check(
        &["nothing_like_it"],
        expect![[r#"
            stderr: error: no plan `nothing_like_it` in ROOT/examples/plans/plans; there are: complex_dag, diamond, feed, home, mixed_pipeline, new_faces, parallel_fanout, simple_viewer, trending, viewer_filter
            exit 1
        "#]],
    );
    check(
        &["missing.plan.json"],
        expect![[r#"
        stderr: error: cannot read missing.plan.json: No such file or directory (os error 2)
        exit 1
    "#]],
    );
    check(
        &["feed", "--data", "missing.json"],
        expect![[r#"
        stderr: error: missing.json: cannot be read: No such file or directory (os error 2)
        exit 1
    "#]],
    );
    check(
        &["feed", "--trace", "here.txt"],
        expect![[r#"
        stderr: error: --trace here.txt: the file must end in .html, .svg or .json
        exit 2
    "#]],
    );
    check(
        &["home", "--redis", "127.0.0.1:1", "--env", "dev"],
        expect![[r#"
            stderr: error: node `followed` (core::follow): no connection to redis_default: 127.0.0.1:1: Connection refused (os error 111)
            exit 1
        "#]],
    );
    check(
        &["feed", "--deadline-ms", "0"],
        expect![[r#"
            stderr: error: invalid value '0' for '--deadline-ms <N>': must be a whole number from 1 to 86400000
            stderr:
            stderr: For more information, try '--help'.
            exit 2
        "#]],
    );
    let said = in_folder(&scratch("no_registry"), &["plan", "run", "feed"], REQUEST);
    expect![[r#"
        stderr: error: registry: there is no registry folder and no project file anabranch.toml (give the folder that holds keys.toml: --registry DIR)
        exit 1
    "#]].assert_eq(&said.shown());
}

#[test]
fn traces_are_files_of_three_kinds() {
    let folder = scratch("traces");
    for (name, start) in [("t.html", "<!doctype html>"), ("t.svg", "<svg"), ("t.json", "{")] {
        let file = folder.join(name);
        let _ = std::fs::remove_file(&file);
        let said = anabranch(&["plan", "run", "feed", "--trace", file.to_str().unwrap()], REQUEST);
        assert_eq!(said.code, 0, "{}", said.shown());
        let content = std::fs::read_to_string(&file).unwrap();
        assert!(content.to_lowercase().starts_with(start), "{name}: {}", &content[..60]);
        assert!(content.contains("viewer"), "{name} names stages");
    }
}

#[test]
fn a_request_for_another_plan_is_told() {
    let said = anabranch(&["plan", "run", "home"], r#"{"user_id": 7, "plan": "feed"}"#);
    expect![[r#"
        warning: request: it asks for plan `feed`; this is `home`
    "#]]
    .assert_eq(&said.stderr);
    assert_eq!(said.ids().len(), 12);
}

#[test]
fn a_name_without_a_folder_to_look_in() {
    let (folder, registry) = (scratch("nowhere"), examples().join("registry"));
    let said = in_folder(&folder, &["plan", "check", "feed", "--registry", registry.to_str().unwrap()], "");
    expect![[r#"
        stderr: error: there is no file feed, and no plan folder to look for the name in; give --plans DIR, or write one into anabranch.toml
        exit 1
    "#]].assert_eq(&said.shown());
}

#[test]
fn rows_by_output() {
    let run = |args: &[&str]| -> serde_json::Value {
        let said = anabranch(&[&["plan", "run", "feed"], args].concat(), REQUEST);
        assert_eq!(said.code, 0, "{}", said.stderr);
        serde_json::from_str(&said.stdout).unwrap()
    };
    let (plain, by_output) = (run(&[]), run(&["--by-output"]));
    let outputs: Vec<_> = by_output["outputs"].as_object().unwrap().values().collect();
    assert_eq!(outputs, [&plain["candidates"]]);
    assert!(by_output.get("candidates").is_none());
}
