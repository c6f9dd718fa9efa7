//! The reads that a plan would have made, and how long it would have waited for them.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anabranch_engine::NodeId;

use super::cover::Cover;
use super::replayed_reads::whole;
use anabranch_plan::inspect::{Compiled, StageWork};
use anabranch_plan::source::{Error, Keys, Reader, Reply};

/// One request to a plan whose reads differ from those of the captured one.
pub(super) struct Model {
    cover: Arc<Cover>,
    asked: Mutex<ModelledReads>,
}

#[derive(Default)]
struct ModelledReads {
    /// The keys that were read with readers of one kind, which share their replies.
    shared: HashSet<(usize, String)>,
    /// The waiting time of each reader, by its number.
    waited: HashMap<u32, Duration>,
    /// The first read that the capture has no reply to, with the number of its reader.
    uncovered: Option<(u32, Error)>,
}

impl Model {
    pub(super) fn new(cover: Arc<Cover>) -> Arc<Model> {
        Arc::new(Model { cover, asked: Mutex::default() })
    }

    /// The reply, counted as the trip that a store would have had to make.
    pub(super) fn read(&self, endpoint: &Arc<str>, reader: &Reader, keys: &Keys) -> Result<Reply, Error> {
        if let Some(reply) = reader.read.without_trip(keys) {
            return Ok(reply);
        }
        let read = self.cover.read(endpoint, reader, keys);
        let mut asked = self.lock();
        if let Err(error @ Error::NotCaptured { .. }) = &read {
            asked.uncovered.get_or_insert_with(|| (reader.number, error.clone()));
        }
        let (data, took) = read?;
        *asked.waited.entry(reader.number).or_default() += took;
        let commands = match reader.shared_table() {
            None => keys.commands(),
            Some(table) => {
                let whole = (0..keys.len()).filter_map(|at| whole(reader.pattern.affixes(), keys, at));
                whole.filter(|key| asked.shared.insert((table, key.clone()))).count() as u32
            }
        };
        Ok(Reply::whole(data, u32::from(commands > 0), commands))
    }

    /// The first read that the capture has no reply to, if there is one: the reader's number, and the error. A fallback
    /// may have replaced it, but it is unknown whether that would have been necessary.
    pub(super) fn uncovered(&self) -> Option<(u32, Error)> {
        self.lock().uncovered.clone()
    }

    /// The time for which the plan would have waited: the longest path through its stages.
    pub(super) fn longest_wait(&self, plan: &Compiled) -> Duration {
        let asked = self.lock();
        let own = |stage: NodeId| match &plan.stages[stage.index()].what {
            StageWork::Wait(node) => {
                let reads = plan.nodes[*node].about.reads.iter();
                reads.filter_map(|reader| asked.waited.get(&reader.number)).sum()
            }
            _ => Duration::ZERO,
        };
        let after = plan.graph.time_after(own);
        (0..).map(NodeId).zip(after).map(|(stage, after)| own(stage) + after).max().unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, ModelledReads> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
