//! Durable puts of recipes, beside a bare group commit, as the store grows.

use std::io;
use std::sync::Arc;

use anabranch_recipe::{Address, Executor, FunctionId, Recipe, UnknownFunction};

use super::shapes::{Shape, on_disk};
use crate::content::callers::{Rate, median, ratio, serve_for};
use crate::content::floor::GroupCommit;
use crate::content::ground::Ground;
use crate::content::{digits, percent, verdict};
use crate::report::{Report, row};

const CALLERS: usize = 64;

/// Blobs that recipes read, two each.
const BLOBS: usize = 4_000;

/// So many recipes are added at once to fill the store.
const BATCH: u64 = 20_000;

pub(super) fn report(report: &mut Report, ground: &Ground) -> io::Result<()> {
    report.heading("Durable puts of recipes");
    report.say(format_args!(
        "{CALLERS} callers add recipes of two known blobs, one recipe a call. `bare loop`: the same callers hand the \
        same bytes to one thread that gathers, writes, syncs and answers: no hash, no checksum, no index. Between the \
        rows the store is filled in batches.\n"
    ));
    let folder = ground.folder("puts");
    let executor = on_disk(folder.path());
    let blobs = Shape::pairs(BLOBS, 16, 1);
    blobs.add_to(&ground.runtime, &executor);
    let inputs = Inputs(blobs.recipes.iter().map(|recipe| recipe.inputs[0]).collect());
    let file = ground.folder("bare");
    let bare = GroupCommit::new(file.path())?;
    let mut rows = vec![row([
        "recipes before",
        "who",
        "a second",
        "us CPU each",
        "of bare loop",
        "of empty",
        "aim",
        "met?",
    ])];
    let mut at_first = None;
    let mut next = 0;
    for full in [0, ground.sizes.entries / 10, ground.sizes.entries] {
        fill(ground, &executor, &inputs, (&mut next, full));
        let before = executor.status().store.derivations;
        let turns = measure(ground, (&executor, &bare), &inputs, &mut next)?;
        let rate = |rates: &[Rate]| median(rates.iter().map(|rate| rate.per_second));
        let cpu = |rates: &[Rate]| digits(median(rates.iter().map(|rate| rate.cpu)));
        let (of_bare, own) = (ratio(&turns.ours, &turns.bare), rate(&turns.ours));
        let of_empty = own / *at_first.get_or_insert(own);
        let met = verdict(of_bare >= 0.6);
        let [before, share] = [digits(before as f64), percent(of_bare)];
        let cells = [
            &*before,
            "add",
            &digits(own),
            &cpu(&turns.ours),
            &share,
            &percent(of_empty),
            ">= 60% of bare",
            met,
        ];
        rows.push(row(cells));
        let cells =
            [&*before, "bare loop", &digits(rate(&turns.bare)), &cpu(&turns.bare), "100%", "-", "", "-"];
        rows.push(row(cells));
    }
    report.table(&rows);
    ground.close(executor.store().clone());
    Ok(())
}

struct Turns {
    ours: Vec<Rate>,
    bare: Vec<Rate>,
}

fn measure(
    ground: &Ground,
    (executor, bare): (&Executor, &GroupCommit),
    inputs: &Inputs,
    next: &mut u64,
) -> io::Result<Turns> {
    let mut turns = Turns { ours: Vec::new(), bare: Vec::new() };
    let window = ground.sizes.window;
    for _ in 0..ground.sizes.turns {
        ground.settle()?;
        let (caller, of) = (bare.caller(), inputs.clone());
        turns.bare.push(serve_for(&ground.runtime, CALLERS, (*next, window), move |number| {
            let answer = caller(of.recipe(number).encode().expect("it is a recipe"));
            async move { answer.await.expect("the writer answers") }
        }));
        let (executor, of) = (executor.clone(), inputs.clone());
        let rate = serve_for(&ground.runtime, CALLERS, (*next, window), move |number| {
            let (executor, recipe) = (executor.clone(), of.recipe(number));
            async move {
                let added = executor.add(&recipe, UnknownFunction::Refuse).await.expect("the disk takes it");
                assert!(added.new && added.dangling.is_empty(), "a recipe was added twice");
            }
        });
        // More numbers than a turn can use.
        *next += (2.0 * rate.per_second * window.as_secs_f64()) as u64 + BATCH;
        turns.ours.push(rate);
    }
    Ok(turns)
}

/// Adds recipes until there are so many.
fn fill(ground: &Ground, executor: &Executor, inputs: &Inputs, (next, until): (&mut u64, u64)) {
    while executor.status().store.derivations < until {
        let drafts: Vec<_> =
            (*next..*next + BATCH).map(|number| super::shapes::draft(&inputs.recipe(number))).collect();
        ground
            .runtime
            .block_on(executor.add_all(&drafts, UnknownFunction::Refuse))
            .expect("the disk takes it");
        *next += BATCH;
    }
}

/// Blobs that are there.
#[derive(Clone)]
struct Inputs(Arc<[Address]>);

impl Inputs {
    /// Of each number another recipe.
    fn recipe(&self, number: u64) -> Recipe {
        let count = self.0.len() as u64;
        let inputs = [number % count, number / count % count].map(|place| self.0[place as usize]);
        Recipe::new(FunctionId::new("concat", "1.0.0"), inputs.into())
    }
}
