//! Folders as recipes: one encoding, names that cannot leave, paths inside, values, progress.

use std::time::Duration;

use anabranch_content::{Collect, Store, Value};
use anabranch_recipe::{
    Address, Config, Event, Executor, Folder, FolderEntry, Functions, Get, Notice, Recipe, UnknownFunction,
};
use expect_test::expect;

use crate::world::TestClock;

fn file(bytes: &[u8]) -> FolderEntry {
    FolderEntry::File { address: Address::of(bytes), executable: false }
}

fn sample() -> (Folder, Folder) {
    let mut below = Folder::new();
    below.add("b", file(b"two")).unwrap();
    let mut folder = Folder::new();
    folder.add("z", FolderEntry::Link { target: "a".to_owned() }).unwrap();
    folder.add("sub", FolderEntry::Folder { address: below.recipe().address().unwrap() }).unwrap();
    folder.add("a", FolderEntry::File { address: Address::of(b"one"), executable: true }).unwrap();
    (folder, below)
}

/// If these change, every folder that was ever put gets another address.
#[test]
fn folders_have_fixed_addresses() {
    let (folder, below) = sample();
    let addresses =
        [Folder::new(), below, folder].map(|folder| folder.recipe().address().unwrap().to_string());
    expect![[r#"
        9bcc648e3640795cdfc8de187d88c3cde7ee9986eaa75d2c1b1e4d3e6769984a
        6054bee8fe1ab3357920ebad1a109f2363b22fa8c352d51df66c890a39c5dd49
        216c393c0a2fb7dc6f5ea10aeae978df3c450b2efe0ecb9f01ee5908f2c366e0"#]]
    .assert_eq(&addresses.join("\n"));
}

#[test]
fn a_folder_is_read_back_whatever_the_order_of_its_entries() {
    let (folder, _) = sample();
    let mut entries: Vec<_> =
        folder.entries().map(|(name, entry)| (name.to_owned(), entry.clone())).collect();
    entries.reverse();
    let mut other = Folder::new();
    entries.into_iter().for_each(|(name, entry)| other.add(name, entry).unwrap());
    assert_eq!(other.recipe().encode(), folder.recipe().encode());
    assert_eq!(Folder::of(&folder.recipe()).unwrap(), Some(folder));
    let plain = Recipe::new("concat/1.0.0".parse().unwrap(), Vec::new());
    assert_eq!(Folder::of(&plain).unwrap(), None);
}

#[test]
fn names_that_leave_the_folder_are_none() {
    for name in ["", ".", "..", "/", "/etc/passwd", "a/b", "../x", "a\0", &"x".repeat(256)] {
        assert!(Folder::new().add(name, file(b"x")).is_err(), "{name:?}");
        let mut recipe = sample().1.recipe();
        recipe.params.insert("files".to_owned(), Value::List(vec![Value::Text(name.to_owned())]));
        assert!(Folder::of(&recipe).is_err(), "{name:?}");
    }
}

#[test]
fn only_the_one_encoding_is_a_folder() {
    let names =
        |names: &[&str]| Value::List(names.iter().map(|name| Value::Text((*name).to_owned())).collect());
    let one = || Recipe::new("folder/1.0.0".parse().unwrap(), vec![Address::of(b"1"), Address::of(b"2")]);
    let with = |params: &[(&str, Value)]| {
        let mut recipe = one();
        recipe.params.extend(params.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        Folder::of(&recipe).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(with(&[("files", names(&["a", "b"]))]), Ok(()));
    for params in [
        vec![("files", names(&["b", "a"]))],
        vec![("files", names(&["a", "a"]))],
        vec![("files", names(&["a"]))],
        vec![("files", names(&["a", "b"])), ("folders", names(&[]))],
        vec![("files", names(&["a"])), ("folders", names(&["a"]))],
        vec![("files", names(&["a", "b"])), ("executable", names(&["c"]))],
        vec![("files", names(&["a", "b"])), ("links", Value::Map(Default::default()))],
        vec![("files", Value::Int(2))],
    ] {
        assert!(with(&params).is_err(), "{params:?}");
    }
}

#[tokio::test]
async fn the_value_of_a_folder_lists_it_and_paths_lead_inside() {
    let executor = Executor::in_memory(Functions::builtin()).unwrap();
    executor.put("one").await.unwrap();
    executor.put("two").await.unwrap();
    let (folder, below) = sample();
    executor.add(&below.recipe(), UnknownFunction::Refuse).await.unwrap();
    let address = executor.add(&folder.recipe(), UnknownFunction::Refuse).await.unwrap().address;
    let listing = executor.get(&address, &Get::default()).await.unwrap().bytes().await.unwrap();
    expect![[r#"
        {"version":1,"entries":[
        {"name":"a","kind":"file","address":"d33fb48ab5adff269ae172b29a6913ff04f6f266207a7a8e976f2ecd571d4492","size":3,"executable":true},
        {"name":"sub","kind":"folder","address":"14c7af3ebb25350eaf4261ed687cfbf7e847f0185103d54d572967bdaf9dafc4"},
        {"name":"z","kind":"link","target":"a"}
        ]}
    "#]]
    .assert_eq(str::from_utf8(&listing).unwrap());
    executor.store().name("a:b", Some(address)).await.unwrap();
    for (text, found) in
        [("a:b", address), ("a:b:a", Address::of(b"one")), ("a:b:sub/b", Address::of(b"two"))]
    {
        assert_eq!(executor.find(text).await.unwrap(), found);
    }
    for text in ["a:b:c", "a:b:sub/../a", "a:b:z", "a:b:a/x", "a:b:a/", "a:b:/a", "a:c"] {
        assert!(executor.find(text).await.is_err(), "{text}");
    }
    // A pin of the folder holds its files and the folders in it.
    executor.store().name("a:b", None).await.unwrap();
    executor.store().pin(&address).await.unwrap();
    let grace = Duration::ZERO;
    executor.store().collect(Collect { grace, ..Collect::default() }).await.unwrap();
    assert_eq!(executor.store().get(&Address::of(b"two")).await.unwrap().unwrap(), "two");
}

/// The events that are told fit the call.
#[tokio::test]
async fn a_long_call_tells_its_progress() {
    // Each look at the clock takes a tenth of a second, and each check of a call is one.
    let clock = TestClock::stepping(Duration::from_millis(100));
    let store = Store::in_memory(anabranch_content::Config::default()).unwrap();
    let engine = clock.engine(Duration::from_micros(50));
    let executor = Executor::new(store, Functions::builtin(), engine, Config::default());
    let mut heard = executor.listen();
    let text = vec![b'a'; 8 << 20];
    let blob = executor.put(text).await.unwrap().address;
    let recipe = Recipe::new("sha256/1.0.0".parse().unwrap(), vec![blob]);
    let address = executor.add(&recipe, UnknownFunction::Refuse).await.unwrap().address;
    executor.get(&address, &Get::default()).await.unwrap();
    let mut told = Vec::new();
    loop {
        match heard.next().await.unwrap() {
            Notice::Event(Event::Progress { address: of, read, total, steps, .. }) => {
                assert_eq!((of, total), (address, 8 << 20));
                assert!(read <= total && steps > 0);
                told.push(read);
            }
            Notice::Event(Event::Computed { .. }) => break,
            _ => {}
        }
    }
    assert!(told.is_sorted() && told.len() >= 8, "{told:?}");
}
