//! Our own service, through its client.

use std::time::Duration;

use anabranch_content::{Collect, DryRun, Import, RemovalReason, Scope, Scrub, Value};
use anabranch_recipe::{
    Address, Draft, DraftInput, Event, FunctionId, Functions, Invalidate, Notice, Reach, Source,
    UnknownFunction,
};
use anabranch_server::{Client, ClientError, Code, Settings, Target, ValuePiece};
use bytes::Bytes;
use futures_util::stream;

use crate::support::{Gate, OpenOnDrop, Server, beside, noise, soon, until};

const ALL: std::ops::Range<u64> = 0..u64::MAX;

async fn started() -> (Server, Client) {
    let server = Server::start().await;
    let client = server.client().await;
    (server, client)
}

fn draft(function: &str, inputs: &[DraftInput]) -> Draft {
    Draft {
        function: FunctionId::new(function, "1.0.0"),
        inputs: inputs.to_vec(),
        params: Default::default(),
    }
}

async fn one(client: &Client, function: &str, input: Address) -> Address {
    let draft = draft(function, &[DraftInput::Address(input)]);
    client.add_all(&[draft], UnknownFunction::Accept).await.unwrap()[0].address
}

async fn text(client: &Client, target: impl Into<Target>) -> Result<Bytes, ClientError> {
    client.get(target, ALL, None).await?.bytes().await
}

#[tokio::test]
async fn puts_of_any_size() {
    let (_server, client) = started().await;
    for len in [0, 1, 300_000, 10_000_000] {
        let bytes = noise(len, 3);
        let put = client.put(bytes.clone()).await.unwrap();
        assert_eq!((put.address, put.len, put.new), (Address::of(&bytes), len as u64, true));
        assert!(!client.put(bytes.clone()).await.unwrap().new);
        assert!(text(&client, put.address).await.unwrap() == bytes, "{len}");
    }
}

#[tokio::test]
async fn a_stream_that_fails_leaves_nothing() {
    let (server, client) = started().await;
    let pieces = [Ok(Bytes::from_static(b"half")), Err(std::io::Error::other("the tape tore"))];
    let failed = client.put_stream(stream::iter(pieces)).await.unwrap_err();
    assert!(
        matches!(&failed, ClientError::Source(cause) if cause.to_string() == "the tape tore"),
        "{failed}"
    );
    assert_eq!(server.executor.status().store.blobs, 0);
    let settings = Settings { blob_most: 1000, ..Settings::default() };
    let small = Server::with(Functions::builtin(), settings).await;
    let refused = small.client().await.put(vec![0; 1001]).await.unwrap_err();
    assert_eq!(refused.code(), Some(Code::OutOfRange));
    assert_eq!(refused.to_string(), "a blob may have up to 1000 bytes, and this one has more");
}

#[tokio::test]
async fn a_batch_of_recipes_that_read_each_other() {
    let (_server, client) = started().await;
    let leaf = client.put("ab").await.unwrap().address;
    let missing = Address::of(b"missing");
    let drafts = [
        draft("uppercase", &[DraftInput::Address(leaf)]),
        draft("concat", &[DraftInput::Earlier(0), DraftInput::Address(leaf), DraftInput::Earlier(0)]),
        draft("identity", &[DraftInput::Address(missing)]),
    ];
    let added = client.add_all(&drafts, UnknownFunction::Refuse).await.unwrap();
    assert!(added.iter().all(|added| added.new));
    assert_eq!(added[2].dangling, [missing]);
    assert_eq!(text(&client, added[1].address).await.unwrap(), "ABabAB");
    let again = client.add_all(&drafts, UnknownFunction::Refuse).await.unwrap();
    assert!(again.iter().all(|added| !added.new));
    let forward = [draft("identity", &[DraftInput::Earlier(0)])];
    let refused = client.add_all(&forward, UnknownFunction::Refuse).await.unwrap_err();
    assert_eq!(refused.code(), Some(Code::InvalidArgument));
    let unknown = [draft("uppercas", &[DraftInput::Address(leaf)])];
    let refused = client.add_all(&unknown, UnknownFunction::Refuse).await.unwrap_err();
    assert_eq!(refused.code(), Some(Code::FailedPrecondition));
    assert!(refused.to_string().contains("did you mean `uppercase/1.0.0`?"), "{refused}");
    assert!(client.add_all(&unknown, UnknownFunction::Accept).await.unwrap()[0].new);
}

#[tokio::test]
async fn parameters_keep_their_types() {
    let (_server, client) = started().await;
    let mut draft = draft("anything", &[]);
    let map = Value::Map([("a".to_owned(), Value::Float(0.5))].into());
    let params = [
        ("text", Value::Text("1".to_owned())),
        ("int", Value::Int(-1)),
        ("bool", Value::Bool(true)),
        ("float", Value::Float(1.0)),
        ("bytes", Value::Bytes(Bytes::from_static(b"\x00\xff"))),
        ("list", Value::List(vec![Value::Int(1), map])),
    ];
    draft.params = params.map(|(name, value)| (name.to_owned(), value)).into();
    let added = client.add_all(std::slice::from_ref(&draft), UnknownFunction::Accept).await.unwrap();
    let resolved = client.resolve(added[0].address).await.unwrap();
    assert_eq!(resolved.address, added[0].address);
    let recipe = resolved.recipe.unwrap();
    assert_eq!((recipe.function, recipe.params), (draft.function.clone(), draft.params.clone()));
    assert_eq!(resolved.memo, None);
    draft.params.insert("null".to_owned(), Value::Null);
    let refused = client.add_all(&[draft], UnknownFunction::Accept).await.unwrap_err();
    assert!(matches!(refused, ClientError::Request(_)), "{refused}");
}

#[tokio::test]
async fn values_say_where_they_came_from() {
    let (_server, client) = started().await;
    let leaf = client.put("some text").await.unwrap().address;
    let recipe = one(&client, "uppercase", leaf).await;
    for (target, source) in [(leaf, Source::Blob), (recipe, Source::Computed(1)), (recipe, Source::Memo)] {
        let got = client.get(target, ALL, None).await.unwrap();
        assert_eq!((got.source, got.size), (source, 9));
    }
    let memo = client.resolve(recipe).await.unwrap().memo.unwrap();
    assert_eq!((memo.output, memo.size), (Address::of(b"SOME TEXT"), 9));
    let part = client.get(recipe, 5..7, None).await.unwrap();
    assert_eq!((part.size, part.bytes().await.unwrap()), (9, Bytes::from_static(b"TE")));
    assert_eq!(client.get(recipe, 20..30, None).await.unwrap().bytes().await.unwrap(), "");
    let large = noise(2_000_000, 9);
    let address = client.put(large.clone()).await.unwrap().address;
    let part = client.get(address, 999_999..1_500_001, None).await.unwrap().bytes().await.unwrap();
    assert!(part == large[999_999..1_500_001]);
    let refused = text(&client, Address::of(b"no")).await.unwrap_err();
    assert_eq!(refused.code(), Some(Code::NotFound));
}

#[tokio::test]
async fn who_does_not_read_on_keeps_nobody_waiting() {
    let gate = Gate::default();
    let _open = OpenOnDrop(gate.clone());
    let server = Server::with(gate.functions(), Settings::default()).await;
    let (slow, other) = (server.client().await, server.client().await);
    let large = slow.put(noise(30_000_000, 4)).await.unwrap().address;
    let leaf = slow.put("shared").await.unwrap().address;
    let shared = one(&slow, "gate", leaf).await;
    let mut many = slow.get_many([large, shared].map(Target::from)).await.unwrap();
    soon(many.next()).await.unwrap().unwrap();
    until(|| server.executor.status().computing == 1).await;
    let waiting = beside(async move { text(&other, shared).await.unwrap() });
    until(|| server.executor.status().gets == 3).await;
    gate.open();
    assert_eq!(waiting.done().await, "shared");
}

#[tokio::test]
async fn several_values_in_one_call() {
    let (_server, client) = started().await;
    let large = noise(600_000, 4);
    let (one_leaf, two) =
        (client.put("one").await.unwrap().address, client.put(large.clone()).await.unwrap());
    let empty = client.put("").await.unwrap().address;
    let targets = [one_leaf, Address::of(b"no"), two.address, empty, one_leaf].map(Target::from);
    let mut many = client.get_many(targets).await.unwrap();
    let mut values: Vec<Result<Vec<u8>, Code>> = Vec::new();
    while let Some(piece) = many.next().await {
        let (index, piece) = piece.unwrap();
        match piece {
            ValuePiece::Header { .. } => values.push(Ok(Vec::new())),
            ValuePiece::Bytes(bytes) => {
                values.last_mut().unwrap().as_mut().unwrap().extend_from_slice(&bytes);
            }
            ValuePiece::Failed { code, .. } => values.push(Err(code)),
        }
        assert_eq!(index, values.len() - 1);
    }
    let expected =
        [Ok(b"one".to_vec()), Err(Code::NotFound), Ok(large.to_vec()), Ok(vec![]), Ok(b"one".to_vec())];
    assert!(values == expected);
    let too_many = client.get_many(vec![Target::Address(empty); 100_001]).await.unwrap_err();
    assert_eq!(too_many.code(), Some(Code::ResourceExhausted));
}

#[tokio::test]
async fn names_have_a_history() {
    let (_server, client) = started().await;
    let (one, two) = (client.put("1").await.unwrap().address, client.put("2").await.unwrap().address);
    client.set_ref("latest", Some(one)).await.unwrap();
    client.set_ref("latest", Some(two)).await.unwrap();
    client.set_ref("other name/ü", Some(one)).await.unwrap();
    assert_eq!(client.find("latest").await.unwrap(), two);
    assert_eq!(client.find(&one.to_string()).await.unwrap(), one);
    assert_eq!(text(&client, "latest").await.unwrap(), "2");
    let refs = client.refs().await.unwrap();
    assert_eq!(refs, [("latest".to_owned(), two), ("other name/ü".to_owned(), one)]);
    client.set_ref("latest", None).await.unwrap();
    let history: Vec<_> =
        client.history("latest").await.unwrap().into_iter().map(|named| named.address).collect();
    assert_eq!(history, [Some(one), Some(two), None]);
    let gone = client.find("latest").await.unwrap_err();
    assert_eq!(gone.code(), Some(Code::NotFound));
    let refused = client.set_ref("", Some(one)).await.unwrap_err();
    assert_eq!(refused.code(), Some(Code::InvalidArgument));
}

#[tokio::test]
async fn pins_and_collection() {
    let (_server, client) = started().await;
    let (held, loose) =
        (client.put("held").await.unwrap().address, client.put("loose").await.unwrap().address);
    assert!(client.pin(held).await.unwrap());
    assert!(!client.pin(held).await.unwrap());
    assert_eq!(client.pins(None, 10).await.unwrap(), [held]);
    assert_eq!(client.pins(Some(held), 10).await.unwrap(), []);
    assert_eq!(client.pins(None, 100_001).await.unwrap_err().code(), Some(Code::ResourceExhausted));
    let young = client.collect(&Collect::default()).await.unwrap();
    assert_eq!((young.blobs, young.young), (0, 1));
    let terms = Collect { grace: Duration::ZERO, ..Collect::default() };
    let dry = client.collect(&Collect { dry_run: DryRun::Yes, ..terms.clone() }).await.unwrap();
    assert_eq!(dry.removed, [loose]);
    let kept = client.collect(&Collect { scope: Scope::Derivable, ..terms.clone() }).await.unwrap();
    assert_eq!(kept.removed, []);
    let done = client.collect(&terms).await.unwrap();
    assert_eq!((done.removed, done.blobs, done.bytes), (vec![loose], 1, 5));
    assert!(client.unpin(held).await.unwrap());
    assert!(!client.unpin(held).await.unwrap());
}

#[tokio::test]
async fn invalidation_and_its_reach() {
    let (_server, client) = started().await;
    let leaf = client.put("x").await.unwrap().address;
    let below = one(&client, "uppercase", leaf).await;
    let above = one(&client, "identity", below).await;
    text(&client, above).await.unwrap();
    let terms = |reach, dry_run| Invalidate { reach, dry_run, detail: 10 };
    let dry = client.invalidate(leaf, &terms(Reach::Dependents, DryRun::Yes)).await.unwrap();
    assert_eq!((dry.forgotten, dry.depth, dry.was_remembered), (2, 2, false));
    let one = client.invalidate(below, &terms(Reach::DependentsAlone, DryRun::No)).await.unwrap();
    assert_eq!(one.addresses, [above]);
    let alone = client.invalidate(below, &terms(Reach::Alone, DryRun::No)).await.unwrap();
    assert_eq!((alone.was_remembered, alone.addresses), (true, vec![below]));
    assert_eq!(client.get(above, ALL, None).await.unwrap().source, Source::Computed(2));
}

#[tokio::test]
async fn archives_from_one_server_to_another() {
    let (_from, client) = started().await;
    let leaf = client.put(noise(3_000_000, 5)).await.unwrap().address;
    let recipe = one(&client, "identity", leaf).await;
    let value = text(&client, recipe).await.unwrap();
    client.set_ref("copy", Some(recipe)).await.unwrap();
    let mut exporting = client.export([Target::from(recipe), Address::of(b"no").into()]).await.unwrap();
    let mut archive = Vec::new();
    while let Some(piece) = exporting.next().await {
        archive.push(Ok::<_, std::io::Error>(piece.unwrap()));
    }
    let exported = exporting.exported().unwrap();
    assert_eq!((exported.derivations, exported.memos), (1, 1));
    assert_eq!(exported.missing, [Address::of(b"no")]);
    let other = Server::start().await;
    let to = other.client().await;
    let half: Vec<_> =
        archive[..2].iter().map(|piece| Ok::<_, std::io::Error>(piece.as_ref().unwrap().clone())).collect();
    let torn = to.import(stream::iter(half), &Import::default()).await.unwrap_err();
    assert_eq!(torn.code(), Some(Code::InvalidArgument), "{torn}");
    let again: Vec<_> =
        archive.iter().map(|it| Ok::<_, std::io::Error>(it.as_ref().unwrap().clone())).collect();
    let imported = to.import(stream::iter(again), &Import::default()).await.unwrap();
    assert!(imported.items >= 3, "{imported:?}");
    assert_eq!((imported.memos_left_out, &*imported.names[0].name), (1, "copy"));
    assert_eq!(to.get("copy", ALL, None).await.unwrap().source, Source::Computed(1));
    to.invalidate(recipe, &Invalidate { reach: Reach::Alone, ..Invalidate::default() }).await.unwrap();
    let trusting = Import { trust_memos: true, label: "trusted".to_owned(), ..Import::default() };
    let imported = to.import(stream::iter(archive), &trusting).await.unwrap();
    let got = to.get(recipe, ALL, None).await.unwrap();
    assert_eq!(got.source, Source::Memo);
    assert!(got.bytes().await.unwrap() == value);
    let labels: Vec<_> = to.imports().await.unwrap().into_iter().map(|it| (it.label, it.is_whole)).collect();
    assert_eq!(labels, [(String::new(), false), (String::new(), true), ("trusted".to_owned(), true)]);
    let dropped = to.drop_import(&imported.id.unwrap()).await.unwrap().unwrap();
    assert_eq!(dropped.memos, 1);
    assert!(to.drop_import("none").await.unwrap().is_none());
    let nonsense = to
        .import(stream::iter([Ok::<_, std::io::Error>(noise(1000, 6))]), &Import::default())
        .await
        .unwrap_err();
    assert_eq!(nonsense.code(), Some(Code::InvalidArgument), "{nonsense}");
}

#[tokio::test]
async fn names_are_set_if_they_are_as_expected() {
    let (_server, client) = started().await;
    let [first, second] = [Address::of(b"1"), Address::of(b"2")];
    assert!(client.set_ref_if("job", Some(first), None).await.unwrap());
    assert!(!client.set_ref("job", Some(first)).await.unwrap());
    let conflict = client.set_ref_if("job", Some(second), None).await.unwrap_err();
    assert_eq!(conflict.code(), Some(Code::Aborted), "{conflict}");
    assert!(client.set_ref_if("job", None, Some(first)).await.unwrap());
}

#[tokio::test]
async fn a_look_inside_a_server() {
    let (_server, client) = started().await;
    let leaf = client.put("inside").await.unwrap().address;
    let recipe = one(&client, "identity", leaf).await;
    text(&client, recipe).await.unwrap();
    let blobs = client.list_blobs(None, 10).await.unwrap();
    assert_eq!(blobs.iter().map(|it| (it.address, it.size)).collect::<Vec<_>>(), [(leaf, 6)]);
    assert_eq!(client.list_derivations(None, 10).await.unwrap()[0].address, recipe);
    let memos = client.list_memos(None, 10).await.unwrap();
    assert_eq!((memos[0].derivation, memos[0].output, memos[0].size), (recipe, leaf, 6));
    assert_eq!(client.list_blobs(Some(leaf), 10).await.unwrap(), []);
    assert_eq!(client.find_prefix(&recipe.to_string()[..7], 2).await.unwrap(), [recipe]);
    let held = client.remove(&leaf, DryRun::Yes).await.unwrap_err();
    assert_eq!(held.code(), Some(Code::FailedPrecondition), "{held}");
    client.set_ref("page", Some(recipe)).await.unwrap();
    client.set_ref("leaf", Some(leaf)).await.unwrap();
    client.pin(leaf).await.unwrap();
    let usage = client.usage(2, &[leaf, recipe, Address::of(b"nowhere")]).await.unwrap();
    assert_eq!((usage.put.bytes, usage.derivations, usage.memos, usage.held.blobs), (6, 1, 1, 1));
    assert_eq!((usage.roots_count, usage.roots.len()), (3, 2));
    let holders: Vec<_> = usage.holders.iter().map(|it| it.as_ref().map(|it| it.is_shared)).collect();
    assert_eq!(holders, [Some(true), Some(false), None]);
    client.unpin(leaf).await.unwrap();
    for name in ["page", "leaf"] {
        assert!(client.forget_ref(name).await.unwrap());
        assert!(!client.forget_ref(name).await.unwrap());
    }
    assert!(client.remove(&recipe, DryRun::Yes).await.unwrap().derivation);
    assert_eq!(client.would_remove(&leaf, &[recipe]).await.unwrap().blob, Some(6));
    assert!(client.remove(&recipe, DryRun::No).await.unwrap().derivation);
    assert_eq!(client.remove(&leaf, DryRun::No).await.unwrap().blob, Some(6));
}

#[tokio::test]
async fn a_resolved_recipe_has_the_state_of_its_value() {
    let (_server, client) = started().await;
    let leaf = client.put("inside").await.unwrap().address;
    let recipe = one(&client, "uppercase", leaf).await;
    assert_eq!(client.resolve(leaf).await.unwrap().size, Some(6));
    assert_eq!(client.resolve(Address::of(b"nowhere")).await.unwrap().size, None);
    let found = client.resolve(recipe).await.unwrap();
    assert_eq!((found.memo, found.size, found.removal), (None, None, None));
    text(&client, recipe).await.unwrap();
    assert_eq!(client.resolve(recipe).await.unwrap().size, Some(6));
    let terms = Invalidate { reach: Reach::Alone, dry_run: DryRun::No, detail: 0 };
    client.invalidate(recipe, &terms).await.unwrap();
    let found = client.resolve(recipe).await.unwrap();
    assert_eq!(found.removal.unwrap().why, RemovalReason::Invalidated);
    assert_eq!(client.status().await.unwrap().gets, 1, "a look is not a get");
}

#[tokio::test]
async fn an_unknown_name_is_told_from_a_missing_path() {
    let (_server, client) = started().await;
    let leaf = client.put("inside").await.unwrap().address;
    client.set_ref("leaf", Some(leaf)).await.unwrap();
    assert_eq!(client.look_up("leaf").await.unwrap(), Some(leaf));
    assert_eq!(client.look_up("nobody").await.unwrap(), None);
    assert_eq!(client.find("nobody").await.unwrap_err().code(), Some(Code::NotFound));
    let missing = client.look_up("leaf:inside").await.unwrap_err();
    assert_eq!(missing.code(), Some(Code::NotFound), "{missing}");
}

#[tokio::test]
async fn targets_may_be_the_beginning_of_an_address() {
    let (_server, client) = started().await;
    let leaf = client.put("inside").await.unwrap().address;
    let short = &leaf.to_string()[..6];
    assert_eq!(client.find(short).await.unwrap(), leaf);
    assert_eq!(client.resolve(&leaf.to_string()[..40]).await.unwrap().address, leaf);
    let none = client.find(&leaf.to_string()[..5]).await.unwrap_err();
    assert!(none.to_string().contains("its first 6 or more"), "{none}");
    let none = client.find("123456").await.unwrap_err();
    assert!(none.to_string().contains("no address here begins with it"), "{none}");
    // A name wins.
    let other = client.put("other").await.unwrap().address;
    client.set_ref(short, Some(other)).await.unwrap();
    assert_eq!(client.find(short).await.unwrap(), other);
}

#[tokio::test]
async fn one_archive_at_a_time() {
    let (_server, client) = started().await;
    let leaf = client.put(noise(30_000_000, 5)).await.unwrap().address;
    let mut first = client.export([Target::from(leaf)]).await.unwrap();
    first.next().await.unwrap().unwrap();
    let refused = client.export([Target::from(leaf)]).await.unwrap_err();
    assert_eq!(refused.code(), Some(Code::Unavailable));
    drop(first);
    soon(async {
        while client.export([Target::from(leaf)]).await.is_err() {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn events_are_heard() {
    let (server, client) = started().await;
    let mut hearing = client.events().await.unwrap();
    let leaf = client.put("x").await.unwrap().address;
    let recipe = one(&client, "uppercase", leaf).await;
    text(&client, recipe).await.unwrap();
    client.invalidate(recipe, &Invalidate::default()).await.unwrap();
    let failing = one(&client, "no_such", leaf).await;
    text(&client, failing).await.unwrap_err();
    let event = |heard| match heard {
        Notice::Event(event) => event,
        Notice::Lost(lost) => panic!("{lost} events were lost"),
    };
    assert_eq!(event(soon(hearing.next()).await.unwrap().unwrap()), Event::Added { address: recipe });
    let begun = Event::Begun { address: recipe, recipes: 1 };
    assert_eq!(event(soon(hearing.next()).await.unwrap().unwrap()), begun);
    let computed = event(soon(hearing.next()).await.unwrap().unwrap());
    let output = Address::of(b"X");
    assert!(
        matches!(computed, Event::Computed { address, output: to, size: 1, .. } if (address, to) == (recipe, output))
    );
    let forgotten = Event::Invalidated { address: recipe, count: 1 };
    assert_eq!(event(soon(hearing.next()).await.unwrap().unwrap()), forgotten);
    drop((server, client));
}

#[tokio::test]
async fn functions_status_and_scrub() {
    let (server, client) = started().await;
    let functions = client.functions().await.unwrap();
    let ours: Vec<_> =
        server.executor.functions().list().map(|function| function.signature().id.clone()).collect();
    assert_eq!(functions.iter().map(|signature| signature.id.clone()).collect::<Vec<_>>(), ours);
    let concat = functions.iter().find(|signature| signature.id.name == "concat").unwrap();
    let there = server.executor.functions().get(&concat.id).unwrap();
    assert_eq!(format!("{concat:?}"), format!("{:?}", there.signature()));
    let leaf = client.put("x").await.unwrap().address;
    let recipe = one(&client, "uppercase", leaf).await;
    text(&client, recipe).await.unwrap();
    let (here, there) = (client.status().await.unwrap(), server.executor.status());
    assert_eq!((here.store.blobs, here.store.derivations, here.store.memos), (2, 1, 1));
    assert_eq!((here.gets, here.computed, here.functions), (1, 1, there.functions));
    assert_eq!(here.store.used_bytes, there.store.used_bytes);
    let scrubbed = client.scrub(&Scrub { bytes_per_second: None }).await.unwrap();
    assert!(scrubbed.records > 0 && scrubbed.damaged.is_empty(), "{scrubbed:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_get_with_a_time_limit() {
    let gate = Gate::default();
    let _open = OpenOnDrop(gate.clone());
    let server = Server::with(gate.functions(), Settings::default()).await;
    let client = server.client().await;
    let leaf = client.put(vec![1; 4096]).await.unwrap().address;
    let slow = one(&client, "gate", leaf).await;
    let late = soon(client.get(slow, ALL, Some(Duration::from_millis(50)))).await.unwrap_err();
    assert!(matches!(late.code(), Some(Code::DeadlineExceeded | Code::Cancelled)), "{late:?}");
    until(|| server.executor.status().computing == 0).await;
    gate.open();
    assert_eq!(soon(text(&client, slow)).await.unwrap(), vec![1; 4096]);
}

#[tokio::test]
async fn nobody_there() {
    let refused = Client::connect("http://127.0.0.1:1").await.unwrap_err();
    assert_eq!(refused.to_string(), "could not connect to http://127.0.0.1:1");
}
