//! Ends a build early: on request, when too many calls of a model fail, when the journal cannot be written, or when its values
//! take too much memory.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use anabranch_engine::Drain;

use crate::budget::Cap;
use crate::fault::Fault;
use crate::journal;

/// The reason why a build ends before all rows are built. Calls in flight finish and are saved.
#[derive(Clone, Debug)]
pub enum StopReason {
    /// A stop was requested.
    Asked,
    /// Too many calls of a model failed.
    ErrorRate(ErrorRate),
    /// The most rows were generated, and too few of them were accepted.
    Candidates { rows: u64, wanted: u64, candidates: u64 },
    /// Its budget is spent.
    Budget(Cap),
    /// A paid reply could not be recorded.
    Journal(Arc<journal::Error>),
    /// The values of row groups in progress take more than so many bytes.
    Memory { most: usize },
}

/// The calls of a model of which too many failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorRate {
    /// The limit of the model, such as `openai/gpt-4o-mini`.
    pub model: String,
    /// The number of calls that the rate is taken over.
    pub calls: u32,
    pub failed: u32,
    /// The last failure.
    pub class: String,
    pub message: String,
}

impl fmt::Display for StopReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StopReason::Asked => f.write_str("it was asked to stop"),
            StopReason::ErrorRate(ErrorRate { model, calls, failed, class, message }) => {
                write!(
                    f,
                    "{failed} of the last {calls} calls of {model} failed; the last one: {class}: {message}"
                )
            }
            StopReason::Candidates { rows, wanted, candidates } => {
                write!(
                    f,
                    "{rows} of {wanted} rows were accepted, and all {candidates} candidates are used up"
                )
            }
            StopReason::Budget(cap) => write!(f, "{cap}"),
            StopReason::Journal(error) => write!(f, "{error}"),
            StopReason::Memory { most } => write!(
                f,
                "the values of unfinished row groups take more than {}; lower `buffer_size` or \
                 `max_concurrent_row_groups`, or make shorter values",
                anabranch_text::size::format(*most as u64)
            ),
        }
    }
}

/// Ends the runs of a build. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct StopSwitch {
    drain: Drain,
    reason: Arc<OnceLock<StopReason>>,
}

impl StopSwitch {
    /// No further node starts. The first reason counts.
    pub(crate) fn stop(&self, reason: StopReason) {
        let _ = self.reason.set(reason);
        self.drain.begin();
    }

    pub(crate) fn reason(&self) -> Option<&StopReason> {
        self.reason.get()
    }

    /// For the options of runs.
    pub(crate) fn drain(&self) -> &Drain {
        &self.drain
    }
}

/// The outcomes of the latest calls of a model. Too many failures among them stop the build.
pub(crate) struct ErrorWatch {
    model: String,
    /// The share of failures at which the build stops.
    rate: f64,
    window: usize,
    /// One flag per call, true if it failed, oldest first, and the number of failures.
    latest: Mutex<(VecDeque<bool>, u32)>,
    stop: StopSwitch,
}

/// The fewest calls that a rate is taken over.
pub(crate) const FEWEST_CALLS: u32 = 50;

impl ErrorWatch {
    pub(crate) fn new(model: String, rate: f64, window: u32, stop: StopSwitch) -> ErrorWatch {
        let window = window.max(FEWEST_CALLS) as usize;
        ErrorWatch { model, rate, window, latest: Mutex::default(), stop }
    }

    /// A call ended, after all of its retries.
    pub(crate) fn ended(&self, fault: Option<&Fault>) {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let (calls, failed) = &mut *latest;
        if calls.len() == self.window && calls.pop_front() == Some(true) {
            *failed -= 1;
        }
        calls.push_back(fault.is_some());
        *failed += u32::from(fault.is_some());
        let (calls, failed) = (calls.len() as u32, *failed);
        drop(latest);
        if let Some(fault) = fault
            && calls >= FEWEST_CALLS
            && f64::from(failed) >= self.rate * f64::from(calls)
        {
            let (class, message) = (fault.class.clone().into_owned(), fault.message.clone());
            let model = self.model.clone();
            self.stop.stop(StopReason::ErrorRate(ErrorRate { model, calls, failed, class, message }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first call at which a build stops whose calls fail by this rule.
    fn stops_at(window: u32, failing: impl Fn(u32) -> bool) -> Option<u32> {
        let stop = StopSwitch::default();
        let watch = ErrorWatch::new("m".to_owned(), 0.5, window, stop.clone());
        let fault = Fault::permanent("auth", "no access");
        (1..=10_000).find(|call| {
            watch.ended(failing(*call).then_some(&fault));
            stop.reason().is_some()
        })
    }

    #[test]
    fn half_of_at_least_fifty_calls_must_fail() {
        assert_eq!(stops_at(10, |_| true), Some(50));
        assert_eq!(stops_at(100, |_| true), Some(50));
        assert_eq!(stops_at(100, |call| call % 5 == 0), None);
        // After many good calls, half a window of failures is enough.
        assert_eq!(stops_at(100, |call| call > 1000), Some(1050));
    }
}
