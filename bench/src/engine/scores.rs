//! Jobs over rows, as a ranking has them: where they run is up to the run's inline threshold.

use std::convert::Infallible;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_engine::event::{Event, EventKind, ListenerItem, Placement};
use anabranch_engine::{
    Budget, Check, Config, Cost, Dag, Drops, Engine, Job, NodeId, Options, Policies, Step, Workload,
};

use super::contender::{Contender, runtime};

/// Independent jobs over rows, in an engine of two CPU threads.
pub(crate) struct Scores {
    engine: Engine,
    graph: Dag,
    policies: Policies,
    options: Options,
    work: Jobs,
}

impl Scores {
    pub(crate) fn new(rows: &[usize], rate: f64, inline_threshold: Duration) -> Scores {
        let config = Config { cpu_threads: 2, ..Config::default() };
        Scores {
            engine: Engine::new(&config).expect("no setting is zero"),
            graph: Dag::new(rows.len() as u32, &[]).expect("a graph without edges"),
            policies: Policies::default(),
            options: Options { inline_threshold: Some(inline_threshold), ..Options::default() },
            work: Jobs {
                column: column(rows.iter().copied().max().unwrap_or(0)),
                rows: rows.into(),
                rate,
                total: 0.0,
            },
        }
    }

    /// How many nodes a run sends to the pool, by its events.
    pub(crate) fn count_offloaded(&mut self) -> usize {
        let mut listener = self.engine.events().listen(NonZeroUsize::new(1_000).expect("it is not 0"));
        runtime(1).block_on(self.run());
        let events = std::iter::from_fn(|| listener.try_next());
        let to_pool = |item: &ListenerItem| {
            matches!(item, ListenerItem::Event(Event { kind: EventKind::Started(_, Placement::Pool), .. }))
        };
        events.filter(to_pool).count()
    }
}

impl Contender for Scores {
    async fn run(&mut self) -> u64 {
        let run = self.engine.run(&self.graph, &self.policies, &mut self.work, &self.options);
        run.expect("the engine has room").await.expect("no node fails");
        self.work.total.to_bits()
    }
}

/// The same two jobs by `spawn_blocking`.
pub(crate) struct BlockingScores {
    column: Arc<[f64]>,
}

impl BlockingScores {
    pub(crate) fn new(rows: usize) -> BlockingScores {
        BlockingScores { column: column(rows) }
    }
}

impl Contender for BlockingScores {
    async fn run(&mut self) -> u64 {
        let start = || {
            let column = Arc::clone(&self.column);
            tokio::task::spawn_blocking(move || score(&column))
        };
        let (one, other) = (start(), start());
        (one.await.expect("no panic") + other.await.expect("no panic")).to_bits()
    }
}

struct Jobs {
    column: Arc<[f64]>,
    /// How many rows each node looks at.
    rows: Box<[usize]>,
    rate: f64,
    total: f64,
}

impl Workload for Jobs {
    type Value = f64;
    type Error = Infallible;
    type Future = std::future::Pending<Result<f64, Infallible>>;
    type Job = Score;

    fn step(&mut self, node: NodeId, _: Budget) -> Step<Self> {
        let rows = self.rows[node.index()];
        let cost = Duration::from_nanos((rows as f64 * self.rate) as u64);
        Step::Job(Score { column: Arc::clone(&self.column), rows }, Cost::About(cost))
    }

    fn finish(&mut self, _: NodeId, value: f64, _: &mut Drops) {
        self.total += value;
    }
}

struct Score {
    column: Arc<[f64]>,
    rows: usize,
}

impl Job<f64, Infallible> for Score {
    fn run(self, _: Option<f64>, _: &Check<'_>) -> Result<f64, Infallible> {
        Ok(score(&self.column[..self.rows]))
    }
}

/// A small expression over a column, as a ranking would compute it.
#[inline(never)]
fn score(column: &[f64]) -> f64 {
    column.iter().map(|x| (x * 1.5 + 0.25).sqrt() / (x + 2.0)).sum()
}

fn column(rows: usize) -> Arc<[f64]> {
    (0..rows).map(|row| row as f64 / 7.0).collect()
}

/// What a row costs, in nanoseconds.
pub(crate) fn nanos_a_row() -> f64 {
    let column = column(10_000);
    let once = || {
        let began = Instant::now();
        black_box(score(black_box(&column)));
        began.elapsed().as_nanos() as f64 / column.len() as f64
    };
    (0..200).map(|_| once()).min_by(f64::total_cmp).expect("there are many")
}

/// How much more two threads do than one: whether this machine had a second core to spare.
pub(crate) fn parallel_gain() -> f64 {
    let column = column(1_000_000);
    let work = || black_box((0..10).map(|_| score(black_box(&column))).sum::<f64>());
    let time = |threads: usize| {
        let began = Instant::now();
        std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
        began.elapsed().as_secs_f64()
    };
    2.0 * time(1) / time(2)
}
