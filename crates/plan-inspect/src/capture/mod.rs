//! Captures: a request with all that its answer came from, so that it can be answered again elsewhere, the same to the
//! byte.
//!
//! ```text
//! capture = plan, registries, files that the plan names         shared by many captures, stored once
//!         + request, replies of sources, outcome, answer        its own
//! ```
//!
//! Each part is a blob; a capture is a derivation that reads them, and its memo is the answer. What a node read is
//! recorded where it reads (`recorder.rs`), after what it shares with other nodes was sorted out, so a replay
//! does not depend on how nodes interleaved. What time decided is in the outcome: the ledger, the names that were
//! made up, the failure.

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
