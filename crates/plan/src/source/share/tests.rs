use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use anabranch_engine::clock::Clock;
use anabranch_rows::{Batch, Column, Key, Kind, Rows};
use anabranch_testkit::{Rng, Sim};
use futures_util::future::{Either, join_all, select};

use super::{Flight, Progress, Shared};
use crate::call::Call;
use crate::request::Request;
use crate::source::{
    Bound, Data, Error, Fetch, Field, Keys, Lists, Pattern, Read, ReadContext, Reader, Reply,
};

/// A store of `id * 10` and `"t{id}"` under each id, which takes its time.
struct Slow {
    clock: Arc<dyn Clock>,
    rng: Mutex<Rng>,
    /// Every id of every trip.
    reads: Mutex<Vec<i64>>,
    fail_percent: u64,
}

impl Bound for Slow {
    fn fetch(&self, keys: Keys, _: ReadContext<'_>) -> Fetch {
        let Keys::Ids(ids) = keys else { panic!("ids make these keys") };
        self.reads.lock().unwrap().extend(&ids);
        let mut rng = self.rng.lock().unwrap();
        let reply = if rng.percent(self.fail_percent) {
            Err(Error::Connect { endpoint: "slow".into(), cause: "bad luck".into() })
        } else {
            let numbers = Column::ints(ids.iter().map(|id| (*id != 13).then_some(id * 10)));
            let texts = Column::texts(ids.iter().map(|id| Some(format!("t{id}"))));
            Ok(Reply::whole(Data::Columns(vec![numbers, texts]), 1, ids.len() as u32))
        };
        if rng.percent(20) {
            return Fetch::Ready(reply);
        }
        let done = self.clock.sleep_until(self.clock.now() + rng.micros(0..1_000));
        Fetch::Later(Box::pin(async move {
            done.await;
            reply
        }))
    }
}

fn call(sim: &Sim, tables: usize) -> Arc<Call> {
    let shared = (0..tables).map(|_| Shared::default()).collect();
    Arc::new(Call { shared, ..Call::of(Request::bare(1), sim.clock()) })
}

/// Readers by the user's and by the rows' ids that read the same; how many tables they need.
fn readers(store: &Arc<Slow>) -> (Vec<Reader>, usize) {
    let field = |name: &str, key, kind| Field { name: name.into(), key: Key(key), kind };
    let read = Read::Fields(Arc::new([field("n", 2, Kind::Int), field("t", 3, Kind::Text)]));
    let mut tables = 0;
    let first = Reader::new(&Pattern::of_id("user:"), &read, Arc::clone(store) as Arc<dyn Bound>);
    let mut second = Reader::new(&Pattern::of_user("user:"), &read, Arc::clone(store) as Arc<dyn Bound>);
    assert!(!first.is_shared());
    assert!(second.join(&first, &mut tables));
    let mut other = Reader::new(&Pattern::of_id("item:"), &read, Arc::clone(store) as Arc<dyn Bound>);
    assert!(!other.join(&first, &mut tables) && !other.is_shared());
    (vec![first, second], tables)
}

fn check(ids: &[i64], reply: &Reply) {
    let Data::Columns(columns) = &reply.data else { panic!("fields are columns") };
    let [Column::Int(numbers), Column::Text(texts)] = &columns[..] else { panic!("{columns:?}") };
    assert_eq!((numbers.len(), columns[1].len()), (ids.len(), ids.len()));
    for (row, id) in ids.iter().enumerate() {
        let number = (!columns[0].is_null(row)).then(|| numbers.value(row));
        assert_eq!(number, (*id != 13).then_some(id * 10));
        assert_eq!(texts.get(row), Some(&*format!("t{id}")));
    }
}

/// One request in which ten nodes read at random times. Some reads are cancelled halfway.
fn request(seed: u64, give_up_percent: u64, fail_percent: u64) {
    let sim = Sim::new(seed);
    let mut rng = Rng::new(seed);
    let rng_of_store = Mutex::new(Rng::new(seed + 1));
    let store =
        Arc::new(Slow { clock: sim.clock(), rng: rng_of_store, reads: Mutex::default(), fail_percent });
    let (readers, tables) = readers(&store);
    let call = call(&sim, tables);
    let clock = sim.clock();
    let now = clock.now();
    let mut wanted: Vec<i64> = Vec::new();
    let node = |_| {
        let by_user = rng.percent(20);
        let ids: Vec<i64> = (0..rng.within(0..8)).map(|_| rng.within(0..16) as i64).collect();
        let starts = now + rng.micros(0..1_500);
        let ends = now + rng.micros(0..2_500);
        let gives_up = rng.percent(give_up_percent);
        let ends = if gives_up { ends } else { now + Duration::from_secs(9) };
        let reader = readers[usize::from(by_user)].clone();
        let expected = if by_user { vec![1; ids.len()] } else { ids.clone() };
        if !gives_up {
            wanted.extend(&expected);
        }
        let (call, clock) = (Arc::clone(&call), sim.clock());
        async move {
            clock.sleep_until(starts).await;
            let rows = Rows::new(Batch::new(ids));
            let reply = match reader.read(&rows, &call) {
                Fetch::Ready(reply) => reply,
                Fetch::Later(reply) => match select(reply, clock.sleep_until(ends)).await {
                    Either::Left((reply, _)) => reply,
                    Either::Right(_) => {
                        assert!(gives_up, "a read that is waited for comes to an end");
                        return;
                    }
                },
            };
            match reply {
                Ok(reply) => check(&expected, &reply),
                Err(error) => assert!(matches!(error, Error::Connect { .. }) && fail_percent > 0),
            }
        }
    };
    let nodes: Vec<_> = (0..10).map(node).collect();
    sim.block_on(join_all(nodes));
    let mut reads = store.reads.lock().unwrap().clone();
    reads.sort_unstable();
    if give_up_percent == 0 && fail_percent == 0 {
        wanted.sort_unstable();
        wanted.dedup();
        assert_eq!(reads, wanted, "each id that is wanted is read once");
        let counted = call.tally.commands.load(std::sync::atomic::Ordering::Relaxed);
        assert_eq!(counted as usize, wanted.len());
    }
}

#[test]
fn each_id_is_read_once() {
    (0..500).for_each(|seed| request(seed, 0, 0));
}

#[test]
fn what_is_given_up_or_fails_is_read_by_others() {
    (0..500).for_each(|seed| request(seed, 40, 0));
    (0..500).for_each(|seed| request(seed, 30, 30));
}

/// The lists of a reply, each with its scores.
fn lists(progress: Progress) -> Lists {
    match progress {
        Progress::Done(Data::Lists(lists)) => lists,
        _ => panic!("all of it is here"),
    }
}

#[test]
fn lists_of_several_trips_are_put_together() {
    let sim = Sim::new(1);
    let call = call(&sim, 1);
    let keys = |names: &[&str]| {
        let key = |name: &&str| (!name.is_empty()).then(|| Box::from(*name));
        Keys::Whole(names.iter().map(key).collect())
    };
    let reply = |lens: &[u32], ids: &[i64], scores: &[f64]| {
        Data::Lists(Lists { lens: lens.into(), ids: ids.into(), scores: Some(scores.into()) })
    };
    let first = Flight::new(Arc::clone(&call), 0);
    let asked = keys(&["a", "b", "", "a"]);
    assert!(matches!(first.progress(&asked), Progress::Mine(mine) if mine == keys(&["a", "b"])));
    let second = Flight::new(Arc::clone(&call), 0);
    assert!(matches!(second.progress(&keys(&["b"])), Progress::Wait));
    first.land(Reply::of(reply(&[1, 2], &[1, 2, 3], &[0.1, 0.2, 0.3])));
    let scores = Some(vec![0.1, 0.2, 0.3, 0.1]);
    assert_eq!(
        lists(first.progress(&asked)),
        Lists { lens: vec![1, 2, 0, 1], ids: vec![1, 2, 3, 1], scores }
    );
    let asked = keys(&["c", "b"]);
    assert!(matches!(second.progress(&asked), Progress::Mine(mine) if mine == keys(&["c"])));
    second.land(Reply::of(reply(&[1], &[9], &[0.9])));
    let scores = Some(vec![0.9, 0.2, 0.3]);
    assert_eq!(lists(second.progress(&asked)), Lists { lens: vec![1, 2], ids: vec![9, 2, 3], scores });
}

#[test]
fn a_lone_reader_uses_no_table() {
    let sim = Sim::new(1);
    let store = Arc::new(Slow {
        clock: sim.clock(),
        rng: Mutex::new(Rng::new(1)),
        reads: Mutex::default(),
        fail_percent: 0,
    });
    let read = Read::List { limit: 1 };
    let reader = Reader::new(&Pattern::of_id("user:"), &read, Arc::clone(&store) as Arc<dyn Bound>);
    let rows = Rows::new(Batch::new(vec![5, 5]));
    let _ = reader.read(&rows, &call(&sim, 1));
    assert_eq!(*store.reads.lock().unwrap(), [5, 5]);
}
