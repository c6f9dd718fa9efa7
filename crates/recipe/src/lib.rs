//! Content-addressed computation: a function, what it reads and its parameters make an address; what it comes to is
//! computed once.

mod recipe;
mod function;
mod registry;
mod drive;
mod functions;

pub use anabranch_content::{Address, Value};
pub use drive::call;
pub use function::{Arity, Call, Fault, Function, Holds, Kernel, Open, Out, Param, Signature};
pub use recipe::{CONTEXT, FunctionId, Malformed, Params, Recipe};
pub use registry::{Functions, check};
