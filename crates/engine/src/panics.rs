//! The message of a panic.

pub(crate) use anabranch_text::panic_message as message;
