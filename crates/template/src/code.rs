//! A compiled template: steps in a row with jumps between them, so that a run can pause at any step.

use std::ops::Range;
use std::sync::Arc;

use anabranch_value::Value;

use crate::filters::Filter;
use crate::methods::Method;
use crate::tests::Test;

/// A byte range of the source.
pub(crate) type Place = Range<usize>;

/// An index into the values that a run gives names to.
pub(crate) type Slot = usize;

/// One step.
pub(crate) enum Step {
    /// Writes a text of the template.
    Text(Box<str>, Place),
    /// Writes the value of a term.
    Show(Term),
    /// Jumps if a term is not true.
    Unless(Term, usize),
    Jump(usize),
    /// Begins a loop; jumps if it has no elements.
    Begin(Box<Loop>, usize),
    /// Begins the next round; without one the loop ends and the run jumps.
    Next(usize),
    /// Ends the loop and jumps.
    Break(usize),
    /// Names a value.
    Set(Target, Term),
    /// Names a value that outlives the loop around it: a field of a namespace.
    Keep(Slot, Term),
    /// Collects the output from here on, up to the matching `EndCapture`.
    Capture,
    /// Names the collected output.
    EndCapture(Slot),
}

/// A loop.
pub(crate) struct Loop {
    pub(crate) target: Target,
    pub(crate) over: Term,
    /// Leaves out the elements for which this is not true.
    pub(crate) only: Option<Term>,
    /// The slots of the body, emptied before each round.
    pub(crate) own: Arc<[Slot]>,
}

/// The names that a value, or its parts, get.
#[derive(Clone)]
pub(crate) enum Target {
    One(Slot),
    Each(Arc<[Target]>),
}

/// An expression and its place.
pub(crate) struct Term {
    pub(crate) place: Place,
    pub(crate) kind: Kind,
}

pub(crate) enum Kind {
    Constant(Value),
    /// A value that the caller gives.
    Input(usize),
    /// A value that the template names.
    Local(Slot),
    /// A value that the template names in some runs only, and the term for the others.
    LocalOr(Slot, Box<Term>),
    /// A property of the innermost loop.
    Round(Round),
    /// One of the terms per round, in turns.
    Cycle(Vec<Term>),
    Item(Box<Term>, Box<Term>),
    Slice(Box<Term>, Box<[Option<Term>; 3]>),
    Not(Box<Term>),
    Negative(Box<Term>),
    And(Box<Term>, Box<Term>),
    Or(Box<Term>, Box<Term>),
    Binary(Operator, Box<Term>, Box<Term>),
    /// Comparisons in a row, as in `a < b < c`.
    Chain(Box<Term>, Vec<(Operator, Term)>),
    /// The second term if the first is true, else the third.
    Choice(Box<[Term; 3]>),
    /// The first term, or the second if the first is undefined, or (by the third) not true.
    Default(Box<Term>, Option<Box<Term>>, Option<Box<Term>>),
    Filter(&'static Filter, Box<Term>, Vec<Option<Term>>),
    Test(&'static Test, Box<Term>, Vec<Term>),
    Method(&'static Method, Box<Term>, Vec<Term>),
    /// A term per element of a list.
    Each(Box<Each>),
    Range(Vec<Term>),
    List(Vec<Term>),
    Map(Vec<(Term, Term)>),
}

/// A term that is evaluated for each element of a list.
pub(crate) struct Each {
    pub(crate) over: Term,
    /// The slot of the element.
    pub(crate) element: Slot,
    pub(crate) body: Term,
    pub(crate) mode: Mode,
}

/// The use of the values of an [`Each`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// They are the elements of the result.
    Map,
    /// Elements for which they are true stay.
    Select,
    /// Elements for which they are not true stay.
    Reject,
}

impl Term {
    /// Whether the value is there without the term, or is no larger: in the plain dialect only such values have names,
    /// so that no round of a loop can make more out of the result of the round before.
    pub(crate) fn is_part(&self) -> bool {
        match &self.kind {
            Kind::Range(_) => true,
            Kind::Slice(of, _) => of.is_part(),
            Kind::Item(of, _) => of.is_part(),
            Kind::And(one, other) | Kind::Or(one, other) => one.is_part() && other.is_part(),
            Kind::Choice(of) => of[1..].iter().all(Term::is_part),
            Kind::Default(of, other, _) => of.is_part() && other.as_ref().is_none_or(|other| other.is_part()),
            Kind::Filter(filter, of, arguments) => {
                filter.parts && of.is_part() && arguments.iter().flatten().all(Term::is_part)
            }
            Kind::Each(each) => each.mode == Mode::Map && each.over.is_part() && each.body.is_part(),
            _ => self.is_named(),
        }
    }

    /// Whether the value is a part of one that has a name, so that its depth is known to be bounded.
    pub(crate) fn is_named(&self) -> bool {
        match &self.kind {
            Kind::Constant(_) | Kind::Input(_) | Kind::Local(_) | Kind::Round(_) => true,
            Kind::LocalOr(_, other) => other.is_named(),
            Kind::Item(of, _) => of.is_named(),
            _ => false,
        }
    }
}

/// The properties of a loop.
#[derive(Clone, Copy)]
pub(crate) enum Round {
    Index,
    Index0,
    Backwards,
    Backwards0,
    First,
    Last,
    Length,
    Previous,
    Next,
    Depth,
    Depth0,
}

impl Round {
    /// The properties by their names after `loop.`; the plain dialect has the first seven.
    pub(crate) const ALL: [(&'static str, Round); 11] = [
        ("index", Round::Index),
        ("index0", Round::Index0),
        ("revindex", Round::Backwards),
        ("revindex0", Round::Backwards0),
        ("first", Round::First),
        ("last", Round::Last),
        ("length", Round::Length),
        ("previtem", Round::Previous),
        ("nextitem", Round::Next),
        ("depth", Round::Depth),
        ("depth0", Round::Depth0),
    ];
}

/// The operators of two values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    DivideDown,
    Remainder,
    Power,
    Join,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    More,
    MoreOrEqual,
    In,
    NotIn,
}
