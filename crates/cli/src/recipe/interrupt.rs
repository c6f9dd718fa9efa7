//! Ctrl-C (SIGINT) while a command works on a store.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anabranch_engine::clock::{Clock as _, SystemClock};
use futures_util::future::{Either, select};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use super::progress;
use crate::failure::Failure;
use crate::out;

/// The time that a command has to end after Ctrl-C.
const END_WITHIN: Duration = Duration::from_secs(1);

/// The number of guards that are removing files.
static CLEANING: AtomicUsize = AtomicUsize::new(0);

/// Exists while files are being removed. A stopped command waits for it, unless Ctrl-C is pressed again.
pub(super) struct CleaningGuard(());

impl CleaningGuard {
    pub(super) fn begin() -> CleaningGuard {
        CLEANING.fetch_add(1, Ordering::Relaxed);
        CleaningGuard(())
    }
}

impl Drop for CleaningGuard {
    fn drop(&mut self) {
        CLEANING.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Completes when a stopped command has had time to end, and nothing is being removed.
async fn time_to_end() {
    loop {
        SystemClock.sleep_until(SystemClock.now() + END_WITHIN).await;
        if CLEANING.load(Ordering::Relaxed) == 0 {
            return;
        }
    }
}

/// Listens for Ctrl-C from its creation on.
pub(super) struct Interrupt {
    pressed: Arc<Notify>,
    _task: JoinSet<()>,
}

impl Interrupt {
    /// Starts to listen. Ctrl-C shows the message, which describes what is left behind, immediately.
    pub(super) fn listen(runtime: &Runtime, message: &str) -> Result<Interrupt, Failure> {
        let _inside = runtime.enter();
        let mut signals = signal(SignalKind::interrupt())
            .map_err(|error| Failure::of(format!("cannot listen for Ctrl-C: {error}")))?;
        let pressed = Arc::new(Notify::new());
        let (notify, message) = (Arc::clone(&pressed), message.to_owned());
        let mut task = JoinSet::new();
        task.spawn(async move {
            signals.recv().await;
            progress::clear_line();
            out::note(&message);
            notify.notify_one();
            let second = pin!(signals.recv());
            select(second, pin!(time_to_end())).await;
            end_now();
        });
        Ok(Interrupt { pressed, _task: task })
    }

    /// Does work until Ctrl-C is pressed. If it was pressed before, the work does not begin.
    pub(super) async fn or<T>(&self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        match select(pin!(self.pressed.notified()), pin!(work)).await {
            Either::Left(_) => Err(Failure::Interrupted),
            Either::Right((result, _)) => result,
        }
    }
}

/// Ends a process whose main thread blocks in a system call, usually because the reader of its output is slow.
#[expect(
    clippy::disallowed_methods,
    reason = "the main thread cannot return, and the store needs no guard: it survives kill -9"
)]
fn end_now() {
    std::process::exit(130);
}
