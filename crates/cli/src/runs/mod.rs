//! `anabranch runs` and `anabranch run`: the runs of a server, from its files or from the server itself.

mod source;
mod list;
mod show;
mod bars;

use clap::Subcommand;

pub(crate) use list::{HELP as LIST_HELP, List};

use crate::failure::Failure;

/// What to do with one run.
#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Shows a run: its state, failures, ledger and timeline.
    #[command(after_help = show::HELP)]
    Show(show::Show),
}

impl Verb {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
            Verb::Show(show) => show.run(),
        }
    }
}
