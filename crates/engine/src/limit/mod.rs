//! Limits on calls to a backend: how many at a time, and how much in a time.

mod error;
mod bounds;
mod ceiling;
mod latency;
mod adaptive;
mod bucket;
mod permit;
mod entry;
mod table;

pub use adaptive::{Adaptive, Call, Learned, Moved, Verdict, Why};
pub use bounds::{Bounds, Ramp};
pub use bucket::{Bucket, Quota, Rate};
pub use error::Error;
pub(crate) use permit::{Ended, Permit};
pub use table::{Allowance, Concurrency, LimitKey, Limits, Standing};
pub(crate) use table::{Asked, Customer, Place};
