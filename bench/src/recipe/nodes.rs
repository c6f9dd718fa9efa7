//! What it takes to have a recipe computed, beside what its function takes.

use std::time::Duration;
use std::{fs, io};

use anabranch_recipe::{Error, Executor, Functions, Get, Params, call};
use bytes::Bytes;

use super::shapes::{Shape, compute, in_memory, on_disk};
use super::turns::{Turns, micros};
use crate::content::ground::Ground;
use crate::content::{digits, verdict};
use crate::counting::count;
use crate::report::{Report, row};

pub(super) fn report(report: &mut Report, ground: &Ground) -> io::Result<()> {
    report.heading("Scheduling of computed recipes");
    report.say(ABOUT);
    for (name, make, nodes) in GRAPHS {
        if ground.sizes.quick && nodes > 10_000 {
            continue;
        }
        let measured = measure(ground, make, nodes)?;
        let mut rows = vec![row(COLUMNS)];
        let name = format!("{name} of {}", digits(nodes as f64));
        for own in &measured.ours {
            rows.push(own.row(&name, &measured.function));
        }
        if !measured.baseline.is_empty() {
            rows.push(plain_row(&name, "baseline", &measured.baseline, &measured.function));
        }
        rows.push(plain_row(&name, "function alone", &measured.function, &measured.function));
        let factor = |own: &Ours| format!("{:.0}x", measured.baseline.times(&own.whole));
        if !measured.baseline.is_empty() {
            let factors: Vec<_> = measured.ours.iter().map(factor).collect();
            report.say(format_args!("The baseline takes {} the time:\n", factors.join(" and ")));
        }
        report.table(&rows);
        report.say("");
    }
    Ok(())
}

const COLUMNS: [&str; 12] = [
    "graph",
    "who",
    "us",
    "us CPU",
    "over function, us",
    "find, us",
    "run, us",
    "store's threads, us CPU",
    "behind, us",
    "allocations",
    "aim",
    "met?",
];

const ABOUT: &str = "Microseconds a recipe. A chain: `blake3` over `blake3`, down to a blob of 8 bytes: all values \
    differ, and all recipes run. A cut-off chain: `identity` over `identity`, down to such a blob: all values are the \
    same, so only the first recipe runs, and each other one is found to have equal inputs (early cut-off). A fan: \
    `concat` over so many `identity`, each over a blob of its own. `function alone` calls the function as often as \
    recipes run, in a loop. `find` is a get of the same graph with its last blob missing: it looks all recipes up and computes none; \
    `run` is the rest of a whole get. `store's threads` is the CPU time of the store's own threads during the get, \
    `behind` the time after it until all values are written. Allocations are of all threads.\n";

/// Makes a graph of so many recipes; of each seed another one.
pub(super) type Make = fn(usize, u64) -> Shape;

const GRAPHS: [(&str, Make, usize); 8] = [
    ("chain", Shape::chain, 1_000),
    ("chain", Shape::chain, 10_000),
    ("chain", Shape::chain, 100_000),
    ("chain", Shape::chain, 1_000_000),
    ("cut-off chain", Shape::cut_off_chain, 10_000),
    ("cut-off chain", Shape::cut_off_chain, 100_000),
    ("fan", Shape::fan, 10_000),
    ("fan", Shape::fan, 100_000),
];

/// A wake-up of the baseline polls the whole chain: its time grows with the square of this.
const BASELINE_DEEPEST: usize = 10_000;

/// Values that take longer than a minute to be written are lost.
const WAITS_MOST: usize = 600_000;

struct ContenderTurns {
    ours: [Ours; 2],
    baseline: Turns,
    function: Turns,
}

struct Ours {
    name: &'static str,
    whole: Turns,
    find: Turns,
    behind: Turns,
    /// Nanoseconds of the store's threads, a recipe.
    store: Vec<f64>,
    allocations: Option<f64>,
}

fn measure(ground: &Ground, make: Make, nodes: usize) -> io::Result<ContenderTurns> {
    let turns = match nodes {
        ..=10_000 => ground.sizes.turns,
        10_001..=100_000 => ground.sizes.turns.min(3),
        _ => 1,
    };
    let ours = |name| Ours {
        name,
        whole: Turns::default(),
        find: Turns::default(),
        behind: Turns::default(),
        store: Vec::new(),
        allocations: None,
    };
    let ours = [ours("in memory"), ours("on disk")];
    let mut measured = ContenderTurns { ours, baseline: Turns::default(), function: Turns::default() };
    // The first turn is for warming up; a very large graph does that itself.
    for turn in u64::from(nodes > 100_000)..=turns as u64 {
        let shape = make(nodes, 2 * turn);
        let broken = make(nodes, 2 * turn + 1);
        let folder = ground.folder("nodes");
        for (place, executor) in [in_memory(), on_disk(folder.path())].into_iter().enumerate() {
            shape.add_to(&ground.runtime, &executor);
            broken.add_but_one_leaf(&ground.runtime, &executor);
            ground.settle()?;
            measured.ours[place].take_turn(ground, &executor, (&shape, &broken), turn == 0);
            ground.close(executor.store().clone());
        }
        if nodes <= BASELINE_DEEPEST || shape.leaves.len() > 1 {
            let baseline = shape.baseline();
            let tip = shape.tip();
            let value =
                measured.baseline.time(nodes as u64, || ground.runtime.block_on(baseline.materialise(tip)));
            value.expect("it can be computed");
        }
        measured.function.time(nodes as u64, || call_alone(&shape));
        if turn == 0 {
            measured.forget();
        }
    }
    Ok(measured)
}

impl ContenderTurns {
    fn forget(&mut self) {
        for Ours { whole, find, behind, store, .. } in &mut self.ours {
            [whole, find, behind].into_iter().for_each(Turns::forget);
            store.clear();
        }
        self.baseline.forget();
        self.function.forget();
    }
}

impl Ours {
    fn take_turn(
        &mut self,
        ground: &Ground,
        executor: &Executor,
        (shape, broken): (&Shape, &Shape),
        counts: bool,
    ) {
        let nodes = shape.recipes.len() as u64;
        let found = self
            .find
            .time(nodes, || ground.runtime.block_on(executor.get(&broken.tip(), &Get::default())).err());
        assert!(matches!(found, Some(Error::NotFound { .. })), "a blob was there that should not: {found:?}");
        let before = store_threads();
        let mut whole = || self.whole.time(nodes, || ground.runtime.block_on(compute(executor, shape)));
        let value = match counts {
            true => {
                let (value, counted) = count(whole);
                self.allocations = Some(counted.calls as f64 / nodes as f64);
                value
            }
            false => whole(),
        };
        assert_eq!(value.len() as u64, shape.value_len);
        self.store.push((store_threads() - before) / nodes as f64);
        self.behind.time(nodes, || {
            let written = || executor.store().stats().memos >= nodes;
            let waits = std::iter::repeat_n(Duration::from_micros(100), WAITS_MOST);
            waits.take_while(|_| !written()).for_each(std::thread::sleep);
            assert!(written(), "values are not written");
        });
    }

    fn row(&self, graph: &str, function: &Turns) -> Vec<String> {
        let over = self.whole.wall() - function.wall();
        let find = self.find.wall();
        row([
            graph,
            self.name,
            &micros(self.whole.wall()),
            &micros(self.whole.cpu()),
            &micros(over),
            &micros(find),
            &micros(self.whole.wall() - find),
            &micros(crate::content::callers::median(self.store.iter().copied())),
            &micros(self.behind.wall()),
            &self.allocations.map_or("-".to_owned(), |allocations| format!("{allocations:.1}")),
            "<= 3 us over",
            verdict(over <= 3_000.0),
        ])
    }
}

fn plain_row(graph: &str, who: &str, turns: &Turns, function: &Turns) -> Vec<String> {
    let over = micros(turns.wall() - function.wall());
    let cells = [graph, who, &micros(turns.wall()), &micros(turns.cpu()), &over];
    cells.into_iter().chain(["-"; 5]).chain(["", "-"]).map(str::to_owned).collect()
}

/// Calls the function of the first recipe as often as recipes run.
fn call_alone(shape: &Shape) {
    let functions = Functions::builtin();
    let function = functions.get(&shape.recipes[0].function).expect("a function of the crate");
    let (inputs, params) = ([vec![Bytes::from_static(b"12345678")]], Params::new());
    for _ in 0..shape.recipes.len() - shape.cut_off as usize {
        let given = call(function, std::hint::black_box(&inputs), &params).expect("it takes one input");
        assert!(!std::hint::black_box(given)[0].is_empty());
    }
}

/// Nanoseconds that the stores' own threads have worked.
fn store_threads() -> f64 {
    let worked = |folder: fs::DirEntry| {
        let name = fs::read_to_string(folder.path().join("comm")).ok()?;
        let times = fs::read_to_string(folder.path().join("schedstat")).ok()?;
        name.starts_with("content-").then(|| times.split(' ').next()?.parse::<f64>().ok())?
    };
    let tasks = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    tasks.filter_map(worked).sum()
}
