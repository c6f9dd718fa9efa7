//! `anabranch recipe bench`.

use std::path::Path;
use std::time::Duration;

use anabranch_content::Address;
use anabranch_engine::clock::{Clock as _, SystemClock};
use anabranch_recipe::{Draft, DraftInput, Executor, FunctionId, Functions, Get, Params, UnknownFunction};
use anabranch_text::duration;
use clap::Args;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use serde_json::{Value as Json, json};

use super::{runtime, show};
use crate::failure::Failure;
use crate::table::Table;
use crate::wait;
use crate::{fresh, out};

/// Measures in a store of its own.
#[derive(Args)]
pub(crate) struct Bench {
    /// The number of calls of each kind.
    #[arg(long, value_name = "N", default_value_t = 2000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    count: u32,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// The number of concurrent puts.
const TOGETHER: usize = 64;

impl Bench {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let folder = ScratchFolder::new()?;
        let rows = wait::on(&runtime()?, Box::pin(measure_in(&folder.0, self.count)))?;
        if self.json {
            let one =
                |(what, took): &(&str, Duration)| json!({"what": what, "micros": micros(*took, self.count)});
            return show::json(&rows.iter().map(one).collect::<Json>());
        }
        let mut table = Table::new(["what", "times", "each"]);
        for (what, took) in rows {
            table.row([what.to_owned(), self.count.to_string(), duration::format(took / self.count)]);
        }
        out::data(&table.text(0))
    }
}

fn micros(took: Duration, count: u32) -> f64 {
    took.as_secs_f64() * 1e6 / f64::from(count)
}

async fn measure_in(folder: &Path, count: u32) -> Result<Vec<(&'static str, Duration)>, Failure> {
    let executor = Executor::open(folder, Functions::builtin()).await?;
    let rows = measure(&executor, count).await;
    executor.store().clone().close().await?;
    rows
}

async fn measure(executor: &Executor, count: u32) -> Result<Vec<(&'static str, Duration)>, Failure> {
    let mut rows = Vec::new();
    let timed = |what, began| (what, SystemClock.now() - began);

    let began = SystemClock.now();
    let puts = (0..count).map(|number| executor.put(format!("{number:01024}")));
    let kept: Vec<_> = stream::iter(puts).buffered(TOGETHER).try_collect().await?;
    rows.push(timed("durable puts of 1 KiB, 64 at a time", began));

    let began = SystemClock.now();
    let chain = chain(kept[0].address, count);
    let added = executor.add_all(&chain, UnknownFunction::Refuse).await?;
    rows.push(timed("durable recipes, in one list", began));

    let last = added.last().map_or(kept[0].address, |added| added.address);
    let began = SystemClock.now();
    executor.get(&last, &Get::default()).await?;
    rows.push(timed("recipes computed, each from the one before", began));

    let began = SystemClock.now();
    for _ in 0..count {
        executor.get(&last, &Get::default()).await?;
    }
    rows.push(timed("gets of a remembered value", began));
    Ok(rows)
}

/// Recipes that each read the previous one.
fn chain(first: Address, count: u32) -> Vec<Draft> {
    let link = |at: usize| Draft {
        function: FunctionId::new("identity", "1.0.0"),
        inputs: vec![if at == 0 { DraftInput::Address(first) } else { DraftInput::Earlier(at - 1) }],
        params: Params::new(),
    };
    (0..count as usize).map(link).collect()
}

/// A folder that is removed on drop.
struct ScratchFolder(std::path::PathBuf);

impl ScratchFolder {
    fn new() -> Result<ScratchFolder, Failure> {
        Ok(ScratchFolder(fresh::temporary_folder("bench")?))
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        // An error is ignored, because the folder is in the folder for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
