//! The functions for single values. The kernels are the same functions for many rows.

use std::cmp::Ordering;
use std::sync::Arc;

use super::ast::{Binary, Compare, Unary};
use crate::value::Scalar;

/// 2^63: the least float that is above all integers.
const ABOVE_INTS: f64 = 9_223_372_036_854_775_808.0;

/// A number as a float, the nearest one if it is a large integer.
pub(super) fn float(value: &Scalar) -> f64 {
    match value {
        Scalar::Int(int) => *int as f64,
        Scalar::Float(float) => *float,
        Scalar::Bool(_) | Scalar::Text(_) => unreachable!("checked at load to be a number"),
    }
}

/// A function of a number, null where it is undefined.
pub(super) fn unary(op: Unary, x: f64) -> Option<f64> {
    match op {
        Unary::Neg => Some(-x),
        Unary::Abs => Some(x.abs()),
        Unary::Exp => Some(x.exp()),
        Unary::Log => (x > 0.0).then(|| x.ln()),
        Unary::Floor => Some(x.floor()),
        Unary::Ceil => Some(x.ceil()),
        Unary::Round => Some(x.round()),
        Unary::Length | Unary::Lower | Unary::Upper => unreachable!("a function of strings"),
    }
}

/// The number of characters of a string.
pub(super) fn length(text: &str) -> i64 {
    text.chars().count() as i64
}

/// A function of two numbers, null where it is undefined.
pub(super) fn binary(op: Binary, a: f64, b: f64) -> Option<f64> {
    match op {
        Binary::Add => Some(a + b),
        Binary::Sub => Some(a - b),
        Binary::Mul => Some(a * b),
        Binary::Div => (b != 0.0).then(|| a / b),
        Binary::Mod => Some(a % b).filter(|rest| !rest.is_nan()),
        Binary::Min => Some(min(a, b)),
        Binary::Max => Some(max(a, b)),
        Binary::Pow => Some(a.powf(b)).filter(|power| !power.is_nan()),
        Binary::Coalesce => unreachable!("not a function of numbers only"),
    }
}

/// The lesser; not a number if either is not.
#[inline(always)]
pub(super) fn min(a: f64, b: f64) -> f64 {
    if a < b || a.is_nan() { a } else { b }
}

/// The greater; not a number if either is not.
#[inline(always)]
pub(super) fn max(a: f64, b: f64) -> f64 {
    if a > b || a.is_nan() { a } else { b }
}

/// A string in another case.
pub(super) fn case(op: Unary, text: &str) -> Arc<str> {
    match op {
        Unary::Lower => Arc::from(text.to_lowercase()),
        Unary::Upper => Arc::from(text.to_uppercase()),
        _ => unreachable!("a function of numbers"),
    }
}

/// True if two values that are not null compare so.
pub fn compare(op: Compare, a: &Scalar, b: &Scalar) -> bool {
    let order = match (a, b) {
        (Scalar::Int(a), Scalar::Int(b)) => Some(a.cmp(b)),
        (Scalar::Float(a), Scalar::Float(b)) => a.partial_cmp(b),
        (Scalar::Int(a), Scalar::Float(b)) => int_to_float(*a, *b),
        (Scalar::Float(a), Scalar::Int(b)) => int_to_float(*b, *a).map(Ordering::reverse),
        (Scalar::Text(a), Scalar::Text(b)) => Some(a.cmp(b)),
        (Scalar::Bool(a), Scalar::Bool(b)) => Some(a.cmp(b)),
        _ => unreachable!("checked at load to be of one kind"),
    };
    ordered(op, order)
}

/// Whether an order satisfies the operator. `None` means unordered.
#[inline(always)]
pub(super) fn ordered(op: Compare, order: Option<Ordering>) -> bool {
    match op {
        Compare::Eq => order == Some(Ordering::Equal),
        Compare::Ne => order != Some(Ordering::Equal),
        Compare::Lt => order == Some(Ordering::Less),
        Compare::Le => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Compare::Gt => order == Some(Ordering::Greater),
        Compare::Ge => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
    }
}

/// Compares an integer with a float, exactly.
pub(super) fn int_to_float(int: i64, float: f64) -> Option<Ordering> {
    if float.is_nan() {
        return None;
    }
    if float >= ABOVE_INTS {
        return Some(Ordering::Less);
    }
    if float < -ABOVE_INTS {
        return Some(Ordering::Greater);
    }
    // The float is in range, so truncation is exact, and the fraction decides a tie.
    Some(int.cmp(&(float.trunc() as i64)).then(0.0.partial_cmp(&float.fract())?))
}

/// The integer value of a float, if it is exact.
pub(super) fn exact_int(float: f64) -> Option<i64> {
    (float.fract() == 0.0 && (-ABOVE_INTS..ABOVE_INTS).contains(&float)).then_some(float as i64)
}

/// The float value of an integer, if it is exact.
pub(super) fn exact_float(int: i64) -> Option<f64> {
    let float = int as f64;
    (exact_int(float) == Some(int)).then_some(float)
}

/// A comparison of integers with a float, said with an integer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bound {
    /// True for all integers, or for none.
    Always(bool),
    /// The comparison with this integer.
    Int(Compare, i64),
}

/// `int op float`, for any integer.
pub(super) fn bound(op: Compare, float: f64) -> Bound {
    let below = float >= ABOVE_INTS;
    if below || float < -ABOVE_INTS || float.is_nan() {
        return Bound::Always(match op {
            Compare::Eq => false,
            Compare::Ne => true,
            Compare::Lt | Compare::Le => below,
            Compare::Gt | Compare::Ge => !below && !float.is_nan(),
        });
    }
    // Between two integers, `<` and `<=` both mean "up to the lower one".
    let floor = float.floor() as i64;
    match (op, exact_int(float)) {
        (op, Some(int)) => Bound::Int(op, int),
        (Compare::Eq, None) => Bound::Always(false),
        (Compare::Ne, None) => Bound::Always(true),
        (Compare::Lt | Compare::Le, None) => Bound::Int(Compare::Le, floor),
        (Compare::Gt | Compare::Ge, None) => Bound::Int(Compare::Gt, floor),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EDGES: [f64; 15] = [
        0.0,
        -0.5,
        0.5,
        1.0,
        -1.0,
        9_007_199_254_740_992.0,
        9_007_199_254_740_994.0,
        ABOVE_INTS,
        -ABOVE_INTS,
        9_223_372_036_854_774_784.0,
        1e300,
        -1e300,
        f64::INFINITY,
        f64::NEG_INFINITY,
        f64::NAN,
    ];
    const INTS: [i64; 9] =
        [0, 1, -1, 1 << 53, (1 << 53) + 1, i64::MAX, i64::MIN, i64::MIN + 1, i64::MAX - 1023];

    #[test]
    fn bounds_say_what_comparisons_say() {
        for op in Compare::ALL {
            for float in EDGES {
                for int in INTS {
                    let expected = compare(op, &Scalar::Int(int), &Scalar::Float(float));
                    let found = match bound(op, float) {
                        Bound::Always(always) => always,
                        Bound::Int(op, with) => compare(op, &Scalar::Int(int), &Scalar::Int(with)),
                    };
                    assert_eq!(found, expected, "{int} {} {float}", op.symbol());
                }
            }
        }
    }

    #[test]
    fn integers_beyond_two_to_the_53_stay_apart() {
        assert_eq!(int_to_float((1 << 53) + 1, 9_007_199_254_740_992.0), Some(Ordering::Greater));
        assert_eq!(int_to_float(i64::MAX, ABOVE_INTS), Some(Ordering::Less));
        assert_eq!(int_to_float(i64::MIN, -ABOVE_INTS), Some(Ordering::Equal));
        assert_eq!(exact_float((1 << 53) + 1), None);
        assert_eq!(exact_float(i64::MAX), None);
        assert_eq!(exact_int(-0.0), Some(0));
    }
}
