//! Collection against a naive model, and beside everything else.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use anabranch_content::{
    Address, Class, Collect, Config, Context, Cost, Disk, DryRun, Error, Memory, NewMemo, RemovalReason,
    Scope, Store,
};
use anabranch_testkit::Rng;
use bytes::Bytes;
use proptest::prelude::*;

use crate::kit::{description, put_derivation};
use crate::store::Hand;

const CONTEXT: Context<'static> = Context("anabranch tests 2026 collected");
const GRACE: Duration = Duration::from_secs(100);

/// A little world: blobs, derivations over them, memos, and what holds them.
#[derive(Clone, Debug)]
struct World {
    blobs: Vec<(bool, Class)>,
    derivations: Vec<WorldDerivation>,
    pins: Vec<usize>,
    names: Vec<usize>,
    leases: Vec<usize>,
}

#[derive(Clone, Debug)]
struct WorldDerivation {
    young: bool,
    described: bool,
    /// Things by number: blobs first, then derivations before this one.
    inputs: Vec<usize>,
    /// A blob by number, if it has a memo, and whether that is young.
    memo: Option<(usize, bool, Class)>,
}

fn worlds() -> impl Strategy<Value = World> {
    let class = prop_oneof![Just(Class::Derivable), Just(Class::Acknowledged)];
    let derived =
        (any::<bool>(), any::<bool>(), prop::collection::vec(0..30usize, 0..3), any::<bool>(), 0..30usize)
            .prop_flat_map(move |(young, described, inputs, has_memo, output)| {
                let class = prop_oneof![Just(Class::Derivable), Just(Class::Acknowledged)];
                (Just((young, described, inputs, has_memo, output)), any::<bool>(), class)
            })
            .prop_map(|((young, described, inputs, has_memo, output), memo_young, class)| {
                let memo = (has_memo || !described).then_some((output, memo_young, class));
                WorldDerivation { young, described, inputs, memo }
            });
    let some = || prop::collection::vec(0..30usize, 0..3);
    (
        prop::collection::vec((prop::bool::weighted(0.3), class), 1..12),
        prop::collection::vec(derived, 0..12),
        some(),
        some(),
        some(),
    )
        .prop_map(|(blobs, derivations, pins, names, leases)| World {
            blobs,
            derivations,
            pins,
            names,
            leases,
        })
}

impl World {
    fn blob(&self, number: usize) -> Bytes {
        format!("blob {number}").repeat(number % 5 * 20 + 1).into_bytes().into()
    }

    fn blob_address(&self, number: usize) -> Address {
        Address::of(&self.blob(number % self.blobs.len()))
    }

    fn described(&self, number: usize) -> Bytes {
        description(format!("derivation {number}"), &self.inputs(number))
    }

    fn derivation(&self, number: usize) -> Address {
        Address::derive(CONTEXT, &self.described(number))
    }

    /// A thing by any number, among the blobs and the derivations before `before`.
    fn thing(&self, number: usize, before: usize) -> Address {
        let number = number % (self.blobs.len() + before);
        match number.checked_sub(self.blobs.len()) {
            None => self.blob_address(number),
            Some(derivation) => self.derivation(derivation),
        }
    }

    fn inputs(&self, number: usize) -> Vec<Address> {
        self.derivations[number].inputs.iter().map(|input| self.thing(*input, number)).collect()
    }

    fn roots(&self) -> Vec<Address> {
        let numbers = self.pins.iter().chain(&self.names).chain(&self.leases);
        numbers.map(|number| self.thing(*number, self.derivations.len())).collect()
    }

    /// Puts all of one age.
    async fn put(&self, store: &Store, young: bool) {
        for (number, (blob_young, class)) in self.blobs.iter().enumerate() {
            if *blob_young == young || !young {
                // The young ones' bytes come first too, for memos need them; their time is set by the second put.
                store.put(self.blob(number), *class).await.unwrap();
            }
        }
        for (number, derived) in self.derivations.iter().enumerate() {
            let inputs = self.inputs(number);
            if derived.described && derived.young == young {
                put_derivation(store, CONTEXT, self.described(number)).await.unwrap();
            }
            if let Some((output, memo_young, class)) = derived.memo
                && memo_young == young
            {
                let (derivation, output) = (self.derivation(number), self.blob_address(output));
                let made = NewMemo { derivation, output, size: 0, cost: self.cost(number), inputs: &inputs };
                store.remember(made, class).await.unwrap();
            }
        }
    }

    fn cost(&self, number: usize) -> Cost {
        Cost { cpu: Duration::from_nanos(number as u64 % 2), ..Cost::default() }
    }

    /// Whether a held memo has the output and the cost of this one, which is not described.
    fn is_held_with_another(&self, number: usize, held: &KeptAddresses) -> bool {
        let result =
            |number: usize| Some((self.blob_address(self.derivations[number].memo?.0), self.cost(number)));
        let mut others = (0..self.derivations.len()).filter(|it| held.memos.contains(&self.derivation(*it)));
        !self.derivations[number].described && others.any(|other| result(other) == result(number))
    }

    /// What stays, by the rules as the documentation has them.
    fn expected(&self, scope: Scope) -> KeptAddresses {
        let mut kept = KeptAddresses::default();
        let mut held = KeptAddresses::default();
        for root in self.roots() {
            self.hold(root, true, &mut held);
        }
        for (number, derived) in self.derivations.iter().enumerate() {
            let address = self.derivation(number);
            if derived.described && scope == Scope::KeepDerivations {
                self.hold(address, true, &mut held);
            } else if derived.described && derived.young {
                self.hold(address, false, &mut held);
            }
            if derived.memo.is_some_and(|memo| memo.1) {
                self.hold(address, true, &mut held);
            }
        }
        let spared = |class| scope == Scope::Derivable && class == Class::Acknowledged;
        for (number, derived) in self.derivations.iter().enumerate() {
            let address = self.derivation(number);
            if let Some((output, _, class)) = derived.memo {
                let output = self.blob_address(output);
                // A memo goes with its output, or when its output is held by something else.
                let goes = !held.memos.contains(&address)
                    && !self.is_held_with_another(number, &held)
                    && !spared(class);
                let output_stays = self.blob_stays(&output, &held, &spared);
                if !(goes && (!output_stays || held.blobs.contains(&output))) {
                    kept.memos.insert(address);
                }
            }
            let described = derived.described;
            let remembered = kept.memos.contains(&address);
            if described && (held.derivations.contains(&address) || remembered || scope == Scope::Derivable) {
                kept.derivations.insert(address);
            }
        }
        for number in 0..self.blobs.len() {
            let address = self.blob_address(number);
            if self.blob_stays(&address, &held, &spared) {
                kept.blobs.insert(address);
            }
        }
        kept
    }

    /// A blob stays when it is held, young, spared, or the output of a memo that stays for its own reasons.
    fn blob_stays(&self, address: &Address, held: &KeptAddresses, spared: &dyn Fn(Class) -> bool) -> bool {
        let own = (0..self.blobs.len()).filter(|number| self.blob_address(*number) == *address);
        own.into_iter().any(|number| self.blobs[number].0 || spared(self.class(number)))
            || held.blobs.contains(address)
            || self.derivations.iter().enumerate().any(|(number, derived)| {
                derived.memo.is_some_and(|(output, _, class)| {
                    self.blob_address(output) == *address
                        && (held.memos.contains(&self.derivation(number)) || spared(class))
                })
            })
    }

    fn class(&self, number: usize) -> Class {
        self.blobs[number].1
    }

    fn hold(&self, address: Address, value: bool, held: &mut KeptAddresses) {
        if !held.seen.insert((address, value)) {
            return;
        }
        held.blobs.insert(address);
        let Some(number) = (0..self.derivations.len()).find(|number| self.derivation(*number) == address)
        else {
            return;
        };
        let derived = &self.derivations[number];
        if derived.described {
            held.derivations.insert(address);
            self.inputs(number).into_iter().for_each(|input| self.hold(input, false, held));
        }
        if let Some((output, ..)) = derived.memo
            && (value || !derived.described)
        {
            held.memos.insert(address);
            self.hold(self.blob_address(output), true, held);
            self.inputs(number).into_iter().for_each(|input| self.hold(input, false, held));
        }
    }
}

#[derive(Debug, Default, PartialEq)]
struct KeptAddresses {
    seen: BTreeSet<(Address, bool)>,
    blobs: BTreeSet<Address>,
    derivations: BTreeSet<Address>,
    memos: BTreeSet<Address>,
}

async fn look(world: &World, store: &Store) -> KeptAddresses {
    let mut kept = KeptAddresses::default();
    for number in 0..world.blobs.len() {
        let address = world.blob_address(number);
        if store.get(&address).await.unwrap().is_some() {
            kept.blobs.insert(address);
        } else {
            assert_eq!(store.status(&address).await.unwrap().gone.unwrap().why, RemovalReason::Collected);
        }
    }
    for number in 0..world.derivations.len() {
        let address = world.derivation(number);
        if store.derivation(&address).await.unwrap().is_some() {
            kept.derivations.insert(address);
        }
        if let Some(memo) = store.recall(&address).await.unwrap() {
            assert!(store.get(&memo.output).await.unwrap().is_some(), "a memo without its output");
            kept.memos.insert(address);
        }
    }
    kept
}

async fn agree(world: World, scope: Scope) {
    let hand = Hand::default();
    let disk: Arc<dyn Disk> = Arc::new(Memory::new());
    let config =
        Config { cache_bytes: 0, touch_after: Duration::ZERO, recent_bytes: 4 << 10, ..hand.config() };
    let store = Store::open_on(Arc::clone(&disk), config.clone()).unwrap();
    world.put(&store, false).await;
    hand.forward(GRACE);
    world.put(&store, true).await;
    let all = world.derivations.len();
    for pin in &world.pins {
        store.pin(&world.thing(*pin, all)).await.unwrap();
    }
    for name in &world.names {
        store.name(&format!("name {}", name % 2), Some(world.thing(*name, all))).await.unwrap();
    }
    let mut lease = store.lease();
    for leased in &world.leases {
        assert!(lease.hold(world.thing(*leased, all)).await.unwrap());
    }
    let before = look(&world, &store).await;
    let dry = Collect { grace: GRACE, scope, dry_run: DryRun::Yes, ..Collect::default() };
    let would = store.collect(dry.clone()).await.unwrap();
    assert_eq!(look(&world, &store).await, before);
    let did = store.collect(Collect { dry_run: DryRun::No, ..dry.clone() }).await.unwrap();
    assert_eq!((would.blobs, would.memos, would.derivations), (did.blobs, did.memos, did.derivations));
    let expected = KeptAddresses { seen: BTreeSet::new(), ..world.expected(scope) };
    let found = look(&world, &store).await;
    assert_eq!(found, expected, "{world:?}");
    let gone = before.blobs.len() - found.blobs.len();
    assert_eq!(did.blobs, gone as u64);
    let again = store.collect(Collect { dry_run: DryRun::No, ..dry }).await.unwrap();
    assert_eq!((again.blobs, again.memos, again.derivations), (0, 0, 0), "a second collection finds nothing");
    store.clean().await.unwrap();
    assert_eq!(look(&world, &store).await, found);
    drop(lease);
    store.close().await.unwrap();
    let store = Store::open_on(disk, config).unwrap();
    assert_eq!(look(&world, &store).await, found);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_stays_is_what_the_model_says(world in worlds(), scope in 0..3usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let scope = [Scope::All, Scope::Derivable, Scope::KeepDerivations][scope];
        runtime.block_on(agree(world, scope));
    }
}

/// Puts, re-puts, memos and leases race with collections without grace: what a caller was told is there, is there
/// while it holds it.
#[test]
fn collections_race_with_everything_else() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        let config =
            Config { packed_most: 600, segment_bytes: 16 << 10, recent_bytes: 8 << 10, ..Config::default() };
        let store =
            Store::in_memory(Config { cache_bytes: 0, touch_after: Duration::ZERO, ..config }).unwrap();
        // Each goes on until the others have done enough.
        let (removed, callers_left) = (AtomicU64::new(0), AtomicU32::new(4));
        let callers = (0..4).map(|seed| {
            let (store, removed, callers_left) = (store.clone(), &removed, &callers_left);
            async move {
                let mut rng = Rng::new(seed);
                for round in 0..20_000 {
                    if round >= 400 && removed.load(Ordering::Relaxed) > 100 {
                        break;
                    }
                    hold_and_look(&store, &mut rng).await;
                }
                callers_left.fetch_sub(1, Ordering::Relaxed);
            }
        });
        let collector = async {
            let mut round = 0;
            while callers_left.load(Ordering::Relaxed) > 0 {
                let terms = Collect { grace: Duration::ZERO, ..Collect::default() };
                removed.fetch_add(store.collect(terms).await.unwrap().blobs, Ordering::Relaxed);
                if round % 10 == 0 {
                    store.clean().await.unwrap();
                }
                round += 1;
            }
        };
        tokio::join!(futures_util::future::join_all(callers), collector);
        let removed = removed.into_inner();
        assert!(removed > 100, "only {removed} blobs were collected: the race was none");
    });
}

async fn hold_and_look(store: &Store, rng: &mut Rng) {
    let bytes = Bytes::from(vec![rng.within(0..20) as u8; rng.within(1..4) as usize * 300]);
    let address = Address::of(&bytes);
    let mut lease = store.lease();
    lease.hold(address).await.unwrap();
    let class = *rng.choose(&[Class::Derivable, Class::Acknowledged]);
    store.put(bytes.clone(), class).await.unwrap();
    tokio::task::yield_now().await;
    assert_eq!(store.get(&address).await.unwrap(), Some(bytes.clone()));
    let derivation = Address::derive(CONTEXT, &bytes);
    lease.hold(derivation).await.unwrap();
    let made = NewMemo { derivation, output: address, size: 0, cost: Cost::default(), inputs: &[] };
    store.remember(made, class).await.unwrap();
    tokio::task::yield_now().await;
    assert_eq!(store.recall(&derivation).await.unwrap().map(|memo| memo.output), Some(address));
    assert_eq!(store.get(&address).await.unwrap(), Some(bytes));
}

#[tokio::test]
async fn a_quota_makes_room_with_what_costs_least_and_says_when_it_cannot() {
    let hand = Hand::default();
    let config = Config { quota_bytes: Some(1 << 20), quota_grace: Duration::from_secs(1), ..hand.config() };
    let store = Store::in_memory(Config { cache_bytes: 0, packed_most: 1 << 20, ..config }).unwrap();
    let dear = make(&store, 1, 100_000, Duration::from_secs(10)).await;
    let mut cheap = Vec::new();
    for seed in 2..9 {
        cheap.push(make(&store, seed, 100_000, Duration::from_micros(seed)).await);
    }
    hand.forward(Duration::from_secs(2));
    for seed in 9..40 {
        make(&store, seed, 100_000, Duration::from_secs(1)).await;
        hand.forward(Duration::from_secs(2));
    }
    assert!(store.stats().used_bytes <= 1 << 20);
    assert!(store.get(&dear).await.unwrap().is_some(), "the dearest stays longest");
    for address in cheap {
        assert_eq!(store.status(&address).await.unwrap().gone.unwrap().why, RemovalReason::Quota);
    }
    for seed in 100.. {
        match store.put(vec![seed; 100_000], Class::Acknowledged).await {
            Ok(_) => hand.forward(Duration::from_secs(2)),
            Err(Error::Quota { used, quota }) => {
                assert!(used <= quota && seed > 105, "{used} {seed}");
                break;
            }
            Err(other) => panic!("{other}"),
        }
    }
    for seed in 100..105 {
        assert!(
            store.get(&Address::of(&vec![seed; 100_000])).await.unwrap().is_some(),
            "acknowledged, so it stays"
        );
    }
}

async fn make(store: &Store, seed: u64, len: usize, cpu: Duration) -> Address {
    let mut bytes = vec![0; len];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let derivation = Address::derive(CONTEXT, &seed.to_le_bytes());
    let output = store.put(bytes, Class::Derivable).await.unwrap().address;
    let cost = Cost { cpu, ..Cost::default() };
    let made = NewMemo { derivation, output, size: len as u64, cost, inputs: &[] };
    store.remember(made, Class::Derivable).await.unwrap();
    output
}
