//! A limit of the log lines of failed requests. Without it, an outage of a source would write one line per request, and
//! each line takes time of the threads that answer.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The most lines per second of one route and status.
const LINES_MOST: u64 = 10;

const SECOND: Duration = Duration::from_secs(1);

/// Counts failed requests, by the index of their route and their status.
#[derive(Default)]
pub(crate) struct FaultLog(Mutex<HashMap<(usize, u16), Failures>>);

/// The failures since the start of the current second.
struct Failures {
    began: Instant,
    count: u64,
}

impl FaultLog {
    /// Counts a failure. If it has a log line: the number of failures before it that have none.
    pub(super) fn count(&self, kind: (usize, u16), now: Instant) -> Option<u64> {
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let failures = kinds.entry(kind).or_insert(Failures { began: now, count: 0 });
        let mut omitted = 0;
        if now.saturating_duration_since(failures.began) >= SECOND {
            omitted = failures.count.saturating_sub(LINES_MOST);
            *failures = Failures { began: now, count: 0 };
        }
        failures.count += 1;
        (failures.count <= LINES_MOST).then_some(omitted)
    }
}

#[cfg(test)]
mod tests {
    use anabranch_engine::clock::{Clock as _, SystemClock};

    use super::*;

    #[test]
    fn an_outage_has_ten_lines_per_second_and_counts_the_others() {
        let (log, began) = (FaultLog::default(), SystemClock.now());
        let at = |millis| began + Duration::from_millis(millis);
        let lines = |kind, millis, count| -> Vec<u64> {
            (0..count).filter_map(|_| log.count(kind, at(millis))).collect()
        };
        assert_eq!(lines((3, 502), 0, 25), [0; 10]);
        assert!(lines((3, 502), 999, 5).is_empty(), "the same second");
        assert_eq!(lines((3, 500), 999, 2), [0; 2], "another status");
        assert_eq!(lines((4, 502), 999, 1), [0], "another route");
        assert_eq!(lines((3, 502), 1000, 2), [20, 0], "so many were left out");
        assert_eq!(lines((3, 502), 9000, 1), [0]);
    }
}
