//! What terms come to.

use std::collections::BTreeMap;

use minijinja::Value;
use minijinja::value::ValueKind;

use super::code::{Kind, Names, Operator, Place, Round, Term};
use super::filters::Arguments;
use super::kinds::{Number, called, integer};
use super::operators::apply;
use super::work::{Stop, Work, elements, item, wrong};

/// The most numbers of a range.
pub(super) const RANGE_MOST: i128 = 100_000;

/// Why it does not go on, and where.
pub(super) struct Halt {
    pub(super) place: Place,
    pub(super) stop: Stop,
}

/// What names stand for.
pub(super) struct Scope {
    pub(super) variables: BTreeMap<String, Value>,
    /// The innermost last.
    pub(super) loops: Vec<Running>,
}

/// A loop under way.
pub(super) struct Running {
    pub(super) names: Names,
    /// The element, or its parts.
    pub(super) bound: Vec<Value>,
    pub(super) list: Value,
    pub(super) len: usize,
    /// Where the template says what it goes over.
    pub(super) place: Place,
    /// Rounds that have begun.
    pub(super) rounds: usize,
    /// Bytes that its list was made of.
    pub(super) made: usize,
}

impl Running {
    /// Names an element.
    pub(super) fn bind(&mut self, element: Value) -> Result<(), Stop> {
        self.bound.clear();
        match &self.names {
            Names::One(_) => self.bound.push(element),
            Names::Each(names) => {
                if element.kind() != ValueKind::Seq || element.len() != Some(names.len()) {
                    let (count, got) = (names.len(), called(&element));
                    return wrong(format!("an element is {got}, and not a list of {count}"));
                }
                self.bound.extend(elements(&element));
            }
        }
        Ok(())
    }

    fn find(&self, name: &str) -> Option<&Value> {
        let index = match &self.names {
            Names::One(own) => (**own == *name).then_some(0),
            Names::Each(names) => names.iter().position(|own| **own == *name),
        };
        self.bound.get(index?)
    }

    fn tell(&self, round: Round) -> Value {
        match round {
            Round::Index => self.rounds.into(),
            Round::Index0 => self.rounds.saturating_sub(1).into(),
            Round::Backwards => (self.len - self.rounds + 1).into(),
            Round::Backwards0 => (self.len - self.rounds).into(),
            Round::First => (self.rounds == 1).into(),
            Round::Last => (self.rounds == self.len).into(),
            Round::Length => self.len.into(),
        }
    }
}

impl Scope {
    fn find(&self, name: &str) -> Option<&Value> {
        self.loops.iter().rev().find_map(|running| running.find(name)).or_else(|| self.variables.get(name))
    }

    /// What a whole expression comes to.
    pub(super) fn value(&self, work: &mut Work, term: &Term) -> Result<Value, Halt> {
        work.made = self.loops.iter().map(|running| running.made).sum();
        Evaluation { scope: self, work }.value(term)
    }
}

struct Evaluation<'a> {
    scope: &'a Scope,
    work: &'a mut Work,
}

impl Evaluation<'_> {
    /// A value that must be there.
    fn value(&mut self, term: &Term) -> Result<Value, Halt> {
        let value = self.find(term)?;
        match value.is_undefined() {
            true => Err(Halt { place: term.place.clone(), stop: Stop::Wrong("undefined value".into()) }),
            false => Ok(value),
        }
    }

    /// A value, or nothing if the last step to it is missing.
    fn find(&mut self, term: &Term) -> Result<Value, Halt> {
        let at = |stop| Halt { place: term.place.clone(), stop };
        self.work.steps(1).map_err(at)?;
        match &term.kind {
            Kind::Constant(value) => Ok(value.clone()),
            Kind::Variable(name) => Ok(self.scope.find(name).cloned().unwrap_or(Value::UNDEFINED)),
            Kind::Round(round) => {
                Ok(self.scope.loops.last().map_or(Value::UNDEFINED, |running| running.tell(*round)))
            }
            Kind::Not(term) => Ok((!self.value(term)?.is_true()).into()),
            Kind::And(one, other) | Kind::Or(one, other) => {
                let value = self.value(one)?;
                match value.is_true() == matches!(term.kind, Kind::And(..)) {
                    true => self.value(other),
                    false => Ok(value),
                }
            }
            Kind::Choice(of) => {
                let [test, yes, no] = &**of;
                let chosen = if self.value(test)?.is_true() { yes } else { no };
                self.value(chosen)
            }
            Kind::Test(test, of, with) => {
                let (value, with) = (self.find(of)?, self.values(with)?);
                if value.is_undefined() && !matches!(test.name, "defined" | "undefined") {
                    return Err(at(Stop::Wrong("undefined value".into())));
                }
                (test.holds)(&value, &with).map(Value::from).map_err(at)
            }
            Kind::Filter(filter, of, with, attribute) => {
                let value = if filter.takes_undefined() { self.find(of)? } else { self.value(of)? };
                let with = Arguments { values: self.values(with)?, attribute: attribute.clone() };
                (filter.run)(self.work, &value, &with).map_err(at)
            }
            _ => self.made(term),
        }
    }

    /// Of a term that makes something out of others.
    fn made(&mut self, term: &Term) -> Result<Value, Halt> {
        let at = |stop| Halt { place: term.place.clone(), stop };
        match &term.kind {
            Kind::Negative(of) => {
                let (zero, of) = (Value::from(0), self.value(of)?);
                apply(self.work, Operator::Subtract, &zero, &of).map_err(at)
            }
            Kind::Two(operator, one, other) => {
                let (one, other) = (self.value(one)?, self.value(other)?);
                apply(self.work, *operator, &one, &other).map_err(at)
            }
            Kind::Item(of, key) => {
                let (of, key) = (self.value(of)?, self.value(key)?);
                self.item(&of, &key).map_err(at)
            }
            Kind::Slice(of, ends) => {
                let of = self.value(of)?;
                let mut values = [None, None];
                for (value, end) in values.iter_mut().zip(ends) {
                    *value = end.as_ref().map(|end| self.value(end)).transpose()?;
                }
                self.slice(&of, &values).map_err(at)
            }
            Kind::Range(ends) => {
                let ends = self.values(ends)?;
                self.range(&ends).map_err(at)
            }
            Kind::List(terms) => {
                self.work.make(terms.len() * size_of::<Value>()).map_err(at)?;
                Ok(self.values(terms)?.into())
            }
            Kind::Map(entries) => {
                self.work.make(entries.len() * 4 * size_of::<Value>()).map_err(at)?;
                let mut map = BTreeMap::new();
                for (key, value) in entries {
                    let (name, value) = (self.value(key)?, self.value(value)?);
                    let Some(name) = name.as_str() else {
                        let stop = Stop::Wrong(format!("a key is a text, not {}", called(&name)).into());
                        return Err(Halt { place: key.place.clone(), stop });
                    };
                    map.insert(name.to_owned(), value);
                }
                Ok(map.into())
            }
            _ => unreachable!("the other kinds make nothing"),
        }
    }

    fn values(&mut self, terms: &[Term]) -> Result<Vec<Value>, Halt> {
        terms.iter().map(|term| self.value(term)).collect()
    }

    fn item(&mut self, of: &Value, key: &Value) -> Result<Value, Stop> {
        match of.kind() {
            ValueKind::Map => {
                self.work.look(key.as_str().map_or(0, str::len))?;
                Ok(item(of, key))
            }
            ValueKind::Seq if key.is_integer() => Ok(item(of, key)),
            ValueKind::String if key.is_integer() => {
                self.work.look(of.as_str().map_or(0, str::len))?;
                Ok(item(of, key))
            }
            ValueKind::Seq | ValueKind::String => {
                wrong(format!("an index is an integer, not {}", called(key)))
            }
            _ => wrong(format!("there is nothing inside {}", called(of))),
        }
    }

    fn slice(&mut self, of: &Value, ends: &[Option<Value>; 2]) -> Result<Value, Stop> {
        let len = match of.as_str() {
            None if of.kind() != ValueKind::Seq => {
                return wrong(format!("{} has no parts from one index to another", called(of)));
            }
            None => of.len().unwrap_or(0),
            Some(text) => {
                self.work.look(text.len())?;
                text.chars().count()
            }
        };
        let place = |end: &Option<Value>, otherwise: usize| match end {
            None => Ok(otherwise),
            Some(end) => {
                let (end, len) = (integer(end)?, len as i128);
                Ok((if end < 0 { end.saturating_add(len) } else { end }).clamp(0, len) as usize)
            }
        };
        let (from, to) = (place(&ends[0], 0)?, place(&ends[1], len)?);
        let count = to.saturating_sub(from);
        match of.as_str() {
            Some(text) => {
                self.work.look(text.len())?;
                let part = text.chars().skip(from).take(count).collect();
                self.work.text(part)
            }
            None => {
                self.work.steps(from / 16)?;
                Ok(self.work.list((from..from + count).map(|index| item(of, &index.into())))?.into())
            }
        }
    }

    fn range(&mut self, ends: &[Value]) -> Result<Value, Stop> {
        let ends = ends.iter().map(integer).collect::<Result<Vec<i128>, Stop>>()?;
        let (from, to, step) = match ends[..] {
            [to] => (0, to, 1),
            [from, to] => (from, to, 1),
            [from, to, step] => (from, to, step),
            _ => return wrong("`range` takes 1 to 3 integers"),
        };
        if step == 0 {
            return wrong("a range cannot go on by 0");
        }
        let way = if step > 0 { to.checked_sub(from) } else { from.checked_sub(to) };
        let size = step.unsigned_abs().try_into().unwrap_or(i128::MAX);
        let count = match way {
            Some(way) if way <= 0 => 0,
            Some(way) => (way - 1) / size + 1,
            None => i128::MAX,
        };
        if count > RANGE_MOST {
            return wrong(format!("a range has at most {RANGE_MOST} numbers"));
        }
        let number = |index| Number::Integer(from + index * step).into();
        Ok(self.work.list((0..count).map(number))?.into())
    }
}
