//! `anabranch demo`: an example feed on embedded data with its timeline, recipes that are computed once, a dataset on
//! an offline model, and a server whose console shows all of it.

mod console;
mod datasets;
mod recipes;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::clock::{Clock as _, SystemClock};
use anabranch_engine::timeline::{Category, NodeTrack};
use anabranch_plan::source::{Fault, Memory, MemoryData, Source};
use anabranch_plan::{Answer, Config, Engine, Plan, Registries, Request, RunOptions};
use anabranch_plan_inspect::explain::Kind;
use anabranch_plan_inspect::{Trace, explain, run_traced};
use anabranch_text::duration;
use clap::Args;
use serde_json::{Value, json};

use crate::args::EXIT_CODES;
use crate::failure::Failure;
use crate::plan::{ledger, table};
use crate::wait;
use crate::{fresh, out};
use console::DemoEnd;

macro_rules! example {
    ($path:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/plans/", $path))
    };
}

const REGISTRY: [(&str, &str); 5] = [
    ("keys.toml", example!("registry/keys.toml")),
    ("params.toml", example!("registry/params.toml")),
    ("capabilities.toml", example!("registry/capabilities.toml")),
    ("validation.toml", example!("registry/validation.toml")),
    ("endpoints.dev.toml", example!("registry/endpoints.dev.toml")),
];
const PLAN: &str = example!("plans/feed.plan.json");
const DATA: &str = example!("data.json");

/// The latencies of reads by key prefix, like those of a remote store.
const DELAYS: [(&str, u64); 4] = [("follow:", 16), ("recommendation:", 22), ("media:", 20), ("post:", 26)];

/// The key prefixes of the reads that hang in the second part.
const STALLED: [&str; 2] = ["follow:", "recommendation:"];

/// The time limit of a run, long enough that a busy machine does not make the demo fail.
const TIME: Duration = Duration::from_secs(60);

/// The characters of a bar that is as long as the run.
const BAR: usize = 56;

/// Runs an example feed, recipes and a dataset on built-in data, then serves a console that shows them.
#[derive(Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Demo {
    /// Where to write the timeline; a file in a new folder for temporary files if not given. The dataset and the server's
    /// files go into a folder of the same name beside it. With --exit, the new folder is removed at the end.
    #[arg(long, value_name = "FILE.html")]
    out: Option<PathBuf>,
    /// Ends once everything was shown, instead of serving the console until Ctrl-C.
    #[arg(long)]
    exit: bool,
    /// Whose feed: 1 to 60.
    #[arg(long, value_name = "N", allow_negative_numbers = true, default_value_t = 7, value_parser = clap::value_parser!(i64).range(1..=60))]
    user: i64,
}

/// The result of one run of the plan.
struct TracedAnswer {
    answer: Answer,
    trace: Trace,
}

impl Demo {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let afterwards = if self.exit { DemoEnd::Exit } else { DemoEnd::Serve };
        let files = Files::new(self.out, afterwards)?;
        wait::here(Box::pin(show(self.user, &files)))?;
        let runtime = wait::runtime(tokio::runtime::Builder::new_multi_thread().worker_threads(2))?;
        wait::and_end(runtime, Box::pin(console::serve(&files, self.user, afterwards)))
    }
}

/// Shows everything that needs no server.
async fn show(user: i64, files: &Files) -> Result<(), Failure> {
    let engine = engine(&[])?;
    let plan = engine.compile(&unhurried()?, &PathBuf::new())?;
    let together = run(&engine, &plan, user, Order::Parallel).await?;
    let one_by_one = run(&engine, &plan, user, Order::Sequential).await?;
    out::file(&files.timeline, &together.trace.html())?;

    let mut text =
        format!("The feed of user {}, from a plan of {} nodes:\n\n", user, explain(&plan).nodes.len());
    text.push_str(&table(&together.answer, engine.registries()).text(2));
    text.push_str(&story(&plan, &together, &one_by_one));
    text.push_str(&stalled(user, &together).await?);
    text.push_str(&recipes::told().await?);
    text.push_str(&datasets::told(files).await?);
    if files.are_kept() {
        text.push_str(&format!("\nThe timeline, to zoom into: {}\n", files.timeline.display()));
    }
    text.push_str(&next_command());
    out::data(&text)?;
    Ok(())
}

/// The files of the demo.
struct Files {
    timeline: PathBuf,
    /// A folder that is removed with this value.
    removed: Option<PathBuf>,
}

impl Files {
    /// Without a file to write, those of a demo that ends by itself are removed: nobody is left to look at them.
    fn new(out: Option<PathBuf>, afterwards: DemoEnd) -> Result<Files, Failure> {
        if let Some(timeline) = out {
            return Ok(Files { timeline, removed: None });
        }
        let folder = fresh::temporary_folder("demo")?;
        let timeline = folder.join("feed.html");
        Ok(Files { timeline, removed: (afterwards == DemoEnd::Exit).then_some(folder) })
    }

    /// The folder of the dataset and of the server.
    fn folder(&self) -> PathBuf {
        self.timeline.with_extension("")
    }

    fn are_kept(&self) -> bool {
        self.removed.is_none()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        if let Some(folder) = &self.removed {
            // What cannot be removed is left to the system, like all temporary files.
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// The project of the example, in a clone.
const PROJECT: &str = "examples/plans/anabranch.toml";

/// The command that explains the plan, or makes one where the example is not there, for the program that the reader uses.
fn next_command() -> String {
    let program = std::env::args().next().unwrap_or_default();
    let by_cargo = program.contains("target/");
    let program = if by_cargo { "cargo run --release --" } else { "anabranch" };
    match Path::new(PROJECT).is_file() {
        true => format!(
            "What will be fetched, node by node: {program} plan explain feed \\\n  --project {PROJECT}\n"
        ),
        false => format!("A plan of your own: {program} plan new feed\n"),
    }
}

/// The same feed while some kinds of reads hang.
async fn stalled(user: i64, whole: &TracedAnswer) -> Result<String, Failure> {
    let engine = engine(&STALLED)?;
    // The replies of the first run are what the second falls back to, however long they take.
    let first = engine.compile(&unhurried()?, &PathBuf::new())?;
    run(&engine, &first, user, Order::Parallel).await?;
    let plan = engine.compile(PLAN, &PathBuf::new())?;
    let TracedAnswer { answer, trace } = run(&engine, &plan, user, Order::Parallel).await?;
    let ids = |answer: &Answer| answer.candidates().map(|row| row.id).collect::<Vec<_>>();
    let (before, now) = (ids(&whole.answer), ids(&answer));
    let same = now.iter().filter(|id| before.contains(id)).count();
    let (wall, deadline_ms) = (trace.timeline().wall(), explain(&plan).deadline_ms.unwrap_or_default());
    let kept = if wall.as_secs_f64() * 1e3 <= deadline_ms { "before" } else { "on a busy machine, after" };
    let mut text = format!(
        "\nThe same feed while reads of {} hang: {} rows after {},\n\
         {kept} the deadline of {deadline_ms} ms; {same} of them are the same. The ledger lists the degraded parts:\n\n",
        STALLED.join("* and ") + "*",
        now.len(),
        duration::format(wall),
    );
    text.push_str(&ledger(&answer).text(2));
    Ok(text)
}

/// The example's plan without timeouts that a busy machine could exceed.
fn unhurried() -> Result<String, Failure> {
    let mut plan: Value = serde_json::from_str(PLAN).map_err(|error| Failure::of(error.to_string()))?;
    let long = json!(TIME.as_millis());
    for node in plan["nodes"].as_array_mut().into_iter().flatten() {
        if let Some(timeout) = node.get_mut("timeout_ms") {
            *timeout = long.clone();
        }
    }
    plan["deadline_ms"] = long;
    Ok(plan.to_string())
}

/// The example's engine. After one read each, reads of keys that begin with `stalled` hang.
fn engine(stalled: &[&str]) -> Result<Engine, Failure> {
    let (registries, _) = Registries::parse(REGISTRY, Some("dev"))?;
    let data = Arc::new(MemoryData::from_json("data.json", DATA)?);
    let clock = Arc::new(SystemClock);
    let source = |endpoint: &anabranch_plan::registry::Endpoint| {
        let memory = Memory::new(endpoint.id.as_str(), Arc::clone(&data), Arc::clone(&clock) as _);
        let slow = |memory: Memory, (prefix, millis): (&str, u64)| {
            let stall_after = stalled.contains(&prefix).then_some(1);
            let delay = Duration::from_millis(millis);
            memory.with_fault(prefix, Fault { delay, stall_after, ..Fault::default() })
        };
        Arc::new(DELAYS.into_iter().fold(memory, slow)) as Arc<dyn Source>
    };
    let sources = registries.endpoints.iter().map(source).collect();
    Ok(Engine::load(Config::new(registries, sources))?)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Parallel,
    Sequential,
}

async fn run(engine: &Engine, plan: &Plan, user: i64, order: Order) -> Result<TracedAnswer, Failure> {
    let mut request = Request::new(user, engine.registries());
    request.request_id = Some("demo".to_owned());
    let deadline = Some(SystemClock.now() + TIME);
    let options = RunOptions { deadline, sequential: order == Order::Sequential, ..RunOptions::default() };
    let (answer, trace) = run_traced(plan, request, &options).await;
    let answer = answer?;
    Ok(TracedAnswer {
        answer,
        trace: trace.ok_or_else(|| Failure::of("no events of the run were recorded"))?,
    })
}

/// Describes the timeline, and the time that parallel reads saved.
fn story(plan: &Plan, together: &TracedAnswer, one_by_one: &TracedAnswer) -> String {
    let explained = explain(plan);
    let timeline = together.trace.timeline();
    let wall = timeline.wall();
    let mut text = format!(
        "\nThe timeline, {} in total: each node starts once its inputs are there.\n\n",
        duration::format(wall)
    );
    for (name, track) in together.trace.stages() {
        text.push_str(&format!("  {:<36} {}\n", cut(name, 36), bar(track, wall)));
    }
    let spent = timeline.all_nodes();
    let worked = spent[Category::Io] + spent[Category::Cpu];
    let first = |stage: &usize| {
        let stage = &explained.stages[*stage];
        stage.nodes.first().unwrap_or(&stage.name).clone()
    };
    let works = |stage: &&usize| explained.stages[**stage].kind != Kind::Timer;
    let levels =
        explained.levels.iter().map(|level| level.iter().filter(works).map(first).collect::<Vec<_>>());
    let wide: Vec<String> = levels.filter(|level| level.len() > 1).map(|level| level.join(" | ")).collect();
    text.push_str(&format!(
        "\n  in parallel      {}\n  trips            {} to the store with {} commands; {} one after the other, the rest in parallel\n  \
         sum of nodes     {}; the answer took {}, the time of its critical path\n  \
         one at a time    the same plan took {}\n",
        wide.join("; "),
        together.answer.stats.trips,
        together.answer.stats.commands,
        explained.critical_trips,
        duration::format(worked),
        duration::format(wall),
        duration::format(one_by_one.trace.timeline().wall()),
    ));
    text
}

/// The time of a stage as a bar; a dot if it is too short to show.
fn bar(track: &NodeTrack, wall: Duration) -> String {
    let (Some(started), Some(ended)) = (track.started, track.ended) else { return "did not run".to_owned() };
    let at =
        |time: Duration| (time.as_secs_f64() / wall.as_secs_f64().max(1e-9) * BAR as f64).round() as usize;
    let (from, to) = (at(started).min(BAR - 1), at(ended));
    let line = if to > from { "=".repeat(to - from) } else { ".".to_owned() };
    format!("{}{line}", " ".repeat(from))
}

fn cut(text: &str, width: usize) -> String {
    match text.char_indices().nth(width) {
        Some(_) => text.chars().take(width - 1).chain(['…']).collect(),
        None => text.to_owned(),
    }
}
