//! A read of a Redis: its keys as commands, each key once.

use std::fmt::Write as _;
use std::sync::Arc;

use hashbrown::HashMap;
use redis::Cmd;

use super::decode::{Asked, NO_KEY, decode};
use super::servers::{Commands, Servers};
use crate::source::{Bound, Error, Fetch, Keys, Pattern, Read, Reply};

/// A read, bound to a Redis.
pub(super) struct Trip {
    servers: Arc<Servers>,
    ask: Arc<Ask>,
}

/// What is asked for each key.
struct Ask {
    /// What stands around ids.
    prefix: Box<str>,
    suffix: Box<str>,
    read: Read,
}

impl Trip {
    pub(super) fn new(servers: Arc<Servers>, pattern: &Pattern, read: &Read) -> Trip {
        let (prefix, suffix) = pattern.affixes().unwrap_or(("", ""));
        let ask = Ask { prefix: prefix.into(), suffix: suffix.into(), read: read.clone() };
        Trip { servers, ask: Arc::new(ask) }
    }
}

impl Bound for Trip {
    fn fetch(&self, keys: Keys) -> Fetch {
        if let Some(reply) = self.ask.read.without_trip(&keys) {
            return Fetch::Ready(Ok(reply));
        }
        let (servers, ask) = (Arc::clone(&self.servers), Arc::clone(&self.ask));
        Fetch::Later(Box::pin(async move { ask.make(&servers, &keys).await }))
    }
}

impl Ask {
    async fn make(&self, servers: &Servers, keys: &Keys) -> Result<Reply, Error> {
        let (batch, places) = self.batch(keys);
        let answers = servers.exchange(&batch).await?;
        let endpoint = &servers.config().endpoint;
        let name = self.read.command();
        let asked = Asked { endpoint, command: &|place| format!("{name} {}", batch.key(place as usize)) };
        let data = match places {
            None => decode(&self.read, &asked, &answers.values, 0..keys.len() as u32),
            Some(places) => decode(&self.read, &asked, &answers.values, places.into_iter()),
        };
        Ok(Reply::whole(data?, answers.trips, batch.len() as u32))
    }

    /// The commands, each key once, and for each row the place of its command; `None` where that is its own.
    fn batch(&self, keys: &Keys) -> (Batch<'_>, Option<Vec<u32>>) {
        let mut batch = Batch { ask: self, keys: String::new(), ends: Vec::with_capacity(keys.len()) };
        let places: Vec<u32> = match keys {
            Keys::Ids(ids) => {
                let mut known = HashMap::with_capacity(ids.len());
                let place = |id: &i64| *known.entry(*id).or_insert_with(|| batch.add_id(*id));
                ids.iter().map(place).collect()
            }
            Keys::Whole(keys) => {
                let mut known = HashMap::with_capacity(keys.len());
                let place = |key: &Option<Box<str>>| match key {
                    Some(key) => *known.entry(key.clone()).or_insert_with(|| batch.add(key)),
                    None => NO_KEY,
                };
                keys.iter().map(place).collect()
            }
        };
        let places = (batch.len() < places.len()).then_some(places);
        (batch, places)
    }
}

/// Distinct keys, one after the other, and what is asked of each.
struct Batch<'a> {
    ask: &'a Ask,
    keys: String,
    /// Where each key ends.
    ends: Vec<u32>,
}

impl Batch<'_> {
    fn add_id(&mut self, id: i64) -> u32 {
        self.keys.push_str(&self.ask.prefix);
        write!(self.keys, "{id}").expect("a string takes all that is written");
        self.add(&self.ask.suffix)
    }

    /// Ends a key with this; its place.
    fn add(&mut self, text: &str) -> u32 {
        self.keys.push_str(text);
        self.ends.push(u32::try_from(self.keys.len()).expect("the keys of a trip are shorter than 4 GB"));
        self.ends.len() as u32 - 1
    }
}

impl Commands for Batch<'_> {
    fn len(&self) -> usize {
        self.ends.len()
    }

    fn key(&self, at: usize) -> &str {
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.keys[start as usize..self.ends[at] as usize]
    }

    fn command(&self, at: usize) -> Cmd {
        let key = self.key(at);
        let mut command;
        match &self.ask.read {
            Read::Fields(fields) => {
                let bytes = fields.iter().map(|field| field.name.len()).sum::<usize>() + key.len() + 5;
                command = Cmd::with_capacity(fields.len() + 2, bytes);
                command.arg(self.ask.read.command()).arg(key);
                for field in &**fields {
                    command.arg(&*field.name);
                }
            }
            Read::List { limit } => {
                command = Cmd::with_capacity(4, key.len() + 20);
                command.arg("LRANGE").arg(key).arg(0).arg(limit - 1);
            }
            Read::Scored { limit } => {
                command = Cmd::with_capacity(6, key.len() + 40);
                command.arg("ZRANGE").arg(key).arg(0).arg(limit - 1).arg("REV").arg("WITHSCORES");
            }
        }
        command
    }
}
