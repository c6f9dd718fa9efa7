//! `anabranch recipe ref`.

use anabranch_content::Address;
use anabranch_text::utc;
use clap::{Args, Subcommand};
use serde_json::{Value as Json, json};

use super::at::{At, MissingStore};
use super::show;
use crate::args::STORE_EXIT_CODES;
use crate::failure::Failure;
use crate::out;
use crate::table::Table;

/// The verbs of names.
#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Points a name to an address.
    #[command(after_help = STORE_EXIT_CODES)]
    Set(Set),
    /// Prints the address of a name.
    #[command(after_help = STORE_EXIT_CODES)]
    Get(NameArgs),
    /// Lists all names.
    #[command(after_help = STORE_EXIT_CODES)]
    List(List),
    /// Lists the addresses that a name has had, newest first.
    #[command(after_help = STORE_EXIT_CODES)]
    History(NameArgs),
    /// Drops a name. Its history stays and holds its addresses, unless --history is given.
    #[command(after_help = STORE_EXIT_CODES)]
    Drop(DropName),
}

/// Points a name to an address.
#[derive(Args)]
pub(crate) struct Set {
    /// The name.
    name: String,
    /// An address, the first 6 or more digits of one, or another name for one.
    #[arg(value_name = "TARGET")]
    target: String,
    /// Sets the name only if it points to this now: a target, or `none` if it must not be set. Else it stays, and the
    /// exit code is 1.
    #[arg(long, value_name = "OLD|none")]
    if_is: Option<String>,
    #[command(flatten)]
    at: At,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// About a name.
#[derive(Args)]
pub(crate) struct NameArgs {
    /// The name.
    name: String,
    #[command(flatten)]
    at: At,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// Drops a name.
#[derive(Args)]
pub(crate) struct DropName {
    #[command(flatten)]
    of: NameArgs,
    /// Drops its history too, so that collection can remove its earlier addresses.
    #[arg(long)]
    history: bool,
    /// Drops the name only if it points to this target now. Else it stays, and the exit code is 1.
    #[arg(long, value_name = "OLD", conflicts_with = "history")]
    if_is: Option<String>,
}

/// Lists names.
#[derive(Args)]
pub(crate) struct List {
    #[command(flatten)]
    at: At,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

impl Verb {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
            Verb::Set(set) => set.run(),
            Verb::Get(of) => of.get(),
            Verb::List(list) => list.run(),
            Verb::History(of) => of.history(),
            Verb::Drop(drop) => drop.run(),
        }
    }
}

fn show_name(name: &str, address: Address, as_json: bool) -> Result<(), Failure> {
    match as_json {
        true => show::json(&json!({"name": name, "address": address.to_string()})),
        false => out::data(&format!("{address}\n")),
    }
}

impl Set {
    fn run(self) -> Result<(), Failure> {
        self.at.run(MissingStore::Refuse, async |backend| {
            let address = backend.find(&self.target).await?;
            match self.if_is.as_deref() {
                None => backend.set_ref(&self.name, Some(address)).await?,
                Some("none") => backend.set_ref_if(&self.name, Some(address), None).await?,
                Some(old) => {
                    let old = backend.find(old).await?;
                    backend.set_ref_if(&self.name, Some(address), Some(old)).await?
                }
            };
            show_name(&self.name, address, self.json)
        })
    }
}

impl NameArgs {
    fn get(self) -> Result<(), Failure> {
        self.at.run(MissingStore::Refuse, async |backend| {
            let now = backend.history(&self.name).await?.last().copied();
            let Some(address) = now.and_then(|now| now.address) else {
                return Err(backend.nothing_named(&self.name).await);
            };
            show_name(&self.name, address, self.json)
        })
    }

    fn history(self) -> Result<(), Failure> {
        self.at.run(MissingStore::Refuse, async |backend| {
            let history = backend.history(&self.name).await?;
            if history.is_empty() {
                return Err(backend.nothing_named(&self.name).await);
            }
            let newest_first = history.iter().rev();
            if self.json {
                let one = |named: &anabranch_content::NameChange| {
                    json!({"address": named.address.map(|address| address.to_string()), "at_millis": named.at.0})
                };
                return show::json(&newest_first.map(one).collect());
            }
            let mut table = Table::new(["since (UTC)", "address"]);
            for named in newest_first {
                let address = named.address.map_or_else(|| "dropped".to_owned(), |address| address.to_string());
                table.row([utc(named.at.0), address]);
            }
            out::data(&table.text(0))
        })
    }
}

impl DropName {
    fn run(self) -> Result<(), Failure> {
        let NameArgs { name, at, json } = self.of;
        at.run(MissingStore::Refuse, async |backend| {
            let history = backend.history(&name).await?;
            let was = history.last().and_then(|last| last.address);
            if history.is_empty() {
                return Err(backend.nothing_named(&name).await);
            }
            if was.is_none() && !self.history {
                return Err(Failure::of(format!(
                    "{name:?} is dropped already, and its history holds its earlier addresses; --history drops that too"
                )));
            }
            match &self.if_is {
                Some(old) => {
                    let old = backend.find(old).await?;
                    backend.set_ref_if(&name, None, Some(old)).await?
                }
                None if self.history => backend.forget_ref(&name).await?,
                None => backend.set_ref(&name, None).await?,
            };
            if json {
                let was = was.map(|was| was.to_string());
                return show::json(&json!({"name": name, "was": was, "history_dropped": self.history}));
            }
            let was = was.map(|was| format!(", which pointed to {was}")).unwrap_or_default();
            let history = if self.history { ", and its history" } else { "" };
            out::note(&format!("dropped `{name}`{was}{history}"));
            Ok(())
        })
    }
}

impl List {
    fn run(self) -> Result<(), Failure> {
        self.at.run(MissingStore::Refuse, async |backend| {
            let refs = backend.refs().await?;
            if self.json {
                let entry =
                    |(name, address): &(String, Address)| (name.clone(), Json::from(address.to_string()));
                return show::json(&Json::Object(refs.iter().map(entry).collect()));
            }
            let mut table = Table::new(["name", "address"]);
            refs.iter().for_each(|(name, address)| table.row([name.clone(), address.to_string()]));
            show::table(&table, refs.len(), "no names yet; `anabranch recipe ref set NAME TARGET` makes one")
        })
    }
}
