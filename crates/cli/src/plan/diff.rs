//! `anabranch plan diff`.

use std::fmt::Write as _;

use anabranch_plan::Plan;
use anabranch_plan_inspect::capture::{
    Capture, ChangedRequest, DiffOptions, Differ, Difference, Replayer, captures,
};
use anabranch_text::count;
use clap::Args;

use super::capture::StoreAt;
use super::lookup;
use super::project_args::ProjectArgs;
use super::threads::whole;
use crate::failure::Failure;
use crate::out;
use crate::table::Table;
use crate::wait;

pub(super) const HELP: &str = "\
Both plans answer each captured request again, from the captured replies. They may read other fields, shorter lists \
and in another order than the captured plan. A plan that reads anything else cannot be compared on that capture.

  anabranch plan diff feed feed_next --captures monday --store captures
  anabranch plan diff feed_next --captures monday --store captures    with the plans as captured

Exit codes: 0 compared; 1 nothing could be compared, or failed; 2 wrong usage.";

/// Compares two plans.
#[derive(Args)]
pub(crate) struct Diff {
    /// The plans before and after, as files or names. With one plan, the other one is the captured plan.
    #[arg(value_name = "PLAN", required = true, num_args = 1..=2)]
    plans_compared: Vec<String>,
    #[command(flatten)]
    project: ProjectArgs,
    #[command(flatten)]
    store: StoreAt,
    /// The set of captures.
    #[arg(long, value_name = "SET")]
    captures: String,
    /// The number of rows of each answer that are compared.
    #[arg(long, value_name = "K", default_value = "10", value_parser = |text: &str| whole(text, 1, 1 << 32))]
    top: u64,
    /// The key whose values are compared; by default the key of the last sort.
    #[arg(long, value_name = "KEY")]
    score: Option<String>,
    /// The number of requests that are shown with the rows that changed, those that changed most.
    #[arg(long, value_name = "N", default_value = "3", value_parser = |text: &str| whole(text, 0, 1_000_000))]
    examples: u64,
    /// Writes JSON.
    #[arg(long)]
    json: bool,
}

/// The number of captures that are looked up at a time.
const PAGE: usize = 100;

impl Diff {
    pub(crate) fn run(self) -> Result<(), Failure> {
        wait::here(Box::pin(self.compare()))
    }

    async fn compare(self) -> Result<(), Failure> {
        let replayer = Replayer::default();
        let engine = replayer.engine(self.project.config()?);
        if let Some(key) = &self.score
            && engine.registries().keys.named(key).is_none()
        {
            return Err(Failure::Wrong(format!("--score {key}: there is no key of this name")));
        }
        let compile = |name: &String| -> Result<Plan, Failure> { lookup::plan(&engine, name) };
        let (before, after) = match &self.plans_compared[..] {
            [after] => (None, compile(after)?),
            [before, after] => (Some(compile(before)?), compile(after)?),
            _ => unreachable!("one or two were asked for"),
        };
        let names = [before.as_ref().map_or("as captured", Plan::name), after.name()].map(str::to_owned);
        let store = self.store.open_old()?;
        let mut set = captures(&store, &self.captures).await?;
        let options = DiffOptions { top: self.top as usize, score: self.score };
        let differ = Differ::new(&replayer, before, after, options);
        let mut differ = differ.with_examples(self.examples as usize);
        loop {
            let page = set.next(PAGE).await?;
            if page.is_empty() {
                break;
            }
            for address in page {
                differ.add(&Capture::load(&store, address).await?).await?;
            }
        }
        let difference = differ.finish();
        match self.json {
            true => {
                let json = serde_json::to_string(&difference).expect("numbers and texts are JSON");
                out::data(&format!("{json}\n"))?;
            }
            false => out::data(&text(&difference, &names))?,
        }
        match difference.captures.compared {
            0 => Err(Failure::of("none of the captures could be compared")),
            _ => Ok(()),
        }
    }
}

/// The most rows per kind that an example lists.
const ROWS_LISTED: usize = 10;

/// A changed request, with its changed rows.
fn example(request: &ChangedRequest) -> Vec<String> {
    let short = &request.capture[..12];
    let user = request.user.as_ref().map_or(String::new(), |user| format!(", user {user}"));
    let mut lines = vec![format!("  capture {short}{user}")];
    let listed = |what: &str, rows: Vec<String>| {
        let more = rows.len().saturating_sub(ROWS_LISTED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let shown = rows.iter().take(ROWS_LISTED).cloned().collect::<Vec<_>>().join(", ");
        (!rows.is_empty()).then(|| format!("    {what}: {shown}{more}"))
    };
    let ids = |ids: &[i64]| ids.iter().map(i64::to_string).collect::<Vec<_>>();
    let moved = request.rows.moved.iter().map(|row| format!("{} from {} to {}", row.id, row.from, row.to));
    lines.extend(listed("entered", ids(&request.rows.entered)));
    lines.extend(listed("left", ids(&request.rows.left)));
    lines.extend(listed("moved", moved.collect()));
    lines
}

fn text(found: &Difference, [before, after]: &[String; 2]) -> String {
    let mut text = String::new();
    let counted = &found.captures;
    let compared = count(counted.compared, "capture");
    let mut line = |line: String| writeln!(text, "{line}").expect("a string takes all that is written");
    line(format!("{compared} compared, {} not comparable", counted.not_comparable));
    for reason in &counted.reasons {
        line(format!("  {}: {}", reason.captures, reason.reason));
    }
    if counted.compared == 0 {
        return text;
    }
    line(format!("top {}: changed for {:.1}% of the requests", found.top, 100.0 * found.changed));
    line(format!("  per request: {:.2} rows entered, {:.2} rows left", found.entered, found.left));
    line(format!("  rows in both answers: moved by {:.2} places on average", found.rank_move));
    if let Some(score) = &found.score {
        let (key, mean, most) = (&score.key, score.mean, score.most);
        line(format!("  their `{key}`: changed by {mean:.4} on average, by {most:.4} at most"));
    }
    if !found.examples.is_empty() {
        line("requests that changed most".to_owned());
    }
    for request in &found.examples {
        example(request).into_iter().for_each(&mut line);
    }
    let mut table = Table::new(["", before, after]);
    let millis = |micros: u64| format!("{:.3}", micros as f64 / 1_000.0);
    let (trips, waits) = (found.trips, found.waits);
    table.row([
        "trips per request".to_owned(),
        format!("{:.2}", trips.before),
        format!("{:.2}", trips.after),
    ]);
    table.row(["waits p50, ms".to_owned(), millis(waits.before.p50_us), millis(waits.after.p50_us)]);
    table.row(["waits p99, ms".to_owned(), millis(waits.before.p99_us), millis(waits.after.p99_us)]);
    text + &table.text(0)
}
