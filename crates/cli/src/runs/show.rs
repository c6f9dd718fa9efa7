//! `anabranch run show`.

use std::io;
use std::path::{Path, PathBuf};

use anabranch_server::runs::{RunDetail, RunId, RunSummary, RunsFolder, StoredRun};
use anabranch_text::duration;
use clap::Args;

use super::bars;
use super::list::started;
use crate::failure::Failure;
use crate::out;
use crate::recipe::DataFolder;

pub(super) const HELP: &str = "\
Failures and fallbacks come first, then the ledger (the degraded parts of the answer), then one bar
per node: `-` waited for inputs, `.` waited for a slot, a limit or a retry, `=` worked. A `*` marks
the critical path, `|` the deadline.

  anabranch run show 018f3c2a9d4b-0007
  anabranch run show 018f3c2a9d4b-0007 --html timeline.html

Exit codes: 0 fine; 1 refused or failed (stderr says why); 2 wrong usage.";

/// Shows a run.
#[derive(Args)]
pub(crate) struct Show {
    /// The run, as `anabranch runs` lists it.
    #[arg(value_name = "ID")]
    run: RunId,
    #[command(flatten)]
    data: DataFolder,
    /// Writes the timeline as an HTML page; `-` is stdout.
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    html: Option<PathBuf>,
    /// The run with all details as one JSON object.
    #[arg(long)]
    json: bool,
}

impl Show {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let folder = self.data.find().join("runs");
        let StoredRun { run, detail } = RunsFolder::new(&folder).get(self.run).map_err(|error| {
            Failure::of(match error.kind() {
                io::ErrorKind::NotFound => {
                    format!(
                        "no run {} is kept in {}; `anabranch runs` lists them",
                        self.run,
                        folder.display()
                    )
                }
                _ => format!("the run {} cannot be read: {error}", self.run),
            })
        })?;
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

/// The run for people.
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
    text.push_str(&bars::troubles(detail));
    if !detail.ledger.is_empty() {
        text.push_str("\nledger\n");
        detail.ledger.iter().for_each(|entry| text.push_str(&format!("  {entry}\n")));
    }
    text.push_str(&bars::timeline(detail));
    if let Some(request) = &detail.request {
        text.push_str(&format!("\nrequest\n  {request}\n"));
    }
    // Names and messages may be a stranger's.
    text.lines().map(|line| format!("{}\n", anabranch_text::Plain(line))).collect()
}
