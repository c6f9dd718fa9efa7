//! Plans written in TypeScript, compiled to plan JSON without Node.
//!
//! A `*.plan.ts` file and its imports are parsed. Types are blanked in place, and operators are lifted into calls, so
//! that `Key.id * 2` makes an expression where JavaScript would make a number. The result is plain JavaScript, which
//! runs once, in its own process without any access, and describes a plan. The description is checked against the
//! registries like plan JSON, and all problems are reported with their location in the source.
//!
//! Reading order: the modules as listed.

mod job;
mod surface;
mod syntax;
mod sandbox;
mod make;
mod frames;
mod worker;
mod child;
mod sources;
mod assemble;
mod compiler;
mod folder;
mod types;
#[doc(hidden)]
pub mod fuzz;

pub use child::Worker;
pub use compiler::{CompiledPlan, Compiler, Outcome};
pub use folder::{BUILT, LoadedPlan, SOURCE, import_root, plan_files};
pub use sources::{Look, SourceFile, look};
pub use types::declarations;
pub use worker::serve;
