//! Fills a Redis from a data file.

use std::sync::Arc;

use redis::{Cmd, Value, cmd};

use super::Redis;
use super::servers::{Commands, said};
use crate::source::Error;
use crate::source::memory::{MemoryData, Stored};

/// Keys written in one go.
const KEYS: usize = 500;

/// Items of a list or members of a sorted set in one command.
const ITEMS: usize = 1_000;

/// Writes all of `data` to a Redis, in place of what its keys held; how many keys there were.
pub async fn seed(data: &MemoryData, redis: &Redis) -> Result<usize, Error> {
    let mut keys: Vec<(&str, &Stored)> = data.iter().collect();
    keys.sort_unstable_by_key(|(key, _)| *key);
    for keys in keys.chunks(KEYS) {
        let mut writes = Writes(Vec::new());
        for (key, stored) in keys {
            writes.add(key, cmd("DEL").arg(key));
            write(data, key, stored, &mut writes);
        }
        let answers = redis.servers.exchange(&writes).await?;
        for (answer, (key, command)) in answers.values.iter().zip(&writes.0) {
            if let Value::ServerError(error) = answer {
                let name = command.args_iter().next();
                return Err(Error::Refused {
                    endpoint: Arc::clone(&redis.servers.config().endpoint),
                    command: match name {
                        Some(redis::Arg::Simple(name)) => format!("{} {key}", String::from_utf8_lossy(name)),
                        _ => key.clone(),
                    },
                    message: said(error),
                });
            }
        }
    }
    Ok(data.len())
}

fn write(data: &MemoryData, key: &str, stored: &Stored, writes: &mut Writes) {
    match stored {
        Stored::Hash(fields) => {
            let mut command = cmd("HSET");
            command.arg(key);
            for (name, value) in fields {
                command.arg(data.field(*name)).arg(&**value);
            }
            writes.add(key, &command);
        }
        Stored::List(items) => {
            for items in items.chunks(ITEMS) {
                let mut command = cmd("RPUSH");
                command.arg(key);
                items.iter().for_each(|item| _ = command.arg(&**item));
                writes.add(key, &command);
            }
        }
        Stored::Scored(members) => {
            for members in members.chunks(ITEMS) {
                let mut command = cmd("ZADD");
                command.arg(key);
                for (member, score) in members {
                    command.arg(*score).arg(&**member);
                }
                writes.add(key, &command);
            }
        }
    }
}

/// Commands with their keys.
struct Writes(Vec<(String, Cmd)>);

impl Writes {
    fn add(&mut self, key: &str, command: &Cmd) {
        self.0.push((key.to_owned(), command.clone()));
    }
}

impl Commands for Writes {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn key(&self, at: usize) -> &str {
        &self.0[at].0
    }

    fn command(&self, at: usize) -> Cmd {
        self.0[at].1.clone()
    }

    /// Items would be on their list twice.
    fn may_repeat(&self) -> bool {
        false
    }
}
