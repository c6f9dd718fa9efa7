//! The errors of taking, reading and replaying captures.

use anabranch_content as content;
use anabranch_content::Address;
use anabranch_text::Problems;

use super::parts::CapturedFailure;
use anabranch_plan::Error as PlanError;

/// The reason why a capture cannot be taken, read or replayed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The store failed.
    #[error("the store of captures failed")]
    Store(#[from] content::Error),
    /// The request read too much.
    #[error("the request read {bytes} bytes, and a capture may have {most}; it was not kept")]
    TooLarge {
        /// The bytes that it read.
        bytes: usize,
        /// The bytes that a capture may have.
        most: usize,
    },
    /// There is no capture under this address.
    #[error("{address} is no capture of this store")]
    NoCapture {
        /// The address.
        address: Address,
    },
    /// A part of the capture is not in the store.
    #[error("the {part} of capture {address} is not in the store")]
    Missing {
        /// The capture.
        address: Address,
        /// The part.
        part: &'static str,
    },
    /// A part of the capture was written by a later version.
    #[error("the {part} of capture {address} has version {version}; this program reads version 1")]
    Newer {
        /// The capture.
        address: Address,
        /// The part.
        part: &'static str,
        /// Its version.
        version: i64,
    },
    /// A part of the capture cannot be read.
    #[error("the {part} of capture {address} cannot be read: {what}")]
    Damaged {
        /// The capture.
        address: Address,
        /// The part.
        part: &'static str,
        /// The problem.
        what: String,
    },
    /// The registries of the capture do not load here.
    #[error("the registries of the capture do not load: {0}")]
    Registries(Problems),
    /// The plan does not load here.
    #[error("the plan does not load with the registries of the capture: {0}")]
    Plan(Box<PlanError>),
    /// The captured request has no answer.
    #[error("capture {address} has no answer: the request failed when it was captured")]
    CapturedFailure {
        /// The capture.
        address: Address,
        /// The error it failed with.
        #[source]
        cause: CapturedFailure,
    },
    /// The captured request does not end now as it did then.
    #[error("capture {address} does not end now as it did then; `plan replay` shows both")]
    Changed {
        /// The capture.
        address: Address,
    },
    /// The captured plan has no such node.
    #[error("plan `{plan}` of the capture has no node `{node}` that runs; there are: {}", known.join(", "))]
    NoNode {
        /// The plan.
        plan: String,
        /// The node.
        node: String,
        /// The plans that run.
        known: Vec<String>,
    },
    /// A node has no rows for the captured request.
    #[error(
        "node `{node}` has no rows for this request: it failed, was not got to or given up with its region, an `if` \
         went the other way, or it is a fallback that was not needed"
    )]
    NoRows {
        /// The node.
        node: String,
    },
    /// There is no such set.
    #[error("there is no set of captures `{set}`{}", KnownSets(known))]
    NoSet {
        /// The set.
        set: String,
        /// The names that exist.
        known: Vec<String>,
    },
    /// The name is not valid for a set of captures.
    #[error("a set of captures cannot be called {set:?}: 1 to 100 letters, digits, `_`, `-` or `.`")]
    SetName {
        /// The name.
        set: String,
    },
}

struct KnownSets<'a>(&'a [String]);

impl std::fmt::Display for KnownSets<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            [] => f.write_str("; the store has none"),
            known => write!(f, "; there are: {}", known.join(", ")),
        }
    }
}
