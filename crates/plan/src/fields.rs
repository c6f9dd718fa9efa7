//! Reads the fields of an object, each by name and type. Every other field is an error.

use anabranch_text::{Problem, Problems, quote};
use serde_json::{Map, Value};

use crate::json::show;

/// An object being read. Everything wrong with it is noted with its place.
pub(crate) struct Fields<'a, 'p> {
    map: &'a Map<String, Value>,
    place: String,
    asked: Vec<&'static str>,
    pub(crate) problems: &'p mut Problems,
}

/// A type that a field may have.
pub(crate) trait Field<'a>: Sized {
    /// Its name in messages.
    const WHAT: &'static str;

    /// Converts a value to this type, if it fits.
    fn read(value: &'a Value) -> Option<Self>;
}

impl<'a, 'p> Fields<'a, 'p> {
    /// Reads `map`, which stands at `place`; an empty place is the whole text.
    pub(crate) fn new(
        map: &'a Map<String, Value>,
        place: impl Into<String>,
        problems: &'p mut Problems,
    ) -> Self {
        Fields { map, place: place.into(), asked: Vec::new(), problems }
    }

    /// The place of a field.
    pub(crate) fn place(&self, name: &str) -> String {
        match (self.place.is_empty(), name.is_empty()) {
            (true, true) => "the field without a name".to_owned(),
            (true, false) => name.to_owned(),
            (false, true) => self.place.clone(),
            (false, false) => format!("{}, {name}", self.place),
        }
    }

    /// Notes an error about a field.
    pub(crate) fn error(&mut self, name: &str, what: impl Into<String>) {
        let problem = Problem::new(self.place(name), what);
        self.problems.error(problem);
    }

    /// Reports an error of a field, with advice.
    pub(crate) fn error_with_help(&mut self, name: &str, what: impl Into<String>, help: impl Into<String>) {
        let problem = Problem::new(self.place(name), what).help(help);
        self.problems.error(problem);
    }

    /// A field as it is.
    pub(crate) fn raw(&mut self, name: &'static str) -> Option<&'a Value> {
        self.asked.push(name);
        self.map.get(name)
    }

    /// A field that may be left out.
    pub(crate) fn optional<T: Field<'a>>(&mut self, name: &'static str) -> Option<T> {
        let value = self.raw(name)?;
        let read = T::read(value);
        if read.is_none() {
            self.error(name, format!("must be {}, not {}", T::WHAT, show(value)));
        }
        read
    }

    /// A field that must be there.
    pub(crate) fn required<T: Field<'a>>(&mut self, name: &'static str) -> Option<T> {
        if !self.map.contains_key(name) {
            self.asked.push(name);
            self.error(name, format!("is missing; it must be {}", T::WHAT));
            return None;
        }
        self.optional(name)
    }

    /// One of these words.
    pub(crate) fn choice<T: Copy>(&mut self, name: &'static str, words: &[(&str, T)]) -> Option<T> {
        let word: &str = self.optional(name)?;
        let found = words.iter().find(|(other, _)| *other == word);
        if found.is_none() {
            let all: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
            self.error(name, format!("must be one of {}, not {}", all.join(", "), quote(word)));
        }
        found.map(|(_, value)| *value)
    }

    /// One of these words, which must be there.
    pub(crate) fn required_choice<T: Copy>(&mut self, name: &'static str, words: &[(&str, T)]) -> Option<T> {
        self.required::<&str>(name)?;
        self.choice(name, words)
    }

    /// Reports all fields that were not read.
    pub(crate) fn finish(mut self) {
        #[cfg(test)]
        asked::note(&self.place, &self.asked);
        for name in self.map.keys() {
            if !self.asked.contains(&name.as_str()) {
                let mut problem = Problem::new(self.place(&shown(name)), "there is no such field");
                problem.help = self.problems.did_you_mean(name, self.asked.iter().copied());
                self.problems.error(problem);
            }
        }
        self.asked.clear();
    }
}

/// A field's name in places.
fn shown(name: &str) -> String {
    quote(name).trim_matches('`').to_owned()
}

impl<'a> Field<'a> for &'a str {
    const WHAT: &'static str = "a string";

    fn read(value: &'a Value) -> Option<&'a str> {
        value.as_str()
    }
}

impl<'a> Field<'a> for String {
    const WHAT: &'static str = "a string";

    fn read(value: &'a Value) -> Option<String> {
        value.as_str().map(str::to_owned)
    }
}

impl<'a> Field<'a> for bool {
    const WHAT: &'static str = "true or false";

    fn read(value: &'a Value) -> Option<bool> {
        value.as_bool()
    }
}

impl<'a> Field<'a> for i64 {
    const WHAT: &'static str = "a whole number";

    fn read(value: &'a Value) -> Option<i64> {
        value.as_i64()
    }
}

impl<'a> Field<'a> for u32 {
    const WHAT: &'static str = "a whole number from 0 to 4294967295";

    fn read(value: &'a Value) -> Option<u32> {
        value.as_u64().and_then(|value| u32::try_from(value).ok())
    }
}

impl<'a> Field<'a> for f64 {
    const WHAT: &'static str = "a number";

    fn read(value: &'a Value) -> Option<f64> {
        value.as_f64()
    }
}

impl<'a> Field<'a> for &'a Map<String, Value> {
    const WHAT: &'static str = "an object";

    fn read(value: &'a Value) -> Option<Self> {
        value.as_object()
    }
}

impl<'a> Field<'a> for &'a [Value] {
    const WHAT: &'static str = "a list";

    fn read(value: &'a Value) -> Option<Self> {
        value.as_array().map(Vec::as_slice)
    }
}

/// The fields that parsers ask for, for the test of the reference pages.
#[cfg(test)]
pub(crate) mod asked {
    use std::cell::RefCell;
    use std::collections::{BTreeMap, BTreeSet};

    type RequestedFields = BTreeMap<String, BTreeSet<&'static str>>;

    thread_local! {
        static ASKED: RefCell<RequestedFields> = const { RefCell::new(RequestedFields::new()) };
    }

    pub(super) fn note(place: &str, names: &[&'static str]) {
        ASKED.with_borrow_mut(|asked| asked.entry(place.to_owned()).or_default().extend(names));
    }

    /// The fields that were read on this thread since the last call, by place.
    pub(crate) fn take() -> RequestedFields {
        ASKED.take()
    }
}
