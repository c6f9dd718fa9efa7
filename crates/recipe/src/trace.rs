//! The trace of a get: the recipes that it computed, when each of them ran, and the values that existed before.

use std::sync::Arc;

use anabranch_content::Address;
use anabranch_engine::clock::Clock;
use anabranch_engine::event::{Event, EventKind, FailureReason, ListenerItem, Placement, RunEnding, RunId};
use anabranch_engine::timeline::Timeline;
use anabranch_engine::{Dag, Edge, Failure, NodeId, Stopped};

use crate::closure::{Closure, Input};
use crate::error::Error;
use crate::recipe::FunctionId;
use crate::value::Origin;

/// The maximum number of recipes in a traced get, and of their inputs in total. The trace of a larger get is empty.
const RECIPES_MOST: usize = 1_000;
const INPUTS_MOST: usize = 4_000;

/// The trace of a get. It is empty if the value was not computed, or if the get is too large to trace.
#[derive(Default)]
pub struct Trace {
    /// The recipes, numbered so that each comes after those that it reads.
    pub recipes: Vec<TracedRecipe>,
    /// The values that existed before.
    pub values: Vec<TracedValue>,
    recorded: Option<RecordedRun>,
}

/// A recipe that a get had to compute.
#[derive(Clone, Debug)]
pub struct TracedRecipe {
    /// The recipe.
    pub address: Address,
    /// Its function.
    pub function: FunctionId,
    /// The way in which its value was obtained; `None` if there is no value.
    pub outcome: Option<TracedOutcome>,
    /// The recipes among its inputs, by number, each once.
    pub recipes: Vec<u32>,
    /// The values among its inputs, by their place in [`Trace::values`], each once.
    pub values: Vec<u32>,
}

/// The way in which a recipe's value was obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TracedOutcome {
    /// Its function ran.
    Ran,
    /// Its function ran fused with that of the recipe it reads, whose time covers both.
    Fused,
    /// Another get had stored it by then.
    Memo,
    /// Its function had already run on equal inputs (early cut-off).
    SameInputs,
}

/// A value that a recipe read and that existed before the get.
#[derive(Clone, Copy, Debug)]
pub struct TracedValue {
    /// The address of the remembered recipe, or of the blob.
    pub address: Address,
    /// Whether it is the value of a remembered recipe.
    pub is_memo: bool,
    /// The size of the value in bytes.
    pub size: u64,
}

/// The run as recorded by the engine, from which the timeline is built.
struct RecordedRun {
    clock: Arc<dyn Clock>,
    items: Vec<ListenerItem>,
}

/// The id of the only run in a trace.
const RUN: RunId = RunId(0);

impl Trace {
    /// The time when each recipe ran, and the critical path; `None` if nothing was computed.
    pub fn timeline(&self) -> Option<Timeline> {
        let RecordedRun { items, .. } = self.recorded.as_ref()?;
        let edges: Vec<_> = self.edges().map(|(from, to)| (NodeId(from), NodeId(to), Edge::Needs)).collect();
        let dag = Dag::new(self.recipes.len() as u32, &edges).ok()?;
        Timeline::new(RUN, &dag, items).ok()
    }

    /// Pairs of recipe numbers: a recipe, and one that reads it. Each pair occurs once.
    pub fn edges(&self) -> impl Iterator<Item = (u32, u32)> {
        let recipes = self.recipes.iter().zip(0..);
        recipes.flat_map(|(recipe, to)| recipe.recipes.iter().map(move |from| (*from, to)))
    }

    /// Starts a trace with the recipes of a closure. An earlier round of the same get is discarded.
    pub(crate) fn begin(&mut self, closure: &Closure, clock: &Arc<dyn Clock>) {
        *self = Trace::default();
        if closure.nodes.len() > RECIPES_MOST || closure.inputs.len() > INPUTS_MOST {
            return;
        }
        let recipe = |node: u32| {
            let inputs = || closure.inputs_of(NodeId(node)).iter();
            let number = |input: &Input| if let Input::Node(node) = input { Some(*node) } else { None };
            let place = |input: &Input| if let Input::Given(place) = input { Some(*place) } else { None };
            TracedRecipe {
                address: closure.nodes[node as usize].address,
                function: closure.function_of(NodeId(node)).signature().id.clone(),
                outcome: None,
                recipes: once(inputs().filter_map(number)),
                values: once(inputs().filter_map(place)),
            }
        };
        let count = closure.nodes.len() as u32;
        self.recipes = (0..count).map(recipe).collect();
        let blob = |(address, size)| TracedValue { address, is_memo: false, size };
        self.values = closure.given.iter().copied().map(blob).collect();
        for (place, address) in &closure.memos {
            let value = &mut self.values[*place as usize];
            (value.address, value.is_memo) = (*address, true);
        }
        let items = Vec::with_capacity(3 * count as usize + 2);
        self.recorded = Some(RecordedRun { clock: Arc::clone(clock), items });
        self.note(EventKind::RunStarted(count));
    }

    pub(crate) fn started(&mut self, node: NodeId) {
        self.note(EventKind::Started(node, Placement::Pool));
        self.note(EventKind::Running(node));
    }

    /// Records that a recipe's function ran fused with an earlier one.
    pub(crate) fn fused(&mut self, node: NodeId) {
        if let Some(recipe) = self.recipes.get_mut(node.index()) {
            recipe.outcome = Some(TracedOutcome::Fused);
        }
    }

    pub(crate) fn finished(&mut self, node: NodeId, how: Origin) {
        let Some(recipe) = self.recipes.get_mut(node.index()) else { return };
        recipe.outcome.get_or_insert(match how {
            Origin::Ran => TracedOutcome::Ran,
            Origin::Memo => TracedOutcome::Memo,
            Origin::SameInputs => TracedOutcome::SameInputs,
        });
        self.note(EventKind::Finished(node));
    }

    pub(crate) fn ended(&mut self, stopped: Option<&Stopped<Error>>) {
        if let Some(Stopped::Node { node, failure }) = stopped {
            self.note(EventKind::Failed(
                *node,
                match failure {
                    Failure::Error(_) => FailureReason::Error,
                    Failure::Timeout(_) => FailureReason::Timeout,
                    Failure::Deadline => FailureReason::Deadline,
                    Failure::Abandoned => FailureReason::Abandoned,
                    Failure::Panic(_) => FailureReason::Panic,
                },
            ));
        }
        self.note(EventKind::RunEnded(match stopped {
            None => RunEnding::Complete,
            Some(Stopped::Node { .. }) => RunEnding::Failed,
            Some(Stopped::Deadline { .. }) => RunEnding::Deadline,
            Some(Stopped::Cut { .. }) => RunEnding::Cut,
            Some(Stopped::Drained) => RunEnding::Drained,
        }));
    }

    fn note(&mut self, kind: EventKind) {
        if let Some(RecordedRun { clock, items, .. }) = &mut self.recorded {
            items.push(ListenerItem::Event(Event { run: RUN, at: clock.now(), kind }));
        }
    }
}

/// The numbers in ascending order, without duplicates.
fn once(numbers: impl Iterator<Item = u32>) -> Vec<u32> {
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}
