//! Numbers of things.

use std::fmt::Display;

/// A number and its noun: `1 trip`, `2 trips`.
pub fn count<N: Copy + Display + PartialEq + From<u8>>(number: N, noun: &str) -> String {
    let plural = if number == N::from(1) { "" } else { "s" };
    format!("{number} {noun}{plural}")
}
