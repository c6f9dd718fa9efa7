//! Between what and what an adaptive limit moves.

use super::error::Error;

/// Between what and what a limit moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The least it falls to.
    pub min: u32,
    /// The most it grows to.
    pub max: u32,
    /// Where it starts.
    pub start: u32,
    /// How it grows until the first sign of trouble.
    pub ramp: Ramp,
}

/// How a limit grows until the first sign of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ramp {
    /// Doubles with each window.
    Double,
    /// Adds one with each window.
    One,
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
