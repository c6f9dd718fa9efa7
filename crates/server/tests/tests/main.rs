//! A real client against a real listener.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod support;
mod access;
mod aliases;
mod arrival;
mod console;
mod datasets;
mod depth;
mod deriva;
mod deriva_wire;
mod generated;
mod graphs;
mod guard;
mod http;
mod late;
mod load;
mod metrics;
mod observed;
mod one_engine;
mod openapi;
mod plans;
mod plans_change;
mod plans_grpc;
mod random_calls;
mod random_requests;
mod random_values;
mod recipes;
mod room;
mod runs;
mod seed;
mod serving;
mod stalls;
mod tls;
mod traced;
