//! `anabranch dataset`: one file per verb.

mod sources;
mod check;
mod record;
mod preview;
mod display;
mod report;
mod flow;
mod budget;
mod unbuilt;
mod build;
mod plan;
mod remote_display;
mod submit;
mod status;
mod report_text;
mod report_command;
mod diff;
mod why;
mod why_text;
mod why_json;
mod export;
mod new;

use clap::Subcommand;

pub(crate) use anabranch_dataset_inspect::live::Pace;
pub(crate) use record::Records;
pub(crate) use report::errors_table;

use crate::args::EXIT_CODES;
use crate::failure::Failure;

/// What to do with datasets.
#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Checks a configuration: reports all errors at once, or shows its columns, models and seed.
    #[command(after_help = check::HELP)]
    Check(check::Check),
    /// Generates a few rows in memory and shows them as readable records.
    #[command(after_help = preview::HELP)]
    Preview(preview::Preview),
    /// Generates rows into a folder of Parquet files.
    #[command(after_help = build::HELP)]
    // Most of its size is flags.
    Build(Box<build::Build>),
    /// Says what a build would cost, and makes no call: calls, tokens, money and time, by column.
    #[command(after_help = plan::HELP)]
    Plan(Box<plan::Plan>),
    /// Has a server build a dataset: says its id, and waits for its end if you like.
    #[command(after_help = submit::HELP)]
    Submit(Box<submit::Submit>),
    /// Shows the state of a build: how far it is, what it spent, and how to go on.
    #[command(after_help = status::HELP)]
    Status(status::Status),
    /// Shows a built dataset: columns, distributions, errors, spend; as text or as one HTML page.
    #[command(after_help = report_command::HELP)]
    Report(report_command::Report),
    /// Compares two built datasets: rows, columns, cells, settings, spend.
    #[command(after_help = diff::HELP)]
    Diff(diff::Diff),
    /// Tells the story of one row: prompts, replies, cost and time of each cell, or what dropped it.
    #[command(after_help = why::HELP)]
    Why(why::Why),
    /// Writes the rows of a built dataset as JSON lines or CSV.
    #[command(after_help = EXIT_CODES)]
    Export(export::Export),
    /// Writes a small configuration that runs at once, and a template of a models file.
    #[command(after_help = new::HELP)]
    New(new::New),
}

impl Verb {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
            Verb::Check(check) => check.run(),
            Verb::Preview(preview) => preview.run(),
            Verb::Build(build) => build.run(),
            Verb::Plan(plan) => plan.run(),
            Verb::Submit(submit) => submit.run(),
            Verb::Status(status) => status.run(),
            Verb::Report(report) => report.run(),
            Verb::Diff(diff) => diff.run(),
            Verb::Why(why) => why.run(),
            Verb::Export(export) => export.run(),
            Verb::New(new) => new.run(),
        }
    }
}
