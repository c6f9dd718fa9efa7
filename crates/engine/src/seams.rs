//! The seams of an engine: the clock, tasks and threads that it uses. A simulator replaces them.

use std::sync::Arc;

use crate::clock::Clock;
use crate::pool::Pool;
use crate::tasks::Tasks;

/// A clock, a spawner of tasks and three pools, for [`Engine::with_seams`](crate::Engine::with_seams).
pub struct Seams {
    /// Tells the time and sets timers.
    pub clock: Arc<dyn Clock>,
    /// Spawns the futures of [`StepKind::Spawned`](crate::policy::StepKind::Spawned) nodes.
    pub tasks: Arc<dyn Tasks>,
    /// Runs jobs of [`Class::Latency`](crate::options::Class::Latency).
    pub latency: Arc<dyn Pool>,
    /// Runs jobs of [`Class::Batch`](crate::options::Class::Batch).
    pub batch: Arc<dyn Pool>,
    /// Runs jobs of [`StepKind::Blocking`](crate::policy::StepKind::Blocking) nodes.
    pub blocking: Arc<dyn Pool>,
}
