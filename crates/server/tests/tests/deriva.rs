//! Deriva's service, as its clients see it.

use std::collections::HashMap;

use anabranch_recipe::{Address, DerivaRecipe, FunctionId, Functions};
use anabranch_server::Settings;
use tonic::{Code, Request};

use crate::deriva_wire::{
    Cascade, CascadeAnswer, Collect, CollectAnswer, Data, Deriva, Flag, Invalidate, InvalidateAnswer,
    Nothing, Pins, PutRecipe, ResolveAnswer, StatusAnswer,
};
use crate::support::{Gate, OpenOnDrop, Server, beside, noise, soon, until};

async fn started() -> (Server, Deriva) {
    let server = Server::start().await;
    let deriva = Deriva(server.channel().await);
    (server, deriva)
}

#[tokio::test]
async fn leaves_and_recipes_have_derivas_addresses() {
    let (_server, deriva) = started().await;
    let leaf = deriva.leaf("hello").await;
    assert_eq!(leaf, Address::of(b"hello").as_bytes());
    let params = HashMap::from([("bytes".to_owned(), "2".to_owned())]);
    let request = PutRecipe {
        function_name: "take".to_owned(),
        function_version: "1.0.0".to_owned(),
        inputs: vec![leaf.clone()],
        params: params.clone(),
    };
    let put: Data = deriva.call("PutRecipe", request).await.unwrap();
    let theirs = DerivaRecipe {
        function: FunctionId::new("take", "1.0.0"),
        inputs: vec![Address::of(b"hello")],
        params: params.clone().into_iter().collect(),
    };
    assert_eq!(put.data, theirs.address().as_bytes());
    let found: ResolveAnswer = deriva.call("Resolve", Data { data: put.data }).await.unwrap();
    assert!(found.found);
    assert_eq!((&*found.function_name, &*found.function_version), ("take", "1.0.0"));
    assert_eq!((found.inputs, found.params), (vec![leaf.clone()], params));
    for other in [leaf, vec![7; 32]] {
        let found: ResolveAnswer = deriva.call("Resolve", Data { data: other }).await.unwrap();
        assert_eq!(found, ResolveAnswer::default());
    }
}

/// D8: clients that tag their recipes work as with Deriva.
#[tokio::test]
async fn parameters_that_a_function_does_not_know_are_ignored() {
    let (_server, deriva) = started().await;
    let leaf = deriva.leaf("hello").await;
    let tagged = PutRecipe {
        function_name: "take".to_owned(),
        function_version: "1.0.0".to_owned(),
        inputs: vec![leaf],
        params: [("bytes", "2"), ("note", "mine")]
            .map(|(name, text)| (name.to_owned(), text.to_owned()))
            .into(),
    };
    let put: Data = deriva.call("PutRecipe", tagged).await.unwrap();
    assert_eq!(deriva.pieces(&put.data).await.unwrap(), [b"he"]);
}

#[tokio::test]
async fn values_come_in_pieces_and_empty_ones_in_none() {
    let (_server, deriva) = started().await;
    let empty = deriva.leaf("").await;
    assert_eq!(deriva.pieces(&empty).await.unwrap(), Vec::<Vec<u8>>::new());
    let of_empty = deriva.recipe("identity", &[&empty]).await;
    assert_eq!(deriva.pieces(&of_empty).await.unwrap(), Vec::<Vec<u8>>::new());
    let small = deriva.leaf("small").await;
    assert_eq!(deriva.pieces(&small).await.unwrap(), [b"small"]);
    let bytes = noise(3_000_000, 1);
    let large = deriva.leaf(bytes.to_vec()).await;
    let pieces = deriva.pieces(&large).await.unwrap();
    assert!(pieces.iter().all(|piece| (1..=256 << 10).contains(&piece.len())));
    assert_eq!(pieces.concat(), bytes);
}

/// Deriva's own server refuses more than 4 MiB.
#[tokio::test]
async fn large_leaves() {
    let (_server, deriva) = started().await;
    for len in [5_000_000, 100_000_000] {
        let bytes = noise(len, len as u64);
        let leaf = soon(deriva.leaf(bytes.to_vec())).await;
        assert_eq!(leaf, Address::of(&bytes).as_bytes());
        let recipe = deriva.recipe("identity", &[&leaf]).await;
        assert!(soon(deriva.get(&recipe)).await.unwrap() == bytes, "{len} bytes are not the same");
    }
    let settings = Settings { leaf_most: 1000, ..Settings::default() };
    let server = Server::with(Functions::builtin(), settings).await;
    let deriva = Deriva(server.channel().await);
    let refused = deriva.call::<_, Data>("PutLeaf", Data { data: vec![0; 2000] }).await.unwrap_err();
    assert_eq!(refused.code(), Code::OutOfRange);
}

#[tokio::test]
async fn what_is_wrong_has_its_code() {
    let (_server, deriva) = started().await;
    let refused = deriva.get(&[1; 31]).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert_eq!(refused.message(), "`addr` has 31 bytes; an address has 32");
    let refused = deriva.get(&[1; 32]).await.unwrap_err();
    assert_eq!(refused.code(), Code::NotFound);
    assert!(refused.message().contains("is neither a blob nor a recipe"), "{}", refused.message());
    let leaf = deriva.leaf("leaf").await;
    let unknown = deriva.recipe("no_such", &[&leaf]).await;
    let refused = deriva.get(&unknown).await.unwrap_err();
    assert_eq!(refused.code(), Code::FailedPrecondition);
    assert!(refused.message().contains("`no_such/1.0.0` is not known here"), "{}", refused.message());
    let dangling = deriva.recipe("identity", &[&[9; 32]]).await;
    assert_eq!(deriva.get(&dangling).await.unwrap_err().code(), Code::NotFound);
    let no_inputs = deriva.recipe("identity", &[]).await;
    assert_eq!(deriva.get(&no_inputs).await.unwrap_err().code(), Code::InvalidArgument);
    let cluster = deriva.call::<_, Nothing>("ClusterStatus", Nothing {}).await.unwrap_err();
    assert_eq!(cluster.code(), Code::Unavailable);
    let verify = deriva.call::<_, Nothing>("Verify", Data { data: leaf.clone() }).await.unwrap_err();
    assert_eq!(verify.code(), Code::Unimplemented);
    for method in ["Verify", "Pin", "Unpin", "Resolve", "Invalidate", "CascadeInvalidate"] {
        let refused = deriva.call::<_, Nothing>(method, Data { data: vec![1; 33] }).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument, "{method}");
    }
    let bad_name = PutRecipe { function_name: String::new(), ..PutRecipe::default() };
    let refused = deriva.call::<_, Data>("PutRecipe", bad_name).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    let refused = deriva.call::<_, Nothing>("NoSuchCall", Nothing {}).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unimplemented);
}

/// D10: a client of Deriva has never seen our addresses, so no message names them.
#[tokio::test]
async fn messages_name_derivas_addresses() {
    let (server, deriva) = started().await;
    let hex = |address: &[u8]| address.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let missing = [9; 32];
    let dangling = deriva.recipe("identity", &[&missing]).await;
    let above = deriva.recipe("concat", &[&dangling, &dangling]).await;
    let refused = deriva.get(&above).await.unwrap_err();
    let expected =
        format!("{} is neither a blob nor a recipe here; recipe {} reads it", hex(&missing), hex(&dangling));
    assert_eq!(refused.message(), expected);
    let binary = deriva.leaf(vec![0xff]).await;
    let failing = deriva.recipe("uppercase", &[&binary]).await;
    let refused = deriva.get(&failing).await.unwrap_err();
    let short = &hex(&failing)[..12];
    assert!(refused.message().starts_with(&format!("`uppercase/1.0.0` of {short}")), "{}", refused.message());
    // Our own service names ours.
    let ours =
        server.executor.deriva().find(&Address::from_bytes(failing.try_into().unwrap())).await.unwrap();
    assert_ne!(&ours.to_string()[..12], short);
}

/// D11: a client counts the leaves that it put. Recipes, their encodings and their values are not blobs of a client.
#[tokio::test]
async fn counts_are_those_of_derivas_client() {
    let (_server, deriva) = started().await;
    let leaf = deriva.leaf("one").await;
    let mut chain = vec![deriva.recipe("uppercase", &[&leaf]).await];
    for _ in 0..4 {
        let below = chain.last().unwrap().clone();
        chain.push(deriva.recipe("identity", &[&below]).await);
    }
    let status: StatusAnswer = deriva.call("Status", Nothing {}).await.unwrap();
    assert_eq!((status.recipe_count, status.blob_count, status.cache_entries), (5, 1, 0));
    deriva.get(chain.last().unwrap()).await.unwrap();
    let terms =
        Cascade { addr: leaf.clone(), policy: "dry_run".to_owned(), include_root: true, detail_addrs: true };
    let dry: CascadeAnswer = deriva.call("CascadeInvalidate", terms).await.unwrap();
    assert_eq!((dry.traversed_count, dry.max_depth, dry.evicted_count), (5, 5, 5));
    assert_eq!(dry.evicted_addrs, chain);
    let collected: CollectAnswer = deriva
        .call("GarbageCollect", Collect { grace_period_secs: 300, ..Collect::default() })
        .await
        .unwrap();
    assert_eq!((collected.live_recipes, collected.live_blobs), (5, 1));
}

/// The streaming names of Deriva are functions here, above and below batch functions, and over inputs that are read twice.
#[tokio::test]
async fn streaming_functions_compute() {
    let (_server, deriva) = started().await;
    let leaf = deriva.leaf("ab").await;
    let put = async |name: &str, version: &str, inputs: &[&Vec<u8>], params: &[(&str, &str)]| -> Vec<u8> {
        let request = PutRecipe {
            function_name: name.to_owned(),
            function_version: version.to_owned(),
            inputs: inputs.iter().map(|input| (*input).clone()).collect(),
            params: params.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect(),
        };
        deriva.call::<_, Data>("PutRecipe", request).await.unwrap().data
    };
    let upper = put("streaming_uppercase", "1.0", &[&leaf], &[]).await;
    let both = put("streaming_concat", "1.0", &[&upper, &upper], &[]).await;
    let delayed = put("streaming_delay", "1.0", &[&both], &[("delay_ms", "5")]).await;
    assert_eq!(deriva.get(&delayed).await.unwrap(), b"ABAB");
    let count = put("byte_count", "1.0.0", &[&delayed], &[]).await;
    assert_eq!(deriva.get(&count).await.unwrap(), 4_u64.to_be_bytes());
    let filter = put("streaming_filter", "1.0", &[&leaf], &[]).await;
    assert_eq!(deriva.get(&filter).await.unwrap_err().code(), Code::FailedPrecondition);
}

/// An unknown input is looked up when the value is wanted, not when the recipe is put.
#[tokio::test]
async fn inputs_may_come_later() {
    let (_server, deriva) = started().await;
    let later = Address::of(b"later").as_bytes().to_vec();
    let recipe = deriva.recipe("identity", &[&later]).await;
    let of_it = deriva.recipe("identity", &[&recipe]).await;
    assert_eq!(deriva.get(&of_it).await.unwrap_err().code(), Code::NotFound);
    deriva.leaf("later").await;
    assert_eq!(deriva.get(&of_it).await.unwrap(), b"later");
}

#[tokio::test]
async fn invalidation() {
    let (_server, deriva) = started().await;
    let leaf = deriva.leaf("root").await;
    let middle = deriva.recipe("identity", &[&leaf]).await;
    let top = deriva.recipe("concat", &[&middle, &leaf]).await;
    deriva.get(&top).await.unwrap();
    let cascade = |policy: &str, include_root| Cascade {
        addr: middle.clone(),
        policy: policy.to_owned(),
        include_root,
        detail_addrs: true,
    };
    let refused =
        deriva.call::<_, CascadeAnswer>("CascadeInvalidate", cascade("always", true)).await.unwrap_err();
    assert_eq!(refused.code(), Code::InvalidArgument);
    assert_eq!(refused.message(), "policy \"always\" is unknown; it may be none, immediate or dry_run");
    for _ in 0..2 {
        let dry: CascadeAnswer = deriva.call("CascadeInvalidate", cascade("dry_run", true)).await.unwrap();
        // Deriva does not count the root among those that it traverses.
        assert_eq!((dry.evicted_count, dry.traversed_count, dry.max_depth), (2, 1, 1));
        assert_eq!(dry.evicted_addrs, [middle.clone(), top.clone()]);
    }
    let none: CascadeAnswer = deriva.call("CascadeInvalidate", cascade("none", false)).await.unwrap();
    assert_eq!(none.evicted_count, 0);
    let above: CascadeAnswer = deriva.call("CascadeInvalidate", cascade("immediate", false)).await.unwrap();
    assert_eq!((above.evicted_count, above.bytes_reclaimed), (1, 8));
    assert_eq!(above.evicted_addrs, std::slice::from_ref(&top));
    let alone: CascadeAnswer = deriva.call("CascadeInvalidate", cascade("none", true)).await.unwrap();
    assert_eq!(alone.evicted_addrs, std::slice::from_ref(&middle));
    deriva.get(&top).await.unwrap();
    let invalidate = |cascade| Invalidate { addr: middle.clone(), cascade };
    let one: InvalidateAnswer = deriva.call("Invalidate", invalidate(false)).await.unwrap();
    assert_eq!(one, InvalidateAnswer { was_cached: true, evicted_count: 1 });
    let rest: InvalidateAnswer = deriva.call("Invalidate", invalidate(true)).await.unwrap();
    assert_eq!(rest, InvalidateAnswer { was_cached: false, evicted_count: 1 });
    assert_eq!(deriva.get(&top).await.unwrap(), b"rootroot");
}

#[tokio::test]
async fn status_counts() {
    let (_server, deriva) = started().await;
    let empty: StatusAnswer = deriva.call("Status", Nothing {}).await.unwrap();
    assert_eq!((empty.recipe_count, empty.blob_count, empty.cache_entries), (0, 0, 0));
    assert_eq!((empty.cache_hit_rate, &*empty.verification_mode), (0.0, "off"));
    let leaf = deriva.leaf("counted").await;
    let recipe = deriva.recipe("uppercase", &[&leaf]).await;
    for _ in 0..4 {
        deriva.get(&recipe).await.unwrap();
    }
    let status: StatusAnswer = deriva.call("Status", Nothing {}).await.unwrap();
    assert_eq!((status.cache_entries, status.cache_hit_rate), (1, 0.75));
    assert_eq!(status.recipe_count, 1);
    // The computed value is not a blob that a client put.
    assert_eq!(status.blob_count, 1);
    assert_eq!(status.verification_total, 0);
}

#[tokio::test]
async fn pins_hold_and_collection_keeps_recipes() {
    let (_server, deriva) = started().await;
    let read = deriva.leaf("read by a recipe").await;
    let recipe = deriva.recipe("identity", &[&read]).await;
    let (pinned, loose) = (deriva.leaf("pinned").await, deriva.leaf("loose").await);
    for (addr, was_new) in [(&pinned, true), (&pinned, false), (&recipe, true)] {
        let pin: Flag = deriva.call("Pin", Data { data: addr.clone() }).await.unwrap();
        assert_eq!(pin.yes, was_new);
    }
    let pins: Pins = deriva.call("ListPins", Nothing {}).await.unwrap();
    assert_eq!(pins.count, 2);
    assert!(pins.addrs.contains(&pinned) && pins.addrs.contains(&recipe));
    let unpin: Flag = deriva.call("Unpin", Data { data: recipe.clone() }).await.unwrap();
    assert!(unpin.yes);
    let collect = |grace_period_secs, dry_run| Collect {
        grace_period_secs,
        dry_run,
        detail_addrs: true,
        max_removals: 0,
    };
    // Deriva reads the grace period and forgets it: what was put a moment ago went.
    let young: CollectAnswer = deriva.call("GarbageCollect", collect(300, false)).await.unwrap();
    assert_eq!((young.blobs_removed, young.pinned_count), (0, 1));
    let dry: CollectAnswer = deriva.call("GarbageCollect", collect(0, true)).await.unwrap();
    let done: CollectAnswer = deriva.call("GarbageCollect", collect(0, false)).await.unwrap();
    for result in [&dry, &done] {
        assert_eq!(result.removed_addrs, std::slice::from_ref(&loose));
        assert_eq!((result.blobs_removed, result.recipes_removed), (1, 0));
        assert_eq!((result.bytes_reclaimed_blobs, result.total_bytes_reclaimed), (5, 5));
    }
    assert_eq!((dry.dry_run, done.dry_run, dry.live_blobs), (true, false, done.live_blobs));
    assert_eq!(deriva.get(&recipe).await.unwrap(), b"read by a recipe");
    assert_eq!(deriva.get(&pinned).await.unwrap(), b"pinned");
    assert_eq!(deriva.get(&loose).await.unwrap_err().code(), Code::NotFound);
}

#[tokio::test]
async fn a_collection_may_be_bounded() {
    let (_server, deriva) = started().await;
    for number in 0..5 {
        deriva.leaf(format!("loose {number}")).await;
    }
    let most = Collect { max_removals: 2, ..Collect::default() };
    let done: CollectAnswer = deriva.call("GarbageCollect", most).await.unwrap();
    assert_eq!((done.blobs_removed, done.removed_addrs.len()), (2, 0));
    let rest: CollectAnswer = deriva.call("GarbageCollect", Collect::default()).await.unwrap();
    assert_eq!(rest.blobs_removed, 3);
}

/// Bytes that are a recipe's encoding have its address in Deriva, and take its place there.
#[tokio::test]
async fn a_leaf_does_not_shadow_a_recipe() {
    let (_server, deriva) = started().await;
    let leaf = deriva.leaf("right").await;
    let recipe = deriva.recipe("uppercase", &[&leaf]).await;
    let theirs = DerivaRecipe {
        function: FunctionId::new("uppercase", "1.0.0"),
        inputs: vec![Address::of(b"right")],
        params: Default::default(),
    };
    assert_eq!(deriva.leaf(theirs.encode()).await, recipe);
    assert_eq!(deriva.get(&recipe).await.unwrap(), b"RIGHT");
}

/// In Deriva a client that leaves keeps the work going, and a later one may wait for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_leaves_takes_its_work_along() {
    let gate = Gate::default();
    let _open = OpenOnDrop(gate.clone());
    let server = Server::with(gate.functions(), Settings::default()).await;
    let deriva = Deriva(server.channel().await);
    let leaf = deriva.leaf(vec![1; 4096]).await;
    let slow = deriva.recipe("gate", &[&leaf]).await;
    let get = {
        let (deriva, slow) = (deriva.clone(), slow.clone());
        beside(async move { deriva.get(&slow).await })
    };
    until(|| server.executor.status().computing == 1).await;
    drop(get);
    until(|| server.executor.status().computing == 0).await;
    gate.open();
    assert_eq!(soon(deriva.get(&slow)).await.unwrap(), vec![1; 4096]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadline_ends_the_work() {
    let gate = Gate::default();
    let _open = OpenOnDrop(gate.clone());
    let server = Server::with(gate.functions(), Settings::default()).await;
    let deriva = Deriva(server.channel().await);
    let leaf = deriva.leaf(vec![1; 4096]).await;
    let slow = deriva.recipe("gate", &[&leaf]).await;
    let mut request = Request::new(Data { data: slow.clone() });
    // By hand, so that this end does not give up by itself.
    request.metadata_mut().insert("grpc-timeout", "50m".parse().unwrap());
    let late = soon(deriva.stream(request)).await.unwrap_err();
    assert!(matches!(late.code(), Code::DeadlineExceeded | Code::Cancelled), "{late:?}");
    until(|| server.executor.status().computing == 0).await;
    let mut wrong = Request::new(Data { data: slow });
    wrong.metadata_mut().insert("grpc-timeout", "soon".parse().unwrap());
    assert_eq!(soon(deriva.stream(wrong)).await.unwrap_err().code(), Code::InvalidArgument);
}
