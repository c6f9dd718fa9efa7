//! Deep and wide graphs over gRPC. Deriva's server dies at a depth of 866.

use std::time::Duration;

use anabranch_engine::clock::Clock;
use anabranch_recipe::{Address, Draft, DraftInput, FunctionId, Params, Source, UnknownFunction};
use anabranch_server::Client;

use crate::support::{Server, soon};

fn draft(function: &str, inputs: Vec<DraftInput>) -> Draft {
    Draft { function: FunctionId::new(function, "1.0.0"), inputs, params: Params::new() }
}

/// Adds a chain over a leaf, many recipes a call; answers its tip.
async fn chain(client: &Client, leaf: Address, depth: usize) -> Address {
    const PART: usize = 50_000;
    let mut tip = leaf;
    for first in (0..depth).step_by(PART) {
        let input =
            |place: usize| if place == 0 { DraftInput::Address(tip) } else { DraftInput::Earlier(place - 1) };
        let part = PART.min(depth - first);
        let drafts: Vec<Draft> = (0..part).map(|place| draft("identity", vec![input(place)])).collect();
        let added = client.add_all(&drafts, UnknownFunction::Refuse).await.unwrap();
        tip = added.last().unwrap().address;
    }
    tip
}

/// The time to get the tip of a chain.
async fn time_of(client: &Client, clock: &dyn Clock, text: &str, depth: usize) -> Duration {
    let leaf = client.put(text.to_owned()).await.unwrap().address;
    let tip = chain(client, leaf, depth).await;
    let began = clock.now();
    let got = soon(client.get(tip, 0..u64::MAX, None)).await.unwrap();
    let took = clock.now() - began;
    // Each has an equal input, so that one call serves them all.
    assert_eq!(got.source, Source::Computed(1));
    assert_eq!(got.bytes().await.unwrap(), text);
    took
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn chains_of_any_depth_in_linear_time() {
    let server = Server::start().await;
    let client = server.client().await;
    let clock = &**server.executor.engine().clock();
    for depth in [50, 1_000] {
        time_of(&client, clock, &format!("below {depth}"), depth).await;
    }
    // Ten times as deep takes ten times as long; a hundred times, were it quadratic. A machine that is busy for a part of
    // the time is not busy in every round.
    let mut took = Vec::new();
    for round in 0..10 {
        let [some, many] = [10_000, 100_000].map(|depth| (format!("below {depth}, {round}"), depth));
        let some = time_of(&client, clock, &some.0, some.1).await;
        let many = time_of(&client, clock, &many.0, many.1).await;
        if many < some * 40 {
            return;
        }
        took.push([some, many]);
    }
    panic!("{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fan_of_a_hundred_thousand() {
    let server = Server::start().await;
    let client = server.client().await;
    let leaves: Vec<Address> = {
        let mut leaves = Vec::new();
        for number in 0..100u8 {
            leaves.push(client.put(vec![number]).await.unwrap().address);
        }
        leaves
    };
    let count = 100_000;
    // A recipe of its own for each: they differ in what they read.
    let mut drafts: Vec<Draft> = Vec::with_capacity(count + 1);
    for place in 0..count {
        let mut inputs = vec![DraftInput::Address(leaves[place % 100])];
        if place >= 100 {
            inputs.push(DraftInput::Earlier(place / 100 - 1));
        }
        drafts.push(draft("select", inputs));
        let index = anabranch_recipe::Value::Text("0".to_owned());
        drafts[place].params.insert("index".to_owned(), index);
    }
    drafts.push(draft("concat", (0..count).map(DraftInput::Earlier).collect()));
    let added = client.add_all(&drafts, UnknownFunction::Refuse).await.unwrap();
    let got = soon(client.get(added[count].address, 0..u64::MAX, None)).await.unwrap();
    let bytes = got.bytes().await.unwrap();
    assert!(
        bytes.len() == count && bytes.iter().zip(0..).all(|(byte, place)| usize::from(*byte) == place % 100)
    );
    assert_eq!(server.executor.status().computing, 0);
}
