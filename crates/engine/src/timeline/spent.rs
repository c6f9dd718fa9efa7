//! What time is spent on, and sums of it.

use std::ops::{AddAssign, Index, IndexMut};
use std::time::Duration;

/// What time is spent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// Waiting for inputs.
    Inputs,
    /// Ready, with no reason heard why it did not start: the run's slots or its task were busy.
    Slot,
    /// Waiting for a slot of a limit.
    Limit,
    /// The pause before another attempt.
    Retry,
    /// Standing in a pool's queue.
    Queue,
    /// Carried out as a future, a task or a blocking call.
    Io,
    /// Carried out in place or by a CPU pool.
    Cpu,
    /// Events that would say are missing.
    Unknown,
    /// Outside of any node.
    Outside,
}

/// Time by category.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TimeSpent([Duration; Category::ALL.len()]);

impl Category {
    /// All of them: waits, then work, then what is neither.
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

    /// In words.
    pub fn label(self) -> &'static str {
        match self {
            Category::Inputs => "waiting for inputs",
            Category::Slot => "waiting for a turn",
            Category::Limit => "waiting for a limit",
            Category::Retry => "waiting to retry",
            Category::Queue => "in a pool's queue",
            Category::Io => "I/O",
            Category::Cpu => "CPU",
            Category::Unknown => "unknown (events missing)",
            Category::Outside => "outside of any node",
        }
    }

    /// The class in style sheets, the key in traces.
    pub(super) fn key(self) -> &'static str {
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

    /// Whether a node in this state takes up a place among those in flight.
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

    /// Each category that took any time.
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
