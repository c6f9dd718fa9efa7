//! Builds trees of values from JSON and YAML, and claims their memory as they grow.

use std::cell::{Cell, RefCell};
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value as Json};

use crate::budget::CallBudget;
use crate::function::Fault;

/// A kind of tree.
pub(super) trait Tree: Sized {
    /// The entries of an object that is being read.
    type Entries: Default;

    fn scalar(value: Json) -> Self;
    fn list(values: Vec<Self>) -> Self;
    fn add_entry(entries: &mut Self::Entries, key: String, value: Self);
    fn object(entries: Self::Entries) -> Self;
}

impl Tree for Json {
    type Entries = Map<String, Json>;

    fn scalar(value: Json) -> Json {
        value
    }

    fn list(values: Vec<Json>) -> Json {
        Json::Array(values)
    }

    fn add_entry(entries: &mut Map<String, Json>, key: String, value: Json) {
        entries.insert(key, value);
    }

    fn object(entries: Map<String, Json>) -> Json {
        Json::Object(entries)
    }
}

/// Claims memory for the nodes of a tree.
pub(super) struct TreeBudget<'a> {
    budget: &'a CallBudget,
    /// Bytes in use that are not claimed yet.
    unclaimed: Cell<u64>,
    fault: RefCell<Option<Fault>>,
}

/// Memory is claimed in steps of this many bytes.
const STEP: u64 = 16 << 10;

/// The memory per list element. A list grows by doubling, so two copies exist for a moment.
const ELEMENT: u64 = 3 * size_of::<Json>() as u64;

/// The memory of the first entry of an object, which allocates a whole B-tree node, and of each further entry.
const FIRST_ENTRY: u64 = 700;
const ENTRY: u64 = 200;

/// The overhead of a text, in addition to its bytes.
const TEXT: u64 = 16;

impl<'a> TreeBudget<'a> {
    pub(super) fn new(budget: &'a CallBudget) -> TreeBudget<'a> {
        TreeBudget { budget, unclaimed: Cell::new(0), fault: RefCell::default() }
    }

    /// Runs `read` and returns its tree. Fails with the budget's fault, or else with the reader's error.
    pub(super) fn read<T, E>(
        self,
        read: impl FnOnce(&TreeBudget<'a>) -> Result<T, E>,
        wrong: impl FnOnce(E) -> Fault,
    ) -> Result<T, Fault> {
        let result = read(&self);
        match self.fault.take() {
            Some(fault) => Err(fault),
            None => result.map_err(wrong),
        }
    }

    /// A seed that deserializes a tree.
    pub(super) fn seed<T: Tree>(&'a self) -> TreeSeed<'a, T> {
        TreeSeed { budget: self, tree: PhantomData }
    }

    fn claim<E: Error>(&self, bytes: u64) -> Result<(), E> {
        let unclaimed = self.unclaimed.get() + bytes;
        if unclaimed < STEP {
            self.unclaimed.set(unclaimed);
            return Ok(());
        }
        self.unclaimed.set(0);
        self.budget.claim(unclaimed).and_then(|()| self.budget.check()).map_err(|fault| {
            let error = E::custom(&fault);
            *self.fault.borrow_mut() = Some(fault);
            error
        })
    }
}

/// Deserializes a tree.
pub(super) struct TreeSeed<'a, T> {
    budget: &'a TreeBudget<'a>,
    tree: PhantomData<T>,
}

impl<'de, T: Tree> DeserializeSeed<'de> for TreeSeed<'_, T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, T: Tree> Visitor<'de> for TreeSeed<'_, T> {
    type Value = T;

    fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<T, E> {
        Ok(T::scalar(Json::Null))
    }

    fn visit_bool<E>(self, value: bool) -> Result<T, E> {
        Ok(T::scalar(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<T, E> {
        Ok(T::scalar(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<T, E> {
        Ok(T::scalar(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<T, E> {
        let number = Number::from_f64(value).ok_or_else(|| E::custom("JSON has no such number"))?;
        Ok(T::scalar(number.into()))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<T, E> {
        self.budget.claim(value.len() as u64 + TEXT)?;
        Ok(T::scalar(value.into()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<T, E> {
        self.budget.claim(value.capacity() as u64 + TEXT)?;
        Ok(T::scalar(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<T, A::Error> {
        let mut list = Vec::new();
        while let Some(value) = values.next_element_seed(self.budget.seed())? {
            self.budget.claim(ELEMENT)?;
            list.push(value);
        }
        Ok(T::list(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut values: A) -> Result<T, A::Error> {
        let mut entries = T::Entries::default();
        let mut needed = FIRST_ENTRY;
        while let Some(key) = values.next_key::<String>()? {
            self.budget.claim(needed + key.capacity() as u64)?;
            needed = ENTRY;
            let value = values.next_value_seed(self.budget.seed())?;
            T::add_entry(&mut entries, key, value);
        }
        Ok(T::object(entries))
    }
}
