//! Imports are remembered, hold what they brought until they are dropped, and bring names with them.

use std::io::Cursor;
use std::time::Duration;

use anabranch_content::{
    Address, Class, Collect, Config, Context, Cost, Import, NewMemo, RemovalReason, Store, Value,
};

use super::records::{MEMO, NAME, records, seal};
use super::{CONTEXT, exported, whole, whole_with_root};
use crate::kit::{description, put_derivation};

fn labelled(label: &str) -> Import {
    Import { label: label.to_owned(), ..Import::default() }
}

fn trusting() -> Import {
    Import { trust_memos: true, ..labelled("trusted.ab") }
}

fn store() -> Store {
    Store::in_memory(Config::default()).unwrap()
}

fn all() -> Collect {
    Collect { grace: Duration::ZERO, ..Collect::default() }
}

async fn refused(mut archive: Vec<u8>) -> String {
    seal(&mut archive);
    store().import(Cursor::new(archive), trusting()).await.unwrap_err().to_string()
}

/// The derivations with a memo.
async fn remembered(store: &Store) -> usize {
    store.list_memos(None, 100).await.unwrap().len()
}

#[tokio::test]
async fn memos_are_left_out_unless_they_are_trusted() {
    let archive = whole().await;
    let (wary, trustful) = (store(), store());
    let imported = wary.import(Cursor::new(archive.clone()), Import::default()).await.unwrap();
    assert_eq!((imported.items, imported.new, imported.memos_left_out), (6, 5, 1));
    assert_eq!(remembered(&wary).await, 0);
    let imported = trustful.import(Cursor::new(archive), trusting()).await.unwrap();
    assert_eq!((imported.items, imported.new, imported.memos_left_out), (6, 6, 0));
    assert_eq!(remembered(&trustful).await, 1);
}

#[tokio::test]
async fn a_memo_never_takes_the_place_of_one_that_is_there() {
    let store = store();
    let input = store.put(vec![7; 40], Class::Acknowledged).await.unwrap().address;
    let large = store.put(vec![7; 300], Class::Acknowledged).await.unwrap().address;
    let first = put_derivation(&store, CONTEXT, description("first", &[input, large])).await.unwrap();
    let honest = store.put("honest", Class::Derivable).await.unwrap().address;
    let made = NewMemo { derivation: first, output: honest, size: 6, cost: Cost::default(), inputs: &[] };
    store.remember(made, Class::Derivable).await.unwrap();
    let imported = store.import(Cursor::new(whole().await), trusting()).await.unwrap();
    assert_eq!(imported.memos_left_out, 1);
    assert_eq!(store.recall(&first).await.unwrap().unwrap().output, honest);
}

#[tokio::test]
async fn a_memo_has_the_size_of_its_output() {
    let mut archive = whole().await;
    let memo = records(&archive).into_iter().find(|it| it.kind == MEMO).unwrap();
    archive[memo.body.start + 64] = 5;
    let refused = refused(archive).await;
    assert!(refused.contains("a memo whose size is not that of its output"), "{refused}");
}

#[tokio::test]
async fn derivations_of_reserved_contexts_are_refused() {
    let one = store();
    let bytes = Value::Text("forged".into()).encode().unwrap();
    let table = one.put_derivation(Context("# tests 2026 a table"), bytes).await.unwrap();
    let refused = refused(exported(&one, &[table]).await).await;
    assert!(refused.contains("a derivation of a reserved context"), "{refused}");
}

#[tokio::test]
async fn an_import_holds_what_it_brought_until_it_is_dropped() {
    let store = store();
    let imported = store.import(Cursor::new(whole().await), trusting()).await.unwrap();
    store.name("second", None).await.unwrap();
    let listed = store.imports().await.unwrap();
    let [record] = &*listed else { panic!("{listed:?}") };
    assert_eq!((Some(&record.id), &*record.label), (imported.id.as_ref(), "trusted.ab"));
    assert_eq!((record.blobs, record.derivations, record.memos, record.is_whole), (3, 2, 1, true));
    assert_eq!(store.stats().names, 0, "an import is not a name");
    assert_eq!(store.collect(all()).await.unwrap().removed, []);

    assert!(store.drop_import("000000000000").await.unwrap().is_none());
    let dropped = store.drop_import(&record.id).await.unwrap().unwrap();
    assert_eq!((dropped.memos, remembered(&store).await), (1, 0));
    assert_eq!(store.imports().await.unwrap(), []);
    // The name's history still holds the second derivation and what it reads; its value was computed elsewhere.
    let history = store.history("second").await.unwrap();
    assert_eq!(history.len(), 2);
    let collected = store.collect(all()).await.unwrap();
    assert_eq!((collected.blobs, collected.derivations), (3, 0), "the output and the lists of the import");
}

/// A name is a root, and so is its history: an import that left its names behind would release nothing.
#[tokio::test]
async fn a_dropped_import_takes_its_names_with_it() {
    for packed_most in [10, 1 << 16] {
        let store = Store::in_memory(Config { packed_most, ..Config::default() }).unwrap();
        let archive = whole().await;
        store.import(Cursor::new(archive.clone()), labelled("one.ab")).await.unwrap();
        // The same import again changes nothing.
        let imported = store.import(Cursor::new(archive), labelled("one.ab")).await.unwrap();
        assert_eq!(store.imports().await.unwrap().len(), 1);
        assert!(store.collect(all()).await.unwrap().removed.is_empty());
        let dropped = store.drop_import(&imported.id.unwrap()).await.unwrap().unwrap();
        assert_eq!((dropped.names, store.names().await.unwrap()), (1, vec![]));
        assert_eq!(store.history("second").await.unwrap(), []);
        store.collect(all()).await.unwrap();
        let stats = store.stats();
        assert_eq!((stats.blobs, stats.derivations, stats.names), (0, 0, 0));
    }
}

#[tokio::test]
async fn a_dropped_import_leaves_names_that_it_did_not_set_or_that_were_set_again() {
    let (archive, second) = whole_with_root().await;
    let import = async |store: &Store| {
        let imported = store.import(Cursor::new(archive.clone()), Import::default()).await.unwrap();
        imported.id.unwrap()
    };
    let own = store();
    own.name("second", Some(second)).await.unwrap();
    let id = import(&own).await;
    assert_eq!(own.drop_import(&id).await.unwrap().unwrap().names, 0);
    assert_eq!(own.named("second").await.unwrap(), Some(second));

    let moved = store();
    let id = import(&moved).await;
    let mine = moved.put("mine", Class::Acknowledged).await.unwrap().address;
    moved.name("second", Some(mine)).await.unwrap();
    assert_eq!(moved.drop_import(&id).await.unwrap().unwrap().names, 0);
    assert_eq!(moved.named("second").await.unwrap(), Some(mine));

    // The caller's history stays.
    let older = store();
    let mine = older.put("mine", Class::Acknowledged).await.unwrap().address;
    older.name("second", Some(mine)).await.unwrap();
    older.name("second", None).await.unwrap();
    let before = older.history("second").await.unwrap();
    let id = import(&older).await;
    assert_eq!(older.drop_import(&id).await.unwrap().unwrap().names, 1);
    assert_eq!(older.history("second").await.unwrap(), before);
}

#[tokio::test]
async fn names_that_the_caller_does_not_want_are_not_set() {
    let store = store();
    let terms = Import { skip_name: Some(|name| name == "second"), ..Import::default() };
    let imported = store.import(Cursor::new(whole().await), terms).await.unwrap();
    assert_eq!((imported.names[0].is_skipped, imported.names[0].taken_by), (true, None));
    assert_eq!(store.names().await.unwrap(), []);
}

#[tokio::test]
async fn imports_outlive_a_restart_and_a_rebuilt_index() {
    let disk = std::sync::Arc::new(anabranch_content::Memory::new());
    // A list of 100 bytes is a file.
    let open = || Store::open_on(disk.clone(), Config { packed_most: 100, ..Config::default() }).unwrap();
    let store = open();
    store.import(Cursor::new(whole().await), labelled("a file\nof mine")).await.unwrap();
    let listed = store.imports().await.unwrap();
    assert_eq!(listed[0].label, "a file of mine");
    store.close().await.unwrap();
    let store = open();
    assert_eq!(store.imports().await.unwrap(), listed);
    store.drop_import(&listed[0].id).await.unwrap().unwrap();
    store.close().await.unwrap();
    anabranch_content::Disk::open(&*disk, "rebuild".as_ref(), anabranch_content::Open::Create).unwrap();
    let store = open();
    assert!(store.opened().rebuilt.is_some());
    assert_eq!(store.imports().await.unwrap(), []);
}

#[tokio::test]
async fn names_travel_with_an_archive_and_take_no_others_place() {
    let (archive, second) = whole_with_root().await;
    let free = store();
    let imported = free.import(Cursor::new(archive.clone()), Import::default()).await.unwrap();
    assert_eq!(imported.names.len(), 1);
    assert_eq!((&*imported.names[0].name, imported.names[0].taken_by), ("second", None));
    assert_eq!(free.named("second").await.unwrap(), Some(second));
    let again = free.import(Cursor::new(archive.clone()), Import::default()).await.unwrap();
    assert_eq!(again.names, imported.names);
    assert_eq!(free.history("second").await.unwrap().len(), 1);

    let taken = store();
    let mine = taken.put("mine", Class::Acknowledged).await.unwrap().address;
    taken.name("second", Some(mine)).await.unwrap();
    let imported = taken.import(Cursor::new(archive), Import::default()).await.unwrap();
    assert_eq!(imported.names[0].taken_by, Some(mine));
    assert_eq!(taken.named("second").await.unwrap(), Some(mine));
}

#[tokio::test]
async fn a_name_leads_to_content_of_the_archive_or_the_store() {
    let mut archive = whole().await;
    let name = records(&archive).into_iter().find(|it| it.kind == NAME).unwrap();
    let end = name.body.end;
    archive[end - 32..end].copy_from_slice(Address::of(b"another").as_bytes());
    let refused = refused(archive).await;
    assert!(refused.contains("a name whose address is missing"), "{refused}");
}

#[tokio::test]
async fn archives_of_the_first_version_are_still_read() {
    let one = store();
    let leaf = one.put("leaf", Class::Acknowledged).await.unwrap().address;
    let mut archive = exported(&one, &[leaf]).await;
    archive[..20].copy_from_slice(b"anabranch archive 1\n");
    let other = store();
    other.import(Cursor::new(archive), Import::default()).await.unwrap();
    assert_eq!(other.get(&leaf).await.unwrap().unwrap(), "leaf");
}

#[tokio::test]
async fn half_an_archive_is_listed_as_what_came_in() {
    let archive = whole().await;
    let store = store();
    let half = archive[..archive.len() - 400].to_vec();
    store.import(Cursor::new(half), labelled("half.ab")).await.unwrap_err();
    let listed = store.imports().await.unwrap();
    assert_eq!((listed.len(), listed[0].is_whole), (1, false));
    assert!(store.collect(all()).await.unwrap().removed.is_empty());
    assert_eq!(store.named("second").await.unwrap(), None);
}

/// L9: the last record says how many came before it, and nothing behind it is read.
#[tokio::test]
async fn an_archive_ends_with_the_number_of_its_records() {
    let archive = whole().await;
    let end = records(&archive).into_iter().next_back().unwrap();
    let digit = end.body.start + archive[end.body.clone()].iter().position(u8::is_ascii_digit).unwrap();
    let mut lies = archive.clone();
    lies[digit] += 1;
    let refused = refused(lies).await;
    assert!(refused.contains("an end that does not count the records before it"), "{refused}");
    let longer = [&archive[..], b"and more"].concat();
    let imported = store().import(Cursor::new(longer), Import::default()).await.unwrap();
    assert_eq!(imported.bytes, archive.len() as u64);
}

/// An import that is dropped leaves a tombstone that says why its memos are gone.
#[tokio::test]
async fn dropped_memos_were_invalidated() {
    let store = store();
    let imported = store.import(Cursor::new(whole().await), trusting()).await.unwrap();
    let derivation = store.list_memos(None, 1).await.unwrap()[0].derivation;
    store.drop_import(&imported.id.unwrap()).await.unwrap();
    let status = store.status(&derivation).await.unwrap();
    assert_eq!(status.gone.map(|gone| gone.why), Some(RemovalReason::Invalidated));
}
