//! A child's process group, and the last words on its stderr.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, kill_process_group};

/// Ends a process group, once, and when dropped.
pub(super) struct Group(Mutex<Option<Pid>>);

impl Group {
    /// The group that this child leads.
    pub(super) fn new(child: &tokio::process::Child) -> Group {
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        Group(Mutex::new(pid))
    }

    /// Kills all processes of the group. Called before the child is reaped: afterwards its number may be another's.
    pub(super) fn end(&self) {
        if let Some(pid) = lock(&self.0).take() {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }

    /// Kills all processes of the group. Its leader must not have been reaped yet.
    pub(super) fn kill(&self) {
        if let Some(pid) = *lock(&self.0) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

/// The last lines of stderr.
#[derive(Default)]
pub(super) struct Tail(Mutex<VecDeque<String>>);

const LINES: usize = 8;

impl Tail {
    pub(super) fn push(&self, line: &str) {
        let line = line.trim_end();
        if line.is_empty() {
            return;
        }
        let mut lines = lock(&self.0);
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(line.chars().take(300).collect());
    }

    /// The end of a message, with the last lines of stderr.
    pub(super) fn describe(&self) -> String {
        let lines = lock(&self.0);
        if lines.is_empty() {
            return String::new();
        }
        format!(
            "; its last lines on stderr: {}",
            Vec::from_iter(lines.iter().map(String::as_str)).join(" | ")
        )
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
