//! `anabranch plan run`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anabranch_plan::{Answer, Engine, LedgerEntry, Plan, Registries, RunOptions, Scalar};
use anabranch_plan_inspect::Trace;
use anabranch_text::{count, duration};
use clap::Args;

use super::capture::CaptureTarget;
use super::lookup;
use super::project_args::{ProjectArgs, RowsUse};
use super::request;
use super::threads::{A_DAY, Threads, whole};
use crate::failure::Failure;
use crate::out;
use crate::table::Table;
use crate::wait;

pub(super) const HELP: &str = "\
stdout: {\"request_id\", \"engine_request_id\", \"candidates\": [{\"id\", \"fields\"}], \"ledger\"} on one line, or \
{\"error\", \"detail\"} if the request is refused. Problems of the plan, and errors while it runs, go to stderr.

  anabranch plan run feed.plan.json --registry DIR --data DATA.json < request.json
  anabranch plan run feed --request '{\"user_id\": 1}' --table --trace feed.html

Exit codes: 0 answered; 1 refused or failed; 2 wrong usage.";

/// Answers one request.
#[derive(Args)]
pub(crate) struct Run {
    /// A plan file, or the name of a plan in the plan folder.
    #[arg(value_name = "FILE|NAME")]
    plan: String,
    #[command(flatten)]
    project: ProjectArgs,
    /// The request, instead of stdin.
    #[arg(long, value_name = "JSON")]
    request: Option<String>,
    #[command(flatten)]
    threads: Threads,
    /// How long the answer may take; if not given, what the plan says.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = |text: &str| whole(text, 1, A_DAY))]
    deadline_ms: Option<u64>,
    /// A timeout for every node, in addition to those of the plan.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = |text: &str| whole(text, 1, A_DAY))]
    node_timeout_ms: Option<u64>,
    /// Writes a timeline of the run; the ending says which kind: .html, .svg, or .json for Perfetto.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Writes the answer as a table.
    #[arg(long)]
    table: bool,
    /// Writes one list of rows per output of the plan, by its name.
    #[arg(long, conflicts_with = "table")]
    by_output: bool,
}

impl Run {
    pub(crate) fn run(self) -> Result<(), Failure> {
        self.run_and(None)
    }

    /// Answers the request, and captures it.
    pub(super) fn run_and(self, keep: Option<CaptureTarget>) -> Result<(), Failure> {
        if let Some(file) = &self.trace {
            kind_of(file)?;
            if keep.is_some() {
                return Err(Failure::Wrong("--trace: a request is captured or traced, not both".to_owned()));
            }
        }
        // A single request has no use for several threads: every wakeup is for this thread.
        wait::here(Box::pin(self.answer(keep)))
    }

    async fn answer(self, keep: Option<CaptureTarget>) -> Result<(), Failure> {
        let engine = self.project.engine(Some(&self.threads), RowsUse::Needed)?;
        let plan = lookup::plan(&engine, &self.plan)?;
        self.project.warn_without_rows(&plan)?;
        out::warnings(&lookup::warnings(&engine, &self.plan, &plan));
        lookup::warn_if_behind(&engine, &self.plan);
        let text = request::text(self.request.as_deref())?;
        let request = request::parse(&text, engine.registries())?;
        if let Some(other) = request.plan.as_deref().filter(|other| *other != plan.name()) {
            out::note(&format!("warning: request: it asks for plan `{other}`; this is `{}`", plan.name()));
        }
        let now = engine.runs().clock().now();
        let options = RunOptions {
            deadline: self.deadline_ms.map(|millis| now + Duration::from_millis(millis)),
            node_timeout: self.node_timeout_ms.map(Duration::from_millis),
            sequential: self.threads.sequential,
            ..RunOptions::default()
        };
        let answer = match (&self.trace, keep) {
            (_, Some(keep)) => {
                let (store, set) = keep.place();
                let (answer, capture) =
                    anabranch_plan_inspect::capture(&plan, request, &options, store, set).await;
                // The response counts. It or its error is reported regardless of the capture's result.
                let written =
                    answer.map_err(Failure::from).and_then(|answer| self.write(&answer, &engine, &plan));
                return match (written, keep.told(capture).await) {
                    (Err(failure), Err(other)) => {
                        other.report();
                        Err(failure)
                    }
                    (written, told) => written.and(told),
                };
            }
            (None, None) => plan.run_with(request, &options).await,
            (Some(file), None) => {
                let (answer, trace) = anabranch_plan_inspect::run_traced(&plan, request, &options).await;
                if let Some(trace) = trace {
                    write_trace(&trace, file)?;
                }
                answer
            }
        };
        self.write(&answer?, &engine, &plan)
    }

    fn write(&self, answer: &Answer, engine: &Engine, plan: &Plan) -> Result<(), Failure> {
        if self.table {
            let (name, request, stats) = (plan.name(), &answer.request_id, answer.stats);
            let rows = count(answer.candidates().count(), "row");
            let (trips, commands) = (u64::from(stats.trips), u64::from(stats.commands));
            let (trips, commands) = (count(trips, "trip"), count(commands, "command"));
            out::note(&format!("{name}: {rows} for request {request}, {trips}, {commands}"));
            if !answer.ledger.is_empty() {
                out::note(&format!("degraded:\n{}", ledger(answer).text(2).trim_end()));
            }
            return out::data(&table(answer, engine.registries()).text(0));
        }
        let mut line = Vec::new();
        match self.by_output {
            true => answer.write_json_by_output(&engine.registries().keys, &mut line),
            false => answer.write_json(&engine.registries().keys, &mut line),
        }
        line.push(b'\n');
        out::data(str::from_utf8(&line).expect("JSON is text"))
    }
}

/// A function that formats one column of a ledger entry.
type Cell = fn(&LedgerEntry) -> String;

/// The ledger of an answer as a table.
pub(crate) fn ledger(answer: &Answer) -> Table {
    let columns: [(&str, Cell); 8] = [
        ("node", |entry| entry.node.clone()),
        ("region", |entry| entry.region.clone().unwrap_or_default()),
        ("reason", |entry| entry.reason.to_string()),
        ("fallback", |entry| entry.fallback.clone()),
        ("rows", |entry| entry.rows.to_string()),
        ("waited", |entry| duration::format(entry.waited)),
        ("age", |entry| entry.age.map(duration::format).unwrap_or_default()),
        ("detail", |entry| entry.detail.clone().unwrap_or_default()),
    ];
    // Columns that are empty for all entries are left out.
    let said = |(_, cell): &&(&str, Cell)| answer.ledger.iter().any(|entry| !cell(entry).is_empty());
    let columns: Vec<_> = columns.iter().filter(said).collect();
    let mut table = Table::new(columns.iter().map(|(name, _)| *name));
    for entry in &answer.ledger {
        table.row(columns.iter().map(|(_, cell)| cell(entry)));
    }
    table
}

/// The answer as a table: outputs if there are several, ids, then the columns that any row has, by key.
pub(crate) fn table(answer: &Answer, registries: &Registries) -> Table {
    let keys = &registries.keys;
    let has = |key| answer.candidates().any(|candidate| candidate.get(key).is_some());
    let columns: Vec<_> = keys.iter().filter(|entry| has(entry.key)).collect();
    // The column for the output is needed only if there are several.
    let several = answer.outputs.len() > 1;
    let head = several.then_some("output").into_iter().chain(["id"]);
    let mut table = Table::new(head.chain(columns.iter().map(|entry| entry.name.as_str())));
    for candidate in answer.candidates() {
        let output = several.then(|| answer.output_names[candidate.output].clone());
        let cell = |entry: &&anabranch_plan::registry::KeyEntry| match candidate.get(entry.key) {
            None => String::new(),
            Some(Scalar::Int(value)) => value.to_string(),
            Some(Scalar::Float(value)) => short(value),
            Some(Scalar::Bool(value)) => value.to_string(),
            Some(Scalar::Text(value)) => value.to_string(),
        };
        let head = output.into_iter().chain([candidate.id.to_string()]);
        table.row(head.chain(columns.iter().map(cell)));
    }
    table
}

/// A number with at most four decimal places.
fn short(value: f64) -> String {
    let text = format!("{value:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// The format of a trace: a picture for people, or JSON for tools.
#[derive(Clone, Copy)]
enum TraceKind {
    Html,
    Svg,
    Json,
}

fn kind_of(file: &Path) -> Result<TraceKind, Failure> {
    match file.extension().and_then(|ending| ending.to_str()) {
        Some("html") => Ok(TraceKind::Html),
        Some("svg") => Ok(TraceKind::Svg),
        Some("json") => Ok(TraceKind::Json),
        _ => Err(Failure::Wrong(format!(
            "--trace {}: the file must end in .html, .svg or .json",
            file.display()
        ))),
    }
}

fn write_trace(trace: &Trace, file: &Path) -> Result<(), Failure> {
    let content = match kind_of(file)? {
        TraceKind::Html => trace.html(),
        TraceKind::Svg => trace.svg(),
        TraceKind::Json => trace.json(),
    };
    out::file(file, &content)?;
    out::note(&format!("the timeline: {}", file.display()));
    Ok(())
}
