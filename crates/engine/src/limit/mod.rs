//! Limits on calls to a backend: concurrency (fixed or adaptive), requests and tokens per unit of time.
//!
//! [`Limits`] is a table that runs share: add one limit per backend, put the table into
//! [`Options::limits`](crate::Options::limits) and the key into [`Policy::limit`](crate::Policy::limit). A node that
//! waits for a slot is not a task and holds nothing; runs take turns.
//!
//! ```
//! use anabranch_engine::clock::SystemClock;
//! use anabranch_engine::limit::{Allowance, Limits, Rate};
//! use std::{sync::Arc, time::Duration};
//!
//! let limits = Limits::new(Arc::new(SystemClock));
//! let search = limits.add("search", Allowance::fixed(10))?;
//! let minute = Rate { amount: 600, per: Duration::from_secs(60), burst: 20 };
//! let model = limits.add("model", Allowance { requests: Some(minute), ..Allowance::adaptive() })?;
//! assert_eq!(limits.list()[0].0, "search");
//! assert_eq!((limits.status(search).limit, limits.status(model).in_flight), (10, 0));
//! # Ok::<(), anabranch_engine::limit::Error>(())
//! ```

mod error;
mod bounds;
mod allowance;
mod ceiling;
mod latency;
mod adaptive;
mod bucket;
mod permit;
mod entry;
mod table;

pub use adaptive::{Adaptive, Call, CallOutcome, ChangeReason, LearnedLimit, LimitChange};
pub use allowance::{Allowance, Concurrency};
pub use bounds::{Bounds, Ramp};
pub use bucket::{Bucket, Quota, Rate};
pub use error::Error;
pub(crate) use permit::{CallEnd, Permit};
pub use table::{LimitKey, LimitStatus, Limits};
pub(crate) use table::{QueuePlace, SlotReceiver, SlotReply};
