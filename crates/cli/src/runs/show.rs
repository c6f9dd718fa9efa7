//! `anabranch run show`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anabranch_server::runs::{RunDetail, RunId, RunSummary, StoredRun};
use anabranch_text::duration;
use clap::Args;
use serde_json::Value;

use super::bars;
use super::list::started;
use crate::failure::Failure;
use crate::out;
use crate::recipe::Remote;
use crate::table::Table;

pub(super) const HELP: &str = "\
Failures and fallbacks come first, then the ledger (the degraded parts of the answer), then one bar
per node: `-` waited for inputs, `.` waited for a slot, a limit or a retry, `=` worked. A `*` marks
the critical path, `|` the deadline.

  anabranch run show 018f3c2a9d4b-0007
  anabranch run show 018f3c2a9d4b-0007 --html timeline.html
  anabranch run show 018f3c2a9d4b-0007 --server http://127.0.0.1:7421

Exit codes: 0 fine; 1 refused or failed (stderr says why); 2 wrong usage.";

/// Shows a run.
#[derive(Args)]
pub(crate) struct Show {
    /// The run, as `anabranch runs` lists it.
    #[arg(value_name = "ID")]
    run: RunId,
    #[command(flatten)]
    remote: Remote,
    /// Writes the timeline as an HTML page; `-` is stdout.
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    html: Option<PathBuf>,
    /// Prints the run with all details as one JSON object.
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let StoredRun { run, detail } = self.remote.run(self.run)?;
        let detail = detail.unwrap_or_default();
        if self.json {
            let mut shown = serde_json::to_value(&run).expect("a run is JSON");
            let details = serde_json::to_value(&detail).expect("details are JSON");
            if let (Some(shown), Some(details)) = (shown.as_object_mut(), details.as_object()) {
                shown.extend(details.clone());
            }
            return out::data(&format!("{shown}\n"));
        }
        match self.html {
            Some(to) => write_html(&to, &run, &detail),
            None => out::data(&text(&run, &detail)),
        }
    }
}

fn write_html(to: &Path, run: &RunSummary, detail: &RunDetail) -> Result<(), Failure> {
    let none = || Failure::of(format!("no timeline of the run {} is kept", run.id));
    let timeline = detail.drawable().ok_or_else(none)?;
    let timeline = timeline.map_err(|error| Failure::Failed(Box::new(error)))?;
    let page = timeline.html(&format!("{} {}", run.kind, run.name), &|node| detail.node_name(node));
    if to == Path::new("-") {
        return out::data(&page);
    }
    out::file(to, &page)?;
    out::note(&format!("wrote {}", to.display()));
    Ok(())
}

/// Describes the run.
fn text(run: &RunSummary, detail: &RunDetail) -> String {
    let mut text = format!("{} {}: {}", run.kind, run.name, run.state);
    if let Some(took) = run.duration {
        text.push_str(&format!(" after {}", duration::format(took)));
    }
    text.push_str(&format!(", started {} UTC", started(run)));
    if let Some(rows) = run.rows {
        text.push_str(&format!(", {rows} rows"));
    }
    text.push('\n');
    if let Some(error) = &detail.error {
        text.push_str(&format!("error: {error}\n"));
    }
    if let Some(trace) = &detail.trace_id {
        text.push_str(&format!("trace: {trace}\n"));
    }
    text.push_str(&bars::troubles(detail));
    if !detail.ledger.is_empty() {
        text.push_str(&format!("\nledger\n{}", ledger(&detail.ledger).text(2)));
    }
    text.push_str(&bars::timeline(detail));
    if let Some(result) = &detail.result {
        text.push_str(&format!("\nresult\n  {result}\n"));
    }
    if let Some(request) = &detail.request {
        text.push_str(&format!("\nrequest\n  {request}\n"));
    }
    // Names and messages may be untrusted.
    text.lines().map(|line| format!("{}\n", anabranch_text::Plain(line))).collect()
}

/// The ledger, one entry per line, with the nodes of the timeline.
fn ledger(entries: &[Value]) -> Table {
    let mut table = Table::new(["node", "reason", "fallback", "waited", "rows", "detail"]).whole_in_pipes();
    for entry in entries {
        let text = |name: &str| entry[name].as_str().unwrap_or_default().to_owned();
        let node = if entry["name"].is_string() { text("name") } else { text("node") };
        let waited = entry["waited_us"].as_u64().map(Duration::from_micros);
        let rows = entry["rows"].as_u64().map_or_else(String::new, |rows| rows.to_string());
        let waited = waited.map_or_else(String::new, duration::format);
        table.row([node, text("reason"), text("fallback"), waited, rows, text("detail")]);
    }
    table
}
