//! Gradient-boosted trees, flattened: the splits and leaves of all trees in two lists.

use crate::{Output, StoppedRun};

/// The most trees of a model, and the most splits of all of them.
const MAX_TREES: usize = 100_000;
const MAX_SPLITS: usize = 4_000_000;
/// The most splits from the root of a tree to a leaf.
const MAX_DEPTH: usize = 1_000;
/// The number of trees between two calls of `stop`.
const STRIDE: usize = 32;

/// A model of trees.
pub(crate) struct Forest {
    splits: Vec<Split>,
    leaves: Vec<f64>,
    /// The root of each tree: a split, or a leaf (see [`Split`]).
    roots: Vec<i32>,
    /// Sets of categories, 32 per word.
    sets: Vec<u32>,
    ending: Ending,
    /// The most splits of all trees together that a row passes.
    depth: usize,
}

/// The computation of a score from the leaves.
#[derive(Clone, Copy)]
pub(crate) struct Ending {
    /// The initial value of the sum.
    pub(crate) base: f64,
    /// Whether sums are of 32-bit floats.
    pub(crate) single: bool,
    /// The divisor of the sum, before it is transformed.
    pub(crate) divisor: f64,
    /// The transformation of the sum.
    pub(crate) link: Link,
}

/// The transformation of a sum by an objective.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Link {
    /// The sum itself.
    Identity,
    /// A probability. The sum is multiplied by this factor first.
    Sigmoid(f64),
    /// A power of e.
    Exp,
    /// The square, with the sum's sign.
    Square,
    /// The logarithm of one more than a power of e.
    LogOnePlusExp,
    /// 1 if it is positive, else 0.
    Positive,
}

/// A split. A way on is another split, or, if negative, the complement of a leaf.
#[derive(Clone, Copy)]
pub(crate) struct Split {
    pub(crate) feature: u32,
    /// Numbers up to it go left. Categories must be larger.
    pub(crate) threshold: f64,
    pub(crate) left: i32,
    pub(crate) right: i32,
    pub(crate) test: Test,
}

/// The test of a split.
#[derive(Clone, Copy)]
pub(crate) enum Test {
    /// By size.
    Number {
        /// The values that count as missing.
        absent: Absent,
        /// Whether missing values go left.
        to_left: bool,
    },
    /// By membership in a set; members go left.
    Category {
        /// The start of the set.
        start: u32,
        /// Its number of words.
        words: u32,
        /// Whether NaN goes left.
        to_left: bool,
    },
}

/// The values of a feature that count as missing.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Absent {
    /// None; NaN counts as 0.
    Never,
    /// 0 and NaN.
    Zero,
    /// NaN.
    Nan,
}

/// A tree as read from a file, its splits and leaves counted from 0.
pub(crate) struct Tree {
    pub(crate) splits: Vec<Split>,
    pub(crate) leaves: Vec<f64>,
    /// Sets of categories, which its splits refer to.
    pub(crate) sets: Vec<u32>,
}

/// A model as read from a file.
pub(crate) struct Trees {
    pub(crate) features: Vec<String>,
    pub(crate) trees: Vec<Tree>,
    pub(crate) ending: Ending,
}

impl Trees {
    /// Checks and flattens the trees. Returns the features that they use too, and all features.
    pub(crate) fn into_forest(self, output: Output) -> Result<(Forest, Vec<String>, Vec<String>), String> {
        let Trees { features, trees, mut ending } = self;
        if trees.len() > MAX_TREES || trees.iter().map(|tree| tree.splits.len()).sum::<usize>() > MAX_SPLITS {
            return Err(format!("more than {MAX_TREES} trees or {MAX_SPLITS} splits"));
        }
        if output == Output::Raw {
            (ending.divisor, ending.link) = (1.0, Link::Identity);
        }
        let mut place: Vec<Option<u32>> = vec![None; features.len()];
        let mut used: Vec<String> = Vec::new();
        for (number, tree) in trees.iter().enumerate() {
            for split in &tree.splits {
                let feature = split.feature as usize;
                let at = place.get_mut(feature).ok_or_else(|| {
                    format!("tree {number}: feature {feature}, but the model has {}", features.len())
                })?;
                if at.is_none() {
                    *at = Some(used.len() as u32);
                    used.push(features[feature].clone());
                }
            }
        }
        let mut forest = Forest {
            splits: Vec::new(),
            leaves: Vec::new(),
            roots: Vec::new(),
            sets: Vec::new(),
            ending,
            depth: 0,
        };
        for (number, tree) in trees.into_iter().enumerate() {
            let depth = tree.depth().map_err(|what| format!("tree {number}: {what}"))?;
            forest.depth += depth;
            forest.add(tree, &place);
        }
        Ok((forest, used, features))
    }
}

impl Tree {
    /// Its depth, if every way leads to a leaf and no two ways meet.
    fn depth(&self) -> Result<usize, String> {
        if let Some(at) = self.leaves.iter().position(|value| !value.is_finite()) {
            return Err(format!("leaf {at} is not a finite number"));
        }
        if self.splits.is_empty() {
            return if self.leaves.len() == 1 {
                Ok(0)
            } else {
                Err("no splits, and not one leaf".to_owned())
            };
        }
        let mut met = vec![false; self.splits.len()];
        let mut deepest = 0;
        let mut ahead: Vec<(i32, usize)> = vec![(0, 1)];
        while let Some((at, depth)) = ahead.pop() {
            if at < 0 {
                let leaf = !at as usize;
                if leaf >= self.leaves.len() {
                    return Err(format!("a split leads to leaf {leaf}, and there are {}", self.leaves.len()));
                }
                continue;
            }
            let split = self.splits.get(at as usize);
            let split = split.ok_or_else(|| format!("a split leads to split {at}, which is not there"))?;
            if std::mem::replace(&mut met[at as usize], true) {
                return Err(format!("two ways lead to split {at}"));
            }
            if split.threshold.is_nan() {
                return Err(format!("the threshold of split {at} is not a number"));
            }
            if depth > MAX_DEPTH {
                return Err(format!("deeper than {MAX_DEPTH}"));
            }
            deepest = deepest.max(depth);
            ahead.push((split.left, depth + 1));
            ahead.push((split.right, depth + 1));
        }
        Ok(deepest)
    }
}

impl Forest {
    fn add(&mut self, tree: Tree, place: &[Option<u32>]) {
        let (split_base, leaf_base) = (self.splits.len() as i32, self.leaves.len() as i32);
        let set_base = self.sets.len() as u32;
        let moved = |way: i32| if way < 0 { way - leaf_base } else { way + split_base };
        self.roots.push(if tree.splits.is_empty() { !leaf_base } else { split_base });
        for mut split in tree.splits {
            split.feature = place[split.feature as usize].expect("features of splits have a place");
            (split.left, split.right) = (moved(split.left), moved(split.right));
            if let Test::Category { start, .. } = &mut split.test {
                *start += set_base;
            }
            self.splits.push(split);
        }
        self.leaves.extend(tree.leaves);
        self.sets.extend(tree.sets);
    }

    /// Nanoseconds per row.
    pub(crate) fn cost(&self) -> f64 {
        2.0 * (self.depth + self.roots.len()) as f64 + 5.0
    }

    /// The scores of rows, whose `width` features come one row after the other.
    pub(crate) fn score(
        &self,
        values: &[f64],
        width: usize,
        scores: &mut [f64],
        stop: &mut dyn FnMut() -> bool,
    ) -> Result<(), StoppedRun> {
        scores.fill(self.ending.base);
        for (number, root) in self.roots.iter().enumerate() {
            if number % STRIDE == STRIDE - 1 && stop() {
                return Err(StoppedRun);
            }
            for (at, score) in scores.iter_mut().enumerate() {
                let sum = *score + self.leaf(*root, &values[at * width..(at + 1) * width]);
                *score = if self.ending.single { f64::from(sum as f32) } else { sum };
            }
        }
        scores.iter_mut().for_each(|score| *score = self.ending.of(*score));
        Ok(())
    }

    fn leaf(&self, root: i32, row: &[f64]) -> f64 {
        let mut at = root;
        while at >= 0 {
            let split = &self.splits[at as usize];
            let value = row[split.feature as usize];
            // Thresholds of single precision are met by values of it.
            let value = if self.ending.single { f64::from(value as f32) } else { value };
            at = if split.goes_left(value, &self.sets) { split.left } else { split.right };
        }
        self.leaves[!at as usize]
    }
}

impl Split {
    fn goes_left(&self, value: f64, sets: &[u32]) -> bool {
        match self.test {
            Test::Number { absent, to_left } => {
                let value = match absent {
                    Absent::Nan if value.is_nan() => return to_left,
                    Absent::Zero if value.is_nan() || is_zero(value) => return to_left,
                    _ if value.is_nan() => 0.0,
                    _ => value,
                };
                value <= self.threshold
            }
            Test::Category { start, words, to_left } => {
                if value.is_nan() {
                    return to_left;
                }
                if value <= self.threshold || value >= f64::from(words) * 32.0 {
                    return false;
                }
                let category = value as u32;
                sets[(start + category / 32) as usize] >> (category % 32) & 1 == 1
            }
        }
    }
}

/// LightGBM's definition of zero: up to the 32-bit float nearest to 1e-35.
fn is_zero(value: f64) -> bool {
    value.abs() <= f64::from(1e-35_f32)
}

impl Ending {
    fn of(&self, sum: f64) -> f64 {
        let sum = sum / self.divisor;
        let score = match self.link {
            Link::Identity => sum,
            Link::Sigmoid(factor) => 1.0 / (1.0 + (-factor * sum).exp()),
            Link::Exp => sum.exp(),
            Link::Square => sum * sum.abs(),
            Link::LogOnePlusExp => sum.exp().ln_1p(),
            Link::Positive => f64::from(u8::from(sum > 0.0)),
        };
        if self.single { f64::from(score as f32) } else { score }
    }
}
