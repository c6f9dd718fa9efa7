//! A recipe that was put over Deriva's service is one recipe, whatever service and address it is met by.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use anabranch_content::{Collect as Terms, Value};
use anabranch_recipe::{
    Address, DerivaRecipe, Draft, DraftInput, FunctionId, Functions, Invalidate, Reach, Recipe, Source,
    UnknownFunction,
};
use anabranch_server::{Client, ClientError, Code, Settings};
use bytes::Bytes;
use futures_util::stream;

use crate::deriva_wire::{
    Collect, CollectAnswer, Data, Deriva, Flag, Nothing, Pins, PutRecipe, StatusAnswer,
};
use crate::support::{Server, soon};

async fn started() -> (Server, Deriva, Client) {
    let server = Server::start().await;
    let (deriva, client) = (Deriva(server.channel().await), server.client().await);
    (server, deriva, client)
}

fn theirs(function: &str, inputs: &[Address], params: &[(&str, &str)]) -> DerivaRecipe {
    let params: BTreeMap<_, _> =
        params.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
    DerivaRecipe { function: FunctionId::new(function, "1.0.0"), inputs: inputs.to_vec(), params }
}

/// The same recipe in our own terms.
fn ours(theirs: &DerivaRecipe) -> Recipe {
    let params = theirs.params.iter().map(|(name, text)| (name.clone(), Value::Text(text.clone())));
    let (function, inputs) = (theirs.function.clone(), theirs.inputs.clone());
    Recipe { function, inputs, params: params.collect() }
}

async fn put(deriva: &Deriva, theirs: &DerivaRecipe) -> Address {
    let request = PutRecipe {
        function_name: theirs.function.name.clone(),
        function_version: theirs.function.version.clone(),
        inputs: theirs.inputs.iter().map(|input| input.as_bytes().to_vec()).collect(),
        params: theirs.params.clone().into_iter().collect::<HashMap<_, _>>(),
    };
    let put: Data = deriva.call("PutRecipe", request).await.unwrap();
    assert_eq!(put.data, theirs.address().as_bytes());
    theirs.address()
}

async fn flag(deriva: &Deriva, method: &'static str, address: &Address) -> bool {
    deriva.call::<_, Flag>(method, Data { data: address.as_bytes().to_vec() }).await.unwrap().yes
}

async fn listed(deriva: &Deriva) -> Vec<Address> {
    let pins: Pins = deriva.call("ListPins", Nothing {}).await.unwrap();
    assert_eq!(pins.count, pins.addrs.len() as u64);
    pins.addrs.iter().map(|pin| Address::from_bytes(pin.as_slice().try_into().unwrap())).collect()
}

async fn status(deriva: &Deriva) -> StatusAnswer {
    deriva.call("Status", Nothing {}).await.unwrap()
}

async fn text(client: &Client, address: Address) -> Result<Bytes, ClientError> {
    client.get(address, 0..u64::MAX, None).await?.bytes().await
}

/// Collects everything that nothing holds, however young.
async fn collect_all(client: &Client) {
    client.collect(&Terms { grace: Duration::ZERO, ..Terms::default() }).await.unwrap();
}

/// Two recipes of Deriva's, one of which reads the other.
async fn two(deriva: &Deriva) -> (DerivaRecipe, DerivaRecipe) {
    let leaf = Address::of(b"leaf");
    deriva.leaf("leaf").await;
    let below = theirs("uppercase", &[leaf], &[]);
    let above = theirs("repeat", &[below.address()], &[("count", "2")]);
    put(deriva, &below).await;
    put(deriva, &above).await;
    (below, above)
}

#[tokio::test]
async fn our_service_gets_and_resolves_derivas_address() {
    let (_server, deriva, client) = started().await;
    let (below, above) = two(&deriva).await;
    assert_eq!(text(&client, above.address()).await.unwrap(), "LEAFLEAF");
    assert_eq!(text(&client, below.address()).await.unwrap(), "LEAF");
    for recipe in [&below, &above] {
        let resolved = client.resolve(recipe.address()).await.unwrap();
        assert_eq!(resolved.recipe, Some(ours(recipe)));
        assert_eq!(resolved.memo.map(|memo| memo.output), Some(value(recipe)));
    }
    let range = client.get(above.address(), 2..5, None).await.unwrap();
    assert_eq!((range.output, range.source), (Address::of(b"LEAFLEAF"), Source::Memo));
    assert_eq!(range.bytes().await.unwrap(), "AFL");
}

fn value(recipe: &DerivaRecipe) -> Address {
    match recipe.function.name.as_str() {
        "repeat" => Address::of(b"LEAFLEAF"),
        _ => Address::of(b"LEAF"),
    }
}

#[tokio::test]
async fn what_is_put_over_both_services_is_one_recipe() {
    let (_server, deriva, client) = started().await;
    let (_, above) = two(&deriva).await;
    let recipe = ours(&above);
    let inputs = recipe.inputs.iter().copied().map(DraftInput::Address).collect();
    let draft = Draft { function: recipe.function.clone(), inputs, params: recipe.params.clone() };
    let added = client.add_all(&[draft], UnknownFunction::Refuse).await.unwrap().remove(0);
    assert_eq!((added.address, added.new), (recipe.address().unwrap(), false));
    assert_eq!(added.dangling, [], "an alias is a recipe");
    let computed = client.get(above.address(), 0..u64::MAX, None).await.unwrap();
    assert_eq!(computed.source, Source::Computed(2));
    let again = client.get(added.address, 0..u64::MAX, None).await.unwrap();
    assert_eq!(again.source, Source::Memo);
    assert_eq!(status(&deriva).await.recipe_count, 2);
}

#[tokio::test]
async fn derivas_address_is_an_input_of_our_recipes() {
    let (_server, deriva, client) = started().await;
    let (below, above) = two(&deriva).await;
    let inputs = vec![DraftInput::Address(above.address()), DraftInput::Address(below.address())];
    let draft = Draft { function: FunctionId::new("concat", "1.0.0"), inputs, params: BTreeMap::new() };
    let added = client.add_all(&[draft], UnknownFunction::Refuse).await.unwrap().remove(0);
    assert_eq!(added.dangling, []);
    assert_eq!(text(&client, added.address).await.unwrap(), "LEAFLEAFLEAF");
    assert_eq!(deriva.get(added.address.as_bytes()).await.unwrap(), b"LEAFLEAFLEAF");
    // What is made from a recipe is known whichever address it is read by.
    let terms = Invalidate { reach: Reach::Dependents, ..Invalidate::default() };
    let forgotten = client.invalidate(below.address(), &terms).await.unwrap();
    assert_eq!((forgotten.was_remembered, forgotten.forgotten), (true, 3));
}

#[tokio::test]
async fn a_name_may_mean_derivas_address() {
    let (_server, deriva, client) = started().await;
    let (_, above) = two(&deriva).await;
    client.set_ref("top", Some(above.address())).await.unwrap();
    collect_all(&client).await;
    let got = client.get(anabranch_server::Target::Name("top".to_owned()), 0..u64::MAX, None).await.unwrap();
    assert_eq!(got.bytes().await.unwrap(), "LEAFLEAF");
    assert_eq!(deriva.get(above.address().as_bytes()).await.unwrap(), b"LEAFLEAF");
    client.set_ref("top", None).await.unwrap();
}

/// A list of pins is bounded; its count is not.
#[tokio::test]
async fn pins_beyond_the_limit_are_counted_only() {
    let settings = Settings { addresses_most: 3, ..Settings::default() };
    let server = Server::with(Functions::builtin(), settings).await;
    let deriva = Deriva(server.channel().await);
    for number in 1..=5_u8 {
        assert!(flag(&deriva, "Pin", &Address::of(&[number])).await);
        let pins: Pins = deriva.call("ListPins", Nothing {}).await.unwrap();
        assert_eq!((pins.addrs.len(), pins.count), (usize::from(number.min(3)), u64::from(number)));
    }
    let collected: CollectAnswer = deriva.call("GarbageCollect", Collect::default()).await.unwrap();
    assert_eq!(collected.pinned_count, 5);
}

/// However often and over whichever service it is pinned, a recipe has one pin.
#[tokio::test]
async fn a_pin_counts_once() {
    let (server, deriva, client) = started().await;
    let (below, above) = two(&deriva).await;
    assert!(flag(&deriva, "Pin", &above.address()).await);
    assert!(!flag(&deriva, "Pin", &above.address()).await);
    assert!(!client.pin(above.address()).await.unwrap(), "it is pinned already");
    assert!(!client.pin(ours(&above).address().unwrap()).await.unwrap(), "it is the same recipe");
    assert_eq!(server.executor.status().store.pins, 1);
    let pins = client.pins(None, 100).await.unwrap();
    assert_eq!(pins.len(), 1, "{pins:?}");
    assert_eq!(text(&client, pins[0]).await.unwrap(), "LEAFLEAF");
    assert_eq!(listed(&deriva).await, [above.address()]);
    assert!(client.pin(below.address()).await.unwrap());
    assert!(!flag(&deriva, "Pin", &below.address()).await);
    assert_eq!(server.executor.status().store.pins, 2);
    let mut both = listed(&deriva).await;
    both.sort();
    let mut expected = [above.address(), below.address()];
    expected.sort();
    assert_eq!(both, expected);
    let collected: CollectAnswer = deriva.call("GarbageCollect", Collect::default()).await.unwrap();
    assert_eq!(collected.pinned_count, 2);
}

#[tokio::test]
async fn our_service_unpins_derivas_address() {
    let (server, deriva, client) = started().await;
    let (_, above) = two(&deriva).await;
    flag(&deriva, "Pin", &above.address()).await;
    assert!(client.unpin(above.address()).await.unwrap(), "it was pinned");
    assert!(!client.unpin(above.address()).await.unwrap());
    assert!(!flag(&deriva, "Unpin", &above.address()).await);
    assert_eq!((listed(&deriva).await, server.executor.status().store.pins), (vec![], 0));
    client.pin(above.address()).await.unwrap();
    assert!(flag(&deriva, "Unpin", &above.address()).await);
    assert_eq!((listed(&deriva).await, server.executor.status().store.pins), (vec![], 0));
}

/// Deriva pins what it has never seen.
#[tokio::test]
async fn a_pin_before_the_put_is_a_pin_of_the_recipe() {
    let (server, deriva, client) = started().await;
    deriva.leaf("leaf").await;
    let recipe = theirs("uppercase", &[Address::of(b"leaf")], &[]);
    let address = recipe.address();
    assert!(flag(&deriva, "Pin", &address).await);
    assert_eq!(listed(&deriva).await, [address]);
    put(&deriva, &recipe).await;
    assert!(!flag(&deriva, "Pin", &address).await, "it is pinned already");
    assert_eq!((listed(&deriva).await, server.executor.status().store.pins), (vec![address], 1));
    collect_all(&client).await;
    assert_eq!(deriva.get(address.as_bytes()).await.unwrap(), b"LEAF", "the pin holds the recipe");
    assert!(flag(&deriva, "Unpin", &address).await, "it was pinned");
    assert!(!flag(&deriva, "Unpin", &address).await);
    assert_eq!((listed(&deriva).await, server.executor.status().store.pins), (vec![], 0));
    collect_all(&client).await;
    assert_eq!(deriva.get(address.as_bytes()).await.unwrap_err().code(), Code::NotFound);
}

/// A pin of our own service holds what only Deriva's address leads to, and gives it up.
#[tokio::test]
async fn a_pin_of_an_alias_holds_all_that_it_takes() {
    let (_server, deriva, client) = started().await;
    let (_, above) = two(&deriva).await;
    let other = theirs("reverse", &[Address::of(b"other")], &[]);
    deriva.leaf("other").await;
    put(&deriva, &other).await;
    client.pin(above.address()).await.unwrap();
    collect_all(&client).await;
    assert_eq!(text(&client, above.address()).await.unwrap(), "LEAFLEAF");
    assert_eq!(text(&client, other.address()).await.unwrap_err().code(), Some(Code::NotFound));
    assert_eq!(deriva.get(other.address().as_bytes()).await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test]
async fn blobs_are_counted_as_they_were_put() {
    let (_server, deriva, _client) = started().await;
    for number in 0..6 {
        let bytes = format!("leaf {number}");
        deriva.leaf(bytes.clone()).await;
        put(&deriva, &theirs("identity", &[Address::of(bytes.as_bytes())], &[])).await;
    }
    let counted = status(&deriva).await;
    assert_eq!((counted.blob_count, counted.recipe_count), (6, 6));
    let terms = Collect { grace_period_secs: 300, ..Collect::default() };
    let collected: CollectAnswer = deriva.call("GarbageCollect", terms).await.unwrap();
    assert_eq!((collected.live_blobs, collected.live_recipes), (6, 6));
}

#[tokio::test]
async fn a_recipe_put_before_and_after_its_input_counts_once() {
    let (_server, deriva, _client) = started().await;
    let below = theirs("uppercase", &[Address::of(b"leaf")], &[]);
    let above = theirs("identity", &[below.address()], &[]);
    put(&deriva, &above).await;
    put(&deriva, &below).await;
    assert_eq!(status(&deriva).await.recipe_count, 2);
    put(&deriva, &above).await;
    deriva.leaf("leaf").await;
    put(&deriva, &above).await;
    put(&deriva, &below).await;
    assert_eq!(status(&deriva).await.recipe_count, 2);
    assert_eq!(deriva.get(above.address().as_bytes()).await.unwrap(), b"LEAF");
    // Two by recipe, one by call.
    assert_eq!(status(&deriva).await.cache_entries, 3);
}

#[tokio::test]
async fn an_alias_is_exported_as_its_recipe() {
    let (_server, deriva, client) = started().await;
    let (_, above) = two(&deriva).await;
    let mut export = client.export([above.address().into()]).await.unwrap();
    let mut archive = Vec::new();
    while let Some(piece) = soon(export.next()).await {
        archive.push(Ok::<_, std::convert::Infallible>(piece.unwrap()));
    }
    let (_other, other_deriva, other_client) = started().await;
    other_client.import(stream::iter(archive), &anabranch_content::Import::default()).await.unwrap();
    assert_eq!(text(&other_client, above.address()).await.unwrap(), "LEAFLEAF");
    assert_eq!(other_deriva.get(above.address().as_bytes()).await.unwrap(), b"LEAFLEAF");
}
