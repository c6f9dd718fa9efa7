//! `plan why`.

use expect_test::{Expect, expect};

use crate::binary::anabranch;

const VIEWER: &str = r#"{"user_id": 1}"#;

fn check(args: &[&str], request: &str, expected: Expect) {
    let args: Vec<&str> = ["plan", "why"].into_iter().chain(args.iter().copied()).collect();
    expected.assert_eq(&anabranch(&args, request).shown());
}

#[test]
fn a_row_of_the_answer() {
    check(&["feed", "2603"], VIEWER, expect![[r#""#]]);
}

#[test]
fn dropped_by_a_filter() {
    check(&["feed", "5603"], VIEWER, expect![[r#""#]]);
}

#[test]
fn dropped_for_a_parameter() {
    let muted = r#"{"user_id": 1, "param_overrides": {"muted": "^tra"}}"#;
    check(&["feed", "5601"], muted, expect![[r#""#]]);
}

#[test]
fn dropped_by_a_limit() {
    check(&["feed", "2401"], VIEWER, expect![[r#""#]]);
}

#[test]
fn others_of_its_author_came_first() {
    check(&["feed", "5604"], VIEWER, expect![[r#""#]]);
}

#[test]
fn came_twice() {
    check(&["feed", "1901"], VIEWER, expect![[r#""#]]);
}

#[test]
fn never_read() {
    check(&["feed", "999999"], VIEWER, expect![[r#""#]]);
}

#[test]
fn more_than_anybody_wanted() {
    check(&["home", "3203"], VIEWER, expect![[r#""#]]);
}

#[test]
fn never_meant_for_the_answer() {
    check(&["feed", "1"], VIEWER, expect![[r#""#]]);
}

#[test]
fn as_json() {
    let said = anabranch(&["plan", "why", "feed", "5603", "--json", "--request", VIEWER], "");
    let why: serde_json::Value = serde_json::from_str(&said.stdout).unwrap();
    assert_eq!(why["verdict"], serde_json::json!({"is": "dropped", "node": "wanted"}));
    let cause = &why["ways"][0]["end"]["cause"];
    assert_eq!((&cause["why"], &cause["keeps"][0]["needs"]), (&"predicate".into(), &"< 60".into()));
    assert!(cause["leaves"][0]["off_by"].as_f64().is_some_and(|off| (off - 5.6).abs() < 1e-9));
}

#[test]
fn lines_fit_a_terminal() {
    for row in ["2603", "5603", "2401", "1901", "999999", "1"] {
        let said = anabranch(&["plan", "why", "feed", row], VIEWER);
        let longest = said.stdout.lines().max_by_key(|line| line.chars().count()).unwrap();
        assert!(longest.chars().count() <= 100, "{longest}");
    }
}

#[test]
fn a_request_that_is_refused() {
    check(&["feed", "1"], r#"{"user_id": 0}"#, expect![[r#""#]]);
    check(&["feed", "one"], VIEWER, expect![[r#""#]]);
}
