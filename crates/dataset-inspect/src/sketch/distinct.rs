//! An estimate of the number of distinct values.

use std::collections::BTreeSet;

/// Counts different values. Exact up to [`Distinct::KEPT`]; above it an estimate, usually within 2%.
#[derive(Clone, Debug, Default)]
pub(crate) struct Distinct {
    /// The smallest digests. If there are few values these are all digests; if not, how close together they lie says
    /// how many there are.
    smallest: BTreeSet<u64>,
    overflowed: bool,
}

impl Distinct {
    /// Digests that are kept.
    const KEPT: usize = 4096;

    /// Counts the value with this digest.
    pub(crate) fn add(&mut self, digest: u64) {
        if self.overflowed && self.smallest.last().is_some_and(|largest| digest >= *largest) {
            return;
        }
        if self.smallest.insert(digest) && self.smallest.len() > Distinct::KEPT {
            self.smallest.pop_last();
            self.overflowed = true;
        }
    }

    /// The count.
    pub(crate) fn count(&self) -> u64 {
        match self.smallest.last() {
            Some(largest) if self.overflowed => {
                let share = *largest as f64 / u64::MAX as f64;
                ((Distinct::KEPT - 1) as f64 / share) as u64
            }
            _ => self.smallest.len() as u64,
        }
    }

    /// True if the count is not an estimate.
    pub(crate) fn is_exact(&self) -> bool {
        !self.overflowed
    }
}

#[cfg(test)]
mod tests {
    use super::Distinct;
    use crate::sketch::digest;

    fn counted(different: i64, times: i64) -> Distinct {
        let mut distinct = Distinct::default();
        for value in 0..different * times {
            distinct.add(digest(&(value % different).into()));
        }
        distinct
    }

    #[test]
    fn few_values_are_counted_exactly() {
        let distinct = counted(4096, 3);
        assert_eq!((distinct.count(), distinct.is_exact()), (4096, true));
        assert_eq!(Distinct::default().count(), 0);
    }

    #[test]
    fn many_values_are_estimated() {
        let distinct = counted(300_000, 2);
        assert!(!distinct.is_exact());
        assert!((285_000..315_000).contains(&distinct.count()), "{}", distinct.count());
    }
}
