//! Options about threads, and bounded integers.

use std::time::Duration;

use anabranch_text::duration;
use clap::Args;

/// Threads and concurrency.
#[derive(Args)]
pub(crate) struct Threads {
    /// Threads for CPU work that is too large to run in place; by default one per core.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..))]
    cpu_threads: Option<u16>,
    /// CPU work that is expected to take longer than this runs on those threads: 50us, 1ms, 0.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration::parse)]
    pub(crate) inline_threshold: Option<Duration>,
    /// Runs one node at a time, for comparison.
    #[arg(long)]
    pub(crate) sequential: bool,
}

impl Threads {
    pub(crate) fn cpu_threads(&self) -> Option<usize> {
        self.cpu_threads.map(usize::from)
    }
}

/// The longest deadline, in milliseconds.
pub(crate) const A_DAY: u64 = 86_400_000;

/// Parses an integer within these bounds.
pub(crate) fn whole(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| match most {
        u64::MAX => format!("must be a whole number from {least}"),
        most => format!("must be a whole number from {least} to {most}"),
    })
}
