//! Ops that read from a source: their reads, and their rows.

use anabranch_rows::{Batch, Column, Rows};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::kit::{AGE, COUNTRY, Case, PARENT, SCORE, Store, case, store};

fn users() -> Store {
    store(&[
        ("user:1", json!({"country": "US", "age": 30, "ctry": "us"})),
        ("user:2", json!({"country": "CA", "language": "fr"})),
        ("user:3", json!({"age": 33})),
        ("user:7", json!({"country": "FR"})),
        ("follow:7", json!([1, 2, 3, 2])),
        ("follow:8", json!([3, 1])),
        ("recommendation:7", json!([2, 9])),
        ("media:1", json!([101, 102, 103])),
        ("media:3", json!([301])),
        ("best:7", json!([[5, 0.9], [3, 0.5]])),
        ("best:8", json!([[4, 0.75]])),
        ("feed:7:US", json!([11])),
        ("lane:fast:7", json!([21, 22])),
        ("follow:13", json!("broken")),
    ])
}

/// The same whether the source answers at once or later.
fn check(case: impl Fn() -> Case, expected: Expect) {
    expected.assert_eq(&case().store(users()).text());
    expected.assert_eq(&case().store(users().later()).text());
}

fn ids(ids: &[i64]) -> Rows {
    Rows::new(Batch::new(ids.to_vec()))
}

fn params(fanout: u32) -> Value {
    json!({"endpoint": "ep_0001", "fanout": fanout})
}

#[test]
fn the_viewer_is_one_row() {
    let viewer = || case("core::viewer", json!({"endpoint": "ep_0001"}));
    check(
        viewer,
        expect![[r#"
        read country of user:7
        7 country=FR"#]],
    );
    check(|| viewer().wanted(&[SCORE]), expect!["7"]);
}

#[test]
fn lists_are_flattened_and_their_users_read_in_one_trip() {
    let follow = || case("core::follow", params(3)).input(&ids(&[7, 9, 8]));
    check(
        follow,
        expect![[r#"
        read list to 3 of follow:7 follow:9 follow:8
        read country of user:1 user:2 user:3 user:3 user:1
        1 country=US
        2 country=CA
        3
        3
        1 country=US"#]],
    );
    check(
        || follow().wanted(&[]),
        expect![[r#"
        read list to 3 of follow:7 follow:9 follow:8
        1
        2
        3
        3
        1"#]],
    );
    check(
        || case("core::recommendation", params(1)).input(&ids(&[7])),
        expect![[r#"
        read list to 1 of recommendation:7
        read country of user:2
        2 country=CA"#]],
    );
}

#[test]
fn no_more_is_read_than_somebody_takes() {
    check(
        || case("core::follow", params(100)).input(&ids(&[7, 8])).first(2),
        expect![[r#"
        read list to 2 of follow:7 follow:8
        read country of user:1 user:2
        1 country=US
        2 country=CA"#]],
    );
}

#[test]
fn lists_of_active_rows_are_read_in_their_order() {
    let rows = ids(&[1, 2, 3]).with_active(vec![2, 0]);
    check(
        || case("core::media", params(2)).input(&rows),
        expect![[r#"
        read list to 2 of media:3 media:1
        301
        101
        102"#]],
    );
}

#[test]
fn without_rows_there_is_no_trip() {
    let none = ids(&[7, 8]).first(0);
    check(|| case("core::follow", params(3)).input(&none), expect![[""]]);
    let lookup = || case("core::lookup", json!({"endpoint": "", "key": "user:{id}", "fields": ["country"]}));
    check(|| lookup().input(&none), expect![[""]]);
    let scored = json!({"endpoint": "", "key": "best:{id}", "limit": 5, "kind": "scored", "score_key": 1001});
    check(|| case("core::fanout", scored.clone()).input(&none), expect![[""]]);
    check(|| case("core::fanout", scored.clone()).input(&ids(&[7])).first(0), expect![[""]]);
    check(|| case("core::follow", params(3)).input(&ids(&[9])), expect![[r#"read list to 3 of follow:9"#]]);
}

#[test]
fn a_source_that_fails_fails_the_node() {
    check(
        || case("core::follow", params(3)).input(&ids(&[7, 13])),
        expect![[r#"
        read list to 3 of follow:7 follow:13
        error: store refused `follow:13`: broken"#]],
    );
}

#[test]
fn lookup_adds_the_columns_that_somebody_wants() {
    let fields = json!(["age", {"name": "ctry", "key": "country"}, "language"]);
    let lookup = || case("core::lookup", json!({"endpoint": "", "key": "user:{id}", "fields": fields}));
    let rows = ids(&[1, 2, 3, 4]).with_active(vec![3, 0, 1]);
    check(
        || lookup().input(&rows),
        expect![[r#"
        read ctry,language,age of user:4 user:1 user:2
        4 language=en
        1 country=us language=en age=30
        2 language=fr"#]],
    );
    check(
        || lookup().input(&rows).wanted(&[AGE]),
        expect![[r#"
        read age of user:4 user:1 user:2
        4
        1 age=30
        2"#]],
    );
    check(
        || lookup().input(&rows).wanted(&[SCORE]),
        expect![[r#"
        4
        1
        2"#]],
    );
}

#[test]
fn lookup_replaces_a_column_only_when_told() {
    let countries = Column::texts([Some("DE"), Some("DE")]);
    let rows = Rows::new(Batch::new(vec![1, 9]).with_column(COUNTRY, countries));
    let params = json!({"endpoint": "", "key": "user:{id}", "fields": ["country"], "overwrite": true});
    check(
        || case("core::lookup", params.clone()).input(&rows),
        expect![[r#"
        read country of user:1 user:9
        1 country=US
        9"#]],
    );
}

#[test]
fn fanout_keeps_scores_and_parents() {
    let params = json!({
        "endpoint": "", "key": "best:{id}", "limit": 5, "kind": "scored", "score_key": 1001, "parent_key": 5003,
        "fields": ["age"], "fields_key": "user:{id}",
    });
    let fanout = || case("core::fanout", params.clone()).input(&ids(&[7, 8]));
    check(
        fanout,
        expect![[r#"
        read scored to 5 of best:7 best:8
        read age of user:5 user:3 user:4
        5 score=0.9 parent=7
        3 score=0.5 age=33 parent=7
        4 score=0.75 parent=8"#]],
    );
    check(
        || fanout().wanted(&[PARENT]).first(2),
        expect![[r#"
        read scored to 2 of best:7 best:8
        5 parent=7
        3 parent=7"#]],
    );
}

#[test]
fn keys_are_made_of_columns_and_parameters() {
    let countries = Column::texts([Some("US"), None]);
    let rows = Rows::new(Batch::new(vec![7, 7]).with_column(COUNTRY, countries));
    let by_country = json!({"endpoint": "", "key": "feed:{id}:{country}", "limit": 5});
    check(
        || case("core::fanout", by_country.clone()).input(&rows),
        expect![[r#"
        read list to 5 of feed:7:US -
        11"#]],
    );
    let by_param = json!({"endpoint": "", "key": "lane:{$lane}:{user_id}", "limit": 5});
    let fast = crate::value::Scalar::Text("fast".into());
    check(
        || case("core::fanout", by_param.clone()).input(&ids(&[1])).value(1, fast.clone()),
        expect![[r#"
        read list to 5 of lane:fast:7
        21
        22"#]],
    );
    let by_parent = json!({
        "endpoint": "", "key": "follow:{id}", "limit": 1, "parent_key": 5003,
        "fields": ["country"], "fields_key": "user:{parent}",
    });
    check(
        || case("core::fanout", by_parent.clone()).input(&ids(&[7])).wanted(&[COUNTRY]),
        expect![[r#"
        read list to 1 of follow:7
        read country of user:7
        1 country=FR parent=7"#]],
    );
}
