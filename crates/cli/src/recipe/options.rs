//! Options of a store that the command itself opens.

use anabranch_content::{Config, Health};
use anabranch_text::size;
use clap::Args;

use crate::failure::Failure;

/// How a store is opened, and whether its losses fail the command.
#[derive(Args)]
pub(crate) struct StoreOptions {
    /// The maximum size of the store, such as 512MiB, 10GiB or 10GB. Derivable values are evicted to stay below. A server
    /// has its own quota.
    #[arg(long, value_name = "SIZE", env = "ANABRANCH_QUOTA", hide_env_values = true, value_parser = quota)]
    quota: Option<u64>,
    /// Exit with 0 instead of 3 when acknowledged data was lost.
    #[arg(long, value_name = "BOOL", env = "ANABRANCH_ACCEPT_LOSS", hide_env_values = true)]
    #[arg(num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    accept_loss: Option<bool>,
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

    /// Whether the user accepts losses; `None` if they did not say.
    pub(crate) fn accept_loss(&self) -> Option<bool> {
        self.accept_loss
    }

    /// Fails if acknowledged data was lost, unless the user accepts that.
    pub(crate) fn check(&self, health: &Health) -> Result<(), Failure> {
        check_losses(health, self.accept_loss.unwrap_or_default())
    }
}

/// Fails if acknowledged data was lost and that is not accepted. The log has the details.
pub(crate) fn check_losses(health: &Health, accepted: bool) -> Result<(), Failure> {
    match health.lost > 0 && !accepted {
        true => Err(Failure::Lost),
        false => Ok(()),
    }
}

/// Parses a size of at least one byte.
pub(crate) fn quota(text: &str) -> Result<u64, String> {
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
