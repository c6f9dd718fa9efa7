//! Two branches that part and join, once in full and once with a branch that is too late.
//!
//! `cargo run -p anabranch-engine --example branches` prints when each node ran and writes a timeline page.
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a program for people, on real time")]

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use anabranch_engine::event::ListenerItem;
use anabranch_engine::timeline::Timeline;
use anabranch_engine::workload::{BoxFuture, BoxJob};
use anabranch_engine::{
    Budget, Check, Config, Cost, Dag, Drops, Edge, Engine, Failure, Instead, NodeId, OnError, Options,
    Policies, Policy, Step, Workload,
};

/// Name, inputs, milliseconds of waiting on a backend, milliseconds of CPU time.
const NODES: [(&str, &[usize], u64, u64); 9] = [
    ("viewer", &[], 9, 0),
    ("follow", &[0], 14, 0),
    ("recommend", &[0], 19, 0),
    ("media of follow", &[1], 19, 0),
    ("media of recommend", &[2], 24, 0),
    ("score follow", &[3], 0, 4),
    ("score recommend", &[4], 0, 4),
    ("merge", &[5, 6], 0, 0),
    ("sort and take", &[7], 0, 0),
];

struct Feed {
    /// Nodes whose value is that of a fallback.
    degraded: Vec<&'static str>,
}

impl Workload for Feed {
    type Value = ();
    type Error = String;
    type Future = BoxFuture<(), String>;
    type Job = BoxJob<(), String>;

    fn step(&mut self, node: NodeId, _: Budget) -> Step<Self> {
        match NODES[node.index()] {
            (_, _, 0, 0) => Step::Ready(Ok(())),
            (_, _, 0, cpu) => {
                let cpu = Duration::from_millis(cpu);
                Step::job(move |_, check| burn(cpu, check), Cost::About(cpu))
            }
            (_, _, io, _) => Step::future(async move {
                tokio::time::sleep(Duration::from_millis(io)).await;
                Ok(())
            }),
        }
    }

    fn finish(&mut self, _: NodeId, (): (), _: &mut Drops) {}

    fn fallback(&mut self, node: NodeId, _: &Failure<String>) -> Instead<()> {
        self.degraded.push(NODES[node.index()].0);
        Instead::Value(())
    }
}

fn burn(time: Duration, check: &Check<'_>) -> Result<(), String> {
    let began = Instant::now();
    while began.elapsed() < time && !check.should_stop() {
        std::hint::spin_loop();
    }
    Ok(())
}

async fn answer(engine: &Engine, dag: &Dag, deadline_ms: u64) -> Result<(), Box<dyn std::error::Error>> {
    let mut listener = engine.events().listen(NonZeroUsize::MIN.saturating_add(1000));
    let policies = NODES.map(|(_, inputs, io, _)| {
        let on_error = if io > 0 && !inputs.is_empty() { OnError::Fallback } else { OnError::FailRun };
        Policy { on_error, ..Policy::default() }
    });
    let policies = Policies::repeating(policies.into());
    let deadline = Instant::now() + Duration::from_millis(deadline_ms);
    let mut feed = Feed { degraded: Vec::new() };
    let options = Options { deadline: Some(deadline), ..Options::default() };
    let run = engine.run(dag, &policies, &mut feed, &options)?;
    let id = run.id();
    let report = run.await?;

    let heard: Vec<ListenerItem> = std::iter::from_fn(|| listener.try_next()).collect();
    let timeline = Timeline::new(id, dag, &heard)?;
    println!("deadline {deadline_ms} ms: answered in {:.1} ms", timeline.wall().as_secs_f64() * 1e3);
    for (node, track) in NODES.iter().zip(timeline.tracks()) {
        println!("  {:<20}{}", node.0, bar(track.started, track.ended));
    }
    println!("  {} of {} nodes finished; fell back: {:?}", report.finished, NODES.len(), feed.degraded);
    let file = std::env::temp_dir().join(format!("branches-{deadline_ms}.html"));
    std::fs::write(&file, timeline.html("Two branches", &|node| NODES[node.index()].0.to_owned()))?;
    println!("  the timeline: {}\n", file.display());
    Ok(())
}

/// One character per millisecond.
fn bar(started: Option<Duration>, ended: Option<Duration>) -> String {
    let (Some(started), Some(ended)) = (started, ended) else { return "not started".to_owned() };
    let (from, to) = (started.as_millis() as usize, ended.as_millis() as usize);
    format!("{}{}", " ".repeat(from), "=".repeat((to - from).max(1)))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let edges: Vec<_> = (0..NODES.len())
        .flat_map(|node| NODES[node].1.iter().map(move |input| (*input as u32, node as u32)))
        .map(|(input, node)| (NodeId(input), NodeId(node), Edge::Needs))
        .collect();
    let dag = Dag::new(NODES.len() as u32, &edges)?;
    let engine = Engine::new(&Config::default())?;
    tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
        answer(&engine, &dag, 100).await?;
        answer(&engine, &dag, 55).await
    })
}
