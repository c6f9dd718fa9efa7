//! X16: somebody removes the folder of a store that is in use.

use anabranch_content::{Address, Class, Config, Cost, Error, NewMemo, Store};

use super::CONTEXT;
use crate::kit::{description, put_derivation};

/// A put was acknowledged, into a log that had no name any more.
#[tokio::test]
async fn nothing_is_acknowledged_into_a_removed_folder() {
    let folder = std::env::temp_dir().join(format!("anabranch-removed-{}", std::process::id()));
    let store = Store::open(&folder, Config::default()).unwrap();
    let before = store.put("before", Class::Acknowledged).await.unwrap().address;
    std::fs::remove_dir_all(&folder).unwrap();
    let refused = store.put("after", Class::Acknowledged).await.unwrap_err();
    assert!(matches!(refused, Error::Disk { .. }), "{refused:?}");
    assert!(refused.to_string().contains("log/"), "{refused}");
    let refused = store.put("later", Class::Acknowledged).await.unwrap_err();
    assert!(matches!(refused, Error::Broken(_)), "{refused:?}");
    // What is in memory can still be read.
    assert_eq!(store.get(&before).await.unwrap().unwrap(), "before");
    drop(store);
    let _ = std::fs::remove_dir_all(&folder);
}

/// Whatever a caller wants to be durable is refused; appended data promises nothing until it is synced.
#[tokio::test]
async fn no_kind_of_data_is_acknowledged_into_a_removed_folder() {
    const KINDS: [&str; 6] = ["derivation", "memo", "name", "pin", "file", "sync"];
    for kind in KINDS {
        let folder = std::env::temp_dir().join(format!("anabranch-removed-{kind}-{}", std::process::id()));
        let store = Store::open(&folder, Config::default()).unwrap();
        let blob = store.put("before", Class::Acknowledged).await.unwrap().address;
        std::fs::remove_dir_all(&folder).unwrap();
        let made = NewMemo {
            derivation: Address::of(b"it"),
            output: blob,
            size: 6,
            cost: Cost::default(),
            inputs: &[],
        };
        let refused = match kind {
            "derivation" => put_derivation(&store, CONTEXT, description("it", &[])).await.err(),
            "memo" => store.remember(made, Class::Acknowledged).await.err(),
            "name" => store.name("it", Some(blob)).await.err(),
            "pin" => store.pin(&blob).await.err(),
            "file" => store.put(vec![1; 200_000], Class::Acknowledged).await.err(),
            "sync" => {
                store.append("before", &[made]).await.unwrap();
                store.sync().await.err()
            }
            _ => unreachable!(),
        };
        assert!(matches!(refused, Some(Error::Disk { .. })), "{kind}: {refused:?}");
        drop(store);
        let _ = std::fs::remove_dir_all(&folder);
    }
}
