//! Looks into ranking plans and their requests.
//!
//! - [`explain`](explain()) shows what a plan will do: its nodes, stages, trips and guards.
//! - [`run_traced`] answers a request and shows where its time went.
//! - [`why`](why()) explains why a row is in an answer, or is not.
//! - [`capture`](capture()) keeps a request with everything it read, so that a [`Replayer`](capture::Replayer) answers it
//!   again elsewhere, the same to the byte; a [`Sampler`](capture::Sampler) captures some of the requests of a service.
//! - A [`Differ`](capture::Differ) replays captures through two plans and compares their answers.
//!
//! All of it uses `anabranch_plan::inspect`; the plan crate itself does not depend on it.

pub mod explain;
pub mod trace;
pub mod why;
pub mod capture;

pub use capture::capture;
pub use explain::{Explanation, explain};
pub use trace::{Trace, inspect_traced, run_traced};
pub use why::{Why, why};
