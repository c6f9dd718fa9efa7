//! What can go wrong, by what a caller can do about it.

use std::fmt;

use anabranch_content::{Address, Gone};
use anabranch_engine::admission::Refused;
use anabranch_engine::retry::Classified;

use crate::executor::{SHORT_ADDRESS_LEAST, is_short_address};
use crate::function::Fault;
use crate::recipe::{FunctionId, Malformed};

/// An error of the executor. Cheap to clone: one failed call may be many callers' error.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing is known under an address.
    #[error("{address} is neither a blob nor a recipe here{}{}", For(*.needed_by), Went(*.gone))]
    NotFound {
        /// The address.
        address: Address,
        /// The recipe that reads it, if that was asked for.
        needed_by: Option<Address>,
        /// What became of it, if it was there once.
        gone: Option<Gone>,
    },
    /// An address is known, but not as a recipe.
    #[error("{address} is not a recipe")]
    NotARecipe {
        /// The address.
        address: Address,
    },
    /// Nothing has this name, and no address begins with it.
    #[error("nothing is named {name:?}, and {}", NotAnAddress(.name))]
    NoSuchName {
        /// The name.
        name: String,
    },
    /// Several addresses begin with these digits.
    #[error("{prefix:?} is the beginning of several addresses: {}; give more digits", Listed(.matches))]
    Ambiguous {
        /// The digits.
        prefix: String,
        /// The addresses, or the first of them.
        matches: Vec<Address>,
    },
    /// A path leads to nothing inside of a folder.
    #[error("{target}:{path}: {problem}")]
    NotInside {
        /// The folder, as the caller named it.
        target: String,
        /// The path inside.
        path: String,
        /// Where the path ends, and what to do.
        problem: String,
    },
    /// A recipe names a function that is not here.
    #[error("function `{function}` is not known here{}", Near(.near))]
    NoSuchFunction {
        /// The function.
        function: FunctionId,
        /// One with nearly this name.
        near: Option<FunctionId>,
    },
    /// Something is not a recipe that can be kept.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// A function refused what it was given.
    #[error("`{function}` of {address:?} failed: {fault}")]
    Function {
        /// The recipe.
        address: Address,
        /// Its function.
        function: Box<FunctionId>,
        /// Why.
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
        /// What it said.
        message: String,
    },
    /// There is more of something than the executor was set up for.
    #[error("{what}: more than {most}; {way_out}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// The bound.
        most: u64,
        /// What can be done.
        way_out: &'static str,
    },
    /// A value went away again and again while it was needed.
    #[error(
        "the value {address} was lost {rounds} times while it was needed: it was damaged or collected; `scrub` finds \
         damage, and a pin keeps it from being collected"
    )]
    Lost {
        /// Whose value.
        address: Address,
        /// How often everything was begun anew.
        rounds: u32,
    },
    /// The deadline passed.
    #[error("the deadline passed before the value was there")]
    Deadline,
    /// The executor takes no more work now.
    #[error(transparent)]
    Refused(Refused),
    /// The executor was shut down.
    #[error("the executor was stopped")]
    Stopped,
    /// A blocking call was made where other tasks would have to wait for it.
    #[error("a blocking call was made from async code; use the async call there")]
    InsideRuntime,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] anabranch_content::Error),
}

impl Error {
    /// Whether the same call may succeed later.
    pub fn is_passing(&self) -> bool {
        match self {
            Error::Function { fault, .. } => matches!(fault, Fault::Passing(_) | Fault::Stopped),
            Error::Lost { .. } | Error::Deadline | Error::Refused(_) | Error::Stopped => true,
            Error::Store(error) => error.is_passing(),
            _ => false,
        }
    }
}

/// The executor tries again itself where that helps.
impl Classified for Error {}

struct For(Option<Address>);

impl fmt::Display for For {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |by| write!(out, "; recipe {by} reads it"))
    }
}

struct Went(Option<Gone>);

impl fmt::Display for Went {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |gone| write!(out, "; it was {}", gone.why))
    }
}

struct NotAnAddress<'a>(&'a str);

impl fmt::Display for NotAnAddress<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match is_short_address(self.0) {
            true => out.write_str("no address here begins with it"),
            false => {
                write!(out, "it is not an address: 64 hex digits, or its first {SHORT_ADDRESS_LEAST} or more")
            }
        }
    }
}

struct Listed<'a>(&'a [Address]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, address) in self.0.iter().enumerate() {
            write!(out, "{}{address}", if at == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

struct Near<'a>(&'a Option<FunctionId>);

impl fmt::Display for Near<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(near) => write!(out, "; did you mean `{near}`?"),
            None => Ok(()),
        }
    }
}
