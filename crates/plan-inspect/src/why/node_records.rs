//! The rows of the nodes of one request, kept as they come.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_rows::Rows;

use anabranch_plan::inspect::{ObservedRead, Observer};
use anabranch_plan::source::{Data, Lists, Reply};

/// The rows and lists of one request: one record per node of the plan. Rows share their memory with the run.
#[derive(Default)]
pub(crate) struct NodeRecords(Mutex<Vec<NodeRecord>>);

/// The rows and lists of one node.
#[derive(Clone, Default)]
pub(super) struct NodeRecord {
    /// Its rows, if it ran.
    pub(super) rows: Option<Rows>,
    /// The lists that it read, one per row of its input.
    pub(super) lists: Option<Lists>,
}

impl NodeRecords {
    pub(crate) fn new(nodes: usize) -> Arc<NodeRecords> {
        Arc::new(NodeRecords(Mutex::new(vec![NodeRecord::default(); nodes])))
    }

    /// The rows of a node, if it had some.
    pub(crate) fn rows(&self, node: usize) -> Option<Rows> {
        self.lock()[node].rows.clone()
    }

    /// All that was kept.
    pub(super) fn made(&self) -> Vec<NodeRecord> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<NodeRecord>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for NodeRecords {
    fn read(&self, read: &ObservedRead<'_>) {
        if let Ok(Reply { data: Data::Lists(lists), .. }) = read.reply
            && let Some(made) = self.lock().get_mut(read.reader.node)
        {
            made.lists = Some(lists.clone());
        }
    }

    fn node(&self, node: usize, rows: &Rows) {
        if let Some(made) = self.lock().get_mut(node) {
            made.rows = Some(rows.clone());
        }
    }
}
