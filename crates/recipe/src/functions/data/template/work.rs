//! How much a template may do and make.

use std::borrow::Cow;
use std::fmt;

use minijinja::Value;
use minijinja::value::ValueKind;

/// The most bytes that an expression makes on its way, and that the lists of all loops around it were made of.
pub(super) const MADE_MOST: usize = 32 << 20;

/// So many bytes are looked at or made in one step.
const BYTES_PER_STEP: usize = 64;

/// Why it does not go on.
#[derive(Debug)]
pub(super) enum Stop {
    Wrong(Cow<'static, str>),
    /// No steps are left.
    Fuel,
    /// More is made than may be.
    Made,
    /// More is given than may be.
    Given,
}

/// Something is not as it must be.
pub(super) fn wrong<T>(problem: impl Into<Cow<'static, str>>) -> Result<T, Stop> {
    Err(Stop::Wrong(problem.into()))
}

/// What was done and made.
pub(super) struct Work {
    /// Steps that are left.
    pub(super) fuel: u64,
    /// Bytes that were made for the expression under way.
    pub(super) made: usize,
}

impl Work {
    /// Takes some steps.
    pub(super) fn steps(&mut self, count: usize) -> Result<(), Stop> {
        self.fuel = self.fuel.checked_sub(count as u64).ok_or(Stop::Fuel)?;
        Ok(())
    }

    /// Looks at some bytes.
    pub(super) fn look(&mut self, bytes: usize) -> Result<(), Stop> {
        self.steps(bytes / BYTES_PER_STEP)
    }

    /// Makes some bytes.
    pub(super) fn make(&mut self, bytes: usize) -> Result<(), Stop> {
        self.made = self.made.saturating_add(bytes);
        match self.made > MADE_MOST {
            true => Err(Stop::Made),
            false => self.look(bytes),
        }
    }

    /// A text that was made: out of one that is not much smaller, else it would have to be bounded on its way.
    pub(super) fn text(&mut self, text: String) -> Result<Value, Stop> {
        self.make(text.len())?;
        Ok(text.into())
    }

    /// A list that is made out of elements as they come.
    pub(super) fn list(&mut self, values: impl Iterator<Item = Value>) -> Result<Vec<Value>, Stop> {
        let mut list = Vec::new();
        for value in values {
            self.steps(1)?;
            self.make(size_of::<Value>())?;
            list.push(value);
        }
        Ok(list)
    }

    /// Looks at all of a value: how many bytes it has, about.
    pub(super) fn weigh(&mut self, value: &Value) -> Result<usize, Stop> {
        self.steps(1)?;
        let mut bytes = size_of::<Value>();
        match value.kind() {
            ValueKind::String => {
                let len = value.as_str().map_or(0, str::len);
                self.look(len)?;
                bytes += len;
            }
            ValueKind::Seq => {
                for element in elements(value) {
                    bytes += self.weigh(&element)?;
                }
            }
            ValueKind::Map => {
                for key in elements(value) {
                    bytes += self.weigh(&key)? + self.weigh(&item(value, &key))?;
                }
            }
            _ => {}
        }
        Ok(bytes)
    }

    /// Writes a text that is made bit by bit, as far as it may go.
    pub(super) fn written(
        &mut self,
        write: impl FnOnce(&mut Text<'_>) -> fmt::Result,
    ) -> Result<Value, Stop> {
        let mut text = Text { made: String::new(), work: self, stop: None };
        match (write(&mut text), text.stop) {
            (Ok(()), None) => Ok(text.made.into()),
            (_, stop) => Err(stop.unwrap_or(Stop::Wrong("cannot be written as text".into()))),
        }
    }
}

/// The elements of a list, or the keys of a map.
pub(super) fn elements(value: &Value) -> impl Iterator<Item = Value> {
    value.try_iter().into_iter().flatten()
}

/// What a map has for a key, or a list for an index.
pub(super) fn item(value: &Value, key: &Value) -> Value {
    value.get_item(key).unwrap_or(Value::UNDEFINED)
}

/// A text that is being made.
pub(super) struct Text<'a> {
    made: String,
    work: &'a mut Work,
    stop: Option<Stop>,
}

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if let Err(stop) = self.work.make(text.len()) {
            self.stop = Some(stop);
            return Err(fmt::Error);
        }
        self.made.push_str(text);
        Ok(())
    }
}
