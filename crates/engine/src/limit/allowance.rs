//! What one limit allows.

use super::bounds::Bounds;
use super::bucket::Rate;
use super::table::LimitKey;

/// What one limit allows. The default allows everything: set the fields that are to bound something.
#[derive(Clone, Copy, Debug, Default)]
pub struct Allowance {
    /// Calls in flight at the same time. Default: unlimited.
    pub concurrency: Concurrency,
    /// Calls per unit of time. Default: unlimited.
    pub requests: Option<Rate>,
    /// Tokens (whatever the backend counts by) per unit of time. Default: unlimited.
    pub tokens: Option<Rate>,
    /// A limit that calls of this one count against as well, such as an account that several keys share. Default: none.
    pub parent: Option<LimitKey>,
}

impl Allowance {
    /// At most this many calls in flight.
    pub fn fixed(calls: u32) -> Allowance {
        Allowance { concurrency: Concurrency::Fixed(calls), ..Allowance::default() }
    }

    /// As many calls in flight as the backend turns out to take, within the default [`Bounds`].
    pub fn adaptive() -> Allowance {
        Allowance { concurrency: Concurrency::Adaptive(Bounds::default()), ..Allowance::default() }
    }
}

/// How many calls may be in flight at the same time.
#[derive(Clone, Copy, Debug)]
pub enum Concurrency {
    /// At most this many.
    Fixed(u32),
    /// As many as the backend turns out to take, within these bounds.
    Adaptive(Bounds),
}

impl Default for Concurrency {
    fn default() -> Concurrency {
        Concurrency::Fixed(u32::MAX)
    }
}
