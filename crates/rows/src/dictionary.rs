//! The strings behind the codes of a [`Text`](crate::Text) column.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::{Array, StringArray};
use hashbrown::HashTable;

/// Strings by code. Several columns may share one dictionary; an entry may be repeated or unused.
#[derive(Clone, Debug)]
pub struct Dictionary(Arc<StringArray>);

impl Dictionary {
    /// A dictionary of these strings. The first one has the code 0.
    pub fn new<S: AsRef<str>>(entries: impl IntoIterator<Item = S>) -> Dictionary {
        Dictionary(Arc::new(entries.into_iter().map(|entry| Some(entry.as_ref().to_owned())).collect()))
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True if the dictionary has no entries.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The string that `code` stands for.
    pub fn get(&self, code: i32) -> &str {
        self.0.value(code as usize)
    }

    /// All strings, in the order of their codes.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &str> {
        (0..self.0.len()).map(|code| self.0.value(code))
    }

    /// The strings as an Arrow array.
    pub fn array(&self) -> &Arc<StringArray> {
        &self.0
    }

    /// True if both share the same memory.
    pub fn ptr_eq(&self, other: &Dictionary) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Two dictionaries are equal when they have the same strings in the same order.
impl PartialEq for Dictionary {
    fn eq(&self, other: &Dictionary) -> bool {
        self.ptr_eq(other) || self.0 == other.0
    }
}

impl From<StringArray> for Dictionary {
    /// Shares the memory of `array`, which must have no nulls.
    fn from(array: StringArray) -> Dictionary {
        assert_eq!(array.null_count(), 0, "a dictionary must have no null entries");
        Dictionary(Arc::new(array))
    }
}

/// Builds a dictionary: assigns one code to each distinct string.
pub struct Interner {
    hasher: RandomState,
    table: HashTable<(u64, i32)>,
    /// Where the string of each code ends in `bytes`.
    ends: Vec<usize>,
    bytes: String,
}

impl Default for Interner {
    fn default() -> Interner {
        Interner {
            hasher: RandomState::new(),
            table: HashTable::new(),
            ends: Vec::new(),
            bytes: String::new(),
        }
    }
}

impl Interner {
    /// The code of `text`. A string that was not interned before gets the next code.
    pub fn intern(&mut self, text: &str) -> i32 {
        let hash = self.hasher.hash_one(text);
        let same = |(seen, code): &(u64, i32)| *seen == hash && slice(&self.bytes, &self.ends, *code) == text;
        if let Some((_, code)) = self.table.find(hash, same) {
            return *code;
        }
        let code = i32::try_from(self.ends.len()).expect("a dictionary has at most 2^31 - 1 entries");
        self.table.insert_unique(hash, (hash, code), |(hash, _)| *hash);
        self.bytes.push_str(text);
        self.ends.push(self.bytes.len());
        code
    }

    /// The dictionary of all interned strings.
    pub fn finish(&self) -> Dictionary {
        let mut builder = StringBuilder::with_capacity(self.ends.len(), self.bytes.len());
        for code in 0..self.ends.len() {
            builder.append_value(slice(&self.bytes, &self.ends, code as i32));
        }
        Dictionary(Arc::new(builder.finish()))
    }
}

fn slice<'a>(bytes: &'a str, ends: &[usize], code: i32) -> &'a str {
    let code = code as usize;
    let start = if code == 0 { 0 } else { ends[code - 1] };
    &bytes[start..ends[code]]
}
