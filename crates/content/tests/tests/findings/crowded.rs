//! Collections that many callers ask for at once.

use std::collections::HashSet;
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, ThreadId};
use std::time::Duration;

use anabranch_content::{Collect, CollectReport, Config, Error, Store, Time};
use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, join_all};

/// A clock at which collections wait until it is opened, and the threads of those that did: each has its own.
#[derive(Default)]
struct Gate {
    state: Mutex<(bool, HashSet<ThreadId>)>,
    changed: Condvar,
}

impl Gate {
    fn store(self: &Arc<Gate>) -> Store {
        let gate = Arc::clone(self);
        let clock = move || {
            if thread::current().name() == Some("content-long") {
                let mut state = gate.state.lock().unwrap();
                state.1.insert(thread::current().id());
                drop(gate.changed.wait_while(state, |(is_open, _)| !*is_open).unwrap());
            }
            Time(0)
        };
        Store::in_memory(Config { clock: Arc::new(clock), ..Config::default() }).unwrap()
    }

    fn open(&self) {
        self.state.lock().unwrap().0 = true;
        self.changed.notify_all();
    }

    fn collections(&self) -> usize {
        self.state.lock().unwrap().1.len()
    }
}

type Call<'a> = BoxFuture<'a, Result<CollectReport, Error>>;

/// Calls with the same options. The first one collects; the others wait, and the store is as long as the gate is shut.
fn calls(store: &Store, count: usize) -> Vec<Call<'_>> {
    let terms = || Collect { grace: Duration::ZERO, ..Collect::default() };
    let mut calls: Vec<Call<'_>> = (0..count).map(|_| store.collect(terms()).boxed()).collect();
    for call in &mut calls {
        assert!(call.now_or_never().is_none());
    }
    calls
}

/// Every caller is answered, and those that wait share one collection.
#[tokio::test]
async fn callers_that_wait_for_a_collection_are_all_answered() {
    let gate = Arc::new(Gate::default());
    let store = gate.store();
    let calls = calls(&store, 32);
    gate.open();
    assert!(join_all(calls).await.iter().all(Result::is_ok));
    assert_eq!(gate.collections(), 2, "one for the first caller, one for the others");
}

/// A caller that stops waiting does not leave the others waiting for ever.
#[tokio::test]
async fn a_caller_that_gives_up_leaves_its_place_to_another() {
    let gate = Arc::new(Gate::default());
    let store = gate.store();
    let mut calls = calls(&store, 5);
    // The others wait for this one's collection. Before the store is free, one of them takes its place.
    drop(calls.remove(1));
    assert!(calls.iter_mut().all(|call| call.now_or_never().is_none()));
    gate.open();
    assert!(join_all(calls).await.iter().all(Result::is_ok));
    assert_eq!(gate.collections(), 2);
}
