//! The categories of time, and sums per category.

use std::ops::{AddAssign, Index, IndexMut};
use std::time::Duration;

/// A use of time by a node: running, waiting for inputs, for a limit or for a retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// Waiting for inputs.
    Inputs,
    /// Ready, but not started: the run had no free slot, or its task was busy.
    Slot,
    /// Waiting for a slot of a limit.
    Limit,
    /// The pause before a retry.
    Retry,
    /// Waiting in the queue of a pool.
    Queue,
    /// Running as a future, a task or a blocking call.
    Io,
    /// Running on the run's own task or on a CPU pool.
    Cpu,
    /// Not known, because events are missing.
    Unknown,
    /// Outside of any node.
    Outside,
}

/// The time per category.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TimeSpent([Duration; Category::ALL.len()]);

impl Category {
    /// All categories: waits, then work, then the rest.
    pub const ALL: [Category; 9] = [
        Category::Inputs,
        Category::Slot,
        Category::Limit,
        Category::Retry,
        Category::Queue,
        Category::Io,
        Category::Cpu,
        Category::Unknown,
        Category::Outside,
    ];

    /// The category in words.
    pub fn label(self) -> &'static str {
        match self {
            Category::Inputs => "waiting for inputs",
            Category::Slot => "waiting for a free slot",
            Category::Limit => "waiting for a limit",
            Category::Retry => "waiting to retry",
            Category::Queue => "in the queue of a pool",
            Category::Io => "I/O",
            Category::Cpu => "CPU",
            Category::Unknown => "unknown (events missing)",
            Category::Outside => "outside of any node",
        }
    }

    /// The category with this name.
    pub fn from_key(key: &str) -> Option<Category> {
        Category::ALL.into_iter().find(|category| category.key() == key)
    }

    /// The name of the category in style sheets, traces and records.
    pub fn key(self) -> &'static str {
        match self {
            Category::Inputs => "inputs",
            Category::Slot => "slot",
            Category::Limit => "limit",
            Category::Retry => "retry",
            Category::Queue => "queue",
            Category::Io => "io",
            Category::Cpu => "cpu",
            Category::Unknown => "unknown",
            Category::Outside => "outside",
        }
    }

    /// True for the uses of time by nodes in flight.
    pub(super) fn is_in_flight(self) -> bool {
        matches!(self, Category::Queue | Category::Io | Category::Cpu)
    }
}

impl TimeSpent {
    pub(super) const ZERO: TimeSpent = TimeSpent([Duration::ZERO; Category::ALL.len()]);

    /// The sum.
    pub fn total(&self) -> Duration {
        self.0.iter().sum()
    }

    /// The categories that took any time.
    pub fn parts(&self) -> impl Iterator<Item = (Category, Duration)> + '_ {
        Category::ALL.into_iter().map(|category| (category, self[category])).filter(|part| !part.1.is_zero())
    }
}

impl Index<Category> for TimeSpent {
    type Output = Duration;

    fn index(&self, category: Category) -> &Duration {
        &self.0[category as usize]
    }
}

impl IndexMut<Category> for TimeSpent {
    fn index_mut(&mut self, category: Category) -> &mut Duration {
        &mut self.0[category as usize]
    }
}

impl AddAssign for TimeSpent {
    fn add_assign(&mut self, other: TimeSpent) {
        for (sum, more) in self.0.iter_mut().zip(other.0) {
            *sum += more;
        }
    }
}
