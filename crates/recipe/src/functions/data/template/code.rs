//! What a template is, once read: steps in a row with jumps between them, so that a run can stop at any of them.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use minijinja::Value;

use super::filters::Filter;
use super::kinds::Test;

/// Bytes of the template.
pub(super) type Place = Range<usize>;

/// One step.
pub(super) enum Step {
    /// Gives some text.
    Text(Bytes),
    /// Gives what a term comes to.
    Show(Term),
    /// Goes on elsewhere if a term is not true.
    Unless(Term, usize),
    /// Goes on elsewhere.
    Jump(usize),
    /// Begins a loop; goes on elsewhere if there is nothing in it.
    Begin(Loop, usize),
    /// The next round; without one the loop ends, and it goes on elsewhere.
    Next(usize),
    /// Ends the loop, and goes on elsewhere.
    Break(usize),
}

/// A loop.
pub(super) struct Loop {
    pub(super) names: Names,
    pub(super) over: Term,
    /// Only with elements for which this is true.
    pub(super) only: Option<Term>,
}

/// What an element is called in a round.
#[derive(Clone)]
pub(super) enum Names {
    One(Arc<str>),
    /// The parts of a list.
    Each(Arc<[Arc<str>]>),
}

/// An expression, and where it stands.
pub(super) struct Term {
    pub(super) place: Place,
    pub(super) kind: Kind,
}

pub(super) enum Kind {
    Constant(Value),
    Variable(String),
    /// Something about the round of the innermost loop.
    Round(Round),
    Item(Box<Term>, Box<Term>),
    Slice(Box<Term>, [Option<Box<Term>>; 2]),
    Not(Box<Term>),
    Negative(Box<Term>),
    And(Box<Term>, Box<Term>),
    Or(Box<Term>, Box<Term>),
    Two(Operator, Box<Term>, Box<Term>),
    /// Of the second if the first is true, else of the third.
    Choice(Box<[Term; 3]>),
    Filter(&'static Filter, Box<Term>, Vec<Term>, Option<String>),
    Test(&'static Test, Box<Term>, Vec<Term>),
    Range(Vec<Term>),
    List(Vec<Term>),
    Map(Vec<(Term, Term)>),
}

impl Term {
    /// Whether it comes to something that is there without it, or is no larger: only such things have names in loops, so
    /// that nothing can be made out of what was made before, round in round.
    pub(super) fn is_part(&self) -> bool {
        match &self.kind {
            Kind::Constant(_) | Kind::Variable(_) | Kind::Round(_) | Kind::Range(_) => true,
            Kind::Item(of, _) | Kind::Slice(of, _) => of.is_part(),
            Kind::And(one, other) | Kind::Or(one, other) => one.is_part() && other.is_part(),
            Kind::Choice(of) => of[1..].iter().all(Term::is_part),
            Kind::Filter(filter, of, arguments, _) => {
                filter.parts && of.is_part() && arguments.iter().all(Term::is_part)
            }
            _ => false,
        }
    }
}

/// What a term asks about a round.
#[derive(Clone, Copy)]
pub(super) enum Round {
    Index,
    Index0,
    Backwards,
    Backwards0,
    First,
    Last,
    Length,
}

impl Round {
    /// By their names behind `loop.`.
    pub(super) const ALL: [(&'static str, Round); 7] = [
        ("index", Round::Index),
        ("index0", Round::Index0),
        ("revindex", Round::Backwards),
        ("revindex0", Round::Backwards0),
        ("first", Round::First),
        ("last", Round::Last),
        ("length", Round::Length),
    ];
}

/// What is done with two values.
#[derive(Clone, Copy)]
pub(super) enum Operator {
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
}
