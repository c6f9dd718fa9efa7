//! Many callers at once: each answer right, each recipe computed once for each life of its memo.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use anabranch_content::{Collect, DryRun, Event as StoreEvent, RemovalReason, Store};
use anabranch_engine::Engine;
use anabranch_recipe::{
    Address, Config, Event, Executor, Invalidate, InvalidationReport, Listener, Notice, Reach,
    UnknownFunction,
};
use anabranch_testkit::Rng;
use bytes::Bytes;
use futures_util::future::{Either, join, join_all, select};

use crate::world::{World, get, leaf, recipe_of};

/// Recipes over each other and over leaves, with what they come to.
struct Menu {
    recipes: Vec<(Address, Bytes)>,
}

async fn menu(executor: &Executor, rng: &mut Rng, count: usize) -> Menu {
    let mut known: Vec<(Address, Bytes)> = Vec::new();
    for number in 0..count / 10 {
        let text = Bytes::from(format!("leaf {number};"));
        known.push((leaf(executor, text.clone()).await, text));
    }
    let leaves = known.len();
    while known.len() < leaves + count {
        let function = *rng.choose(&["identity", "concat", "counted/1"]);
        let inputs = if function == "identity" { 1 } else { rng.within(1..4) };
        let inputs: Vec<usize> = (0..inputs).map(|_| rng.within(0..known.len() as u64) as usize).collect();
        let value: Vec<u8> = inputs.iter().flat_map(|input| known[*input].1.clone()).collect();
        let addresses: Vec<Address> = inputs.iter().map(|input| known[*input].0).collect();
        let recipe = recipe_of(function, &addresses);
        // Values double now and then; the long ones stay out, and so does what is there already.
        let address = recipe.address().unwrap();
        if value.len() > 2_000 || known.iter().any(|(known, _)| *known == address) {
            continue;
        }
        executor.add(&recipe, UnknownFunction::Refuse).await.unwrap();
        known.push((address, value.into()));
    }
    let recipes = known.split_off(leaves);
    // Holds what it takes to derive them all, and none of their values.
    let all: Vec<Address> = recipes.iter().map(|(address, _)| *address).collect();
    let held = executor.add(&recipe_of("concat", &all), UnknownFunction::Refuse).await.unwrap();
    executor.store().pin(&held.address).await.unwrap();
    Menu { recipes }
}

/// Polls a future so many times at most; then it is dropped.
async fn for_a_while<T>(work: impl Future<Output = T>, polls: u64) -> Option<T> {
    let mut work = pin!(work);
    let mut left = polls;
    std::future::poll_fn(|cx| match work.as_mut().poll(cx) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending if left == 0 => Poll::Ready(None),
        Poll::Pending => {
            left -= 1;
            Poll::Pending
        }
    })
    .await
}

async fn client(executor: &Executor, menu: &Menu, mut rng: Rng, gets: usize) {
    for _ in 0..gets {
        let (address, value) = rng.choose(&menu.recipes).clone();
        if rng.percent(20) {
            let polls = rng.within(0..3);
            if let Some(got) = for_a_while(get(executor, address), polls).await {
                assert_eq!(got.unwrap(), value);
            }
        } else {
            assert_eq!(get(executor, address).await.unwrap(), value);
        }
        tokio::task::yield_now().await;
    }
}

/// What was forgotten.
#[derive(Default)]
struct Forgotten {
    /// Each recipe as often as its value was invalidated or collected.
    addresses: Vec<Address>,
    /// The number of invalidations that forgot something.
    invalidations: usize,
}

impl Forgotten {
    fn add(&mut self, report: InvalidationReport) {
        self.invalidations += usize::from(report.forgotten > 0);
        self.addresses.extend(report.addresses);
    }
}

/// Forgets, collects and puts; notes what was forgotten.
async fn meddler(executor: &Executor, menu: &Menu, mut rng: Rng, rounds: usize) -> Forgotten {
    let mut forgotten = Forgotten::default();
    for round in 0..rounds {
        let address = rng.choose(&menu.recipes).0;
        match rng.within(0..4) {
            0 => {
                let terms = Invalidate { detail: usize::MAX, ..Invalidate::default() };
                forgotten.add(executor.invalidate(&address, &terms).await.unwrap());
            }
            1 => {
                let terms = Invalidate { reach: Reach::Dependents, detail: usize::MAX, dry_run: DryRun::No };
                forgotten.add(executor.invalidate(&address, &terms).await.unwrap());
            }
            2 => {
                let terms = Collect { grace: Duration::ZERO, detail: usize::MAX, ..Collect::default() };
                forgotten.addresses.extend(executor.store().collect(terms).await.unwrap().removed);
            }
            _ => {
                leaf(executor, format!("put in round {round}")).await;
            }
        }
        tokio::task::yield_now().await;
    }
    forgotten
}

/// How often each was computed, as it is told.
async fn listen(mut listener: Listener, lives: &mut HashMap<Address, usize>) {
    while let Some(heard) = listener.next().await {
        match heard {
            Notice::Event(Event::Computed { address, .. }) => *lives.entry(address).or_default() += 1,
            Notice::Event(_) => {}
            // On a machine too busy to listen, the count is too low.
            Notice::Lost(_) => {}
        }
    }
}

/// An executor, and how often its store was told to forget memos.
fn watched_executor() -> (Executor, Arc<AtomicUsize>) {
    let invalidations = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&invalidations);
    let listener = move |event: &StoreEvent| {
        if matches!(event, StoreEvent::Removed { why: RemovalReason::Invalidated, .. }) {
            counter.fetch_add(1, Ordering::SeqCst);
        }
    };
    let config = anabranch_content::Config { listener: Some(Arc::new(listener)), ..Default::default() };
    let engine = Engine::new(&anabranch_engine::Config::default()).unwrap();
    let store = Store::in_memory(config).unwrap();
    (Executor::new(store, World::default().functions(), engine, Config::default()), invalidations)
}

async fn crowd(seed: u64, recipes: usize, clients: usize, gets: usize) {
    let mut rng = Rng::new(seed);
    let (executor, invalidations) = watched_executor();
    let menu = menu(&executor, &mut rng, recipes).await;
    let mut lives = HashMap::new();
    let forgotten = {
        let listening = pin!(listen(executor.listen(), &mut lives));
        let seeds: Vec<Rng> = (0..clients + 3).map(|_| Rng::new(rng.bits())).collect();
        let (mine, theirs) = seeds.split_at(3);
        let clients = theirs.iter().map(|rng| client(&executor, &menu, rng.clone(), gets));
        let meddlers = mine.iter().map(|rng| meddler(&executor, &menu, rng.clone(), gets));
        let work = pin!(join(join_all(clients), join_all(meddlers)));
        match select(work, listening).await {
            Either::Left(((_, forgotten), _)) => forgotten,
            Either::Right(_) => unreachable!("the executor is still there"),
        }
    };
    assert_eq!(executor.status().computing, 0);
    for (address, value) in &menu.recipes {
        assert_eq!(get(&executor, *address).await.unwrap(), *value);
    }
    check(lives, forgotten, invalidations.load(Ordering::SeqCst));
}

/// No recipe was computed more often than it was new or forgotten.
fn check(lives: HashMap<Address, usize>, forgotten: Vec<Forgotten>, invalidations: usize) {
    let mut may = HashMap::<Address, usize>::new();
    let mut known = 0;
    for Forgotten { addresses, invalidations } in forgotten {
        known += invalidations;
        addresses.into_iter().for_each(|address| *may.entry(address).or_default() += 1);
    }
    // A get that meets a value which is just being collected forgets it, too, and nobody says of which recipe.
    let by_gets = invalidations.saturating_sub(known);
    assert!(!lives.is_empty());
    for (address, computed) in lives {
        let forgotten = may.get(&address).copied().unwrap_or(0);
        assert!(
            computed <= 1 + forgotten + by_gets,
            "computed {computed} times, forgotten {forgotten} times, and {by_gets} values by gets"
        );
    }
}

#[tokio::test]
async fn small_crowds() {
    for seed in 0..30 {
        println!("seed {seed}");
        crowd(seed, 40, 6, 20).await;
    }
}

#[tokio::test]
async fn sixty_four_clients_and_a_thousand_recipes() {
    crowd(1_000, 1_000, 64, 100).await;
}
