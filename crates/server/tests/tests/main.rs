//! A real client against a real listener.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod support;
mod aliases;
mod console;
mod depth;
mod deriva;
mod deriva_wire;
mod generated;
mod graphs;
mod guard;
mod http;
mod plans;
mod plans_change;
mod plans_grpc;
mod recipes;
mod runs;
mod seed;
mod serving;
mod stalls;
