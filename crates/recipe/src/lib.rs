//! Content-addressed computation: a function, what it reads and its parameters make an address; what it comes to is
//! computed once.

mod recipe;
mod function;
mod whole;
mod registry;
mod drive;
mod functions;
mod error;
mod events;
mod status;
mod executor;
mod closure;
mod run;
mod execute;
mod chain;
mod get;
mod invalidate;
mod deriva;
mod blocking;
mod file;

pub use anabranch_content::{Address, Value};
pub use blocking::Blocking;
pub use deriva::{Deriva, Theirs};
pub use drive::call;
pub use error::Error;
pub use events::{Event, Heard, Listener};
pub use executor::{Added, Config, Draft, Executor, Ref, UnknownFunction};
pub use file::{
    FileBlob, FileBytes, FileFormat, FileInput, FileProblem, FileProblems, FileRecipe, RecipeFile,
};
pub use function::{Arity, Call, Chunks, Fault, Function, Holds, Kernel, Open, Out, Param, Signature};
pub use get::{Get, Got, Source};
pub use invalidate::{Invalidate, Invalidated, Reach};
pub use recipe::{CONTEXT, FunctionId, Malformed, Params, Recipe};
pub use registry::{Functions, check, check_call};
pub use status::Status;
