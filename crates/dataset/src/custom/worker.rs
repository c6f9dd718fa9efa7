//! A worker: starts its process when it is needed, and again when it died.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use anabranch_engine::clock::Clock;
use anabranch_engine::tasks::{AbortOnDrop, Tasks, TokioTasks};
use tokio::sync::Semaphore;

use super::call::Ask;
use super::group::lock;
use super::process::Process;
use crate::config::WorkerConfig;
use crate::fault::Fault;
use crate::post::Post;

/// The services that workers use: clock, HTTP client, models.
#[derive(Clone)]
pub struct WorkerOptions {
    /// The folder in which commands run.
    pub folder: PathBuf,
    pub clock: Arc<dyn Clock>,
    pub post: Arc<dyn Post>,
    /// Answers the questions of custom code to models.
    pub ask: Arc<dyn Ask>,
    /// The most restarts of a process that died.
    pub max_restarts: u32,
    /// Calls in flight per worker.
    pub max_calls: usize,
}

impl WorkerOptions {
    /// Ten restarts and 64 calls in flight.
    pub fn new(
        folder: PathBuf,
        clock: Arc<dyn Clock>,
        post: Arc<dyn Post>,
        ask: Arc<dyn Ask>,
    ) -> WorkerOptions {
        WorkerOptions { folder, clock, post, ask, max_restarts: 10, max_calls: 64 }
    }
}

/// A function that a column needs.
#[derive(Clone, Debug)]
pub(super) struct Function {
    pub(super) name: String,
    pub(super) column: String,
    pub(super) required_columns: Vec<String>,
    pub(super) side_effect_columns: Vec<String>,
    pub(super) full_column: bool,
}

/// A program that fills custom columns. Dropping it kills its process and everything that this started.
pub(super) struct Worker {
    pub(super) config: WorkerConfig,
    pub(super) options: WorkerOptions,
    functions: Arc<[Function]>,
    pub(super) slots: Semaphore,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    current: Option<RunningProcess>,
    starts: u32,
}

struct RunningProcess {
    process: Arc<Process>,
    _driver: AbortOnDrop,
}

impl Drop for RunningProcess {
    fn drop(&mut self) {
        self.process.kill();
    }
}

impl Worker {
    pub(super) fn new(config: WorkerConfig, functions: Vec<Function>, options: WorkerOptions) -> Worker {
        let slots = Semaphore::new(options.max_calls.max(1));
        Worker { config, functions: functions.into(), slots, options, state: Mutex::default() }
    }

    /// The process, started if necessary. Must be called inside a tokio runtime.
    pub(super) fn process(&self, command: &[String]) -> Result<Arc<Process>, Fault> {
        let mut state = lock(&self.state);
        if let Some(running) = &state.current {
            match running.process.end() {
                None => return Ok(Arc::clone(&running.process)),
                Some(fault) if fault.severity == anabranch_engine::retry::Severity::Permanent => {
                    return Err(fault);
                }
                Some(fault) if state.starts > self.options.max_restarts => {
                    let (answered, starts) = (running.process.answered(), state.starts);
                    let message = format!(
                        "{}; it was started {starts} times and is not started again (the last run answered {answered} calls)",
                        fault.message
                    );
                    return Err(Fault::permanent("worker", message));
                }
                Some(_) => {}
            }
        }
        let (process, drive) = Process::start(
            command,
            &self.options.folder,
            Arc::clone(&self.functions),
            Arc::clone(&self.options.clock),
        )?;
        let driver = TokioTasks.spawn(Box::pin(drive));
        state.starts += 1;
        state.current = Some(RunningProcess { process: Arc::clone(&process), _driver: driver });
        Ok(process)
    }
}
