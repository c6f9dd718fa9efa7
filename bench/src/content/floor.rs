//! What a durable put cannot do without: the disk, and somebody who gathers what callers bring.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::callers::{Rate, SMALL};
use crate::watch::Watch;

/// A file that grows by so many small blobs at a time, each time made durable, by nobody's wish.
pub(crate) struct DiskAlone {
    file: File,
    batch: Vec<u8>,
}

impl DiskAlone {
    pub(crate) fn new(path: &Path, blobs: usize) -> io::Result<DiskAlone> {
        Ok(DiskAlone { file: File::create_new(path)?, batch: vec![0x5a; blobs * SMALL] })
    }

    pub(crate) fn write_for(&mut self, window: Duration) -> io::Result<Rate> {
        let (watch, end) = (Watch::start(), Instant::now() + window);
        let mut done = 0;
        while Instant::now() < end {
            self.file.write_all(&self.batch)?;
            self.file.sync_data()?;
            done += (self.batch.len() / SMALL) as u64;
        }
        Ok(Rate::of(done, watch.stop()))
    }
}

/// Group commit and nothing else: no hash, no checksum, no index. One thread writes what callers left, makes it durable
/// and answers; it waits for as many as came the last time, as long as they keep coming.
pub(crate) struct GroupCommit {
    queue: Arc<Queue>,
    writer: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Queue {
    state: Mutex<State>,
    enough: Condvar,
}

#[derive(Default)]
struct State {
    waiting: Vec<(Vec<u8>, oneshot::Sender<()>)>,
    /// How many the writer waits for.
    wanted: usize,
    closed: bool,
}

/// How long the writer waits for the next caller.
const PATIENCE: Duration = Duration::from_micros(100);

impl GroupCommit {
    pub(crate) fn new(path: &Path) -> io::Result<GroupCommit> {
        let file = File::create_new(path)?;
        let queue = Arc::new(Queue::default());
        let shared = Arc::clone(&queue);
        let writer = std::thread::spawn(move || shared.write(file).expect("the disk takes it"));
        Ok(GroupCommit { queue, writer: Some(writer) })
    }

    /// How callers reach it.
    pub(crate) fn caller(&self) -> impl Fn(Vec<u8>) -> oneshot::Receiver<()> + Clone + use<> {
        let queue = Arc::clone(&self.queue);
        move |bytes| queue.push(bytes)
    }
}

impl Drop for GroupCommit {
    fn drop(&mut self) {
        self.queue.state.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.queue.enough.notify_one();
        if let Some(writer) = self.writer.take() {
            writer.join().expect("the writer does not panic");
        }
    }
}

impl Queue {
    fn push(&self, bytes: Vec<u8>) -> oneshot::Receiver<()> {
        let (done, answer) = oneshot::channel();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting.push((bytes, done));
        if state.waiting.len() >= state.wanted {
            state.wanted = usize::MAX;
            drop(state);
            self.enough.notify_one();
        }
        answer
    }

    fn write(&self, mut file: File) -> io::Result<()> {
        let (mut batch, mut bytes) = (Vec::new(), Vec::new());
        let mut last = 0;
        while self.take(last, &mut batch) {
            last = batch.len();
            bytes.clear();
            batch.iter().for_each(|(blob, _)| bytes.extend_from_slice(blob));
            file.write_all(&bytes)?;
            file.sync_data()?;
            for (_, done) in batch.drain(..) {
                // A caller that went away does not want to know.
                let _ = done.send(());
            }
        }
        Ok(())
    }

    /// Swaps an empty batch for all that is waiting, or says that nothing more comes.
    fn take(&self, last: usize, batch: &mut Vec<(Vec<u8>, oneshot::Sender<()>)>) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        while state.waiting.is_empty() {
            if state.closed {
                return false;
            }
            state.wanted = 1;
            state = self.enough.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let mut before = 0;
        while (before + 1..last).contains(&state.waiting.len()) {
            before = state.waiting.len();
            state.wanted = last;
            state = self.enough.wait_timeout(state, PATIENCE).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.wanted = usize::MAX;
        std::mem::swap(&mut state.waiting, batch);
        true
    }
}
