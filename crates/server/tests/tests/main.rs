//! A real client against a real listener.

mod support;
mod deriva;
mod deriva_wire;
mod http;
mod recipes;
mod seed;
mod serving;
