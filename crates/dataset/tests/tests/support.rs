//! Folders, clocks and calls for tests.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anabranch_dataset::Fault;
use anabranch_dataset::generator::{Cells, Rows, Work};
use anabranch_engine::Check;
use anabranch_engine::clock::{Clock, Sleep, SystemClock};
use anabranch_value::Value;

/// A folder that is removed when dropped.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("anabranch-dataset-test-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// A program of the shell.
    pub(crate) fn script(&self, name: &str, text: &str) -> PathBuf {
        use std::os::unix::fs::PermissionsExt as _;
        let path = self.write(name, format!("#!/bin/sh\n{text}\n"));
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// A text without the folder's name.
    pub(crate) fn clean(&self, text: impl ToString) -> String {
        text.to_string().replace(&format!("{}/", self.path().display()), "")
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Time that passes only in sleeps, which take none. Keeps their lengths.
pub(crate) struct JumpClock {
    now: Mutex<Instant>,
    pub(crate) slept: Mutex<Vec<Duration>>,
}

impl JumpClock {
    pub(crate) fn new() -> Arc<JumpClock> {
        Arc::new(JumpClock { now: Mutex::new(SystemClock.now()), slept: Mutex::default() })
    }
}

impl Clock for JumpClock {
    fn now(&self) -> Instant {
        *self.now.lock().unwrap()
    }

    fn sleep_until(&self, at: Instant) -> Sleep {
        self.slept.lock().unwrap().push(at.saturating_duration_since(self.now()));
        Box::pin(async {})
    }
}

/// Does the work of a generator.
pub(crate) async fn done<T>(work: Work<T>) -> Result<T, Fault> {
    match work {
        Work::Ready(result) => result,
        Work::Future(future) => future.await,
        Work::Job(work, _) | Work::Blocking(work) => work(&Check::never()),
    }
}

/// Rows with these columns.
pub(crate) fn rows(columns: Vec<Vec<Value>>) -> Rows {
    let ids = (0..columns.first().map_or(0, Vec::len) as u64).collect();
    Rows { group: 0, ids, columns }
}

/// Results of rows as text, one per line.
pub(crate) fn shown(results: Vec<Result<Cells, Fault>>) -> String {
    let line = |result: Result<Cells, Fault>| match result {
        Ok(cells) => cells.iter().map(Value::to_json).collect::<Vec<_>>().join(" "),
        Err(fault) => format!("{:?} x{} {fault}", fault.severity, fault.attempts),
    };
    results.into_iter().map(line).collect::<Vec<_>>().join("\n")
}
