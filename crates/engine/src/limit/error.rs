//! The errors of adding a limit.

/// A setting with which a limit cannot work.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A setting is 0, so that no call could ever be made.
    #[error("`{field}` is 0, so no call could ever be made; set a larger value")]
    Zero { field: &'static str },
    /// Two settings contradict each other.
    #[error("`{low_field}` is {low} and `{high_field}` is {high}; `{low_field}` must not be the larger one")]
    Inverted { low_field: &'static str, low: u32, high_field: &'static str, high: u32 },
    /// The parent is not in the table.
    #[error("the parent is not a limit of this table; add it before its child")]
    NoParent,
    /// Names must be unique, because saved knowledge is found by name.
    #[error("this table already has a limit named `{0}`; names must be unique")]
    SameName(String),
}
