//! The errors of plans and requests.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::admission::Refused;
use anabranch_engine::config::ZeroSetting;
use anabranch_engine::retry::{Classified, Severity};
use anabranch_engine::{Failure, NodeId, Stopped};
use anabranch_text::{Problem, Problems};

use crate::bounds::OverBudget;
use crate::compiled::{Compiled, StageWork};
use crate::expr;
use crate::run::Fault;
use crate::source;

/// The reason why there is no plan, or no response.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The plan cannot run, with all of its problems.
    #[error("{0}")]
    Plan(Problems),
    /// The folder has no such plan.
    #[error("no plan `{name}` {}", Folder(folder))]
    NoPlan {
        /// The requested name.
        name: String,
        /// The folder that was searched.
        folder: Option<PathBuf>,
        /// The reason why the file could not be read.
        #[source]
        cause: Option<Arc<std::io::Error>>,
    },
    /// An invalid config.
    #[error("{0}")]
    Config(Problem),
    /// An invalid setting.
    #[error(transparent)]
    Setting(ZeroSetting),
    /// The request was not taken.
    #[error(transparent)]
    Refused(Refused),
    /// The request was not taken: it would not be answered in time.
    #[error(
        "overloaded: an answer would take about {predicted:.1?}, and the deadline is in {left:.1?}; \
         try again in {retry_after:.1?}, or give it more time"
    )]
    Overloaded {
        /// The time until enough of the requests in flight are done.
        retry_after: Duration,
        /// The predicted time of the response.
        predicted: Duration,
        /// The time that was left.
        left: Duration,
    },
    /// A node failed, and so did the request.
    #[error("node `{node}` ({op}): {failure}")]
    Node {
        /// The node.
        node: String,
        /// Its op.
        op: String,
        /// The failure.
        failure: Box<Failure<OpError>>,
    },
    /// The deadline passed.
    #[error("the deadline passed; still to finish: {}", late.join(", "))]
    Deadline {
        /// The nodes in progress.
        late: Vec<String>,
    },
    /// The engine shut down.
    #[error("the engine shut down; still to finish: {}", late.join(", "))]
    Cut {
        /// The nodes being worked on.
        late: Vec<String>,
    },
}

struct Folder<'a>(&'a Option<PathBuf>);

impl fmt::Display for Folder<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(folder) => write!(f, "in {}", folder.display()),
            None => f.write_str("to be found: no plan folder is set"),
        }
    }
}

impl Error {
    /// True if there was not enough time.
    pub fn is_late(&self) -> bool {
        match self {
            Error::Deadline { .. } | Error::Refused(Refused::DeadlinePassed { .. }) => true,
            Error::Node { failure, .. } => {
                matches!(**failure, Failure::Deadline | Failure::Error(OpError::NoTime { .. }))
            }
            _ => false,
        }
    }

    /// The error of a stopped run, with the nodes of its stages.
    pub(crate) fn stopped(plan: &Compiled, stopped: Stopped<Fault>) -> Error {
        let is_node = |stage: &NodeId| !matches!(plan.stages[stage.index()].what, StageWork::Timer(_));
        let names = |late: Vec<NodeId>| {
            late.into_iter().filter(is_node).map(|stage| plan.stage_name(stage)).collect()
        };
        match stopped {
            // A job that looks at the time itself may notice before the run does.
            Stopped::Node { node: stage, failure: Failure::Deadline } => {
                Error::Deadline { late: names(vec![stage]) }
            }
            Stopped::Node { node: stage, failure } => {
                let (number, failure) = match failure {
                    Failure::Error(Fault { node, cause }) => (Some(node), Failure::Error(cause)),
                    Failure::Panic(message) => (None, Failure::Panic(message)),
                    Failure::Timeout(after) => (None, Failure::Timeout(after)),
                    Failure::Deadline => (None, Failure::Deadline),
                    Failure::Abandoned => (None, Failure::Abandoned),
                };
                let node = &plan.nodes[number.unwrap_or_else(|| plan.first_node(stage.index()))];
                let (id, op) = (node.id.clone(), node.op.spec().name.to_owned());
                Error::Node { node: id, op, failure: Box::new(failure) }
            }
            Stopped::Deadline { late } => Error::Deadline { late: names(late) },
            Stopped::Cut { late } => Error::Cut { late: names(late) },
            Stopped::Drained => Error::Cut { late: Vec::new() },
        }
    }
}

/// The reason why a node has no output.
#[derive(Clone, Debug, thiserror::Error)]
pub enum OpError {
    /// Its source failed.
    #[error(transparent)]
    Source(#[from] source::Error),
    /// Its expression or predicate has no value.
    #[error(transparent)]
    Expr(#[from] expr::Error),
    /// It would make more than the request may.
    #[error(transparent)]
    Budget(#[from] OverBudget),
    /// Something else about the values it met.
    #[error("{0}")]
    Value(String),
    /// It was not begun: it never took as little time as there was left.
    #[error("was not begun: {left:?} left, and it never took less than {least:?}")]
    NoTime {
        /// The time that was left.
        left: Duration,
        /// The least it ever took.
        least: Duration,
    },
    /// The stages that it times were not done in time.
    #[error("was not done in time; late: {0}")]
    Late(String),
    /// The result is not needed any more.
    #[error("stopped")]
    Stopped,
}

impl Classified for OpError {
    fn severity(&self) -> Severity {
        match self {
            OpError::Source(error) => error.severity(),
            _ => Severity::Permanent,
        }
    }
}
