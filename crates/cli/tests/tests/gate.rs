//! A server of models that answers so many calls and holds the others back, so that a test decides about the moment.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use anabranch_testkit::{ModelScript, ModelServer};

/// Calls of a [`ModelServer`] wait here once enough were answered. Dropping it lets all of them go.
pub(crate) struct Gate {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// Calls that may be answered still.
    allowed: usize,
    waiting: usize,
}

/// A test that waits longer than this hangs.
const HANGS: Duration = Duration::from_secs(600);

impl Gate {
    /// A server that answers `allowed` calls at first.
    pub(crate) fn server(allowed: usize) -> (ModelServer, Gate) {
        let state = Mutex::new(State { allowed, waiting: 0 });
        let shared = Arc::new(Shared { state, changed: Condvar::new() });
        let inner = Arc::clone(&shared);
        let reply = Arc::new(move |call: &anabranch_testkit::ModelCall| {
            inner.pass();
            format!("a reply to: {}", call.prompt())
        });
        let server = ModelServer::start(ModelScript { reply: Some(reply), ..ModelScript::default() });
        (server, Gate { shared })
    }

    /// Waits until so many calls are held back.
    pub(crate) fn wait_for(&self, waiting: usize) {
        let Shared { state, changed } = &*self.shared;
        let state = state.lock().unwrap();
        let (state, waited) =
            changed.wait_timeout_while(state, HANGS, |state| state.waiting < waiting).unwrap();
        assert!(!waited.timed_out(), "{} calls wait, not {waiting}", state.waiting);
    }

    /// Lets all calls pass from now on.
    pub(crate) fn open(&self) {
        self.shared.state.lock().unwrap().allowed = usize::MAX / 2;
        self.shared.changed.notify_all();
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.open();
    }
}

impl Shared {
    fn pass(&self) {
        let mut state = self.state.lock().unwrap();
        state.waiting += 1;
        self.changed.notify_all();
        state = self.changed.wait_while(state, |state| state.allowed == 0).unwrap();
        state.waiting -= 1;
        state.allowed -= 1;
    }
}
