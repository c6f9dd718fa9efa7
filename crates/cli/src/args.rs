//! The command line.

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use tracing_subscriber::filter::LevelFilter;

use crate::failure::Failure;
use crate::log::LogOption;
use crate::{completions, dataset, demo, man, out, plan, recipe, runs, serve, token};

/// The end of the help text of commands that do not open a store.
pub(crate) const EXIT_CODES: &str =
    "Exit codes: 0 fine; 1 refused or failed (stderr says why); 2 wrong usage.";

/// The end of the help text of commands that open a store.
pub(crate) const STORE_EXIT_CODES: &str = "\
Exit codes: 0 fine; 1 refused or failed (stderr says why); 2 wrong usage; 3 done, but data that had
been acknowledged was lost (the log says what).";

/// Runs graphs of work: nodes that wait on the network or use the CPU, each started as soon as its inputs are ready.
#[derive(Parser)]
#[command(name = "anabranch", version, max_term_width = 100, after_help = STORE_EXIT_CODES)]
#[command(arg_required_else_help = true)]
pub(crate) struct Cli {
    /// Log lines on stderr: text or json, a level (off, error, warn, info, debug), or both: json,debug. The level is
    /// warn if not given, and info for `serve`.
    #[arg(
        long,
        global = true,
        display_order = 900,
        value_name = "FORMAT",
        env = "ANABRANCH_LOG",
        default_value = "text",
        hide_env_values = true
    )]
    log: LogOption,
    #[command(subcommand)]
    noun: Noun,
}

#[derive(Subcommand)]
enum Noun {
    /// Ranking plans: rows from sources, expressions, filters, sorts.
    #[command(subcommand, arg_required_else_help = true)]
    Plan(plan::Verb),
    /// Recipes: functions of blobs and of each other, computed once and kept.
    #[command(subcommand, arg_required_else_help = true)]
    Recipe(recipe::Verb),
    /// Datasets: columns by rows of samplers, templates and calls of language models.
    #[command(subcommand, arg_required_else_help = true)]
    Dataset(dataset::Verb),
    /// Serves plans, recipes and datasets over HTTP and gRPC, with a console for browsers.
    #[command(after_help = serve::HELP)]
    Serve(Box<serve::Serve>),
    /// Lists the runs that a server has kept: plans, recipes, datasets.
    #[command(after_help = runs::LIST_HELP)]
    Runs(runs::List),
    /// One run: its state, failures and timeline.
    #[command(subcommand, arg_required_else_help = true)]
    Run(runs::Verb),
    /// Tokens, which let clients call a server.
    #[command(subcommand, arg_required_else_help = true)]
    Token(token::Verb),
    /// Runs an example feed, recipes and a dataset on built-in data, then serves a console that shows them.
    Demo(demo::Demo),
    /// Prints the completions for a shell.
    #[command(after_help = completions::HELP)]
    Completions(completions::Completions),
    /// Prints a manual page, or writes all of them.
    #[command(after_help = man::HELP)]
    Man(man::Man),
    /// Prints the version.
    #[command(after_help = EXIT_CODES)]
    Version,
}

/// Parses the command line. Help goes to stdout and is not a failure.
pub(crate) fn parse() -> Result<Cli, Failure> {
    let matches = Cli::command().try_get_matches().map_err(Failure::Usage)?;
    let mut cli =
        Cli::from_arg_matches(&matches).map_err(|error| Failure::Usage(error.format(&mut Cli::command())))?;
    if let (Noun::Serve(serve), Some(matches)) = (&mut cli.noun, matches.subcommand_matches("serve")) {
        serve.sources = serve::Sources::of(matches);
        serve.log = serve.sources.has("log").then_some(cli.log);
    }
    Ok(cli)
}

impl Cli {
    /// Runs the command.
    pub(crate) fn run(self) -> Result<(), Failure> {
        // `serve` may have the option from its project file.
        if !matches!(self.noun, Noun::Serve(_)) {
            self.log.or_level(LevelFilter::WARN).start();
        }
        match self.noun {
            Noun::Plan(verb) => verb.run(),
            Noun::Recipe(verb) => verb.run(),
            Noun::Dataset(verb) => verb.run(),
            Noun::Serve(serve) => serve.run(),
            Noun::Runs(list) => list.run(),
            Noun::Run(verb) => verb.run(),
            Noun::Token(verb) => verb.run(),
            Noun::Demo(demo) => demo.run(),
            Noun::Completions(completions) => completions.run(),
            Noun::Man(man) => man.run(),
            Noun::Version => out::data(concat!("anabranch ", env!("CARGO_PKG_VERSION"), "\n")),
        }
    }
}
