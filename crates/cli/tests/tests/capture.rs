//! `plan capture`, `plan replay`, `plan captures`, `plan diff`.

use std::path::{Path, PathBuf};

use expect_test::expect;
use serde_json::{Value, json};

use crate::binary::{Said, anabranch, examples, scratch};

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

/// Without times, which are never the same.
fn shown(said: &Said) -> String {
    let line = |line: &str| match line.split_once(", ms") {
        Some((what, _)) => format!("{what}, ms ..."),
        None => line.to_owned(),
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
    expect![""].assert_eq(&told);
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
    let said = anabranch(&[&["plan", "capture", "feed"], &args[..]].concat(), request);
    let again = with_store(&store, &["plan", "replay", &address(&said)]);
    assert_eq!((said.code, again.code), (1, 1));
    let error = |said: &Said| said.stderr.lines().find(|line| line.starts_with("error")).unwrap().to_owned();
    assert_eq!(error(&said), error(&again));
    expect![""].assert_eq(&error(&again));
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
    expect![""].assert_eq(&shown(&diff(&["feed"], &[])));
    let fresher = changed(&folder, "fresher", |plan| {
        plan["expr_table"]["score_followed"]["a"]["value"] = json!(0.25);
        plan["nodes"][2]["params"]["fanout"] = json!(3);
    });
    expect![""].assert_eq(&shown(&diff(&["feed", &fresher], &["--top", "5"])));
    let more = changed(&folder, "more", |plan| {
        plan["nodes"][3]["params"]["key"] = json!("article:{id}");
    });
    expect![""].assert_eq(&shown(&diff(&["feed", &more], &[])));
    let said = diff(&[&fresher], &["--json", "--score", "popularity"]);
    let mut found: Value = serde_json::from_str(&said.stdout).unwrap();
    found.as_object_mut().unwrap().remove("waits").unwrap();
    expect![""].assert_eq(&found.to_string());
    expect![""].assert_eq(&shown(&diff(&["feed"], &["--score", "popularty"])));
}
