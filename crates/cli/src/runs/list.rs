//! `anabranch runs`.

use std::time::UNIX_EPOCH;

use anabranch_server::runs::{RunFilter, RunKind, RunState, RunSummary};
use anabranch_text::{duration, utc};
use clap::Args;

use crate::failure::Failure;
use crate::out;
use crate::recipe::Remote;
use crate::table::Table;

pub(crate) const HELP: &str = "\
Reads the files that `anabranch serve` keeps in the folder `runs` of its store: runs with a
timeline, and builds of datasets. With --server, the server is asked: it has the last 10,000 runs,
and those under way.

stdout: a table, the latest run first; with --json one JSON object per line.

  anabranch runs --kind dataset --state failed
  anabranch runs --server http://127.0.0.1:7421
  anabranch run show 018f3c2a9d4b-0007

Exit codes: 0 fine; 1 refused or failed (stderr says why); 2 wrong usage.";

/// Lists the runs that a server has kept.
#[derive(Args)]
pub(crate) struct List {
    #[command(flatten)]
    remote: Remote,
    /// Only runs of a kind: plan, recipe, dataset.
    #[arg(long, value_name = "KIND")]
    kind: Option<RunKind>,
    /// Only runs in a state: running, complete, degraded, failed, stopped.
    #[arg(long, value_name = "STATE")]
    state: Option<RunState>,
    /// Only runs of the plan, recipe or dataset with this name.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The most runs in the list.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    limit: u32,
    /// Prints one JSON object per line.
    #[arg(long)]
    json: bool,
}

impl List {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let filter = RunFilter {
            kind: self.kind,
            state: self.state,
            name: self.name,
            before: None,
            limit: self.limit as usize,
        };
        let (page, place) = self.remote.runs(&filter)?;
        if self.json {
            let line = |run: &RunSummary| serde_json::to_string(run).expect("a summary is JSON") + "\n";
            return out::data(&page.runs.iter().map(line).collect::<String>());
        }
        if page.runs.is_empty() {
            out::note(&format!("no runs in {place}"));
            return Ok(());
        }
        let mut table =
            Table::new(["run", "kind", "name", "state", "started", "time", "failures", "degraded", "rows"])
                .whole_in_pipes();
        page.runs.iter().for_each(|run| table.row(cells(run)));
        out::data(&table.text(0))?;
        if page.next.is_some() {
            out::note("older runs are left out; --limit N shows more");
        }
        Ok(())
    }
}

fn cells(run: &RunSummary) -> [String; 9] {
    [
        run.id.to_string(),
        run.kind.to_string(),
        run.name.to_string(),
        run.state.to_string(),
        started(run),
        run.duration.map_or_else(String::new, duration::format),
        run.failures.to_string(),
        run.degraded.to_string(),
        run.rows.map_or_else(String::new, |rows| rows.to_string()),
    ]
}

/// The start of a run in UTC, such as `2026-03-01 12:30:45`.
pub(super) fn started(run: &RunSummary) -> String {
    let since = run.started.duration_since(UNIX_EPOCH).unwrap_or_default();
    utc(u64::try_from(since.as_millis()).unwrap_or_default())
}
