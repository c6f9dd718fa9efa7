//! A store with a bit of everything, what it holds, and copies of it to be damaged.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anabranch_content::{Address, Config, Event, Scrub, Store};
use anabranch_engine::Engine;
use anabranch_recipe::{Error, Executor, FunctionId, Functions, Get, Recipe, UnknownFunction};
use anabranch_testkit::Rng;

use crate::binary::scratch;

/// What was acknowledged.
#[derive(Clone, Default)]
pub(super) struct HeldContent {
    /// What an address answers: a blob, or the value of a recipe.
    values: BTreeMap<Address, Vec<u8>>,
    pins: BTreeSet<Address>,
    unpinned: BTreeSet<Address>,
    names: BTreeMap<String, Address>,
}

/// Something that was acknowledged and is not as it was.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LostItem {
    /// Nothing is there.
    Value(Address),
    /// It is not pinned.
    Pin(Address),
    /// It is pinned again.
    Unpin(Address),
    /// It means nothing, or what it meant before.
    Name(String),
}

/// What was found of what was acknowledged.
#[derive(Default)]
pub(super) struct ReadReport {
    pub(super) lost: BTreeSet<LostItem>,
    /// Bytes that are not what they should be: never.
    pub(super) wrong: Vec<String>,
    /// Calls that failed and said why.
    pub(super) errors: Vec<String>,
}

/// A store at rest.
pub(super) struct Fixture {
    pub(super) folder: PathBuf,
    pub(super) held: HeldContent,
    /// What was put after the index was written for the last time, and the first segment of the log that has it. The end
    /// of a log that was not closed may be cut by a crash, so it may be missing without a word.
    pub(super) tail: Option<(HeldContent, String)>,
    /// Ends of records in the log.
    pub(super) boundaries: Vec<Boundary>,
}

/// Where a record of the log ends.
pub(super) struct Boundary {
    /// The segment.
    pub(super) file: String,
    /// Its length up to there.
    pub(super) len: u64,
}

/// The end of the log as it is now.
fn end_of_log(folder: &Path) -> Boundary {
    let last = listed(&folder.join("log")).pop().expect("the log has segments");
    let len = fs::metadata(&last).unwrap().len();
    Boundary { file: last.file_name().unwrap().to_str().unwrap().to_owned(), len }
}

/// How a store came to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    Closed,
    Crashed,
}

fn small(events: &Arc<Mutex<Vec<Event>>>) -> Config {
    let events = Arc::clone(events);
    Config {
        packed_most: 4 << 10,
        segment_bytes: 16 << 10,
        recent_bytes: 4 << 10,
        listener: Some(Arc::new(move |event| events.lock().unwrap().push(event.clone()))),
        ..Config::default()
    }
}

fn noise(rng: &mut Rng, len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = (0..len.div_ceil(8)).flat_map(|_| rng.bits().to_le_bytes()).collect();
    bytes.truncate(len);
    bytes
}

impl Fixture {
    /// Makes a store and lets it come to rest.
    pub(super) async fn new(rest: Rest, test: &str) -> Fixture {
        let folder = scratch(&format!("damage_{test}_{rest:?}"));
        fs::remove_dir_all(&folder).unwrap();
        let (mut held, mut tail, mut boundaries) = (HeldContent::default(), None, Vec::new());
        let opened = OpenStore::of(&folder);
        fill(&opened.executor, &mut held, 0..40, &mut || boundaries.push(end_of_log(&folder))).await;
        opened.close().await;
        if rest == Rest::Crashed {
            let work = folder.with_extension("open");
            let _ = fs::remove_dir_all(&work);
            copy(&folder, &work);
            fs::remove_dir_all(&folder).unwrap();
            let opened = OpenStore::of(&work);
            let last = listed(&work.join("log")).pop().expect("the log has segments");
            let mut after = held.clone();
            fill(&opened.executor, &mut after, 40..50, &mut || boundaries.push(end_of_log(&work))).await;
            opened.executor.store().written().await.unwrap();
            copy(&work, &folder);
            opened.close().await;
            fs::remove_dir_all(&work).unwrap();
            tail = Some((held, last.file_name().unwrap().to_str().unwrap().to_owned()));
            held = after;
        }
        Fixture { folder, held, tail, boundaries }
    }

    /// What may be missing without a word after damage to a file.
    pub(super) fn may_be_a_crash(&self, file: &Path, lost: &LostItem) -> bool {
        let Some((before, last)) = &self.tail else { return false };
        let is_behind = file.parent().is_some_and(|folder| folder.ends_with("log"))
            && file.file_name().unwrap().to_str().unwrap() > last.as_str();
        is_behind
            && match lost {
                LostItem::Value(address) => !before.values.contains_key(address),
                LostItem::Pin(address) => !before.pins.contains(address),
                LostItem::Unpin(address) => !before.unpinned.contains(address),
                LostItem::Name(name) => before.names.get(name) != self.held.names.get(name),
            }
    }
}

/// Puts blobs of these numbers, recipes over them, pins and names.
async fn fill(
    executor: &Executor,
    held: &mut HeldContent,
    numbers: std::ops::Range<u64>,
    acknowledged: &mut impl FnMut(),
) {
    let store = executor.store();
    let mut blobs = Vec::new();
    for number in numbers {
        let mut rng = Rng::new(number);
        let len = match number % 10 {
            0 => 0,
            1..=6 => rng.within(1..3_000),
            7 | 8 => rng.within(4_000..20_000),
            _ => rng.within(100_000..300_000),
        };
        let bytes = match len {
            0 => format!("{number}").into_bytes(),
            len => noise(&mut rng, len as usize),
        };
        let address = executor.put(bytes.clone()).await.unwrap().address;
        held.values.insert(address, bytes);
        blobs.push(address);
        acknowledged();
        if number % 5 == 0 {
            store.pin(&address).await.unwrap();
            held.pins.insert(address);
        }
        if number % 5 == 2 {
            // The name of another blob before: what it means must not go back in time.
            let name = format!("name {}", number % 20);
            store.name(&name, Some(address)).await.unwrap();
            held.names.insert(name, address);
            acknowledged();
        }
    }
    let empty = executor.put("").await.unwrap().address;
    held.values.insert(empty, Vec::new());
    for (at, some) in blobs.chunks(3).enumerate() {
        let recipe = Recipe::new(FunctionId::new("concat", "1.0.0"), some.to_vec());
        let address = executor.add(&recipe, UnknownFunction::Refuse).await.unwrap().address;
        let bytes: Vec<u8> = some.iter().flat_map(|blob| held.values[blob].clone()).collect();
        let got = executor.get(&address, &Get::default()).await.unwrap().bytes().await.unwrap();
        assert_eq!(got, bytes);
        held.values.insert(address, bytes);
        if at % 3 == 0 {
            store.pin(&address).await.unwrap();
            held.pins.insert(address);
            let name = format!("recipe {at}");
            store.name(&name, Some(address)).await.unwrap();
            held.names.insert(name, address);
            acknowledged();
        }
    }
    for pin in held.pins.iter().copied().step_by(4).collect::<Vec<_>>() {
        store.unpin(&pin).await.unwrap();
        held.pins.remove(&pin);
        held.unpinned.insert(pin);
        acknowledged();
    }
}

/// An open store, and what it tells.
pub(super) struct OpenStore {
    executor: Executor,
    events: Arc<Mutex<Vec<Event>>>,
}

impl OpenStore {
    pub(super) fn of(folder: &Path) -> OpenStore {
        let events = Arc::default();
        let store = Store::open(folder, small(&events)).unwrap();
        let engine = Engine::new(&anabranch_engine::Config::default()).unwrap();
        let executor =
            Executor::new(store, Functions::builtin(), engine, anabranch_recipe::Config::default());
        OpenStore { executor, events }
    }

    /// The store may be damaged, so that closing it fails: it says so then.
    pub(super) async fn close(self) -> Option<String> {
        self.executor.store().clone().close().await.err().map(|error| error.to_string())
    }

    /// Reads everything that was acknowledged.
    pub(super) async fn look(&self, held: &HeldContent) -> ReadReport {
        let mut found = ReadReport::default();
        for (address, expected) in &held.values {
            let value = async { self.executor.get(address, &Get::default()).await?.bytes().await };
            match value.await {
                Ok(value) if value == *expected => {}
                Ok(value) => found.wrong.push(format!("{address}: {} bytes that are others", value.len())),
                Err(Error::NotFound { .. }) => drop(found.lost.insert(LostItem::Value(*address))),
                Err(error) => found.errors.push(format!("{address}: {error}")),
            }
        }
        let store = self.executor.store();
        match store.pins(None, 10_000).await {
            Ok(pins) => {
                let pins: BTreeSet<Address> = pins.into_iter().collect();
                found.lost.extend(held.pins.difference(&pins).copied().map(LostItem::Pin));
                found.lost.extend(pins.difference(&held.pins).copied().map(LostItem::Unpin));
            }
            Err(error) => found.errors.push(format!("pins: {error}")),
        }
        for (name, expected) in &held.names {
            match store.named(name).await {
                Ok(Some(address)) if address == *expected => {}
                Ok(_) => drop(found.lost.insert(LostItem::Name(name.clone()))),
                Err(error) => found.errors.push(format!("{name}: {error}")),
            }
        }
        found
    }

    /// Scrubs the store; says what that found.
    pub(super) async fn scrub(&self) -> Vec<String> {
        let scrubbed = self.executor.store().scrub(Scrub { bytes_per_second: None }).await.unwrap();
        let damaged = scrubbed.damaged.iter().map(|address| format!("{address} is damaged"));
        let unreadable = scrubbed.unreadable.iter().filter(|stretch| !stretch.torn);
        damaged.chain(unreadable.map(|stretch| format!("{stretch:?}"))).collect()
    }

    /// What the store says of acknowledged things that were lost, besides the errors of calls.
    pub(super) fn reported(&self) -> Vec<String> {
        let opened = self.executor.store().opened();
        let unreadable = opened.unreadable.iter().filter(|stretch| !stretch.torn);
        let mut reported: Vec<String> = unreadable.map(|stretch| format!("{stretch:?}")).collect();
        for event in &*self.events.lock().unwrap() {
            if let Event::Quarantined { address, what, .. } = event {
                reported.push(format!("{address}: {what}"));
            }
        }
        let lost = self.executor.store().stats().health.lost;
        reported.extend((lost > 0).then(|| format!("{lost} lost")));
        reported
    }
}

/// The files of a folder and those below, in order.
pub(super) fn listed(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        match entry.file_type().unwrap().is_dir() {
            true => files.extend(listed(&entry.path())),
            false => files.push(entry.path()),
        }
    }
    files.sort();
    files
}

/// Copies a folder, of an open store too: what is removed meanwhile is not copied.
pub(super) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy(&entry.path(), &target),
            false => match fs::copy(entry.path(), target) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                copied => drop(copied.unwrap()),
            },
        }
    }
}
