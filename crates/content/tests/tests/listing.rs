//! A look inside: pages of blobs, derivations and memos, short addresses, and the removal of single items.

use anabranch_content::{
    Address, Class, Config, Context, Cost, DryRun, Error, Holder, NewMemo, Root, Space, Store,
};

use crate::kit::{description, put_derivation};

const CONTEXT: Context<'static> = Context("anabranch tests 2026 listing");

struct World {
    store: Store,
    input: Address,
    derivation: Address,
    output: Address,
}

/// A derivation that reads a blob and came to another.
async fn world() -> World {
    let store = Store::in_memory(Config::default()).unwrap();
    let input = store.put("input", Class::Acknowledged).await.unwrap().address;
    let derivation = put_derivation(&store, CONTEXT, description("reads", &[input])).await.unwrap();
    let output = Address::of(b"output");
    let made = NewMemo { derivation, output, size: 6, cost: Cost::default(), inputs: &[input] };
    store.derived(made, None, "output").await.unwrap();
    World { store, input, derivation, output }
}

#[tokio::test]
async fn pages_list_everything_in_order() {
    let World { store, input, derivation, output } = world().await;
    let mut blobs = Vec::new();
    while let [blob] = *store.list_blobs(blobs.last().copied(), 1).await.unwrap() {
        assert_eq!(
            (blob.size, blob.class == Class::Acknowledged),
            if blob.address == input { (5, true) } else { (6, false) }
        );
        assert!(blob.at.0 > 0);
        blobs.push(blob.address);
    }
    let mut expected = [input, output];
    expected.sort();
    assert_eq!(blobs, expected);
    let derivations = store.list_derivations(None, 10).await.unwrap();
    assert_eq!(derivations.iter().map(|it| (it.address, it.alias)).collect::<Vec<_>>(), [(derivation, None)]);
    let memos = store.list_memos(None, 10).await.unwrap();
    assert_eq!(memos.iter().map(|it| (it.derivation, it.output)).collect::<Vec<_>>(), [(derivation, output)]);
    assert!(store.list_memos(Some(derivation), 10).await.unwrap().is_empty());
}

#[tokio::test]
async fn addresses_are_found_by_their_beginning() {
    let World { store, input, derivation, .. } = world().await;
    for address in [input, derivation] {
        for digits in [4, 5, 12, 63, 64] {
            let prefix = &address.to_string()[..digits];
            assert_eq!(store.find_prefix(prefix, 10).await.unwrap(), [address], "{prefix}");
        }
        let upper = address.to_string()[..9].to_uppercase();
        assert_eq!(store.find_prefix(&upper, 10).await.unwrap(), [address]);
    }
    // The fifth digit counts though it is half a byte.
    let digit = if input.to_string().as_bytes()[4] == b'0' { '1' } else { '0' };
    let other = format!("{}{digit}", &input.to_string()[..4]);
    assert!(!store.find_prefix(&other, 10).await.unwrap().contains(&input));
    for wrong in ["", "abc", "xyzw", &format!("{input}0")] {
        let error = store.find_prefix(wrong, 10).await.unwrap_err();
        assert!(matches!(error, Error::Prefix { .. }), "{error}");
    }
}

#[tokio::test]
async fn prefixes_find_no_more_than_asked_for() {
    let store = Store::in_memory(Config::default()).unwrap();
    let mut all = Vec::new();
    for number in 0..3000u32 {
        all.push(store.put(number.to_le_bytes().to_vec(), Class::Derivable).await.unwrap().address);
    }
    all.sort();
    let shared = all.windows(2).find(|pair| pair[0].as_bytes()[..2] == pair[1].as_bytes()[..2]).unwrap();
    let prefix = &shared[0].to_string()[..4];
    let every: Vec<Address> = all.iter().filter(|it| it.to_string().starts_with(prefix)).copied().collect();
    assert_eq!(store.find_prefix(prefix, 100).await.unwrap(), every);
    assert_eq!(store.find_prefix(prefix, 1).await.unwrap(), every[..1]);
}

async fn holder(store: &Store, address: &Address) -> String {
    match store.remove(address, DryRun::No).await.unwrap_err() {
        Error::Held { holder, .. } => holder,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn what_is_held_is_not_removed_and_the_error_names_the_holder() {
    let World { store, input, derivation, output } = world().await;
    assert_eq!(holder(&store, &input).await, format!("derivation {derivation}, which reads it,"));
    store.pin(&derivation).await.unwrap();
    assert_eq!(holder(&store, &derivation).await, format!("a pin of {derivation}"));
    assert_eq!(holder(&store, &output).await, format!("a pin of {derivation}"));
    store.unpin(&derivation).await.unwrap();
    store.name("report", Some(derivation)).await.unwrap();
    assert_eq!(holder(&store, &derivation).await, "name \"report\"");
    store.name("report", Some(input)).await.unwrap();
    assert_eq!(holder(&store, &derivation).await, "the history of name \"report\"");
    let other = store.put("other", Class::Acknowledged).await.unwrap().address;
    let mut lease = store.lease();
    assert!(lease.hold(other).await.unwrap());
    assert_eq!(holder(&store, &other).await, "a run in progress");
    drop(lease);
    assert_eq!(store.remove(&other, DryRun::No).await.unwrap().blob, Some(5));
    assert_eq!(store.get(&other).await.unwrap(), None);
    assert!(matches!(store.remove(&other, DryRun::No).await, Err(Error::Missing { .. })));
}

#[tokio::test]
async fn single_items_are_removed() {
    let World { store, input, derivation, output } = world().await;
    let removed = store.remove(&output, DryRun::No).await.unwrap();
    assert_eq!((removed.blob, removed.derivation, removed.memos), (Some(6), false, 1));
    assert_eq!(store.recall(&derivation).await.unwrap(), None);
    let removed = store.remove(&derivation, DryRun::No).await.unwrap();
    assert_eq!((removed.blob, removed.derivation, removed.memos), (None, true, 0));
    assert_eq!(store.dependents(&input, None, 10).await.unwrap(), []);
    store.remove(&input, DryRun::No).await.unwrap();
    let stats = store.stats();
    assert_eq!((stats.blobs, stats.derivations, stats.memos), (0, 0, 0));
}

#[tokio::test]
async fn a_removal_is_planned_after_other_removals() {
    let World { store, input, derivation, output } = world().await;
    let other = put_derivation(&store, CONTEXT, description("also", &[input])).await.unwrap();
    let made = NewMemo { derivation: other, output, size: 6, cost: Cost::default(), inputs: &[input] };
    store.derived(made, None, "output").await.unwrap();
    let held = store.would_remove(&input, &[derivation]).await.unwrap_err();
    assert!(matches!(held, Error::Held { holder, .. } if holder.contains(&other.to_string())));
    assert_eq!(store.would_remove(&input, &[other, derivation]).await.unwrap().blob, Some(5));
    assert_eq!(store.would_remove(&derivation, &[]).await.unwrap().blob, None);
    assert_eq!(
        store.would_remove(&derivation, &[other]).await.unwrap().blob,
        Some(6),
        "the last one with it"
    );
    assert_eq!(store.stats().blobs, 2, "nothing is removed");
}

#[tokio::test]
async fn a_derivation_goes_with_its_value_unless_that_is_needed() {
    let World { store, derivation, output, .. } = world().await;
    let planned = store.remove(&derivation, DryRun::Yes).await.unwrap();
    assert_eq!((planned.blob, planned.derivation, planned.memos), (Some(6), true, 1));
    assert_eq!(store.stats().blobs, 2, "a dry run removes nothing");
    assert_eq!(store.remove(&derivation, DryRun::No).await.unwrap(), planned);
    assert_eq!(store.get(&output).await.unwrap(), None);

    // Another derivation came to the same value, so its bytes stay.
    let World { store, input, derivation, output } = world().await;
    let other = put_derivation(&store, CONTEXT, description("also", &[input])).await.unwrap();
    let made = NewMemo { derivation: other, output, size: 6, cost: Cost::default(), inputs: &[input] };
    store.derived(made, None, "output").await.unwrap();
    let removed = store.remove(&derivation, DryRun::No).await.unwrap();
    assert_eq!((removed.blob, removed.derivation, removed.memos), (None, true, 1));
    assert_eq!(store.get(&output).await.unwrap().unwrap(), "output");

    // So do the bytes of a value that has a name.
    store.name("kept", Some(output)).await.unwrap();
    assert_eq!(store.remove(&other, DryRun::No).await.unwrap().blob, None);
    assert_eq!(store.get(&output).await.unwrap().unwrap(), "output");
}

#[tokio::test]
async fn usage_says_what_each_root_holds_alone() {
    let World { store, input, derivation, output } = world().await;
    let loose = store.put("loose!!", Class::Acknowledged).await.unwrap().address;
    let space = |blobs, bytes, derivations| Space { blobs, bytes, derivations };
    store.name("page", Some(derivation)).await.unwrap();
    store.name("source", Some(input)).await.unwrap();
    let usage = store.usage(10, &[input, output, derivation, loose]).await.unwrap();
    assert_eq!((usage.put, usage.computed), (space(2, 12, 0), space(1, 6, 0)));
    assert_eq!((usage.derivations, usage.memos, usage.held), (1, 1, space(2, 11, 1)));
    let roots: Vec<_> = usage.roots.iter().map(|it| (it.root.clone(), it.reached, it.alone)).collect();
    let name = |name: &str| Root::Name(name.to_owned());
    assert_eq!(
        roots,
        [
            (name("page"), Some(space(2, 11, 1)), space(1, 6, 1)),
            (name("source"), Some(space(1, 5, 0)), space(0, 0, 0)),
        ]
    );
    let held = |root: Root, is_shared| Some(Holder { root, is_shared });
    let page = || held(name("page"), false);
    assert_eq!(usage.holders, [held(name("page"), true), page(), page(), None]);

    // What a name pointed to before is held by its history.
    store.name("page", Some(loose)).await.unwrap();
    store.pin(&output).await.unwrap();
    let usage = store.usage(1, &[derivation, output, loose]).await.unwrap();
    let history = Root::History("page".to_owned());
    assert_eq!(usage.holders, [held(history, false), held(Root::Pin(output), true), page()]);
    assert_eq!((usage.roots_count, usage.roots.len()), (4, 1));
    assert_eq!((usage.roots[0].root.clone(), usage.roots[0].alone), (name("page"), space(1, 7, 0)));
}
