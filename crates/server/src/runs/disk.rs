//! The folder of runs: one JSON file per run. The oldest files are removed when there are too many.
//!
//! The first line of a file is the summary, so that a list need not read the rest.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use serde::{Deserialize, Serialize};
use tracing::warn;

use super::{RunDetail, RunFilter, RunId, RunPage, RunSettings, RunSummary};

/// A run, as stored in its file.
#[derive(Debug, Serialize, Deserialize)]
pub struct StoredRun {
    /// The summary of the run.
    pub run: RunSummary,
    /// Its details, if they are kept.
    pub detail: Option<RunDetail>,
}

/// The size limit of one file in bytes. Larger details are not stored on disk.
const FILE_MOST: u64 = 16 << 20;

/// The size limit of a summary in bytes. Only the name varies in length.
const SUMMARY_MOST: u64 = 64 << 10;

/// The most runs that wait to be written. Further runs are kept only in memory.
const PENDING_MOST: usize = 256;

pub(super) struct Disk {
    folder: PathBuf,
    files_most: usize,
    bytes_most: u64,
    state: Mutex<DiskState>,
    /// The thread that writes, or that has written the last runs.
    writer: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct DiskState {
    pending: VecDeque<(RunSummary, Option<Arc<RunDetail>>)>,
    /// Whether a thread writes.
    is_writing: bool,
    /// The files with their sizes, the oldest first.
    files: VecDeque<(RunId, u64)>,
    bytes: u64,
}

impl Disk {
    /// Opens or creates the folder. Also returns its runs, oldest first.
    pub(super) fn open(folder: &Path, settings: &RunSettings) -> io::Result<(Disk, Vec<RunSummary>)> {
        fs::create_dir_all(folder)?;
        let mut files = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            match name.to_str() {
                Some(name) if name.ends_with(TEMPORARY) => _ = fs::remove_file(entry.path()),
                name => files.extend(name.and_then(id_of).zip(entry.metadata().ok().map(|it| it.len()))),
            }
        }
        files.sort();
        let bytes = files.iter().map(|(_, size)| size).sum();
        let state = DiskState { files: files.into(), bytes, ..DiskState::default() };
        let disk = Disk {
            folder: folder.to_owned(),
            files_most: settings.files_most,
            bytes_most: settings.file_bytes_most,
            state: Mutex::new(state),
            writer: Mutex::default(),
        };
        disk.remove_oldest();
        let listed: Vec<RunId> = disk.lock().files.iter().map(|(id, _)| *id).collect();
        let found = listed.iter().rev().take(settings.summaries_most);
        let mut found: Vec<RunSummary> = found.filter_map(|id| disk.read_listed(*id)).collect();
        found.reverse();
        Ok((disk, found))
    }

    fn read_listed(&self, id: RunId) -> Option<RunSummary> {
        let path = self.path(id);
        let read = read_summary(&path).and_then(|run| match run.id == id {
            true => Ok(run),
            false => Err(io::Error::other(format!("it is the file of run {}", run.id))),
        });
        read.inspect_err(|error| warn!(file = %path.display(), %error, "the file of a run is skipped")).ok()
    }

    pub(super) fn path(&self, id: RunId) -> PathBuf {
        path(&self.folder, id)
    }

    /// Writes a run, on a thread of its own: the engine's threads may be occupied by recipes for hours.
    pub(super) fn write(self: &Arc<Self>, summary: RunSummary, detail: Option<Arc<RunDetail>>) {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.queue(summary, detail) {
            return;
        }
        let disk = Arc::clone(self);
        match thread::Builder::new().name("runs".to_owned()).spawn(move || disk.write_all()) {
            // The thread before it has written its last run.
            Ok(thread) => *writer = Some(thread),
            Err(error) => {
                warn!(%error, "no thread to write runs on; they are written with the next one");
                self.lock().is_writing = false;
            }
        }
    }

    /// Waits until the queued runs are written.
    pub(super) fn finish(&self) {
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        // A panic has been reported on its thread.
        writer.into_iter().for_each(|writer| drop(writer.join()));
    }

    /// Queues a run for writing. True if no thread writes yet.
    fn queue(&self, summary: RunSummary, detail: Option<Arc<RunDetail>>) -> bool {
        let mut state = self.lock();
        if state.pending.len() >= PENDING_MOST {
            drop(state);
            warn!(run = %summary.id, "the disk is too slow: a run is kept in memory only");
            return false;
        }
        state.pending.push_back((summary, detail));
        !std::mem::replace(&mut state.is_writing, true)
    }

    /// Writes the queued runs.
    fn write_all(&self) {
        loop {
            let mut state = self.lock();
            let Some((summary, detail)) = state.pending.pop_front() else {
                state.is_writing = false;
                return;
            };
            drop(state);
            let id = summary.id;
            match self.write_file(&summary, detail.as_deref()) {
                Ok(size) => {
                    let mut state = self.lock();
                    state.files.push_back((id, size));
                    state.bytes += size;
                }
                Err(error) => warn!(run = %id, %error, "the file of a run is not written"),
            }
            self.remove_oldest();
        }
    }

    fn write_file(&self, run: &RunSummary, detail: Option<&RunDetail>) -> io::Result<u64> {
        let head = serde_json::to_string(run)?;
        let rest = serde_json::to_string(&detail)?;
        let (head, rest) = match (head.len() + rest.len()) as u64 + 32 <= FILE_MOST {
            true => (head, rest),
            false => {
                warn!(run = %run.id, bytes = rest.len(), "the details of a run are too large to be kept on disk");
                let run = RunSummary { has_detail: false, ..run.clone() };
                (serde_json::to_string(&run)?, "null".to_owned())
            }
        };
        let text = format!("{{\"run\":{head},\n\"detail\":{rest}}}\n");
        let temporary = self.folder.join(format!("{}{TEMPORARY}", run.id));
        let written = File::create(&temporary).and_then(|mut file| file.write_all(text.as_bytes()));
        let renamed = written.and_then(|()| fs::rename(&temporary, self.path(run.id)));
        if renamed.is_err() {
            // If this fails too, the next start removes the file.
            let _ = fs::remove_file(&temporary);
        }
        renamed.map(|()| text.len() as u64)
    }

    fn remove_oldest(&self) {
        loop {
            let mut state = self.lock();
            if state.files.len() <= self.files_most && state.bytes <= self.bytes_most {
                return;
            }
            let Some((id, size)) = state.files.pop_front() else { return };
            state.bytes = state.bytes.saturating_sub(size);
            drop(state);
            if let Err(error) = fs::remove_file(self.path(id)) {
                warn!(run = %id, %error, "the file of an old run is not removed");
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, DiskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The folder of runs, for readers other than the server.
#[derive(Clone, Debug)]
pub struct RunsFolder(PathBuf);

impl RunsFolder {
    /// The folder at a path.
    pub fn new(path: impl Into<PathBuf>) -> RunsFolder {
        RunsFolder(path.into())
    }

    /// The runs that match `filter`, newest first. Damaged files are skipped.
    pub fn list(&self, filter: &RunFilter) -> io::Result<RunPage> {
        let mut ids = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            ids.extend(entry?.file_name().to_str().and_then(id_of));
        }
        ids.sort_by_key(|id| std::cmp::Reverse(*id));
        let mut runs: Vec<RunSummary> = Vec::new();
        for id in ids {
            let path = path(&self.0, id);
            match read_summary(&path) {
                Ok(run) => runs.extend(filter.passes(&run).then_some(run)),
                // The file was removed after the folder was listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => warn!(file = %path.display(), %error, "the file of a run is skipped"),
            }
            if runs.len() > filter.limit {
                break;
            }
        }
        let has_more = runs.len() > filter.limit;
        runs.truncate(filter.limit);
        let next = runs.last().filter(|_| has_more).map(|run| run.id);
        Ok(RunPage { runs, next })
    }

    /// A run with its details.
    pub fn get(&self, id: RunId) -> io::Result<StoredRun> {
        read(&path(&self.0, id))
    }
}

const TEMPORARY: &str = ".json.new";

fn path(folder: &Path, id: RunId) -> PathBuf {
    folder.join(format!("{id}.json"))
}

fn id_of(name: &str) -> Option<RunId> {
    name.strip_suffix(".json")?.parse().ok()
}

fn read_summary(path: &Path) -> io::Result<RunSummary> {
    let mut line = String::new();
    BufReader::new(File::open(path)?.take(SUMMARY_MOST)).read_line(&mut line)?;
    let damaged = || io::Error::other("its first line is not the summary of a run");
    let text =
        line.strip_prefix("{\"run\":").and_then(|line| line.strip_suffix(",\n")).ok_or_else(damaged)?;
    serde_json::from_str(text).map_err(io::Error::other)
}

/// Reads a run and its details from a file.
pub(super) fn read(path: &Path) -> io::Result<StoredRun> {
    let mut text = Vec::new();
    File::open(path)?.take(FILE_MOST + 1).read_to_end(&mut text)?;
    serde_json::from_slice(&text).map_err(io::Error::other)
}
