use std::sync::Arc;
use std::time::{Duration, Instant};

use anabranch_rows::{Batch, Column, Key, Kind, Rows};
use anabranch_testkit::Sim;
use proptest::prelude::*;

use super::Stale;
use crate::call::{Call, Tally};
use crate::source::reads::{Reads, StaleReads};
use crate::source::{Bound, Data, Error, Fetch, Field, Keys, Lists, Pattern, Read, Reader, Reply, Shared};

const SECOND: Duration = Duration::from_secs(1);

fn start() -> Instant {
    Sim::new(1).clock().now()
}

/// A column of numbers, one a key; negative ones stand for null.
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

#[test]
fn the_last_value_of_each_key_counts() {
    let (stale, now) = (Stale::default(), start());
    stale.remember(Keys::Ids(vec![1, 2, 3]), numbers(&[10, 20, -1]), now);
    stale.remember(Keys::Ids(vec![2]), numbers(&[21]), now + SECOND);
    let (data, age) = stale.lookup(&Keys::Ids(vec![3, 2, 1, 2, 9]), now + 3 * SECOND, 10 * SECOND).unwrap();
    assert_eq!((read(&data), age), (vec![None, Some(21), Some(10), Some(21), None], 3 * SECOND));
    let (data, age) = stale.lookup(&Keys::Ids(vec![1, 2]), now + 3 * SECOND, 2 * SECOND).unwrap();
    assert_eq!((read(&data), age), (vec![None, Some(21)], 2 * SECOND));
    assert!(stale.lookup(&Keys::Ids(vec![1, 9]), now + 3 * SECOND, 2 * SECOND).is_none());
}

#[test]
fn lists_of_unknown_keys_are_empty() {
    let (stale, now) = (Stale::default(), start());
    let lists = |lens: &[u32], ids: &[i64]| Lists { lens: lens.into(), ids: ids.into(), scores: None };
    let keys = |keys: &[Option<&str>]| Keys::Whole(keys.iter().map(|key| key.map(Into::into)).collect());
    stale.remember(keys(&[Some("a"), None, Some("b")]), Data::Lists(lists(&[2, 0, 1], &[1, 2, 3])), now);
    let (data, _) = stale.lookup(&keys(&[Some("b"), Some("x"), None, Some("a")]), now, SECOND).unwrap();
    let Data::Lists(found) = data else { panic!("lists are lists") };
    assert_eq!(found, lists(&[1, 0, 0, 2], &[3, 1, 2]));
}

#[test]
fn what_is_kept_is_bounded() {
    let (stale, now) = (Stale::bounded(10, 1_000), start());
    for round in 0..1_000 {
        stale.remember(Keys::Ids(vec![1]), numbers(&[round]), now);
    }
    assert_eq!(stale.lock().replies.len(), 1, "nothing that is outdated is kept");
    stale.remember(Keys::Ids((0..11).collect()), numbers(&[0; 11]), now);
    assert_eq!(stale.lock().rows, 1, "what is too large is not kept");
    (0..30).for_each(|id| stale.remember(Keys::Ids(vec![id]), numbers(&[id]), now));
    assert_eq!(stale.lock().rows, 10);
    let long = Data::Lists(Lists { lens: vec![100], ids: vec![0; 100], scores: None });
    stale.remember(Keys::Ids(vec![99]), long, now);
    let table = stale.lock();
    assert!(table.bytes <= 1_000 && table.replies.len() < 10 && table.ids.len() == table.replies.len());
}

/// What is remembered, as a list that is searched.
#[derive(Default)]
struct Model(Vec<(Instant, Vec<i64>, i64)>);

impl Model {
    /// The reply that a key came in last.
    fn last(&self, key: i64) -> Option<usize> {
        self.0.iter().rposition(|(_, keys, _)| keys.contains(&key))
    }

    fn remember(&mut self, at: Instant, keys: Vec<i64>, value: i64, most_rows: usize) {
        self.0.push((at, keys, value));
        for place in (0..self.0.len()).rev() {
            let current = self.0[place].1.iter().any(|key| self.last(*key) == Some(place));
            if !current {
                self.0.remove(place);
            }
        }
        while self.0.iter().map(|(_, keys, _)| keys.len()).sum::<usize>() > most_rows {
            self.0.remove(0);
        }
    }
}

proptest! {
    #[test]
    fn agrees_with_a_plain_list(
        steps in prop::collection::vec(
            (prop::collection::vec(0_i64..30, 0..6), prop::collection::vec(0_i64..30, 0..6), 0_u32..5), 1..60
        ),
        most_rows in 5_usize..40,
        max_age in 0_u32..30,
    ) {
        let (stale, mut now) = (Stale::bounded(most_rows, usize::MAX), start());
        let mut model = Model::default();
        for (round, (keys, asked, pause)) in steps.into_iter().enumerate() {
            let value = round as i64 * 100;
            let values: Vec<i64> = keys.iter().map(|key| value + key).collect();
            stale.remember(Keys::Ids(keys.clone()), numbers(&values), now);
            if !keys.is_empty() {
                model.remember(now, keys, value, most_rows);
            }
            now += pause * SECOND;
            let found = stale.lookup(&Keys::Ids(asked.clone()), now, max_age * SECOND);
            let young = |key: &i64| {
                let (at, _, value) = &model.0[model.last(*key)?];
                (now - *at <= max_age * SECOND).then_some((now - *at, value + key))
            };
            let expected: Vec<Option<(Duration, i64)>> = asked.iter().map(young).collect();
            let oldest = expected.iter().flatten().map(|(age, _)| *age).max();
            prop_assert_eq!(found.as_ref().map(|(_, age)| *age), oldest);
            if let Some((data, _)) = found {
                let values: Vec<_> = expected.iter().map(|found| found.map(|(_, value)| value)).collect();
                prop_assert_eq!(read(&data), values);
            }
        }
    }
}

/// A store that says how often it was asked, and fails from the third time on.
struct Tired(std::sync::atomic::AtomicU32);

impl Bound for Tired {
    fn fetch(&self, keys: Keys) -> Fetch {
        let Keys::Ids(ids) = keys else { panic!("ids make these keys") };
        let times = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        if times >= 2 {
            return Fetch::Ready(Err(Error::Connect { endpoint: "tired".into(), cause: "enough".into() }));
        }
        let data = numbers(&ids.iter().map(|id| id * 10 + i64::from(times)).collect::<Vec<_>>());
        Fetch::Later(Box::pin(async move { Ok(Reply { data, trips: 1, commands: ids.len() as u32 }) }))
    }
}

#[test]
fn readers_of_one_kind_remember_together_and_answer_from_it() {
    let sim = Sim::new(1);
    let call = |reads: Reads| {
        let shared = [Shared::default()].into();
        let (clock, tally) = (sim.clock(), Tally::default());
        let params = crate::value::Values::default();
        Arc::new(Call { user: 1, params, clock, tally, shared, reads, seen: None, recorder: None })
    };
    let field = |name: &str, key, kind| Field { name: name.into(), key: Key(key), kind };
    let read_of = Read::Fields(Arc::new([field("n", 2, Kind::Int), field("t", 3, Kind::Text)]));
    let store: Arc<dyn Bound> = Arc::new(Tired(0.into()));
    let first = Reader::new(&Pattern::of_id("user:"), &read_of, Arc::clone(&store));
    let mut second = Reader::new(&Pattern::of_id("user:"), &read_of, store);
    assert!(second.join(&first, &mut 0));
    second.remember();
    let ask = |reader: &Reader, ids: &[i64], call: &Arc<Call>| {
        let rows = Rows::new(Batch::new(ids.to_vec()));
        match reader.read(&rows, call) {
            Fetch::Ready(reply) => reply,
            Fetch::Later(reply) => sim.block_on(reply),
        }
    };
    let live = || call(Reads::Live);
    assert!(ask(&first, &[1, 2], &live()).is_ok(), "what one reads, the others remember");
    assert!(ask(&second, &[2, 3], &live()).is_ok());
    assert!(ask(&second, &[2, 3], &live()).is_err());
    let old = call(Reads::Stale(StaleReads::new(SECOND)));
    let reply = ask(&second, &[3, 1, 2, 4], &old).unwrap();
    assert_eq!(read(&reply.data), [Some(31), Some(10), Some(21), None]);
    assert_eq!((reply.trips, reply.commands), (0, 0));
    let clock = sim.clock();
    sim.block_on(clock.sleep_until(clock.now() + 2 * SECOND));
    let error = ask(&second, &[3], &old).unwrap_err();
    assert_eq!(error.to_string(), "no reply to `HMGET user:{id}` of the last 1s is remembered");
    let patient = call(Reads::Stale(StaleReads::new(3 * SECOND)));
    assert!(ask(&second, &[3], &patient).is_ok() && ask(&first, &[], &patient).is_ok());
    let Reads::Stale(used) = &patient.reads else { panic!("made so") };
    assert_eq!(used.oldest(), 2 * SECOND);
}
