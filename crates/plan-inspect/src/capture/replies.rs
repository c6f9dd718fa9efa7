//! The replies of sources to one request.

use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::retry::{Classified as _, Severity};
use anabranch_rows::Key;

use super::bytes::{ByteReader, ByteWriter};
use super::values::{give_data, give_keys, give_kind, take_data, take_keys, take_kind};
use anabranch_plan::source::{Error, Field, Keys, Read, Reply};

/// The version of the encoding.
const VERSION: u8 = 1;

/// All that sources said to one request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Replies {
    /// The readers, by ascending number.
    pub(super) readers: Vec<Asker>,
    pub(super) exchanges: Vec<Exchange>,
}

/// A reader of the plan: its keys, and its read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asker {
    /// Its index among the plan's readers.
    pub(super) number: u32,
    /// The id of the endpoint.
    pub(super) endpoint: Arc<str>,
    /// The text before and after an id in its keys; `None` if it reads whole keys.
    pub(super) affixes: Option<(Box<str>, Box<str>)>,
    pub(super) read: Read,
}

/// One read of one node: the request, and the reply.
#[derive(Clone, Debug)]
pub(super) struct Exchange {
    /// The reader's number.
    pub(super) reader: u32,
    pub(super) keys: Keys,
    pub(super) reply: Result<Reply, Error>,
    /// The duration of the read.
    pub(super) took: Duration,
    /// The age of the reply, if it is a stale fallback.
    pub(super) stale: Option<Duration>,
}

/// The reason why replies cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unreadable {
    /// They are of another version.
    Version(u8),
    /// They are truncated or inconsistent.
    Broken,
}

impl Replies {
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut to = ByteWriter::default();
        to.u8(VERSION);
        to.u32(self.readers.len() as u32);
        self.readers.iter().for_each(|asker| give_asker(asker, &mut to));
        to.u32(self.exchanges.len() as u32);
        self.exchanges.iter().for_each(|exchange| give_exchange(exchange, &mut to));
        to.0
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Replies, Unreadable> {
        match bytes.split_first() {
            Some((&VERSION, rest)) => take_replies(ByteReader(rest)).ok_or(Unreadable::Broken),
            Some((version, _)) => Err(Unreadable::Version(*version)),
            None => Err(Unreadable::Broken),
        }
    }

    /// The reader with this number.
    pub(super) fn asker(&self, number: u32) -> Option<&Asker> {
        let at = self.readers.binary_search_by_key(&number, |asker| asker.number).ok()?;
        Some(&self.readers[at])
    }
}

fn take_replies(mut from: ByteReader<'_>) -> Option<Replies> {
    let count = from.count(1)?;
    let readers: Vec<Asker> = (0..count).map(|_| take_asker(&mut from)).collect::<Option<_>>()?;
    if !readers.is_sorted_by(|one, next| one.number < next.number) {
        return None;
    }
    let count = from.count(1)?;
    let exchanges = (0..count).map(|_| take_exchange(&mut from)).collect::<Option<_>>()?;
    from.end()?;
    let replies = Replies { readers, exchanges };
    replies.exchanges.iter().all(|exchange| replies.asker(exchange.reader).is_some()).then_some(replies)
}

fn give_asker(asker: &Asker, to: &mut ByteWriter) {
    to.u32(asker.number);
    to.text(&asker.endpoint);
    to.flag(asker.affixes.is_some());
    if let Some((prefix, suffix)) = &asker.affixes {
        to.text(prefix);
        to.text(suffix);
    }
    match &asker.read {
        Read::Fields(fields) => {
            to.u8(0);
            to.u32(fields.len() as u32);
            for field in &**fields {
                to.text(&field.name);
                to.u32(field.key.0);
                give_kind(field.kind, to);
            }
        }
        Read::List { limit } => {
            to.u8(1);
            to.u32(*limit);
        }
        Read::Scored { limit } => {
            to.u8(2);
            to.u32(*limit);
        }
    }
}

fn take_asker(from: &mut ByteReader<'_>) -> Option<Asker> {
    let number = from.u32()?;
    let endpoint = from.text()?.into();
    let affixes = match from.flag()? {
        true => Some((from.text()?.into(), from.text()?.into())),
        false => None,
    };
    let read = match from.u8()? {
        0 => {
            let count = from.count(9)?;
            let mut field = || {
                let (name, key) = (from.text()?.into(), Key(from.u32()?));
                Some(Field { name, key, kind: take_kind(from)? })
            };
            Read::Fields((0..count).map(|_| field()).collect::<Option<Vec<_>>>()?.into())
        }
        1 => Read::List { limit: from.u32()? },
        2 => Read::Scored { limit: from.u32()? },
        _ => return None,
    };
    Some(Asker { number, endpoint, affixes, read })
}

fn give_exchange(exchange: &Exchange, to: &mut ByteWriter) {
    to.u32(exchange.reader);
    give_keys(&exchange.keys, to);
    to.u64(nanos(exchange.took));
    to.flag(exchange.stale.is_some());
    exchange.stale.iter().for_each(|age| to.u64(nanos(*age)));
    match &exchange.reply {
        Ok(reply) => {
            to.u8(0);
            to.u32(reply.trips);
            to.u32(reply.commands);
            give_data(&reply.data, to);
        }
        Err(error) => {
            to.u8(if error.severity() == Severity::Permanent { 1 } else { 2 });
            to.text(&error.to_string());
        }
    }
}

fn take_exchange(from: &mut ByteReader<'_>) -> Option<Exchange> {
    let reader = from.u32()?;
    let keys = take_keys(from)?;
    let took = Duration::from_nanos(from.u64()?);
    let stale = match from.flag()? {
        true => Some(Duration::from_nanos(from.u64()?)),
        false => None,
    };
    let failed = |severity, from: &mut ByteReader<'_>| {
        Some(Err(Error::Recorded { message: from.text()?.into(), severity }))
    };
    let reply = match from.u8()? {
        0 => {
            let (trips, commands) = (from.u32()?, from.u32()?);
            Ok(Reply::whole(take_data(from)?, trips, commands))
        }
        1 => failed(Severity::Permanent, from)?,
        2 => failed(Severity::Transient, from)?,
        _ => return None,
    };
    Some(Exchange { reader, keys, reply, took, stale })
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
