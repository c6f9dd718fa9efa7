//! What the plan crate does, seen from outside.

#![allow(clippy::needless_pass_by_value, reason = "an `expect!` is written where it is used")]
#![allow(clippy::unwrap_used, reason = "tests stop at the first surprise")]

mod compat;
mod registry;
mod document;
mod document_compat;
mod document_random;
mod effects;
mod request;
mod answer;
mod project;
mod expr_world;
mod expr_naive;
mod expr_random;
mod expr_rules;
mod expr_errors;
mod ops;
mod bounds;
mod files;
mod given;
mod topk;
mod dedupe;
mod group_limit;
mod union;
mod join;
mod model;
mod naive;
mod own_golden;
mod requests_doc;
mod why;
mod ends;
mod admission;
mod deadlines;
mod trouble;
mod guards;
mod stand_ins;
mod real_time;
mod golden;
mod sources;
mod memory;
mod redis;
mod redis_writes;
mod capture;
mod inside;
mod hostile;
mod sampling;
mod diff;
mod cluster;
mod http;
mod agree;
mod hedge;
mod hedge_redis;
