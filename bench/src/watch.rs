//! Wall and CPU time, and how latencies are spread.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Time that some work took.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkTime {
    pub(crate) wall: Duration,
    /// Of all threads of this process, in user and kernel mode.
    pub(crate) cpu: Duration,
}

pub(crate) struct Watch {
    wall: Instant,
    cpu: Duration,
}

impl Watch {
    pub(crate) fn start() -> Watch {
        Watch { cpu: cpu_time(), wall: Instant::now() }
    }

    pub(crate) fn stop(self) -> WorkTime {
        WorkTime { wall: self.wall.elapsed(), cpu: cpu_time() - self.cpu }
    }
}

impl WorkTime {
    /// Nanoseconds of wall and CPU time for each of `parts`.
    pub(crate) fn share(self, parts: u64) -> Share {
        let share = |time: Duration| time.as_nanos() as f64 / parts as f64;
        Share { wall: share(self.wall), cpu: share(self.cpu) }
    }
}

/// Nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    pub(crate) wall: f64,
    pub(crate) cpu: f64,
}

impl Share {
    pub(crate) fn of_each(self, parts: u32) -> Share {
        Share { wall: self.wall / f64::from(parts), cpu: self.cpu / f64::from(parts) }
    }
}

fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).expect("a process's CPU time is not negative")
}

/// CPU time of all processes that this one started and waited for.
pub(crate) fn children_cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("the system tells of processes");
    // The name in parentheses may have spaces; the times of children are the fields 16 and 17.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(13);
    let ticks: u64 = fields.take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1_000 / rustix::param::clock_ticks_per_second())
}

/// How latencies are spread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) p10: Duration,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
}

impl Spread {
    pub(crate) fn of(mut latencies: Vec<Duration>) -> Spread {
        latencies.sort_unstable();
        let at = |percent: usize| latencies[(latencies.len() - 1) * percent / 100];
        Spread { p10: at(10), p50: at(50), p99: at(99) }
    }
}
