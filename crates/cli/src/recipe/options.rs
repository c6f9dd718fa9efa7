//! Options of a store that a command opens itself.

use anabranch_content::{Config, Health};
use anabranch_text::size;
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

    /// The quota that the user gave.
    pub(crate) fn quota(&self) -> Option<u64> {
        self.quota
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
    match size::parse(text)? {
        0 => Err("a quota of 0 leaves no room for anything".to_owned()),
        bytes => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::quota;

    #[test]
    fn a_quota_is_at_least_one_byte() {
        assert_eq!(quota("1 KiB"), Ok(1024));
        assert!(quota("0").is_err());
    }
}
