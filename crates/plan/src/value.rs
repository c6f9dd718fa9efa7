//! Single values: constants, defaults, and values of a request.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anabranch_rows::{Cell, Kind};

use crate::expr::Set;

/// One value that is not null, owned: a [`Cell`] borrows its string from a column, and a constant, a default or a
/// parameter outlives all columns.
#[derive(Clone, Debug, PartialEq)]
pub enum Scalar {
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// True or false.
    Bool(bool),
    /// A string.
    Text(Arc<str>),
}

impl Scalar {
    /// The kind of the value.
    pub fn kind(&self) -> Kind {
        match self {
            Scalar::Int(_) => Kind::Int,
            Scalar::Float(_) => Kind::Float,
            Scalar::Bool(_) => Kind::Bool,
            Scalar::Text(_) => Kind::Text,
        }
    }
}

impl From<Cell<'_>> for Scalar {
    fn from(cell: Cell<'_>) -> Scalar {
        match cell {
            Cell::Int(value) => Scalar::Int(value),
            Cell::Float(value) => Scalar::Float(value),
            Cell::Bool(value) => Scalar::Bool(value),
            Cell::Text(value) => Scalar::Text(value.into()),
        }
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Int(value) => value.fmt(f),
            Scalar::Float(value) => value.fmt(f),
            Scalar::Bool(value) => value.fmt(f),
            Scalar::Text(value) => f.write_str(value),
        }
    }
}

/// The parameters of one request, by their place in the registry; `None` is null. Lists are kept apart, and so is the
/// time that `now()` is for this request.
#[derive(Clone, Default)]
pub struct Values {
    by_place: Box<[Option<Scalar>]>,
    /// The lists that are set, with their places.
    lists: Vec<(usize, Arc<List>)>,
    /// Shared by all copies of a request, so that all of them have the same time.
    now: Arc<OnceLock<f64>>,
}

impl Values {
    /// The list that the parameter at a place is set to; `None` is null.
    pub fn list(&self, place: usize) -> Option<&Arc<List>> {
        self.lists.iter().find(|(other, _)| *other == place).map(|(_, list)| list)
    }

    /// Sets the list at a place; `None` is null.
    pub fn set_list(&mut self, place: usize, list: Option<Arc<List>>) {
        self.lists.retain(|(other, _)| *other != place);
        self.lists.extend(list.map(|list| (place, list)));
    }

    /// The time of the request, in seconds since 1970: the wall clock when it is first read.
    pub fn now(&self) -> f64 {
        #[allow(clippy::disallowed_methods, reason = "asked once per request; replays and tests set it")]
        let wall_clock =
            || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64());
        *self.now.get_or_init(wall_clock)
    }

    /// The time of the request, if it was read or set.
    pub fn known_now(&self) -> Option<f64> {
        self.now.get().copied()
    }

    /// Sets the time of the request.
    pub fn set_now(&mut self, now: f64) {
        self.now = Arc::new(OnceLock::from(now));
    }
}

/// Equal parameters; the time is not one of them.
impl PartialEq for Values {
    fn eq(&self, other: &Values) -> bool {
        let lists =
            |values: &Values| values.lists.iter().all(|(place, list)| other.list(*place) == Some(list));
        self.by_place == other.by_place && self.lists.len() == other.lists.len() && lists(self)
    }
}

impl fmt::Debug for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.by_place).entries(&self.lists).finish()
    }
}

impl Deref for Values {
    type Target = [Option<Scalar>];

    fn deref(&self) -> &[Option<Scalar>] {
        &self.by_place
    }
}

impl DerefMut for Values {
    fn deref_mut(&mut self) -> &mut [Option<Scalar>] {
        &mut self.by_place
    }
}

impl<V: Into<Box<[Option<Scalar>]>>> From<V> for Values {
    fn from(by_place: V) -> Values {
        Values { by_place: by_place.into(), ..Values::default() }
    }
}

impl FromIterator<Option<Scalar>> for Values {
    fn from_iter<I: IntoIterator<Item = Option<Scalar>>>(values: I) -> Values {
        Values { by_place: values.into_iter().collect(), ..Values::default() }
    }
}

impl<'a> IntoIterator for &'a Values {
    type Item = &'a Option<Scalar>;
    type IntoIter = std::slice::Iter<'a, Option<Scalar>>;

    fn into_iter(self) -> Self::IntoIter {
        self.by_place.iter()
    }
}

/// A list that a request brings: integers or strings. Looked up through an index that is built once per request.
#[derive(Debug)]
pub struct List {
    items: Items,
    index: OnceLock<Set>,
    /// The index for floats that are looked up among integers.
    float_index: OnceLock<Set>,
}

#[derive(Debug, PartialEq)]
enum Items {
    Ints(Box<[i64]>),
    Texts(Box<[Arc<str>]>),
}

impl List {
    /// The most items that a request may bring in one list.
    pub const MOST_ITEMS: usize = 100_000;

    /// A list of integers.
    pub fn ints(items: impl Into<Box<[i64]>>) -> List {
        List::of(Items::Ints(items.into()))
    }

    /// A list of strings.
    pub fn texts(items: impl Into<Box<[Arc<str>]>>) -> List {
        List::of(Items::Texts(items.into()))
    }

    fn of(items: Items) -> List {
        List { items, index: OnceLock::new(), float_index: OnceLock::new() }
    }

    /// The kind of its items.
    pub fn kind(&self) -> Kind {
        match self.items {
            Items::Ints(_) => Kind::Int,
            Items::Texts(_) => Kind::Text,
        }
    }

    /// The number of its items.
    pub fn len(&self) -> usize {
        match &self.items {
            Items::Ints(items) => items.len(),
            Items::Texts(items) => items.len(),
        }
    }

    /// True if the list has no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its items, in their order.
    pub fn items(&self) -> Box<dyn Iterator<Item = Scalar> + '_> {
        match &self.items {
            Items::Ints(items) => Box::new(items.iter().map(|item| Scalar::Int(*item))),
            Items::Texts(items) => Box::new(items.iter().map(|item| Scalar::Text(Arc::clone(item)))),
        }
    }

    /// The items that a value of this kind can be equal to, built on first use.
    pub(crate) fn set(&self, kind: Kind) -> &Set {
        match &self.items {
            Items::Ints(items) if kind == Kind::Float => {
                self.float_index.get_or_init(|| Set::floats_of_ints(items))
            }
            Items::Ints(items) => self.index.get_or_init(|| Set::ints(items.to_vec())),
            Items::Texts(items) => self.index.get_or_init(|| Set::texts(items.to_vec())),
        }
    }

    /// The estimated time of building the index for values of this kind; zero if it exists.
    pub(crate) fn index_time(&self, kind: Kind) -> Duration {
        let index = if kind == Kind::Float { &self.float_index } else { &self.index };
        match index.get() {
            Some(_) => Duration::ZERO,
            None => Duration::from_nanos(60 * self.len() as u64),
        }
    }
}

impl PartialEq for List {
    fn eq(&self, other: &List) -> bool {
        self.items == other.items
    }
}
