//! The most frequent values.

use std::collections::HashMap;

use anabranch_value::Value;

/// Counts the most frequent values (the algorithm of Misra and Gries). Exact up to [`Frequent::KEPT`] different values;
/// above it each count is too low by at most [`Frequent::error`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Frequent {
    counts: HashMap<u64, (Value, u64)>,
    error: u64,
}

impl Frequent {
    /// Values that are counted at a time.
    const KEPT: usize = 512;

    /// Counts a value. `shown` makes the form of it that is kept.
    pub(crate) fn add(&mut self, digest: u64, shown: impl FnOnce() -> Value) {
        if let Some((_, count)) = self.counts.get_mut(&digest) {
            *count += 1;
        } else if self.counts.len() < Frequent::KEPT {
            self.counts.insert(digest, (shown(), 1));
        } else {
            self.error += 1;
            self.counts.retain(|_, (_, count)| {
                *count -= 1;
                *count > 0
            });
        }
    }

    /// The largest error of a count.
    pub(crate) fn error(&self) -> u64 {
        self.error
    }

    /// All values with their counts; `None` if there were too many different ones.
    pub(crate) fn all(&self) -> Option<impl Iterator<Item = &(Value, u64)>> {
        (self.error == 0).then(|| self.counts.values())
    }

    /// The most frequent values with their counts, most frequent first.
    pub(crate) fn top(&self, most: usize) -> Vec<(Value, u64)> {
        let mut top: Vec<_> = self.counts.iter().collect();
        top.sort_by_key(|(digest, (_, count))| (std::cmp::Reverse(*count), **digest));
        top.into_iter().take(most).map(|(_, counted)| counted.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use anabranch_value::Value;

    use super::Frequent;
    use crate::sketch::digest;

    fn add(frequent: &mut Frequent, value: &Value) {
        frequent.add(digest(value), || value.clone());
    }

    #[test]
    fn few_values_are_counted_exactly() {
        let mut frequent = Frequent::default();
        for value in ["a", "b", "a", "c", "a", "b"] {
            add(&mut frequent, &value.into());
        }
        let top = frequent.top(2);
        assert!(
            top.iter().map(|(value, count)| (value.as_text(), *count)).eq([(Some("a"), 3), (Some("b"), 2)])
        );
        assert_eq!(frequent.error(), 0);
    }

    #[test]
    fn a_frequent_value_stays_among_many_rare_ones() {
        let mut frequent = Frequent::default();
        for value in 0..20_000 {
            add(&mut frequent, &Value::Int(value));
            if value % 4 == 0 {
                add(&mut frequent, &"often".into());
            }
        }
        let (value, count) = frequent.top(1).remove(0);
        assert_eq!(value.as_text(), Some("often"));
        assert!(count <= 5_000 && count + frequent.error() >= 5_000, "{count} ± {}", frequent.error());
        assert!(frequent.counts.len() <= Frequent::KEPT);
    }
}
