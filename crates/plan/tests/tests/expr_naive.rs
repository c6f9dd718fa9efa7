//! Expressions row by row, written as plainly as the rules say.

use std::cmp::Ordering;
use std::sync::Arc;

use anabranch_plan::expr::{Binary, Compare, Expr, Name, Pattern, Pred, Unary};
use anabranch_plan::{Scalar, Values};
use anabranch_rows::{Key, Kind, Rows};

use crate::expr_world::cell;

/// One row and the parameters.
pub(crate) struct Row<'a> {
    pub(crate) rows: &'a Rows,
    pub(crate) row: usize,
    pub(crate) params: &'a Values,
}

fn id(name: &Name) -> u32 {
    match name {
        Name::Id(id) => *id,
        Name::Name(_) => unreachable!("the tests that compare give numbers"),
    }
}

/// The kind of an expression's values; `None` for a bare null.
pub(crate) fn kind(expr: &Expr) -> Option<Kind> {
    match expr {
        Expr::Const(value) => Some(value.kind()),
        Expr::Null => None,
        Expr::Key(name) => match id(name) {
            1 | 10 => Some(Kind::Int),
            12 => Some(Kind::Bool),
            13 | 14 => Some(Kind::Text),
            _ => Some(Kind::Float),
        },
        Expr::Param(name) => Some([Kind::Float, Kind::Int, Kind::Text, Kind::Bool][id(name) as usize - 1]),
        Expr::Unary(Unary::Lower | Unary::Upper, _) => Some(Kind::Text),
        Expr::Unary(Unary::Length, _) | Expr::Hash(..) => Some(Kind::Int),
        Expr::Binary(Binary::Coalesce, a, b) | Expr::If(_, a, b) => match (kind(a), kind(b)) {
            (Some(Kind::Int), Some(Kind::Float)) => Some(Kind::Float),
            (a, b) => a.or(b),
        },
        Expr::Unary(..) | Expr::Binary(..) | Expr::Clamp(_) | Expr::Now => Some(Kind::Float),
    }
}

fn float(value: Scalar) -> f64 {
    match value {
        Scalar::Int(int) => int as f64,
        Scalar::Float(float) => float,
        other => panic!("{other:?} is no number"),
    }
}

fn as_kind(value: Option<Scalar>, kind: Option<Kind>) -> Option<Scalar> {
    match (value, kind) {
        (Some(Scalar::Int(int)), Some(Kind::Float)) => Some(Scalar::Float(int as f64)),
        (value, _) => value,
    }
}

impl Row<'_> {
    pub(crate) fn expr(&self, expr: &Expr) -> Option<Scalar> {
        let number = |expr: &Expr| self.expr(expr).map(float);
        match expr {
            Expr::Const(value) => Some(value.clone()),
            Expr::Null => None,
            Expr::Key(name) if id(name) == 1 => Some(Scalar::Int(self.rows.batch().ids()[self.row])),
            Expr::Key(name) => cell(self.rows.batch().column(Key(id(name)))?, self.row),
            Expr::Param(name) => self.params[id(name) as usize - 1].clone(),
            Expr::Unary(op @ (Unary::Lower | Unary::Upper), x) => {
                let Scalar::Text(text) = self.expr(x)? else { panic!("a string") };
                let text = if *op == Unary::Lower { text.to_lowercase() } else { text.to_uppercase() };
                Some(Scalar::Text(Arc::from(text)))
            }
            Expr::Unary(Unary::Length, x) => match self.expr(x)? {
                Scalar::Text(text) => Some(Scalar::Int(text.chars().count() as i64)),
                other => panic!("{other:?} is no string"),
            },
            Expr::Now => Some(Scalar::Float(self.params.now())),
            Expr::Hash(seed, x) => Some(Scalar::Int(hash(*seed, &self.expr(x)?))),
            Expr::Unary(op, x) => {
                let x = number(x)?;
                Some(Scalar::Float(match op {
                    Unary::Neg => -x,
                    Unary::Abs => x.abs(),
                    Unary::Exp => x.exp(),
                    Unary::Log if x > 0.0 => x.ln(),
                    Unary::Floor => -(-x).ceil(),
                    Unary::Ceil => -(-x).floor(),
                    Unary::Round => (x.abs() + 0.5).floor().min(x.abs().ceil()).copysign(x),
                    _ => return None,
                }))
            }
            Expr::Binary(Binary::Coalesce, a, b) => {
                as_kind(self.expr(a).or_else(|| self.expr(b)), kind(expr))
            }
            Expr::Binary(op, a, b) => arithmetic(*op, number(a)?, number(b)?).map(Scalar::Float),
            Expr::Clamp(parts) => {
                let [x, low, high] = &**parts;
                let above = arithmetic(Binary::Max, number(x)?, number(low)?)?;
                arithmetic(Binary::Min, above, number(high)?).map(Scalar::Float)
            }
            Expr::If(cond, then, other) => {
                let value = if self.pred(cond) { self.expr(then) } else { self.expr(other) };
                as_kind(value, kind(expr))
            }
        }
    }

    pub(crate) fn pred(&self, pred: &Pred) -> bool {
        match pred {
            Pred::Const(value) => *value,
            Pred::And(a, b) => self.pred(a) && self.pred(b),
            Pred::Or(a, b) => self.pred(a) || self.pred(b),
            Pred::Not(x) => !self.pred(x),
            Pred::IsNull(x) => self.expr(x).is_none(),
            Pred::NotNull(x) => self.expr(x).is_some(),
            Pred::Compare(op, a, b) if **a == Expr::Null || **b == Expr::Null => {
                let (a, b) = (self.expr(a).is_none(), self.expr(b).is_none());
                match op {
                    Compare::Eq => a && b,
                    Compare::Ne => a != b,
                    _ => false,
                }
            }
            Pred::Compare(op, a, b) => match (self.expr(a), self.expr(b)) {
                (Some(a), Some(b)) => compares(*op, order(&a, &b)),
                _ => false,
            },
            Pred::In(value, list) => {
                let found = self.expr(value);
                found
                    .is_some_and(|value| list.iter().any(|item| order(&value, item) == Some(Ordering::Equal)))
            }
            Pred::InParam(value, name) => {
                let Some(list) = self.params.list(id(name) as usize - 1) else { return false };
                let found = self.expr(value);
                let equal =
                    |value: &Scalar| list.items().any(|item| order(value, &item) == Some(Ordering::Equal));
                found.is_some_and(|value| equal(&value))
            }
            Pred::Regex { text, pattern, ignore_case } => {
                let Some(Scalar::Text(text)) = self.expr(text) else { return false };
                let pattern = match pattern {
                    Pattern::Literal(pattern) => Arc::from(pattern.as_str()),
                    Pattern::Param(name) => match &self.params[id(name) as usize - 1] {
                        Some(Scalar::Text(pattern)) => Arc::clone(pattern),
                        _ => panic!("the tests set patterns"),
                    },
                };
                let flags = if *ignore_case { "(?i)" } else { "" };
                regex::Regex::new(&format!("{flags}{pattern}")).unwrap().is_match(&text)
            }
        }
    }
}

fn arithmetic(op: Binary, a: f64, b: f64) -> Option<f64> {
    Some(match op {
        Binary::Add => a + b,
        Binary::Sub => a - b,
        Binary::Mul => a * b,
        Binary::Div if b == 0.0 => return None,
        Binary::Div => a / b,
        Binary::Mod if b == 0.0 || (a % b).is_nan() => return None,
        Binary::Mod => a % b,
        Binary::Min if a.is_nan() || a < b => a,
        Binary::Max if a.is_nan() || a > b => a,
        Binary::Min | Binary::Max => b,
        Binary::Pow if a.powf(b).is_nan() => return None,
        Binary::Pow => a.powf(b),
        Binary::Coalesce => unreachable!("no arithmetic"),
    })
}

/// XXH64 of fewer than 32 bytes, step by step; its upper 53 bits.
fn hash(seed: i64, value: &Scalar) -> i64 {
    const P1: u64 = 11_400_714_785_074_694_791;
    const P2: u64 = 14_029_467_366_897_019_727;
    const P3: u64 = 1_609_587_929_392_839_161;
    const P4: u64 = 9_650_029_242_287_828_579;
    const P5: u64 = 2_870_177_450_012_600_261;
    let bytes = match value {
        Scalar::Int(int) => int.to_le_bytes().to_vec(),
        Scalar::Float(float)
            if *float as i64 as f64 == *float && *float < 9.3e18 && *float != 2f64.powi(63) =>
        {
            (*float as i64).to_le_bytes().to_vec()
        }
        Scalar::Float(float) => float.to_bits().to_le_bytes().to_vec(),
        Scalar::Text(text) => text.as_bytes().to_vec(),
        Scalar::Bool(_) => panic!("no hash"),
    };
    let mut hash = (seed as u64).wrapping_add(P5).wrapping_add(bytes.len() as u64);
    let mut at = 0;
    let number = |at: usize, len: usize| {
        bytes[at..at + len].iter().rev().fold(0_u64, |number, byte| number << 8 | u64::from(*byte))
    };
    while at + 8 <= bytes.len() {
        hash ^= number(at, 8).wrapping_mul(P2).rotate_left(31).wrapping_mul(P1);
        hash = hash.rotate_left(27).wrapping_mul(P1).wrapping_add(P4);
        at += 8;
    }
    if at + 4 <= bytes.len() {
        hash = (hash ^ number(at, 4).wrapping_mul(P1)).rotate_left(23).wrapping_mul(P2).wrapping_add(P3);
        at += 4;
    }
    while at < bytes.len() {
        hash = (hash ^ number(at, 1).wrapping_mul(P5)).rotate_left(11).wrapping_mul(P1);
        at += 1;
    }
    hash = (hash ^ hash >> 33).wrapping_mul(P2);
    hash = (hash ^ hash >> 29).wrapping_mul(P3);
    ((hash ^ hash >> 32) >> 11) as i64
}

fn compares(op: Compare, order: Option<Ordering>) -> bool {
    match op {
        Compare::Eq => order == Some(Ordering::Equal),
        Compare::Ne => order != Some(Ordering::Equal),
        Compare::Lt => order == Some(Ordering::Less),
        Compare::Gt => order == Some(Ordering::Greater),
        Compare::Le => order == Some(Ordering::Less) || order == Some(Ordering::Equal),
        Compare::Ge => order == Some(Ordering::Greater) || order == Some(Ordering::Equal),
    }
}

fn order(a: &Scalar, b: &Scalar) -> Option<Ordering> {
    match (a, b) {
        (Scalar::Int(a), Scalar::Int(b)) => Some(a.cmp(b)),
        (Scalar::Float(a), Scalar::Float(b)) => a.partial_cmp(b),
        (Scalar::Int(a), Scalar::Float(b)) => exact(*a, *b),
        (Scalar::Float(a), Scalar::Int(b)) => exact(*b, *a).map(Ordering::reverse),
        (Scalar::Bool(a), Scalar::Bool(b)) => Some(a.cmp(b)),
        (Scalar::Text(a), Scalar::Text(b)) => Some(a.as_bytes().cmp(b.as_bytes())),
        _ => panic!("{a:?} beside {b:?}"),
    }
}

/// Both as whole multiples of the float's last bit, where that fits.
fn exact(int: i64, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    if float.abs() >= 2f64.powi(70) {
        return Some(if float > 0.0 { Ordering::Less } else { Ordering::Greater });
    }
    let bits = float.to_bits();
    let exponent = (bits >> 52 & 0x7ff) as i32;
    let fraction = (bits & ((1 << 52) - 1)) as i128;
    let magnitude = if exponent == 0 { fraction } else { fraction | 1 << 52 };
    let mantissa = if float.is_sign_negative() { -magnitude } else { magnitude };
    let power = exponent.max(1) - 1075;
    Some(if power >= 0 {
        i128::from(int).cmp(&(mantissa << power))
    } else if power >= -60 {
        (i128::from(int) << -power).cmp(&mantissa)
    } else {
        // The float is within (-1, 1).
        int.cmp(&0).then(0.cmp(&mantissa))
    })
}
