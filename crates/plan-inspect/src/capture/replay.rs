//! Answering a captured request again.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anabranch_content::{Address, Store};
use anabranch_engine as engine;
use anabranch_rows::Rows;
use futures_util::future::{Either, select};

use super::error::Error;
use super::forced::{ExpectedFailures, ForcedPlan};
use super::frozen_engine;
use super::load::Capture;
use super::parts::{CapturedFailure, Outcome};
use super::replayed_reads::{RecordedFrom, RecordedReplies};
use crate::why::NodeRecords;
use anabranch_plan::Registries;
use anabranch_plan::Request;
use anabranch_plan::bounds::Bounds;
use anabranch_plan::inspect::{Inspection, NamedFile, ObservedRead, Observer, Replay};
use anabranch_plan::op::Ops;
use anabranch_plan::registry::Endpoint;
use anabranch_plan::source::{Bound, Fetch, Keys, Pattern, Read, ReadContext, Source};
use anabranch_plan::{Answer, RequestId};
use anabranch_plan::{Config, Engine, Plan, RunOptions};

/// The number of compiled plans that are kept for later captures.
const PLANS_KEPT: usize = 16;

/// Replays captured requests, from their recordings only.
pub struct Replayer {
    runs: engine::Engine,
    ops: Ops,
    /// The plans by their sources, the last used one at the end; at most [`PLANS_KEPT`].
    plans: Mutex<Vec<(PlanKey, Plan)>>,
}

/// The identity of a compiled plan: the addresses of its parts, and its bounds.
type PlanKey = (Vec<Address>, Option<Bounds>);

/// The sources of a plan.
pub(super) struct MadeFrom<'a> {
    /// The addresses of all of it.
    pub(super) addresses: Vec<Address>,
    pub(super) env: Option<&'a str>,
    /// The bounds of its requests; `None` for those of the registries.
    pub(super) bounds: Option<Bounds>,
    pub(super) registries: Vec<(&'a str, &'a str)>,
    pub(super) text: &'a str,
    pub(super) files: &'a [NamedFile],
}

/// The result of a replay.
#[derive(Debug)]
pub struct ReplayResult {
    /// The answer, with the names it had, or the failure.
    pub answer: Result<Answer, CapturedFailure>,
    /// The answer as it is written, or the words of the failure.
    pub bytes: Vec<u8>,
    /// True if these are the captured bytes.
    pub same: bool,
}

impl Default for Replayer {
    fn default() -> Replayer {
        Replayer::new(Ops::builtin())
    }
}

impl Replayer {
    /// A replayer for plans with these ops.
    pub fn new(ops: Ops) -> Replayer {
        Replayer { runs: frozen_engine::engine(), ops, plans: Mutex::default() }
    }

    /// Reads a capture and answers its request again.
    pub async fn replay_from(&self, store: &Store, address: Address) -> Result<ReplayResult, Error> {
        self.replay(&Capture::load(store, address).await?).await
    }

    /// Answers a captured request again.
    pub async fn replay(&self, capture: &Capture) -> Result<ReplayResult, Error> {
        let plan = self.plan_of(capture)?;
        let answer = match &capture.outcome.failure {
            // Time and load are not captured, but their effects are.
            Some(failure) if failure.node.is_none() => Err(failure.clone()),
            _ => {
                let request = capture.request_to(&plan)?;
                again(&plan, request, &capture.outcome, capture.recorded(), None).await
            }
        };
        let bytes = written(&plan, &answer);
        let same = bytes == capture.answer;
        Ok(ReplayResult { answer, bytes, same })
    }

    /// The plan of a capture, compiled, or as it was for one before.
    pub(super) fn plan_of(&self, capture: &Capture) -> Result<Plan, Error> {
        let mut addresses: Vec<Address> = vec![capture.plan.0];
        addresses.extend(capture.registries.iter().map(|(address, ..)| *address));
        addresses.extend(capture.files.iter().map(|(_, bytes)| Address::of(bytes)));
        let texts = capture.registries.iter().map(|(_, name, text)| (name.as_str(), text.as_str()));
        self.plan(&MadeFrom {
            addresses,
            env: capture.env.as_deref(),
            bounds: capture.bounds,
            registries: texts.collect(),
            text: capture.plan_text(),
            files: &capture.files,
        })
    }

    /// A plan, compiled, or as it was before.
    pub(super) fn plan(&self, made_from: &MadeFrom<'_>) -> Result<Plan, Error> {
        let key: PlanKey = (made_from.addresses.clone(), made_from.bounds);
        let mut plans = self.lock();
        if let Some(at) = plans.iter().position(|(other, _)| *other == key) {
            let found = plans.remove(at);
            let plan = found.1.clone();
            plans.push(found);
            return Ok(plan);
        }
        let texts = made_from.registries.iter().copied();
        let (mut registries, _) = Registries::parse(texts, made_from.env).map_err(Error::Registries)?;
        registries.limits.bounds = made_from.bounds.unwrap_or(registries.limits.bounds);
        let mut config = Config::new(registries, Vec::new());
        config.ops = self.ops.clone();
        let compiled = self.engine(config).compile_with_files(made_from.text, made_from.files);
        let plan = compiled.map_err(|error| Error::Plan(Box::new(error)))?;
        if plans.len() == PLANS_KEPT {
            plans.remove(0);
        }
        plans.push((key, plan.clone()));
        Ok(plan)
    }

    /// An engine without sources, for plans that replay captured requests. The config's sources and threads are
    /// ignored.
    pub fn engine(&self, mut config: Config) -> Engine {
        let nowhere = |_: &Endpoint| Arc::new(Nowhere) as Arc<dyn Source>;
        config.sources = config.registries.endpoints.iter().map(nowhere).collect();
        config.runs.inline_threshold = Duration::MAX;
        config.admission = false;
        Engine::on(self.runs.clone(), config)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(PlanKey, Plan)>> {
        self.plans.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An answer as it is written, or the words of a failure.
pub(super) fn written(plan: &Plan, answer: &Result<Answer, CapturedFailure>) -> Vec<u8> {
    let mut bytes = Vec::new();
    match answer {
        Ok(answer) => answer.write_json(&plan.compiled().registries.keys, &mut bytes),
        Err(failure) => bytes.extend_from_slice(failure.text.as_bytes()),
    }
    bytes
}

/// Replays a request with this outcome, and drops the nodes that were dropped then. `seen` records the rows of nodes.
pub(super) async fn again(
    plan: &Plan,
    request: Request,
    outcome: &Outcome,
    from: RecordedFrom,
    seen: Option<Arc<NodeRecords>>,
) -> Result<Answer, CapturedFailure> {
    let failed = outcome.failure.as_ref().and_then(|failure| failure.node.as_deref());
    let nodes = plan.compiled().nodes.len();
    let ForcedPlan { plan, expected, stand_for } =
        ForcedPlan::new(plan, &outcome.ledger, failed).map_err(|error| CapturedFailure::new(&error))?;
    let observers = Observers { seen, expected: Arc::clone(&expected), nodes, stand_for };
    let inspection = Inspection { observer: Some(Arc::new(observers)), replay: Some(replay(&plan, from)) };
    let options = RunOptions::default();
    let run = pin!(plan.run_inspected(request, &options, inspection));
    match select(run, pin!(expected.unfailed.notified())).await {
        Either::Left((ended, _)) => {
            ended.answer.map(|answer| named(answer, outcome)).map_err(|error| CapturedFailure::new(&error))
        }
        Either::Right(_) => {
            let node = failed.unwrap_or_default();
            Err(CapturedFailure {
                node: None,
                text: format!("node `{node}` does not fail now, as it did when it was captured"),
            })
        }
    }
}

/// The past of a request to a plan: replies found this way, and no time that passes.
pub(super) fn replay(plan: &Plan, from: RecordedFrom) -> Replay {
    let recording = Arc::new(RecordedReplies::new(plan, from));
    Replay { recording, clock: frozen_engine::hurried(plan.engine().runs()) }
}

/// The observers of a replay.
struct Observers {
    seen: Option<Arc<NodeRecords>>,
    expected: Arc<ExpectedFailures>,
    /// The nodes of the plan as it was; forced ones come behind them.
    nodes: usize,
    stand_for: Vec<Option<usize>>,
}

impl Observer for Observers {
    fn read(&self, read: &ObservedRead<'_>) {
        self.seen.iter().for_each(|seen| seen.read(read));
    }

    fn node(&self, node: usize, rows: &Rows) {
        let node = match node.checked_sub(self.nodes) {
            None => node,
            Some(forced) => self.stand_for[forced].unwrap_or(node),
        };
        self.seen.iter().for_each(|seen| seen.node(node, rows));
        self.expected.node(node, rows);
    }
}

/// The answer with the ids and the ledger of the captured one, because the waiting times cannot be reproduced.
fn named(answer: Answer, outcome: &Outcome) -> Answer {
    let name = |name: &Option<String>, made: RequestId| name.clone().map_or(made, RequestId::Given);
    Answer {
        request_id: name(&outcome.request_id, answer.request_id),
        engine_request_id: name(&outcome.engine_request_id, answer.engine_request_id),
        ledger: outcome.ledger.clone(),
        ..answer
    }
}

/// A source that a replay never reads.
struct Nowhere;

impl Source for Nowhere {
    fn bind(&self, _: &Pattern, _: &Read) -> Arc<dyn Bound> {
        Arc::new(Nowhere)
    }
}

impl Bound for Nowhere {
    fn fetch(&self, _: Keys, _: ReadContext<'_>) -> Fetch {
        unreachable!("a replay's reads are answered from what was recorded")
    }
}
