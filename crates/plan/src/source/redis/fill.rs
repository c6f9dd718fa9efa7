//! Fills a Redis from a data file.

use std::sync::Arc;

use super::Redis;
use super::encode::{head, word};
use super::servers::Commands;
use super::sink::{Sink, Value};
use super::slots;
use crate::source::Error;
use crate::source::memory::{MemoryData, StoredEntry};

/// Keys written in one go.
const KEYS: usize = 500;

/// Items of a list or members of a sorted set in one command.
const ITEMS: usize = 1_000;

/// Writes all of `data` to a Redis and replaces the values of its keys; returns the number of keys.
pub async fn seed(data: &MemoryData, redis: &Redis) -> Result<usize, Error> {
    let mut keys: Vec<(&str, &StoredEntry)> = data.iter().collect();
    keys.sort_unstable_by_key(|(key, _)| *key);
    for keys in keys.chunks(KEYS) {
        let mut writes = Writes(Vec::new());
        for (key, stored) in keys {
            writes.add("DEL", key, []);
            write(data, key, stored, &mut writes);
        }
        let answers = redis.servers.exchange(&writes).await?;
        for part in answers.parts {
            let places = part.places.clone();
            for (value, row) in part.sink.into_values().into_iter().zip(0..) {
                let Value::Error(message) = value else { continue };
                let place = places.as_ref().map_or(row, |places: &Vec<u32>| places[row as usize]);
                let command = writes.name(place as usize);
                return Err(redis.servers.refused(command, message));
            }
        }
    }
    Ok(data.len())
}

fn write(data: &MemoryData, key: &str, stored: &StoredEntry, writes: &mut Writes) {
    match stored {
        StoredEntry::Hash(fields) => {
            let words = fields.iter().flat_map(|(name, value)| [data.field(*name), &**value]);
            writes.add("HSET", key, words.map(str::to_owned));
        }
        StoredEntry::List(items) => {
            for items in items.chunks(ITEMS) {
                writes.add("RPUSH", key, items.iter().map(|item| item.to_string()));
            }
        }
        StoredEntry::Scored(members) => {
            for members in members.chunks(ITEMS) {
                let words =
                    members.iter().flat_map(|(member, score)| [score.to_string(), member.to_string()]);
                writes.add("ZADD", key, words);
            }
        }
    }
}

/// Commands with their names and keys.
struct Writes(Vec<(&'static str, String, Arc<[u8]>)>);

impl Writes {
    fn add(&mut self, name: &'static str, key: &str, words: impl IntoIterator<Item = String>) {
        let words: Vec<String> = words.into_iter().collect();
        let mut bytes = Vec::new();
        head(&mut bytes, words.len() + 2);
        word(&mut bytes, name.as_bytes());
        word(&mut bytes, key.as_bytes());
        words.iter().for_each(|text| word(&mut bytes, text.as_bytes()));
        self.0.push((name, key.to_owned(), bytes.into()));
    }
}

impl Commands for Writes {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn slot(&self, at: usize) -> u16 {
        slots::of(self.0[at].1.as_bytes())
    }

    fn encode(&self, at: usize, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.0[at].2);
    }

    fn size(&self) -> usize {
        128
    }

    fn name(&self, at: usize) -> String {
        format!("{} {}", self.0[at].0, self.0[at].1)
    }

    fn sink(&self, _: usize) -> Sink {
        Sink::values()
    }

    /// Items would be on their list twice.
    fn may_repeat(&self) -> bool {
        false
    }
}
