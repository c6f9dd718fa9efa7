//! `plan capture`, `plan replay`, `plan captures`, `plan diff`.

use std::path::{Path, PathBuf};

use expect_test::expect;
use serde_json::{Value, json};

use crate::binary::{Said, anabranch, examples, in_folder, scratch};

/// A folder for a store that is not there yet.
fn fresh(test: &str) -> PathBuf {
    let folder = scratch(test);
    std::fs::remove_dir_all(&folder).unwrap();
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn capture(store: &Path, plan: &str, user: u64, set: &str) -> Said {
    let request = json!({"user_id": user}).to_string();
    let store = store.to_str().unwrap();
    anabranch(&["plan", "capture", plan, "--store", store, "--set", set], &request)
}

fn address(said: &Said) -> String {
    said.stderr.lines().find_map(|line| line.strip_prefix("captured: ")).unwrap().to_owned()
}

fn with_store(store: &Path, args: &[&str]) -> Said {
    anabranch(&[args, &["--store", store.to_str().unwrap()]].concat(), "")
}

/// The example feed, changed, in a file.
fn changed(folder: &Path, name: &str, change: impl FnOnce(&mut Value)) -> String {
    let text = std::fs::read_to_string(examples().join("plans/feed.plan.json")).unwrap();
    let mut plan: Value = serde_json::from_str(&text).unwrap();
    plan["plan_name"] = json!(name);
    change(&mut plan);
    let file = folder.join(format!("{name}.plan.json"));
    std::fs::write(&file, plan.to_string()).unwrap();
    file.to_str().unwrap().to_owned()
}

/// Without times, which are never the same, nor the widths of columns, which follow from them.
fn shown(said: &Said) -> String {
    let line = |line: &str| match line.split_once(", ms") {
        Some((what, _)) => format!("{what}, ms ..."),
        None if line.starts_with("---") => "---".to_owned(),
        None => line.split_whitespace().collect::<Vec<_>>().join(" "),
    };
    said.shown().lines().map(|text| line(text) + "\n").collect()
}

#[test]
fn a_captured_request_is_answered_again() {
    let store = fresh("capture_replay").join("store");
    let said = capture(&store, "feed", 7, "monday");
    let address = address(&said);
    assert_eq!(said.ids().len(), 10);
    let again = with_store(&store, &["plan", "replay", &address]);
    assert_eq!((again.stdout, again.stderr, again.code), (said.stdout, String::new(), 0));
    let unknown = "0".repeat(64);
    let mut told = with_store(&store, &["plan", "replay", &unknown]).shown();
    told += &with_store(&store, &["plan", "replay", "abc"]).shown();
    told += &anabranch(&["plan", "replay", &unknown, "--store", "nowhere"], "").shown();
    told += &with_store(&store, &["plan", "captures"]).shown();
    told += &with_store(&store, &["plan", "captures", "--set", "sunday"]).shown();
    expect![[r#"
        stderr: error: 0000000000000000000000000000000000000000000000000000000000000000 is no capture of this store
        exit 1
        stderr: error: invalid value 'abc' for '<ADDRESS>': an address has 64 hex digits, this has 3
        stderr:
        stderr: For more information, try '--help'.
        exit 2
        stderr: error: there is no store in nowhere
        exit 1
        set     captures
        ------  --------
        monday         1
        exit 0
        stderr: error: there is no set of captures `sunday`; there are: monday
        exit 1
    "#]].assert_eq(&told);
    let listed = with_store(&store, &["plan", "captures", "--set", "monday"]).shown();
    assert!(listed.contains(&address) && listed.contains("feed"), "{listed}");
    assert!(listed.contains("answered"), "{listed}");
}

#[test]
fn a_failed_request_fails_the_same_again() {
    let store = fresh("capture_failed").join("store");
    let data = fresh("capture_failed_data").join("data.json");
    std::fs::write(&data, r#"{"lists": {"user:1": [1], "follow:1": ["x"]}}"#).unwrap();
    let args = ["--data", data.to_str().unwrap(), "--store", store.to_str().unwrap()];
    let request = r#"{"user_id": 1}"#;
    let said = anabranch(&[&["plan", "capture", "home"], &args[..]].concat(), request);
    let again = with_store(&store, &["plan", "replay", &address(&said)]);
    assert_eq!((said.code, again.code), (1, 1));
    let error = |said: &Said| said.stderr.lines().find(|line| line.starts_with("error")).unwrap().to_owned();
    assert_eq!(error(&said), error(&again));
    expect![[r#"error: node `followed` (follow): ep_0001 answered `LRANGE follow:1` with the item "x", not an id (a 64-bit integer)"#]].assert_eq(&error(&again));
}

#[test]
fn plans_are_compared_on_captures() {
    let folder = fresh("capture_diff");
    let store = folder.join("store");
    for user in 1..=8 {
        assert_eq!(capture(&store, "feed", user, "week").code, 0);
    }
    let diff = |plans: &[&str], more: &[&str]| {
        let args = [&["plan", "diff"], plans, &["--captures", "week"], more].concat();
        with_store(&store, &args)
    };
    expect![[r#"
        8 captures compared, 0 not comparable
        top 10: changed for 0.0% of the requests
        a request: 0.00 rows entered, 0.00 left
        a row that stays moves 0.00 places
        its `score` shifts by 0.0000, at most 0.0000
        as captured feed
        ---
        trips a request 6.00 6.00
        waits p50, ms ...
        waits p99, ms ...
        exit 0
    "#]]
    .assert_eq(&shown(&diff(&["feed"], &[])));
    let fresher = changed(&folder, "fresher", |plan| {
        plan["expr_table"]["score_followed"]["a"]["value"] = json!(0.25);
        plan["nodes"][2]["params"]["fanout"] = json!(3);
    });
    expect![[r#"
        8 captures compared, 0 not comparable
        top 5: changed for 100.0% of the requests
        a request: 1.75 rows entered, 1.75 left
        a row that stays moves 0.69 places
        its `score` shifts by 0.6346, at most 0.7500
        feed fresher
        ---
        trips a request 6.00 6.00
        waits p50, ms ...
        waits p99, ms ...
        exit 0
    "#]]
    .assert_eq(&shown(&diff(&["feed", &fresher], &["--top", "5"])));
    let more = changed(&folder, "more", |plan| {
        plan["nodes"][3]["params"]["key"] = json!("article:{id}");
    });
    expect![[r#"
        0 captures compared, 8 not comparable
        8: the second plan: node `details` reads what was not captured: ep_0001, `HMGET article:...`
        stderr: error: none of the captures could be compared
        exit 1
    "#]]
    .assert_eq(&shown(&diff(&["feed", &more], &[])));
    let said = diff(&[&fresher], &["--json", "--score", "popularity"]);
    let mut found: Value = serde_json::from_str(&said.stdout).unwrap();
    found.as_object_mut().unwrap().remove("waits").unwrap();
    expect![[r#"{"captures":{"compared":8,"not_comparable":0,"reasons":[]},"changed":1.0,"entered":2.375,"left":2.375,"rank_move":1.3442622950819672,"score":{"key":"popularity","mean":0.0,"most":0.0},"top":10,"trips":{"after":6.0,"before":6.0}}"#]].assert_eq(&found.to_string());
    expect![[r#"
        stderr: error: --score popularty: there is no key of this name
        exit 2
    "#]]
    .assert_eq(&shown(&diff(&["feed"], &["--score", "popularty"])));
}

#[test]
fn requests_of_a_load_are_captured_as_the_project_says() {
    let folder = fresh("capture_bench");
    let example = examples();
    let path = |name: &str| example.join(name).to_str().unwrap().to_owned();
    let project = |captures: &str| {
        let text = format!(
            "[plan]\nregistry = '{}'\nplans = '{}'\n[plan.endpoints.feed]\nsource = 'memory'\ndata = ['{}']\n{captures}",
            path("registry"),
            path("plans"),
            path("data.json"),
        );
        std::fs::write(folder.join("anabranch.toml"), text).unwrap();
    };
    let bench = || {
        in_folder(&folder, &["plan", "bench", "feed", "--requests", "40", "--warmup", "0", "--capture"], "")
    };
    project("");
    expect![[r#"
        stderr: error: captures: no project file says which requests are captured (write a table [plan.captures] with a `store` into anabranch.toml)
        exit 1
    "#]].assert_eq(&bench().shown_from(&folder));
    project(
        "[plan.captures]\nstore = 'store'\none_in = 1\nper_second = 5\nmost_waiting = 100\nmasked_keys = ['title']\n",
    );
    let said = bench();
    assert_eq!(said.code, 0, "{}", said.shown());
    assert!(said.stderr.contains("5 captures, 35 dropped (rate)"), "{}", said.stderr);
    let listed = with_store(&folder.join("store"), &["plan", "captures", "--set", "live"]);
    assert_eq!(listed.stdout.matches("answered, masked").count(), 5, "{}", listed.stdout);
    let address = listed.stdout.lines().last().unwrap().split_whitespace().next().unwrap().to_owned();
    let replayed = with_store(&folder.join("store"), &["plan", "replay", &address]);
    assert!(replayed.stdout.contains("\"title\":\"~"), "{}", replayed.shown());
    assert_eq!(replayed.code, 0);
}
