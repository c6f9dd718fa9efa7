//! Callers side by side, and what they ask for.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anabranch_content::{Address, Class, Cost, NewMemo, Store};
use tokio::runtime::Runtime;

use crate::watch::{Watch, WorkTime};

/// How fast something went.
#[derive(Clone, Copy)]
pub(crate) struct Rate {
    pub(crate) per_second: f64,
    /// Microseconds of CPU time for each.
    pub(crate) cpu: f64,
}

impl Rate {
    pub(crate) fn of(done: u64, spent: WorkTime) -> Rate {
        let cpu = spent.cpu.as_secs_f64() * 1e6 / done as f64;
        Rate { per_second: done as f64 / spent.wall.as_secs_f64(), cpu }
    }
}

/// Has so many callers call with all numbers, each number once.
pub(crate) fn serve_all<F, Fut>(runtime: &Runtime, callers: usize, numbers: Range<u64>, call: F) -> Rate
where
    F: Fn(u64) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = ()> + Send,
{
    serve(runtime, callers, numbers, None, call)
}

/// Has so many callers call for so long, each time with another number, from the first on.
pub(crate) fn serve_for<F, Fut>(
    runtime: &Runtime,
    callers: usize,
    (first, window): (u64, Duration),
    call: F,
) -> Rate
where
    F: Fn(u64) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = ()> + Send,
{
    serve(runtime, callers, first..u64::MAX, Some(window), call)
}

fn serve<F, Fut>(
    runtime: &Runtime,
    callers: usize,
    numbers: Range<u64>,
    window: Option<Duration>,
    call: F,
) -> Rate
where
    F: Fn(u64) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = ()> + Send,
{
    let shared = Arc::new((AtomicU64::new(numbers.start), AtomicU64::new(numbers.end)));
    let watch = Watch::start();
    let tasks: Vec<_> = (0..callers)
        .map(|_| {
            let (shared, call) = (Arc::clone(&shared), call.clone());
            runtime.spawn(async move {
                let (next, end) = &*shared;
                let mut done = 0;
                loop {
                    let number = next.fetch_add(1, Relaxed);
                    if number >= end.load(Relaxed) {
                        return done;
                    }
                    call(number).await;
                    done += 1;
                }
            })
        })
        .collect();
    if let Some(window) = window {
        std::thread::sleep(window);
        shared.1.store(0, Relaxed);
    }
    let done = tasks.into_iter().map(|task| runtime.block_on(task).expect("a caller does not panic")).sum();
    Rate::of(done, watch.stop())
}

/// Bytes of a small blob.
pub(crate) const SMALL: usize = 1024;

/// A small blob, of each number another one.
pub(crate) fn blob(number: u64) -> Vec<u8> {
    let mut bytes = vec![0x5a; SMALL];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    bytes
}

/// An address as even as a hash, of each number another one.
pub(crate) fn address(number: u64) -> Address {
    let mut bytes = [0; 32];
    for (word, place) in bytes.as_chunks_mut().0.iter_mut().zip(1..) {
        *word = mix(number.wrapping_mul(4).wrapping_add(place)).to_le_bytes();
    }
    Address::from_bytes(bytes)
}

/// Scatters numbers: the finalizer of SplitMix64.
pub(crate) fn mix(number: u64) -> u64 {
    let number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

pub(crate) async fn put(store: &Store, number: u64, class: Class) {
    let put = store.put(blob(number), class).await.expect("the disk takes it");
    assert!(put.new, "a blob was put twice");
}

/// Blobs that memos came to.
#[derive(Clone)]
pub(crate) struct Outputs(Arc<[Address]>);

impl Outputs {
    const COUNT: u64 = 10_000;

    /// Puts the blobs.
    pub(crate) fn put(runtime: &Runtime, store: &Store) -> Outputs {
        let to = store.clone();
        serve_all(runtime, 512, 0..Outputs::COUNT, move |number| {
            let store = to.clone();
            async move { put(&store, u64::MAX - number, Class::Derivable).await }
        });
        let addresses = (0..Outputs::COUNT).map(|number| Address::of(&blob(u64::MAX - number)));
        Outputs(addresses.collect())
    }

    /// Remembers a derivation that came to one of the blobs.
    pub(crate) async fn remember(&self, store: &Store, number: u64, input: Address) {
        let output = self.0[(number % Outputs::COUNT) as usize];
        let inputs = &[input];
        let derivation = address(number);
        let made = NewMemo { derivation, output, size: SMALL as u64, cost: Cost::default(), inputs };
        store.remember(made, Class::Acknowledged).await.expect("the disk takes it");
    }
}

/// The input that no derivation shares with another.
pub(crate) fn own_input(number: u64) -> Address {
    address(number | 1 << 62)
}

pub(crate) fn median(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.into_iter().collect();
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// The median of the turns' ratios.
pub(crate) fn ratio(ours: &[Rate], floor: &[Rate]) -> f64 {
    median(ours.iter().zip(floor).map(|(ours, floor)| ours.per_second / floor.per_second))
}
