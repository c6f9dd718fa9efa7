//! CPU time, for claims on speed: unlike wall time it hardly depends on how busy the machine is.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The CPU time that this thread has used.
pub fn thread_cpu_time() -> Duration {
    clock_gettime(ClockId::ThreadCPUTime).try_into().expect("CPU time is not negative")
}
