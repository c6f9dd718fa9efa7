//! Limits by key: who may call a backend now, and who is next.
//!
//! A key's queue holds runs, not nodes: a run waits once, however many of its nodes could start, and gives the slot
//! it gets to the best of them. So a million ready nodes cost one place in a queue, and runs take turns.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::time::{Duration, Instant};

use super::super::clock::Clock;
use super::super::sync::{Arc, Mutex, MutexGuard, PoisonError};
use super::adaptive::{Adaptive, Call, Learned, Moved};
use super::allowance::{Allowance, Concurrency};
use super::bucket::{Bucket, Quota, Rate};
use super::entry::{Entry, Fitted, Waiting};
use super::error::Error;
use super::permit::{Ended, Permit};

/// The limits of a process's backends. A handle: clones share them.
#[derive(Clone)]
pub struct Limits {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Arc<dyn Clock>,
    /// When the table was made.
    made: Instant,
    table: Mutex<Table>,
}

/// Names one limit of the table that gave it out; another table takes it for one of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LimitKey(u32);

impl LimitKey {
    pub(crate) fn numbered(number: usize) -> LimitKey {
        LimitKey(number as u32)
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl std::fmt::Display for LimitKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// What a key is doing now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Calls that may be in flight.
    pub limit: u32,
    /// Calls in flight.
    pub in_flight: u32,
    /// Runs that wait for a slot.
    pub waiting: usize,
    /// Until when the backend asked to be left alone.
    pub cooling_until: Option<Instant>,
}

/// A run as a limit sees it. Called without any lock held.
pub(crate) trait Customer: Send + Sync {
    /// A slot is yours.
    fn granted(&self, permit: Permit);
    /// Nothing will happen to this key before `at`: ask for its queue to be served then.
    fn look_at(&self, key: LimitKey, at: Instant);
}

/// What asking for a slot gives.
pub(crate) enum Asked {
    Granted(Permit),
    /// The answer comes later, to the customer; dropping this gives up the place.
    Queued(Place),
}

struct Table {
    keys: Vec<Entry>,
    arrivals: u64,
}

/// What to say to customers once the lock is gone.
pub(super) enum News {
    Granted(Arc<dyn Customer>, Granted),
    LookAt(Arc<dyn Customer>, LimitKey, Instant),
}

pub(super) struct Granted {
    key: u32,
    call: Call,
    tokens: u32,
}

impl Limits {
    /// A table without keys.
    pub fn new(clock: Arc<dyn Clock>) -> Limits {
        let table = Mutex::new(Table { keys: Vec::new(), arrivals: 0 });
        let made = clock.now();
        Limits { shared: Arc::new(Shared { clock, made, table }) }
    }

    /// Adds a limit. `name` is what [`save`](Self::save) files it under.
    pub fn add(&self, name: &str, allowance: Allowance) -> Result<LimitKey, Error> {
        let now = self.shared.clock.now();
        let concurrency = match allowance.concurrency {
            Concurrency::Fixed(0) => return Err(Error::Zero { field: "concurrency" }),
            Concurrency::Fixed(limit) => Fitted::Fixed(limit),
            Concurrency::Adaptive(bounds) => Fitted::Adaptive(Box::new(Adaptive::new(bounds)?)),
        };
        let bucket = |rate: Option<Rate>| rate.map(|rate| Bucket::new(rate, now)).transpose();
        let (requests, tokens) = (bucket(allowance.requests)?, bucket(allowance.tokens)?);
        let mut table = self.lock();
        let key = table.keys.len() as u32;
        if allowance.parent.is_some_and(|parent| parent.0 >= key) {
            return Err(Error::NoParent);
        }
        if table.keys.iter().any(|entry| entry.name == name) {
            return Err(Error::SameName(name.to_owned()));
        }
        table.keys.push(Entry {
            name: name.to_owned(),
            concurrency,
            requests,
            tokens,
            parent: allowance.parent.map(|parent| parent.0),
            in_flight: 0,
            cooling_until: None,
            waiting: BTreeMap::new(),
            turns: VecDeque::new(),
            told: None,
        });
        Ok(LimitKey(key))
    }

    /// Whether this table gave out `key`, or another one as high.
    pub(crate) fn has(&self, key: LimitKey) -> bool {
        (key.0 as usize) < self.lock().keys.len()
    }

    /// What `key` is doing now.
    pub fn standing(&self, key: LimitKey) -> Standing {
        let table = self.lock();
        let entry = &table.keys[key.0 as usize];
        Standing {
            limit: entry.limit(),
            in_flight: entry.in_flight,
            waiting: entry.waiting.len(),
            cooling_until: entry.cooling_until.filter(|until| *until > self.shared.clock.now()),
        }
    }

    /// What the adaptive limits have learned, by name.
    pub fn save(&self) -> Vec<(String, Learned)> {
        let table = self.lock();
        let learned = table.keys.iter().filter_map(|entry| match &entry.concurrency {
            Fitted::Fixed(_) => None,
            Fitted::Adaptive(adaptive) => Some((entry.name.clone(), adaptive.save())),
        });
        learned.collect()
    }

    /// Goes on from what was saved; names without an adaptive limit here are passed over.
    pub fn load(&self, learned: &[(String, Learned)]) {
        let mut table = self.lock();
        for entry in &mut table.keys {
            let known = learned.iter().find(|(name, _)| *name == entry.name);
            if let (Fitted::Adaptive(adaptive), Some((_, learned))) = (&mut entry.concurrency, known) {
                adaptive.load(*learned);
            }
        }
    }

    /// Corrects the tokens counted for a call, its policy's `tokens`, by what it really used; for the limits above
    /// `key` too.
    pub fn used(&self, key: LimitKey, counted: u32, used: u32) {
        let now = self.shared.clock.now();
        let mut table = self.lock();
        let Ok(()) = table.climb(key.0, |_, entry| {
            entry.tokens.iter_mut().for_each(|bucket| bucket.correct(now, counted.into(), used.into()));
            Ok::<(), Infallible>(())
        });
        let news = table.serve(key.0, now);
        drop(table);
        self.tell(news);
    }

    /// Takes the backend's own word on requests left to this key; feed the limit above where it speaks of that.
    pub fn feed_requests(&self, key: LimitKey, quota: Quota) {
        self.change(key.0, |entry, now| entry.requests.iter_mut().for_each(|bucket| bucket.feed(now, quota)));
    }

    /// Takes the backend's own word on tokens left to this key.
    pub fn feed_tokens(&self, key: LimitKey, quota: Quota) {
        self.change(key.0, |entry, now| entry.tokens.iter_mut().for_each(|bucket| bucket.feed(now, quota)));
    }

    /// Asks for a slot. Whoever already waits goes first.
    pub(crate) fn ask(
        &self,
        key: LimitKey,
        tokens: u32,
        customer: impl FnOnce() -> Arc<dyn Customer>,
    ) -> Asked {
        let mut table = self.lock();
        let now = self.time_for(&table, key.0, None);
        if table.keys[key.0 as usize].waiting.is_empty()
            && let Ok(granted) = table.grant(key.0, tokens, now)
        {
            drop(table);
            return Asked::Granted(self.permit(&granted));
        }
        let arrival = table.arrivals;
        table.arrivals += 1;
        let waiting = Waiting { customer: customer(), tokens };
        table.keys[key.0 as usize].waiting.insert(arrival, waiting);
        table.take_turn(key.0);
        let news = table.serve(key.0, now);
        drop(table);
        self.tell(news);
        Asked::Queued(Place { limits: self.clone(), key: key.0, arrival })
    }

    /// Serves the queue of `key` as far as it goes now.
    pub(crate) fn look(&self, key: LimitKey) {
        self.change(key.0, |entry, _| entry.told = None);
    }

    /// A call has ended; `None` when it was not made.
    pub(crate) fn end(&self, key: LimitKey, call: Call, tokens: u32, ended: Option<Ended>) -> Option<Moved> {
        let mut table = self.lock();
        let now = self.time_for(&table, key.0, ended);
        let moved = table.end(key.0, now, (call, tokens), ended);
        let news = table.serve(key.0, now);
        drop(table);
        self.tell(news);
        moved
    }

    /// Changes an entry and serves its queue. What the change gives back is dropped without the lock.
    fn change<T>(&self, key: u32, change: impl FnOnce(&mut Entry, Instant) -> T) {
        let now = self.shared.clock.now();
        let mut table = self.lock();
        let _removed = change(&mut table.keys[key as usize], now);
        let news = table.serve(key, now);
        drop(table);
        self.tell(news);
    }

    /// The time, or any time where nothing depends on it: reading the clock costs as much as the rest of a grant.
    fn time_for(&self, table: &Table, key: u32, ended: Option<Ended>) -> Instant {
        let waits = !table.keys[table.root(key) as usize].turns.is_empty();
        let asks_for_pause = ended.is_some_and(|ended| ended.retry_after.is_some());
        if waits || asks_for_pause || table.line(key).any(|key| table.keys[key as usize].is_timed()) {
            self.shared.clock.now()
        } else {
            self.shared.made
        }
    }

    fn tell(&self, news: Vec<News>) {
        for item in news {
            match item {
                News::Granted(customer, granted) => customer.granted(self.permit(&granted)),
                News::LookAt(customer, key, at) => customer.look_at(key, at),
            }
        }
    }

    fn permit(&self, granted: &Granted) -> Permit {
        Permit::new(self.clone(), LimitKey(granted.key), granted.call, granted.tokens)
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.shared.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A run's place in a key's queue, given up when dropped.
pub(crate) struct Place {
    limits: Limits,
    key: u32,
    arrival: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        let arrival = self.arrival;
        // Being first in the queue includes looking after it in time: the next one takes that over.
        self.limits.change(self.key, |entry, _| entry.waiting.remove(&arrival));
    }
}

impl Table {
    /// The key, its parent, and so on up.
    fn line(&self, key: u32) -> impl Iterator<Item = u32> + use<'_> {
        std::iter::successors(Some(key), |key| self.keys[*key as usize].parent)
    }

    /// Does something to the entries of the key and of all above it, up to an error.
    fn climb<E>(
        &mut self,
        key: u32,
        mut each: impl FnMut(u32, &mut Entry) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut place = Some(key);
        while let Some(key) = place {
            let entry = &mut self.keys[key as usize];
            place = entry.parent;
            each(key, entry)?;
        }
        Ok(())
    }

    /// Takes a slot of the key and of all above it, or none; the error is when it is worth asking again, if that is
    /// a matter of time.
    fn grant(&mut self, key: u32, tokens: u32, now: Instant) -> Result<Granted, Option<Instant>> {
        self.climb(key, |_, entry| entry.has_room(now))?;
        let mut taken = 0;
        let took = self.climb(key, |_, entry| entry.take(tokens, now).map(|()| taken += 1));
        if let Err(at) = took {
            let mut undo = |_, entry: &mut Entry| match taken {
                0 => Err(()),
                _ => {
                    entry.put_back(tokens, now);
                    taken -= 1;
                    Ok(())
                }
            };
            // Ends with an error where taking did.
            let _ = self.climb(key, &mut undo);
            return Err(Some(at));
        }
        let mut in_flight = 0;
        let Ok(()) = self.climb(key, |place, entry| {
            entry.in_flight += 1;
            if place == key {
                in_flight = entry.in_flight;
            }
            Ok::<(), Infallible>(())
        });
        Ok(Granted { key, call: Call { began: now, in_flight }, tokens })
    }

    fn end(
        &mut self,
        key: u32,
        now: Instant,
        (call, tokens): (Call, u32),
        ended: Option<Ended>,
    ) -> Option<Moved> {
        let mut moved = None;
        let Ok(()) = self.climb(key, |place, entry| {
            let in_flight = entry.in_flight;
            entry.in_flight -= 1;
            let Some(ended) = ended else {
                entry.put_back(tokens, now);
                return Ok::<(), Infallible>(());
            };
            entry.settle(tokens, now);
            if place == key
                && let Some(pause) = ended.retry_after
            {
                entry.cool(now + pause);
            }
            let call = if place == key { call } else { Call { in_flight, ..call } };
            if let Fitted::Adaptive(adaptive) = &mut entry.concurrency {
                let change = adaptive.ended(now, call, in_flight, ended.verdict);
                moved = moved.or(change);
            }
            Ok(())
        });
        moved
    }

    fn take_turn(&mut self, key: u32) {
        let root = self.root(key);
        let turns = &mut self.keys[root as usize].turns;
        if !turns.contains(&key) {
            turns.push_back(key);
        }
    }

    fn root(&self, key: u32) -> u32 {
        self.line(key).last().expect("a line has its key")
    }

    /// Grants what can be granted under the key's root: keys in turn, and in a key whoever came first.
    fn serve(&mut self, key: u32, now: Instant) -> Vec<News> {
        let root = self.root(key);
        if self.keys[root as usize].turns.is_empty() {
            return Vec::new();
        }
        let mut turns = std::mem::take(&mut self.keys[root as usize].turns);
        let (mut news, mut refused) = (Vec::new(), 0);
        while refused < turns.len()
            && let Some(key) = turns.pop_front()
        {
            let Some((&arrival, waiting)) = self.keys[key as usize].waiting.first_key_value() else {
                continue;
            };
            match self.grant(key, waiting.tokens, now) {
                Ok(granted) => {
                    let first = self.keys[key as usize].waiting.remove(&arrival).expect("was just seen");
                    news.push(News::Granted(first.customer, granted));
                    refused = 0;
                }
                Err(at) => {
                    news.extend(at.and_then(|at| self.keys[key as usize].tell_first(LimitKey(key), at)));
                    refused += 1;
                }
            }
            turns.push_back(key);
        }
        self.keys[root as usize].turns = turns;
        news
    }
}

/// The longest pause a backend can ask for; more is taken for this.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(3600);
