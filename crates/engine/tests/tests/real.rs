//! Real threads, real time, on a machine that may be busy: what must be ended early would take minutes.
#![allow(clippy::disallowed_methods, reason = "these tests are about real time and real tasks")]

use std::cell::Cell;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use anabranch_engine::clock::SystemClock;
use anabranch_engine::options::Class;
use anabranch_engine::policy::StepKind;
use anabranch_engine::pool::{Pool, Task};
use anabranch_engine::seams::Seams;
use anabranch_engine::tasks::TokioTasks;
use anabranch_engine::{
    Budget, Check, Config, Cost, Dag, Drops, Edge, Engine, Failure, NodeId, OnError, Options, Policies,
    Policy, Step, Stopped, Workload,
};

type Outcome = Result<u64, String>;
type BoxedFuture = Pin<Box<dyn Future<Output = Outcome> + Send>>;
type BoxedJob = Box<dyn FnOnce(Option<u64>, &Check<'_>) -> Outcome + Send>;

/// A workload given as a closure from node to step.
struct Steps<F> {
    step: F,
}

enum Do {
    Nothing,
    Future(BoxedFuture),
    Job(BoxedJob),
}

impl<F: FnMut(NodeId) -> Do> Workload for Steps<F> {
    type Value = u64;
    type Error = String;
    type Future = BoxedFuture;
    type Job = BoxedJob;

    fn step(&mut self, node: NodeId, _: Budget) -> Step<Self> {
        match (self.step)(node) {
            Do::Nothing => Step::Ready(Ok(0)),
            Do::Future(future) => Step::Future(future),
            Do::Job(job) => Step::Job(job, Cost::Unknown),
        }
    }

    fn finish(&mut self, _: NodeId, _: u64, _: &mut Drops) {}
}

fn steps<F: FnMut(NodeId) -> Do>(step: F) -> Steps<F> {
    Steps { step }
}

fn future(future: impl Future<Output = Outcome> + Send + 'static) -> Do {
    Do::Future(Box::pin(future))
}

fn job(job: impl FnOnce(&Check<'_>) -> Outcome + Send + 'static) -> Do {
    Do::Job(Box::new(move |_, check| job(check)))
}

/// Burns CPU for `time`, looking up every now and then.
fn burn(time: Duration, check: &Check<'_>) -> Outcome {
    let began = Instant::now();
    while began.elapsed() < time && !check.should_stop() {
        std::hint::black_box((0..2_000u64).sum::<u64>());
    }
    Ok(0)
}

fn engine() -> Engine {
    Engine::new(&Config { cpu_threads: 2, batch_threads: 2, blocking_threads: 2, ..Config::default() })
        .unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

/// What a test is about takes far less, however busy the machine is; what must be ended early would take `LONG`.
const SOON: Duration = Duration::from_secs(60);
const LONG: Duration = Duration::from_secs(300);

/// Runs a workload to its end, which comes soon.
fn ended<F: FnMut(NodeId) -> Do>(
    engine: &Engine,
    dag: &Dag,
    work: &mut Steps<F>,
    options: &Options,
) -> Result<(), Stopped<String>> {
    let began = Instant::now();
    let ended = runtime().block_on(engine.run(dag, &Policies::default(), work, options).unwrap());
    let took = began.elapsed();
    assert!(took < SOON, "it took {took:?}");
    ended.map(drop)
}

fn within_50_ms() -> Options {
    Options { deadline: Some(Instant::now() + Duration::from_millis(50)), ..Options::default() }
}

#[test]
fn fail_fast_does_not_wait_for_siblings() {
    let (engine, dag) = (engine(), Dag::new(3, &[]).unwrap());
    let mut work = steps(|node| match node.0 {
        0 => job(|check| burn(LONG, check)),
        1 => future(async {
            tokio::time::sleep(LONG).await;
            Ok(0)
        }),
        _ => future(async {
            tokio::task::yield_now().await;
            Err("broke".to_owned())
        }),
    });
    let ended = ended(&engine, &dag, &mut work, &Options::default());
    assert_eq!(ended.unwrap_err().to_string(), "node #2 failed: broke");
}

#[test]
fn a_deadline_ends_a_long_cpu_node() {
    let (engine, dag) = (engine(), Dag::new(1, &[]).unwrap());
    let mut work = steps(|_| job(|check| burn(LONG, check)));
    let ended = ended(&engine, &dag, &mut work, &within_50_ms());
    assert!(matches!(ended, Err(Stopped::Deadline { .. } | Stopped::Node { .. })), "{ended:?}");
}

#[test]
fn an_opaque_call_that_never_looks_up_does_not_delay_the_answer_either() {
    let (engine, dag) = (engine(), Dag::new(1, &[]).unwrap());
    let (release, blocked) = mpsc::channel::<()>();
    let mut blocked = Some(blocked);
    let mut work = steps(|_| {
        let blocked = blocked.take().unwrap();
        job(move |_| {
            let _ = blocked.recv_timeout(LONG);
            Ok(0)
        })
    });
    let ended = ended(&engine, &dag, &mut work, &within_50_ms());
    assert!(matches!(ended, Err(Stopped::Deadline { .. })), "{ended:?}");
    drop(release);
}

#[test]
fn dropping_a_run_quiets_its_cpu_work_within_a_check_interval() {
    let (engine, dag, policies) = (engine(), Dag::new(2, &[]).unwrap(), Policies::default());
    let busy = Arc::new(AtomicUsize::new(0));
    let mut work = steps(|_| {
        let busy = Arc::clone(&busy);
        job(move |check| {
            busy.fetch_add(1, Ordering::SeqCst);
            let outcome = burn(LONG, check);
            busy.fetch_sub(1, Ordering::SeqCst);
            outcome
        })
    });
    runtime().block_on(async {
        let mut run = engine.run(&dag, &policies, &mut work, &Options::default()).unwrap();
        tokio::select! {
            biased;
            _ = &mut run => panic!("ended"),
            () = async { while busy.load(Ordering::SeqCst) < 2 { tokio::task::yield_now().await } } => {}
        }
    });
    let dropped = Instant::now();
    while busy.load(Ordering::SeqCst) > 0 {
        assert!(dropped.elapsed() < SOON, "still busy");
        std::thread::yield_now();
    }
}

#[test]
fn dropping_a_run_drops_its_futures_and_tasks() {
    struct Guard(Arc<AtomicUsize>);
    impl Drop for Guard {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }
    let dropped = Arc::new(AtomicUsize::new(0));
    let policies = [StepKind::Auto, StepKind::Spawned].map(|step| Policy { step, ..Policy::default() });
    let policies = Policies::repeating(policies.into());
    let (engine, dag) = (engine(), Dag::new(2, &[]).unwrap());
    let mut work = steps(|_| {
        let guard = Guard(Arc::clone(&dropped));
        future(async move {
            let _guard = guard;
            std::future::pending().await
        })
    });
    runtime().block_on(async {
        let mut run = engine.run(&dag, &policies, &mut work, &Options::default()).unwrap();
        tokio::select! {
            biased;
            _ = &mut run => panic!("ended"),
            () = async { for _ in 0..5 { tokio::task::yield_now().await } } => {}
        }
        drop(run);
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(dropped.load(Ordering::SeqCst), 2);
    });
}

/// Fills a pool with calls that wait, then runs one node of another kind beside them.
fn runs_beside(blocked: (StepKind, Class), other: impl Fn() -> (StepKind, Class, bool)) {
    let engine = engine();
    let dag = Dag::new(8, &[]).unwrap();
    let (release, wait) = mpsc::channel::<()>();
    let wait = Arc::new(std::sync::Mutex::new(wait));
    let mut blockers = steps(|_| {
        let wait = Arc::clone(&wait);
        job(move |_| {
            let _ = wait.lock().unwrap().recv();
            Ok(0)
        })
    });
    let policies = Policies::uniform(Policy { step: blocked.0, ..Policy::default() });
    let options = Options { class: blocked.1, ..Options::default() };
    runtime().block_on(async {
        let mut blocking = engine.run(&dag, &policies, &mut blockers, &options).unwrap();
        let (step, class, is_future) = other();
        let mut quick = steps(|_| {
            if is_future {
                future(async {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    Ok(0)
                })
            } else {
                job(|_| Ok(0))
            }
        });
        let one = Dag::new(1, &[]).unwrap();
        let policies = Policies::uniform(Policy { step, ..Policy::default() });
        let options = Options { class, ..Options::default() };
        let run = engine.run(&one, &policies, &mut quick, &options).unwrap();
        tokio::select! {
            biased;
            _ = &mut blocking => panic!("the blocked calls ended"),
            ended = run => assert_eq!(ended.unwrap().finished, 1),
        }
        drop(release);
        assert_eq!(blocking.await.unwrap().finished, 8);
    });
}

#[test]
fn a_blocking_pool_full_of_blocked_calls_never_delays_compute() {
    runs_beside((StepKind::Blocking, Class::Latency), || (StepKind::Pool, Class::Latency, false));
}

#[test]
fn a_cpu_pool_full_of_work_never_delays_io_or_blocking_calls() {
    runs_beside((StepKind::Pool, Class::Latency), || (StepKind::Auto, Class::Latency, true));
    runs_beside((StepKind::Pool, Class::Latency), || (StepKind::Blocking, Class::Latency, false));
}

#[test]
fn batch_work_never_delays_latency_work_nor_the_other_way_round() {
    runs_beside((StepKind::Pool, Class::Batch), || (StepKind::Pool, Class::Latency, false));
    runs_beside((StepKind::Pool, Class::Latency), || (StepKind::Pool, Class::Batch, false));
}

#[test]
fn a_run_of_inline_work_lets_others_on_its_thread_go_on() {
    let (engine, dag, policies) = (engine(), Dag::new(2_000, &[]).unwrap(), Policies::default());
    let mut work = steps(|_| {
        let began = Instant::now();
        while began.elapsed() < Duration::from_micros(20) {}
        Do::Nothing
    });
    runtime().block_on(async {
        let done = Arc::new(AtomicBool::new(false));
        let turns = {
            let done = Arc::clone(&done);
            tokio::spawn(async move {
                let mut turns = 0;
                while !done.load(Ordering::SeqCst) {
                    turns += 1;
                    tokio::task::yield_now().await;
                }
                turns
            })
        };
        engine.run(&dag, &policies, &mut work, &Options::default()).unwrap().await.unwrap();
        done.store(true, Ordering::SeqCst);
        // 2,000 nodes of 20 us in slices of 100 us (and one node over) are at least 333 slices.
        let turns = turns.await.unwrap();
        assert!(turns > 300, "the other task had {turns} turns");
    });
}

#[test]
fn runs_can_move_between_threads_and_share_an_engine() {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    let edges: Vec<_> = (1..64).map(|node| (NodeId(node / 2), NodeId(node), Edge::Needs)).collect();
    let edges: Vec<_> = edges.into_iter().filter(|edge| edge.0 != edge.1).collect();
    let shared = Arc::new((engine(), Dag::new(64, &edges).unwrap()));
    runtime.block_on(async {
        let mut runs = tokio::task::JoinSet::new();
        for _ in 0..50 {
            let shared = Arc::clone(&shared);
            runs.spawn(async move {
                let policies = Policies::default();
                let mut work = steps(|node| match node.0 % 3 {
                    0 => Do::Nothing,
                    1 => job(|_| Ok(1)),
                    _ => future(async {
                        tokio::task::yield_now().await;
                        Ok(1)
                    }),
                });
                shared
                    .0
                    .run(&shared.1, &policies, &mut work, &Options::default())
                    .unwrap()
                    .await
                    .unwrap()
                    .finished
            });
        }
        while let Some(finished) = runs.join_next().await {
            assert_eq!(finished.unwrap(), 64);
        }
    });
}

/// Two linked jobs; the second never looks up and is over its own timeout long before it ends.
struct LinkedJobs {
    second: Option<BoxedJob>,
}

impl Workload for LinkedJobs {
    type Value = u64;
    type Error = String;
    type Future = BoxedFuture;
    type Job = BoxedJob;

    fn step(&mut self, _: NodeId, _: Budget) -> Step<Self> {
        let first: BoxedJob = Box::new(|_, check| burn(Duration::from_millis(5), check));
        Step::Job(first, Cost::Unknown)
    }

    fn link(&mut self, _: NodeId, _: NodeId) -> Option<BoxedJob> {
        self.second.take()
    }

    fn finish(&mut self, _: NodeId, _: u64, _: &mut Drops) {}
}

/// How two linked jobs end, of which the second takes too long.
fn linked(engine: &Engine, timeouts: [Option<Duration>; 2]) -> String {
    let dag = Dag::new(2, &[(NodeId(0), NodeId(1), Edge::Needs)]).unwrap();
    let (release, blocked) = mpsc::channel::<()>();
    let second: BoxedJob = Box::new(move |_, _| {
        let _ = blocked.recv_timeout(LONG);
        Ok(0)
    });
    let policies = timeouts.map(|timeout| Policy { timeout, ..Policy::default() });
    let policies = Policies::repeating(policies.into());
    let mut work = LinkedJobs { second: Some(second) };
    let began = Instant::now();
    let ended = runtime().block_on(engine.run(&dag, &policies, &mut work, &Options::default()).unwrap());
    assert!(began.elapsed() < SOON);
    drop(release);
    ended.unwrap_err().to_string()
}

#[test]
fn a_linked_job_has_a_timeout_of_its_own_whatever_the_first_ones_is() {
    let engine = engine();
    for first in [None, Some(LONG)] {
        let said = linked(&engine, [first, Some(Duration::from_millis(40))]);
        assert_eq!(said, "node #1 failed: did not finish within its timeout of 40ms");
    }
    // On a busy machine the first may be late itself.
    for millis in (0..8).map(|doubled| 20 << doubled) {
        let [first, second] = [3 * millis, 2 * millis].map(Duration::from_millis);
        let said = linked(&engine, [Some(first), Some(second)]);
        if said != format!("node #0 failed: did not finish within its timeout of {first:?}") {
            assert_eq!(said, format!("node #1 failed: did not finish within its timeout of {second:?}"));
            return;
        }
    }
    panic!("the first job was always late");
}

#[test]
fn a_job_done_in_place_that_was_told_it_is_late_is_late() {
    let (engine, dag) = (engine(), Dag::new(1, &[]).unwrap());
    let policy =
        Policy { step: StepKind::Inline, timeout: Some(Duration::from_millis(5)), ..Policy::default() };
    let mut work = steps(|_| job(|check| burn(LONG, check)));
    let policies = Policies::uniform(policy);
    let ended = runtime().block_on(engine.run(&dag, &policies, &mut work, &Options::default()).unwrap());
    assert!(matches!(ended, Err(Stopped::Node { failure: Failure::Timeout(_), .. })), "{ended:?}");
}

#[test]
fn what_is_left_to_do_in_place_is_done_after_a_deadline_noticed_late() {
    let (engine, dag) = (engine(), Dag::new(2, &[(NodeId(0), NodeId(1), Edge::Needs)]).unwrap());
    let run = |grace: Duration, last: fn() -> Do| {
        // On a busy machine the time may be over before the first node begins.
        for millis in (0..8).map(|doubled| 5 << doubled) {
            let deadline = Instant::now() + Duration::from_millis(millis);
            let begins_in_time = Cell::new(false);
            let mut work = steps(|node| match node {
                // Nobody looks at a timer meanwhile.
                NodeId(0) => {
                    begins_in_time.set(Instant::now() < deadline);
                    while Instant::now() <= deadline {
                        std::hint::spin_loop();
                    }
                    Do::Nothing
                }
                _ => last(),
            });
            let options = Options { deadline: Some(deadline), grace, ..Options::default() };
            let policies = Policies::default();
            let ended = runtime().block_on(engine.run(&dag, &policies, &mut work, &options).unwrap());
            if begins_in_time.get() {
                return ended;
            }
        }
        panic!("the first node never began in time");
    };
    let long = LONG;
    assert!(run(long, || Do::Nothing).is_ok());
    assert!(matches!(run(Duration::ZERO, || Do::Nothing), Err(Stopped::Deadline { .. })));
    // What would have to be waited for is not begun to be waited for.
    let ended = run(long, || future(std::future::pending()));
    assert!(matches!(ended, Err(Stopped::Deadline { .. })), "{ended:?}");
}

#[test]
fn work_thrown_away_by_a_closed_pool_is_that_nodes_failure() {
    struct ClosedPool;
    impl Pool for ClosedPool {
        fn submit(&self, task: Task) {
            drop(task);
        }
    }
    let seams = Seams {
        clock: Arc::new(SystemClock),
        tasks: Arc::new(TokioTasks),
        latency: Arc::new(ClosedPool),
        batch: Arc::new(ClosedPool),
        blocking: Arc::new(ClosedPool),
    };
    let engine = Engine::with_seams(seams, &Config::default());
    let dag = Dag::new(2, &[(NodeId(0), NodeId(1), Edge::Needs)]).unwrap();
    let isolate = Policies::uniform(Policy { on_error: OnError::Isolate, ..Policy::default() });
    let mut work = steps(|_| job(|_| Ok(0)));
    let report =
        runtime().block_on(engine.run(&dag, &isolate, &mut work, &Options::default()).unwrap()).unwrap();
    assert_eq!((report.failed, report.dropped), (1, 1));
    let policies = Policies::default();
    let ended = runtime().block_on(engine.run(&dag, &policies, &mut work, &Options::default()).unwrap());
    assert!(matches!(ended, Err(Stopped::Node { failure: Failure::Abandoned, .. })), "{ended:?}");
}

#[test]
fn a_future_out_of_tokios_budget_lets_other_tasks_go_first() {
    const ITEMS: usize = 100_000;
    // tokio lets a task do so many things before its resources say "later".
    const BUDGET: usize = 128;
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    (0..ITEMS).for_each(|item| sender.send(item).unwrap());
    let polls = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&polls);
    let mut receive = Some(async move {
        let mut all = std::pin::pin!(async {
            for _ in 0..ITEMS {
                receiver.recv().await.unwrap();
            }
            Ok(0)
        });
        std::future::poll_fn(|cx| {
            counted.fetch_add(1, Ordering::Relaxed);
            all.as_mut().poll(cx)
        })
        .await
    });
    let mut work = steps(|_| future(receive.take().unwrap()));
    let (engine, dag, policies) = (engine(), Dag::new(1, &[]).unwrap(), Policies::default());
    runtime()
        .block_on(async { engine.run(&dag, &policies, &mut work, &Options::default()).unwrap().await })
        .unwrap();
    let polls = polls.load(Ordering::Relaxed);
    assert!(polls <= 2 * ITEMS / BUDGET, "{polls} polls for {ITEMS} items");
}
