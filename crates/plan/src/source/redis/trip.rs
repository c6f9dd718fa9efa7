//! A read of a Redis: its keys as commands, each key once.

use std::sync::Arc;

use hashbrown::HashMap;

use super::encode::Template;
use super::servers::{Answers, Commands, Part, Servers};
use super::sink::{Fault, FaultKind, FoundValue, MalformedValue, Sink};
use super::slots;
use crate::bounds::Budget;
use crate::source::merge::merge;
use crate::source::share::Pick;
use crate::source::{Bound, Data, Error, Fetch, Keys, MalformedValues, Pattern, Read, ReadContext, Reply};

/// A read, bound to a Redis.
pub(super) struct BoundRead {
    servers: Arc<Servers>,
    ask: Arc<Ask>,
}

/// The command for each key.
struct Ask {
    template: Template,
    read: Read,
}

impl BoundRead {
    pub(super) fn new(servers: Arc<Servers>, pattern: &Pattern, read: &Read) -> BoundRead {
        let affixes = pattern.affixes().unwrap_or(("", ""));
        let name = read.command();
        let template = match read {
            Read::Fields(fields) => {
                let names: Vec<&str> = fields.iter().map(|field| &*field.name).collect();
                Template::new(name, &names, affixes)
            }
            Read::List { limit } => {
                Template::new(name, &["0", &limit.saturating_sub(1).to_string()], affixes)
            }
            Read::Scored { limit } => {
                let last = limit.saturating_sub(1).to_string();
                Template::new(name, &["0", &last, "REV", "WITHSCORES"], affixes)
            }
        };
        BoundRead { servers, ask: Arc::new(Ask { template, read: read.clone() }) }
    }
}

impl Bound for BoundRead {
    fn fetch(&self, keys: Keys, context: ReadContext<'_>) -> Fetch {
        if let Some(reply) = self.ask.read.without_trip(&keys) {
            return Fetch::Ready(Ok(reply));
        }
        let (servers, ask) = (Arc::clone(&self.servers), Arc::clone(&self.ask));
        let budget = Arc::clone(context.budget);
        Fetch::Later(Box::pin(async move {
            let rows = keys.len();
            let (batch, places) = Batch::new(&ask, &budget, keys);
            let answers = servers.exchange(&batch).await?;
            batch.reply(&servers, answers, places, rows)
        }))
    }
}

/// The place of a row that has no key.
const NO_KEY: u32 = u32::MAX;

/// Distinct keys, and the command for each.
struct Batch<'a> {
    ask: &'a Ask,
    /// The budget of the request, which replies are counted in.
    budget: &'a Arc<Budget>,
    keys: Distinct,
}

enum Distinct {
    Ids(Vec<i64>),
    Whole(Vec<Box<str>>),
}

impl<'a> Batch<'a> {
    /// The commands, each key once, and for each row the place of its command; `None` where that is its own.
    fn new(ask: &'a Ask, budget: &'a Arc<Budget>, keys: Keys) -> (Batch<'a>, Option<Vec<u32>>) {
        let (keys, places) = match keys {
            Keys::Ids(ids) => {
                if ids.is_sorted_by(|a, b| a < b) {
                    return (Batch { ask, budget, keys: Distinct::Ids(ids) }, None);
                }
                let mut known = HashMap::with_capacity(ids.len());
                let mut distinct = Vec::with_capacity(ids.len());
                let place = |id: &i64| {
                    *known.entry(*id).or_insert_with(|| {
                        distinct.push(*id);
                        distinct.len() as u32 - 1
                    })
                };
                let places: Vec<u32> = ids.iter().map(place).collect();
                (Distinct::Ids(distinct), places)
            }
            Keys::Whole(keys) => {
                let mut known: HashMap<&str, u32> = HashMap::with_capacity(keys.len());
                let mut distinct: Vec<Box<str>> = Vec::with_capacity(keys.len());
                let mut places: Vec<u32> = Vec::with_capacity(keys.len());
                for key in &keys {
                    let place = key.as_ref().map_or(NO_KEY, |key| {
                        *known.entry(key).or_insert_with(|| {
                            distinct.push(key.clone());
                            distinct.len() as u32 - 1
                        })
                    });
                    places.push(place);
                }
                (Distinct::Whole(distinct), places)
            }
        };
        let batch = Batch { ask, budget, keys };
        let repeats = batch.len() < places.len();
        (batch, repeats.then_some(places))
    }

    fn reply(
        &self,
        servers: &Servers,
        answers: Answers,
        places: Option<Vec<u32>>,
        rows: usize,
    ) -> Result<Reply, Error> {
        let Answers { mut parts, trips } = answers;
        let mut malformed = MalformedValues::default();
        for part in &mut parts {
            part.sink.settle();
            if let Some(fault) = part.sink.fault.take() {
                return Err(self.fault(servers, part, fault));
            }
            let Some(first) = part.sink.first_malformed.take() else { continue };
            let error = self.malformed_error(servers, part, first);
            if servers.config().strict_values {
                return Err(error);
            }
            malformed
                .add(MalformedValues { count: part.sink.malformed, first: Some(error.to_string().into()) });
        }
        let data = match (&parts[..], &places) {
            ([Part { places: None, .. }], None) => parts.swap_remove(0).sink.into_data(),
            _ => self.gathered(parts, places, rows),
        };
        Ok(Reply { data, trips, commands: self.len() as u32, malformed })
    }

    /// The rows of several parts in the order of the keys.
    fn gathered(&self, parts: Vec<Part>, places: Option<Vec<u32>>, rows: usize) -> Data {
        let mut by_command = vec![None; self.len()];
        let mut replies = Vec::with_capacity(parts.len());
        for (part, reply) in parts.into_iter().zip(0..) {
            for row in 0..part.sink.rows() {
                by_command[part.place(row) as usize] = Some(Pick { reply, row });
            }
            replies.push(Arc::new(part.sink.into_data()));
        }
        let picks: Vec<Option<Pick>> = match places {
            None => by_command,
            Some(places) => places.iter().map(|place| *by_command.get(*place as usize)?).collect(),
        };
        debug_assert_eq!(picks.len(), rows);
        merge(&replies, &picks)
    }

    fn fault(&self, servers: &Servers, part: &Part, fault: Fault) -> Error {
        let endpoint = Arc::clone(&servers.config().endpoint);
        let command = self.name(part.place(fault.row) as usize);
        match fault.kind {
            FaultKind::Refused(message) => servers.refused(command, message),
            FaultKind::TooLong(cause) => Error::TooLong { endpoint, command, cause },
            FaultKind::TooMany(count) => Error::Malformed {
                endpoint,
                command,
                found: format!("a list of {count}"),
                expected: "at most as many items as were asked for",
            },
        }
    }

    /// A value that could not be read, as an error about it.
    fn malformed_error(&self, servers: &Servers, part: &Part, value: MalformedValue) -> Error {
        let endpoint = Arc::clone(&servers.config().endpoint);
        let mut command = self.name(part.place(value.row) as usize);
        if let (Some(at), Read::Fields(fields)) = (value.field, &self.ask.read) {
            command = format!("{command} {}", fields[at].name);
        }
        let found = match value.found {
            FoundValue::WrongType(message) => return Error::Refused { endpoint, command, message },
            FoundValue::Value(found) => found,
            FoundValue::Item(item) => format!("the item {item}"),
        };
        Error::Malformed { endpoint, command, found, expected: value.expected }
    }
}

impl Commands for Batch<'_> {
    fn len(&self) -> usize {
        match &self.keys {
            Distinct::Ids(ids) => ids.len(),
            Distinct::Whole(keys) => keys.len(),
        }
    }

    fn slot(&self, at: usize) -> u16 {
        match &self.keys {
            Distinct::Ids(ids) => slots::of(self.ask.template.key_of(ids[at]).as_bytes()),
            Distinct::Whole(keys) => slots::of(keys[at].as_bytes()),
        }
    }

    fn encode(&self, at: usize, out: &mut Vec<u8>) {
        match &self.keys {
            Distinct::Ids(ids) => self.ask.template.id(out, ids[at]),
            Distinct::Whole(keys) => self.ask.template.text(out, &keys[at]),
        }
    }

    fn size(&self) -> usize {
        self.ask.template.size()
    }

    fn name(&self, at: usize) -> String {
        let command = self.ask.read.command();
        match &self.keys {
            Distinct::Ids(ids) => format!("{command} {}", self.ask.template.key_of(ids[at])),
            Distinct::Whole(keys) => format!("{command} {}", keys[at]),
        }
    }

    fn sink(&self, commands: usize) -> Sink {
        Sink::of(&self.ask.read, commands, self.budget.reply())
    }
}
