//! Reads values out of replies.

mod code;
mod fence;
mod json;
mod repair;

pub use code::code;
pub(crate) use code::tag;
pub use json::json;

/// Why a reply has no usable value. The text is meant for the model, which may be asked again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReplyProblem(pub String);
