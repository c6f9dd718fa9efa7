//! The values that a capture has for the keys of its stores, whichever node read them: for plans that read other keys.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anabranch_rows::{Column, Kind};

use super::replayed_reads::{not_captured, whole};
use super::replies::{Asker, Exchange, Replies};
use anabranch_plan::Scalar;
use anabranch_plan::source::{Data, Error, Field, Keys, Lists, Read, Reader, Reply};

/// All that a capture knows, by endpoint and key.
#[derive(Debug, Default)]
pub(super) struct Cover {
    keys: HashMap<(Arc<str>, String), CapturedKey>,
    /// Reads that failed: they answer just the same read.
    failed: Vec<(Asker, Exchange)>,
}

/// The state of a key in a table.
#[derive(Debug, Default)]
struct CapturedKey {
    /// Fields as they were read, and how long that took.
    fields: HashMap<(Arc<str>, Kind), (Option<Scalar>, Duration)>,
    list: Option<CapturedList>,
    scored: Option<CapturedList>,
}

/// The first ids of a list.
#[derive(Debug)]
struct CapturedList {
    ids: Vec<i64>,
    scores: Vec<f64>,
    /// Whether the list is complete.
    complete: bool,
    took: Duration,
}

impl CapturedList {
    /// Whether at least the first `limit` ids are known.
    fn has(&self, limit: u32) -> bool {
        self.complete || self.ids.len() >= limit as usize
    }
}

impl Cover {
    pub(super) fn new(replies: &Replies) -> Cover {
        let mut cover = Cover::default();
        for exchange in &replies.exchanges {
            let Some(asker) = replies.asker(exchange.reader) else { continue };
            match &exchange.reply {
                Err(_) => cover.failed.push((asker.clone(), exchange.clone())),
                Ok(reply) => cover.add(asker, exchange, reply),
            }
        }
        cover
    }

    fn add(&mut self, asker: &Asker, exchange: &Exchange, reply: &Reply) {
        let affixes = asker.affixes.as_ref().map(|(prefix, suffix)| (&**prefix, &**suffix));
        let mut from = 0;
        for at in 0..exchange.keys.len() {
            let len = match &reply.data {
                Data::Lists(lists) => lists.lens.get(at).map_or(0, |len| *len as usize),
                Data::Columns(_) => 0,
            };
            let range = from..from + len;
            from += len;
            let Some(key) = whole(affixes, &exchange.keys, at) else { continue };
            let known = self.keys.entry((Arc::clone(&asker.endpoint), key)).or_default();
            match (&asker.read, &reply.data) {
                (Read::Fields(fields), Data::Columns(columns)) => {
                    for (field, column) in fields.iter().zip(columns) {
                        let name = (Arc::clone(&field.name), field.kind);
                        known.fields.insert(name, (scalar(column, at), exchange.took));
                    }
                }
                (Read::List { limit } | Read::Scored { limit }, Data::Lists(lists)) => {
                    let scored = matches!(asker.read, Read::Scored { .. });
                    let scores = lists.scores.as_deref().and_then(|scores| scores.get(range.clone()));
                    let listed = CapturedList {
                        ids: lists.ids.get(range).unwrap_or_default().to_vec(),
                        scores: scores.unwrap_or_default().to_vec(),
                        complete: len < *limit as usize,
                        took: exchange.took,
                    };
                    let kept = if scored { &mut known.scored } else { &mut known.list };
                    if kept.as_ref().is_none_or(|kept| !kept.has(*limit)) {
                        *kept = Some(listed);
                    }
                }
                _ => {}
            }
        }
    }

    /// The reply that the store would have given, as one trip, and how long it would have taken.
    pub(super) fn read(
        &self,
        endpoint: &Arc<str>,
        reader: &Reader,
        keys: &Keys,
    ) -> Result<(Data, Duration), Error> {
        let mut took = Duration::ZERO;
        let found: Result<Vec<Option<&CapturedKey>>, usize> = (0..keys.len())
            .map(|at| match whole(reader.pattern.affixes(), keys, at) {
                None => Ok(None),
                Some(key) => self.keys.get(&(Arc::clone(endpoint), key)).map(Some).ok_or(at),
            })
            .collect();
        let data = found.and_then(|found| match &reader.read {
            Read::Fields(fields) => columns(fields, &found, &mut took).map(Data::Columns),
            Read::List { limit } => {
                lists(&found, *limit, |known| known.list.as_ref(), &mut took).map(Data::Lists)
            }
            Read::Scored { limit } => {
                let mut lists = lists(&found, *limit, |known| known.scored.as_ref(), &mut took)?;
                lists.scores.get_or_insert_default();
                Ok(Data::Lists(lists))
            }
        });
        match data {
            Ok(data) => Ok((data, took)),
            Err(first) => Err(self.failure(endpoint, reader, keys, first)),
        }
    }

    /// The error that the same read ended with, or else that it was not made.
    fn failure(&self, endpoint: &Arc<str>, reader: &Reader, keys: &Keys, first: usize) -> Error {
        let same = |(asker, exchange): &&(Asker, Exchange)| {
            let affixes = asker.affixes.as_ref().map(|(prefix, suffix)| (&**prefix, &**suffix));
            asker.endpoint == *endpoint
                && affixes == reader.pattern.affixes()
                && asker.read == reader.read
                && exchange.keys == *keys
        };
        match self.failed.iter().find(same).map(|(_, exchange)| &exchange.reply) {
            Some(Err(error)) => error.clone(),
            _ => not_captured(endpoint, reader, keys, first),
        }
    }
}

fn scalar(column: &Column, row: usize) -> Option<Scalar> {
    (row < column.len()).then(|| column.get(row).map(Scalar::from)).flatten()
}

/// One column per field, or the place of the first key with a field that was not captured.
fn columns(
    fields: &[Field],
    found: &[Option<&CapturedKey>],
    took: &mut Duration,
) -> Result<Vec<Column>, usize> {
    let mut column = |field: &Field| {
        let name = (Arc::clone(&field.name), field.kind);
        let mut values = Vec::with_capacity(found.len());
        for (at, known) in found.iter().enumerate() {
            let value = match known {
                None => &None,
                Some(known) => {
                    let (value, took_one) = known.fields.get(&name).ok_or(at)?;
                    *took = (*took).max(*took_one);
                    value
                }
            };
            values.push(value);
        }
        let values = values.into_iter();
        Ok(match field.kind {
            Kind::Int => Column::ints(values.map(|value| match value {
                Some(Scalar::Int(value)) => Some(*value),
                _ => None,
            })),
            Kind::Float => Column::floats(values.map(|value| match value {
                Some(Scalar::Float(value)) => Some(*value),
                _ => None,
            })),
            Kind::Bool => Column::bools(values.map(|value| match value {
                Some(Scalar::Bool(value)) => Some(*value),
                _ => None,
            })),
            Kind::Text => Column::texts(values.map(|value| match value {
                Some(Scalar::Text(value)) => Some(value),
                _ => None,
            })),
        })
    };
    fields.iter().map(&mut column).collect()
}

fn lists<'a>(
    found: &[Option<&'a CapturedKey>],
    limit: u32,
    of: impl Fn(&'a CapturedKey) -> Option<&'a CapturedList>,
    took: &mut Duration,
) -> Result<Lists, usize> {
    let mut lists = Lists::default();
    for (at, known) in found.iter().enumerate() {
        let Some(known) = known else {
            lists.lens.push(0);
            continue;
        };
        let listed = of(known).filter(|listed| listed.has(limit)).ok_or(at)?;
        let len = listed.ids.len().min(limit as usize);
        *took = (*took).max(listed.took);
        lists.lens.push(len as u32);
        lists.ids.extend_from_slice(&listed.ids[..len]);
        if let Some(scores) = listed.scores.get(..len).filter(|scores| !scores.is_empty()) {
            lists.scores.get_or_insert_default().extend_from_slice(scores);
        }
    }
    Ok(lists)
}
