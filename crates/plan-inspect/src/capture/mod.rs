//! Captures: a request with everything that its answer depends on, so that it can be replayed elsewhere, identical to
//! the byte.
//!
//! ```text
//! capture = plan, registries, files that the plan names         shared by many captures, stored once
//!         + request, replies of sources, outcome, answer        its own
//! ```
//!
//! Each part is a blob. A capture is a derivation that reads them, and its memo is the answer. The reads of a node are
//! recorded at the node (`recorder.rs`), after sharing with other nodes is resolved, so a replay does not depend on how
//! nodes interleaved. Everything that time decided is in the outcome: the ledger, the generated ids, the failure.

mod bytes;
mod values;
mod replies;
mod recorder;
mod cover;
mod model;
mod mask;
mod masking;
mod replayed_reads;
mod parts;
mod error;
mod sets;
mod prefix;
mod take;
mod load;
mod frozen_engine;
mod forced;
mod replay;
mod inside;
mod sample;
mod settings;
mod compare;
mod diff;
#[doc(hidden)]
pub mod decoders;

pub use compare::{ChangedRows, MovedRow};
pub use diff::{
    BeforeAfter, CaptureCounts, ChangedRequest, DiffOptions, Differ, Difference, Incomparable, Percentiles,
    ScoreShift,
};
pub use error::Error;
pub use inside::NodeRows;
pub use load::Capture;
pub use parts::{CapturedFailure, Outcome};
pub use prefix::captures_with_prefix;
pub use replay::{ReplayResult, Replayer};
pub use sample::{SampleCounts, Sampler, Sampling};
pub use sets::{Members, capture_sets, captures};
pub use take::{UnsavedCapture, capture, run_recorded};
