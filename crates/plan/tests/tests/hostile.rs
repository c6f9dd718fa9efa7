//! Captures that nobody took: parts put together by somebody else, or by another version.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use anabranch_content::{Address, Class, Config as StoreConfig, Context, Store, Value as Canonical};
use anabranch_plan_inspect::capture::{Capture, Error, Replayer, captures};
use anabranch_testkit::{Rng, Sim};
use expect_test::expect;

use crate::capture::{small_plan, take};

fn block_on<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn store() -> Store {
    Store::in_memory(StoreConfig::default()).unwrap()
}

/// A capture of a small plan.
async fn captured(store: &Store) -> Address {
    let sim = Sim::new(1);
    take(&sim, &small_plan(&sim), 2).write(store, Some("live")).await.unwrap()
}

/// The address of a part of the capture.
async fn part(store: &Store, capture: Address, name: &str) -> Vec<u8> {
    let described = store.derivation(&capture).await.unwrap().unwrap();
    let Ok(Canonical::Map(parts)) = Canonical::decode(&described.bytes) else { panic!("no map") };
    let Canonical::Address(address) = parts[name] else { panic!("no address") };
    store.get(&address).await.unwrap().unwrap().to_vec()
}

/// The capture with another part, if that can be read.
async fn with(store: &Store, capture: Address, name: &str, bytes: Vec<u8>) -> Result<Capture, Error> {
    let described = store.derivation(&capture).await.unwrap().unwrap();
    let Ok(Canonical::Map(mut parts)) = Canonical::decode(&described.bytes) else { panic!("no map") };
    let address = store.put(bytes, Class::Acknowledged).await.unwrap().address;
    parts.insert(name.to_owned(), Canonical::Address(address));
    let bytes = Canonical::Map(parts).encode().unwrap();
    let changed = store.put_derivation(Context(&described.context), bytes).await.unwrap();
    Capture::load(store, changed).await
}

/// The output of a future that has all it needs; `None` if it never ends.
async fn soon<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut polls = 0;
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending if polls == 1_000 => Poll::Ready(None),
        Poll::Pending => {
            polls += 1;
            context.waker().wake_by_ref();
            Poll::Pending
        }
    })
    .await
}

#[test]
fn changed_replies_are_refused_or_replayed() {
    let (store, replayer) = (store(), Replayer::default());
    block_on(async {
        let capture = captured(&store).await;
        let replies = part(&store, capture, "replies").await;
        let (mut rng, mut read) = (Rng::new(5), 0);
        for _ in 0..3_000 {
            let mut bytes = replies.clone();
            for _ in 0..rng.within(1..3) {
                let at = rng.within(0..bytes.len() as u64) as usize;
                bytes[at] = if rng.percent(70) { rng.within(0..6) as u8 } else { rng.within(0..256) as u8 };
            }
            let Ok(changed) = with(&store, capture, "replies", bytes).await else { continue };
            read += 1;
            let replayed = soon(replayer.replay(&changed)).await.expect("it ends").unwrap();
            let text = String::from_utf8_lossy(&replayed.bytes).into_owned();
            assert!(!text.contains("panic"), "{text}");
            for row in [2, 5] {
                let _ = soon(replayer.why(&changed, row)).await.expect("it ends");
            }
        }
        assert!(read > 100, "{read}");
    });
}

#[test]
fn a_failure_of_no_node_of_the_plan_is_told() {
    let (store, replayer) = (store(), Replayer::default());
    block_on(async {
        let capture = captured(&store).await;
        let Ok(Canonical::Map(mut outcome)) = Canonical::decode(&part(&store, capture, "outcome").await)
        else {
            panic!("no map")
        };
        let failure = [("node", "nobody"), ("text", "node `nobody` (sort): it is tired")];
        let failure = failure.map(|(name, text)| (name.to_owned(), Canonical::Text(text.to_owned())));
        outcome.insert("failure".to_owned(), Canonical::Map(failure.into()));
        let bytes = Canonical::Map(outcome).encode().unwrap();
        let changed = with(&store, capture, "outcome", bytes).await.unwrap();
        let replayed = soon(replayer.replay(&changed)).await.expect("it ends").unwrap();
        expect!["node `nobody` does not fail now, as it did when it was captured"]
            .assert_eq(&String::from_utf8_lossy(&replayed.bytes));
        assert!(!replayed.same);
    });
}

#[test]
fn what_reads_a_set_and_is_no_member_hides_nothing() {
    let store = store();
    block_on(async {
        let capture = captured(&store).await;
        let set = store.named("captures/live").await.unwrap().unwrap();
        for other in 0..20 {
            let described = Canonical::List(vec![Canonical::Int(other), Canonical::Address(set)]);
            let described = described.encode().unwrap();
            store.put_derivation(Context("something else"), described).await.unwrap();
        }
        let mut members = captures(&store, "live").await.unwrap();
        assert_eq!(members.next(1).await.unwrap(), [capture]);
        assert_eq!(members.next(1).await.unwrap(), []);
        assert_eq!(captures(&store, "live").await.unwrap().count().await.unwrap(), 1);
    });
}
