//! Workloads as text: `viewer: io 9; follow: io 14 <- viewer; join <- follow ~recs`.
//!
//! A node is a name, words after a colon, and inputs after an arrow (`~` marks an after-edge). Words: `io MS`,
//! `spawn MS`, `cpu MS`, `block MS` say how long and where (none: done in place); `fail`, `panic`, `skip` how it
//! ends (none: it finishes), `flaky N` that the first N tries fail, `throttled N MS` that the first N are refused for
//! so long; `asks MS` that a job asks its check so often; `timeout MS`, `isolate`, `fallback`, `pool`, `inline`, `linked`, `limit N`, `tokens N`, `serial N`, `retry N` (the
//! first after 8 ms), `salvage S N` (N more, the first after S seconds), `retry_never` (after the longest pause that there is) set its policy;
//! `known N` that it needs no limit once it was tried N times, `unsure` that asking so panics; `drops NAME` drops another node when it finishes.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_engine::clock::Clock;
use anabranch_engine::event::{EventKind, Listener, ListenerItem};
use anabranch_engine::limit::{LimitKey, Limits};
use anabranch_engine::policy::{SerialKey, StepKind};
use anabranch_engine::retry::{Classified, Retry, Salvage, Severity};
use anabranch_engine::{
    Budget, Check, Config, Cost, Dag, Drops, Edge, Engine, Failure, Instead, NodeId, OnError, Options,
    Policies, Policy, Report, Step, Stopped, Workload,
};
use anabranch_testkit::{Sim, spend};

pub(crate) struct Script {
    pub(crate) names: Vec<String>,
    pub(crate) dag: Dag,
    pub(crate) policies: Policies,
    acts: Vec<Act>,
}

#[derive(Clone, Debug, Default)]
struct Act {
    place: Place,
    time: Duration,
    asks: Duration,
    end: End,
    linked: bool,
    drops: Vec<NodeId>,
    flaky: u32,
    throttled: u32,
    retry_after: Duration,
    known: Option<u32>,
    unsure: bool,
}

/// How a scripted node fails.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ScriptError {
    Permanent,
    Flaky,
    Throttled(Duration),
}

impl std::fmt::Display for ScriptError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            ScriptError::Permanent => "broke",
            ScriptError::Flaky => "flaked",
            ScriptError::Throttled(_) => "throttled",
        })
    }
}

impl std::error::Error for ScriptError {}

impl Classified for ScriptError {
    fn severity(&self) -> Severity {
        match self {
            ScriptError::Permanent => Severity::Permanent,
            ScriptError::Flaky => Severity::Transient,
            ScriptError::Throttled(pause) => Severity::Throttled { retry_after: Some(*pause) },
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Place {
    #[default]
    Ready,
    Io,
    Job,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum End {
    #[default]
    Finish,
    Fail,
    Panic,
    Skip,
}

impl Script {
    pub(crate) fn parse(text: &str) -> Script {
        Script::parse_with(text, &[])
    }

    /// `limit N` in the text means the Nth of `limits`.
    pub(crate) fn parse_with(text: &str, limits: &[LimitKey]) -> Script {
        let parts: Vec<(&str, &str, &str)> = text.split(';').map(split_node).collect();
        let names: Vec<String> = parts.iter().map(|(name, _, _)| (*name).to_owned()).collect();
        let numbers: HashMap<&str, NodeId> =
            parts.iter().enumerate().map(|(number, part)| (part.0, NodeId(number as u32))).collect();
        let mut edges = Vec::new();
        let (mut policies, mut acts) = (Vec::new(), Vec::new());
        for (name, words, inputs) in &parts {
            for input in inputs.split_whitespace() {
                let kind = if input.starts_with('~') { Edge::After } else { Edge::Needs };
                edges.push((numbers[input.trim_start_matches('~')], numbers[name], kind));
            }
            let (policy, act) = parse_words(words, &numbers, limits);
            policies.push(policy);
            acts.push(act);
        }
        let dag = Dag::new(names.len() as u32, &edges).unwrap();
        Script { names, dag, policies: Policies::repeating(policies), acts }
    }

    pub(crate) fn name(&self, node: NodeId) -> &str {
        &self.names[node.index()]
    }
}

fn split_node(text: &str) -> (&str, &str, &str) {
    let (head, inputs) = text.split_once("<-").unwrap_or((text, ""));
    let (name, words) = head.split_once(':').unwrap_or((head, ""));
    (name.trim(), words, inputs)
}

fn parse_words(words: &str, numbers: &HashMap<&str, NodeId>, limits: &[LimitKey]) -> (Policy, Act) {
    let (mut policy, mut act) = (Policy::default(), Act::default());
    let mut words = words.split_whitespace();
    let number = |words: &mut std::str::SplitWhitespace<'_>| words.next().unwrap().parse::<u32>().unwrap();
    while let Some(word) = words.next() {
        match word {
            "limit" => policy.limit = Some(limits[number(&mut words) as usize]),
            "tokens" => policy.tokens = number(&mut words),
            "serial" => policy.serial = Some(SerialKey(number(&mut words))),
            "retry" => {
                let (base, longest) = (Duration::from_millis(8), Duration::from_millis(100));
                policy.retry = Some(Retry { rounds: number(&mut words), base, longest, ..Retry::default() });
            }
            "salvage" => {
                let pause = Duration::from_secs(number(&mut words).into());
                let retry = policy.retry.as_mut().expect("`salvage` comes after `retry`");
                retry.salvage = Salvage { rounds: number(&mut words), pause };
            }
            "retry_never" => {
                policy.retry = Some(Retry {
                    rounds: 1,
                    base: Duration::MAX,
                    longest: Duration::MAX,
                    ..Retry::default()
                });
            }
            "known" => act.known = Some(number(&mut words)),
            "flaky" => act.flaky = number(&mut words),
            "throttled" => {
                act.throttled = number(&mut words);
                act.retry_after = Duration::from_millis(number(&mut words).into());
            }
            _ => parse_word(word, &mut words, numbers, &mut policy, &mut act),
        }
    }
    (policy, act)
}

fn parse_word(
    word: &str,
    words: &mut std::str::SplitWhitespace<'_>,
    numbers: &HashMap<&str, NodeId>,
    policy: &mut Policy,
    act: &mut Act,
) {
    {
        let mut millis = || Duration::from_secs_f64(words.next().unwrap().parse::<f64>().unwrap() / 1e3);
        match word {
            "io" => (act.place, act.time) = (Place::Io, millis()),
            "spawn" => (act.place, act.time, policy.step) = (Place::Io, millis(), StepKind::Spawned),
            "cpu" => (act.place, act.time) = (Place::Job, millis()),
            "block" => (act.place, act.time, policy.step) = (Place::Job, millis(), StepKind::Blocking),
            "timeout" => policy.timeout = Some(millis()),
            "asks" => act.asks = millis(),
            "pool" => policy.step = StepKind::Pool,
            "inline" => policy.step = StepKind::Inline,
            "unsure" => act.unsure = true,
            "linked" => act.linked = true,
            "isolate" => policy.on_error = OnError::Isolate,
            "fallback" => policy.on_error = OnError::Fallback,
            "fail" => act.end = End::Fail,
            "panic" => act.end = End::Panic,
            "skip" => act.end = End::Skip,
            "drops" => act.drops.push(numbers[words.next().unwrap()]),
            other => panic!("unknown word `{other}`"),
        }
    }
}

/// The calls a run made, in words.
pub(crate) struct Player<'a> {
    pub(crate) script: &'a Script,
    clock: Arc<dyn Clock>,
    pub(crate) calls: Vec<String>,
    tries: Vec<u32>,
}

type Outcome = Result<(), ScriptError>;
type BoxedJob = Box<dyn FnOnce(Option<()>, &Check<'_>) -> Outcome + Send>;

impl<'a> Player<'a> {
    pub(crate) fn new(script: &'a Script, clock: &Arc<dyn Clock>) -> Player<'a> {
        Player { script, clock: Arc::clone(clock), calls: Vec::new(), tries: vec![0; script.names.len()] }
    }

    fn job(&self, node: NodeId) -> BoxedJob {
        let (outcome, time) = (self.outcome(node), self.script.acts[node.index()].time);
        let asks = self.script.acts[node.index()].asks;
        Box::new(move |_, check| {
            if asks.is_zero() {
                spend(time);
                return outcome();
            }
            let mut left = time;
            while !left.is_zero() && !check.should_stop() {
                let part = left.min(asks);
                spend(part);
                left -= part;
            }
            check.should_stop();
            outcome()
        })
    }

    /// What the current try of `node` comes to, when its time comes.
    fn outcome(&self, node: NodeId) -> impl FnOnce() -> Outcome + Send + 'static {
        let Act { end, flaky, throttled, retry_after, .. } = self.script.acts[node.index()];
        let tries = self.tries[node.index()].max(1);
        move || match tries {
            tries if tries <= throttled => Err(ScriptError::Throttled(retry_after)),
            tries if tries <= throttled + flaky => Err(ScriptError::Flaky),
            _ => finish(end),
        }
    }

    fn say(&mut self, what: &str, node: NodeId) {
        self.calls.push(format!("{what} {}", self.script.name(node)));
    }
}

fn finish(end: End) -> Outcome {
    match end {
        End::Fail => Err(ScriptError::Permanent),
        End::Panic => panic!("boom"),
        End::Finish | End::Skip => Ok(()),
    }
}

impl Workload for Player<'_> {
    type Value = ();
    type Error = ScriptError;
    type Future = Pin<Box<dyn Future<Output = Outcome> + Send>>;
    type Job = BoxedJob;

    fn step(&mut self, node: NodeId, budget: Budget) -> Step<Self> {
        let Act { place, time, end, .. } = self.script.acts[node.index()];
        if end == End::Skip {
            return Step::Drop;
        }
        self.tries[node.index()] += 1;
        let outcome = self.outcome(node);
        match place {
            Place::Ready => Step::Ready(outcome()),
            Place::Io => {
                let sleep = self.clock.sleep_until(budget.now() + time);
                let future: Self::Future = Box::pin(async move {
                    sleep.await;
                    outcome()
                });
                Step::Future(future)
            }
            Place::Job => Step::Job(self.job(node), Cost::About(time)),
        }
    }

    fn needs_limit(&mut self, node: NodeId) -> bool {
        let Act { known, unsure, .. } = self.script.acts[node.index()];
        assert!(!unsure, "not sure");
        known.is_none_or(|tries| self.tries[node.index()] < tries)
    }

    fn link(&mut self, node: NodeId, _: NodeId) -> Option<Self::Job> {
        if !self.script.acts[node.index()].linked {
            return None;
        }
        self.say("link", node);
        Some(self.job(node))
    }

    fn finish(&mut self, node: NodeId, (): (), drops: &mut Drops) {
        self.say("finish", node);
        for other in &self.script.acts[node.index()].drops {
            drops.push(*other);
        }
    }

    fn fail(&mut self, node: NodeId, failure: Failure<ScriptError>, _: &mut Drops) {
        self.calls.push(format!("fail {}: {failure}", self.script.name(node)));
    }

    fn fallback(&mut self, node: NodeId, failure: &Failure<ScriptError>) -> Instead<()> {
        self.calls.push(format!("fallback {}: {failure}", self.script.name(node)));
        Instead::Value(())
    }

    fn release(&mut self, node: NodeId) {
        self.say("release", node);
    }
}

/// What came of a script on the virtual machine.
pub(crate) struct ScriptOutcome {
    pub(crate) result: Result<Report, Stopped<ScriptError>>,
    pub(crate) calls: Vec<String>,
    /// `start..end name` a node in milliseconds, in order of start; how it ended if it did not finish.
    pub(crate) timeline: String,
    /// When the run ended.
    pub(crate) took: Duration,
}

pub(crate) fn play(text: &str) -> ScriptOutcome {
    play_with(text, |_, _| {})
}

pub(crate) fn play_by(text: &str, deadline_ms: u64) -> ScriptOutcome {
    play_with(text, |options, now| options.deadline = Some(now + Duration::from_millis(deadline_ms)))
}

pub(crate) fn play_with(text: &str, adjust: impl FnOnce(&mut Options, Instant)) -> ScriptOutcome {
    play_limited(text, |_| Vec::new(), adjust)
}

/// Plays with the choices that follow from `seed`.
pub(crate) fn play_seeded(
    seed: u64,
    text: &str,
    adjust: impl FnOnce(&mut Options, Instant),
) -> ScriptOutcome {
    play_on(&Sim::new(seed), text, |_| Vec::new(), adjust)
}

/// Plays on limits that `add` makes.
pub(crate) fn play_limited(
    text: &str,
    add: impl FnOnce(&Limits) -> Vec<LimitKey>,
    adjust: impl FnOnce(&mut Options, Instant),
) -> ScriptOutcome {
    play_on(&Sim::new(1), text, add, adjust)
}

fn play_on(
    sim: &Sim,
    text: &str,
    add: impl FnOnce(&Limits) -> Vec<LimitKey>,
    adjust: impl FnOnce(&mut Options, Instant),
) -> ScriptOutcome {
    let engine = sim.engine(&Config::default());
    let limits = Limits::new(Arc::clone(engine.clock()));
    let keys = add(&limits);
    let script = Script::parse_with(text, &keys);
    let mut listener = listen(&engine);
    let began = engine.clock().now();
    let mut options = Options { limits: Some(limits.clone()), ..Options::default() };
    adjust(&mut options, began);
    let mut player = Player::new(&script, engine.clock());
    let result = sim.block_on(engine.run(&script.dag, &script.policies, &mut player, &options).unwrap());
    let took = engine.clock().now() - began;
    let calls = std::mem::take(&mut player.calls);
    let leftovers = sim.settle();
    assert_eq!((leftovers.tasks, leftovers.jobs), (0, 0), "left behind");
    for key in keys {
        let standing = limits.status(key);
        assert_eq!((standing.in_flight, standing.waiting), (0, 0), "left with a limit");
    }
    ScriptOutcome { result, calls, timeline: timeline(&script, &mut listener, began), took }
}

pub(crate) fn listen(engine: &Engine) -> Listener {
    engine.events().listen(NonZeroUsize::new(1 << 20).unwrap())
}

pub(crate) fn timeline(script: &Script, listener: &mut Listener, began: Instant) -> String {
    let mut lines: Vec<(NodeId, u128, Option<u128>, &str)> = Vec::new();
    let mut end = |node: NodeId, at: u128, how: &'static str| {
        let open = lines.iter_mut().find(|line| line.0 == node && line.2.is_none());
        match open {
            Some(line) => (line.2, line.3) = (Some(at), how),
            None => lines.push((node, at, Some(at), how)),
        }
    };
    let mut starts = Vec::new();
    while let Some(heard) = listener.try_next() {
        let ListenerItem::Event(event) = heard else { panic!("lost events") };
        let at = (event.at - began).as_millis();
        match event.kind {
            EventKind::Started(node, _) => starts.push((node, at)),
            EventKind::Finished(node) => end(node, at, ""),
            EventKind::Failed(node, _) => end(node, at, " failed"),
            EventKind::FellBack(node, _) => end(node, at, " fell back"),
            EventKind::Dropped(node) => end(node, at, " dropped"),
            _ => {}
        }
    }
    let mut rows: Vec<(u128, NodeId, String)> = Vec::new();
    for (node, start) in &starts {
        let row = match lines.iter().find(|line| line.0 == *node) {
            Some((_, _, Some(end), how)) => format!("{start}..{end} {}{how}", script.name(*node)),
            _ => format!("{start}.. {}", script.name(*node)),
        };
        rows.push((*start, *node, row));
    }
    for (node, _, end, how) in &lines {
        if !starts.iter().any(|(started, _)| started == node) {
            let end = end.unwrap();
            rows.push((end, *node, format!("{end} {}{how}", script.name(*node))));
        }
    }
    rows.sort();
    rows.into_iter().map(|(_, _, row)| row).collect::<Vec<_>>().join(" | ")
}
