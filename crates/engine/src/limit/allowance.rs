//! The settings of one limit.

use super::bounds::Bounds;
use super::bucket::Rate;
use super::table::LimitKey;

/// The bounds of one limit. The default has none: set the fields that should bound something.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allowance {
    /// Calls in flight at the same time. Default: unlimited.
    pub concurrency: Concurrency,
    /// Calls per unit of time. Default: unlimited.
    pub requests: Option<Rate>,
    /// Tokens per unit of time, such as the tokens of a language model. Default: unlimited.
    pub tokens: Option<Rate>,
    /// A limit that calls of this one count against as well, such as an account that several keys share. Default: none.
    pub parent: Option<LimitKey>,
}

impl Allowance {
    /// At most this many calls in flight.
    pub fn fixed(calls: u32) -> Allowance {
        Allowance { concurrency: Concurrency::Fixed(calls), ..Allowance::default() }
    }

    /// An adaptive number of calls in flight, within the default [`Bounds`].
    pub fn adaptive() -> Allowance {
        Allowance { concurrency: Concurrency::Adaptive(Bounds::default()), ..Allowance::default() }
    }
}

/// The maximum number of calls in flight at the same time.
#[derive(Clone, Copy, Debug)]
pub enum Concurrency {
    /// At most this many.
    Fixed(u32),
    /// Adapts to the backend, within these bounds.
    Adaptive(Bounds),
}

impl Default for Concurrency {
    fn default() -> Concurrency {
        Concurrency::Fixed(u32::MAX)
    }
}
