//! Options of a store that a command opens itself.

use anabranch_content::{Config, Health};
use clap::Args;

use crate::failure::Failure;

/// How a store is opened, and whether its losses fail the command.
#[derive(Args)]
pub(crate) struct StoreOptions {
    /// The most bytes that the store may use: 512MiB, 10GiB, 10GB. Derivable values are evicted to stay below. A server
    /// that is asked instead has a quota of its own.
    #[arg(long, value_name = "SIZE", env = "ANABRANCH_QUOTA", hide_env_values = true, value_parser = quota)]
    quota: Option<u64>,
    /// Exit with 0 instead of 3 when acknowledged data was lost.
    #[arg(long)]
    accept_loss: bool,
}

impl StoreOptions {
    /// The settings of the store.
    pub(crate) fn config(&self) -> Config {
        Config { quota_bytes: self.quota, ..Config::default() }
    }

    /// Fails if acknowledged data was lost. The log says what.
    pub(crate) fn check(&self, health: &Health) -> Result<(), Failure> {
        match health.lost > 0 && !self.accept_loss {
            true => Err(Failure::Lost),
            false => Ok(()),
        }
    }
}

/// A size of at least one byte.
fn quota(text: &str) -> Result<u64, String> {
    match size(text)? {
        0 => Err("a quota of 0 leaves no room for anything".to_owned()),
        bytes => Ok(bytes),
    }
}

/// `1048576`, `512MiB`, `10GB`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let digits = text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let units = [
        ("", 1),
        ("B", 1),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
    ];
    let scale = units.iter().find_map(|(name, bytes)| (*name == unit).then_some(*bytes));
    let bytes =
        number.parse().ok().zip(scale).and_then(|(number, scale): (u64, u64)| number.checked_mul(scale));
    bytes.ok_or_else(|| {
        "a size looks like 512MiB, 10GiB, 10GB or 1048576; units are B, KB, MB, GB, TB, KiB, MiB, GiB, TiB".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        let check = |text, bytes| assert_eq!(size(text), Ok(bytes), "{text}");
        check("0", 0);
        check("1048576", 1 << 20);
        check("7B", 7);
        check("512MiB", 512 << 20);
        check("10GiB", 10 << 30);
        check("10GB", 10_000_000_000);
        for wrong in ["", "GiB", "-1GB", "1.5GiB", "10 GB", "10gb", "10G", "99999999999TiB", "٣"] {
            assert!(size(wrong).is_err(), "{wrong}");
        }
        assert!(quota("0").is_err());
        assert_eq!(quota("1"), Ok(1));
    }
}
