//! `anabranch dataset build`.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anabranch_dataset::{BuildOptions, BuildReport, Error, JournalPlace, LoadedConfig, StopReason};
use anabranch_dataset_inspect::BuiltFrom;
use anabranch_dataset_inspect::live::stopping_event;
use anabranch_engine::clock::{Clock as _, SystemClock};
use anabranch_text::count;
use clap::Args;

use super::budget::BudgetOptions;
use super::display::Display;
use super::flow::FlowOptions;
use super::report::BuildSummary;
use super::sources::{self, GenerateOptions, engine, runtime};
use super::unbuilt;
use crate::failure::Failure;
use crate::signals::Signals;
use crate::{out, wait};

/// The end of the help text.
pub(super) const HELP: &str = "\
The folder gets Parquet files of one row group each (parquet-files/), the failed cells
(errors.parquet, errors.jsonl), metadata.json, status.json, a copy of the configuration, and the
journal: every reply of a model, written down before anything else is done with it.

The same command goes on where a build ended, after Ctrl-C, a crash or a kill: row groups on disk
stay, replies in the journal are not paid for again. More rows, another buffer size and other flags
of the flow continue as well. Another configuration, seed or model is refused.

Ctrl-C (or SIGTERM) finishes and saves the calls in flight, then ends; a second one ends at once,
and those calls are paid again. A build also stops early if half of a model's last 100 calls failed,
and when its budget is spent: calls in flight are finished and saved, and counted in.

A failed cell drops its row, unless its column says `on_error: keep_null` or `fail_run`. Failures
that may pass (rate limits, timeouts, server errors) are retried first. Servers are reached through
the proxies that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name.

stdout: the report, or with --json one event per line: start, progress (every second), stopping,
errors, end.
stderr: progress, in place on a terminal, else as a line every 5 seconds.

  anabranch dataset build tickets.yaml --rows 1000 --out tickets --demo
  anabranch dataset build tickets.yaml --rows 1000 --out tickets --models models.yaml --parallel 64
  anabranch dataset status tickets

Exit codes: 0 built, now or before, also if some rows were dropped (the report says so); 1 refused,
failed, stopped by a signal or early, or no row was left (stderr says why); 2 wrong usage.";

/// Generates rows into a folder.
#[derive(Args)]
pub(crate) struct Build {
    #[command(flatten)]
    generated: GenerateOptions,
    /// The number of rows: of the first stage, if there are several [default: `rows` of the configuration].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    rows: Option<u64>,
    /// The folder to write to. It is made if it is not there.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Events on stdout as JSON lines, instead of the report.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    continued: ContinueOptions,
    #[command(flatten)]
    budget: BudgetOptions,
    #[command(flatten)]
    flow: FlowOptions,
}

/// Flags about what an earlier build left.
#[derive(Args)]
#[command(next_help_heading = "Continue")]
pub(super) struct ContinueOptions {
    /// Removes the dataset that is in the folder, and builds it anew. The journal stays: replies in it that still fit
    /// are used again, and cost nothing. Other files stay too.
    #[arg(long)]
    pub(super) replace: bool,
    /// Tries failed rows of an earlier build again. All other rows stay as they are.
    #[arg(long, conflicts_with = "replace")]
    pub(super) retry_failed: bool,
    /// The folder of the journal, which several datasets can share, one after another; `none` switches it off: what
    /// is not in row groups on disk is paid again [default: journal/ in the output folder].
    #[arg(long, value_name = "DIR")]
    journal: Option<PathBuf>,
}

/// The end of a build.
enum End {
    Built(Box<Result<BuildReport, Error>>),
    /// The build was aborted, with calls in flight.
    Dropped,
}

impl ContinueOptions {
    pub(super) fn journal(&self) -> JournalPlace {
        match &self.journal {
            None => JournalPlace::OutputFolder,
            Some(path) if path == Path::new("none") => JournalPlace::Nowhere,
            Some(path) => JournalPlace::Folder(path.clone()),
        }
    }
}

impl Build {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let mut loaded = self.generated.load()?;
        self.flow.apply(&mut loaded)?;
        let rows = sources::rows(self.rows, &loaded)?;
        wait::on(&runtime()?, Box::pin(self.build(loaded, rows)))
    }

    async fn build(&self, loaded: LoadedConfig, rows: u64) -> Result<(), Failure> {
        let engine = engine()?;
        let dataset = self.generated.dataset(&loaded, &engine)?;
        let mut signals = Signals::listen()?;
        let options = BuildOptions {
            rows,
            out: self.out.clone(),
            replace: self.continued.replace,
            retry_failed: self.continued.retry_failed,
            journal: self.continued.journal(),
            budget: self.budget.budget(),
        };
        let build = dataset.build(options).await.map_err(|error| unbuilt::failure(error, &self.out))?;
        if !build.was_complete() {
            self.note_sources(rows)?;
        }
        let mut summary = self.summary(&loaded, rows, &build);
        let resumed = build.progress().snapshot().rows_written;
        if self.json {
            let columns: Vec<String> =
                loaded.config.columns.iter().map(|column| column.name.clone()).collect();
            out::data(&format!("{}\n", summary.start_json(&columns)))?;
        }
        let mut display = Display::new(&build, &loaded.config, self.json);
        let end = self.until_end(&build, &mut display, &mut signals).await?;
        summary.elapsed = display.end(&build)?;
        let report = match end {
            End::Built(ended) => match *ended {
                Ok(report) if report.stopped.is_none() => return self.report(&summary, &report),
                Ok(report) => report,
                Err(error) => {
                    self.unfinished(&summary, "failed", &counted(&build, resumed, None))?;
                    return Err(unbuilt::failure(error, &self.out));
                }
            },
            End::Dropped => counted(&build, resumed, Some(StopReason::Asked)),
        };
        self.unfinished(&summary, "stopped", &report)?;
        Err(Failure::Reported)
    }

    /// Records the sources of the build in the folder, for `dataset why`.
    #[allow(
        clippy::disallowed_methods,
        reason = "a note of when the build began, beside those of the journal"
    )]
    fn note_sources(&self, rows: u64) -> Result<(), Failure> {
        let cannot = |error: std::io::Error| {
            Failure::of(format!("cannot note what the dataset is built from: {error}"))
        };
        let journal = match self.continued.journal() {
            JournalPlace::Nowhere => None,
            JournalPlace::OutputFolder => Some(self.out.join("journal")),
            JournalPlace::Folder(path) => Some(path),
        };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        // A continued build keeps the start of the earlier one, so that the replies recorded since then count as its
        // own.
        let before = if self.continued.replace { None } else { BuiltFrom::read(&self.out)? };
        let built = BuiltFrom {
            journal: journal.map(std::path::absolute).transpose().map_err(cannot)?,
            rows,
            began_ms: before.map_or(now.as_millis() as u64, |before| before.began_ms),
            ..self.generated.built_from().map_err(cannot)?
        };
        Ok(built.write(&self.out)?)
    }

    /// Runs a build, shows its progress, and stops it on a signal.
    async fn until_end(
        &self,
        build: &anabranch_dataset::Build,
        display: &mut Display,
        signals: &mut Signals,
    ) -> Result<End, Failure> {
        let mut run = Box::pin(build.run());
        let mut is_stopping = false;
        loop {
            let due = SystemClock.now() + display.every();
            tokio::select! {
                ended = &mut run => return Ok(End::Built(Box::new(ended))),
                () = signals.next() => {
                    if is_stopping {
                        return Ok(End::Dropped);
                    }
                    is_stopping = true;
                    build.stop();
                    let calls = build.limits().iter().map(|limit| u64::from(limit.in_flight)).sum();
                    if self.json {
                        out::data(&format!("{}\n", stopping_event(calls)))?;
                    }
                    let are = if calls == 1 { "is" } else { "are" };
                    let calls = count(calls, "call");
                    display.note(&format!(
                        "stopping: {calls} in flight {are} finished and saved (Ctrl-C again stops at once)"
                    ));
                }
                () = SystemClock.sleep_until(due) => display.update(build)?,
            }
        }
    }

    fn summary<'a>(
        &'a self,
        loaded: &'a LoadedConfig,
        rows: u64,
        build: &anabranch_dataset::Build,
    ) -> BuildSummary<'a> {
        BuildSummary {
            name: &loaded.config.name,
            rows,
            out: &self.out,
            seed: self.generated.seed,
            elapsed: std::time::Duration::ZERO,
            demo: self.generated.demo,
            was_complete: build.was_complete(),
            journal: match self.continued.journal() {
                JournalPlace::Nowhere => None,
                JournalPlace::OutputFolder => Some(self.out.join("journal")),
                JournalPlace::Folder(path) => Some(path),
            },
        }
    }

    fn report(&self, summary: &BuildSummary<'_>, report: &BuildReport) -> Result<(), Failure> {
        match self.json {
            true => out::data(&format!(
                "{}\n{}\n",
                summary.errors_json(report),
                summary.end_json("complete", report)
            ))?,
            false => out::data(&summary.text(report))?,
        }
        match report.rows {
            0 if report.stages.iter().any(|stage| stage.rejected > 0 || !stage.steps.is_empty()) => {
                Err(Failure::of("no row was left: the report says where they went"))
            }
            0 => Err(Failure::of("no row was left: in each one a cell failed")),
            _ => Ok(()),
        }
    }

    /// Reports the state on disk of an unfinished build, and how to continue it.
    fn unfinished(
        &self,
        summary: &BuildSummary<'_>,
        status: &str,
        report: &BuildReport,
    ) -> Result<(), Failure> {
        if self.json {
            out::data(&format!("{}\n", summary.end_json(status, report)))?;
        }
        out::note(&summary.unfinished(status, report));
        Ok(())
    }
}

/// The report of a build that did not return one, from its counters.
fn counted(build: &anabranch_dataset::Build, resumed: u64, stopped: Option<StopReason>) -> BuildReport {
    let snapshot = build.progress().snapshot();
    BuildReport {
        rows: snapshot.rows_written,
        resumed,
        dropped: snapshot.rows_dropped,
        error_count: snapshot.errors.values().sum(),
        models: build.usage(),
        models_of_run: build.usage_of_run(),
        stopped,
        ..BuildReport::default()
    }
}
