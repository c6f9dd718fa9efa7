//! What is wrong with a limit's settings.

/// A setting that no limit can work with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Nothing could ever pass.
    #[error("`{field}` is 0; a limit needs at least 1")]
    Zero {
        /// The field.
        field: &'static str,
    },
    /// Two settings contradict each other.
    #[error("`{low_field}` is {low}, above `{high_field}`, which is {high}")]
    Inverted {
        /// The field that must not be the larger.
        low_field: &'static str,
        /// Its value.
        low: u32,
        /// The field that must not be the smaller.
        high_field: &'static str,
        /// Its value.
        high: u32,
    },
    /// A parent that was not added before its child.
    #[error("the parent is no limit of this table; add it first")]
    NoParent,
    /// What is learned is filed by name, so each name is used once.
    #[error("a limit named `{0}` is there already")]
    SameName(String),
}
