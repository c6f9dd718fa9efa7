//! The range in which an adaptive limit moves.

use super::error::Error;

/// The range of an adaptive limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The lowest value of the limit. Default: 1.
    pub min: u32,
    /// The highest value of the limit. Default: 1,000.
    pub max: u32,
    /// The first value of the limit. Default: 8.
    pub start: u32,
    /// The growth of the limit until a call is refused, times out or slows down. Default: [`Ramp::Double`].
    pub ramp: Ramp,
}

/// The growth of a limit until a call is refused, times out or slows down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ramp {
    /// It doubles per window.
    Double,
    /// It grows by one per window.
    One,
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds { min: 1, max: 1_000, start: 8, ramp: Ramp::Double }
    }
}

impl Bounds {
    pub(super) fn check(&self) -> Result<(), Error> {
        let Bounds { min, max, start, .. } = *self;
        for (field, value) in [("min", min), ("max", max), ("start", start)] {
            if value == 0 {
                return Err(Error::Zero { field });
            }
        }
        for (low_field, low, high_field, high) in
            [("min", min, "max", max), ("min", min, "start", start), ("start", start, "max", max)]
        {
            if low > high {
                return Err(Error::Inverted { low_field, low, high_field, high });
            }
        }
        Ok(())
    }
}
