//! Expressions and predicates as people read them.

use std::fmt::{self, Display, Formatter};

use anabranch_rows::Key;

use super::ast::{Binary, Expr, Name, Pattern, Pred, Unary};
use crate::registry::{Keys, Params};
use crate::value::Scalar;

impl Expr {
    /// A display for people, with keys and parameters by name.
    pub fn display<'a>(&'a self, keys: &'a Keys, params: &'a Params) -> impl Display + 'a {
        let names = Names(Some((keys, params)));
        fmt::from_fn(move |f| names.expr(f, self, LOOSEST))
    }
}

impl Pred {
    /// A display for people, with keys and parameters by name.
    pub fn display<'a>(&'a self, keys: &'a Keys, params: &'a Params) -> impl Display + 'a {
        let names = Names(Some((keys, params)));
        fmt::from_fn(move |f| names.pred(f, self, LOOSEST))
    }
}

/// Displays keys as `#2001` and parameters as `$1` where the plan has numbers.
impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Names(None).expr(f, self, LOOSEST)
    }
}

/// Displays keys as `#2001` and parameters as `$1` where the plan has numbers.
impl Display for Pred {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Names(None).pred(f, self, LOOSEST)
    }
}

/// The precedence of operators. Looser expressions get parentheses.
const LOOSEST: u8 = 0;
const AND: u8 = 1;
const NOT: u8 = 2;
const SUM: u8 = 4;
const PRODUCT: u8 = 5;
const SIGN: u8 = 6;

#[derive(Clone, Copy)]
struct Names<'a>(Option<(&'a Keys, &'a Params)>);

impl Names<'_> {
    fn expr(self, f: &mut Formatter<'_>, expr: &Expr, around: u8) -> fmt::Result {
        match expr {
            Expr::Const(value) => scalar(f, value, around),
            Expr::Null => f.write_str("null"),
            Expr::Key(name) => self.key(f, name),
            Expr::Param(name) => self.param(f, name),
            Expr::Unary(Unary::Neg, x) => parenthesised(f, SIGN < around, |f| {
                f.write_str("-")?;
                // Two signs in a row would read as a decrement.
                self.expr(f, x, SIGN + 1)
            }),
            Expr::Unary(op, x) => self.call(f, op.name(), &[x]),
            Expr::Binary(op, a, b) => {
                let (symbol, own) = match op {
                    Binary::Add => ("+", SUM),
                    Binary::Sub => ("-", SUM),
                    Binary::Mul => ("*", PRODUCT),
                    Binary::Div => ("/", PRODUCT),
                    Binary::Mod => ("%", PRODUCT),
                    _ => return self.call(f, op.name(), &[a, b]),
                };
                parenthesised(f, own < around, |f| {
                    self.expr(f, a, own)?;
                    write!(f, " {symbol} ")?;
                    self.expr(f, b, own + 1)
                })
            }
            Expr::Now => f.write_str("now()"),
            Expr::Hash(seed, x) => {
                write!(f, "hash({seed}, ")?;
                self.expr(f, x, LOOSEST)?;
                f.write_str(")")
            }
            Expr::Clamp(parts) => {
                let [x, low, high] = &**parts;
                self.call(f, "clamp", &[x, low, high])
            }
            Expr::If(cond, then, other) => {
                f.write_str("if(")?;
                self.pred(f, cond, LOOSEST)?;
                f.write_str(", ")?;
                self.expr(f, then, LOOSEST)?;
                f.write_str(", ")?;
                self.expr(f, other, LOOSEST)?;
                f.write_str(")")
            }
        }
    }

    fn call(self, f: &mut Formatter<'_>, name: &str, operands: &[&Expr]) -> fmt::Result {
        write!(f, "{name}(")?;
        for (at, operand) in operands.iter().enumerate() {
            if at > 0 {
                f.write_str(", ")?;
            }
            self.expr(f, operand, LOOSEST)?;
        }
        f.write_str(")")
    }

    fn pred(self, f: &mut Formatter<'_>, pred: &Pred, around: u8) -> fmt::Result {
        match pred {
            Pred::Const(value) => write!(f, "{value}"),
            Pred::And(a, b) => self.both(f, (a, "and", b), AND, around),
            Pred::Or(a, b) => self.both(f, (a, "or", b), LOOSEST, around),
            Pred::Not(x) => {
                f.write_str("not ")?;
                self.pred(f, x, NOT)
            }
            Pred::Compare(op, a, b) => parenthesised(f, NOT <= around, |f| {
                self.expr(f, a, SUM)?;
                write!(f, " {} ", op.symbol())?;
                self.expr(f, b, SUM)
            }),
            Pred::In(value, list) => parenthesised(f, NOT <= around, |f| {
                self.expr(f, value, SUM)?;
                f.write_str(" in [")?;
                for (at, item) in list.iter().enumerate() {
                    if at > 0 {
                        f.write_str(", ")?;
                    }
                    scalar(f, item, LOOSEST)?;
                }
                f.write_str("]")
            }),
            Pred::InParam(value, param) => parenthesised(f, NOT <= around, |f| {
                self.expr(f, value, SUM)?;
                f.write_str(" in ")?;
                self.param(f, param)
            }),
            Pred::IsNull(x) => self.call(f, "is_null", &[x]),
            Pred::NotNull(x) => self.call(f, "not_null", &[x]),
            Pred::Regex { text, pattern, ignore_case } => {
                f.write_str("regex(")?;
                self.expr(f, text, LOOSEST)?;
                f.write_str(", ")?;
                match pattern {
                    Pattern::Literal(pattern) => write!(f, "{pattern:?}")?,
                    Pattern::Param(name) => self.param(f, name)?,
                }
                f.write_str(if *ignore_case { ", \"i\")" } else { ")" })
            }
        }
    }

    fn both(
        self,
        f: &mut Formatter<'_>,
        (a, word, b): (&Pred, &str, &Pred),
        own: u8,
        around: u8,
    ) -> fmt::Result {
        parenthesised(f, own < around, |f| {
            self.pred(f, a, own)?;
            write!(f, " {word} ")?;
            self.pred(f, b, own)
        })
    }

    fn key(self, f: &mut Formatter<'_>, name: &Name) -> fmt::Result {
        match name {
            Name::Name(name) => f.write_str(name),
            Name::Id(id) => match self.0.and_then(|(keys, _)| keys.get(Key(*id))) {
                Some(entry) => f.write_str(&entry.name),
                None => write!(f, "#{id}"),
            },
        }
    }

    fn param(self, f: &mut Formatter<'_>, name: &Name) -> fmt::Result {
        match name {
            Name::Name(name) => write!(f, "${name}"),
            Name::Id(id) => match self.0.and_then(|(_, params)| params.get(*id)) {
                Some(entry) => write!(f, "${}", entry.name),
                None => write!(f, "${id}"),
            },
        }
    }
}

fn parenthesised(
    f: &mut Formatter<'_>,
    needed: bool,
    inner: impl FnOnce(&mut Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    if !needed {
        return inner(f);
    }
    f.write_str("(")?;
    inner(f)?;
    f.write_str(")")
}

fn scalar(f: &mut Formatter<'_>, value: &Scalar, around: u8) -> fmt::Result {
    let negative = match value {
        Scalar::Int(int) => *int < 0,
        Scalar::Float(float) => float.is_sign_negative(),
        _ => false,
    };
    parenthesised(f, negative && around > SUM, |f| match value {
        Scalar::Int(int) => write!(f, "{int}"),
        Scalar::Float(float) => write!(f, "{float:?}"),
        Scalar::Bool(value) => write!(f, "{value}"),
        Scalar::Text(text) => write!(f, "{text:?}"),
    })
}
