//! The table of limits: grants slots and keeps the queues.
//!
//! The queue of a limit holds runs, not nodes. A run has one place regardless of the number of its nodes that could
//! start, and passes the slot that it gets to the best of them. So a million ready nodes cost one place in a queue, and
//! runs take turns.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::time::{Duration, Instant};

use super::super::clock::Clock;
use super::super::sync::{Arc, Mutex, MutexGuard, PoisonError};
use super::adaptive::{Adaptive, Call, CallOutcome, LearnedLimit, LimitChange};
use super::allowance::{Allowance, Concurrency};
use super::bucket::{Bucket, Quota, Rate};
use super::entry::{ConcurrencyState, Entry, WaitingRun};
use super::error::Error;
use super::permit::{CallEnd, Permit};

/// The limits of the backends of a process. A handle: clones share the table.
#[derive(Clone)]
pub struct Limits {
    shared: Arc<Shared>,
}

struct Shared {
    clock: Arc<dyn Clock>,
    /// The time of the table's creation, used as an arbitrary time.
    made: Instant,
    table: Mutex<Table>,
}

/// Names a limit of one [`Limits`] table. Used with another table it names one of that table's limits.
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

/// The present state of a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitStatus {
    /// Calls that may be in flight.
    pub limit: u32,
    /// Calls in flight.
    pub in_flight: u32,
    /// Runs that wait for a slot.
    pub waiting: usize,
    /// The end of the pause that the backend requested.
    pub cooling_until: Option<Instant>,
    /// Calls that were made and have ended.
    pub calls: u64,
    /// Calls that the backend refused, such as with HTTP 429.
    pub refused: u64,
    /// Requests that can be made now, if the limit has a rate of requests.
    pub requests_left: Option<u64>,
    /// Tokens that can be used now, if the limit has a rate of tokens.
    pub tokens_left: Option<u64>,
}

/// A run that waits for a slot. Called while no lock is held.
pub(crate) trait SlotReceiver: Send + Sync {
    /// Receives the slot.
    fn granted(&self, permit: Permit);
    /// Asks the receiver to call [`Limits::look`] at `at`, because the limit has no free slot before then.
    fn look_at(&self, key: LimitKey, at: Instant);
}

/// The reply to a request for a slot.
pub(crate) enum SlotReply {
    Granted(Permit),
    /// The receiver gets the slot later. Dropping the place cancels the request.
    Queued(QueuePlace),
}

struct Table {
    keys: Vec<Entry>,
    arrivals: u64,
}

/// A message to a receiver, sent once the lock is released.
pub(super) enum Notice {
    Granted(Arc<dyn SlotReceiver>, GrantedSlot),
    LookAt(Arc<dyn SlotReceiver>, LimitKey, Instant),
}

pub(super) struct GrantedSlot {
    key: u32,
    call: Call,
    tokens: u32,
}

impl Limits {
    /// A table without limits.
    pub fn new(clock: Arc<dyn Clock>) -> Limits {
        let table = Mutex::new(Table { keys: Vec::new(), arrivals: 0 });
        let made = clock.now();
        Limits { shared: Arc::new(Shared { clock, made, table }) }
    }

    /// Adds a limit. [`save`](Self::save) and [`load`](Self::load) find it by its name.
    pub fn add(&self, name: &str, allowance: Allowance) -> Result<LimitKey, Error> {
        let now = self.shared.clock.now();
        let concurrency = match allowance.concurrency {
            Concurrency::Fixed(0) => return Err(Error::Zero { field: "concurrency" }),
            Concurrency::Fixed(limit) => ConcurrencyState::Fixed(limit),
            Concurrency::Adaptive(bounds) => ConcurrencyState::Adaptive(Box::new(Adaptive::new(bounds)?)),
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
            calls: 0,
            refused: 0,
            cooling_until: None,
            waiting: BTreeMap::new(),
            turns: VecDeque::new(),
            asked_to_look: None,
        });
        Ok(LimitKey(key))
    }

    /// Whether the table has a limit of this number.
    pub(crate) fn has(&self, key: LimitKey) -> bool {
        (key.0 as usize) < self.lock().keys.len()
    }

    /// The present state of a limit.
    pub fn status(&self, key: LimitKey) -> LimitStatus {
        let now = self.shared.clock.now();
        let table = self.lock();
        let entry = &table.keys[key.0 as usize];
        LimitStatus {
            limit: entry.limit(),
            in_flight: entry.in_flight,
            waiting: entry.waiting.len(),
            cooling_until: entry.cooling_until.filter(|until| *until > now),
            calls: entry.calls,
            refused: entry.refused,
            requests_left: entry.requests.as_ref().map(|bucket| bucket.left(now)),
            tokens_left: entry.tokens.as_ref().map(|bucket| bucket.left(now)),
        }
    }

    /// The name of a limit.
    pub fn name(&self, key: LimitKey) -> String {
        self.lock().keys[key.0 as usize].name.clone()
    }

    /// The names and present states of all limits, in the order in which they were added.
    pub fn list(&self) -> Vec<(String, LimitStatus)> {
        let names: Vec<String> = self.lock().keys.iter().map(|entry| entry.name.clone()).collect();
        let numbered = names.into_iter().enumerate();
        numbered.map(|(number, name)| (name, self.status(LimitKey(number as u32)))).collect()
    }

    /// The knowledge of the adaptive limits, by name.
    pub fn save(&self) -> Vec<(String, LearnedLimit)> {
        let table = self.lock();
        let learned = table.keys.iter().filter_map(|entry| match &entry.concurrency {
            ConcurrencyState::Fixed(_) => None,
            ConcurrencyState::Adaptive(adaptive) => Some((entry.name.clone(), adaptive.save())),
        });
        learned.collect()
    }

    /// Continues from saved knowledge. Names that have no adaptive limit in this table are ignored.
    pub fn load(&self, learned: &[(String, LearnedLimit)]) {
        let mut table = self.lock();
        for entry in &mut table.keys {
            let known = learned.iter().find(|(name, _)| *name == entry.name);
            if let (ConcurrencyState::Adaptive(adaptive), Some((_, learned))) =
                (&mut entry.concurrency, known)
            {
                adaptive.load(*learned);
            }
        }
    }

    /// Replaces the tokens that were counted for a call (`tokens` of its policy) by those that it used, in this limit
    /// and its parents. A limit whose tokens are overdrawn holds further calls back until they are refilled.
    ///
    /// A report of the backend about the same call already counts its tokens, so it must be applied after this.
    pub fn used(&self, key: LimitKey, counted: u32, used: u32) {
        let now = self.shared.clock.now();
        let mut table = self.lock();
        let Ok(()) = table.climb(key.0, |_, entry| {
            entry.tokens.iter_mut().for_each(|bucket| bucket.correct(now, counted.into(), used.into()));
            Ok::<(), Infallible>(())
        });
        let notices = table.serve(key.0, now);
        drop(table);
        self.send(notices);
    }

    /// Takes over the request quota that the backend reports for this limit. Call it with the parent's key if the report
    /// is about the parent.
    ///
    /// A limit without a rate of requests gets the reported one and follows later reports; a rate that was set is only
    /// lowered.
    pub fn feed_requests(&self, key: LimitKey, quota: Quota) {
        self.change(key.0, |entry, now| entry.feed_requests(quota, now));
    }

    /// Takes over the token quota that the backend reports for this limit, as [`feed_requests`](Self::feed_requests).
    pub fn feed_tokens(&self, key: LimitKey, quota: Quota) {
        self.change(key.0, |entry, now| entry.feed_tokens(quota, now));
    }

    /// Asks for a slot. Runs that already wait go first.
    pub(crate) fn ask(
        &self,
        key: LimitKey,
        tokens: u32,
        receiver: impl FnOnce() -> Arc<dyn SlotReceiver>,
    ) -> SlotReply {
        let mut table = self.lock();
        let now = self.time_for(&table, key.0, None);
        if table.keys[key.0 as usize].waiting.is_empty()
            && let Ok(granted) = table.grant(key.0, tokens, now)
        {
            drop(table);
            return SlotReply::Granted(self.permit(&granted));
        }
        let arrival = table.arrivals;
        table.arrivals += 1;
        let waiting = WaitingRun { receiver: receiver(), tokens };
        table.keys[key.0 as usize].waiting.insert(arrival, waiting);
        table.take_turn(key.0);
        let notices = table.serve(key.0, now);
        drop(table);
        self.send(notices);
        SlotReply::Queued(QueuePlace { limits: self.clone(), key: key.0, arrival })
    }

    /// Grants the slots that can be granted now.
    pub(crate) fn look(&self, key: LimitKey) {
        self.change(key.0, |entry, _| entry.asked_to_look = None);
    }

    /// Ends a call; `ended` is `None` if the call was not made.
    pub(crate) fn end(
        &self,
        key: LimitKey,
        call: Call,
        tokens: u32,
        ended: Option<CallEnd>,
    ) -> Option<LimitChange> {
        let mut table = self.lock();
        let now = self.time_for(&table, key.0, ended);
        let change = table.end(key.0, now, (call, tokens), ended);
        let notices = table.serve(key.0, now);
        drop(table);
        self.send(notices);
        change
    }

    /// Changes a limit and serves its queue. The value that `change` returns is dropped after the lock.
    fn change<T>(&self, key: u32, change: impl FnOnce(&mut Entry, Instant) -> T) {
        let now = self.shared.clock.now();
        let mut table = self.lock();
        let _removed = change(&mut table.keys[key as usize], now);
        let notices = table.serve(key, now);
        drop(table);
        self.send(notices);
    }

    /// The time, or any time if nothing depends on it. Reading the clock costs as much as the rest of a grant.
    fn time_for(&self, table: &Table, key: u32, ended: Option<CallEnd>) -> Instant {
        let waits = !table.keys[table.root(key) as usize].turns.is_empty();
        let asks_for_pause = ended.is_some_and(|ended| ended.retry_after.is_some());
        if waits || asks_for_pause || table.line(key).any(|key| table.keys[key as usize].is_timed()) {
            self.shared.clock.now()
        } else {
            self.shared.made
        }
    }

    fn send(&self, notices: Vec<Notice>) {
        for notice in notices {
            match notice {
                Notice::Granted(receiver, granted) => receiver.granted(self.permit(&granted)),
                Notice::LookAt(receiver, key, at) => receiver.look_at(key, at),
            }
        }
    }

    fn permit(&self, granted: &GrantedSlot) -> Permit {
        Permit::new(self.clone(), LimitKey(granted.key), granted.call, granted.tokens)
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.shared.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a run in the queue of a limit; dropping it leaves the queue.
pub(crate) struct QueuePlace {
    limits: Limits,
    key: u32,
    arrival: u64,
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        let arrival = self.arrival;
        // The first run in the queue looks at it when time has passed. If this was the first, the next is asked to.
        self.limits.change(self.key, |entry, _| entry.waiting.remove(&arrival));
    }
}

impl Table {
    /// The limit, its parent, and so on up.
    fn line(&self, key: u32) -> impl Iterator<Item = u32> + use<'_> {
        std::iter::successors(Some(key), |key| self.keys[*key as usize].parent)
    }

    /// Calls `each` for the limit and its parents, up to the first error.
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

    /// Takes a slot of the limit and of all its parents, or of none. The error is the time to ask again, if time alone
    /// can help.
    fn grant(&mut self, key: u32, tokens: u32, now: Instant) -> Result<GrantedSlot, Option<Instant>> {
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
            // Ends with an error at the limit that refused.
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
        Ok(GrantedSlot { key, call: Call { began: now, in_flight }, tokens })
    }

    fn end(
        &mut self,
        key: u32,
        now: Instant,
        (call, tokens): (Call, u32),
        ended: Option<CallEnd>,
    ) -> Option<LimitChange> {
        let mut change = None;
        let Ok(()) = self.climb(key, |place, entry| {
            let in_flight = entry.in_flight;
            entry.in_flight -= 1;
            let Some(ended) = ended else {
                entry.put_back(tokens, now);
                return Ok::<(), Infallible>(());
            };
            entry.settle(tokens, now);
            entry.calls += 1;
            entry.refused += u64::from(ended.outcome == CallOutcome::Refused);
            if place == key
                && let Some(pause) = ended.retry_after
            {
                entry.cool(now + pause);
            }
            let call = if place == key { call } else { Call { in_flight, ..call } };
            if let ConcurrencyState::Adaptive(adaptive) = &mut entry.concurrency {
                let own_change = adaptive.ended(now, call, in_flight, ended.outcome);
                change = change.or(own_change);
            }
            Ok(())
        });
        change
    }

    fn take_turn(&mut self, key: u32) {
        let root = self.root(key);
        let turns = &mut self.keys[root as usize].turns;
        if !turns.contains(&key) {
            turns.push_back(key);
        }
    }

    fn root(&self, key: u32) -> u32 {
        self.line(key).last().expect("the line begins with the limit")
    }

    /// Grants the slots that are free under the limit's root. The limit with the fewest calls in flight goes first, so
    /// that slow backends do not take all slots of a parent; limits with as many take turns. In a limit the first run
    /// goes first.
    fn serve(&mut self, key: u32, now: Instant) -> Vec<Notice> {
        let root = self.root(key);
        if self.keys[root as usize].turns.is_empty() {
            return Vec::new();
        }
        let mut turns = std::mem::take(&mut self.keys[root as usize].turns);
        let (mut notices, mut refused) = (Vec::new(), 0);
        while refused < turns.len() {
            let not_refused = turns.len() - refused;
            let in_flight = |place: &usize| self.keys[turns[*place] as usize].in_flight;
            let least = (0..not_refused).min_by_key(in_flight).expect("one was not refused");
            let key = turns.remove(least).expect("it is in the list");
            let Some((&arrival, waiting)) = self.keys[key as usize].waiting.first_key_value() else {
                continue;
            };
            match self.grant(key, waiting.tokens, now) {
                Ok(granted) => {
                    let first = self.keys[key as usize].waiting.remove(&arrival).expect("was just seen");
                    notices.push(Notice::Granted(first.receiver, granted));
                    refused = 0;
                }
                Err(at) => {
                    notices.extend(
                        at.and_then(|at| self.keys[key as usize].ask_first_to_look(LimitKey(key), at)),
                    );
                    refused += 1;
                }
            }
            turns.push_back(key);
        }
        self.keys[root as usize].turns = turns;
        notices
    }
}

/// The longest pause that a backend can ask for. A longer one is cut to this.
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(3600);
