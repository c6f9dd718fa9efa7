//! Runs this program as the process that executes the code of a plan.

use std::path::PathBuf;
use std::time::Duration;

use anabranch_plan_ts::Worker;

/// The argument that starts such a process. It is not for users.
const ARGUMENT: &str = "__run-plan-code";

/// The wall-clock limit of the process, in case it blocks. Its CPU time is limited to a few seconds, which can take
/// minutes at the lowest priority on a busy machine.
const WALL: Duration = Duration::from_secs(900);

/// Whether this process is such a worker.
pub(crate) fn is_asked_for() -> bool {
    std::env::args_os().nth(1).is_some_and(|argument| argument == ARGUMENT)
}

/// The command of a worker: this very program, even if its file has been replaced.
pub(crate) fn here() -> Worker {
    let running = PathBuf::from("/proc/self/exe");
    let program = if running.exists() { running } else { std::env::current_exe().unwrap_or_default() };
    Worker { program, arguments: vec![ARGUMENT.into()], wall: WALL }
}
