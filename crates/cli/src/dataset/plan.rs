//! `anabranch dataset plan`.

use std::path::PathBuf;
use std::time::Duration;

use anabranch_dataset::{BuildOptions, BuildPlan, ColumnPlan, LoadedConfig, PlanCheck, Totals};
use anabranch_text::{duration, money};
use clap::Args;

use super::build::ContinueOptions;
use super::flow::FlowOptions;
use super::sources::{self, GenerateOptions, engine, runtime};
use super::unbuilt;
use crate::failure::Failure;
use crate::table::Table;
use crate::{out, wait};
use anabranch_dataset_inspect::grouped;

/// The end of the help text.
pub(super) const HELP: &str = "\
A dry run of the build: cells whose replies the journal has get their true values, and everything
that depends on them is followed. No model is asked, no server is contacted, no row is written.
Keys of providers are not needed.

  reused    the reply is in the journal, or the row is on disk: it costs nothing
  generate  the journal lacks the reply, or the cell depends on one that it lacks

Calls and tokens are estimated from replies of the same column, else of the same model, else by
guesses, which are named. Build a few rows first, and the figures of the rest are measured. Money
needs `prices:` in the configuration or the models file.

The plan is saved as plan.json if the folder is there (or with --save). A build of the same inputs
and rows then shows the plan beside what it came to.

  anabranch dataset plan tickets.yaml --rows 100000 --out tickets
  anabranch dataset plan tickets.yaml --rows 100000 --out tickets --replace   # after an edit

Exit codes: 0 planned; 1 refused (a build has the journal, a file cannot be read); 2 wrong usage.";

/// Says what a build would cost.
#[derive(Args)]
pub(crate) struct Plan {
    #[command(flatten)]
    generated: GenerateOptions,
    /// The number of rows: of the first stage, if there are several [default: `rows` of the configuration].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    rows: Option<u64>,
    /// The folder that the build would write to.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// The plan on stdout as JSON, instead of the table.
    #[arg(long)]
    json: bool,
    /// Saves the plan in the folder, which is made if it is not there.
    #[arg(long)]
    save: bool,
    #[command(flatten)]
    continued: ContinueOptions,
    #[command(flatten)]
    flow: FlowOptions,
}

impl Plan {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let mut loaded = self.generated.load()?;
        self.flow.apply(&mut loaded)?;
        wait::on(&runtime()?, Box::pin(self.plan(loaded)))
    }

    async fn plan(&self, loaded: LoadedConfig) -> Result<(), Failure> {
        let engine = engine()?;
        let dataset = self.generated.dry_dataset(&loaded, &engine)?;
        let options = BuildOptions {
            rows: sources::rows(self.rows, &loaded)?,
            out: self.out.clone(),
            replace: self.continued.replace,
            retry_failed: self.continued.retry_failed,
            journal: self.continued.journal(),
            ..BuildOptions::default()
        };
        let run = dataset.dry_run(&options).await.map_err(|error| unbuilt::failure(error, &self.out))?;
        let plan = BuildPlan::new(&loaded, &run);
        if self.save || self.out.is_dir() {
            plan.save(&self.out).map_err(|error| Failure::Failed(Box::new(error)))?;
        }
        match self.json {
            true => {
                let json =
                    serde_json::to_string_pretty(&plan).map_err(|error| Failure::Failed(Box::new(error)))?;
                out::data(&format!("{json}\n"))
            }
            false => out::data(&self.text(&loaded, &plan)),
        }
    }

    fn text(&self, loaded: &LoadedConfig, plan: &BuildPlan) -> String {
        let out = self.out.display();
        let mut text = format!("{}: a plan of {} rows in {out}\n", loaded.config.name, grouped(plan.rows));
        if plan.is_complete {
            text.push_str("  the build is complete: nothing is left to do, no call is needed\n");
        } else if plan.rows_on_disk > 0 {
            text.push_str(&format!(
                "  {} rows are on disk and stay as they are\n",
                grouped(plan.rows_on_disk)
            ));
        }
        if !plan.differ.is_empty() {
            let differ = plan.differ.join(", ");
            text.push_str(&format!(
                "  the folder holds a dataset that differs in: {differ}; its build needs --replace, \
                 which keeps the journal\n"
            ));
        }
        if !plan.columns.is_empty() {
            text.push('\n');
            text.push_str(&columns(plan).text(2));
            text.push('\n');
        }
        text.push_str(&format!("  {}; {} cells reused\n", spent(&plan.totals()), grouped(plan.reused)));
        for guess in &plan.guesses {
            text.push_str(&format!("  a guess: {guess}\n"));
        }
        text
    }
}

fn columns(plan: &BuildPlan) -> Table {
    let head = [
        "column",
        "alias",
        "cells",
        "reused",
        "generate",
        "calls",
        "tokens in",
        "tokens out",
        "cost",
        "figures",
        "why",
    ];
    let mut table = Table::new(head);
    for column in &plan.columns {
        let ColumnPlan { name, alias, cells, reused, generate, calls, input_tokens, output_tokens, .. } =
            column;
        let numbers = [cells, reused, generate, calls, input_tokens, output_tokens].map(u64::to_string);
        let cost = column.cost.map_or_else(|| "no price".to_owned(), money::format);
        let basis = if *calls == 0 { "" } else { &column.basis };
        let words = [cost, basis.to_owned(), column.why.clone()];
        table.row([name.clone(), alias.clone()].into_iter().chain(numbers).chain(words));
    }
    table
}

/// Formats totals: "41,203 calls, about 18.2 M tokens, $312.40, 38m".
fn spent(totals: &Totals) -> String {
    let calls = match totals.calls {
        1 => "1 call".to_owned(),
        calls => format!("{} calls", grouped(calls)),
    };
    let tokens = short(totals.input_tokens + totals.output_tokens);
    let cost = totals.cost.map_or_else(|| "money unknown (no prices)".to_owned(), money::format);
    format!("{calls}, about {tokens} tokens, {cost}, {}", time(totals.seconds))
}

/// A number in about three digits.
fn short(number: u64) -> String {
    match number {
        0..10_000 => grouped(number),
        10_000..1_000_000 => format!("{:.1} k", number as f64 / 1e3),
        _ => format!("{:.1} M", number as f64 / 1e6),
    }
}

fn time(seconds: f64) -> String {
    let whole = if seconds < 10.0 { (seconds * 10.0).round() / 10.0 } else { seconds.round() };
    match whole {
        0.0 => "0 s".to_owned(),
        _ => duration::format(Duration::from_secs_f64(whole.clamp(0.0, 1e9))),
    }
}

/// A table that compares a plan with the build that it was made for.
pub(super) fn checked(check: &PlanCheck) -> Table {
    let mut table = Table::new(["", "calls", "tokens in", "tokens out", "cost", "time"]);
    for (name, totals) in [("estimated", &check.estimated), ("actual", &check.actual)] {
        let numbers =
            [totals.calls, totals.input_tokens, totals.output_tokens].map(|number| number.to_string());
        let cost = totals.cost.map_or_else(|| "no price".to_owned(), money::format);
        let words = [cost, time(totals.seconds)];
        table.row([name.to_owned()].into_iter().chain(numbers).chain(words));
    }
    table
}
