//! `anabranch plan captures`.

use anabranch_content::{Address, Store};
use anabranch_plan_inspect::capture::{Capture, capture_sets, captures};
use anabranch_text::utc;
use clap::Args;
use serde_json::{Value, json};

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
    /// The most captures that are listed, the latest first.
    #[arg(long, value_name = "N", default_value = "100", value_parser = |text: &str| whole(text, 1, u64::MAX))]
    most: u64,
    /// Writes JSON.
    #[arg(long)]
    json: bool,
}

/// A line of the list.
struct CaptureSummary {
    address: Address,
    at: Option<u64>,
    plan: String,
    user: Option<String>,
    ended: String,
}

/// The number of captures that are looked up at a time.
const PAGE: usize = 100;

impl Captures {
    pub(crate) fn run(self) -> Result<(), Failure> {
        wait::here(Box::pin(async {
            let store = self.store.open_old()?;
            match &self.set {
                Some(set) => self.list(&store, set).await,
                None => self.sets(&store).await,
            }
        }))
    }

    /// Lists the captures of a set, newest first.
    async fn list(&self, store: &Store, set: &str) -> Result<(), Failure> {
        let mut members = captures(store, set).await?;
        let mut found = Vec::new();
        loop {
            let page = members.next(PAGE).await?;
            if page.is_empty() {
                break;
            }
            for address in page {
                found.push(CaptureSummary::of(&Capture::load(store, address).await?));
            }
            // The order of a set is arbitrary, so all captures are read; only those to list are kept.
            found.sort_by_key(|listed| (std::cmp::Reverse(listed.at), *listed.address.as_bytes()));
            found.truncate(usize::try_from(self.most).unwrap_or(usize::MAX));
        }
        if self.json {
            let list: Vec<Value> = found.iter().map(CaptureSummary::json).collect();
            return out::data(&format!("{:#}\n", Value::from(list)));
        }
        let mut table = Table::new(["capture", "at", "plan", "user", "ended"]);
        for CaptureSummary { address, at, plan, user, ended } in found {
            let at = at.map_or_else(String::new, utc);
            table.row([address.to_string(), at, plan, user.unwrap_or_default(), ended]);
        }
        out::data(&table.text(0))
    }

    async fn sets(&self, store: &Store) -> Result<(), Failure> {
        let mut table = Table::new(["set", "captures"]);
        let mut list = Vec::new();
        for set in capture_sets(store).await? {
            let count = captures(store, &set).await?.count().await?;
            list.push(json!({"set": set, "captures": count}));
            table.row([set, count.to_string()]);
        }
        match self.json {
            true => out::data(&format!("{:#}\n", Value::from(list))),
            false => out::data(&table.text(0)),
        }
    }
}

impl CaptureSummary {
    fn of(capture: &Capture) -> CaptureSummary {
        CaptureSummary {
            address: capture.address,
            at: capture.at.map(|at| at.0),
            plan: capture.plan_name(),
            user: capture.user_id().map(|user| user.to_string()),
            ended: ended(capture),
        }
    }

    fn json(&self) -> Value {
        json!({
            "capture": self.address.to_string(),
            "at": self.at.map(utc),
            "at_ms": self.at,
            "plan": self.plan,
            "user": self.user,
            "ended": self.ended,
        })
    }
}

fn ended(capture: &Capture) -> String {
    let masked = if capture.masked { ", masked" } else { "" };
    match (&capture.outcome.failure, capture.outcome.ledger.len()) {
        (Some(_), _) => format!("failed{masked}"),
        (None, 0) => format!("answered{masked}"),
        (None, count) => format!("answered, {count} degraded{masked}"),
    }
}
