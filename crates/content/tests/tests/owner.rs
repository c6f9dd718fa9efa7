//! One process owns a store, and only of a format it knows.

use std::path::PathBuf;
use std::sync::Arc;

use anabranch_content::{Address, Class, Config, Error, Store};
use anabranch_testkit::CrashDisk;
use expect_test::expect;

struct Temp(PathBuf);

impl Temp {
    fn new(name: &str) -> Temp {
        Temp(std::env::temp_dir().join(format!("anabranch-{name}-{}", std::process::id())))
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[tokio::test]
async fn a_second_opener_is_told_who_has_it_and_where_it_listens() {
    let temp = Temp::new("owner");
    let store = Store::open(&temp.0, Config::default()).unwrap();
    let told = |error: Error| error.to_string().replace(&std::process::id().to_string(), "PID");
    let error = Store::open(&temp.0, Config::default()).unwrap_err();
    expect!["the store is in use by process PID"].assert_eq(&told(error));
    store.announce("127.0.0.1:4242").unwrap();
    let error = Store::open(&temp.0, Config::default()).unwrap_err();
    assert!(matches!(&error, Error::Owned { listens_on: Some(at), .. } if at == "127.0.0.1:4242"));
    expect!["the store is in use by process PID, listening on 127.0.0.1:4242"].assert_eq(&told(error));
    let put = store.put("kept", Class::Acknowledged).await.unwrap();
    let other = store.clone();
    store.close().await.unwrap();
    assert!(matches!(other.put("late", Class::Acknowledged).await, Err(Error::Closed)));
    let again = Store::open(&temp.0, Config::default()).unwrap();
    assert_eq!(again.get(&put.address).await.unwrap().unwrap(), "kept");
}

/// X16: the text of a lock file may be a stranger's.
#[tokio::test]
async fn a_lock_file_cannot_write_to_the_terminal() {
    let temp = Temp::new("lock");
    Store::open(&temp.0, Config::default()).unwrap().close().await.unwrap();
    let lock = std::fs::File::open(temp.0.join("lock")).unwrap();
    lock.try_lock().unwrap();
    std::fs::write(temp.0.join("lock"), "\u{1b}[31mprocess\u{7} 1\u{202e}\n").unwrap();
    let error = Store::open(&temp.0, Config::default()).unwrap_err();
    expect![[r"the store is in use by \u{1b}[31mprocess\u{7} 1\u{202e}"]].assert_eq(&error.to_string());
}

#[tokio::test]
async fn large_blobs_are_files_that_b3sum_agrees_with() {
    let temp = Temp::new("files");
    let store = Store::open(&temp.0, Config::default()).unwrap();
    let bytes = vec![3; 2 << 20];
    let put = store.put(bytes.clone(), Class::Acknowledged).await.unwrap();
    let hex = put.address.to_string();
    let folder = temp.0.join("files").join(&hex[..2]);
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, [format!("{hex}.0"), format!("{hex}.0.tree")]);
    assert_eq!(Address::of(&std::fs::read(folder.join(&names[0])).unwrap()), put.address);
    assert!(!store.put(bytes, Class::Acknowledged).await.unwrap().new);
}

fn refusal(format: &str) -> String {
    let disk = CrashDisk::new(1);
    drop(Store::open_on(Arc::new(disk.clone()), Config::default()).unwrap());
    disk.put("format", format.as_bytes());
    Store::open_on(Arc::new(disk), Config::default()).unwrap_err().to_string()
}

#[test]
fn other_formats_are_refused() {
    let newer = refusal("anabranch content 3 something new\n");
    expect!["the store has format 3, this program reads formats up to 2; use a newer version"]
        .assert_eq(&newer);
    let strange = refusal("anabranch content 1 00000000 00000000\n");
    expect![[r#"this is not a store this program can read: "anabranch content 1 00000000 00000000\n""#]]
        .assert_eq(&strange);
}

#[test]
fn settings_out_of_range_are_refused() {
    let error = Store::in_memory(Config { segment_bytes: 1, ..Config::default() }).unwrap_err();
    expect!["setting `segment_bytes` must be 4 KiB to 1 GiB"].assert_eq(&error.to_string());
}
