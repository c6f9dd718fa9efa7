use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_rows::{Batch, Column, Key, Kind, Rows};
use anabranch_testkit::Sim;
use proptest::prelude::*;

use super::{Memory, StaleReads, StaleStore};
use crate::call::{Answers, Call};
use crate::document::StaleTerms;
use crate::request::Request;
use crate::source::{
    Bound, Data, Error, Fetch, Field, Keys, Lists, Pattern, Read, ReadContext, Reader, Reply, Shared,
};

const SECOND: Duration = Duration::from_secs(1);

fn start() -> Instant {
    Sim::new(1).clock().now()
}

/// A column of numbers, one per key; negative ones stand for null.
fn numbers(values: &[i64]) -> Data {
    Data::Columns(vec![
        Column::ints(values.iter().map(|value| (*value >= 0).then_some(*value))),
        Column::texts(values.iter().map(|value| (*value >= 0).then(|| format!("t{value}")))),
    ])
}

fn read(data: &Data) -> Vec<Option<i64>> {
    let Data::Columns(columns) = data else { panic!("fields are columns") };
    let [Column::Int(numbers), Column::Text(texts)] = &columns[..] else { panic!("{columns:?}") };
    let value = |row: usize| (!columns[0].is_null(row)).then(|| numbers.value(row));
    for row in 0..numbers.len() {
        assert_eq!(texts.get(row), value(row).map(|value| format!("t{value}")).as_deref());
    }
    (0..numbers.len()).map(value).collect()
}

/// A memory without a bound to speak of.
fn memory() -> Arc<Memory> {
    StaleStore::new(usize::MAX, start()).memory(0, &Pattern::of_id("user:"), &Read::List { limit: 5 })
}

#[test]
fn the_last_value_of_each_key_counts() {
    let (stale, now) = (memory(), start());
    stale.remember(Keys::Ids(vec![1, 2, 3]), numbers(&[10, 20, -1]), now);
    stale.remember(Keys::Ids(vec![2]), numbers(&[21]), now + SECOND);
    let found = stale.lookup(&Keys::Ids(vec![3, 2, 1, 2, 9]), now + 3 * SECOND, 10 * SECOND).unwrap();
    assert_eq!(read(&found.data), [None, Some(21), Some(10), Some(21), None]);
    assert_eq!((found.age, found.known), (3 * SECOND, 4));
    let found = stale.lookup(&Keys::Ids(vec![1, 2]), now + 3 * SECOND, 2 * SECOND).unwrap();
    assert_eq!((read(&found.data), found.age, found.known), (vec![None, Some(21)], 2 * SECOND, 1));
    assert!(stale.lookup(&Keys::Ids(vec![1, 9]), now + 3 * SECOND, 2 * SECOND).is_none());
}

#[test]
fn lists_of_unknown_keys_are_empty() {
    let (stale, now) = (memory(), start());
    let lists = |lens: &[u32], ids: &[i64]| Lists { lens: lens.into(), ids: ids.into(), scores: None };
    let keys = |keys: &[Option<&str>]| Keys::Whole(keys.iter().map(|key| key.map(Into::into)).collect());
    stale.remember(keys(&[Some("a"), None, Some("b")]), Data::Lists(lists(&[2, 0, 1], &[1, 2, 3])), now);
    let found = stale.lookup(&keys(&[Some("b"), Some("x"), None, Some("a")]), now, SECOND).unwrap();
    let Data::Lists(found) = found.data else { panic!("lists are lists") };
    assert_eq!(found, lists(&[1, 0, 0, 2], &[3, 1, 2]));
}

/// The memories of two kinds of read under one bound.
fn two(most: usize) -> (StaleStore, Arc<Memory>, Arc<Memory>) {
    let store = StaleStore::new(most, start());
    let read = Read::List { limit: 5 };
    let [one, other] = ["user:", "item:"].map(|prefix| store.memory(0, &Pattern::of_id(prefix), &read));
    (store, one, other)
}

#[test]
fn all_memories_are_bounded_together() {
    let ((store, one, other), now) = (two(100_000), start());
    let used = || store.budget.used.load(std::sync::atomic::Ordering::Relaxed);
    for round in 0..1_000 {
        one.remember(Keys::Ids(vec![1]), numbers(&[round]), now);
    }
    assert_eq!(one.lock().replies.len(), 1, "a reply whose keys all have newer ones is not kept");
    let before = used();
    one.remember(Keys::Ids((0..1_000).collect()), numbers(&[0; 1_000]), now);
    assert_eq!(used(), before, "a reply that takes an eighth of the bound is not kept");
    for id in 0..10_000_u32 {
        let memory = if id % 2 == 0 { &one } else { &other };
        memory.remember(Keys::Ids(vec![id.into()]), numbers(&[id.into()]), now + id * SECOND);
        assert!(used() <= 100_000);
    }
    let later = now + 10_000 * SECOND;
    let known = |id: i64| {
        let memory = if id % 2 == 0 { &one } else { &other };
        memory.lookup(&Keys::Ids(vec![id]), later, 20_000 * SECOND).is_some()
    };
    assert!((9_900..10_000).all(known) && !(0..5_000).any(known), "the oldest of both go first");
    let kept: usize = [&one, &other].iter().map(|memory| memory.lock().replies.len()).sum();
    assert!(kept > 100, "{kept} are kept");
    drop((one, other, store));
}

#[test]
fn a_plan_that_is_loaded_again_finds_the_memory_of_its_reads() {
    let (store, one, _) = two(100_000);
    one.remember(Keys::Ids(vec![1]), numbers(&[7]), start());
    drop(one);
    let again = store.memory(0, &Pattern::of_id("user:"), &Read::List { limit: 5 });
    assert!(again.lookup(&Keys::Ids(vec![1]), start(), SECOND).is_some());
    let other = store.memory(1, &Pattern::of_id("user:"), &Read::List { limit: 5 });
    assert!(other.lookup(&Keys::Ids(vec![1]), start(), SECOND).is_none(), "of another endpoint");
}

/// The remembered replies, as a list that is searched.
#[derive(Default)]
struct Model(Vec<(Instant, Vec<i64>, i64)>);

impl Model {
    /// The reply that a key came in last.
    fn last(&self, key: i64) -> Option<usize> {
        self.0.iter().rposition(|(_, keys, _)| keys.contains(&key))
    }

    fn remember(&mut self, at: Instant, keys: Vec<i64>, value: i64) {
        self.0.push((at, keys, value));
        for place in (0..self.0.len()).rev() {
            let current = self.0[place].1.iter().any(|key| self.last(*key) == Some(place));
            if !current {
                self.0.remove(place);
            }
        }
    }
}

proptest! {
    #[test]
    fn agrees_with_a_plain_list(
        steps in prop::collection::vec(
            (prop::collection::vec(0_i64..30, 0..6), prop::collection::vec(0_i64..30, 0..6), 0_u32..5), 1..60
        ),
        evictions in prop::collection::vec(0_usize..4, 60),
        max_age in 0_u32..30,
    ) {
        let (memory, mut now) = (memory(), start());
        let mut model = Model::default();
        for (round, (keys, asked, pause)) in steps.into_iter().enumerate() {
            let value = round as i64 * 100;
            let values: Vec<i64> = keys.iter().map(|key| value + key).collect();
            memory.remember(Keys::Ids(keys.clone()), numbers(&values), now);
            if !keys.is_empty() {
                model.remember(now, keys, value);
            }
            if evictions[round] == 0 && !model.0.is_empty() {
                memory.evict_oldest();
                model.0.remove(0);
            }
            now += pause * SECOND;
            let found = memory.lookup(&Keys::Ids(asked.clone()), now, max_age * SECOND);
            let young = |key: &i64| {
                let (at, _, value) = &model.0[model.last(*key)?];
                (now - *at <= max_age * SECOND).then_some((now - *at, value + key))
            };
            let expected: Vec<Option<(Duration, i64)>> = asked.iter().map(young).collect();
            let oldest = expected.iter().flatten().map(|(age, _)| *age).max();
            prop_assert_eq!(found.as_ref().map(|found| found.age), oldest);
            if let Some(found) = found {
                prop_assert_eq!(found.known as usize, expected.iter().flatten().count());
                let values: Vec<_> = expected.iter().map(|found| found.map(|(_, value)| value)).collect();
                prop_assert_eq!(read(&found.data), values);
            }
        }
        let bytes: usize = memory.lock().replies.values().map(|reply| reply.bytes).sum();
        prop_assert_eq!(memory.budget.used.load(std::sync::atomic::Ordering::Relaxed), bytes);
    }
}

/// A store that says how often it was asked, and fails from the third time on.
struct FailingStore(std::sync::atomic::AtomicU32);

impl Bound for FailingStore {
    fn fetch(&self, keys: Keys, _: ReadContext<'_>) -> Fetch {
        let Keys::Ids(ids) = keys else { panic!("ids make these keys") };
        let times = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if times >= 2 {
            return Fetch::Ready(Err(Error::Connect { endpoint: "tired".into(), cause: "enough".into() }));
        }
        let data = numbers(&ids.iter().map(|id| id * 10 + i64::from(times)).collect::<Vec<_>>());
        Fetch::Later(Box::pin(async move { Ok(Reply::whole(data, 1, ids.len() as u32)) }))
    }
}

#[test]
fn readers_of_one_kind_remember_together_and_answer_from_it() {
    let sim = Sim::new(1);
    let call = |answers: Answers| {
        let call = Call::of(Request::bare(1), sim.clock());
        Arc::new(Call { shared: [Shared::default()].into(), answers, ..call })
    };
    let stale = |max_age| Answers::Stale(StaleReads::new(StaleTerms { max_age, min_known: 0.7 }));
    let field = |name: &str, key, kind| Field { name: name.into(), key: Key(key), kind };
    let read_of = Read::Fields(Arc::new([field("n", 2, Kind::Int), field("t", 3, Kind::Text)]));
    let store: Arc<dyn Bound> = Arc::new(FailingStore(0.into()));
    let first = Reader::new(&Pattern::of_id("user:"), &read_of, Arc::clone(&store));
    let mut second = Reader::new(&Pattern::of_id("user:"), &read_of, store);
    assert!(second.join(&first, &mut 0));
    second.remember_in(&StaleStore::new(1 << 20, start()));
    let ask = |reader: &Reader, ids: &[i64], call: &Arc<Call>| {
        let rows = Rows::new(Batch::new(ids.to_vec()));
        match reader.read(&rows, call) {
            Fetch::Ready(reply) => reply,
            Fetch::Later(reply) => sim.block_on(reply),
        }
    };
    let live = || call(Answers::Live);
    assert!(ask(&first, &[1, 2], &live()).is_ok(), "what one reads, the others remember");
    assert!(ask(&second, &[2, 3], &live()).is_ok());
    assert!(ask(&second, &[2, 3], &live()).is_err());
    let old = call(stale(SECOND));
    let reply = ask(&second, &[3, 1, 2, 4], &old).unwrap();
    assert_eq!(read(&reply.data), [Some(31), Some(10), Some(21), None]);
    assert_eq!((reply.trips, reply.commands), (0, 0));
    let clock = sim.clock();
    sim.block_on(clock.sleep_until(clock.now() + 2 * SECOND));
    let error = ask(&second, &[3], &old).unwrap_err();
    let expected = "of `HMGET user:{id}`, 0 of 1 keys are remembered from the last 1s: too few";
    assert_eq!(error.to_string(), expected);
    let patient = call(stale(3 * SECOND));
    assert!(ask(&second, &[3], &patient).is_ok() && ask(&first, &[], &patient).is_ok());
    let error = ask(&second, &[3, 4], &patient).unwrap_err().to_string();
    assert_eq!(error, "of `HMGET user:{id}`, 1 of 2 keys are remembered from the last 3s: too few");
    let used = patient.stale_use().unwrap();
    assert_eq!((used.age, used.known, used.asked), (2 * SECOND, 1, 1));
}
