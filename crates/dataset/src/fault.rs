//! The fault of a cell.

use std::borrow::Cow;
use std::fmt;

use anabranch_engine::retry::{Classified, Severity};

/// The reason why a cell has no value.
#[derive(Clone, Debug)]
pub struct Fault {
    /// The class of the error in the errors table: a short lower-case word such as `template`, `timeout`,
    /// `rate_limited`, `reply_format`.
    pub class: Cow<'static, str>,
    pub message: String,
    /// Whether a retry may help.
    pub severity: Severity,
    /// The number of calls or attempts that were made, at least 1.
    pub attempts: u32,
    /// The column that failed, for a generator that fills several. Default: its first one.
    pub column: Option<String>,
}

impl Fault {
    /// An error that a retry does not mend.
    pub fn permanent(class: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Fault {
        Fault {
            class: class.into(),
            message: message.into(),
            severity: Severity::Permanent,
            attempts: 1,
            column: None,
        }
    }

    /// An error that a retry may mend.
    pub fn transient(class: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Fault {
        Fault { severity: Severity::Transient, ..Fault::permanent(class, message) }
    }

    /// True if the call was not made because the build's budget is spent.
    pub(crate) fn is_withheld(&self) -> bool {
        self.class == "budget"
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class, self.message)
    }
}

impl std::error::Error for Fault {}

impl Classified for Fault {
    fn severity(&self) -> Severity {
        self.severity
    }
}
