//! What the nodes of one request made, kept as it comes.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anabranch_rows::Rows;

use crate::source::{Data, Fetch, Lists, Reply};

/// What the nodes of one request made. One entry a node of the plan; rows share their memory with the run.
#[derive(Default)]
pub(crate) struct Seen(Mutex<Vec<Made>>);

/// What one node made.
#[derive(Clone, Default)]
pub(super) struct Made {
    /// Its rows, if it ran.
    pub(super) rows: Option<Rows>,
    /// The lists that it read, one a row of its input.
    pub(super) lists: Option<Lists>,
}

impl Seen {
    pub(crate) fn new(nodes: usize) -> Arc<Seen> {
        Arc::new(Seen(Mutex::new(vec![Made::default(); nodes])))
    }

    /// Keeps the rows of a node.
    pub(crate) fn keep(&self, node: usize, rows: &Rows) {
        self.lock()[node].rows = Some(rows.clone());
    }

    /// Keeps the lists of a reply to a node, when it is there.
    pub(crate) fn watch(self: &Arc<Seen>, node: usize, fetch: Fetch) -> Fetch {
        match fetch {
            Fetch::Ready(reply) => {
                self.reply(node, &reply);
                Fetch::Ready(reply)
            }
            Fetch::Later(later) => {
                let seen = Arc::clone(self);
                Fetch::Later(Box::pin(async move {
                    let reply = later.await;
                    seen.reply(node, &reply);
                    reply
                }))
            }
        }
    }

    fn reply<E>(&self, node: usize, reply: &Result<Reply, E>) {
        if let Ok(Reply { data: Data::Lists(lists), .. }) = reply {
            self.lock()[node].lists = Some(lists.clone());
        }
    }

    /// The rows of a node, if it had some.
    pub(crate) fn rows(&self, node: usize) -> Option<Rows> {
        self.lock()[node].rows.clone()
    }

    /// All that was kept.
    pub(super) fn made(&self) -> Vec<Made> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Made>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
