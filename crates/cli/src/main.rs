//! `anabranch`: plans, recipes and datasets on the command line, a server, and a demonstration.
//!
//! Data goes to stdout, everything else to stderr. Each subcommand has one file. The work is done in the libraries.

mod args;
mod failure;
mod log;
mod out;
mod table;
mod token;
mod local_token;
mod wait;
mod signals;
mod fresh;
mod demo;
mod plan;
mod recipe;
mod dataset;
mod runs;
mod serve;
mod completions;
mod man;
mod worker;

use std::process::ExitCode;

fn main() -> ExitCode {
    if worker::is_asked_for() {
        return anabranch_plan_ts::serve();
    }
    match args::parse().and_then(args::Cli::run) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
