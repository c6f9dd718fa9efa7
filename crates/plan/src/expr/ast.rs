//! Expressions and predicates as plans write them.

use crate::value::Scalar;

/// An expression as a plan writes it, not yet checked.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A value.
    Const(Scalar),
    /// The literal null.
    Null,
    /// A column's value.
    Key(Name),
    /// A request parameter's value.
    Param(Name),
    /// A function of one expression.
    Unary(Unary, Box<Expr>),
    /// A function of two.
    Binary(Binary, Box<Expr>, Box<Expr>),
    /// The first, but not below the second nor above the third.
    Clamp(Box<[Expr; 3]>),
    /// One of two, by a predicate.
    If(Box<Pred>, Box<Expr>, Box<Expr>),
    /// The time of the request, in seconds since 1970.
    Now,
    /// A whole number from 0 to 2^53 - 1 that depends on the seed and the value and looks random.
    Hash(i64, Box<Expr>),
}

/// A predicate as a plan writes it, not yet checked.
#[derive(Clone, Debug, PartialEq)]
pub enum Pred {
    /// Always or never.
    Const(bool),
    /// Both.
    And(Box<Pred>, Box<Pred>),
    /// Either.
    Or(Box<Pred>, Box<Pred>),
    /// Not this.
    Not(Box<Pred>),
    /// Two values compared.
    Compare(Compare, Box<Expr>, Box<Expr>),
    /// True if a value is one of a list: all numbers, or all strings.
    In(Box<Expr>, Vec<Scalar>),
    /// True if a value is in the list of a request parameter.
    InParam(Box<Expr>, Name),
    /// True if it is null.
    IsNull(Box<Expr>),
    /// True if it is not null.
    NotNull(Box<Expr>),
    /// True if a pattern is found in a string.
    Regex {
        /// The string.
        text: Box<Expr>,
        /// The pattern.
        pattern: Pattern,
        /// True if `a` and `A` are the same.
        ignore_case: bool,
    },
}

/// A registered key or parameter, by number or by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// By number.
    Id(u32),
    /// By name.
    Name(String),
}

/// The source of a regex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// From the plan.
    Literal(String),
    /// From the request.
    Param(Name),
}

/// A function of one expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unary {
    /// `-x`.
    Neg,
    /// Without its sign.
    Abs,
    /// The natural logarithm; null unless above 0.
    Log,
    /// e to the power of it.
    Exp,
    /// The greatest whole number that is not above it.
    Floor,
    /// The least whole number that is not below it.
    Ceil,
    /// The nearest whole number; halves go away from 0.
    Round,
    /// The number of characters of a string.
    Length,
    /// In lower case.
    Lower,
    /// In upper case.
    Upper,
}

/// A function of two expressions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binary {
    /// `a + b`.
    Add,
    /// `a - b`.
    Sub,
    /// `a * b`.
    Mul,
    /// `a / b`; null if b is 0.
    Div,
    /// The remainder of `a / b`, with the sign of `a`; null if b is 0.
    Mod,
    /// The lesser.
    Min,
    /// The greater.
    Max,
    /// `a` to the power of `b`; null where that is not a real number.
    Pow,
    /// The first unless it is null, else the second.
    Coalesce,
}

/// The operator of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Compare {
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<`
    Lt,
    /// `<=`
    Le,
    /// `>`
    Gt,
    /// `>=`
    Ge,
}

impl Compare {
    pub(super) const ALL: [Compare; 6] =
        [Compare::Eq, Compare::Ne, Compare::Lt, Compare::Le, Compare::Gt, Compare::Ge];

    /// The symbol in plans.
    pub fn symbol(self) -> &'static str {
        match self {
            Compare::Eq => "==",
            Compare::Ne => "!=",
            Compare::Lt => "<",
            Compare::Le => "<=",
            Compare::Gt => ">",
            Compare::Ge => ">=",
        }
    }

    /// The comparison that says the same with its operands swapped.
    pub fn swapped(self) -> Compare {
        match self {
            Compare::Lt => Compare::Gt,
            Compare::Le => Compare::Ge,
            Compare::Gt => Compare::Lt,
            Compare::Ge => Compare::Le,
            same => same,
        }
    }
}

impl Unary {
    pub(super) const ALL: [(&'static str, Unary); 10] = [
        ("neg", Unary::Neg),
        ("abs", Unary::Abs),
        ("log", Unary::Log),
        ("exp", Unary::Exp),
        ("floor", Unary::Floor),
        ("ceil", Unary::Ceil),
        ("round", Unary::Round),
        ("length", Unary::Length),
        ("lower", Unary::Lower),
        ("upper", Unary::Upper),
    ];

    /// Its name in plans.
    pub fn name(self) -> &'static str {
        Unary::ALL.iter().find(|(_, op)| *op == self).expect("all are listed").0
    }
}

impl Binary {
    pub(super) const ALL: [(&'static str, Binary); 9] = [
        ("add", Binary::Add),
        ("sub", Binary::Sub),
        ("mul", Binary::Mul),
        ("div", Binary::Div),
        ("mod", Binary::Mod),
        ("min", Binary::Min),
        ("max", Binary::Max),
        ("pow", Binary::Pow),
        ("coalesce", Binary::Coalesce),
    ];

    /// Its name in plans.
    pub fn name(self) -> &'static str {
        Binary::ALL.iter().find(|(_, op)| *op == self).expect("all are listed").0
    }
}
