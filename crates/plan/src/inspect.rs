//! An interface for inspecting plans and requests from outside. The crate `anabranch-plan-inspect` uses it for
//! captures, `why`, `explain` and traces.
//!
//! An inspected request may have an [`Observer`], which sees each read with its reply and each node with its rows, and
//! a [`Replay`], which answers its reads and sets its time. The types of compiled plans are exposed unchanged here, so
//! they change with the internals of this crate.

use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::clock::Clock;
use anabranch_engine::event::RunId;
use anabranch_rows::Rows;

pub use crate::compiled::{
    About, Compiled, MadeColumn, Origin, PlanNode, Region, RegionMembership, Stage, StageWork, StandIn, short,
};
pub use crate::op::NamedFile;

use crate::answer::Answer;
use crate::call::Call;
use crate::engine::{Engine, Plan};
use crate::error::Error;
use crate::ledger::LedgerEntry;
use crate::op::FilesFrom;
use crate::planner::RowDemand;
use crate::source::{self, Keys, Reader, Reply};

/// Observes the reads and the rows of one request while it runs.
pub trait Observer: Send + Sync {
    /// Called with the reply of a node's read.
    fn read(&self, read: &ObservedRead<'_>);

    /// Called with the rows of a node, by number.
    fn node(&self, node: usize, rows: &Rows);
}

/// A read with its reply.
pub struct ObservedRead<'a> {
    /// The reader.
    pub reader: &'a Reader,
    /// The keys that were read.
    pub keys: &'a Keys,
    /// The reply.
    pub reply: &'a Result<Reply, source::Error>,
    /// The time from the read to its reply.
    pub took: Duration,
    /// The age of the oldest value, if the reply consists of earlier replies.
    pub stale: Option<Duration>,
}

/// Answers the reads of a request that is replayed.
pub trait Recording: Send + Sync {
    /// The reply to a read.
    fn read(&self, request: &ReadRequest<'_>) -> Result<Reply, source::Error>;
}

/// A read that is asked of a recording.
pub struct ReadRequest<'a> {
    /// The reader.
    pub reader: &'a Reader,
    /// The rows that it reads for.
    pub rows: &'a Rows,
    /// The keys of these rows.
    pub keys: &'a Keys,
    /// The request.
    pub call: &'a Call,
    /// Whether the node falls back to stale values.
    pub stale: bool,
}

/// The past that a replayed request lives in.
#[derive(Clone)]
pub struct Replay {
    /// Answers its reads.
    pub recording: Arc<dyn Recording>,
    /// The time that its nodes see.
    pub clock: Arc<dyn Clock>,
}

/// The inspection of a request. By default there is none.
#[derive(Clone, Default)]
pub struct Inspection {
    /// Observes its reads and nodes.
    pub observer: Option<Arc<dyn Observer>>,
    /// Replaces its sources and its time.
    pub replay: Option<Replay>,
}

/// The end of an inspected request.
pub struct InspectionOutcome {
    /// The answer.
    pub answer: Result<Answer, Error>,
    /// The ledger of a request that failed.
    pub failed_ledger: Vec<LedgerEntry>,
    /// The name of its run in events, if it began.
    pub run: Option<RunId>,
}

impl Plan {
    /// The plan as it was compiled.
    pub fn compiled(&self) -> &Arc<Compiled> {
        &self.compiled
    }

    /// Compiles the plan again so that computing nodes produce all rows, to see the rows that are not needed.
    pub fn compiled_for_all_rows(&self) -> Result<Compiled, Error> {
        self.compiled_again(RowDemand::All)
    }

    /// The plan compiled once more, and changed by `change`.
    pub fn changed(&self, change: impl FnOnce(&mut Compiled)) -> Result<Plan, Error> {
        let mut compiled = self.compiled_again(RowDemand::Wanted)?;
        change(&mut compiled);
        Ok(self.with_compiled(compiled))
    }

    fn compiled_again(&self, asking: RowDemand) -> Result<Compiled, Error> {
        let origin = &self.compiled.origin;
        Ok(self.engine().compiled(&origin.text, FilesFrom::Kept(&origin.files), asking)?.0)
    }
}

impl Engine {
    /// Compiles the text of a plan that names these files.
    pub fn compile_with_files(&self, text: &str, files: &[NamedFile]) -> Result<Plan, Error> {
        self.compile_from(text, FilesFrom::Kept(files))
    }
}
