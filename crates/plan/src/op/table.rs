//! The table of ops.

use std::sync::Arc;

use super::Op;

/// The beginning of the names of ops for tests.
const TEST_PREFIX: &str = "test::";

/// The table of ops, by name.
#[derive(Clone, Default)]
pub struct Ops(Vec<Arc<dyn Op>>);

impl Ops {
    /// The ops that come along, those for tests (`test::*`) included.
    pub fn builtin() -> Ops {
        crate::ops::all()
    }

    /// The same without the ops for tests that take as much time as a plan says: `test::sleep` and `test::busy_cpu`.
    /// `test::fixed_source` stays, since the budget of a request bounds its rows.
    #[must_use]
    pub fn without_test_ops(mut self) -> Ops {
        self.0.retain(|op| !(op.spec().name.starts_with(TEST_PREFIX) && op.spec().distinct));
        self
    }

    /// These ops and all built-in ones, including those that plans may not use here, for declarations and messages.
    #[must_use]
    pub fn and_builtin(&self) -> Ops {
        let builtin = Ops::builtin();
        let own = |op: &Arc<dyn Op>| self.get(op.spec().name).unwrap_or(op).clone();
        let mut all: Vec<Arc<dyn Op>> = builtin.iter().map(own).collect();
        all.extend(self.iter().filter(|op| builtin.get(op.spec().name).is_none()).cloned());
        Ops(all)
    }

    /// Adds an op, or replaces the one of the same name.
    pub fn add(&mut self, op: impl Op) {
        self.0.retain(|other| other.spec().name != op.spec().name);
        self.0.push(Arc::new(op));
    }

    /// The op called `name`, as in `core::take`.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Op>> {
        self.0.iter().find(|op| op.spec().name == name)
    }

    /// All ops.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn Op>> {
        self.0.iter()
    }
}
