//! Blobs streamed in and out over threads.

use bytes::Bytes;

use super::*;
use crate::files::{Sink, Stream};
use crate::io::Pool;

fn watched() -> (Arc<WatchedDisk>, Arc<Files>, Arc<Pool>) {
    let disk = Arc::new(WatchedDisk::default());
    let files = Files::open(Arc::clone(&disk) as Arc<dyn Disk>).unwrap();
    (disk, files, Arc::new(Pool::new(2)))
}

async fn fill(pool: &Arc<Pool>, files: &Arc<Files>, blob: &[u8], sizes: &[usize]) -> Name {
    let mut sink = Sink::begin(pool, files, 1).await.unwrap();
    let mut rest = Bytes::copy_from_slice(blob);
    for size in sizes.iter().cycle() {
        sink.write(rest.split_to((*size).min(rest.len()))).await.unwrap();
        if rest.is_empty() {
            break;
        }
    }
    let hashed = sink.hash().await.unwrap();
    let name = hashed.name;
    assert_eq!(name.address, Address::of(blob));
    hashed.keep(Durability::Now).await.unwrap();
    name
}

async fn drain(stream: &mut Stream) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some(piece) = stream.next().await {
        let piece = piece.unwrap();
        assert!(piece.len() <= PIECE_LEN);
        bytes.extend_from_slice(&piece);
    }
    bytes
}

#[tokio::test]
async fn a_blob_streams_in_and_out() {
    let sizes: [&[usize]; 5] = [&[1 << 20], &[10_000], &[700_000, 3], &[3, PIECE_LEN, 0], &[3_000_000]];
    for sizes in sizes {
        for len in [0, 5, 1 << 20, 3_000_000] {
            let (_, files, pool) = watched();
            let blob = blob(len);
            let name = fill(&pool, &files, &blob, sizes).await;
            let len = len as u64;
            for range in [0..len, 0..u64::MAX, 5..5, 100..1_000_000, 600_000..2_500_001] {
                let mut stream = Stream::open(&pool, &files, name, len, range.clone()).await.unwrap();
                let there = range.start.min(len) as usize..range.end.min(len) as usize;
                assert_eq!(drain(&mut stream).await, blob.get(there).unwrap_or_default());
            }
        }
    }
}

#[tokio::test]
async fn a_stream_ends_at_the_first_damage() {
    let (disk, files, pool) = watched();
    let blob = blob(3_000_000);
    let name = fill(&pool, &files, &blob, &[1 << 20]).await;
    disk.open(&name.data(), Open::Read).unwrap().write_at(&[!blob[1_500_000]], 1_500_000).unwrap();
    let mut stream = Stream::open(&pool, &files, name, 3_000_000, 0..3_000_000).await.unwrap();
    for piece in blob.chunks(PIECE_LEN).take(2) {
        assert_eq!(stream.next().await.unwrap().unwrap(), piece);
    }
    assert!(matches!(stream.next().await, Some(Err(Error::Corrupt { .. }))));
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn a_stream_may_be_dropped_and_may_outlive_its_pool() {
    let (_, files, pool) = watched();
    let blob = blob(3_000_000);
    let name = fill(&pool, &files, &blob, &[1 << 20]).await;
    let mut stream = Stream::open(&pool, &files, name, 3_000_000, 0..3_000_000).await.unwrap();
    let first = stream.next().await.unwrap().unwrap();
    drop((stream, pool));
    assert_eq!(first, blob[..PIECE_LEN]);
}

#[test]
fn what_is_dropped_is_removed_on_a_thread() {
    let (disk, files, pool) = watched();
    let piece = Bytes::from(blob(PIECE_LEN));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut sink = Sink::begin(&pool, &files, 1).await.unwrap();
        sink.write(piece.clone()).await.unwrap();
        drop(sink);
        let mut sink = Sink::begin(&pool, &files, 2).await.unwrap();
        sink.write(piece.clone()).await.unwrap();
        drop(sink.hash().await.unwrap());
        drop(Sink::begin(&pool, &files, 3).await.unwrap());
        // All removals have begun when these have ended: tasks begin in order.
        let flushed = [pool.run(|| ()).await, pool.run(|| ()).await];
        assert_eq!(flushed, [Ok(()), Ok(())]);
    });
    // Outside of a runtime, dropping the pool waits for what its threads have begun.
    drop(pool);
    assert!(disk.list(Path::new("incoming")).unwrap().is_empty());
    assert!(!disk.notes().contains("remove incoming"), "only threads remove");
}

#[tokio::test]
async fn a_sink_fails_once_and_for_all() {
    let (disk, files, pool) = watched();
    let mut sink = Sink::begin(&pool, &files, 1).await.unwrap();
    disk.refuse(Some("write"));
    let piece = Bytes::from(blob(PIECE_LEN));
    sink.write(piece.clone()).await.unwrap();
    assert!(matches!(sink.write(piece.clone()).await, Err(Error::Disk(_))));
    disk.refuse(None);
    assert!(matches!(sink.write(piece).await, Err(Error::Disk(_))));
    assert!(matches!(sink.hash().await, Err(Error::Disk(_))));
}

#[tokio::test]
async fn a_write_given_up_half_way_tears_the_sink() {
    let (_, files, pool) = watched();
    let mut sink = Sink::begin(&pool, &files, 1).await.unwrap();
    let piece = Bytes::from(blob(PIECE_LEN));
    let (release, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let busy = Arc::new(move || wait.lock().unwrap().recv());
    let mut jobs = Vec::new();
    for _ in 0..2 {
        let busy = Arc::clone(&busy);
        jobs.push(pool.place().await.unwrap().start(move || busy()));
    }
    sink.write(piece.clone()).await.unwrap();
    let waker = std::task::Waker::noop();
    let mut write = Box::pin(sink.write(piece.clone()));
    assert!(write.as_mut().poll(&mut std::task::Context::from_waker(waker)).is_pending());
    drop(write);
    drop(release);
    assert!(matches!(sink.write(piece).await, Err(Error::Torn)));
    assert!(matches!(sink.hash().await, Err(Error::Torn)));
}
