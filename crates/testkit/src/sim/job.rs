//! A job on a virtual thread: a coroutine, so that virtual time can pass in the middle of it.
#![allow(unsafe_code, reason = "a job reaches the coroutine that it runs in through a thread-local pointer")]

use std::cell::Cell;
use std::ptr;
use std::time::Duration;

use anabranch_engine::pool::Task;
use corosensei::stack::DefaultStack;
use corosensei::{Coroutine, CoroutineResult, Yielder};

type JobYielder = Yielder<(), Duration>;

thread_local! {
    /// The coroutine that runs on this thread now; null outside of one.
    static CURRENT: Cell<*const JobYielder> = const { Cell::new(ptr::null()) };
    /// Stacks of jobs that have ended: making one costs more than most jobs.
    static STACKS: Cell<Vec<DefaultStack>> = const { Cell::new(Vec::new()) };
}

/// Passes virtual time in the middle of a job. Outside of a pool's job it does nothing: work in place takes no time.
pub fn spend(time: Duration) {
    let current = CURRENT.get();
    if current.is_null() {
        return;
    }
    // SAFETY: `CURRENT` is set only while its coroutine runs on this thread, and that coroutine is the caller.
    unsafe { &*current }.suspend(time);
    CURRENT.set(current);
}

/// A job that a virtual thread has taken.
pub(super) struct RunningJob {
    coroutine: Option<Coroutine<(), Duration, ()>>,
}

/// How far a job came.
pub(super) enum Progress {
    Spends(Duration),
    Ended,
}

impl RunningJob {
    pub(super) fn new(task: Task) -> RunningJob {
        let mut stacks = STACKS.take();
        let stack = stacks.pop().unwrap_or_default();
        STACKS.set(stacks);
        let coroutine = Coroutine::with_stack(stack, |yielder: &JobYielder, ()| {
            CURRENT.set(yielder);
            task();
        });
        RunningJob { coroutine: Some(coroutine) }
    }

    /// Lets the job work until it spends time or ends.
    pub(super) fn resume(&mut self) -> Progress {
        let coroutine = self.coroutine.as_mut().expect("an ended job is not resumed");
        let result = coroutine.resume(());
        CURRENT.set(ptr::null());
        match result {
            CoroutineResult::Yield(time) => Progress::Spends(time),
            CoroutineResult::Return(()) => {
                let mut stacks = STACKS.take();
                stacks.extend(self.coroutine.take().map(Coroutine::into_stack));
                STACKS.set(stacks);
                Progress::Ended
            }
        }
    }
}
