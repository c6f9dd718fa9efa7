//! The values of a flow that ran to its end.

use std::sync::Arc;

use super::node::Node;
use super::work::Values;
use super::{Error, Identity, Name};
use crate::graph::NodeId;
use crate::run::Report;

/// The values of a flow that ran to its end, by the handles of their nodes.
pub struct Results {
    report: Report,
    values: Values,
    names: Arc<[Name]>,
    flow: Identity,
}

impl Results {
    pub(super) fn new(report: Report, values: Values, names: Arc<[Name]>, flow: Identity) -> Results {
        Results { report, values, names, flow }
    }

    /// The numbers of nodes that finished, failed, were dropped and fell back.
    pub fn report(&self) -> Report {
        self.report
    }

    /// The value of a node; an error if the node failed or was dropped.
    pub fn get<T: 'static>(&self, node: &Node<T>) -> Result<&T, Error> {
        self.check(node)?;
        self.values.get(node.id).ok_or_else(|| self.missing(node.id))
    }

    /// Like [`get`](Self::get), but takes the value out.
    #[allow(clippy::needless_pass_by_value, reason = "without its value the handle is of no use")]
    pub fn take<T: 'static>(&mut self, node: Node<T>) -> Result<T, Error> {
        self.check(&node)?;
        self.values.remove(node.id).ok_or_else(|| self.missing(node.id))
    }

    /// Whether the value of a node is that of its fallback.
    pub fn fell_back<T>(&self, node: &Node<T>) -> bool {
        self.check(node).is_ok() && self.values.fell_back(node.id)
    }

    fn check<T>(&self, node: &Node<T>) -> Result<(), Error> {
        match Arc::ptr_eq(&self.flow, &node.flow) {
            true => Ok(()),
            false => Err(Error::OtherResults { node: node.id }),
        }
    }

    fn missing(&self, node: NodeId) -> Error {
        let name = self.names[node.index()].clone();
        match self.values.failure(node) {
            Some(failure) => Error::Node { node: name, failure: Arc::clone(failure) },
            None => Error::Dropped { node: name },
        }
    }
}
