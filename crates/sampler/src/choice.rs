//! A choice by weight in constant time (Walker's alias method).

use crate::error::Error;
use crate::stream::Stream;

/// Indexes with weights.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    /// For each index the share of its slot that it keeps, and the index that has the rest.
    slots: Vec<(f64, u32)>,
}

/// Bounds the memory of one sampler.
const MAX_CHOICES: usize = 1 << 24;

impl Choice {
    pub(crate) fn new(weights: &[f64]) -> Result<Choice, Error> {
        if weights.len() > MAX_CHOICES {
            return Err(Error::param("weights", format!("more than {MAX_CHOICES} values; use fewer")));
        }
        if let Some(wrong) = weights.iter().find(|weight| !(weight.is_finite() && **weight >= 0.0)) {
            return Err(Error::param("weights", format!("expected finite numbers from 0 up, found {wrong}")));
        }
        let largest = weights.iter().copied().fold(0.0, f64::max);
        if largest == 0.0 {
            return Err(Error::param("weights", "all are 0; give at least one value a weight above 0"));
        }
        // Divided first, so that a sum of huge weights stays finite.
        let sum: f64 = weights.iter().map(|weight| weight / largest).sum();
        let mut shares: Vec<f64> =
            weights.iter().map(|weight| weight / largest / sum * weights.len() as f64).collect();
        let mut slots: Vec<(f64, u32)> = (0..weights.len() as u32).map(|index| (1.0, index)).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..shares.len()).partition(|&index| shares[index] < 1.0);
        while let (Some(&under), Some(&over)) = (small.last(), large.last()) {
            small.pop();
            slots[under] = (shares[under], over as u32);
            shares[over] -= 1.0 - shares[under];
            if shares[over] < 1.0 {
                large.pop();
                small.push(over);
            }
        }
        // Rounding can leave slots over; one without weight must still never be chosen.
        let heaviest = (0..weights.len()).find(|&index| weights[index] == largest).unwrap_or(0) as u32;
        for index in small {
            if weights[index] == 0.0 {
                slots[index] = (0.0, heaviest);
            }
        }
        Ok(Choice { slots })
    }

    pub(crate) fn draw(&self, stream: &mut Stream) -> usize {
        let index = stream.below(self.slots.len() as u64) as usize;
        let (keep, alias) = self.slots[index];
        if stream.unit() < keep { index } else { alias as usize }
    }
}
