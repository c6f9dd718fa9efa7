//! The fuel and the memory of one run.

use std::fmt;

use anabranch_value::Value;

use crate::error::{Stop, wrong};
use crate::template::Dialect;

/// The most bytes that one expression and all values with names may take, unless the run has less.
pub const MEMORY_BYTES: usize = 32 << 20;

/// Steps between two calls of the check.
const STEPS_BETWEEN_CHECKS: u64 = 10_000;

/// Says whether a run may continue.
pub(crate) type Check = Box<dyn FnMut() -> bool + Send>;

/// Bytes that are read or made per step.
const BYTES_PER_STEP: usize = 64;

/// The deepest nesting of a value with a name: printing, comparing and dropping a value recurse.
const DEPTH: usize = 256;

/// The size of a value beside its text or elements.
pub(crate) const VALUE: usize = size_of::<Value>();

/// The size of a text of its own beside its bytes: its allocation. The plain dialect does not count it.
const ALLOCATION: usize = 32;

/// The fuel and the memory of one run, and the dialect that decides what values are worth.
pub(crate) struct Work {
    pub(crate) dialect: Dialect,
    /// Steps that are left.
    pub(crate) fuel: u64,
    /// The most bytes that may be made.
    pub(crate) memory: usize,
    /// Bytes that the expression under way has made, with all bytes below.
    pub(crate) made: usize,
    /// Bytes of values with names in the scopes that are open. A round of a loop gives its bytes back.
    pub(crate) named: usize,
    /// Bytes that stay up to the end of the run: captured output, and fields of namespaces.
    pub(crate) kept: usize,
    /// The state of the random numbers, once `random` was used.
    pub(crate) random: Option<u64>,
    /// Bytes that were read and not yet paid for.
    unpaid: usize,
    /// Called every so many steps, if there is one.
    pub(crate) check: Option<Check>,
    /// Steps since the last check.
    unchecked: u64,
}

impl Work {
    pub(crate) fn new(dialect: Dialect, fuel: u64) -> Work {
        Work {
            dialect,
            fuel,
            memory: MEMORY_BYTES,
            made: 0,
            named: 0,
            kept: 0,
            random: None,
            unpaid: 0,
            check: None,
            unchecked: 0,
        }
    }

    pub(crate) fn is_plain(&self) -> bool {
        self.dialect == Dialect::Plain
    }

    /// Takes some steps.
    pub(crate) fn steps(&mut self, count: usize) -> Result<(), Stop> {
        self.fuel = self.fuel.checked_sub(count as u64).ok_or(Stop::Fuel)?;
        self.unchecked = self.unchecked.saturating_add(count as u64);
        match self.unchecked < STEPS_BETWEEN_CHECKS {
            true => Ok(()),
            false => self.check(),
        }
    }

    #[cold]
    fn check(&mut self) -> Result<(), Stop> {
        self.unchecked = 0;
        match self.check.as_mut().is_none_or(|check| check()) {
            true => Ok(()),
            false => Err(Stop::Check),
        }
    }

    /// Reads some bytes.
    pub(crate) fn look(&mut self, bytes: usize) -> Result<(), Stop> {
        let bytes = self.unpaid.saturating_add(bytes);
        self.unpaid = bytes % BYTES_PER_STEP;
        self.steps(bytes / BYTES_PER_STEP)
    }

    /// Makes some bytes.
    pub(crate) fn make(&mut self, bytes: usize) -> Result<(), Stop> {
        self.made = self.made.saturating_add(bytes);
        match self.made > self.memory {
            true => Err(Stop::Memory),
            false => self.look(bytes),
        }
    }

    /// Begins an expression: only bytes with names are still there.
    pub(crate) fn begin(&mut self) {
        self.made = self.named.saturating_add(self.kept);
    }

    /// Gives the value of the expression under way a name: its bytes stay while the scope is open.
    pub(crate) fn name(&mut self) {
        self.named = self.made.saturating_sub(self.kept);
    }

    /// Makes bytes that stay up to the end of the run.
    pub(crate) fn keep(&mut self, bytes: usize) -> Result<(), Stop> {
        self.kept = self.kept.saturating_add(bytes);
        self.begin();
        match self.made > self.memory {
            true => Err(Stop::Memory),
            false => self.look(bytes),
        }
    }

    /// The value of a text that is not much larger than the text it was made of.
    pub(crate) fn made_text(&mut self, text: &str) -> Result<Value, Stop> {
        self.make(text.len())?;
        Ok(text.into())
    }

    /// Makes a text that is one of many.
    pub(crate) fn make_part(&mut self, bytes: usize) -> Result<(), Stop> {
        self.steps(1)?;
        self.make(VALUE + bytes + if self.is_plain() { 0 } else { ALLOCATION })
    }

    /// A list of elements as they come.
    pub(crate) fn list(&mut self, values: impl Iterator<Item = Value>) -> Result<Vec<Value>, Stop> {
        let mut list = Vec::new();
        for value in values {
            self.steps(1)?;
            self.make(VALUE)?;
            list.push(value);
        }
        Ok(list)
    }

    /// Reads all of a value and returns its size in bytes, about.
    pub(crate) fn weigh(&mut self, value: &Value) -> Result<usize, Stop> {
        self.steps(1)?;
        let mut bytes = VALUE;
        match value {
            Value::Text(text) => {
                self.look(text.len())?;
                bytes += text.len();
            }
            Value::List(list) => {
                for element in list.iter() {
                    bytes = bytes.saturating_add(self.weigh(element)?);
                }
            }
            Value::Map(map) => {
                for (name, value) in map.iter() {
                    self.look(name.len())?;
                    bytes = bytes.saturating_add(VALUE + name.len() + self.weigh(value)?);
                }
            }
            _ => {}
        }
        Ok(bytes)
    }

    /// Refuses a value that is nested too deeply to get a name.
    pub(crate) fn check_depth(&mut self, value: &Value) -> Result<(), Stop> {
        self.check_depth_below(value, DEPTH)
    }

    fn check_depth_below(&mut self, value: &Value, left: usize) -> Result<(), Stop> {
        if !matches!(value, Value::List(_) | Value::Map(_)) {
            return Ok(());
        }
        if left == 0 {
            return wrong(format!("the value is nested more than {DEPTH} deep"));
        }
        self.steps(1 + value.as_list().map_or(0, <[Value]>::len) / 16)?;
        self.steps(value.as_map().map_or(0, |map| map.len()) / 16)?;
        match value {
            Value::List(list) => list.iter().try_for_each(|value| self.check_depth_below(value, left - 1)),
            Value::Map(map) => map.values().try_for_each(|value| self.check_depth_below(value, left - 1)),
            _ => Ok(()),
        }
    }

    /// A text that is written bit by bit, as far as the bounds allow.
    pub(crate) fn write(
        &mut self,
        write: impl FnOnce(&mut BoundedText<'_>) -> fmt::Result,
    ) -> Result<String, Stop> {
        let mut text = BoundedText { made: String::new(), work: self, stop: None };
        match (write(&mut text), text.stop) {
            (Ok(()), None) => Ok(text.made),
            (_, stop) => Err(stop.unwrap_or(Stop::Wrong("the value cannot be written as text".into()))),
        }
    }

    /// The same, as a value.
    pub(crate) fn written(
        &mut self,
        write: impl FnOnce(&mut BoundedText<'_>) -> fmt::Result,
    ) -> Result<Value, Stop> {
        self.write(write).map(Value::from)
    }
}

/// A text under way.
pub(crate) struct BoundedText<'a> {
    made: String,
    work: &'a mut Work,
    stop: Option<Stop>,
}

impl fmt::Write for BoundedText<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if let Err(stop) = self.work.make(text.len()) {
            self.stop = Some(stop);
            return Err(fmt::Error);
        }
        self.made.push_str(text);
        Ok(())
    }
}

/// Whether a value counts as true in a condition: not null, false, zero, or empty.
pub fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(truth) => *truth,
        Value::Int(int) => *int != 0,
        Value::Float(float) => *float != 0.0,
        Value::Text(text) => !text.is_empty(),
        Value::List(list) => !list.is_empty(),
        Value::Map(map) => !map.is_empty(),
    }
}
