//! This program as the process that runs the code of a plan.

use std::path::PathBuf;
use std::time::Duration;

use anabranch_plan_ts::Worker;

/// The argument that asks for it; nothing that a person would type.
const ARGUMENT: &str = "__run-plan-code";

/// When the process is killed, should it block. Its CPU time is bounded to a few seconds, which take minutes at the
/// lowest priority on a busy machine.
const WALL: Duration = Duration::from_secs(900);

/// Whether this process is one.
pub(crate) fn is_asked_for() -> bool {
    std::env::args_os().nth(1).is_some_and(|argument| argument == ARGUMENT)
}

/// How to start one: this very program, even if its file was replaced meanwhile.
pub(crate) fn here() -> Worker {
    let running = PathBuf::from("/proc/self/exe");
    let program = if running.exists() { running } else { std::env::current_exe().unwrap_or_default() };
    Worker { program, arguments: vec![ARGUMENT.into()], wall: WALL }
}
