//! What contenders took, turn by turn.

use crate::content::callers::median;
use crate::watch::{Share, Watch, WorkTime, children_cpu};

/// Nanoseconds for each piece of work, turn by turn.
#[derive(Default)]
pub(super) struct Turns(Vec<Share>);

impl Turns {
    /// Has a turn: work in so many parts.
    pub(super) fn time<T>(&mut self, parts: u64, work: impl FnOnce() -> T) -> T {
        let watch = Watch::start();
        let result = work();
        self.0.push(watch.stop().share(parts));
        result
    }

    /// Has a turn of processes that it starts and waits for; CPU time is theirs.
    pub(super) fn time_processes<T>(&mut self, parts: u64, work: impl FnOnce() -> T) -> T {
        let (watch, before) = (Watch::start(), children_cpu());
        let result = work();
        let spent = WorkTime { cpu: children_cpu() - before, ..watch.stop() };
        self.0.push(spent.share(parts));
        result
    }

    /// Forgets what was for warming up.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn wall(&self) -> f64 {
        median(self.0.iter().map(|share| share.wall))
    }

    pub(super) fn cpu(&self) -> f64 {
        median(self.0.iter().map(|share| share.cpu))
    }

    /// How many times the wall time of the other this took, in the same turn.
    pub(super) fn times(&self, other: &Turns) -> f64 {
        median(self.0.iter().zip(&other.0).map(|(own, other)| own.wall / other.wall))
    }

    /// How many times the CPU time of the other this took, in the same turn.
    pub(super) fn cpu_times(&self, other: &Turns) -> f64 {
        median(self.0.iter().zip(&other.0).map(|(own, other)| own.cpu / other.cpu))
    }
}

/// Nanoseconds as microseconds.
pub(super) fn micros(nanos: f64) -> String {
    match nanos {
        ..99_500.0 => format!("{:.2}", nanos / 1e3),
        _ => crate::content::digits(nanos / 1e3),
    }
}
