//! A gate in a disk: the calls that it is for wait while it is shut. Nothing waits for ever: what should not have
//! waited is told from what need not, after a while.

use std::future::Future;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use tokio::sync::watch;

/// So long nothing in these tests takes, however busy the machine is. Only a failing test waits as long.
const LIMIT: Duration = Duration::from_secs(120);

/// Lets calls pass until it is shut; the call at which it shuts waits until it is opened again.
#[derive(Debug)]
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
    /// How many calls wait.
    held: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct State {
    /// How many calls pass before one is held; nothing: all pass.
    free: Option<usize>,
    /// Also those after it are held.
    all: bool,
    /// Counts how often it was opened.
    opened: u64,
}

impl Gate {
    pub(crate) fn new() -> Arc<Gate> {
        let (state, changed, held) = (Mutex::default(), Condvar::new(), watch::Sender::new(0));
        Arc::new(Gate { state, changed, held })
    }

    /// From now on every call waits.
    pub(crate) fn shut(&self) {
        let mut state = self.state.lock().unwrap();
        (state.free, state.all) = (Some(0), true);
    }

    /// One call waits, after so many that pass.
    pub(crate) fn hold_one(&self, after: usize) {
        let mut state = self.state.lock().unwrap();
        (state.free, state.all) = (Some(after), false);
    }

    /// Lets all go that wait, and all that come.
    pub(crate) fn open(&self) {
        let mut state = self.state.lock().unwrap();
        (state.free, state.opened) = (None, state.opened + 1);
        self.changed.notify_all();
    }

    /// A call comes.
    pub(crate) fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        match &mut state.free {
            None => return,
            Some(0) => {}
            Some(free) => {
                *free -= 1;
                return;
            }
        }
        if !state.all {
            state.free = None;
        }
        let opened = state.opened;
        self.held.send_modify(|held| *held += 1);
        while state.opened == opened {
            state = self.changed.wait(state).unwrap();
        }
        drop(state);
        self.held.send_modify(|held| *held -= 1);
    }

    /// Waits until a call waits.
    pub(crate) async fn held(&self) {
        let mut held = self.held.subscribe();
        in_time(held.wait_for(|held| *held > 0)).await.expect("no call came to the gate").unwrap();
    }

    /// Does something that should not wait for the gate. Says whether it did: then the gate was opened for it.
    pub(crate) fn is_waited_for(self: &Arc<Gate>, work: impl FnOnce()) -> bool {
        let (done, is_done) = channel::<()>();
        let gate = Arc::clone(self);
        let watch = std::thread::Builder::new().spawn(move || {
            let late = is_done.recv_timeout(LIMIT) == Err(RecvTimeoutError::Timeout);
            if late {
                gate.open();
            }
            late
        });
        work();
        drop(done);
        watch.unwrap().join().unwrap()
    }
}

/// What this comes to; nothing if it hangs.
#[allow(clippy::disallowed_methods, reason = "what hangs would hang for ever")]
pub(crate) async fn in_time<T>(work: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(LIMIT, work).await.ok()
}
