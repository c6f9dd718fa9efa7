//! Reads values out of replies.

mod code;
mod fence;
mod json;
mod repair;

pub use code::code;
pub(crate) use code::tag;
pub use json::json;

/// The reason why a reply has no usable value. The text is meant for the model, which may get another request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReplyProblem(pub String);
