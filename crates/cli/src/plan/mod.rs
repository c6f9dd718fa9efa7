//! `anabranch plan`: one file per subcommand.

mod project_args;
mod lookup;
mod threads;
mod request;
mod run;
mod capture;
mod replay;
mod captures;
mod diff;
mod build;
mod watch;
mod check;
mod explain;
mod why;
mod load_generator;
mod bench;
mod list;
mod seed;
mod info;
mod ops;
mod types;
mod new;

use clap::Subcommand;

pub(crate) use project_args::nearest_project;
pub(crate) use run::{ledger, table};

use crate::args::EXIT_CODES;
use crate::failure::Failure;

/// The subcommands of `anabranch plan`.
#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Answers one request: reads it from stdin, writes the answer as one line of JSON.
    #[command(after_help = run::HELP)]
    Run(Box<run::Run>),
    /// Answers one request and stores it with everything that the answer depends on.
    #[command(after_help = capture::HELP)]
    Capture(Box<capture::Capture>),
    /// Answers a captured request again, with the same bytes.
    #[command(after_help = replay::HELP)]
    Replay(replay::Replay),
    /// Lists sets of captures, or the captures of one.
    #[command(after_help = EXIT_CODES)]
    Captures(captures::Captures),
    /// Compares the answers of two plans to captured requests.
    #[command(after_help = diff::HELP)]
    Diff(Box<diff::Diff>),
    /// Compiles plans written in TypeScript, NAME.plan.ts, to plan JSON, NAME.plan.json.
    #[command(after_help = build::HELP)]
    Build(Box<build::Build>),
    /// Checks plans, their registry and their project; reports everything that `plan run` would refuse.
    #[command(after_help = EXIT_CODES)]
    Check(check::Check),
    /// Shows what a plan will do: nodes, columns, reads, and which nodes run side by side.
    #[command(after_help = EXIT_CODES)]
    Explain(explain::Explain),
    /// Explains why a row is in the answer to a request or not: the node that brought it, the node that dropped it, and what would keep it.
    #[command(after_help = why::HELP)]
    Why(Box<why::Why>),
    /// Measures a plan under load.
    #[command(after_help = bench::HELP)]
    Bench(Box<bench::Bench>),
    /// Lists the plans of the plan folder and the state of each.
    #[command(after_help = EXIT_CODES)]
    List(list::List),
    /// Fills a Redis from data files.
    #[command(after_help = EXIT_CODES)]
    Seed(seed::Seed),
    /// Prints which columns each node of a plan writes, and which capabilities the plan requires, as JSON.
    #[command(after_help = EXIT_CODES)]
    Info(info::Info),
    /// Lists the ops that plans are made of, with their parameters.
    #[command(after_help = EXIT_CODES)]
    Ops(ops::Ops),
    /// Writes type declarations for plans in TypeScript, for editors.
    #[command(after_help = types::HELP)]
    Types(types::Types),
    /// Creates a plan in TypeScript, and a project if there is none.
    #[command(after_help = new::HELP)]
    New(new::New),
}

impl Verb {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
            Verb::Run(run) => run.run(),
            Verb::Capture(capture) => capture.run(),
            Verb::Replay(replay) => replay.run(),
            Verb::Captures(captures) => captures.run(),
            Verb::Diff(diff) => diff.run(),
            Verb::Build(build) => build.run(),
            Verb::Check(check) => check.run(),
            Verb::Explain(explain) => explain.run(),
            Verb::Why(why) => why.run(),
            Verb::Bench(bench) => bench.run(),
            Verb::List(list) => list.run(),
            Verb::Seed(seed) => seed.run(),
            Verb::Info(info) => info.run(),
            Verb::Ops(ops) => ops.run(),
            Verb::Types(types) => types.run(),
            Verb::New(new) => new.run(),
        }
    }
}
