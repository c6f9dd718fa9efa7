//! `anabranch token`: the tokens of a server other than the local one.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anabranch_server::{Scope, TokenError, TokenRecord};
use anabranch_text::{duration, utc};
use clap::{Args, Subcommand};

use crate::args::EXIT_CODES;
use crate::failure::Failure;
use crate::out;
use crate::recipe::DataFolder;
use crate::table::Table;

const ADD_HELP: &str = "\
stdout: the token. It is shown only once: the server stores its hash. A running server accepts it
within a second.

  anabranch token add ci --scope run
  anabranch token add dashboard --scope read --expires 30d

Exit codes: 0 fine; 1 refused or failed (stderr says why); 2 wrong usage.";

/// The commands for tokens.
#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Creates a token and prints it.
    #[command(after_help = ADD_HELP)]
    Add(Add),
    /// Lists tokens.
    #[command(after_help = EXIT_CODES)]
    List(List),
    /// Removes a token; a running server refuses it within a second.
    #[command(after_help = EXIT_CODES)]
    Revoke(Revoke),
}

/// Creates a token.
#[derive(Args)]
pub(crate) struct Add {
    /// The name of the token, for lists and logs.
    name: String,
    /// The scope: read (look at everything), run (also run, compute and store), admin (everything).
    #[arg(long, default_value = "run", value_name = "SCOPE")]
    scope: Scope,
    /// How long the token is valid: 12h, 30d. It never expires if not given.
    #[arg(long, value_name = "TIME", value_parser = lifetime)]
    expires: Option<Duration>,
    #[command(flatten)]
    data: DataFolder,
}

/// Lists tokens.
#[derive(Args)]
pub(crate) struct List {
    #[command(flatten)]
    data: DataFolder,
}

/// Removes a token.
#[derive(Args)]
pub(crate) struct Revoke {
    /// The name of the token.
    name: String,
    #[command(flatten)]
    data: DataFolder,
}

/// The token file in the folder of a store.
pub(crate) fn file_in(data: &Path) -> PathBuf {
    data.join("tokens.toml")
}

/// Parses a duration, also in days.
fn lifetime(text: &str) -> Result<Duration, String> {
    let days = text.strip_suffix('d').and_then(|days| days.trim().parse::<u32>().ok());
    match days {
        Some(days) => Ok(Duration::from_secs(u64::from(days) * 86_400)),
        None => duration::parse(text),
    }
}

fn failed(error: TokenError) -> Failure {
    Failure::Failed(Box::new(error))
}

impl Verb {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
            Verb::Add(Add { name, scope, expires, data }) => {
                let token = TokenRecord::add(&file(&data)?, &name, scope, expires).map_err(failed)?;
                out::data(&format!("{}\n", token.as_str()))
            }
            Verb::List(List { data }) => list(&file(&data)?),
            Verb::Revoke(Revoke { name, data }) => TokenRecord::revoke(&file(&data)?, &name).map_err(failed),
        }
    }
}

/// The token file in the folder of a store, which must exist.
fn file(data: &DataFolder) -> Result<PathBuf, Failure> {
    let folder = data.find()?;
    match folder.is_dir() {
        true => Ok(file_in(&folder)),
        false => Err(Failure::of(format!(
            "there is no store in {}; `anabranch serve` creates one; --data DIR names another folder",
            folder.display()
        ))),
    }
}

fn list(file: &Path) -> Result<(), Failure> {
    let records = TokenRecord::list(file).map_err(failed)?;
    let date = |time: SystemTime| {
        let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        utc(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    };
    let mut table = Table::new(["name", "scope", "created", "expires"]);
    for record in &records {
        let expires = record.expires.map_or_else(|| "never".to_owned(), date);
        table.row([record.name.to_string(), record.scope.to_string(), date(record.created), expires]);
    }
    out::data(&table.text(0))
}
