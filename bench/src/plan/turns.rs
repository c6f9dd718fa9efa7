//! Contenders take turns, so that what else the machine does meets all of them alike.

use std::time::{Duration, Instant};

use tokio::runtime::Runtime;

use super::server::Server;
use crate::watch::{Share, Spread, Watch};

/// How long and how often.
#[derive(Clone, Copy)]
pub(super) struct Pace {
    /// Turns of each contender.
    pub(super) rounds: usize,
    /// How long a turn takes.
    pub(super) window: Duration,
}

impl Pace {
    /// Shorter turns, for what is short itself.
    pub(super) fn shorter(self, part: u32) -> Pace {
        Pace { window: self.window / part, ..self }
    }
}

/// Lets each of `count` contenders take its turns, another one first each round; each one's turns.
pub(super) fn take_turns<T>(rounds: usize, count: usize, mut turn: impl FnMut(usize) -> T) -> Vec<Vec<T>> {
    let mut turns: Vec<Vec<T>> = (0..count).map(|_| Vec::with_capacity(rounds)).collect();
    for round in 0..rounds {
        for place in 0..count {
            let contender = (round + place) % count;
            turns[contender].push(turn(contender));
        }
    }
    turns
}

/// A turn of callers who each wait for an answer before they ask again. Microseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServeReport {
    pub(super) p50: f64,
    pub(super) p99: f64,
    /// CPU time for each request, of this process.
    pub(super) cpu: f64,
    /// CPU time for each request, of the Redis.
    pub(super) redis: f64,
    /// The number of requests.
    pub(super) requests: usize,
    pub(super) wall: Duration,
}

/// Has so many callers, tasks of the runtime, ask for as long as the window is open.
pub(super) fn serve<F, Fut>(
    runtime: &Runtime,
    server: &Server,
    callers: usize,
    window: Duration,
    ask: F,
) -> ServeReport
where
    F: Fn() -> Fut + Clone + Send + 'static,
    Fut: Future<Output = ()> + Send,
{
    let (watch, redis) = (Watch::start(), server.cpu_time());
    let end = Instant::now() + window;
    let tasks: Vec<_> = (0..callers)
        .map(|_| {
            let ask = ask.clone();
            runtime.spawn(async move {
                let mut latencies = Vec::new();
                loop {
                    let began = Instant::now();
                    ask().await;
                    latencies.push(began.elapsed());
                    if Instant::now() >= end {
                        return latencies;
                    }
                }
            })
        })
        .collect();
    let answered = tasks.into_iter().map(|task| runtime.block_on(task).expect("a caller does not panic"));
    let latencies: Vec<Duration> = answered.flatten().collect();
    let (spent, redis) = (watch.stop(), server.cpu_time() - redis);
    let share = |time: Duration| micros(time) / latencies.len() as f64;
    let (cpu, redis) = (share(spent.cpu), share(redis));
    let requests = latencies.len();
    let spread = Spread::of(latencies);
    let (p50, p99) = (micros(spread.p50), micros(spread.p99));
    ServeReport { p50, p99, cpu, redis, requests, wall: spent.wall }
}

/// Nanoseconds for one of many runs, made one after the other for about as long as the window is open.
pub(super) async fn repeat(window: Duration, mut run: impl AsyncFnMut()) -> Share {
    let began = Instant::now();
    run().await;
    let runs = (window.as_nanos() / began.elapsed().as_nanos().max(1)).clamp(1, 1_000_000) as u64;
    let watch = Watch::start();
    for _ in 0..runs {
        run().await;
    }
    watch.stop().share(runs)
}

/// The fastest of some turns: what the machine's other work slowed down least.
pub(super) fn fastest(turns: &[Share]) -> Share {
    *turns.iter().min_by(|a, b| a.wall.total_cmp(&b.wall)).expect("there is at least one turn")
}

pub(super) fn median(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.into_iter().collect();
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// The median of the ratios of the same rounds' turns.
pub(super) fn ratio<T>(ours: &[T], theirs: &[T], of: impl Fn(&T) -> f64) -> f64 {
    median(ours.iter().zip(theirs).map(|(ours, theirs)| of(ours) / of(theirs)))
}

pub(super) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
