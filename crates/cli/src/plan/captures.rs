//! `anabranch plan captures`.

use anabranch_content::Store;
use anabranch_plan_inspect::capture::{Capture, capture_sets, captures};
use clap::Args;

use super::capture::StoreAt;
use super::threads::whole;
use crate::failure::Failure;
use crate::out;
use crate::table::Table;
use crate::wait;

/// Lists captures.
#[derive(Args)]
pub(crate) struct Captures {
    #[command(flatten)]
    store: StoreAt,
    /// The captures of this set; without it, the sets.
    #[arg(long, value_name = "NAME")]
    set: Option<String>,
    /// How many captures are listed at most.
    #[arg(long, value_name = "N", default_value = "100", value_parser = |text: &str| whole(text, 1, u64::MAX))]
    most: u64,
}

/// Captures looked up at a time.
const PAGE: u64 = 100;

impl Captures {
    pub(crate) fn run(self) -> Result<(), Failure> {
        wait::here(Box::pin(async {
            let store = self.store.open_old()?;
            match &self.set {
                Some(set) => self.list(&store, set).await,
                None => sets(&store).await,
            }
        }))
    }

    async fn list(&self, store: &Store, set: &str) -> Result<(), Failure> {
        let mut members = captures(store, set).await?;
        let mut table = Table::new(["capture", "at", "plan", "user", "ended"]);
        let mut left = self.most;
        while left > 0 {
            let page = members.next(left.min(PAGE) as usize).await?;
            if page.is_empty() {
                break;
            }
            left -= page.len() as u64;
            for address in page {
                let capture = Capture::load(store, address).await?;
                let at = capture.at.map_or_else(String::new, |at| utc(at.0));
                let (plan, user) = (capture.plan_name(), capture.user_id());
                let user = user.map_or_else(String::new, |user| user.to_string());
                table.row([address.to_string(), at, plan, user, ended(&capture)]);
            }
        }
        out::data(&table.text(0))
    }
}

async fn sets(store: &Store) -> Result<(), Failure> {
    let mut table = Table::new(["set", "captures"]);
    for set in capture_sets(store).await? {
        let count = captures(store, &set).await?.count().await?;
        table.row([set, count.to_string()]);
    }
    out::data(&table.text(0))
}

fn ended(capture: &Capture) -> String {
    let masked = if capture.masked { ", masked" } else { "" };
    match (&capture.outcome.failure, capture.outcome.ledger.len()) {
        (Some(_), _) => format!("failed{masked}"),
        (None, 0) => format!("answered{masked}"),
        (None, count) => format!("answered, {count} degraded{masked}"),
    }
}

/// Milliseconds since 1970 as a date and time of day.
pub(crate) fn utc(millis: u64) -> String {
    let (days, seconds) = (millis / 86_400_000, millis / 1_000 % 86_400);
    // Years are counted from a March, so that a leap day is the last of its year.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year}-{month:02}-{day_of_month:02} {hours:02}:{minutes:02}:{seconds:02}")
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn times_are_dates() {
        assert_eq!(utc(0), "1970-01-01 00:00:00");
        assert_eq!(utc(951_868_799_000), "2000-02-29 23:59:59");
        assert_eq!(utc(1_794_750_062_000), "2026-11-15 13:41:02");
    }
}
