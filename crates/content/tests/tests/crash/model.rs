//! What a store must have, and may have, after all that was asked of it.

use std::collections::BTreeSet;

use anabranch_content::Class;
use anabranch_testkit::Crash;

use super::world::{DERIVATIONS, LENS, NAMES, PACKED, Thing, inputs, things};

/// What may be found of one fact: when the process alone ended, and when power failed.
#[derive(Clone, Debug)]
pub(crate) struct Fact<T> {
    now: BTreeSet<T>,
    durable: BTreeSet<T>,
}

/// When an answer means that the change is on the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lasts {
    Now,
    Perhaps,
}

impl<T: Clone + Ord> Fact<T> {
    fn new(value: T) -> Fact<T> {
        let only = BTreeSet::from([value]);
        Fact { now: only.clone(), durable: only }
    }

    /// A change was answered.
    pub(crate) fn done(&mut self, lasts: Lasts, change: impl Fn(&T) -> T) {
        self.now = self.now.iter().map(change).collect();
        match lasts {
            Lasts::Now => self.durable = self.now.clone(),
            Lasts::Perhaps => self.durable.extend(self.now.iter().cloned()),
        }
    }

    /// A change was answered with an error.
    pub(crate) fn tried(&mut self, change: impl Fn(&T) -> T) {
        let new: Vec<T> = self.now.iter().map(change).collect();
        self.now.extend(new);
        self.durable.extend(self.now.iter().cloned());
    }

    pub(crate) fn may_be(&self, value: &T) -> bool {
        self.now.contains(value)
    }

    pub(crate) fn after(&self, crash: Crash) -> &BTreeSet<T> {
        if crash == Crash::Kill { &self.now } else { &self.durable }
    }

    /// It was found to be so, on the disk.
    pub(crate) fn found(&mut self, value: T) {
        *self = Fact::new(value);
    }

    /// What it is for sure.
    pub(crate) fn sure(&self) -> Option<&T> {
        self.now.first().filter(|_| self.now.len() == 1)
    }
}

/// The blob that a derivation came to.
pub(crate) type MemoOutput = Option<usize>;
/// Times and what was named.
pub(crate) type History = Vec<(u64, Option<Thing>)>;

#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) blobs: Vec<Fact<Option<Class>>>,
    pub(crate) derivations: Vec<Fact<bool>>,
    pub(crate) memos: Vec<Fact<MemoOutput>>,
    /// In the order of [`things`].
    pub(crate) pins: Vec<Fact<bool>>,
    pub(crate) names: Vec<Fact<History>>,
    pub(crate) leased: Vec<Thing>,
    /// Large blobs that nobody has read since a power cut that may have torn their files.
    pub(crate) unread: BTreeSet<usize>,
}

/// What a store was found to have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct StoreContents {
    pub(crate) blobs: Vec<Option<Class>>,
    pub(crate) derivations: Vec<bool>,
    pub(crate) memos: Vec<MemoOutput>,
    pub(crate) pins: Vec<bool>,
    pub(crate) names: Vec<History>,
    /// Blobs whose bytes were not there any more, and that are missing now.
    pub(crate) damaged: BTreeSet<usize>,
    /// The same of derivations.
    pub(crate) damaged_derivations: BTreeSet<usize>,
}

/// What collection must leave.
#[derive(Debug, Default)]
pub(crate) struct HeldThings {
    pub(crate) blobs: BTreeSet<usize>,
    pub(crate) derivations: BTreeSet<usize>,
    pub(crate) memos: BTreeSet<usize>,
}

impl StoreContents {
    /// What is left of it when some of its blobs and derivations are damaged.
    pub(crate) fn without(&self, blobs: &BTreeSet<usize>, derivations: &BTreeSet<usize>) -> StoreContents {
        let mut left = self.clone();
        blobs.iter().for_each(|blob| left.blobs[*blob] = None);
        derivations.iter().for_each(|derivation| left.derivations[*derivation] = false);
        // A memo goes with the blob it came to.
        for memo in &mut left.memos {
            *memo = memo.filter(|output| !blobs.contains(output));
        }
        (left.damaged, left.damaged_derivations) = (blobs.clone(), derivations.clone());
        left
    }
}

impl Model {
    pub(crate) fn new() -> Model {
        Model {
            blobs: vec![Fact::new(None); LENS.len()],
            derivations: vec![Fact::new(false); DERIVATIONS],
            memos: vec![Fact::new(None); DERIVATIONS],
            pins: things().map(|_| Fact::new(false)).collect(),
            names: vec![Fact::new(History::new()); NAMES.len()],
            leased: Vec::new(),
            unread: BTreeSet::new(),
        }
    }

    pub(crate) fn pin(&mut self, thing: Thing) -> &mut Fact<bool> {
        let place = things().position(|other| other == thing).unwrap();
        &mut self.pins[place]
    }

    /// Is it one of the things that may be after a crash?
    pub(crate) fn check(&self, seen: &StoreContents, crash: Crash) {
        for (number, (fact, value)) in self.blobs.iter().zip(&seen.blobs).enumerate() {
            let may = fact.after(crash);
            assert!(may.contains(value), "blob {number} is {value:?}, not one of {may:?}");
            let damaged = seen.damaged.contains(&number);
            let torn_before = self.unread.contains(&number);
            assert!(!damaged || crash != Crash::Kill || torn_before, "blob {number} was damaged by a kill");
        }
        same("derivation", &self.derivations, &seen.derivations, crash);
        for (number, (fact, value)) in self.memos.iter().zip(&seen.memos).enumerate() {
            let may = fact.after(crash);
            // A memo goes with the blob it came to.
            let is_lost = |output: &usize| {
                seen.damaged.contains(output)
                    || self.unread.contains(output)
                    || self.may_be_torn(*output, crash)
            };
            let lost = value.is_none() && may.iter().flatten().any(is_lost);
            assert!(lost || may.contains(value), "memo {number} is {value:?}, not one of {may:?}");
        }
        same("pin", &self.pins, &seen.pins, crash);
        same("name", &self.names, &seen.names, crash);
    }

    /// May the file of a blob be torn by this crash? Only a derivable one is not synced before its put is answered.
    fn may_be_torn(&self, blob: usize, crash: Crash) -> bool {
        let derivable = || self.blobs[blob].after(crash).contains(&Some(Class::Derivable));
        crash != Crash::Kill && LENS[blob] > PACKED && derivable()
    }

    /// The next process goes straight on, without a look at what the crash left.
    pub(crate) fn go_on(&mut self, crash: Crash) {
        let torn: Vec<usize> = (0..LENS.len()).filter(|blob| self.may_be_torn(*blob, crash)).collect();
        self.unread.extend(torn);
        go_on(&mut self.blobs, crash);
        for (blob, fact) in self.blobs.iter_mut().enumerate() {
            if LENS[blob] > PACKED && fact.may_be(&Some(Class::Derivable)) {
                fact.durable.insert(None);
            }
            // Its row may be there, and its bytes not.
            if self.unread.contains(&blob) {
                fact.now.insert(None);
            }
        }
        go_on(&mut self.derivations, crash);
        go_on(&mut self.memos, crash);
        go_on(&mut self.pins, crash);
        go_on(&mut self.names, crash);
    }

    /// A put was answered.
    pub(crate) fn put(&mut self, blob: usize, class: Class) {
        match class {
            Class::Acknowledged => {
                // Whatever was left of it, now it is whole and on the disk.
                self.unread.remove(&blob);
                self.blobs[blob].done(Lasts::Now, |old| (*old).max(Some(class)));
            }
            Class::Derivable => {
                self.blobs[blob].done(Lasts::Perhaps, |old| (*old).max(Some(class)));
                if self.unread.contains(&blob) {
                    self.blobs[blob].now.insert(None);
                }
            }
        }
    }

    /// A read found that a blob's bytes are not there any more.
    pub(crate) fn damaged(&mut self, blob: usize) {
        assert!(self.unread.contains(&blob), "blob {blob} is damaged, and no power cut tore its file");
        self.blobs[blob].found(None);
        self.memos.iter_mut().for_each(|memo| memo.tried(|old| old.filter(|output| *output != blob)));
    }

    /// From here on, this is how it is. What was read from the log when a store was opened is durable.
    pub(crate) fn settle(&mut self, seen: &StoreContents) {
        self.unread.clear();
        settle(&mut self.blobs, &seen.blobs);
        for (fact, len) in self.blobs.iter_mut().zip(LENS) {
            // Its file may yet be lost.
            if len > PACKED && fact.may_be(&Some(Class::Derivable)) {
                fact.durable.insert(None);
            }
        }
        settle(&mut self.derivations, &seen.derivations);
        settle(&mut self.memos, &seen.memos);
        settle(&mut self.pins, &seen.pins);
        settle(&mut self.names, &seen.names);
    }

    /// A collection was answered, after which this was seen: nothing that is held is gone, and nothing else came.
    pub(crate) fn collected(&mut self, seen: &StoreContents) {
        let held = self.held();
        left("blob", &mut self.blobs, &seen.blobs, &held.blobs, &None);
        left("derivation", &mut self.derivations, &seen.derivations, &held.derivations, &false);
        left("memo", &mut self.memos, &seen.memos, &held.memos, &None);
    }

    /// A collection was answered with an error: it may have removed what is not held.
    pub(crate) fn tried_to_collect(&mut self) {
        let held = self.held();
        may_have_left(&mut self.blobs, &held.blobs, &None);
        may_have_left(&mut self.derivations, &held.derivations, &false);
        may_have_left(&mut self.memos, &held.memos, &None);
    }

    /// What is held for sure: by pins, names and leases, as far as it is sure what those lead to.
    pub(crate) fn held(&self) -> HeldThings {
        let pinned = things().zip(&self.pins).filter(|(_, pin)| pin.sure() == Some(&true));
        let mut stack: Vec<(Thing, bool)> = pinned.map(|(thing, _)| (thing, true)).collect();
        for history in self.names.iter().filter_map(Fact::sure) {
            stack.extend(history.iter().filter_map(|(_, thing)| Some(((*thing)?, true))));
        }
        stack.extend(self.leased.iter().map(|thing| (*thing, true)));
        let mut held = HeldThings::default();
        let mut done = BTreeSet::new();
        while let Some((thing, value)) = stack.pop() {
            if !done.insert((thing, value)) {
                continue;
            }
            match thing {
                Thing::Blob(blob) => _ = held.blobs.insert(blob),
                Thing::Derivation(number) => self.hold(number, value, &mut held, &mut stack),
            }
        }
        held
    }

    fn hold(&self, number: usize, value: bool, held: &mut HeldThings, stack: &mut Vec<(Thing, bool)>) {
        let described = self.derivations[number].sure();
        if described == Some(&true) {
            held.derivations.insert(number);
            stack.extend(inputs(number).into_iter().map(|input| (input, false)));
        }
        let Some(Some(output)) = self.memos[number].sure() else { return };
        // Without its output a memo may go.
        let there = self.blobs[*output].sure().is_some_and(Option::is_some) && !self.unread.contains(output);
        if there && (value || described == Some(&false)) {
            held.memos.insert(number);
            stack.push((Thing::Blob(*output), true));
            stack.extend(inputs(number).into_iter().map(|input| (input, false)));
        }
    }
}

fn same<T: Clone + Ord + std::fmt::Debug>(what: &str, facts: &[Fact<T>], seen: &[T], crash: Crash) {
    for (number, (fact, value)) in facts.iter().zip(seen).enumerate() {
        let may = fact.after(crash);
        assert!(may.contains(value), "{what} {number} is {value:?}, not one of {may:?}");
    }
}

fn go_on<T: Clone + Ord>(facts: &mut [Fact<T>], crash: Crash) {
    for fact in facts {
        let may = fact.after(crash).clone();
        // What a process reads from the log when it opens the store is durable then.
        *fact = Fact { now: may.clone(), durable: may };
    }
}

fn settle<T: Clone + Ord>(facts: &mut [Fact<T>], seen: &[T]) {
    facts.iter_mut().zip(seen).for_each(|(fact, value)| fact.found(value.clone()));
}

fn left<T: Clone + Ord + std::fmt::Debug>(
    what: &str,
    facts: &mut [Fact<T>],
    seen: &[T],
    held: &BTreeSet<usize>,
    gone: &T,
) {
    for (number, (fact, value)) in facts.iter_mut().zip(seen).enumerate() {
        let may = fact.may_be(value) || (value == gone && !held.contains(&number));
        assert!(may, "collection left {what} {number} as {value:?}; it was one of {:?}", fact.now);
        // What was not sure is not sure now either: the log may have what the index does not.
        if value == gone && fact.sure().is_some() {
            fact.found(gone.clone());
        } else if value == gone {
            fact.tried(|_| gone.clone());
        }
    }
}

fn may_have_left<T: Clone + Ord>(facts: &mut [Fact<T>], held: &BTreeSet<usize>, gone: &T) {
    let loose = facts.iter_mut().enumerate().filter(|(number, _)| !held.contains(number));
    loose.for_each(|(_, fact)| fact.tried(|_| gone.clone()));
}
