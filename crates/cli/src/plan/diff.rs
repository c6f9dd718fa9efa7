//! `anabranch plan diff`.

use std::fmt::Write as _;

use anabranch_plan::Plan;
use anabranch_plan_inspect::capture::{Capture, DiffOptions, Differ, Difference, Replayer, captures};
use anabranch_text::count;
use clap::Args;

use super::capture::StoreAt;
use super::from::{self, From};
use super::threads::whole;
use crate::failure::Failure;
use crate::out;
use crate::table::Table;
use crate::wait;

pub(super) const HELP: &str = "\
Each capture is answered again by both plans, from what it holds: other fields, shorter lists and other
orders of what was read will do. A plan that asks for something else cannot be compared on that capture.

  anabranch plan diff feed feed_next --captures monday --store captures
  anabranch plan diff feed_next --captures monday --store captures    with the plans as captured

Exit codes: 0 compared; 1 nothing could be compared, or failed; 2 wrong usage.";

/// Says what changes from one plan to another, on captured requests.
#[derive(Args)]
pub(crate) struct Diff {
    /// The plans, files or names: before and after. With one, the other is the plan as captured.
    #[arg(value_name = "PLAN", required = true, num_args = 1..=2)]
    plans_compared: Vec<String>,
    #[command(flatten)]
    from: From,
    #[command(flatten)]
    store: StoreAt,
    /// The set of captures.
    #[arg(long, value_name = "SET")]
    captures: String,
    /// How many rows of each answer are compared.
    #[arg(long, value_name = "K", default_value = "10", value_parser = |text: &str| whole(text, 1, 1 << 32))]
    top: u64,
    /// The key whose values are compared; the one that the last sort goes by if not given.
    #[arg(long, value_name = "KEY")]
    score: Option<String>,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// Captures looked up at a time.
const PAGE: usize = 100;

impl Diff {
    pub(crate) fn run(self) -> Result<(), Failure> {
        wait::here(Box::pin(self.compare()))
    }

    async fn compare(self) -> Result<(), Failure> {
        let replayer = Replayer::default();
        let engine = replayer.engine(self.from.config()?);
        if let Some(key) = &self.score
            && engine.registries().keys.named(key).is_none()
        {
            return Err(Failure::Wrong(format!("--score {key}: there is no key of this name")));
        }
        let compile = |name: &String| -> Result<Plan, Failure> { from::plan(&engine, name) };
        let (before, after) = match &self.plans_compared[..] {
            [after] => (None, compile(after)?),
            [before, after] => (Some(compile(before)?), compile(after)?),
            _ => unreachable!("one or two were asked for"),
        };
        let names = [before.as_ref().map_or("as captured", Plan::name), after.name()].map(str::to_owned);
        let store = self.store.open_old()?;
        let mut set = captures(&store, &self.captures).await?;
        let options = DiffOptions { top: self.top as usize, score: self.score };
        let mut differ = Differ::new(&replayer, before, after, options);
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
    line(format!("  a request: {:.2} rows entered, {:.2} left", found.entered, found.left));
    line(format!("  a row that stays moves {:.2} places", found.rank_move));
    if let Some(score) = &found.score {
        line(format!("  its `{}` shifts by {:.4}, at most {:.4}", score.key, score.mean, score.most));
    }
    let mut table = Table::new(["", before, after]);
    let millis = |micros: u64| format!("{:.3}", micros as f64 / 1_000.0);
    let (trips, waits) = (found.trips, found.waits);
    table.row(["trips a request".to_owned(), format!("{:.2}", trips.before), format!("{:.2}", trips.after)]);
    table.row(["waits p50, ms".to_owned(), millis(waits.before.p50_us), millis(waits.after.p50_us)]);
    table.row(["waits p99, ms".to_owned(), millis(waits.before.p99_us), millis(waits.after.p99_us)]);
    text + &table.text(0)
}
