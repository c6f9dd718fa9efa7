//! The messages between the process that requests a plan and the process that makes it: names and sources in one
//! direction, calls and locations in the other.
//!
//! The maker runs unchecked code in a process of its own, and its answer is data that is checked in full.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The job.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Job {
    /// The names of registered keys.
    pub(crate) keys: Vec<String>,
    /// The names of registered parameters.
    pub(crate) params: Vec<String>,
    /// The registered endpoints.
    pub(crate) endpoints: Vec<EndpointName>,
    /// The ops, as methods.
    pub(crate) methods: Vec<Method>,
    /// The CPU time that the code may use.
    pub(crate) time_ms: u64,
    /// The memory limit in bytes.
    pub(crate) memory: usize,
    /// The name of the first file, for messages of the code itself.
    pub(crate) file: String,
    /// Its text.
    pub(crate) text: String,
}

/// An endpoint as plans call it: `EP.redis.redis_default`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct EndpointName {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) id: String,
}

/// An op as a method: of the context if it takes no input, else of rows.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Method {
    /// `core::group_limit`.
    pub(crate) op: String,
    /// `core`, whose methods are also there without it.
    pub(crate) namespace: String,
    /// `groupLimit`.
    pub(crate) name: String,
    /// True if it takes rows.
    pub(crate) input: bool,
    /// True if it may be called without options.
    pub(crate) bare: bool,
}

/// A source of imported files.
pub(crate) trait Files {
    /// The file that file number `from` imports as `specifier`; the first file is number 0.
    fn import(&mut self, from: u32, specifier: &str) -> ImportResolution;
}

/// The resolution of an import.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum ImportResolution {
    /// This file, with its text when it is requested for the first time.
    File { number: u32, name: String, text: Option<String> },
    /// There is no such file, with the reason and advice.
    Refused { what: String, help: Option<String> },
}

/// Bytes of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct At {
    /// Its number.
    pub(crate) file: u32,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// A place in the sources that the running code knows by its number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Site {
    /// The expression; of a call of an op, its name.
    pub(crate) at: At,
    /// If it is a call with options written out: their names, where the names are, and where the values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) options: Vec<(String, At, At)>,
}

/// The output of a job: the plan, or the faults of its sources.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct JobOutput {
    pub(crate) faults: Vec<Fault>,
    /// The plan, unless the code did not get so far.
    pub(crate) plan: Option<PlanRecord>,
    pub(crate) sites: Vec<Site>,
    /// The lines that the code printed, and where.
    pub(crate) printed: Vec<(Option<At>, String)>,
}

/// Something wrong with the sources.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fault {
    pub(crate) what: String,
    pub(crate) help: Option<String>,
    /// The location. The default is the first file as a whole.
    pub(crate) at: Option<At>,
}

/// A plan as the code described it.
///
/// Values of options are JSON, but for objects with a field `$`:
/// - `{"$": "expr", "ir": ..}`, `{"$": "pred", "ir": ..}`: entries of `expr_table` and `pred_table`, with names
///   instead of numbers (`key`, `param`) and the number of a site in `at`. A bare key is an `expr`, too.
/// - `{"$": "endpoint", "id": ..}`, `{"$": "node", "node": number}`.
/// - `{"$": "bad"}`: a part with a reported fault.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct PlanRecord {
    /// The arguments of `definePlan`, except `build`.
    pub(crate) options: Value,
    /// The call of `definePlan`.
    pub(crate) site: Option<u32>,
    pub(crate) nodes: Vec<NodeRecord>,
    /// The nodes whose rows are the answer, with their names if they have one.
    pub(crate) outputs: Vec<(u32, Option<String>)>,
    /// The capabilities that the plan requires, their payloads, and their calls.
    pub(crate) capabilities: Vec<(String, Value, Option<u32>)>,
}

/// A call of an op.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct NodeRecord {
    pub(crate) op: String,
    pub(crate) inputs: Vec<u32>,
    pub(crate) options: Value,
    pub(crate) site: Option<u32>,
}

impl Fault {
    /// Something wrong there.
    pub(crate) fn new(at: At, what: impl Into<String>) -> Fault {
        Fault { what: what.into(), help: None, at: Some(at) }
    }

    /// Something wrong there, if that is known.
    pub(crate) fn maybe(at: Option<At>, what: impl Into<String>) -> Fault {
        Fault { what: what.into(), help: None, at }
    }

    /// Adds advice.
    pub(crate) fn help(self, help: impl Into<String>) -> Fault {
        Fault { help: Some(help.into()), ..self }
    }
}
