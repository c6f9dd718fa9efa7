//! A small world of users: registries, data, and the same data as JSON for the memory source.

use std::collections::BTreeMap;
use std::sync::Arc;

use anabranch_engine::Clock;
use anabranch_plan::Registries;
use anabranch_plan::sources::{Fault, Memory, MemoryData};
use anabranch_testkit::Rng;
use serde_json::{Map, Value, json};
use std::time::Duration;

pub(super) struct User {
    pub(super) country: Option<String>,
    pub(super) likes: Option<i64>,
    pub(super) author: Option<i64>,
}

pub(super) struct World {
    pub(super) users: BTreeMap<i64, User>,
    pub(super) lists: BTreeMap<(&'static str, i64), Vec<i64>>,
}

const KEYS: &str = r#"
[[key]]
key_id = 1
name = "id"
type = "int"
nullable = false
allow_write = false
doc = ""
[[key]]
key_id = 1001
name = "likes"
type = "int"
nullable = true
doc = ""
[[key]]
key_id = 1002
name = "author"
type = "int"
nullable = true
doc = ""
[[key]]
key_id = 2001
name = "score"
type = "float"
nullable = true
doc = ""
[[key]]
key_id = 2002
name = "bonus"
type = "float"
nullable = true
doc = ""
[[key]]
key_id = 3001
name = "country"
type = "string"
nullable = true
doc = ""
"#;

const PARAMS: &str = r#"
[[param]]
param_id = 1
name = "weight"
type = "float"
nullable = true
doc = ""
"#;

const ENDPOINTS: &str = r#"
[[endpoint]]
endpoint_id = "ep_0001"
name = "store"
kind = "redis"
[endpoint.resolver]
type = "static"
host = "127.0.0.1"
port = 6379
"#;

pub(super) fn registries() -> Registries {
    let files = [("keys.toml", KEYS), ("params.toml", PARAMS), ("endpoints.dev.toml", ENDPOINTS)];
    Registries::parse(files, None).unwrap().0
}

impl World {
    pub(super) fn new(rng: &mut Rng) -> World {
        let mut users = BTreeMap::new();
        for id in 1..=rng.within(3..25) as i64 {
            let country = rng.percent(70).then(|| (*rng.choose(&["US", "CA", "", "GB"])).to_owned());
            let likes = rng.percent(70).then(|| rng.within(0..9) as i64 - 4);
            let author = rng.percent(60).then(|| rng.within(1..6) as i64);
            if rng.percent(85) {
                users.insert(id, User { country, likes, author });
            }
        }
        let mut lists = BTreeMap::new();
        for list in ["follow", "recommendation", "media"] {
            for id in 1..25 {
                if rng.percent(50) {
                    lists.insert(
                        (list, id),
                        (0..rng.within(0..7)).map(|_| rng.within(1..30) as i64).collect(),
                    );
                }
            }
        }
        World { users, lists }
    }

    /// As a source whose reads take all kinds of times.
    pub(super) fn source(&self, rng: &mut Rng, clock: Arc<dyn Clock>) -> Memory {
        let mut hashes = Map::new();
        for (id, user) in &self.users {
            let mut fields = Map::new();
            user.country.iter().for_each(|country| drop(fields.insert("country".into(), json!(country))));
            user.likes.iter().for_each(|likes| drop(fields.insert("likes".into(), json!(likes.to_string()))));
            user.author.iter().for_each(|author| drop(fields.insert("author".into(), json!(author))));
            hashes.insert(format!("user:{id}"), Value::Object(fields));
        }
        let key = |((list, id), ids): (&(&str, i64), &Vec<i64>)| {
            let ids: Vec<String> = ids.iter().map(i64::to_string).collect();
            (format!("{list}:{id}"), json!(ids))
        };
        let lists: Map<String, Value> = self.lists.iter().map(key).collect();
        let text = json!({"hashes": hashes, "lists": lists}).to_string();
        let data = MemoryData::from_json("world", &text).unwrap();
        let mut source = Memory::new("ep_0001", Arc::new(data), clock);
        for prefix in ["user:", "follow:", "recommendation:", "media:"] {
            if rng.percent(70) {
                let delay = Duration::from_micros(rng.within(1..5_000));
                source = source.with_fault(prefix, Fault { delay, fail_every: 0 });
            }
        }
        source
    }
}
