//! The engine's tests. Start with `seeds`: what the engine promises, one test a promise.
#![allow(missing_docs, reason = "tests document themselves")]

mod script;

mod dag;
mod frontier;
mod judge;
mod run;
mod seeds;
mod sim;
