//! One evaluation: the nodes simplified for these rows and parameters, and memory for the values of a chunk.

use anabranch_engine::Check;
use anabranch_rows::{Column, Dictionary, Key, Kind, Rows, Selection};
use arrow_buffer::{BooleanBuffer, NullBuffer};
use smallvec::{SmallVec, smallvec};

use super::Error;
use super::ast::Unary;
use super::code::Code;
use super::fold::{KnownValue, Outcome, simplify};
use super::graph::{At, Node};
use super::text::{MergedDictionary, Table, in_case};
use super::{hash, scalar, text};
use crate::value::{Scalar, Values};

/// Rows of a chunk: few enough that the values of a few nodes stay in the nearest cache.
pub(super) const CHUNK: usize = 512;
/// About how much work there is between two looks at whether to stop, in nanoseconds.
const NANOS_PER_CHECK: f64 = 4_000.0;

/// The role of a node in this evaluation.
pub(super) enum State<'a> {
    /// No other node needs it.
    Idle,
    /// The same for all rows.
    Known(Option<Scalar>),
    /// A request's pattern cannot be used.
    Broken(Box<Error>),
    /// The same as another.
    Same(At),
    /// The codes of another, with another dictionary.
    Case(At),
    /// A column. The slot is used when its rows are not consecutive.
    Leaf(Leaf<'a>, usize),
    /// Computed by chunks, in this slot.
    Step(usize),
}

/// A column of the batch.
#[derive(Clone, Copy)]
pub(super) struct Leaf<'a> {
    pub(super) values: Buffer<'a>,
    pub(super) nulls: Option<&'a NullBuffer>,
}

/// Arrow memory.
#[derive(Clone, Copy)]
pub(super) enum Buffer<'a> {
    Ints(&'a [i64]),
    Floats(&'a [f64]),
    Bools(&'a BooleanBuffer),
    Codes(&'a [i32], &'a Dictionary),
}

/// The rows of a chunk that have a value at a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Valid {
    All,
    None,
    /// The rows in the mask of this node.
    Mask(At),
}

/// The dictionaries and tables of strings in this evaluation, by node.
#[derive(Default)]
pub(super) struct Texts {
    pub(super) dictionaries: Vec<Option<MergedDictionary>>,
    pub(super) tables: Vec<Option<Table>>,
    /// Integers by code, for functions from strings to integers.
    pub(super) ints: Vec<Option<Box<[i64]>>>,
    /// The number of dictionary entries that were tested.
    pub(super) tested: usize,
}

/// The position of the current chunk in the active rows.
#[derive(Clone, Copy, Default)]
pub(super) struct Window {
    pub(super) start: usize,
    pub(super) len: usize,
    /// The capacity of a slot in rows, and in words of a mask.
    pub(super) stride: usize,
    pub(super) words: usize,
}

/// One evaluation.
pub(super) struct Frame<'a> {
    pub(super) code: &'a Code,
    pub(super) rows: &'a Rows,
    pub(super) params: &'a Values,
    /// The active rows, unless they are the first ones in their order.
    pub(super) list: Option<&'a [u32]>,
    pub(super) window: Window,
    pub(super) states: SmallVec<[State<'a>; 8]>,
    pub(super) valids: SmallVec<[Valid; 8]>,
    pub(super) texts: Texts,
    pub(super) floats: SmallVec<[f64; 32]>,
    pub(super) ints: Vec<i64>,
    pub(super) codes: Vec<i32>,
    /// Two per node: the rows that have a value; and the value itself, for truth values.
    pub(super) masks: SmallVec<[u64; 32]>,
}

impl<'a> Frame<'a> {
    /// An evaluation that is not prepared yet. It is large: it is filled where it is, not moved.
    #[inline(always)]
    pub(super) fn new(code: &'a Code, rows: &'a Rows, params: &'a Values) -> Frame<'a> {
        let list = match rows.selection() {
            Selection::First(_) => None,
            Selection::List(list) => Some(&list[..]),
        };
        let stride = rows.len().min(CHUNK);
        Frame {
            code,
            rows,
            params,
            list,
            window: Window { start: 0, len: 0, stride, words: stride.div_ceil(64) },
            states: SmallVec::new(),
            valids: SmallVec::new(),
            texts: Texts::default(),
            floats: SmallVec::new(),
            ints: Vec::new(),
            codes: Vec::new(),
            masks: SmallVec::new(),
        }
    }

    /// Everything that is known before the first chunk.
    pub(super) fn prepare(&mut self, check: &Check<'_>) -> Result<(), Error> {
        self.resolve();
        if let State::Broken(error) = &self.states[self.code.root()] {
            return Err((**error).clone());
        }
        if self.known().is_none() {
            self.drop_unneeded();
            if self.code.has_text {
                self.prepare_texts(check)?;
            }
            self.make_room();
        }
        Ok(())
    }

    /// The result, if it is the same for all rows.
    pub(super) fn known(&self) -> Option<&Option<Scalar>> {
        match &self.states[self.find(self.code.root())] {
            State::Known(value) => Some(value),
            _ => None,
        }
    }

    /// Evaluates by chunks; `done` gets each.
    pub(super) fn run(
        &mut self,
        check: &Check<'_>,
        mut done: impl FnMut(&Frame<'a>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let rows = self.rows.len();
        let between = (NANOS_PER_CHECK / (self.code.cost + 0.1) / CHUNK as f64).clamp(1.0, 16.0) as usize;
        for (at, start) in (0..rows).step_by(CHUNK).enumerate() {
            if at > 0 && at % between == 0 && check.should_stop() {
                return Err(Error::Stopped);
            }
            self.window.start = start;
            self.window.len = CHUNK.min(rows - start);
            self.step_all();
            done(self)?;
        }
        Ok(())
    }

    /// Simplifies each node.
    fn resolve(&mut self) {
        self.states.reserve_exact(self.code.nodes.len());
        for node in &self.code.nodes {
            let state = match node {
                Node::Column(key, kind) => leaf(self.rows, *key, *kind),
                node => self.simplified(node),
            };
            self.states.push(state);
        }
    }

    fn simplified(&self, node: &Node) -> State<'a> {
        let known = |at: At| match &self.states[self.find(at)] {
            State::Known(Some(value)) => KnownValue::Value(value),
            State::Known(None) => KnownValue::Null,
            State::Broken(_) => KnownValue::Broken,
            State::Leaf(Leaf { nulls: None, .. }, _) => KnownValue::Varies { never_null: true },
            _ => KnownValue::Varies { never_null: false },
        };
        match simplify(node, known, &self.code.tests, Some(self.params)) {
            Outcome::Value(value) => State::Known(value),
            Outcome::Same(at) => match &self.states[self.find(at)] {
                State::Known(value) => State::Known(value.clone()),
                State::Broken(error) => State::Broken(error.clone()),
                _ => State::Same(at),
            },
            Outcome::Broken(Some(error)) => State::Broken(error),
            Outcome::Broken(None) => {
                let error = node.uses().find_map(|used| match &self.states[self.find(used)] {
                    State::Broken(error) => Some(error.clone()),
                    _ => None,
                });
                State::Broken(error.expect("broken by what it uses"))
            }
            Outcome::Keep => match node {
                Node::Unary(Unary::Lower | Unary::Upper, at) => State::Case(*at),
                _ => State::Step(0),
            },
        }
    }

    /// The node from which `at` has its values.
    pub(super) fn find(&self, at: At) -> At {
        find(&self.states, at)
    }

    /// Parameters may have decided which side of an `if` there is.
    fn drop_unneeded(&mut self) {
        let mut needed: SmallVec<[bool; 32]> = smallvec![false; self.states.len()];
        needed[self.code.root()] = true;
        for at in (0..self.states.len()).rev() {
            match &self.states[at] {
                State::Known(_) => {}
                _ if !needed[at] => self.states[at] = State::Idle,
                State::Same(other) | State::Case(other) => needed[*other] = true,
                State::Step(_) => self.code.nodes[at].uses().for_each(|used| needed[used] = true),
                State::Leaf(..) | State::Idle | State::Broken(_) => {}
            }
        }
    }

    fn prepare_texts(&mut self, check: &Check<'_>) -> Result<(), Error> {
        let count = self.states.len();
        self.texts.dictionaries.resize_with(count, || None);
        self.texts.tables.resize_with(count, || None);
        self.texts.ints.resize_with(count, || None);
        for at in 0..count {
            let dictionary = self.dictionary(at);
            self.texts.dictionaries[at] = dictionary;
            if matches!(self.states[at], State::Step(_)) {
                self.texts.tables[at] = self.table(at, check)?;
                self.texts.ints[at] = self.ints_by_code(at, check)?;
            }
        }
        Ok(())
    }

    /// The dictionary of `at`, if it is a string.
    fn dictionary(&self, at: At) -> Option<MergedDictionary> {
        if self.code.kinds[at] != Some(Kind::Text) {
            return None;
        }
        let of = |at: At| match &self.states[self.find(at)] {
            State::Known(Some(Scalar::Text(entry))) => Some(Dictionary::new([entry])),
            _ => self.texts.dictionaries[at].as_ref().map(|merged| merged.dictionary.clone()),
        };
        let plain = |dictionary: Dictionary| Some(MergedDictionary { dictionary, offset: 0 });
        match (&self.states[at], &self.code.nodes[at]) {
            (State::Leaf(Leaf { values: Buffer::Codes(_, dictionary), .. }, _), _) => {
                plain((*dictionary).clone())
            }
            (State::Same(other), _) => plain(of(*other)?),
            (State::Case(other), Node::Unary(op, _)) => plain(in_case(*op, &of(*other)?)),
            (State::Step(_), Node::Coalesce(a, b) | Node::If(_, a, b)) => match (of(*a), of(*b)) {
                (Some(a), Some(b)) => Some(MergedDictionary::new(&a, &b)),
                (Some(one), None) | (None, Some(one)) => plain(one),
                (None, None) => None,
            },
            _ => None,
        }
    }

    /// For a test of strings that vary against something that does not: which codes pass.
    fn table(&mut self, at: At, check: &Check<'_>) -> Result<Option<Table>, Error> {
        let (code, params) = (self.code, self.params);
        let known = |at: At| match &self.states[self.find(at)] {
            State::Known(Some(Scalar::Text(text))) => Some(text.clone()),
            _ => None,
        };
        let dictionaries = &self.texts.dictionaries;
        let of = |at: At| dictionaries[at].as_ref().map(|merged| &merged.dictionary);
        let mut tested = 0;
        let table = match code.nodes[at] {
            Node::In(a, set) => of(a).map(|entries| {
                tested = entries.len();
                Table::new(entries, check, |entry| code.tests.sets[set].has_text(entry))
            }),
            Node::InParam(a, place, Kind::Text) => of(a).map(|entries| {
                tested = entries.len();
                let set = params.list(place).expect("a null list decides at once").set(Kind::Text);
                Table::new(entries, check, |entry| set.has_text(entry))
            }),
            Node::Regex(a, pattern) => {
                let regex =
                    code.tests.patterns[pattern].regex(Some(params)).expect("there are parameters")?;
                of(a).map(|entries| {
                    tested = entries.len();
                    Table::new(entries, check, |entry| regex.is_match(entry.as_bytes()))
                })
            }
            Node::Compare(op, a, b) if code.kinds[a] == Some(Kind::Text) => {
                let (varies, op, with) = match (known(a), known(b)) {
                    (Some(with), None) => (b, op.swapped(), with),
                    (None, Some(with)) => (a, op, with),
                    _ => return Ok(None),
                };
                of(varies).map(|entries| {
                    tested = entries.len();
                    let passes = |entry: &str| scalar::ordered(op, Some(entry.cmp(&*with)));
                    Table::new(entries, check, passes)
                })
            }
            _ => None,
        };
        self.texts.tested += tested;
        table.transpose()
    }

    /// For a function from strings to integers: its value per code.
    fn ints_by_code(&mut self, at: At, check: &Check<'_>) -> Result<Option<Box<[i64]>>, Error> {
        let (of, seed) = match &self.code.nodes[at] {
            Node::Unary(Unary::Length, of) => (*of, None),
            Node::Hash(seed, of) if self.code.kinds[*of] == Some(Kind::Text) => (*of, Some(*seed)),
            _ => return Ok(None),
        };
        let Some(merged) = &self.texts.dictionaries[of] else { return Ok(None) };
        self.texts.tested += merged.dictionary.len();
        let ints = match seed {
            None => text::ints(&merged.dictionary, check, scalar::length),
            Some(seed) => text::ints(&merged.dictionary, check, |entry| hash::text(seed, entry)),
        };
        ints.map(Some)
    }

    /// Allocates slots for the computed nodes, by kind.
    fn make_room(&mut self) {
        let count = self.states.len();
        let gathered = self.list.is_some();
        let (mut floats, mut ints, mut codes) = (0, 0, 0);
        for at in 0..count {
            let slot = match &mut self.states[at] {
                State::Leaf(_, slot) if gathered => slot,
                State::Step(slot) => slot,
                _ => continue,
            };
            let next = match self.code.kinds[at] {
                Some(Kind::Float) => &mut floats,
                Some(Kind::Int) => &mut ints,
                Some(Kind::Text) => &mut codes,
                Some(Kind::Bool) | None => continue,
            };
            *slot = *next;
            *next += 1;
        }
        let Window { stride, words, .. } = self.window;
        self.floats.resize(floats * stride, 0.0);
        self.ints = vec![0; ints * stride];
        self.codes = vec![0; codes * stride];
        self.masks.resize(2 * count * words, 0);
        self.valids.resize(count, Valid::All);
    }
}

/// The node from which `at` has its values.
pub(super) fn find(states: &[State<'_>], mut at: At) -> At {
    while let State::Same(other) | State::Case(other) = &states[at] {
        at = *other;
    }
    at
}

fn leaf<'a>(rows: &'a Rows, key: Key, kind: Kind) -> State<'a> {
    let batch = rows.batch();
    if key == Key::ID {
        return State::Leaf(Leaf { values: Buffer::Ints(batch.ids()), nulls: None }, 0);
    }
    let Some(column) = batch.column(key) else { return State::Known(None) };
    assert_eq!(column.kind(), kind, "column {key} is of the kind that it was at load");
    let values = match column {
        Column::Int(array) => Buffer::Ints(array.values()),
        Column::Float(array) => Buffer::Floats(array.values()),
        Column::Bool(array) => Buffer::Bools(array.values()),
        Column::Text(text) => Buffer::Codes(text.codes().values(), text.dictionary()),
    };
    let nulls = column.nulls().filter(|nulls| nulls.null_count() > 0);
    State::Leaf(Leaf { values, nulls }, 0)
}
