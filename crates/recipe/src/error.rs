//! Errors, grouped by the caller's possible reaction.

use std::fmt;

use anabranch_content::{Address, RemovalRecord};
use anabranch_engine::admission::Refused;
use anabranch_engine::retry::Classified;

use crate::executor::{SHORT_ADDRESS_LEAST, is_short_address};
use crate::function::Fault;
use crate::recipe::{FunctionId, MalformedRecipe};

/// An error of the executor. It is cheap to clone, because one failed call may fail many callers.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address is unknown.
    #[error("{address} is neither a blob nor a recipe here{}{}", ReaderNote(*.needed_by), RemovalNote(*.gone))]
    NotFound {
        /// The address.
        address: Address,
        /// The recipe that reads it, if another recipe was requested.
        needed_by: Option<Address>,
        /// The reason for its removal, if it existed before.
        gone: Option<RemovalRecord>,
    },
    /// An address is known, but not as a recipe.
    #[error("{address} is not a recipe")]
    NotARecipe {
        /// The address.
        address: Address,
    },
    /// The name is unknown, and no address begins with it.
    #[error("nothing is named {name:?}, and {}", AddressNote(.name))]
    NoSuchName {
        /// The name.
        name: String,
    },
    /// Several addresses begin with these digits.
    #[error("{prefix:?} is the beginning of several addresses: {}; give more digits", AddressList(.matches))]
    Ambiguous {
        /// The digits.
        prefix: String,
        /// The addresses, or the first of them.
        matches: Vec<Address>,
    },
    /// A path does not exist inside a folder.
    #[error("{target}:{path}: {problem}")]
    NotInside {
        /// The folder, as the caller named it.
        target: String,
        /// The path inside.
        path: String,
        /// The point where the path fails, and a hint.
        problem: String,
    },
    /// A recipe names an unknown function.
    #[error("function `{function}` is not known here{}", SimilarFunction(.near))]
    NoSuchFunction {
        /// The function.
        function: FunctionId,
        /// A function with a similar name.
        near: Option<FunctionId>,
    },
    /// The input is not a valid recipe.
    #[error(transparent)]
    Malformed(#[from] MalformedRecipe),
    /// A function failed on its inputs or parameters.
    #[error("`{function}` of {address:?} failed: {fault}")]
    Function {
        /// The recipe.
        address: Address,
        /// Its function.
        function: Box<FunctionId>,
        /// The reason.
        #[source]
        fault: Fault,
    },
    /// A function panicked.
    #[error("`{function}` of {address:?} panicked: {message}")]
    Panicked {
        /// The recipe.
        address: Address,
        /// Its function.
        function: Box<FunctionId>,
        /// Its message.
        message: String,
    },
    /// A limit of the executor's configuration is exceeded.
    #[error("{what}: more than {most}; {way_out}")]
    TooMany {
        /// The items of which there are too many.
        what: &'static str,
        /// The bound.
        most: u64,
        /// A hint to the caller.
        way_out: &'static str,
    },
    /// A value was removed repeatedly while it was needed.
    #[error(
        "the value {address} was lost {rounds} times while it was needed: it was damaged or collected; `scrub` finds \
         damage, and a pin keeps it from being collected"
    )]
    Lost {
        /// The address of the value.
        address: Address,
        /// The number of times the get started over.
        rounds: u32,
    },
    /// The deadline passed.
    #[error("the deadline passed before the value was computed")]
    Deadline,
    /// The executor accepts no more work at present.
    #[error(transparent)]
    Refused(Refused),
    /// The executor was shut down.
    #[error("the executor was stopped")]
    Stopped,
    /// A blocking call was made from async code, where it would block other tasks.
    #[error("a blocking call was made from async code; use the async call there")]
    InsideRuntime,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] anabranch_content::Error),
}

impl Error {
    /// Whether the same call may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            Error::Function { fault, .. } => matches!(fault, Fault::Transient(_) | Fault::Stopped),
            Error::Lost { .. } | Error::Deadline | Error::Refused(_) | Error::Stopped => true,
            Error::Store(error) => error.is_transient(),
            _ => false,
        }
    }
}

/// The defaults apply, because the executor itself retries where that helps.
impl Classified for Error {}

struct ReaderNote(Option<Address>);

impl fmt::Display for ReaderNote {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |by| write!(out, "; recipe {by} reads it"))
    }
}

struct RemovalNote(Option<RemovalRecord>);

impl fmt::Display for RemovalNote {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |gone| write!(out, "; it was {}", gone.why))
    }
}

struct AddressNote<'a>(&'a str);

impl fmt::Display for AddressNote<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_hex = !self.0.is_empty() && self.0.bytes().all(|digit| digit.is_ascii_hexdigit());
        match self.0.len() {
            _ if is_short_address(self.0) => out.write_str("no address here begins with it"),
            digits @ 65.. if is_hex => {
                write!(out, "it is not an address, which has 64 hex digits, not {digits}")
            }
            _ => {
                write!(out, "it is not an address: 64 hex digits, or its first {SHORT_ADDRESS_LEAST} or more")
            }
        }
    }
}

struct AddressList<'a>(&'a [Address]);

impl fmt::Display for AddressList<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, address) in self.0.iter().enumerate() {
            write!(out, "{}{address}", if at == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

struct SimilarFunction<'a>(&'a Option<FunctionId>);

impl fmt::Display for SimilarFunction<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(near) => write!(out, "; did you mean `{near}`?"),
            None => Ok(()),
        }
    }
}
