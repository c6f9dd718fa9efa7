//! Files of the file system that are put on several threads.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anabranch_content::{Address, Class, Config, Error, Store};
use anabranch_testkit::{Crash, CrashDisk};

use crate::crash::world::random;

/// A file that is removed when it is closed.
fn file(bytes: &[u8]) -> File {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("anabranch-put-file-{}-{number}", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    let file = File::options().read(true).write(true).open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    file
}

#[tokio::test]
async fn a_file_of_any_length_is_put_once() {
    let folder = std::env::temp_dir().join(format!("anabranch-put-files-{}", std::process::id()));
    let store = Store::open(&folder, Config::default()).unwrap();
    for (seed, len) in
        [0, 1, 64 << 10, (64 << 10) + 1, 1 << 20, (1 << 20) + 1, 9_000_000].into_iter().enumerate()
    {
        let bytes = random(seed as u64, len);
        let copied = AtomicU64::new(0);
        for is_new in [true, false] {
            let count = |more| _ = copied.fetch_add(more, Ordering::Relaxed);
            let put = store.put_file(file(&bytes), Class::Acknowledged, count).await.unwrap();
            assert_eq!((put.address, put.len, put.new), (Address::of(&bytes), len as u64, is_new));
        }
        assert_eq!(copied.load(Ordering::Relaxed), 2 * len as u64);
        assert!(store.get(&Address::of(&bytes)).await.unwrap().unwrap() == bytes);
        let streamed = store.put(bytes, Class::Acknowledged).await.unwrap();
        assert!(!streamed.new, "{len}");
    }
    store.close().await.unwrap();
    assert_eq!(std::fs::read_dir(folder.join("incoming")).unwrap().count(), 0);
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn a_file_needs_room_in_the_quota_and_gives_it_back() {
    let store = Store::in_memory(Config { quota_bytes: Some(12 << 20), ..Config::default() }).unwrap();
    let large = file(&random(1, 13 << 20));
    let refused = store.put_file(large, Class::Acknowledged, |_| {}).await;
    assert!(matches!(refused, Err(Error::Quota { .. })), "{refused:?}");
    // A put that fails half-way leaves room for the next.
    let bytes = random(2, 10 << 20);
    let changing = file(&bytes);
    let other = changing.try_clone().unwrap();
    let failed = store.put_file(changing, Class::Acknowledged, |_| other.set_len(5).unwrap()).await;
    assert!(matches!(failed, Err(Error::Source(_))), "{failed:?}");
    let put = store.put_file(file(&bytes), Class::Acknowledged, |_| {}).await.unwrap();
    assert_eq!((put.address, put.new), (Address::of(&bytes), true));
}

/// The length of such a file says nothing about its bytes, which would be lost without a word.
#[tokio::test]
async fn a_file_without_a_length_is_refused() {
    use std::io::Write as _;

    let store = Store::in_memory(Config::default()).unwrap();
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(b"in the pipe").unwrap();
    let pipe = File::from(std::os::fd::OwnedFd::from(reader));
    let mut sources = vec![(pipe, "not a regular file")];
    if cfg!(target_os = "linux") {
        sources.push((File::open("/proc/self/status").unwrap(), "more than the 0 bytes"));
    }
    for (file, expected) in sources {
        let Err(Error::Source(cause)) = store.put_file(file, Class::Acknowledged, |_| {}).await else {
            panic!("{expected}: it was put");
        };
        assert!(cause.to_string().contains(expected), "{cause}");
    }
    assert_eq!(store.stats().blobs, 0);
}

#[tokio::test]
async fn a_file_that_was_put_survives_a_power_cut() {
    // Below and above the length from which on several threads copy it.
    for len in [100_000, (1 << 20) + 5] {
        let disk = CrashDisk::new(len as u64);
        let store = Store::open_on(Arc::new(disk.clone()), Config::default()).unwrap();
        let bytes = random(len as u64, len);
        let address = store.put_file(file(&bytes), Class::Acknowledged, |_| {}).await.unwrap().address;
        for (seed, crash) in [(1, Crash::Total), (2, Crash::Power), (3, Crash::Chaos), (4, Crash::Kill)] {
            let crashed = Arc::new(disk.crash(seed, crash));
            let store = Store::open_on(crashed, Config::default()).unwrap();
            assert!(store.get(&address).await.unwrap().unwrap() == bytes, "{len} bytes, {crash:?}");
        }
    }
}
