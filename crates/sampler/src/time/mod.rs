//! Dates and times of the civil calendar, without time zones: parse, format, add.

mod civil;
mod parse;
mod format;

pub use civil::Date;
pub(crate) use civil::{in_range, truncate};
pub use format::TimeFormat;
pub use parse::parse_time;
