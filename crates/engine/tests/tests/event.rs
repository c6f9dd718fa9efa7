//! What listeners hear, and what a slow one loses.

use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};
use std::time::Duration;

use anabranch_engine::event::{EventKind, Listener, ListenerItem, RunEnding};
use anabranch_engine::{Config, Engine, Options};
use anabranch_testkit::Sim;

use crate::script::{Player, Script, listen};

fn run(sim: &Sim, engine: &Engine, script: &str) {
    let script = Script::parse(script);
    let mut player = Player::new(&script, engine.clock());
    let run = engine.run(&script.dag, &script.policies, &mut player, &Options::default()).unwrap();
    let _ = sim.block_on(run);
}

fn heard(listener: &mut Listener) -> Vec<String> {
    std::iter::from_fn(|| listener.try_next())
        .map(|heard| match heard {
            ListenerItem::Event(event) => format!("{:?}", event.kind),
            ListenerItem::Lost(count) => format!("lost {count}"),
        })
        .collect()
}

#[test]
fn a_run_is_told_from_start_to_end() {
    let sim = Sim::new(1);
    let engine = sim.engine(&Config::default());
    let mut listener = listen(&engine);
    run(&sim, &engine, "a: io 5 fail isolate; b <- a; c: cpu 1 fail fallback; d: spawn 2");
    assert_eq!(
        heard(&mut listener),
        [
            "RunStarted(4)",
            "Started(#0, Future)",
            "Started(#2, Pool)",
            "Started(#3, Spawned)",
            "Running(#2)",
            "FellBack(#2, Error)",
            "Finished(#3)",
            "Failed(#0, Error)",
            "Dropped(#1)",
            "RunEnded(Complete)"
        ]
    );
}

#[test]
fn a_slow_listener_loses_the_oldest_and_is_told_how_many() {
    let sim = Sim::new(1);
    let engine = sim.engine(&Config::default());
    let mut slow = engine.events().listen(NonZeroUsize::new(3).unwrap());
    let mut quick = listen(&engine);
    run(&sim, &engine, "a; b <- a");
    assert_eq!(heard(&mut slow), ["lost 3", "Started(#1, Inline)", "Finished(#1)", "RunEnded(Complete)"]);
    assert_eq!(heard(&mut quick).len(), 6, "another listener's pace is its own");
    run(&sim, &engine, "a");
    assert_eq!(heard(&mut slow)[0], "lost 1", "losses are counted afresh");
}

#[test]
fn one_listener_never_holds_more_than_its_bound_however_much_comes() {
    let sim = Sim::new(1);
    let engine = sim.engine(&Config::default());
    let mut listener = engine.events().listen(NonZeroUsize::new(10).unwrap());
    let script: Vec<String> = (0..1000).map(|n| format!("n{n}")).collect();
    run(&sim, &engine, &script.join("; "));
    let heard = heard(&mut listener);
    assert_eq!((heard.len(), heard[0].as_str()), (11, "lost 1992"));
}

#[test]
fn a_dropped_run_says_so_and_a_dropped_listener_hears_nothing() {
    let sim = Sim::new(1);
    let engine = sim.engine(&Config::default());
    let mut listener = listen(&engine);
    let script = Script::parse("a: io 5");
    let mut player = Player::new(&script, engine.clock());
    drop(engine.run(&script.dag, &script.policies, &mut player, &Options::default()).unwrap());
    assert_eq!(
        heard(&mut listener).last().unwrap(),
        &format!("{:?}", EventKind::RunEnded(RunEnding::Dropped))
    );
    drop(listener);
    run(&sim, &engine, "a");
}

#[test]
fn a_listener_can_wait_for_what_comes_next() {
    let sim = Sim::new(1);
    let engine = sim.engine(&Config::default());
    let mut listener = listen(&engine);
    let first = sim.block_on(async {
        let script = Script::parse("a: io 5");
        let mut player = Player::new(&script, engine.clock());
        let mut run = engine.run(&script.dag, &script.policies, &mut player, &Options::default()).unwrap();
        let mut next = std::pin::pin!(listener.next());
        std::future::poll_fn(|cx| {
            let _ = std::pin::Pin::new(&mut run).poll(cx);
            next.as_mut().poll(cx)
        })
        .await
    });
    assert!(matches!(first, ListenerItem::Event(event) if event.kind == EventKind::RunStarted(1)));
}

/// Drops a listener when woken, as the last waker of a task does.
struct DropsListener(Mutex<Option<Listener>>);

impl Wake for DropsListener {
    fn wake(self: Arc<Self>) {
        drop(self.0.lock().unwrap().take());
    }
}

#[test]
#[allow(clippy::disallowed_methods, reason = "the test joins the thread")]
fn a_waker_may_drop_its_listener() {
    // On its own thread, so that the test fails instead of hanging if the lock of the listeners is still held.
    let (done, ended) = std::sync::mpsc::channel();
    let thread = std::thread::spawn(move || {
        let sim = Sim::new(1);
        let engine = sim.engine(&Config::default());
        let (mut first, other) = (listen(&engine), listen(&engine));
        let waker = Waker::from(Arc::new(DropsListener(Mutex::new(Some(other)))));
        assert!(pin!(first.next()).poll(&mut Context::from_waker(&waker)).is_pending());
        run(&sim, &engine, "a");
        assert_eq!(heard(&mut first).len(), 4);
        done.send(()).unwrap();
    });
    ended.recv_timeout(Duration::from_secs(60)).expect("a waker was called under a lock");
    thread.join().unwrap();
}
