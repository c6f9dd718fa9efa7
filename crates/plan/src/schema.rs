//! The columns of rows, known at load.

use anabranch_rows::{Key, Kind};

/// Columns by ascending key; the ids, which all rows have, are not listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema(Vec<(Key, Kind)>);

impl Schema {
    /// A schema of these columns.
    pub fn new(columns: impl IntoIterator<Item = (Key, Kind)>) -> Schema {
        let mut schema = Schema::default();
        for (key, kind) in columns {
            schema.add(key, kind);
        }
        schema
    }

    /// Adds a column, or changes its kind.
    pub fn add(&mut self, key: Key, kind: Kind) {
        match self.0.binary_search_by_key(&key, |(key, _)| *key) {
            Ok(at) => self.0[at].1 = kind,
            Err(at) => self.0.insert(at, (key, kind)),
        }
    }

    /// The kind of a column, if it exists. Ids always exist.
    pub fn kind(&self, key: Key) -> Option<Kind> {
        if key == Key::ID {
            return Some(Kind::Int);
        }
        let at = self.0.binary_search_by_key(&key, |(key, _)| *key).ok()?;
        Some(self.0[at].1)
    }

    /// The columns, by ascending key.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (Key, Kind)> + '_ {
        self.0.iter().copied()
    }

    /// These columns and those of `other`.
    #[must_use]
    pub fn union(&self, other: &Schema) -> Schema {
        Schema::new(self.iter().chain(other.iter()))
    }
}

/// A set of keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeySet(Vec<Key>);

impl KeySet {
    /// Adds a key.
    pub fn add(&mut self, key: Key) {
        if let Err(at) = self.0.binary_search(&key) {
            self.0.insert(at, key);
        }
    }

    /// True if it has `key`.
    pub fn has(&self, key: Key) -> bool {
        self.0.binary_search(&key).is_ok()
    }

    /// The keys, ascending.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Key> + '_ {
        self.0.iter().copied()
    }
}

impl FromIterator<Key> for KeySet {
    fn from_iter<I: IntoIterator<Item = Key>>(keys: I) -> KeySet {
        let mut set = KeySet::default();
        keys.into_iter().for_each(|key| set.add(key));
        set
    }
}
