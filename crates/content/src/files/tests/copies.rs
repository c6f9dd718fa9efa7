//! Files of the file system that are copied to blobs.

use std::cell::Cell;
use std::future::poll_fn;
use std::task::Poll;

use super::*;
use crate::files::lanes::PART_LEN;
use crate::files::{SourceFile, check_blob, copy_file};
use crate::io::Pool;
use crate::tree::GROUP_LEN;

/// A file that is removed when it is closed.
fn file(bytes: &[u8]) -> std::fs::File {
    static NUMBER: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("anabranch-copies-{}-{number}", std::process::id()));
    std::fs::write(&path, bytes).unwrap();
    let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    file
}

fn source(bytes: &[u8]) -> SourceFile {
    SourceFile { file: file(bytes), len: bytes.len() as u64 }
}

fn watched(threads: usize) -> (Arc<WatchedDisk>, Arc<Files>, Arc<Pool>) {
    let disk = Arc::new(WatchedDisk::default());
    let files = Files::open(Arc::clone(&disk) as Arc<dyn Disk>).unwrap();
    disk.notes();
    (disk, files, Arc::new(Pool::new(threads)))
}

/// A copy has the same files as the same bytes that were written in order.
async fn check_copy(len: usize) {
    let (disk, files, pool) = watched(3);
    let blob = blob(len);
    let written = put(&files, 1, &blob, PIECE_LEN);
    let copied = Cell::new(0);
    let hashed =
        copy_file(&pool, &files, (2, source(&blob)), |more| copied.set(copied.get() + more)).await.unwrap();
    assert_eq!((hashed.name.address, copied.get()), (written.address, len as u64), "{len}");
    let name = hashed.name;
    hashed.keep(Durability::Now).await.unwrap();
    assert!(bytes(&*disk, &name.data()).unwrap() == blob, "{len}");
    assert_eq!(bytes(&*disk, &name.tree()), bytes(&*disk, &written.tree()), "{len}");
    check_blob(&pool, &files, name, len as u64).await.unwrap();
}

#[tokio::test]
async fn a_copied_file_is_as_a_streamed_one() {
    let (group, part) = (GROUP_LEN, PART_LEN as usize);
    for border in [2 * group, PIECE_LEN, 1 << 20, part] {
        for len in [border - 1, border, border + 1, border + group - 1, border + group] {
            if len >= 2 * group {
                check_copy(len).await;
            }
        }
    }
    // Several parts, and more groups than a span has.
    check_copy(2 * part + 1).await;
    check_copy((64 << 20) + 3 * group + 5).await;
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_length_can_be_copied(len in 2 * GROUP_LEN..3 * PART_LEN as usize) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(check_copy(len));
    }
}

#[tokio::test]
async fn bytes_that_the_file_system_shares_are_not_written() {
    let (disk, files, pool) = watched(2);
    disk.share_bytes();
    let blob = blob(PART_LEN as usize + 5);
    let hashed = copy_file(&pool, &files, (1, source(&blob)), |_| {}).await.unwrap();
    assert_eq!(hashed.name.address, Address::of(&blob));
    let notes = disk.notes();
    let (shared, rest) = notes.split_once("share incoming/1\n").unwrap();
    assert_eq!(shared, "make incoming/1\n");
    assert_eq!(rest, format!("write 5 at {PART_LEN} of incoming/1\n"), "only the end is written");
    assert!(bytes(&*disk, Path::new("incoming/1")).unwrap() == blob);
}

#[tokio::test]
async fn bytes_of_a_share_that_failed_do_not_stay() {
    let (disk, files, pool) = watched(2);
    disk.fail_to_share();
    let blob = blob(2 * PART_LEN as usize + 5);
    let hashed = copy_file(&pool, &files, (1, source(&blob)), |_| {}).await.unwrap();
    assert_eq!(hashed.name.address, Address::of(&blob));
    assert!(bytes(&*disk, Path::new("incoming/1")).unwrap() == blob);
}

#[tokio::test]
async fn a_file_that_changes_its_length_is_refused() {
    for (now, shares) in [(0, false), (PART_LEN, false), (5 * PART_LEN, false), (5, true)] {
        let (disk, files, pool) = watched(2);
        let blob = blob(3 * PART_LEN as usize);
        let source = source(&blob);
        let changed = source.file.try_clone().unwrap();
        if shares {
            disk.share_bytes();
            changed.set_len(now).unwrap();
        }
        let failed = copy_file(&pool, &files, (1, source), |_| changed.set_len(now).unwrap()).await;
        let Err(Error::Disk(crate::Error::Source(cause))) = failed else { panic!("{now}: {failed:?}") };
        let cause = cause.to_string();
        let expected = format!("the file changed while it was read, from {} to {now} bytes;", 3 * PART_LEN);
        assert!(cause.starts_with(&expected), "{cause}");
    }
}

#[test]
fn a_copy_that_is_given_up_leaves_nothing() {
    let (disk, files, pool) = watched(1);
    let source = source(&blob(6 * PART_LEN as usize));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let has_begun = Cell::new(false);
        let mut copying = Box::pin(copy_file(&pool, &files, (1, source), |_| has_begun.set(true)));
        poll_fn(|context| match copying.as_mut().poll(context) {
            Poll::Pending if !has_begun.get() => Poll::Pending,
            _ => Poll::Ready(()),
        })
        .await;
        assert!(has_begun.get() && disk.list(Path::new("incoming")).unwrap().len() == 1);
        drop(copying);
        pool.run(|| ()).await.unwrap();
    });
    // Outside of a runtime, dropping the pool waits for what its thread has begun.
    drop(pool);
    assert!(disk.list(Path::new("incoming")).unwrap().is_empty());
    assert!(!disk.notes().contains("remove incoming"), "only threads remove");
}

#[tokio::test]
async fn a_copy_to_a_full_disk_leaves_nothing() {
    let (disk, files, pool) = watched(1);
    disk.refuse(Some("write 524288 at 9437184 of"));
    let failed = copy_file(&pool, &files, (1, source(&blob(3 * PART_LEN as usize))), |_| {}).await;
    assert!(matches!(failed, Err(Error::Disk(crate::Error::Disk { .. }))), "{failed:?}");
    pool.run(|| ()).await.unwrap();
    assert!(disk.list(Path::new("incoming")).unwrap().is_empty());
}

#[tokio::test]
async fn a_check_finds_damage_in_any_part() {
    let (disk, files, pool) = watched(2);
    let blob = blob(2 * PART_LEN as usize + 5);
    let name = put(&files, 1, &blob, PIECE_LEN);
    for place in [0, PART_LEN as usize + 7, blob.len() - 1] {
        let file = disk.open(&name.data(), Open::Read).unwrap();
        file.write_at(&[!blob[place]], place as u64).unwrap();
        let found = check_blob(&pool, &files, name, blob.len() as u64).await;
        assert!(matches!(found, Err(Error::Corrupt { .. })), "{place}: {found:?}");
        file.write_at(&[blob[place]], place as u64).unwrap();
    }
    check_blob(&pool, &files, name, blob.len() as u64).await.unwrap();
}
