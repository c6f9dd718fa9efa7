//! X16: somebody removes the folder of a store that is in use.

use anabranch_content::{Class, Config, Error, Store};

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
