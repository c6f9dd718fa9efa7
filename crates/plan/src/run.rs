//! One request through a compiled plan, as the engine's workload.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use anabranch_engine as engine;
use anabranch_engine::retry::{Classified, Severity};
use anabranch_engine::{Budget, Check, Cost, Drops, Failure, Job, NodeId, Step, Workload};
use anabranch_rows::Rows;

use crate::call::Call;
use crate::compiled::{Compiled, Region, RegionMembership, StageWork, StandIn};
use crate::error::OpError;
use crate::ledger::LedgerEntry;
use crate::op::{Contract, Form, Inputs, StartedWork, WaitFuture};
use crate::stand_in::{Instead, in_range, stand_in};
use crate::watch::{Late, Watch};

/// The values of a request's stages.
pub(crate) struct Work<'a> {
    plan: &'a Arc<Compiled>,
    call: &'a Arc<Call>,
    values: Box<[Option<Rows>]>,
    /// Work with a lower estimated cost runs without a look at the clock.
    trifle: Duration,
    /// The state of the stages, if some of them have fallbacks, or they are timed.
    watch: Option<Box<Watch>>,
    /// Whether the stages are timed.
    timed: bool,
    /// Whether to skip stages that have never been as fast as the remaining time requires.
    weighs: bool,
    /// Whether stages run one at a time, so that no timer stage can run beside them.
    pub(crate) sequential: bool,
}

/// The failure of a stage: the node, and the cause.
#[derive(Debug, thiserror::Error)]
#[error("{cause}")]
pub(crate) struct Fault {
    /// The node, by number.
    pub(crate) node: usize,
    #[source]
    pub(crate) cause: OpError,
}

impl Classified for Fault {
    fn severity(&self) -> Severity {
        self.cause.severity()
    }
}

/// The most that is computed without a look at the clock before or after.
const TRIFLE: Duration = Duration::from_micros(5);

impl<'a> Work<'a> {
    pub(crate) fn new(plan: &'a Arc<Compiled>, call: &'a Arc<Call>, inline_threshold: Duration) -> Work<'a> {
        let values = vec![None; plan.stages.len()].into_boxed_slice();
        let watch = plan.degrades.then(|| Box::new(Watch::new(plan)));
        let trifle = TRIFLE.min(inline_threshold);
        Work { plan, call, values, trifle, watch, timed: false, weighs: false, sequential: false }
    }

    /// Sets how stage times are used. A timed request also starts stages that look hopeless, because their times may
    /// have changed.
    pub(crate) fn go_by_times(&mut self, timed: bool) {
        if timed {
            self.watch.get_or_insert_with(|| Box::new(Watch::new(self.plan)));
        }
        (self.timed, self.weighs) = (timed, !timed);
    }

    /// The rows of the outputs and the ledger, once the run is over.
    pub(crate) fn into_outputs(self) -> (Vec<Rows>, Vec<LedgerEntry>) {
        let rows =
            |stage: &usize| self.values[*stage].clone().expect("a run that ended well has its outputs");
        let ledger = self.watch.map_or_else(Vec::new, |watch| watch.into_ledger());
        (self.plan.outputs.iter().map(rows).collect(), ledger)
    }

    /// The ledger of a run that failed.
    pub(crate) fn into_ledger(self) -> Vec<LedgerEntry> {
        self.watch.map_or_else(Vec::new, |watch| watch.into_ledger())
    }

    fn inputs(&mut self, stage: usize) -> Inputs {
        let stages = &self.plan.stages;
        let values = &mut self.values;
        let take = |input: &usize| match stages[*input].given_away {
            true => values[*input].take(),
            false => values[*input].clone(),
        };
        stages[stage].inputs.iter().map(take).collect()
    }
}

impl Workload for Work<'_> {
    type Value = Rows;
    type Error = Fault;
    type Future = WaitingStage;
    type Job = Chain;

    fn step(&mut self, node: NodeId, budget: Budget) -> Step<Self> {
        let stage = node.index();
        let plan = self.plan;
        if self.weighs
            && let Some(left) = budget.left().filter(|left| *left < plan.times.least(stage))
        {
            let cause = OpError::NoTime { left, least: plan.times.least(stage) };
            return Step::Ready(Err(Fault { node: plan.first_node(stage), cause }));
        }
        if let Some(watch) = &mut self.watch {
            watch.begin(stage, budget.now());
        }
        match &plan.stages[stage].what {
            StageWork::Wait(node) => {
                let inputs = self.inputs(stage);
                let contract_check = ContractCheck::new(plan, *node, &inputs);
                let Form::Wait(form) = &plan.nodes[*node].form else {
                    unreachable!("stages fit their forms")
                };
                match Arc::clone(form).start(inputs, self.call) {
                    StartedWork::Ready(rows) => Step::Ready(contract_check.keep(rows)),
                    StartedWork::Later(future) => Step::Future(WaitingStage::For { contract_check, future }),
                }
            }
            StageWork::Chain(nodes) => {
                let inputs = self.inputs(stage);
                let cost = cost(plan, nodes, &inputs, self.call);
                if cost <= self.trifle {
                    return Step::Ready(compute(plan, nodes, inputs, self.call, &Check::never(), None));
                }
                let progress = match &mut self.watch {
                    Some(watch) if nodes.len() > 1 => Some(watch.follow(stage)),
                    _ => None,
                };
                let (plan, call) = (Arc::clone(plan), Arc::clone(self.call));
                Step::Job(Chain { plan, stage, inputs, call, progress }, Cost::About(cost))
            }
            StageWork::Gate { node, open, when } => {
                let row = self.inputs(stage).pop().flatten();
                match when.holds(row.as_ref(), &self.call.params) {
                    Ok(holds) if holds == *open => Step::Ready(Ok(plan.nothing.clone())),
                    Ok(_) => Step::Drop,
                    Err(cause) => Step::Ready(Err(Fault { node: *node, cause: cause.into() })),
                }
            }
            StageWork::Exit(region) => Step::Ready(self.leave(stage, *region)),
            StageWork::PassFallback(_) => {
                let rows = self.inputs(stage).pop().flatten();
                Step::Ready(Ok(rows.expect("it needs the one that it hands over")))
            }
            // Without a deadline and a timeout there is nothing to watch.
            StageWork::Timer(_) if budget.due().is_none() || self.sequential => Step::Drop,
            StageWork::Timer(_) => Step::Future(WaitingStage::ForTime),
            StageWork::RunFallback(region) => match self.has_lost(*region) {
                true => Step::Ready(Ok(plan.nothing.clone())),
                false => Step::Drop,
            },
        }
    }

    fn finish(&mut self, node: NodeId, value: Rows, drops: &mut Drops) {
        let (plan, stage) = (self.plan, node.index());
        if let Some(observer) = &self.call.observer {
            plan.last_node(stage).into_iter().for_each(|node| observer.node(node, &value));
        }
        self.values[stage] = Some(value);
        let Some(watch) = &mut self.watch else { return };
        if self.timed
            && let Some(begun) = watch.begun(stage)
        {
            let took = self.call.clock.now().saturating_duration_since(begun);
            plan.times.record(stage, plan.stages.len(), took);
        }
        watch.end(stage);
        match (&plan.stages[stage].what, plan.stages[stage].completes) {
            // It ends only when the time is over.
            (StageWork::Timer(region), _) => self.abandon(&plan.regions[*region].members, drops),
            (_, Some(region)) => {
                plan.regions[region].timer.into_iter().for_each(|timer| drops.push(stage_id(timer)));
            }
            _ => {}
        }
    }

    fn fail(&mut self, node: NodeId, failure: Failure<Fault>, drops: &mut Drops) {
        let (plan, stage) = (self.plan, node.index());
        if let StageWork::Timer(region) = &plan.stages[stage].what {
            self.expire(stage, *region);
            return self.abandon(&plan.regions[*region].members, drops);
        }
        let Some(RegionMembership { region, is_fallback }) = plan.membership(stage) else { return };
        let Some(watch) = &mut self.watch else { return };
        match &plan.stages[stage].what {
            // It has no rows of its own. It passes on the late nodes of its region.
            StageWork::Exit(inner) => {
                let late = watch.take_late(*inner);
                late.into_iter().for_each(|late| watch.lose(region, late));
            }
            // The time of all of them is over. This one was only reported first.
            StageWork::Wait(_) | StageWork::Chain(_) if matches!(failure, Failure::Deadline) => {
                watch.expire(plan, region, is_fallback, self.call.clock.now());
            }
            _ => {
                let late = watch.failed(plan, stage, &failure, self.call.clock.now());
                watch.lose(region, late);
            }
        }
        watch.end(stage);
        let lost = &plan.regions[region];
        match is_fallback {
            true => self.abandon(&lost.fallback_stages, drops),
            false => {
                lost.timer.into_iter().for_each(|timer| drops.push(stage_id(timer)));
                self.abandon(&lost.members, drops);
            }
        }
    }

    fn fallback(&mut self, node: NodeId, failure: &Failure<Fault>) -> engine::Instead<Rows> {
        let (plan, stage) = (self.plan, node.index());
        if let Failure::Error(Fault { cause: OpError::Source(cause), .. }) = failure
            && cause.forbids_fallbacks()
        {
            return engine::Instead::Fail;
        }
        if let StageWork::Timer(region) = &plan.stages[stage].what {
            self.expire(stage, *region);
            return engine::Instead::Value(plan.nothing.clone());
        }
        // A region with an exit is left there; one of a single stage is left here.
        let region =
            plan.stages[stage].membership.filter(|membership| plan.regions[membership.region].is_one_stage());
        let instead = region.and_then(|membership| self.leave_early(stage, membership.region, failure));
        match (instead, plan.membership(stage)) {
            (Some(rows), _) => engine::Instead::Value(rows),
            (None, Some(_)) => engine::Instead::Nothing,
            (None, None) => engine::Instead::Fail,
        }
    }

    fn release(&mut self, node: NodeId) {
        if !self.plan.stages[node.index()].is_output {
            self.values[node.index()] = None;
        }
    }
}

/// The fallback path: the treatment of nodes that fail or are late.
impl Work<'_> {
    /// The rows of a region, or those of its fallback.
    fn leave(&mut self, stage: usize, region: usize) -> Result<Rows, Fault> {
        let plan = self.plan;
        let Region { node, given, stand_ins, .. } = &plan.regions[region];
        let mut inputs = self.inputs(stage);
        let given = given.and_then(|at| inputs[at].take());
        let in_time = inputs[0].is_some();
        if in_time || inputs.get(1).is_some_and(Option::is_some) {
            let rows = compute(plan, &[*node], inputs, self.call, &Check::never(), None)?;
            if in_time {
                return Ok(rows);
            }
            if in_range(&rows, &plan.nodes[*node].ranges) {
                let fallback = stand_ins.iter().find(|stand_in| matches!(stand_in, StandIn::Node(_)));
                let name = fallback.expect("the node that ran instead is a fallback of the region").name();
                return Ok(self.settle(region, Instead { rows, name, stale: None }));
            }
        }
        match stand_in(plan, region, self.call, given.as_ref(), &Inputs::new()) {
            Some(instead) => Ok(self.settle(region, instead)),
            None => Err(Fault { node: *node, cause: self.too_late(region) }),
        }
    }

    /// The rows of the fallback of a region of one stage, which failed; `None` if it has none that fits.
    fn leave_early(&mut self, stage: usize, region: usize, failure: &Failure<Fault>) -> Option<Rows> {
        let plan = self.plan;
        let inputs = self.inputs(stage);
        let given = plan.regions[region].given.and_then(|at| inputs[at].as_ref());
        let instead = stand_in(plan, region, self.call, given, &inputs)?;
        let watch = self.watch.as_mut()?;
        let late = watch.failed(plan, stage, failure, self.call.clock.now());
        watch.lose(region, late);
        watch.end(stage);
        Some(self.settle(region, instead))
    }

    /// Records the fallback of a region.
    fn settle(&mut self, region: usize, instead: Instead) -> Rows {
        let plan = self.plan;
        if let Some(watch) = &mut self.watch {
            let Region { node, .. } = plan.regions[region];
            let told = (!plan.nodes[node].alone && !plan.regions[region].is_one_stage()).then_some(node);
            for late in watch.take_late(region) {
                watch.note(plan, told, late, &instead);
            }
        }
        instead.rows
    }

    /// True if a region has failed or timed out.
    fn has_lost(&self, region: usize) -> bool {
        let exit = self.plan.regions[region].exit;
        self.values[self.plan.stages[exit].inputs[0]].is_none()
    }

    /// The error of a region without a fallback.
    fn too_late(&self, region: usize) -> OpError {
        let Some(watch) = &self.watch else { return OpError::Stopped };
        let id = |late: &Late| {
            let Late { node, reason, detail, .. } = late;
            let detail = detail.as_ref().map_or_else(String::new, |detail| format!(": {detail}"));
            format!("`{}` ({reason}{detail})", self.plan.nodes[*node].id)
        };
        OpError::Late(watch.late_in(region).iter().map(id).collect::<Vec<_>>().join(", "))
    }

    /// The timer of a region says that its time is over.
    fn expire(&mut self, timer: usize, region: usize) {
        if let Some(watch) = &mut self.watch {
            watch.expire(self.plan, region, false, self.call.clock.now());
            watch.end(timer);
        }
    }

    /// Gives up these stages.
    fn abandon(&mut self, stages: &[usize], drops: &mut Drops) {
        // The last is dropped first. A running stage must be dropped before the stages that wait for it, so that it is
        // the cause.
        for &stage in stages.iter().rev() {
            drops.push(stage_id(stage));
            if let Some(watch) = &mut self.watch {
                watch.end(stage);
            }
        }
    }
}

/// The engine's id of a stage.
pub(crate) fn stage_id(stage: usize) -> NodeId {
    NodeId(u32::try_from(stage).expect("a graph has fewer than 2^32 nodes"))
}

/// About how long a chain takes for these inputs.
fn cost(plan: &Compiled, nodes: &[usize], inputs: &Inputs, call: &Call) -> Duration {
    let mut rows: usize = inputs.iter().flatten().map(Rows::len).sum();
    if inputs.is_empty() {
        // A node without inputs can only pass on the rows that the request brought.
        rows = call.candidates.as_ref().map_or(0, Rows::len);
    }
    let to_extend = inputs.first().and_then(Option::as_ref).map_or(0, Rows::values_to_extend);
    let mut cost = Duration::ZERO;
    for node in nodes {
        let node = &plan.nodes[*node];
        let Form::Compute(form) = &node.form else { unreachable!("chains compute") };
        cost += form.setup(call) + form.cost(rows) + form.cost_to_extend(to_extend);
        rows = form.makes(rows);
        rows = node.demand.rows.map_or(rows, |asked| rows.min(asked as usize));
    }
    cost
}

fn compute(
    plan: &Compiled,
    nodes: &[usize],
    mut inputs: Inputs,
    call: &Call,
    check: &Check<'_>,
    progress: Option<&AtomicU32>,
) -> Result<Rows, Fault> {
    for (place, &number) in nodes.iter().enumerate() {
        if let Some(progress) = progress {
            progress.store(place as u32, Ordering::Relaxed);
        }
        let Form::Compute(form) = &plan.nodes[number].form else { unreachable!("chains compute") };
        let contract_check = ContractCheck::new(plan, number, &inputs);
        let rows = contract_check.keep(form.run(&inputs, call, check))?;
        if let Some(observer) = &call.observer {
            observer.node(number, &rows);
        }
        inputs.clear();
        inputs.push(Some(rows));
    }
    Ok(inputs.pop().flatten().expect("a chain has a node, and a node has rows"))
}

/// Checks the rows of a node against the contract of its op, in debug builds only.
pub(crate) struct ContractCheck {
    /// The node.
    node: usize,
    contract: Contract,
    /// Its first input.
    input: Option<Rows>,
}

impl ContractCheck {
    fn new(plan: &Compiled, node: usize, inputs: &Inputs) -> ContractCheck {
        let input = if cfg!(debug_assertions) { inputs.first().cloned().flatten() } else { None };
        ContractCheck { node, contract: plan.nodes[node].op.spec().contract, input }
    }

    fn keep(&self, rows: Result<Rows, OpError>) -> Result<Rows, Fault> {
        let broken = |rows: &Rows| match self.contract.broken_by(self.input.as_ref(), rows) {
            Some(broken) => Err(OpError::Value(format!("the op broke its contract: {broken}"))),
            None => Ok(()),
        };
        let kept = match rows {
            Ok(rows) if cfg!(debug_assertions) => broken(&rows).map(|()| rows),
            rows => rows,
        };
        kept.map_err(|cause| Fault { node: self.node, cause })
    }
}

/// A stage that waits.
pub(crate) enum WaitingStage {
    /// For the future of a node.
    For { contract_check: ContractCheck, future: WaitFuture },
    /// For the end of its time.
    ForTime,
}

impl Future for WaitingStage {
    type Output = Result<Rows, Fault>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            WaitingStage::For { contract_check, future } => {
                future.as_mut().poll(context).map(|rows| contract_check.keep(rows))
            }
            WaitingStage::ForTime => Poll::Pending,
        }
    }
}

/// A chain on its way to a pool.
pub(crate) struct Chain {
    plan: Arc<Compiled>,
    stage: usize,
    inputs: Inputs,
    call: Arc<Call>,
    /// The number of its finished nodes, if it is needed.
    progress: Option<Arc<AtomicU32>>,
}

impl Job<Rows, Fault> for Chain {
    fn run(self, _: Option<Rows>, check: &Check<'_>) -> Result<Rows, Fault> {
        let StageWork::Chain(nodes) = &self.plan.stages[self.stage].what else {
            unreachable!("only chains are jobs")
        };
        compute(&self.plan, nodes, self.inputs, &self.call, check, self.progress.as_deref())
    }
}
