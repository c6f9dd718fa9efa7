//! The contents of an embedded store: hashes, lists and sorted sets by key, all as text, as in Redis.

use std::fmt;
use std::path::Path;

use anabranch_text::{Problem, Problems};
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::source::values::{self, Json};

/// The contents of an embedded store.
#[derive(Clone, Debug, Default)]
pub struct MemoryData {
    /// The names of fields; hashes refer to them by place.
    names: Vec<Box<str>>,
    by_name: HashMap<Box<str>, u32>,
    entries: HashMap<Box<str>, StoredEntry>,
    left_out: Vec<LeftOut>,
}

/// A column of a table that cannot be read, and was left out.
#[derive(Clone, Debug)]
struct LeftOut {
    field: String,
    /// The beginning of the keys of the table's rows.
    prefix: String,
    why: String,
}

/// The value under a key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum StoredEntry {
    /// Fields by the index of their name, with their values.
    Hash(Vec<(u32, Box<str>)>),
    /// Items, in order.
    List(Vec<Box<str>>),
    /// Members and scores, highest score first.
    Scored(Vec<(Box<str>, f64)>),
}

impl MemoryData {
    /// Reads `{"hashes": {key: {field: value}}, "lists": {key: [..]}, "zsets": {key: {member: score}}}`.
    pub fn from_json(place: &str, text: &str) -> Result<MemoryData, Problems> {
        let mut data = MemoryData::default();
        data.add_json(place, text)?;
        Ok(data)
    }

    /// Adds a file; its name ends in `.json`, `.csv` or `.parquet`. Tables need `pattern`, which defines the key of
    /// each row by its columns: `user:{id}`.
    pub fn add_file(&mut self, path: &Path, pattern: Option<&str>) -> Result<(), Problems> {
        let place = path.display().to_string();
        let content =
            std::fs::read(path).map_err(|e| Problem::new(&place, format!("cannot be read: {e}")))?;
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or("");
        let table_key = || {
            pattern.ok_or_else(|| {
                let file = path.file_name().unwrap_or_default().to_string_lossy();
                Problem::new(&place, "a table needs a pattern for the keys of its rows")
                    .help(format!("write the pattern behind the file: `{file}=user:{{id}}`"))
            })
        };
        match ending {
            "json" => {
                let text = String::from_utf8(content)
                    .map_err(|e| Problem::new(&place, format!("is not UTF-8 text: {e}")))?;
                self.add_json(&place, &text)
            }
            "csv" => self.add_csv(&place, &content, table_key()?),
            "parquet" => self.add_parquet(&place, content, table_key()?),
            other => Err(Problem::new(&place, format!("files that end in `.{other}` are not read"))
                .help("use a .json, .csv or .parquet file")
                .into()),
        }
    }

    /// Adds the content of a JSON text; see [`from_json`](Self::from_json).
    pub fn add_json(&mut self, place: &str, text: &str) -> Result<(), Problems> {
        let file: File<'_> = serde_json::from_str(text)
            .map_err(|e| Problem::new(place, format!("is not a data file: {e}")))?;
        let mut problems = Problems::default();
        for (key, fields) in file.hashes.0 {
            let at = || format!("{place}, hash `{key}`");
            let mut hash = Vec::with_capacity(fields.0.len());
            for (field, value) in fields.0 {
                match values::json(value.get()) {
                    Json::Text(value) => hash.push((self.name(&field), value.into())),
                    _ => problems.error(not_a_value(format!("{}, field `{field}`", at()), value.get())),
                }
            }
            self.add(at, &key, StoredEntry::Hash(hash), &mut problems);
        }
        for (key, items) in file.lists.0 {
            let at = || format!("{place}, list `{key}`");
            let mut list = Vec::with_capacity(items.len());
            for (index, item) in items.into_iter().enumerate() {
                match values::json(item.get()) {
                    Json::Text(item) => list.push(item.into()),
                    _ => problems.error(not_a_value(format!("{}, item {index}", at()), item.get())),
                }
            }
            self.add(at, &key, StoredEntry::List(list), &mut problems);
        }
        for (key, members) in file.zsets.0 {
            let at = || format!("{place}, sorted set `{key}`");
            let mut scored = Vec::with_capacity(members.0.len());
            for (member, score) in members.0 {
                let number = match values::json(score.get()) {
                    Json::Text(text) => values::float(&text),
                    _ => None,
                };
                match number {
                    Some(number) => scored.push((member.into(), number)),
                    None => problems.error(Problem::new(
                        format!("{}, member `{member}`", at()),
                        format!("the score {} is not a finite number", score.get()),
                    )),
                }
            }
            self.add(at, &key, scored_in_order(scored), &mut problems);
        }
        if problems.is_fine() { Ok(()) } else { Err(problems) }
    }

    /// Adds an entry, once.
    pub(super) fn add(
        &mut self,
        at: impl Fn() -> String,
        key: &str,
        stored: StoredEntry,
        problems: &mut Problems,
    ) {
        if let StoredEntry::Hash(fields) = &stored {
            let mut places: Vec<u32> = fields.iter().map(|(name, _)| *name).collect();
            places.sort_unstable();
            if let Some(pair) = places.windows(2).find(|pair| pair[0] == pair[1]) {
                let name = &self.names[pair[0] as usize];
                problems.error(Problem::new(at(), format!("has the field `{name}` twice")));
            }
        }
        if stored.is_empty() {
            // As in Redis, where an empty value does not exist.
            return;
        }
        match self.entries.entry(key.into()) {
            Entry::Vacant(entry) => _ = entry.insert(stored),
            Entry::Occupied(_) => {
                problems.error(Problem::new(at(), format!("the key `{key}` is there twice")));
            }
        }
    }

    /// The place of a field's name, a new one if it is new.
    pub(super) fn name(&mut self, field: &str) -> u32 {
        if let Some(place) = self.by_name.get(field) {
            return *place;
        }
        let place = u32::try_from(self.names.len()).expect("fewer than 2^32 names of fields");
        self.names.push(field.into());
        self.by_name.insert(field.into(), place);
        place
    }

    /// The index of a field's name, if any hash has it.
    pub(super) fn name_of(&self, field: &str) -> Option<u32> {
        self.by_name.get(field).copied()
    }

    /// Notes that a column of the table with these keys cannot be read.
    pub(super) fn leave_out(&mut self, field: &str, key: &str, why: &str) {
        let prefix = key.split('{').next().unwrap_or_default().to_owned();
        self.left_out.push(LeftOut { field: field.to_owned(), prefix, why: why.to_owned() });
    }

    /// The reason why a field of rows with these keys is missing, if the table that has it was read without it.
    pub(super) fn why_left_out(&self, field: &str, key: &str) -> Option<&str> {
        let prefix = key.split('{').next().unwrap_or_default();
        let found = self.left_out.iter().find(|left| left.field == field && left.prefix == prefix)?;
        Some(&found.why)
    }

    /// The name of a field.
    pub(crate) fn field(&self, place: u32) -> &str {
        &self.names[place as usize]
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no key.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// All keys and their values, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &StoredEntry)> {
        self.entries.iter().map(|(key, stored)| (&**key, stored))
    }
}

impl StoredEntry {
    fn is_empty(&self) -> bool {
        match self {
            StoredEntry::Hash(fields) => fields.is_empty(),
            StoredEntry::List(items) => items.is_empty(),
            StoredEntry::Scored(members) => members.is_empty(),
        }
    }
}

/// The order of `ZRANGE ... REV`: by falling score, equal scores by falling member.
fn scored_in_order(mut members: Vec<(Box<str>, f64)>) -> StoredEntry {
    members.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| b.0.as_bytes().cmp(a.0.as_bytes())));
    StoredEntry::Scored(members)
}

fn not_a_value(place: String, found: &str) -> Problem {
    Problem::new(place, format!("{} is not a value", values::quoted(found)))
        .help("values are strings, numbers, true and false; leave out what is not there")
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File<'a> {
    #[serde(borrow, default)]
    hashes: Pairs<Pairs<&'a RawValue>>,
    #[serde(borrow, default)]
    lists: Pairs<Vec<&'a RawValue>>,
    #[serde(borrow, default)]
    zsets: Pairs<Pairs<&'a RawValue>>,
}

/// A JSON object with its entries in order, including duplicates.
struct Pairs<T>(Vec<(String, T)>);

impl<T> Default for Pairs<T> {
    fn default() -> Pairs<T> {
        Pairs(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Pairs<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Pairs<T>, D::Error> {
        struct Entries<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
            type Value = Pairs<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs<T>, A::Error> {
                let mut pairs = Vec::with_capacity(map.size_hint().unwrap_or(0));
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(Entries(std::marker::PhantomData))
    }
}
