//! Options about threads, and numbers and times as people write them.

use std::time::Duration;

use clap::Args;

/// How much runs at once, and where.
#[derive(Args)]
pub(crate) struct Threads {
    /// Threads for computing that is too large to be done in place; one a core if not given.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..))]
    cpu_threads: Option<u16>,
    /// Computing that is expected to take longer than this leaves for those threads: 50us, 1ms, 0.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = duration)]
    pub(crate) inline_threshold: Option<Duration>,
    /// One node at a time, for comparison.
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

/// A whole number in these bounds.
pub(crate) fn whole(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| match most {
        u64::MAX => format!("must be a whole number from {least}"),
        most => format!("must be a whole number from {least} to {most}"),
    })
}

/// `50us`, `1.5ms`, `2s`, `5m`, `24h` or `0`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let units = [("us", 1e-6), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let parsed = units.iter().find_map(|(unit, seconds)| {
        let number: f64 = text.strip_suffix(unit)?.parse().ok()?;
        Duration::try_from_secs_f64(number * seconds).ok()
    });
    parsed.ok_or_else(|| "a time looks like 50us, 1.5ms, 2s, 5m, 24h or 0".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        let check = |text, micros| assert_eq!(duration(text), Ok(Duration::from_micros(micros)), "{text}");
        check("50us", 50);
        check("1.5ms", 1500);
        check("2s", 2_000_000);
        check("1m", 60_000_000);
        check("1h", 3_600_000_000);
        check("0", 0);
        for wrong in ["", "5", "ms", "-1s", "1d", "infs", "NaNms"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
