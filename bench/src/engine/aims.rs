//! What the engine promises, each promise with its measurement.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_engine::{Dag, Edge, Graph, NodeId, OnError, Options, Policies, Policy};

use super::bare::{self, Bare};
use super::blocking::BlockingTasks;
use super::boxed;
use super::contender::{Contender, Peer, latency, measure, measure_this, runtime};
use super::digits;
use super::flow;
use super::ours::{EngineWithListener, Ours, PooledEngine};
use super::shapes::{Shape, chain, fan, ranking};
use super::work::{Kind, Later};
use crate::counting::{AllocationCounts, count};
use crate::report::{Report, row};
use crate::watch::{Share, Watch};

pub(crate) fn report(report: &mut Report) {
    report.heading("Aims");
    let mut rows = vec![row(["aim", "measured", "met?"])];
    let groups = [
        inline_nodes,
        allocations,
        async_nodes,
        against_blocking,
        small_graph,
        linear_time,
        memory,
        flow::aims,
    ];
    for group in groups {
        rows.extend(group().into_iter().map(|aim| row([&aim.aim, &aim.measured, aim.met.word()])));
    }
    report.table(&rows);
    let stack = boxed::stack_per_node(&Arc::new(chain(10_000)));
    report.say(format_args!(
        "\nRecursive boxed futures take {stack} bytes of stack a node of a chain: on a thread of 2 MiB (tokio's \
        default) one of {} nodes overflows. They are measured below on a stack of 1 GiB.",
        (2 << 20) / stack
    ));
}

pub(super) struct Aim {
    aim: String,
    measured: String,
    met: AimVerdict,
}

#[derive(Clone, Copy)]
enum AimVerdict {
    Yes,
    No,
    /// Reported for comparison.
    NotAsked,
}

impl AimVerdict {
    fn word(self) -> &'static str {
        match self {
            AimVerdict::Yes => "yes",
            AimVerdict::No => "NO",
            AimVerdict::NotAsked => "-",
        }
    }
}

pub(super) fn aim(aim: impl Into<String>, measured: impl Into<String>, met: bool) -> Aim {
    Aim {
        aim: aim.into(),
        measured: measured.into(),
        met: if met { AimVerdict::Yes } else { AimVerdict::No },
    }
}

pub(super) fn aside(aim: &str, measured: String) -> Aim {
    Aim { aim: aim.to_owned(), measured, met: AimVerdict::NotAsked }
}

const LARGE: u32 = 100_000;

fn inline_nodes() -> Vec<Aim> {
    let shape = Arc::new(chain(LARGE));
    let kind = Kind::Inline;
    let a_node = |share: f64| format!("{} ns", digits(share));
    let plain = measure_this(Ours::new(&shape, kind), &shape, kind).wall;
    let unheard = measure_this(with_policies(&shape, 1), &shape, kind).wall;
    let table = measure_this(with_policies(&shape, LARGE as usize), &shape, kind).wall;
    let heard = measure_this(EngineWithListener::new(with_policies(&shape, 1)), &shape, kind).wall;
    vec![
        aside("inline node, chain of 100,000, no policies", a_node(plain)),
        aim(
            "the same with timeout, fallback and deadline, unheard: <= 50 ns",
            a_node(unheard),
            unheard <= 50.0,
        ),
        aside("the same with a policy entry a node", a_node(table)),
        aim("the same (one entry), heard: <= 150 ns", a_node(heard), heard <= 150.0),
    ]
}

/// Everything a node's policy can ask for, and a deadline on top.
fn with_policies(shape: &Arc<Shape>, entries: usize) -> Ours {
    let timeout = Some(Duration::from_secs(60));
    let policy = Policy { timeout, on_error: OnError::Fallback, ..Policy::default() };
    let policies = Policies::repeating(vec![policy; entries]);
    let deadline = Some(Instant::now() + Duration::from_secs(3600));
    Ours::new(shape, Kind::Inline).with(policies, Options { deadline, ..Options::default() })
}

fn allocations() -> Vec<Aim> {
    let mut aims = Vec::new();
    for (what, kind, make) in [
        ("inline, chain", Kind::Inline, chain as fn(u32) -> Shape),
        ("inline, fan", Kind::Inline, fan),
        ("async, chain", Kind::Async, chain),
        ("async, fan (at most 1,024 in flight)", Kind::Async, fan),
    ] {
        let [small, large] = [1_000, LARGE].map(|nodes| count_run(&Arc::new(make(nodes)), kind).calls);
        let measured = format!("{small} and {large} allocations a run of 1,000 and 100,000");
        // A run that had more in flight made more slots, of two allocations each.
        let met = large <= small.max(2 * 1_024 + 64);
        aims.push(aim(format!("no allocation a node: {what}"), measured, met));
    }
    aims
}

/// What a run allocates once the engine and the runtime are warm.
fn count_run(shape: &Arc<Shape>, kind: Kind) -> AllocationCounts {
    let mut ours = Ours::new(shape, kind);
    let runtime = runtime(1);
    runtime.block_on(ours.run());
    count(|| runtime.block_on(ours.run())).1
}

fn async_nodes() -> Vec<Aim> {
    let shape = Arc::new(chain(LARGE));
    let ours = measure::<Ours>(&shape, Kind::Async).expect("ours takes any graph").wall;
    let futures = bare_futures();
    let measured = format!("{} ns over {} ns", digits(ours - futures), digits(futures));
    vec![aim(
        "async node, chain of 100,000: <= 300 ns over its bare future",
        measured,
        ours - futures <= 300.0,
    )]
}

/// Nanoseconds for one of the same futures, awaited one after another by one async block.
fn bare_futures() -> f64 {
    let batch = || {
        let watch = Watch::start();
        std::hint::black_box(bare::poll_to_end(async {
            let mut sum = 0;
            for node in 0..u64::from(LARGE) {
                sum = Later::new(Kind::Async.value(node.wrapping_add(sum))).await;
            }
            sum
        }));
        watch.stop().share(u64::from(LARGE)).wall
    };
    (0..20).map(|_| batch()).min_by(f64::total_cmp).expect("there are twenty")
}

fn against_blocking() -> Vec<Aim> {
    let shape = Arc::new(chain(100));
    let [job, blocking] = [calmest::<Bare>(&shape), calmest::<BlockingTasks>(&shape)];
    let wall = [blocking, job].map(|share| digits(share.wall));
    let mut aims = vec![aside(
        "chain of 100 jobs by `spawn_blocking`; the bare job",
        format!("{} ns wall, {} ns CPU; {} ns", wall[0], digits(blocking.cpu), wall[1]),
    )];
    for (what, ours) in [
        ("inline by cost", calmest::<Ours>(&shape).wall),
        ("one fused trip", calmest::<PooledEngine>(&shape).wall),
    ] {
        let all = blocking.wall / ours;
        let added = (blocking.wall - job.wall) / (ours - job.wall);
        let measured =
            format!("{} ns: {}x, {}x without the job itself", digits(ours), digits(all), digits(added));
        aims.push(aim(format!("the same, {what}: >= 100x cheaper, the job aside"), measured, added >= 100.0));
    }
    aims
}

/// The fastest of several measurements: what crosses threads depends on where the system happens to put them.
fn calmest<P: Peer>(shape: &Arc<Shape>) -> Share {
    let once = || measure::<P>(shape, Kind::Cpu).expect("it takes a chain of jobs");
    (0..8).map(|_| once()).min_by(|a, b| a.wall.total_cmp(&b.wall)).expect("there are eight")
}

fn small_graph() -> Vec<Aim> {
    let shape = Arc::new(ranking());
    let spread = latency(Ours::new(&shape, Kind::Inline), 1, 200_000);
    let measured = format!("p50 {:?}, p99 {:?}", spread.p50, spread.p99);
    vec![aim("15 nodes, from submit to result: <= 1 us", measured, spread.p50 <= Duration::from_micros(1))]
}

fn linear_time() -> Vec<Aim> {
    let ratio = |(what, make): (&str, fn(u32) -> Shape)| {
        let [small, large] = [LARGE, 10 * LARGE].map(|nodes| {
            let share = measure::<Ours>(&Arc::new(make(nodes)), Kind::Inline).expect("ours takes any graph");
            share.wall * f64::from(nodes) / 1e6
        });
        let measured = format!("{} ms and {} ms: {:.1}x", digits(small), digits(large), large / small);
        aim(format!("{what} of 1,000,000 over 100,000: <= 12x"), measured, large / small <= 12.0)
    };
    [("chain", chain as fn(u32) -> Shape), ("fan", fan)].map(ratio).into()
}

fn memory() -> Vec<Aim> {
    let edges: Vec<_> = (1..LARGE).map(|node| (NodeId(node - 1), NodeId(node), Edge::Needs)).collect();
    let (dag, built) = count(|| Dag::new(LARGE, &edges).expect("a chain has no cycle"));
    let a_node = |bytes: usize| bytes / dag.node_count() as usize;
    let run = count_run(&Arc::new(chain(LARGE)), Kind::Inline);
    let (graph, run) = (a_node(built.kept), a_node(run.peak));
    let measured = format!("{graph} bytes of graph and {run} of run ({} while building)", a_node(built.peak));
    vec![aim("memory a node of a chain, graph and run: <= 100 bytes", measured, graph + run <= 100)]
}
