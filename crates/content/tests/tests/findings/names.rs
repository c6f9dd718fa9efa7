//! Names: a name that is set to its own value keeps its history, and a caller can say which value it expects.

use anabranch_content::{Class, Config, Error, Store};

#[tokio::test]
async fn a_name_set_to_its_own_value_keeps_its_history() {
    let store = Store::in_memory(Config { history_kept: 3, ..Config::default() }).unwrap();
    let [first, second] = [
        store.put("first", Class::Acknowledged).await.unwrap().address,
        store.put("second", Class::Acknowledged).await.unwrap().address,
    ];
    assert!(store.name("report", Some(first)).await.unwrap());
    assert!(store.name("report", Some(second)).await.unwrap());
    for _ in 0..16 {
        assert!(!store.name("report", Some(second)).await.unwrap());
    }
    let history = store.history("report").await.unwrap();
    assert_eq!(history.iter().map(|it| it.address).collect::<Vec<_>>(), [Some(first), Some(second)]);
    assert!(!store.name("never set", None).await.unwrap());
    assert!(store.history("never set").await.unwrap().is_empty());
}

#[tokio::test]
async fn a_name_changes_only_from_the_expected_value() {
    let store = Store::in_memory(Config::default()).unwrap();
    let [first, second] = [
        store.put("first", Class::Acknowledged).await.unwrap().address,
        store.put("second", Class::Acknowledged).await.unwrap().address,
    ];
    assert!(store.name_if("report", Some(first), None).await.unwrap());
    let conflict = store.name_if("report", Some(second), None).await.unwrap_err();
    assert!(
        matches!(conflict, Error::NameConflict { expected: None, found: Some(found), .. } if found == first)
    );
    assert_eq!(
        conflict.to_string(),
        format!("\"report\" points to {first}, not unset as expected; read it again and decide anew")
    );
    let conflict = store.name_if("report", None, Some(second)).await.unwrap_err();
    assert!(!conflict.is_passing());
    assert!(store.name_if("report", Some(second), Some(first)).await.unwrap());
    assert!(store.name_if("report", None, Some(second)).await.unwrap());
    assert_eq!(store.named("report").await.unwrap(), None);
    assert!(store.name_if("report", Some(first), None).await.unwrap(), "a dropped name is not set");
}

/// Of callers that race for one change, one wins and the others learn of it.
#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_wins_a_race_for_a_name() {
    let store = Store::in_memory(Config::default()).unwrap();
    let mut racers = Vec::new();
    for number in 0..16u8 {
        let store = store.clone();
        racers.push(async move {
            let mine = anabranch_content::Address::of(&[number]);
            store.name_if("turn", Some(mine), None).await.is_ok()
        });
    }
    let won = futures_util::future::join_all(racers).await;
    assert_eq!(won.into_iter().filter(|won| *won).count(), 1);
}
