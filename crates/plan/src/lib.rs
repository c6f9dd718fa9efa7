//! Ranking plans: rows from sources, expressions, filters and sorts, answered in time.
//!
//! Reading order: the modules as listed.

mod problem;
mod json;
mod toml_text;
mod fields;
mod value;
mod schema;
mod registry;
mod document;
mod expr;
mod source;
mod call;
mod error;
mod op;
mod ops;
mod effects;
mod request;
mod answer;
mod project;
mod compiled;
mod planner;
mod run;
mod engine;
mod setup;
mod explain;
mod traced;

pub use answer::{Answer, Candidate, LedgerEntry, RequestId, Stats};
pub use call::{Call, Tally};
pub use document::{Document, DocumentNode};
pub use effects::{Gamma, WritesEval, plan_info, writes_of};
pub use engine::{Config, Engine, Plan, RunOptions};
pub use error::{Error, OpError};
pub use explain::Explanation;
pub use op::{
    Arg, Build, Choice, Compute, Contract, Demand, Effect, Form, Inputs, Mark, Node, Op, Ops, ParamKind,
    ParamSpec, Planned, RowsNeeded, Sources, Spec, Started, Takes, Wait, WaitFuture,
};
pub use problem::{Problem, Problems, closest};
pub use project::{DataFile, EndpointSettings, EngineSettings, FaultSettings, Project, SourceSettings, Url};
pub use registry::{
    Capability, Endpoint, EndpointKind, Endpoints, Feature, KeyEntry, KeyKind, Keys, Limits, ParamEntry,
    Params, Payload, PayloadType, Registries, Status,
};
pub use request::{Request, RequestError};
pub use schema::{KeySet, Schema};
pub use setup::{RowsFrom, Setup};
pub use traced::Trace;
pub use value::{Scalar, Values};

/// Where rows come from.
pub mod sources {
    pub use crate::source::*;
}

/// What plans will do.
pub mod explained {
    pub use crate::explain::*;
}

/// Expressions and predicates.
pub mod exprs {
    pub use crate::expr::*;
}
