//! A small world of users in two stores: registries, data, and the same data as JSON for the memory source.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anabranch_engine::clock::Clock;
use anabranch_plan::Registries;
use anabranch_plan::source::{Bound, Fault, Memory, MemoryData, Pattern, Read, Source};
use anabranch_testkit::Rng;
use serde_json::{Map, Value, json};

use super::cell::{Cell, Kind, Row, kind_of};

/// The fields of users, each the name of a key too.
pub(super) const FIELDS: [(&str, u64); 6] =
    [("likes", 1001), ("author", 1002), ("fresh", 1005), ("sure", 2004), ("country", 3001), ("title", 3002)];

/// A user whose id is a string.
pub(crate) const NAMED: &str = "ann";

/// The columns that candidates may have.
pub(super) const BROUGHT: [u64; 4] = [1001, 2001, 2004, 3002];

/// A value that is none of its kind.
const BROKEN: &str = "broken";

pub(super) const ENDPOINTS: [&str; 2] = ["ep_0001", "ep_0002"];

/// The data of one endpoint.
#[derive(Default)]
pub(super) struct Store {
    /// Fields that are there, by the key of the hash; `None` where what is there cannot be read.
    pub(super) hashes: BTreeMap<String, BTreeMap<&'static str, Option<Cell>>>,
    pub(super) lists: BTreeMap<String, Vec<i64>>,
    pub(super) scored: BTreeMap<String, Vec<(i64, f64)>>,
}

pub(crate) struct World {
    pub(super) stores: [Store; 2],
    /// The endpoint, by place, and the beginning of the keys that cannot be read.
    pub(crate) failing: Option<(usize, &'static str)>,
}

const PREFIXES: [&str; 7] = ["user:", "follow:", "recommendation:", "media:", "near:", "rank:", "odd:"];

pub(crate) const KEYS: &str = r#"key = [
{ key_id = 1, name = "id", type = "int", nullable = false, allow_write = false },
{ key_id = 1001, name = "likes", type = "int", nullable = true },
{ key_id = 1002, name = "author", type = "int", nullable = true },
{ key_id = 1003, name = "parent", type = "int", nullable = true },
{ key_id = 1004, name = "count", type = "int", nullable = true },
{ key_id = 1005, name = "fresh", type = "bool", nullable = true },
{ key_id = 2001, name = "score", type = "float", nullable = true },
{ key_id = 2002, name = "bonus", type = "float", nullable = true },
{ key_id = 2003, name = "rank", type = "float", nullable = true },
{ key_id = 2004, name = "sure", type = "float", nullable = false, default = 0.5 },
{ key_id = 3001, name = "country", type = "string", nullable = true },
{ key_id = 3002, name = "title", type = "string", nullable = true },
]"#;

const PARAMS: &str = r#"param = [
{ param_id = 1, name = "weight", type = "float", nullable = true },
{ param_id = 2, name = "pattern", type = "string", nullable = true },
{ param_id = 3, name = "cap", type = "int", nullable = true },
]"#;

pub(crate) fn registries() -> Registries {
    let endpoint = |id: &str| {
        format!(
            "[[endpoint]]\nendpoint_id = \"{id}\"\nname = \"store_{id}\"\nkind = \"redis\"\n[endpoint.resolver]\n\
             type = \"static\"\nhost = \"127.0.0.1\"\nport = 6379\n"
        )
    };
    let endpoints: String = ENDPOINTS.iter().map(|id| endpoint(id)).collect();
    let files = [("keys.toml", KEYS), ("params.toml", PARAMS), ("endpoints.dev.toml", &endpoints)];
    Registries::parse(files, None).unwrap().0
}

/// Mostly small; some are no floats.
fn id(rng: &mut Rng) -> i64 {
    match rng.within(0..20) {
        0 => (1 << 53) + rng.within(0..3) as i64,
        1 => i64::MAX - rng.within(0..2) as i64,
        _ => rng.within(1..30) as i64,
    }
}

/// The rows that a request brings. The column that may not be null is there or not, but never in part.
pub(super) fn candidates(rng: &mut Rng) -> Vec<Row> {
    let sure = rng.percent(50);
    let count = rng.within(0..12);
    let row = |rng: &mut Rng| {
        let mut cells = BTreeMap::new();
        for key in BROUGHT {
            let there = if key == 2004 { sure } else { rng.percent(60) };
            cells.extend(
                value(rng, key)
                    .or(Some(Cell::Float(1.5)).filter(|_| key == 2004))
                    .filter(|_| there)
                    .map(|cell| (key, cell)),
            );
        }
        (id(rng), cells)
    };
    (0..count).map(|_| row(rng)).collect()
}

/// The name of a key that candidates may have.
pub(super) fn name_of(key: u64) -> &'static str {
    if key == 2001 { "score" } else { FIELDS.iter().find(|(_, other)| *other == key).unwrap().0 }
}

fn value(rng: &mut Rng, key: u64) -> Option<Cell> {
    if rng.percent(1) && kind_of(key) != Kind::Text {
        return None;
    }
    Some(match kind_of(key) {
        Kind::Int if key == 1002 => Cell::Int(id(rng)),
        Kind::Int => Cell::Int(rng.within(0..9) as i64 - 4),
        Kind::Float => Cell::Float(0.5 * rng.within(0..5) as f64),
        Kind::Bool => Cell::Bool(rng.percent(50)),
        Kind::Text => Cell::Text((*rng.choose(&["US", "CA", "", "us", "Straße"])).to_owned()),
    })
}

impl Store {
    fn new(rng: &mut Rng) -> Store {
        let mut store = Store::default();
        let big = [1 << 53, (1 << 53) + 1, i64::MAX].map(|id: i64| id.to_string());
        let small = (1..=rng.within(3..25) as i64).map(|id| id.to_string());
        for id in small.chain(big).chain([NAMED.to_owned()]) {
            if rng.percent(85) {
                let some = FIELDS.iter().filter(|_| rng.percent(65)).collect::<Vec<_>>();
                let fields = some.into_iter().map(|(name, key)| (*name, value(rng, *key)));
                store.hashes.insert(format!("user:{id}"), fields.collect());
            }
        }
        for list in ["follow", "recommendation", "media"] {
            for id in (1..25).map(|id| id.to_string()).chain([NAMED.to_owned()]) {
                if rng.percent(50) {
                    let ids = (0..rng.within(0..7)).map(|_| self::id(rng)).collect();
                    store.lists.insert(format!("{list}:{id}"), ids);
                }
            }
        }
        for country in ["US", "CA", "", "Straße"] {
            let ids = (0..rng.within(0..5)).map(|_| id(rng)).collect();
            store.lists.insert(format!("near:{country}"), ids);
        }
        for id in 1..25 {
            let mut members: BTreeMap<String, f64> = BTreeMap::new();
            for _ in 0..rng.within(0..6) {
                members.insert(self::id(rng).to_string(), 0.5 * rng.within(0..4) as f64);
            }
            let mut members: Vec<(String, f64)> = members.into_iter().collect();
            // From the highest score down, equal ones by falling name.
            members.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| b.0.cmp(&a.0)));
            let members = members.into_iter().map(|(member, score)| (member.parse().unwrap(), score));
            store.scored.insert(format!("rank:{id}"), members.collect());
        }
        store
    }

    fn data(&self) -> MemoryData {
        let fields = |fields: &BTreeMap<&str, Option<Cell>>| -> Value {
            let text = |cell: &Option<Cell>| cell.as_ref().map_or(BROKEN.to_owned(), Cell::to_string);
            fields.iter().map(|(name, cell)| ((*name).to_owned(), json!(text(cell)))).collect()
        };
        let hashes: Map<String, Value> =
            self.hashes.iter().map(|(key, hash)| (key.clone(), fields(hash))).collect();
        let ids = |ids: &Vec<i64>| json!(ids.iter().map(i64::to_string).collect::<Vec<_>>());
        let lists: Map<String, Value> =
            self.lists.iter().map(|(key, list)| (key.clone(), ids(list))).collect();
        let members = |set: &Vec<(i64, f64)>| -> Value {
            set.iter().map(|(id, score)| (id.to_string(), json!(score))).collect()
        };
        let zsets: Map<String, Value> =
            self.scored.iter().map(|(key, set)| (key.clone(), members(set))).collect();
        let text = json!({"hashes": hashes, "lists": lists, "zsets": zsets}).to_string();
        MemoryData::from_json("world", &text).unwrap()
    }
}

impl World {
    pub(crate) fn new(rng: &mut Rng) -> World {
        let stores = [Store::new(rng), Store::new(rng)];
        let failing = rng.percent(10).then(|| (rng.within(0..2) as usize, *rng.choose(&PREFIXES)));
        World { stores, failing }
    }

    /// A source an endpoint, whose reads take all kinds of times, some of them few at a time.
    pub(crate) fn sources(&self, rng: &mut Rng, clock: &Arc<dyn Clock>) -> Vec<Arc<dyn Source>> {
        let mut source = |at: usize| -> Arc<dyn Source> {
            let data = Arc::new(self.stores[at].data());
            let mut memory = Memory::new(ENDPOINTS[at], data, Arc::clone(clock));
            for prefix in PREFIXES {
                let fail_every = u32::from(self.failing == Some((at, prefix)));
                if rng.percent(70) || fail_every > 0 {
                    let delay = Duration::from_micros(rng.within(0..5_000));
                    memory = memory.with_fault(prefix, Fault { delay, fail_every, ..Fault::default() });
                }
            }
            let most = rng.percent(50).then(|| rng.within(1..4) as u32);
            Arc::new(Few { memory, most })
        };
        vec![source(0), source(1)]
    }
}

/// A store that takes only so many trips at a time.
pub(crate) struct Few {
    pub(crate) memory: Memory,
    pub(crate) most: Option<u32>,
}

impl Source for Few {
    fn bind(&self, pattern: &Pattern, read: &Read) -> Arc<dyn Bound> {
        self.memory.bind(pattern, read)
    }

    fn max_inflight(&self) -> Option<u32> {
        self.most
    }
}
