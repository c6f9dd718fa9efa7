//! `plan why`.

use expect_test::{Expect, expect};

use crate::binary::{anabranch, scratch};

const VIEWER: &str = r#"{"user_id": 1}"#;

fn check(args: &[&str], request: &str, expected: &Expect) {
    let args: Vec<&str> = ["plan", "why"].into_iter().chain(args.iter().copied()).collect();
    expected.assert_eq(&anabranch(&args, request).shown());
}

#[test]
fn a_row_of_the_answer() {
    check(
        &["feed", "2603"],
        VIEWER,
        &expect![[r#"
        row 2603 is in the answer of plan feed, at place 2
          place 2 of 10 in page
          ahead of row 1904 by 0.9455: score 5.5447 against 4.5992

        how it got there
          posts    media        on media:26 at place 2 of 4, through row 26 of followed; place 26 of 52
          details  lookup       likes 135; age_hours 9.2; author 26; topic "food";
                                title "A pot of slow beans"
          loved    vm           popularity 4.9127 = log(1 + coalesce(likes, 0)); where likes 135
          score    vm           score 5.5447 = 1 + (popularity - $freshness * coalesce(age_hours, 100));
                                where popularity 4.9127, $freshness 0.04, age_hours 9.2
          all      union        place 26 of 66
          wanted   filter       place 20 of 55
          ranked   sort         place 2 of 55 by score desc (5.5447)
          diverse  group_limit  place 2 of 39
          page     take         place 2 of 10
        exit 0
    "#]],
    );
}

#[test]
fn dropped_by_a_filter() {
    check(
        &["feed", "5603"],
        VIEWER,
        &expect![[r#"
        row 5603 is not in the answer of plan feed: wanted dropped it
          wanted (filter) keeps rows with age_hours < 60 and not regex(topic, $muted, "i")
            NO  age_hours < 60: age_hours 65.6, off by 5.6
            ok  not (regex(topic, $muted, "i")): topic "music", $muted "^$"
          it would have stayed with age_hours < 60 (it is 65.6)

        how it got there
          posts    media   on media:56 at place 4 of 4, through row 56 of followed; place 12 of 52
          details  lookup  likes 6; age_hours 65.6; author 56; topic "music"; title "Songs for long trains"
          loved    vm      popularity 1.9459 = log(1 + coalesce(likes, 0)); where likes 6
          score    vm      score 0.3219 = 1 + (popularity - $freshness * coalesce(age_hours, 100));
                           where popularity 1.9459, $freshness 0.04, age_hours 65.6
          all      union   place 12 of 66
        exit 0
    "#]],
    );
}

#[test]
fn dropped_for_a_parameter() {
    let muted = r#"{"user_id": 1, "param_overrides": {"muted": "^tra"}}"#;
    check(
        &["feed", "5601"],
        muted,
        &expect![[r#"
        row 5601 is not in the answer of plan feed: wanted dropped it
          wanted (filter) keeps rows with age_hours < 60 and not regex(topic, $muted, "i")
            ok  age_hours < 60: age_hours 12
            NO  not (regex(topic, $muted, "i")): topic "travel", $muted "^tra"
          it would have stayed with topic not matching "^tra" (it is "travel")

        how it got there
          posts    media   on media:56 at place 2 of 4, through row 56 of followed; place 10 of 52
          details  lookup  likes 731; age_hours 12; author 56; topic "travel";
                           title "Night train to the coast"
          loved    vm      popularity 6.5958 = log(1 + coalesce(likes, 0)); where likes 731
          score    vm      score 7.1158 = 1 + (popularity - $freshness * coalesce(age_hours, 100));
                           where popularity 6.5958, $freshness 0.04, age_hours 12
          all      union   place 10 of 66
        exit 0
    "#]],
    );
}

#[test]
fn dropped_by_a_limit() {
    check(
        &["feed", "2401"],
        VIEWER,
        &expect![[r#"
            row 2401 is not in the answer of plan feed: page dropped it

            way 1 of 2
              page (take) keeps 10; it was at place 23, 13 places too late
              behind row 2902, the last to stay, by 1.0204: score 2.5122 against 3.5326
              it would have stayed with a limit of 23, or with score > 3.5326 (it is 2.5122)

            how it got there
              posts    media        on media:24 at place 1 of 4, through row 24 of followed; place 1 of 52
              details  lookup       likes 27; age_hours 45.5; author 24; topic "food";
                                    title "A pot of slow beans"
              loved    vm           popularity 3.3322 = log(1 + coalesce(likes, 0)); where likes 27
              score    vm           score 2.5122 = 1 + (popularity - $freshness * coalesce(age_hours, 100));
                                    where popularity 3.3322, $freshness 0.04, age_hours 45.5
              all      union        place 1 of 66
              wanted   filter       place 1 of 55
              ranked   sort         place 26 of 55 by score desc (2.5122)
              diverse  group_limit  place 23 of 39

            way 2 of 2
              all (union) keeps one row of each id
              of id 2401 it keeps row 2401 at place 1 of score

            how it got there
              more_posts    media    on media:24 at place 1 of 2, through row 24 of suggested; place 11 of 20
              more_details  lookup   likes 27; age_hours 45.5; author 24; topic "food";
                                     title "A pot of slow beans"
              also_loved    vm       popularity 3.3322 = log(1 + coalesce(likes, 0)); where likes 27
              also_score    vm       score 1.5122 = popularity - $freshness * coalesce(age_hours, 100);
                                     where popularity 3.3322, $freshness 0.04, age_hours 45.5
              suggestions   timeout  place 11 of 20
            exit 0
        "#]],
    );
}

#[test]
fn others_of_its_author_came_first() {
    check(
        &["feed", "5604"],
        VIEWER,
        &expect![[r#"
        row 5604 is not in the answer of plan feed: diverse dropped it
          diverse (group_limit) keeps 2 of each author; it was number 3 of author 56
          in its stead: rows 5601, 5602
          it would have stayed with a limit of 3, or with another author

        how it got there
          posts    media   on media:56 at place 1 of 4, through row 56 of followed; place 9 of 52
          details  lookup  likes 10; age_hours 1.1; author 56; topic "food"; title "Pickles for beginners"
          loved    vm      popularity 2.3979 = log(1 + coalesce(likes, 0)); where likes 10
          score    vm      score 3.3539 = 1 + (popularity - $freshness * coalesce(age_hours, 100));
                           where popularity 2.3979, $freshness 0.04, age_hours 1.1
          all      union   place 9 of 66
          wanted   filter  place 7 of 55
          ranked   sort    place 13 of 55 by score desc (3.3539)
        exit 0
    "#]],
    );
}

#[test]
fn came_twice() {
    check(
        &["feed", "1901"],
        VIEWER,
        &expect![[r#"
            row 1901 is not in the answer of plan feed: wanted dropped it

            way 1 of 2
              wanted (filter) keeps rows with age_hours < 60 and not regex(topic, $muted, "i")
                NO  age_hours < 60: age_hours 69.1, off by 9.1
                ok  not (regex(topic, $muted, "i")): topic "rivers", $muted "^$"
              it would have stayed with age_hours < 60 (it is 69.1)

            how it got there
              posts    media   on media:19 at place 2 of 4, through row 19 of followed; place 18 of 52
              details  lookup  likes 15; age_hours 69.1; author 19; topic "rivers";
                               title "Oxbow lakes in spring"
              loved    vm      popularity 2.7726 = log(1 + coalesce(likes, 0)); where likes 15
              score    vm      score 1.0086 = 1 + (popularity - $freshness * coalesce(age_hours, 100));
                               where popularity 2.7726, $freshness 0.04, age_hours 69.1
              all      union   place 18 of 66

            way 2 of 2
              all (union) keeps one row of each id
              of id 1901 it keeps row 1901 at place 18 of score

            how it got there
              more_posts    media    on media:19 at place 2 of 2, through row 19 of suggested; place 10 of 20
              more_details  lookup   likes 15; age_hours 69.1; author 19; topic "rivers";
                                     title "Oxbow lakes in spring"
              also_loved    vm       popularity 2.7726 = log(1 + coalesce(likes, 0)); where likes 15
              also_score    vm       score 0.0086 = popularity - $freshness * coalesce(age_hours, 100);
                                     where popularity 2.7726, $freshness 0.04, age_hours 69.1
              suggestions   timeout  place 10 of 20
            exit 0
        "#]],
    );
}

#[test]
fn never_read() {
    check(
        &["feed", "999999"],
        VIEWER,
        &expect![[r#"
            row 999999 is not in the answer of plan feed: no node brought it

            nodes that bring rows, and did not bring it
              viewer      viewer          1 row
              followed    follow          13 rows; 1 list follow:{id}; read to the end
              posts       media           52 rows; 13 lists media:{id};
                                          13 full at the limit of 4, more may be on them
              suggested   recommendation  10 rows; 1 list recommendation:{id};
                                          1 full at the limit of 10, more may be on them
              more_posts  media           20 rows; 10 lists media:{id};
                                          10 full at the limit of 2, more may be on them
            exit 0
        "#]],
    );
}

#[test]
fn more_than_anybody_wanted() {
    check(
        &["home", "5302"],
        VIEWER,
        &expect![[r#"
            row 5302 is not in the answer of plan home: no node brought it

            nodes that bring rows, and did not bring it
              viewer     viewer          1 row
              followed   follow          5 rows; 1 list follow:{id};
                                         1 full at the limit of 5, more may be on them
              suggested  recommendation  5 rows; 1 list recommendation:{id};
                                         1 full at the limit of 5, more may be on them
              posts      media           12 rows; 9 lists media:{id};
                                         9 full at the limit of 2, more may be on them;
                                         only the first 12 are wanted by page;
                                         it was on media:53 at place 1 of 2, through row 53 of people, behind
                                         those
            exit 0
        "#]],
    );
}

#[test]
fn never_meant_for_the_answer() {
    check(
        &["feed", "1"],
        VIEWER,
        &expect![[r#"
        row 1 is not in the answer of plan feed: followed, suggested read other rows through it
          its last readers are followed, suggested, whose rows have other ids

        how it got there
          viewer  viewer  place 1 of 1
        exit 0
    "#]],
    );
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
    check(
        &["feed", "1"],
        r#"{"user_id": 0}"#,
        &expect![[r#"
            {"error":"Invalid request","detail":"`user_id` must be a whole number from 1 to 9223372036854775807, or a string of at most 256 bytes, not 0"}
            exit 1
        "#]],
    );
    check(
        &["feed", "one"],
        VIEWER,
        &expect![[r#"
        stderr: error: invalid value 'one' for '<ROW>': invalid digit found in string
        stderr:
        stderr: For more information, try '--help'.
        exit 2
    "#]],
    );
}

/// A request can turn a parameter; the column it cannot.
#[test]
fn the_advice_names_the_parameter_that_can_be_turned() {
    let folder = scratch("why_parameter");
    let plan = r#"{"schema_version": 1, "plan_name": "liked", "outputs": ["liked"], "nodes": [
        {"node_id": "viewer", "op": "core::viewer", "inputs": [], "params": {"endpoint": "redis_default"}},
        {"node_id": "followed", "op": "core::follow", "inputs": ["viewer"], "params": {"endpoint": "redis_default", "fanout": 9}},
        {"node_id": "posts", "op": "core::media", "inputs": ["followed"], "params": {"endpoint": "redis_default", "fanout": 9}},
        {"node_id": "details", "op": "core::lookup", "inputs": ["posts"],
         "params": {"endpoint": "redis_default", "key": "post:{id}", "fields": ["likes"]}},
        {"node_id": "liked", "op": "core::filter", "inputs": ["details"], "params": {"pred_id": "p"}}],
        "pred_table": {"p": {"op": "cmp", "cmp": ">=", "a": {"op": "key_ref", "key": "likes"},
                             "b": {"op": "param_ref", "param": "weight"}}}}"#;
    let file = folder.join("liked.plan.json");
    std::fs::write(&file, plan).unwrap();
    let request = r#"{"user_id": 1, "param_overrides": {"weight": 1000000}}"#;
    let said = anabranch(&["plan", "why", file.to_str().unwrap(), "5603", "--request", request], "");
    let advice = said.stdout.lines().find(|line| line.contains("it would have stayed")).unwrap_or_default();
    expect!["  it would have stayed with likes >= 1000000 (it is 6), or with $weight <= 6"].assert_eq(advice);
}
