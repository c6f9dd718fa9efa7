//! A real client against a real listener.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod support;
mod access;
mod aliases;
mod depth;
mod deriva;
mod deriva_wire;
mod generated;
mod graphs;
mod guard;
mod http;
mod load;
mod observed;
mod openapi;
mod recipes;
mod seed;
mod serving;
mod stalls;
mod tls;
