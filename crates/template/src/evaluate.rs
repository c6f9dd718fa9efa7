//! The values of terms.

use std::sync::Arc;

use anabranch_text::closest;
use anabranch_value::{Map, Value};

use crate::code::{Each, Kind, Mode, Operator, Place, Round, Slot, Target, Term};
use crate::error::{Halt, Stop, wrong};
use crate::filters::{Action, Arguments};
use crate::kinds::{called, count};
use crate::operators::{apply, equal};
use crate::run::Inputs;
use crate::work::{VALUE, Work, is_true};

/// The most numbers of a range.
const RANGE: i128 = 100_000;

/// A loop under way.
pub(crate) struct RunningLoop {
    pub(crate) target: Target,
    /// The slots of the body.
    pub(crate) own: Arc<[Slot]>,
    pub(crate) list: Arc<[Value]>,
    /// The place of the list in the template.
    pub(crate) place: Place,
    /// Rounds that have begun.
    pub(crate) rounds: usize,
    /// Bytes with names outside of the loop, and at the beginning of each round.
    pub(crate) named_before: usize,
    pub(crate) named_inside: usize,
}

impl RunningLoop {
    /// The element of the round.
    pub(crate) fn element(&self) -> Option<Value> {
        self.list.get(self.rounds.checked_sub(1)?).cloned()
    }

    fn property(&self, round: Round) -> Option<Value> {
        let (rounds, len) = (self.rounds, self.list.len());
        Some(match round {
            Round::Index => count(rounds),
            Round::Index0 => count(rounds.saturating_sub(1)),
            Round::Backwards => count((len + 1).saturating_sub(rounds)),
            Round::Backwards0 => count(len.saturating_sub(rounds)),
            Round::First => (rounds == 1).into(),
            Round::Last => (rounds == len).into(),
            Round::Length => count(len),
            Round::Previous => return self.list.get(rounds.checked_sub(2)?).cloned(),
            Round::Next => return self.list.get(rounds).cloned(),
            Round::Depth => 1.into(),
            Round::Depth0 => 0.into(),
        })
    }
}

/// The evaluation of one expression.
pub(crate) struct Evaluation<'a> {
    pub(crate) inputs: Inputs<'a>,
    pub(crate) slots: &'a mut [Option<Value>],
    pub(crate) loops: &'a [RunningLoop],
    pub(crate) work: &'a mut Work,
}

impl Evaluation<'_> {
    /// A value that must be defined.
    pub(crate) fn value(&mut self, term: &Term) -> Result<Value, Halt> {
        match self.find(term)? {
            Some(value) => Ok(value),
            None => Err(self.undefined(term)),
        }
    }

    /// The error for a value that is not defined.
    #[cold]
    #[inline(never)]
    fn undefined(&mut self, term: &Term) -> Halt {
        let problem = match &term.kind {
            _ if self.work.is_plain() => "undefined value".to_owned(),
            Kind::Item(of, key) => match (self.value(of), self.value(key)) {
                (Ok(Value::Map(map)), Ok(Value::Text(key))) => {
                    match closest(&key, map.keys().take(100).map(|name| &**name)) {
                        Some(near) => format!("undefined field `{key}`; did you mean `{near}`?"),
                        None => format!("undefined field `{key}`"),
                    }
                }
                (Ok(Value::Text(_)), Ok(Value::Text(key))) => {
                    format!("undefined field `{key}`: a text has no fields, even if it looks like JSON")
                }
                (Ok(of), Ok(Value::Text(key))) => {
                    format!("undefined field `{key}`: {} has no fields", called(&of))
                }
                (Ok(Value::List(list)), Ok(Value::Int(index))) => {
                    format!("undefined: the list has {} elements, and none at {index}", list.len())
                }
                _ => "undefined value".to_owned(),
            },
            Kind::Input(_) | Kind::Local(_) | Kind::LocalOr(..) => "undefined variable".to_owned(),
            Kind::Filter(filter, ..) => format!("`{}` has no result: the list is empty", filter.name),
            _ => "undefined value".to_owned(),
        };
        Halt { place: term.place.clone(), stop: Stop::Wrong(problem.into()) }
    }

    /// A value, or none if it is not defined.
    fn find(&mut self, term: &Term) -> Result<Option<Value>, Halt> {
        let at = |stop| Halt { place: term.place.clone(), stop };
        self.work.steps(1).map_err(at)?;
        match &term.kind {
            Kind::Constant(value) => Ok(Some(value.clone())),
            Kind::Input(index) => Ok(self.inputs.get(*index).cloned()),
            Kind::Local(slot) => Ok(self.slots[*slot].clone()),
            Kind::LocalOr(slot, other) => match &self.slots[*slot] {
                Some(value) => Ok(Some(value.clone())),
                None => self.find(other),
            },
            Kind::Round(round) => Ok(self.loops.last().and_then(|running| running.property(*round))),
            Kind::Not(term) => Ok(Some((!is_true(&self.value(term)?)).into())),
            Kind::And(one, other) | Kind::Or(one, other) => {
                let value = self.value(one)?;
                match is_true(&value) == matches!(term.kind, Kind::And(..)) {
                    true => self.value(other).map(Some),
                    false => Ok(Some(value)),
                }
            }
            Kind::Choice(of) => {
                let [test, yes, no] = &**of;
                let chosen = if is_true(&self.value(test)?) { yes } else { no };
                self.value(chosen).map(Some)
            }
            Kind::Item(of, key) => {
                let (of, key) = (self.value(of)?, self.value(key)?);
                self.item(&of, &key).map_err(at)
            }
            _ => self.applied(term),
        }
    }

    /// The value of a term that calls something.
    fn applied(&mut self, term: &Term) -> Result<Option<Value>, Halt> {
        let at = |stop| Halt { place: term.place.clone(), stop };
        match &term.kind {
            Kind::Default(of, other, flag) => {
                let value = self.find(of)?;
                let by_truth = match flag {
                    Some(flag) => is_true(&self.value(flag)?),
                    None => false,
                };
                match (value, other) {
                    (Some(value), _) if !by_truth || is_true(&value) => Ok(Some(value)),
                    (_, Some(other)) => self.value(other).map(Some),
                    (_, None) => Ok(Some("".into())),
                }
            }
            Kind::Test(test, of, with) => {
                let (value, with) = (self.find(of)?, self.values(with)?);
                match value {
                    None if !test.takes_undefined => Err(self.undefined(of)),
                    value => {
                        (test.holds)(self.work, value.as_ref(), &with).map(Value::from).map(Some).map_err(at)
                    }
                }
            }
            Kind::Filter(filter, of, with) => {
                let value = self.value(of)?;
                let mut values = Vec::with_capacity(with.len());
                for argument in with {
                    values.push(argument.as_ref().map(|argument| self.value(argument)).transpose()?);
                }
                let arguments = Arguments { values };
                match filter.action {
                    Action::Value(run) => run(self.work, &value, &arguments).map(Some).map_err(at),
                    Action::Maybe(run) => run(self.work, &value, &arguments).map_err(at),
                    Action::Random => self.random(&value).map_err(at),
                }
            }
            Kind::Method(method, of, with) => {
                let (value, with) = (self.value(of)?, self.values(with)?);
                (method.run)(self.work, &value, &with).map(Some).map_err(at)
            }
            Kind::Each(each) => self.each(each),
            _ => self.made(term).map(Some),
        }
    }

    /// The value of a term that makes something out of others.
    fn made(&mut self, term: &Term) -> Result<Value, Halt> {
        let at = |stop| Halt { place: term.place.clone(), stop };
        match &term.kind {
            Kind::Negative(of) => {
                let (zero, of) = (Value::Int(0), self.value(of)?);
                match of {
                    // The sign of a zero stays.
                    Value::Float(float) if !self.work.is_plain() => Ok((-float).into()),
                    of => apply(self.work, Operator::Subtract, &zero, &of).map_err(at),
                }
            }
            Kind::Binary(operator, one, other) => {
                let (one, other) = (self.value(one)?, self.value(other)?);
                apply(self.work, *operator, &one, &other).map_err(at)
            }
            Kind::Chain(first, rest) => {
                let mut left = self.value(first)?;
                for (operator, term) in rest {
                    let right = self.value(term)?;
                    if !is_true(&apply(self.work, *operator, &left, &right).map_err(at)?) {
                        return Ok(false.into());
                    }
                    left = right;
                }
                Ok(true.into())
            }
            Kind::Slice(of, ends) => {
                let of = self.value(of)?;
                let mut values = [None, None, None];
                for (value, end) in values.iter_mut().zip(&**ends) {
                    *value = end.as_ref().map(|end| self.value(end)).transpose()?;
                }
                self.slice(&of, &values).map_err(at)
            }
            Kind::Cycle(terms) => {
                let index = self.loops.last().map_or(0, |running| running.rounds.saturating_sub(1));
                self.value(&terms[index % terms.len()])
            }
            Kind::Range(ends) => {
                let ends = self.values(ends)?;
                self.range(&ends).map_err(at)
            }
            Kind::List(terms) => {
                self.work.make(terms.len() * VALUE).map_err(at)?;
                Ok(self.values(terms)?.into())
            }
            Kind::Map(entries) => self.map(entries, &term.place),
            _ => unreachable!("the other kinds make nothing"),
        }
    }

    fn values(&mut self, terms: &[Term]) -> Result<Vec<Value>, Halt> {
        terms.iter().map(|term| self.value(term)).collect()
    }

    fn map(&mut self, entries: &[(Term, Term)], place: &Place) -> Result<Value, Halt> {
        let made = self.work.make(entries.len() * 4 * VALUE);
        made.map_err(|stop| Halt { place: place.clone(), stop })?;
        let mut map = Map::new();
        for (key, value) in entries {
            let (name, value) = (self.value(key)?, self.value(value)?);
            let at = |stop| Halt { place: key.place.clone(), stop };
            let name = match name {
                Value::Text(name) => name,
                other if self.work.is_plain() => {
                    return Err(at(Stop::Wrong(format!("a key is a text, not {}", called(&other)).into())));
                }
                other => self.work.text(&other).map_err(at)?.as_ref().into(),
            };
            map.insert(name, value);
        }
        if self.work.is_plain() {
            map.sort_keys();
        }
        Ok(map.into())
    }

    /// Evaluates a term per element.
    fn each(&mut self, each: &Each) -> Result<Option<Value>, Halt> {
        let at = |stop| Halt { place: each.body.place.clone(), stop };
        let over = self.value(&each.over)?;
        let elements = self.work.elements(&over).map_err(at)?;
        let mut list = Vec::new();
        for element in elements {
            self.slots[each.element] = Some(element.clone());
            self.work.make(VALUE).map_err(at)?;
            match each.mode {
                Mode::Map => list.push(self.value(&each.body)?),
                mode => {
                    let holds = self.find(&each.body)?.is_some_and(|value| is_true(&value));
                    if holds == (mode == Mode::Select) {
                        list.push(element);
                    }
                }
            }
        }
        self.slots[each.element] = None;
        Ok(Some(list.into()))
    }

    fn item(&mut self, of: &Value, key: &Value) -> Result<Option<Value>, Stop> {
        match (of, key) {
            (Value::Map(map), Value::Text(key)) => {
                self.work.look(key.len())?;
                Ok(map.get(key).cloned())
            }
            (Value::Map(map), key) if !self.work.is_plain() => {
                let key = self.work.text(key)?;
                Ok(map.get(&*key).cloned())
            }
            (Value::Map(_), _) => Ok(None),
            (Value::List(list), Value::Int(index)) => {
                Ok(index_in(list.len(), *index).map(|at| list[at].clone()))
            }
            // The groups that `groupby` makes: their parts have these names in Jinja.
            (Value::List(list), Value::Text(key)) if !self.work.is_plain() && list.len() == 2 => match &**key
            {
                "grouper" => Ok(Some(list[0].clone())),
                "list" => Ok(Some(list[1].clone())),
                _ => Ok(None),
            },
            (_, Value::Text(_)) if !self.work.is_plain() => Ok(None),
            (Value::Text(text), Value::Int(index)) => {
                self.work.look(text.len())?;
                let Some(at) = index_in(text.chars().count(), *index) else { return Ok(None) };
                let letter = text.chars().nth(at).unwrap_or_default();
                self.work.made_text(letter.encode_utf8(&mut [0; 4])).map(Some)
            }
            (Value::List(_) | Value::Text(_), _) => {
                wrong(format!("an index is an integer, not {}", called(key)))
            }
            _ => wrong(format!("there is nothing inside {}", called(of))),
        }
    }

    fn slice(&mut self, of: &Value, ends: &[Option<Value>; 3]) -> Result<Value, Stop> {
        let len = match of {
            Value::List(list) => list.len(),
            Value::Text(text) => {
                self.work.look(text.len())?;
                text.chars().count()
            }
            _ => return wrong(format!("{} has no parts from one index to another", called(of))),
        };
        let end = |end: &Option<Value>| match end {
            None | Some(Value::Null) => Ok(None),
            Some(end) => self.work.integer(end).map(Some),
        };
        let step = end(&ends[2])?.unwrap_or(1);
        let (from, count) = slice_indexes(len, end(&ends[0])?, end(&ends[1])?, step)?;
        let indexes = (0..count).map(|index| (from + index * i128::from(step)) as usize);
        match of {
            Value::Text(text) if step == 1 => {
                self.work.look(text.len())?;
                let part: String = text.chars().skip(from as usize).take(count as usize).collect();
                self.work.made_text(&part)
            }
            Value::Text(text) => {
                self.work.make(text.len().saturating_mul(4))?;
                let letters: Vec<char> = text.chars().collect();
                let part: String = indexes.map(|index| letters[index]).collect();
                self.work.made_text(&part)
            }
            Value::List(list) => Ok(self.work.list(indexes.map(|index| list[index].clone()))?.into()),
            _ => unreachable!("the length of others is not known"),
        }
    }

    fn range(&mut self, ends: &[Value]) -> Result<Value, Stop> {
        let ends = ends.iter().map(|end| self.work.integer(end).map(i128::from));
        let ends = ends.collect::<Result<Vec<i128>, Stop>>()?;
        let (from, to, step) = match ends[..] {
            [to] => (0, to, 1),
            [from, to] => (from, to, 1),
            [from, to, step] => (from, to, step),
            _ => return wrong("`range` takes 1 to 3 integers"),
        };
        if step == 0 {
            return wrong("a range cannot go on by 0");
        }
        let way = if step > 0 { to - from } else { from - to };
        let count = if way <= 0 { 0 } else { (way - 1) / step.abs() + 1 };
        if count > RANGE {
            return wrong(format!("a range has at most {RANGE} numbers"));
        }
        let number = |index| Value::Int(i64::try_from(from + index * step).unwrap_or(i64::MAX));
        Ok(self.work.list((0..count).map(number))?.into())
    }

    /// An element by chance: decided by the inputs of the run, and by how often it was asked.
    fn random(&mut self, value: &Value) -> Result<Option<Value>, Stop> {
        let mut state = match self.work.random {
            Some(state) => state,
            None => {
                let mut state = 0xcbf2_9ce4_8422_2325;
                for input in self.inputs.all() {
                    self.work.weigh(input)?;
                    hash(&mut state, input);
                }
                state
            }
        };
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.work.random = Some(state);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let elements = self.work.elements(value)?;
        match elements.len() as u64 {
            0 => Ok(None),
            len => Ok(Some(elements[((mixed ^ (mixed >> 31)) % len) as usize].clone())),
        }
    }
}

/// Adds a value to a hash (FNV-1a).
fn hash(state: &mut u64, value: &Value) {
    let mut add = |bytes: &[u8]| {
        for byte in bytes {
            *state = (*state ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    };
    match value {
        Value::Null => add(&[0]),
        Value::Bool(truth) => add(&[1, u8::from(*truth)]),
        Value::Int(integer) => add(&integer.to_le_bytes()),
        Value::Float(float) => add(&float.to_bits().to_le_bytes()),
        Value::Text(text) => {
            add(text.as_bytes());
            add(&[0xff]);
        }
        Value::List(list) => list.iter().for_each(|value| hash(state, value)),
        Value::Map(map) => map.iter().for_each(|(name, value)| {
            hash(state, &Value::Text(name.clone()));
            hash(state, value);
        }),
    }
}

/// An index that may count from the end.
pub(crate) fn index_in(len: usize, index: i64) -> Option<usize> {
    let index = if index < 0 { index.checked_add(i64::try_from(len).ok()?)? } else { index };
    usize::try_from(index).ok().filter(|index| *index < len)
}

/// The first index of a slice and the number of indexes, as Python has them.
fn slice_indexes(len: usize, from: Option<i64>, to: Option<i64>, step: i64) -> Result<(i128, i128), Stop> {
    let (len, step) = (len as i128, i128::from(step));
    if step == 0 {
        return wrong("a slice cannot go on by 0");
    }
    let (least, most) = if step > 0 { (0, len) } else { (-1, len - 1) };
    let place = |end: Option<i64>, otherwise: i128| match end {
        None => otherwise,
        Some(end) => {
            let end = i128::from(end);
            (if end < 0 { end + len } else { end }).clamp(least, most)
        }
    };
    let (from, way) = match step > 0 {
        true => (place(from, 0), place(to, len) - place(from, 0)),
        false => (place(from, len - 1), place(from, len - 1) - place(to, -1)),
    };
    Ok((from, if way <= 0 { 0 } else { (way - 1) / step.abs() + 1 }))
}

/// Whether a list has an element that is equal to a value.
pub(crate) fn has(work: &mut Work, list: &[Value], value: &Value) -> Result<bool, Stop> {
    for element in list {
        work.steps(1)?;
        if equal(work, element, value)? {
            return Ok(true);
        }
    }
    Ok(false)
}
