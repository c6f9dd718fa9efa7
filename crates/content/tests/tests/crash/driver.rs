//! Does things to a store, and keeps the model of what that came to.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use anabranch_content::{
    Address, Class, Collect, Config, Cost, Disk, Error, Lease, NameChange, NewMemo, Scrub, Store,
};
use anabranch_testkit::{Crash, CrashDisk};
use bytes::Bytes;

use super::model::{Fact, History, Lasts, MemoOutput, Model, StoreContents};
use super::world::{
    CONTEXT, DERIVATIONS, LENS, NAMES, PACKED, Thing, bytes, described, inputs, output, things,
};
use crate::kit::put_derivation;
use crate::store::Hand;

/// Something to do to a store.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Op {
    Put(usize, Class),
    Stream(usize, Class),
    Get(usize),
    Describe(usize),
    /// A derivation came to one of two blobs.
    Remember(usize, usize, Class),
    /// The same, with the blob's bytes, to be written behind.
    Derive(usize, usize),
    Invalidate(usize),
    Pin(Thing),
    Unpin(Thing),
    Name(usize, Option<Thing>),
    Hold(Thing),
    LetGo,
    Collect,
    Clean,
    Forward(u64),
}

/// Settings with which a few operations are enough for new segments, index flushes and merges.
pub(crate) fn small(hand: &Hand) -> Config {
    Config {
        cache_bytes: 0,
        packed_most: PACKED,
        segment_bytes: 4096,
        recent_bytes: 1024,
        io_threads: 1,
        history_kept: 3,
        ..hand.config()
    }
}

/// A store on a disk that crashes, and what it must have.
pub(crate) struct Driver {
    pub(crate) disk: CrashDisk,
    pub(crate) hand: Hand,
    pub(crate) config: Config,
    pub(crate) model: Model,
    store: Option<Store>,
    lease: Option<Lease>,
    lost_index: bool,
}

impl Driver {
    pub(crate) fn new(disk: CrashDisk) -> Driver {
        let hand = Hand::default();
        let config = small(&hand);
        Driver { disk, hand, config, model: Model::new(), store: None, lease: None, lost_index: false }
    }

    /// Opens the store, if the disk lets it.
    pub(crate) fn open(&mut self) -> Result<(), Error> {
        self.open_on(Arc::new(self.disk.clone()))
    }

    /// The same, through something before the disk.
    pub(crate) fn open_on(&mut self, disk: Arc<dyn Disk>) -> Result<(), Error> {
        self.store = Some(Store::open_on(disk, self.config.clone())?);
        Ok(())
    }

    pub(crate) fn store(&self) -> &Store {
        self.store.as_ref().expect("the store is open")
    }

    pub(crate) fn is_open(&self) -> bool {
        self.store.is_some()
    }

    /// Ends the process.
    pub(crate) fn stop(&mut self) {
        (self.lease, self.store) = (None, None);
        self.model.leased.clear();
    }

    pub(crate) async fn close(&mut self) -> Result<(), Error> {
        self.lease = None;
        self.model.leased.clear();
        self.store.take().expect("the store is open").close().await
    }

    /// Another process finds the disk as it is after a crash of this one.
    pub(crate) fn crashed(&self, seed: u64, crash: Crash) -> Driver {
        Driver {
            disk: self.disk.crash(seed, crash),
            hand: self.hand.clone(),
            config: self.config.clone(),
            model: self.model.clone(),
            store: None,
            lease: None,
            lost_index: self.lost_index,
        }
    }

    /// Removes the index.
    pub(crate) fn lose_index(&mut self) {
        self.lost_index = true;
        for (path, _) in self.disk.files().into_iter().filter(|(path, _)| path.starts_with("index")) {
            self.disk.remove_file(path);
        }
    }

    /// Opens what a crash left and checks it.
    pub(crate) async fn recover(&mut self, crash: Crash) {
        self.recover_on(Arc::new(self.disk.clone()), crash).await;
    }

    pub(crate) async fn recover_on(&mut self, disk: Arc<dyn Disk>, crash: Crash) {
        self.open_on(disk).expect("a crash never keeps a store from being opened");
        self.sensible(crash);
        let seen = self.look().await.unwrap();
        self.counts(&seen);
        self.tidy(&seen);
        self.model.check(&seen, crash);
        self.model.settle(&seen);
    }

    /// Opens what a crash left and works on it as it is: the next operations meet whatever the crash tore.
    pub(crate) fn go_on(&mut self, crash: Crash) {
        self.open().expect("a crash never keeps a store from being opened");
        self.sensible(crash);
        self.model.go_on(crash);
    }

    /// A store that was looked through has no damage.
    pub(crate) async fn scrub(&self) {
        let found = self.store().scrub(Scrub { bytes_per_second: None }).await.unwrap();
        assert_eq!((found.damaged, found.unreadable, found.index), (vec![], vec![], None));
    }

    /// Does opening report what a crash leaves, and no more?
    fn sensible(&mut self, crash: Crash) {
        let opened = self.store().opened().clone();
        assert!(opened.rebuilt.is_none() || self.lost_index, "{opened:?}");
        // A process may die before the index it made anew is on disk: then the next one makes it once more.
        self.lost_index &= opened.rebuilt.is_some();
        assert_eq!(opened.strays, [""; 0]);
        let last = self.disk.files().into_iter().map(|(path, _)| path).filter(|path| path.starts_with("log"));
        let last = last.max().map(|path| path.display().to_string());
        for unreadable in &opened.unreadable {
            // A repair may have begun a new segment since.
            let segment = |path: &str| path["log/".len()..][..8].parse::<u32>().unwrap();
            let last = last.as_ref().map(|last| segment(last));
            assert!(last.is_some_and(|last| segment(&unreadable.file) + 1 >= last), "{opened:?}");
            assert!(unreadable.torn || matches!(crash, Crash::Power | Crash::Chaos), "{unreadable:?}");
        }
    }

    /// Does one thing; says whether it was answered with an error.
    pub(crate) async fn step(&mut self, op: Op) -> Result<(), Error> {
        let store = self.store.clone().expect("the store is open");
        match op {
            Op::Put(blob, class) => self.put(blob, class, store.put(bytes(blob), class).await),
            Op::Stream(blob, class) => {
                let whole = bytes(blob);
                let pieces: Vec<Result<Bytes, Error>> =
                    whole.chunks(300).map(|piece| Ok(whole.slice_ref(piece))).collect();
                let put = store.put_stream(futures_util::stream::iter(pieces), class).await;
                self.put(blob, class, put)
            }
            Op::Get(blob) => self.get(blob).await,
            Op::Describe(derivation) => {
                let put = put_derivation(&store, CONTEXT, described(derivation)).await;
                answered(&mut self.model.derivations[derivation], put, Lasts::Now, |_| true)
            }
            Op::Remember(derivation, variant, class) => self.remember(derivation, variant, class).await,
            Op::Derive(derivation, variant) => self.derive(derivation, variant).await,
            Op::Invalidate(derivation) => {
                let done = store.invalidate(&[Thing::Derivation(derivation).address()]).await;
                answered(&mut self.model.memos[derivation], done, Lasts::Now, |_| None)
            }
            Op::Pin(thing) => {
                let done = store.pin(&thing.address()).await;
                answered(self.model.pin(thing), done, Lasts::Now, |_| true)
            }
            Op::Unpin(thing) => {
                let done = store.unpin(&thing.address()).await;
                answered(self.model.pin(thing), done, Lasts::Now, |_| false)
            }
            Op::Name(name, thing) => {
                let done = store.name(NAMES[name], thing.map(Thing::address)).await;
                let (at, kept) = (self.now(), self.config.history_kept);
                answered(&mut self.model.names[name], done, Lasts::Now, |history| {
                    let mut history = history.clone();
                    // A name that has this address already does not change.
                    if history.last().and_then(|(_, thing)| *thing) == thing {
                        return history;
                    }
                    history.push((at, thing));
                    history.drain(..history.len().saturating_sub(kept));
                    history
                })
            }
            Op::Hold(thing) => {
                let lease = self.lease.get_or_insert_with(|| store.lease());
                assert!(lease.hold(thing.address()).await.unwrap(), "nothing is being removed now");
                self.model.leased.push(thing);
                Ok(())
            }
            Op::LetGo => {
                self.lease = None;
                self.model.leased.clear();
                Ok(())
            }
            Op::Collect => self.collect().await,
            Op::Clean => store.clean().await,
            Op::Forward(seconds) => {
                self.hand.forward(Duration::from_secs(seconds));
                Ok(())
            }
        }
    }

    fn now(&self) -> u64 {
        (self.config.clock)().0
    }

    fn put(
        &mut self,
        blob: usize,
        class: Class,
        put: Result<anabranch_content::Put, Error>,
    ) -> Result<(), Error> {
        if let Ok(put) = &put {
            assert_eq!((put.address, put.len), (Thing::Blob(blob).address(), LENS[blob] as u64));
        }
        match put {
            Ok(_) => self.model.put(blob, class),
            Err(error) => {
                self.model.blobs[blob].tried(|old| (*old).max(Some(class)));
                return Err(error);
            }
        }
        Ok(())
    }

    async fn get(&mut self, blob: usize) -> Result<(), Error> {
        let address = Thing::Blob(blob).address();
        let got = match self.store().get(&address).await {
            Err(Error::Corrupt { .. }) => {
                self.model.damaged(blob);
                return Ok(());
            }
            got => got?,
        };
        assert!(got.as_ref().is_none_or(|got| *got == bytes(blob)), "blob {blob} has other bytes");
        let there = got.is_some();
        assert!(
            [None, Some(Class::Derivable), Some(Class::Acknowledged)]
                .iter()
                .any(|value| value.is_some() == there && self.model.blobs[blob].may_be(value))
        );
        Ok(())
    }

    async fn remember(&mut self, derivation: usize, variant: usize, class: Class) -> Result<(), Error> {
        let blob = output(derivation, variant);
        let inputs = addresses(inputs(derivation));
        let made = NewMemo {
            derivation: Thing::Derivation(derivation).address(),
            output: Thing::Blob(blob).address(),
            size: LENS[blob] as u64,
            cost: cost(derivation),
            inputs: &inputs,
        };
        let done = self.store().remember(made, class).await;
        if let Err(Error::Missing { .. }) = done {
            assert!(self.model.blobs[blob].may_be(&None), "blob {blob} is not missing");
            return Ok(());
        }
        answered(&mut self.model.memos[derivation], done, lasts(class), |_| Some(blob))
    }

    async fn derive(&mut self, derivation: usize, variant: usize) -> Result<(), Error> {
        let blob = output(derivation, variant);
        let inputs = addresses(inputs(derivation));
        let made = NewMemo {
            derivation: Thing::Derivation(derivation).address(),
            output: Thing::Blob(blob).address(),
            size: LENS[blob] as u64,
            cost: cost(derivation),
            inputs: &inputs,
        };
        let done = self.store().derived(made, None, bytes(blob)).await;
        // Answered or not, it is written later or never.
        self.model.blobs[blob].tried(|old| (*old).max(Some(Class::Derivable)));
        self.model.memos[derivation].tried(|_| Some(blob));
        done
    }

    async fn collect(&mut self) -> Result<(), Error> {
        let terms = Collect { grace: Duration::ZERO, ..Collect::default() };
        let seen = match self.store().collect(terms).await {
            Ok(_) => self.look().await,
            Err(error) => Err(error),
        };
        match &seen {
            Ok(seen) => self.model.collected(seen),
            Err(_) => self.model.tried_to_collect(),
        }
        seen.map(|_| ())
    }

    /// A store that was not closed in order has no other files than its blobs' once it is opened.
    fn tidy(&self, seen: &StoreContents) {
        if !self.store().opened().clean {
            let large = seen.blobs.iter().zip(LENS).filter(|(class, len)| class.is_some() && *len > PACKED);
            let files = self.disk.files().into_iter().filter(|(path, _)| path.starts_with("files"));
            assert_eq!(files.count(), large.count(), "{:?}", self.disk.files());
        }
    }

    /// Looks at everything. No bytes are wrong.
    pub(crate) async fn look(&self) -> Result<StoreContents, Error> {
        let store = self.store();
        // An answer says that what was derived before is written, or failed.
        let _ = store.invalidate(&[]).await;
        let mut seen = StoreContents::default();
        for blob in 0..LENS.len() {
            seen.blobs.push(self.look_at_blob(blob, &mut seen.damaged).await?);
        }
        for derivation in 0..DERIVATIONS {
            let address = Thing::Derivation(derivation).address();
            let found = match store.derivation(&address).await {
                Err(Error::Corrupt { .. }) => {
                    seen.damaged_derivations.insert(derivation);
                    store.derivation(&address).await
                }
                found => found,
            }?;
            seen.derivations.push(found.is_some());
            if let Some(found) = found {
                assert_eq!(
                    (found.bytes, found.inputs),
                    (described(derivation), addresses(inputs(derivation)))
                );
            }
            seen.memos.push(self.look_at_memo(derivation).await?);
        }
        let pins = store.pins(None, 100).await?;
        seen.pins = things().map(|thing| pins.contains(&thing.address())).collect();
        assert_eq!(pins.len(), seen.pins.iter().filter(|pin| **pin).count());
        for name in NAMES {
            seen.names.push(history(&store.history(name).await?));
        }
        Ok(seen)
    }

    async fn look_at_blob(&self, blob: usize, damaged: &mut BTreeSet<usize>) -> Result<Option<Class>, Error> {
        let address = Thing::Blob(blob).address();
        let got = match self.store().get(&address).await {
            Err(Error::Corrupt { .. }) => {
                damaged.insert(blob);
                self.store().get(&address).await
            }
            got => got,
        }?;
        let standing = self.store().status(&address).await?;
        assert_eq!(got.as_ref().map(Bytes::len), standing.blob.map(|(len, _)| len as usize));
        assert!(got.is_none_or(|got| got == bytes(blob)), "blob {blob} has other bytes");
        Ok(standing.blob.map(|(_, class)| class))
    }

    async fn look_at_memo(&self, derivation: usize) -> Result<MemoOutput, Error> {
        let address = Thing::Derivation(derivation).address();
        let Some(memo) = self.store().recall(&address).await? else { return Ok(None) };
        let variants = [output(derivation, 0), output(derivation, 1)];
        let blob = *variants.iter().find(|blob| Thing::Blob(**blob).address() == memo.output).unwrap();
        assert_eq!((memo.derivation, memo.size), (address, LENS[blob] as u64));
        assert_eq!(memo.cost, cost(derivation));
        Ok(Some(blob))
    }

    /// Counts are right in a store that was just opened.
    fn counts(&self, seen: &StoreContents) {
        let stats = self.store().stats();
        let count = |there: &mut dyn Iterator<Item = bool>| there.filter(|there| *there).count() as u64;
        assert_eq!(stats.blobs, count(&mut seen.blobs.iter().map(Option::is_some)), "{seen:?}");
        assert_eq!(stats.derivations, count(&mut seen.derivations.iter().copied()));
        assert_eq!(stats.memos, count(&mut seen.memos.iter().map(Option::is_some)));
        assert_eq!(stats.pins, count(&mut seen.pins.iter().copied()));
        let means = |history: &History| history.last().is_some_and(|(_, thing)| thing.is_some());
        assert_eq!(stats.names, count(&mut seen.names.iter().map(means)));
    }
}

fn answered<T: Clone + Ord, A>(
    fact: &mut Fact<T>,
    answer: Result<A, Error>,
    lasts: Lasts,
    change: impl Fn(&T) -> T,
) -> Result<(), Error> {
    match answer {
        Ok(_) => fact.done(lasts, change),
        Err(error) => {
            fact.tried(change);
            return Err(error);
        }
    }
    Ok(())
}

fn lasts(class: Class) -> Lasts {
    match class {
        Class::Acknowledged => Lasts::Now,
        Class::Derivable => Lasts::Perhaps,
    }
}

fn cost(derivation: usize) -> Cost {
    Cost { cpu: Duration::from_millis(5), tokens: derivation as u64, micros: 9 }
}

fn addresses(things: Vec<Thing>) -> Vec<Address> {
    things.into_iter().map(Thing::address).collect()
}

fn history(named: &[NameChange]) -> History {
    let thing = |address: Address| things().find(|thing| thing.address() == address).unwrap();
    named.iter().map(|named| (named.at.0, named.address.map(thing))).collect()
}
