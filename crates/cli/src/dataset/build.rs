//! `anabranch dataset build`.

use std::io;
use std::path::PathBuf;

use anabranch_dataset::output::Folder;
use anabranch_dataset::{BuildOptions, BuildReport, Error, Loaded};
use anabranch_engine::clock::{Clock as _, SystemClock};
use anabranch_text::count;
use clap::Args;

use super::display::Display;
use super::report::BuildSummary;
use super::sources::{GenerateOptions, engine, runtime};
use crate::failure::Failure;
use crate::{out, serve, wait};

/// The help's last part.
pub(super) const HELP: &str = "\
The folder gets Parquet files of one row group each (parquet-files/), the failed cells
(errors.parquet, errors.jsonl), metadata.json and a copy of the configuration. A row group is on
disk as a whole or not at all; Ctrl-C ends the build and keeps those that are there.

A failed cell drops its row, unless its column says `on_error: keep_null` or `fail_run`. Failures
that may pass (rate limits, timeouts, server errors) are retried first. Servers are reached through
the proxies that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name.

stdout: the report, or with --json one event per line: start, progress (every second), errors,
end.
stderr: progress, in place on a terminal, else as a line every 5 seconds.

  anabranch dataset build tickets.yaml --rows 1000 --out tickets --demo
  anabranch dataset build tickets.yaml --rows 1000 --out tickets --seed 7 --models models.yaml

Exit codes: 0 built, also if some rows were dropped (the report says so); 1 refused, failed,
stopped, or no row was left (stderr says why); 2 wrong usage.";

/// Generates rows into a folder.
#[derive(Args)]
pub(crate) struct Build {
    #[command(flatten)]
    generated: GenerateOptions,
    /// The number of rows to generate.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000_000_000))]
    rows: u64,
    /// The folder to write to. It is made if it is not there.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Removes the dataset that is in the folder; other files stay.
    #[arg(long)]
    replace: bool,
    /// Rows per row group, and per file [default: buffer_size of the run options, else 1000].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    buffer_size: Option<u64>,
    /// Row groups in flight at once [default: max_concurrent_row_groups of the run options, else 3].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1_000))]
    row_groups: Option<u16>,
    /// Events on stdout as JSON lines, instead of the report.
    #[arg(long)]
    json: bool,
}

/// How a build ended.
enum End {
    Built(Result<BuildReport, Error>),
    Stopped,
}

impl Build {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let mut loaded = self.generated.load()?;
        let run = &mut loaded.config.run;
        run.buffer_size = self.buffer_size.unwrap_or(run.buffer_size);
        run.max_concurrent_row_groups = self.row_groups.map_or(run.max_concurrent_row_groups, usize::from);
        wait::on(&runtime()?, Box::pin(self.build(loaded)))
    }

    async fn build(&self, loaded: Loaded) -> Result<(), Failure> {
        let engine = engine()?;
        let dataset = self.generated.dataset(&loaded, &engine)?;
        let stopped = serve::stopped()?;
        let options = BuildOptions {
            rows: self.rows,
            out: self.out.clone(),
            replace: self.replace,
            ..BuildOptions::default()
        };
        let build = dataset.build(options).await.map_err(|error| self.unopened(error))?;
        let mut built = self.built(&loaded);
        if self.json {
            let columns: Vec<String> =
                loaded.config.columns.iter().map(|column| column.name.clone()).collect();
            out::data(&format!("{}\n", built.start_json(&columns)))?;
        }
        let mut display = Display::new(&build, &loaded.config, self.json);
        let end = {
            let (mut run, mut stopped) = (Box::pin(build.run()), Box::pin(stopped));
            loop {
                let due = SystemClock.now() + display.every();
                tokio::select! {
                    ended = &mut run => break End::Built(ended),
                    () = &mut stopped => break End::Stopped,
                    () = SystemClock.sleep_until(due) => display.update(&build)?,
                }
            }
        };
        built.elapsed = display.end(&build)?;
        match end {
            End::Built(Ok(report)) => self.report(&built, &report),
            End::Built(Err(error)) => {
                self.unfinished(&built, &build, "failed")?;
                Err(error.into())
            }
            End::Stopped => {
                self.unfinished(&built, &build, "stopped")?;
                Err(Failure::Told)
            }
        }
    }

    fn built<'a>(&'a self, loaded: &'a Loaded) -> BuildSummary<'a> {
        BuildSummary {
            name: &loaded.config.name,
            rows: self.rows,
            out: &self.out,
            seed: self.generated.seed,
            elapsed: std::time::Duration::ZERO,
            demo: self.generated.demo,
        }
    }

    fn report(&self, built: &BuildSummary<'_>, report: &BuildReport) -> Result<(), Failure> {
        match self.json {
            true => out::data(&format!(
                "{}\n{}\n",
                built.errors_json(report),
                built.end_json("complete", report)
            ))?,
            false => out::data(&built.text(report))?,
        }
        match report.rows {
            0 => Err(Failure::of("no row was left: in each one a cell failed")),
            _ => Ok(()),
        }
    }

    /// Tells what is on disk of a build that did not end.
    fn unfinished(
        &self,
        built: &BuildSummary<'_>,
        build: &anabranch_dataset::Build,
        status: &str,
    ) -> Result<(), Failure> {
        let snapshot = build.progress().snapshot();
        let report = BuildReport {
            rows: snapshot.rows_written,
            dropped: snapshot.rows_dropped,
            error_count: snapshot.errors.values().sum(),
            ..BuildReport::default()
        };
        if self.json {
            out::data(&format!("{}\n", built.end_json(status, &report)))?;
        }
        let files = Folder::open(&self.out)?.row_files()?;
        let out = self.out.join("parquet-files");
        out::note(&format!(
            "{status} after {}\non disk: {} with {} of {} rows in {}; metadata.json says that the build is not complete",
            anabranch_text::duration::format(built.elapsed),
            count(files.len() as u64, "row group"),
            snapshot.rows_written,
            self.rows,
            out.display(),
        ));
        Ok(())
    }

    fn unopened(&self, error: Error) -> Failure {
        match &error {
            Error::File(file) if file.cause.kind() == io::ErrorKind::AlreadyExists => Failure::of(format!(
                "{} holds a dataset already; choose another folder, or let --replace remove it",
                self.out.display()
            )),
            _ => error.into(),
        }
    }
}
