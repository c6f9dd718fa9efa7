//! Quantiles and histograms of numbers.

/// The distribution of numbers. Count, least, largest and mean are exact. Quantiles and histograms are exact up to
/// [`Numbers::KEPT`] numbers; above it the rank of a quantile is off by at most about half a percent.
#[derive(Clone, Debug)]
pub(crate) struct Numbers {
    count: u64,
    least: f64,
    largest: f64,
    sum: f64,
    /// The first level has numbers of weight one, the next of weight two, four, eight and so on. A full level is
    /// sorted, and every second number of it moves to the next level.
    levels: Vec<Vec<f64>>,
    /// The half that moves next. Alternating keeps the errors from adding up.
    takes_odd: bool,
}

impl Default for Numbers {
    fn default() -> Numbers {
        Numbers {
            count: 0,
            least: f64::INFINITY,
            largest: f64::NEG_INFINITY,
            sum: 0.0,
            levels: vec![Vec::new()],
            takes_odd: false,
        }
    }
}

impl Numbers {
    /// Numbers of one level; even, so that the halves weigh the same.
    pub(crate) const KEPT: usize = 2048;

    /// Adds a finite number.
    pub(crate) fn add(&mut self, number: f64) {
        self.count += 1;
        self.least = self.least.min(number);
        self.largest = self.largest.max(number);
        self.sum += number;
        let mut level = 0;
        if self.levels[0].len() == Numbers::KEPT {
            while self.levels.get(level).is_some_and(|full| full.len() == Numbers::KEPT) {
                self.compact(level);
                level += 1;
            }
        }
        self.levels[0].push(number);
    }

    /// Moves half of a full level to the next one.
    fn compact(&mut self, level: usize) {
        let mut full = std::mem::take(&mut self.levels[level]);
        full.sort_by(f64::total_cmp);
        let odd = usize::from(self.takes_odd);
        self.takes_odd = !self.takes_odd;
        if level + 1 == self.levels.len() {
            self.levels.push(Vec::new());
        }
        self.levels[level + 1].extend(full.iter().skip(odd).step_by(2));
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    pub(crate) fn least(&self) -> f64 {
        self.least
    }

    pub(crate) fn largest(&self) -> f64 {
        self.largest
    }

    pub(crate) fn mean(&self) -> f64 {
        // The sum of very large numbers is infinite.
        (self.sum / self.count as f64).max(self.least).min(self.largest)
    }

    /// True if quantiles and histograms are not estimates.
    pub(crate) fn is_exact(&self) -> bool {
        self.levels.len() == 1
    }

    /// The numbers in order, each with how many it stands for.
    pub(crate) fn weighted(&self) -> WeightedNumbers {
        let levels = self.levels.iter().enumerate();
        let all = levels.flat_map(|(level, numbers)| numbers.iter().map(move |number| (*number, 1 << level)));
        WeightedNumbers::new(all.collect())
    }
}

/// Numbers in order, each with how many it stands for.
pub(crate) struct WeightedNumbers {
    sorted: Vec<(f64, u64)>,
    count: u64,
}

impl WeightedNumbers {
    pub(crate) fn new(mut numbers: Vec<(f64, u64)>) -> WeightedNumbers {
        numbers.sort_by(|one, other| one.0.total_cmp(&other.0));
        let count = numbers.iter().map(|(_, weight)| weight).sum();
        WeightedNumbers { sorted: numbers, count }
    }

    /// The numbers at these shares (from 0 to 1, ascending) of all numbers. There must be a number.
    pub(crate) fn quantiles<const N: usize>(&self, shares: [f64; N]) -> [f64; N] {
        let mut at = 0;
        let mut passed = 0;
        shares.map(|share| {
            let rank = (share * self.count as f64).ceil().max(1.0) as u64;
            while at + 1 < self.sorted.len() && passed + self.sorted[at].1 < rank {
                passed += self.sorted[at].1;
                at += 1;
            }
            self.sorted[at].0
        })
    }

    /// The number of values in each of `bins` intervals of this width. The first and the last interval also count the
    /// values beyond them.
    pub(crate) fn histogram(&self, from: f64, width: f64, bins: usize) -> Vec<u64> {
        let mut counts = vec![0; bins];
        for (number, weight) in &self.sorted {
            // A quotient that is not a number becomes 0, a large one the last interval.
            let bin = (number / width - from / width) as usize;
            counts[bin.min(bins - 1)] += weight;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use super::Numbers;

    /// The numbers below a count, in an order that jumps about.
    fn mixed(count: u64) -> Numbers {
        let mut numbers = Numbers::default();
        (0..count).for_each(|at| numbers.add((at * 7919 % count) as f64));
        numbers
    }

    #[test]
    fn a_few_numbers_are_kept_exactly() {
        let numbers = mixed(101);
        assert!(numbers.is_exact());
        assert_eq!((numbers.least(), numbers.largest(), numbers.count()), (0.0, 100.0, 101));
        assert!((numbers.mean() - 50.0).abs() < 1e-9);
        assert_eq!(numbers.weighted().quantiles([0.05, 0.5, 0.95, 1.0]), [5.0, 50.0, 95.0, 100.0]);
        assert_eq!(numbers.weighted().histogram(0.0, 25.0, 4), [25, 25, 25, 26]);
    }

    #[test]
    fn a_million_numbers_are_close() {
        let numbers = mixed(1_000_000);
        assert!(!numbers.is_exact());
        for (share, found) in [0.01, 0.25, 0.5, 0.75, 0.99]
            .iter()
            .zip(numbers.weighted().quantiles([0.01, 0.25, 0.5, 0.75, 0.99]))
        {
            assert!((found / 1e6 - share).abs() < 0.005, "{share}: {found}");
        }
        let bins = numbers.weighted().histogram(0.0, 100_000.0, 10);
        assert_eq!(bins.iter().sum::<u64>(), 1_000_000, "no number is lost");
        assert!(bins.iter().all(|bin| (95_000..105_000).contains(bin)), "{bins:?}");
        let held: usize = numbers.levels.iter().map(Vec::len).sum();
        assert!(held < 12 * Numbers::KEPT);
    }

    #[test]
    fn equal_and_extreme_numbers_do_not_overflow() {
        let mut numbers = Numbers::default();
        (0..3).for_each(|_| numbers.add(5.0));
        assert_eq!(
            (numbers.weighted().histogram(5.0, 0.0, 3), numbers.weighted().quantiles([0.5])),
            (vec![3, 0, 0], [5.0])
        );
        let mut numbers = Numbers::default();
        [f64::MIN, 0.0, f64::MAX].iter().for_each(|number| numbers.add(*number));
        assert_eq!(numbers.weighted().histogram(f64::MIN, f64::MAX / 1.5, 3), [1, 1, 1]);
        assert!(numbers.mean().is_finite());
    }
}
