//! The settings of an engine: its threads and the number of runs that it admits.

use std::time::Duration;

/// The settings of an [`Engine`](crate::Engine).
#[derive(Clone, Debug)]
pub struct Config {
    /// Threads for CPU work of runs in [`Class::Latency`](crate::options::Class::Latency). Default: one per core.
    pub cpu_threads: usize,
    /// Threads for CPU work of runs in [`Class::Batch`](crate::options::Class::Batch), at a lower priority of the
    /// operating system. Default: one per core, and one that an application can keep free of long jobs.
    pub batch_threads: usize,
    /// Threads for calls that block. Default: 16.
    pub blocking_threads: usize,
    /// A job whose expected cost is at most this runs on the run's own task instead of a pool. Default: 50 us.
    pub inline_threshold: Duration,
    /// Runs that may be active at the same time. Default: 100,000.
    pub max_runs: usize,
}

impl Default for Config {
    fn default() -> Config {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Config {
            cpu_threads: cores,
            batch_threads: cores + 1,
            blocking_threads: 16,
            inline_threshold: Duration::from_micros(50),
            max_runs: 100_000,
        }
    }
}

impl Config {
    pub(crate) fn check(&self) -> Result<(), ZeroSetting> {
        let settings = [
            ("cpu_threads", self.cpu_threads),
            ("batch_threads", self.batch_threads),
            ("blocking_threads", self.blocking_threads),
            ("max_runs", self.max_runs),
        ];
        match settings.into_iter().find(|(_, value)| *value == 0) {
            Some((setting, _)) => Err(ZeroSetting { setting }),
            None => Ok(()),
        }
    }
}

/// A field of [`Config`] is 0.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{setting}` is 0; an engine needs at least 1")]
pub struct ZeroSetting {
    pub setting: &'static str,
}
