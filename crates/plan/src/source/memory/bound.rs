//! Reads of an embedded store, prepared: row numbers by id, columns by row number.

use std::sync::Arc;

use anabranch_rows::Column;
use hashbrown::HashMap;
use smallvec::SmallVec;

use super::data::{MemoryData, StoredEntry};
use crate::bounds::OverBudget;
use crate::source::values::{self, Values};
use crate::source::{
    Bound, Data, Error, Fetch, Field, Keys, Lists as FoundLists, MalformedValues, Part, Pattern, Read,
    ReadContext, Reply,
};

/// The row of a key that is not there.
const ABSENT: u32 = u32::MAX;

/// A dictionary at most this long is shared by all replies. A longer one would make a test of each entry cost more
/// than the reply's rows, so the reply gets one of its own.
const SHARED_ENTRIES: usize = 256;

/// The error of Redis for a command on a key of another type.
const WRONG_TYPE: &str = "WRONGTYPE Operation against a key holding the wrong kind of value";

/// The row of each key.
struct Index {
    /// The text around the one placeholder of the keys, if they have one.
    affixes: Option<(Box<str>, Box<str>)>,
    /// The keys with an integer between the affixes.
    ids: HashMap<i64, u32>,
    /// All other keys.
    whole: HashMap<Box<str>, u32>,
}

impl Index {
    fn insert(&mut self, key: &str, row: u32) {
        match self.id_in(key) {
            Some(id) => _ = self.ids.insert(id, row),
            None => _ = self.whole.insert(key.into(), row),
        }
    }

    fn whole(&self, key: &str) -> Option<u32> {
        let row = match self.id_in(key) {
            Some(id) => self.ids.get(&id),
            None => self.whole.get(key),
        };
        row.copied()
    }

    fn id_in(&self, key: &str) -> Option<i64> {
        let (prefix, suffix) = self.affixes.as_ref()?;
        id_in(key, prefix, suffix)
    }
}

type RowNumbers = SmallVec<[u32; 32]>;

/// The keys of a pattern, and those with values that cannot be read.
struct Rows {
    index: Index,
    len: usize,
    /// By row.
    malformed: HashMap<u32, MalformedRow>,
    /// True if such a value fails the read.
    strict: bool,
}

/// The values of a row that cannot be read: their number, and the first.
#[derive(Default)]
struct MalformedRow {
    count: u32,
    first: Option<Error>,
}

impl MalformedRow {
    fn add(&mut self, error: Error) {
        self.count += 1;
        self.first.get_or_insert(error);
    }
}

impl Rows {
    /// Numbers the keys that match `pattern`. `read` takes the value of a key, and records problems.
    fn new(
        data: &MemoryData,
        pattern: &Pattern,
        strict: bool,
        mut read: impl FnMut(&str, &StoredEntry, &mut MalformedRow),
    ) -> Rows {
        let literal = |part: Option<&Part>| match part {
            Some(Part::Literal(text)) => text.clone(),
            _ => "".into(),
        };
        let (first, last) = (literal(pattern.parts().first()), literal(pattern.parts().last()));
        let affixes = pattern.affixes().map(|(prefix, suffix)| (prefix.into(), suffix.into()));
        let index = Index { affixes, ids: HashMap::new(), whole: HashMap::new() };
        let mut rows = Rows { index, len: 0, malformed: HashMap::new(), strict };
        for (key, stored) in data.iter() {
            if !key.starts_with(&*first) || !key.ends_with(&*last) {
                continue;
            }
            let mut malformed = MalformedRow::default();
            read(key, stored, &mut malformed);
            let row = rows.len as u32;
            rows.len += 1;
            assert!(row < ABSENT, "an embedded store has fewer than 2^32 - 1 keys");
            if malformed.count > 0 {
                rows.malformed.insert(row, malformed);
            }
            rows.index.insert(key, row);
        }
        rows
    }

    /// The rows of `keys`, and the values of them that cannot be read.
    fn find(&self, keys: &Keys) -> Result<(RowNumbers, MalformedValues), Error> {
        let index = &self.index;
        let rows: RowNumbers = match keys {
            Keys::Ids(ids) => ids.iter().map(|id| index.ids.get(id).copied().unwrap_or(ABSENT)).collect(),
            Keys::Whole(keys) => keys
                .iter()
                .map(|key| key.as_deref().and_then(|key| index.whole(key)).unwrap_or(ABSENT))
                .collect(),
        };
        let mut malformed = MalformedValues::default();
        if !self.malformed.is_empty() {
            for MalformedRow { count, first } in rows.iter().filter_map(|row| self.malformed.get(row)) {
                if let Some(error) = first.as_ref().filter(|_| self.strict) {
                    return Err(error.clone());
                }
                let first = first.as_ref().map(|error| error.to_string().into());
                malformed.add(MalformedValues { count: *count, first });
            }
        }
        Ok((rows, malformed))
    }
}

/// The id between the affixes of `key`, if it is written as ids are.
fn id_in(key: &str, prefix: &str, suffix: &str) -> Option<i64> {
    let text = key.strip_prefix(prefix)?.strip_suffix(suffix)?;
    let id = values::int(text)?;
    let plain = text == "0" || !text.trim_start_matches('-').starts_with('0');
    plain.then_some(id)
}

/// Fields of hashes.
pub(super) struct Fields {
    read: Read,
    rows: Rows,
    columns: Vec<Column>,
    /// The reason why nothing can be read, if the type of a field is not supported.
    refused: Option<Error>,
}

impl Fields {
    pub(super) fn new(
        endpoint: &Arc<str>,
        data: &MemoryData,
        pattern: &Pattern,
        fields: &Arc<[Field]>,
        strict: bool,
    ) -> Fields {
        let name = Read::Fields(Arc::clone(fields)).command();
        let places: Vec<Option<u32>> = fields.iter().map(|field| data.name_of(&field.name)).collect();
        let mut columns: Vec<Values> = fields.iter().map(|field| Values::new(field.kind, 0)).collect();
        let rows = Rows::new(data, pattern, strict, |key, stored, malformed| {
            let command = || format!("{name} {key}");
            let StoredEntry::Hash(hash) = stored else {
                columns.iter_mut().for_each(Values::push_null);
                return malformed.add(wrong_type(endpoint, command()));
            };
            let found = |place: &Option<u32>| {
                let (_, value) = hash.iter().find(|(name, _)| Some(*name) == *place)?;
                Some(&**value)
            };
            for ((field, column), place) in fields.iter().zip(&mut columns).zip(&places) {
                match found(place) {
                    Some(value) if column.push(value) => {}
                    None => column.push_null(),
                    Some(value) => {
                        column.push_null();
                        malformed.add(Error::Malformed {
                            endpoint: Arc::clone(endpoint),
                            command: format!("{} {}", command(), field.name),
                            found: values::quoted(value),
                            expected: values::expected(field.kind),
                        });
                    }
                }
            }
        });
        let text = pattern.to_string();
        let left_out = fields.iter().find_map(|field| data.why_left_out(&field.name, &text));
        let refused = left_out.map(|message| Error::Refused {
            endpoint: Arc::clone(endpoint),
            command: format!("{name} {text}"),
            message: message.to_owned(),
        });
        Fields {
            read: Read::Fields(Arc::clone(fields)),
            rows,
            refused,
            columns: columns.into_iter().map(Values::finish).collect(),
        }
    }
}

impl Bound for Fields {
    fn refusal(&self) -> Option<&Error> {
        self.refused.as_ref()
    }

    fn fetch(&self, keys: Keys, _: ReadContext<'_>) -> Fetch {
        if let Some(reply) = self.read.without_trip(&keys) {
            return Fetch::Ready(Ok(reply));
        }
        if let Some(refused) = &self.refused {
            return Fetch::Ready(Err(refused.clone()));
        }
        Fetch::Ready(self.rows.find(&keys).map(|(rows, malformed)| {
            let data = Data::Columns(self.columns.iter().map(|column| gather(column, &rows)).collect());
            Reply { data, trips: 1, commands: keys.commands(), malformed }
        }))
    }
}

/// Lists and sorted sets.
pub(super) struct Lists {
    endpoint: Arc<str>,
    /// The pattern of the keys, for messages.
    keys: String,
    read: Read,
    rows: Rows,
    /// The end of each row's ids.
    ends: Vec<usize>,
    ids: Vec<i64>,
    scores: Option<Vec<f64>>,
}

impl Lists {
    pub(super) fn new(
        endpoint: &Arc<str>,
        data: &MemoryData,
        pattern: &Pattern,
        read: &Read,
        strict: bool,
    ) -> Lists {
        let (limit, mut scores) = match read {
            Read::List { limit } => (*limit as usize, None),
            Read::Scored { limit } => (*limit as usize, Some(Vec::new())),
            Read::Fields(_) => unreachable!("fields are bound as such"),
        };
        let (mut ends, mut ids) = (Vec::new(), Vec::new());
        let name = read.command();
        let rows = Rows::new(data, pattern, strict, |key, stored, malformed| {
            let command = || format!("{name} {key}");
            let mut add = |item: &str, malformed: &mut MalformedRow| match values::int(item) {
                Some(id) => {
                    ids.push(id);
                    true
                }
                None => {
                    malformed.add(Error::Malformed {
                        endpoint: Arc::clone(endpoint),
                        command: command(),
                        found: format!("the item {}", values::quoted(item)),
                        expected: values::AN_ID,
                    });
                    false
                }
            };
            match (stored, &mut scores) {
                (StoredEntry::List(items), None) => {
                    items.iter().take(limit).for_each(|item| _ = add(item, malformed));
                }
                (StoredEntry::Scored(members), Some(scores)) => {
                    for (member, score) in members.iter().take(limit) {
                        if add(member, malformed) {
                            scores.push(*score);
                        }
                    }
                }
                _ => malformed.add(wrong_type(endpoint, command())),
            }
            ends.push(ids.len());
        });
        let (endpoint, keys) = (Arc::clone(endpoint), pattern.to_string());
        Lists { endpoint, keys, read: read.clone(), rows, ends, ids, scores }
    }

    fn too_long(&self, cause: OverBudget) -> Error {
        let command = format!("{} {}", self.read.command(), self.keys);
        Error::TooLong { endpoint: Arc::clone(&self.endpoint), command, cause }
    }
}

impl Bound for Lists {
    fn fetch(&self, keys: Keys, context: ReadContext<'_>) -> Fetch {
        if let Some(reply) = self.read.without_trip(&keys) {
            return Fetch::Ready(Ok(reply));
        }
        Fetch::Ready(self.rows.find(&keys).and_then(|(rows, malformed)| {
            let range = |row: u32| match row {
                ABSENT => 0..0,
                0 => 0..self.ends[0],
                row => self.ends[row as usize - 1]..self.ends[row as usize],
            };
            let total = rows.iter().map(|row| range(*row).len()).sum();
            let mut count = context.budget.reply();
            let values = u64::from(self.scores.is_some());
            let counted = count.take_ids(total as u64, values).and_then(|()| count.settle());
            counted.map_err(|over| self.too_long(over))?;
            let mut found = FoundLists {
                lens: Vec::with_capacity(rows.len()),
                ids: Vec::with_capacity(total),
                scores: self.scores.as_ref().map(|_| Vec::with_capacity(total)),
            };
            for row in &rows {
                let range = range(*row);
                found.lens.push(range.len() as u32);
                found.ids.extend_from_slice(&self.ids[range.clone()]);
                if let (Some(to), Some(from)) = (&mut found.scores, &self.scores) {
                    to.extend_from_slice(&from[range]);
                }
            }
            Ok(Reply { data: Data::Lists(found), trips: 1, commands: keys.commands(), malformed })
        }))
    }
}

fn wrong_type(endpoint: &Arc<str>, command: String) -> Error {
    Error::Refused { endpoint: Arc::clone(endpoint), command, message: WRONG_TYPE.to_owned() }
}

/// The values of `rows`, null for rows that are absent.
fn gather(column: &Column, rows: &[u32]) -> Column {
    let gathered = column.gather_or_null(rows.iter().map(|row| (*row != ABSENT).then_some(*row)));
    match gathered {
        Column::Text(text) if text.dictionary().len() > SHARED_ENTRIES.max(rows.len()) => {
            Column::Text(text.with_used_entries())
        }
        gathered => gathered,
    }
}
