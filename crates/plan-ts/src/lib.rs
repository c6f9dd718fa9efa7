//! Plans written in TypeScript, compiled to plan JSON without Node.
//!
//! A `*.plan.ts` file and what it imports are parsed; types are blanked in place, and operators are lifted into calls,
//! so that `Key.id * 2` makes an expression where JavaScript would make a number. What is left is plain JavaScript,
//! which runs once, in a process of its own that can reach nothing, and describes a plan. The description is checked
//! against the registries as plan JSON is, and everything wrong is told with its place in the source.
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
pub use compiler::{Built, Compiler, Outcome};
pub use folder::{BUILT, LoadedPlan, SOURCE, import_root, plan_files};
pub use sources::{Look, SourceFile, look};
pub use types::declarations;
pub use worker::serve;
