//! The peer of our Redis driver: a source that reads with the crate `redis` (redis-rs), as ours did before it had a
//! driver of its own. One pipeline per trip, each key once, replies as trees of values that become columns and lists.

use std::sync::Arc;

use anabranch_plan::source::{
    Bound, Data, Fetch, Field, Keys, Lists, Pattern, Read, ReadContext, Reply, Source,
};
use anabranch_rows::{Column, Interner, Kind, Text};
use hashbrown::HashMap;
use redis::{Cmd, Pipeline, Value};

use super::by_hand::Connections;

/// A source that reads with redis-rs.
pub(super) struct RedisRs(pub(super) Connections);

struct Ask {
    connections: Connections,
    prefix: Box<str>,
    suffix: Box<str>,
    read: Read,
}

impl Source for RedisRs {
    fn bind(&self, pattern: &Pattern, read: &Read) -> Arc<dyn Bound> {
        let (prefix, suffix) = pattern.affixes().expect("the bench's plans read by id");
        let ask = Ask {
            connections: self.0.clone(),
            prefix: prefix.into(),
            suffix: suffix.into(),
            read: read.clone(),
        };
        Arc::new(Peer(Arc::new(ask)))
    }

    fn max_inflight(&self) -> Option<u32> {
        Some(64)
    }
}

struct Peer(Arc<Ask>);

impl Bound for Peer {
    fn fetch(&self, keys: Keys, _: ReadContext<'_>) -> Fetch {
        let ask = Arc::clone(&self.0);
        Fetch::Later(Box::pin(async move {
            let Keys::Ids(ids) = keys else { panic!("the bench's plans read by id") };
            Ok(ask.make(&ids).await)
        }))
    }
}

impl Ask {
    async fn make(&self, ids: &[i64]) -> Reply {
        let mut known = HashMap::with_capacity(ids.len());
        let mut pipeline = Pipeline::with_capacity(ids.len());
        let place = |id: &i64| {
            let next = known.len();
            *known.entry(*id).or_insert_with(|| {
                pipeline.add_command(self.command(*id));
                next
            })
        };
        let places: Vec<usize> = ids.iter().map(place).collect();
        let mut connection = self.connections.next();
        let replies = connection.send_packed_commands(&pipeline, 0, pipeline.len()).await;
        let replies = replies.expect("the Redis answers");
        let data = match &self.read {
            Read::Fields(fields) => Data::Columns(columns(fields, &replies, &places)),
            Read::List { .. } => Data::Lists(lists(&replies, &places)),
            Read::Scored { .. } => panic!("the bench's plans read no scores"),
        };
        Reply::whole(data, 1, replies.len() as u32)
    }

    fn command(&self, id: i64) -> Cmd {
        let key = format!("{}{id}{}", self.prefix, self.suffix);
        let mut command;
        match &self.read {
            Read::Fields(fields) => {
                let bytes = fields.iter().map(|field| field.name.len()).sum::<usize>() + key.len() + 5;
                command = Cmd::with_capacity(fields.len() + 2, bytes);
                command.arg(if fields.len() == 1 { "HGET" } else { "HMGET" }).arg(&key);
                fields.iter().for_each(|field| _ = command.arg(&*field.name));
            }
            Read::List { limit } | Read::Scored { limit } => {
                command = Cmd::with_capacity(4, key.len() + 20);
                command.arg("LRANGE").arg(&key).arg(0).arg(limit - 1);
            }
        }
        command
    }
}

fn columns(fields: &[Field], replies: &[Value], places: &[usize]) -> Vec<Column> {
    let column = |(at, field): (usize, &Field)| {
        assert_eq!(field.kind, Kind::Text, "the bench's plans read texts");
        let mut interner = Interner::default();
        let code = |place: &usize| {
            let item = match &replies[*place] {
                Value::Array(items) => &items[at],
                value => value,
            };
            match item {
                Value::Nil => None,
                Value::BulkString(bytes) => Some(interner.intern(str::from_utf8(bytes).expect("UTF-8"))),
                other => panic!("{other:?}"),
            }
        };
        let codes: Vec<Option<i32>> = places.iter().map(code).collect();
        Column::Text(Text::new(codes.into(), interner.finish()))
    };
    fields.iter().enumerate().map(column).collect()
}

fn lists(replies: &[Value], places: &[usize]) -> Lists {
    let mut lists = Lists { lens: Vec::with_capacity(places.len()), ..Lists::default() };
    for place in places {
        let Value::Array(items) = &replies[*place] else { panic!("{:?}", replies[*place]) };
        lists.lens.push(items.len() as u32);
        for item in items {
            let Value::BulkString(bytes) = item else { panic!("{item:?}") };
            let text = str::from_utf8(bytes).expect("UTF-8");
            lists.ids.push(text.parse().expect("an id"));
        }
    }
    lists
}
