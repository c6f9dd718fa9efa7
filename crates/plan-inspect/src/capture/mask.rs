//! Pseudonyms for values that captures may not hold.
//!
//! Equal values have equal pseudonyms of the same kind, so joins and filters on equality still work; null stays null.
//! A pseudonym does not reveal its value: the key that made it is random and is not stored.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

use anabranch_rows::{Cell, Column, Key, Kind, Rows};

use anabranch_plan::Answer;
use anabranch_plan::Registries;
use anabranch_plan::registry::KeyKind;
use anabranch_plan::{List, Scalar, Values};

/// The values to mask, and how.
#[derive(Clone, Debug, Default)]
pub(super) struct Masks {
    keys: Vec<Key>,
    /// By place.
    params: Vec<usize>,
    /// Two keyed hashes, each with a key of its own.
    secrets: [RandomState; 2],
}

/// The values behind pseudonyms, of one request.
#[derive(Debug, Default)]
pub(super) struct Behind {
    ints: HashMap<i64, i64>,
    floats: HashMap<u64, f64>,
    texts: HashMap<String, String>,
}

impl Masks {
    /// Masks for these keys and parameters. The error names the ones that cannot be masked.
    pub(super) fn new(keys: &[String], params: &[String], registries: &Registries) -> Result<Masks, String> {
        let key = |name: &String| match registries.keys.named(name) {
            Some(entry) if entry.key == Key::ID => {
                Err("ids are what rows are known by; they stay".to_owned())
            }
            Some(entry) if matches!(entry.kind, KeyKind::Column(_)) => Ok(entry.key),
            Some(_) => Err(format!("key `{name}` is a feature bundle, not a column")),
            None => Err(format!("there is no key `{name}`")),
        };
        let param = |name: &String| match registries.params.named(name) {
            Some(entry) => Ok(entry.index),
            None => Err(format!("there is no parameter `{name}`")),
        };
        Ok(Masks {
            keys: keys.iter().map(key).collect::<Result<_, _>>()?,
            params: params.iter().map(param).collect::<Result<_, _>>()?,
            secrets: [RandomState::new(), RandomState::new()],
        })
    }

    /// True if there is anything to mask.
    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.params.is_empty()
    }

    /// True if the values of a key are masked.
    pub(super) fn has(&self, key: Key) -> bool {
        self.keys.contains(&key)
    }

    /// Masks the parameters of a request.
    pub(super) fn params(&self, params: &Values) -> Values {
        let mut masked = params.clone();
        for &at in &self.params {
            let value = masked[at].take();
            masked[at] = value.map(|value| self.scalar(&value, &mut Behind::default()));
            let list = masked.list(at).map(|list| self.list(list));
            masked.set_list(at, list.map(Arc::new));
        }
        masked
    }

    /// Masks the candidates of a request. The original values are recorded in `behind`.
    pub(super) fn candidates(&self, rows: &Rows, behind: &mut Behind) -> Rows {
        let mut masked = rows.clone();
        for (key, column) in rows.batch().columns().iter().filter(|(key, _)| self.has(*key)) {
            masked = masked.with_column(*key, self.column(column, behind));
        }
        masked
    }

    fn list(&self, list: &List) -> List {
        let (mut ints, mut texts) = (Vec::new(), Vec::new());
        for item in list.items() {
            match self.scalar(&item, &mut Behind::default()) {
                Scalar::Int(value) => ints.push(value),
                Scalar::Text(value) => texts.push(value),
                Scalar::Float(_) | Scalar::Bool(_) => unreachable!("lists are of integers or strings"),
            }
        }
        if list.kind() == Kind::Text { List::texts(texts) } else { List::ints(ints) }
    }

    /// Masks a column. The original values are recorded in `behind`.
    pub(super) fn column(&self, column: &Column, behind: &mut Behind) -> Column {
        let mut masked = |row: usize| Some(self.scalar(&column.get(row)?.into(), behind));
        let values: Vec<Option<Scalar>> = (0..column.len()).map(&mut masked).collect();
        of_scalars(column, &values)
    }

    fn scalar(&self, value: &Scalar, behind: &mut Behind) -> Scalar {
        let [first, second] = &self.secrets;
        match value {
            // Positive, as most ids and counts are.
            Scalar::Int(value) => {
                let masked = (first.hash_one(value) >> 1) as i64;
                behind.ints.insert(masked, *value);
                Scalar::Int(masked)
            }
            Scalar::Float(value) => {
                let masked = (first.hash_one(value.to_bits()) >> 11) as f64 / (1_u64 << 53) as f64;
                behind.floats.insert(masked.to_bits(), *value);
                Scalar::Float(masked)
            }
            Scalar::Bool(value) => Scalar::Bool(value ^ (first.hash_one("bool") & 1 == 1)),
            Scalar::Text(value) => {
                let masked = format!("~{:016x}{:016x}", first.hash_one(value), second.hash_one(value));
                behind.texts.insert(masked.clone(), value.to_string());
                Scalar::Text(masked.into())
            }
        }
    }

    /// True if an answer holds pseudonyms, and defaults, of masked keys and nothing else.
    pub(super) fn hide(&self, answer: &Answer, behind: &Behind, registries: &Registries) -> bool {
        self.keys.iter().all(|key| {
            let default = registries.keys.get(*key).and_then(|entry| entry.default.as_ref());
            let hidden = |value: Scalar| self.made(&value, behind) || Some(&value) == default;
            answer.candidates().all(|row| row.get(*key).is_none_or(hidden))
        })
    }

    /// True if a value of a masked key is a pseudonym.
    fn made(&self, value: &Scalar, behind: &Behind) -> bool {
        match value {
            Scalar::Int(value) => behind.ints.contains_key(value),
            Scalar::Float(value) => behind.floats.contains_key(&value.to_bits()),
            Scalar::Bool(_) => true,
            Scalar::Text(value) => behind.texts.contains_key(&**value),
        }
    }

    /// Rows with the values behind the pseudonyms of these columns.
    pub(super) fn unmasked(&self, rows: &Rows, keys: impl Iterator<Item = Key>, behind: &Behind) -> Rows {
        let mut rows = rows.clone();
        for key in keys.filter(|key| self.has(*key)) {
            let Some(column) = rows.batch().column(key) else { continue };
            let value = |row: usize| {
                Some(match column.get(row)? {
                    Cell::Int(value) => Scalar::Int(*behind.ints.get(&value).unwrap_or(&value)),
                    Cell::Float(value) => {
                        Scalar::Float(*behind.floats.get(&value.to_bits()).unwrap_or(&value))
                    }
                    Cell::Bool(value) => Scalar::Bool(value),
                    Cell::Text(value) => {
                        Scalar::Text(behind.texts.get(value).map_or(value, String::as_str).into())
                    }
                })
            };
            let values: Vec<Option<Scalar>> = (0..column.len()).map(value).collect();
            let column = of_scalars(column, &values);
            rows = rows.with_batch(rows.batch().with_column(key, column));
        }
        rows
    }
}

/// A column of the kind of another.
fn of_scalars(like: &Column, values: &[Option<Scalar>]) -> Column {
    macro_rules! values {
        ($kind:ident) => {
            values.iter().map(|value| match value {
                Some(Scalar::$kind(value)) => Some(value.clone()),
                _ => None,
            })
        };
    }
    match like {
        Column::Int(_) => Column::ints(values!(Int)),
        Column::Float(_) => Column::floats(values!(Float)),
        Column::Bool(_) => Column::bools(values!(Bool)),
        Column::Text(_) => Column::texts(values!(Text)),
    }
}
