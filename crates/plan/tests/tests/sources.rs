//! Code that the tests of sources share: reads, and replies as text.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anabranch_engine::clock::{Clock, Sleep, SystemClock};
use anabranch_plan::bounds::{Bounds, Budget};
use anabranch_plan::source::{
    Bound, Data, Error, Fetch, Field, Keys, Memory, MemoryData, Pattern, Read, Redis, RedisConfig, Reply,
    Source,
};
use anabranch_rows::{Column, Key, Kind};

pub(crate) fn clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock)
}

/// So long nothing in these tests takes, however busy the machine is. Only a failing test waits as long.
pub(crate) const HANGS: Duration = Duration::from_secs(600);

/// The machine's clock, which a test can put forward: for what needs time to pass, and nothing else.
#[derive(Clone, Default)]
pub(crate) struct Ahead(Arc<AtomicU64>);

impl Ahead {
    pub(crate) fn forward(&self, time: Duration) {
        self.0.fetch_add(time.as_millis() as u64, Ordering::SeqCst);
    }

    fn by(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::SeqCst))
    }
}

impl Clock for Ahead {
    fn now(&self) -> Instant {
        SystemClock.now() + self.by()
    }

    fn sleep_until(&self, at: Instant) -> Sleep {
        SystemClock.sleep_until(at - self.by())
    }
}

/// A read of fields: names and kinds.
pub(crate) fn fields(names: &[(&str, Kind)]) -> Read {
    let field = |(at, (name, kind)): (usize, &(&str, Kind))| Field {
        name: (*name).into(),
        key: Key(2000 + at as u32),
        kind: *kind,
    };
    Read::Fields(names.iter().enumerate().map(field).collect())
}

pub(crate) fn country() -> Read {
    fields(&[("country", Kind::Text)])
}

pub(crate) fn users() -> Pattern {
    Pattern::of_id("user:")
}

pub(crate) fn memory(json: &str) -> Memory {
    Memory::new("ep_test", Arc::new(MemoryData::from_json("data.json", json).unwrap()), clock())
}

/// A Redis on this machine, which answers in the end.
pub(crate) fn config(port: u16) -> RedisConfig {
    let mut config = RedisConfig::new("127.0.0.1", port);
    config.endpoint = "ep_test".into();
    (config.connect_timeout, config.response_timeout) = (HANGS, HANGS);
    config
}

pub(crate) fn redis(port: u16) -> Redis {
    Redis::new(config(port), clock())
}

/// The budget of a request that may make as much as it likes.
pub(crate) fn unbounded() -> Arc<Budget> {
    Arc::new(Budget::new(Bounds::NONE))
}

pub(crate) async fn fetch(bound: &Arc<dyn Bound>, keys: Keys) -> Result<Reply, Error> {
    match bound.fetch(keys, (&unbounded()).into()) {
        Fetch::Ready(reply) => reply,
        Fetch::Later(reply) => reply.await,
    }
}

pub(crate) async fn ask(source: &dyn Source, pattern: &Pattern, read: &Read, ids: &[i64]) -> String {
    let bound = source.bind(pattern, read);
    show(&fetch(&bound, Keys::Ids(ids.to_vec())).await)
}

/// A reply, a row a line, or an error.
pub(crate) fn show(reply: &Result<Reply, Error>) -> String {
    match reply {
        Ok(reply) => show_data(&reply.data),
        Err(error) => error.to_string(),
    }
}

pub(crate) fn show_data(data: &Data) -> String {
    match data {
        Data::Columns(columns) => {
            let rows = columns.first().map_or(0, Column::len);
            let row = |row| columns.iter().map(|column| value(column, row)).collect::<Vec<_>>().join(" ");
            (0..rows).map(row).collect::<Vec<_>>().join("\n")
        }
        Data::Lists(lists) => {
            let mut at = 0;
            let mut list = |len: &u32| {
                let items = (at..at + *len as usize).map(|item| match &lists.scores {
                    Some(scores) => format!("{}@{}", lists.ids[item], scores[item]),
                    None => lists.ids[item].to_string(),
                });
                let text = items.collect::<Vec<_>>().join(" ");
                at += *len as usize;
                format!("[{text}]")
            };
            lists.lens.iter().map(&mut list).collect::<Vec<_>>().join("\n")
        }
    }
}

fn value(column: &Column, row: usize) -> String {
    if column.is_null(row) {
        return "null".to_owned();
    }
    match column {
        Column::Int(values) => values.value(row).to_string(),
        Column::Float(values) => format!("{:?}", values.value(row)),
        Column::Bool(values) => values.value(row).to_string(),
        Column::Text(text) => format!("{:?}", text.get(row).unwrap()),
    }
}

/// Asks again and again until the answer is `wanted`.
pub(crate) async fn until(source: &dyn Source, read: &Read, ids: &[i64], wanted: &str) {
    let end = clock().now() + HANGS;
    loop {
        let last = ask(source, &users(), read, ids).await;
        if last == wanted {
            return;
        }
        assert!(clock().now() < end, "still: {last}");
        clock().sleep_until(clock().now() + Duration::from_millis(10)).await;
    }
}
