//! The names of ops and their options in TypeScript. The compiler, the sandbox and the type declarations all use this.

use anabranch_plan::op::{ParamKind, ParamSpec, Spec};

use crate::job::Method;

/// The packages that plans import from: ours, and the one that rankd's plans name.
pub(crate) const PACKAGES: [&str; 3] = ["anabranch", "@ranking-dsl/runtime", "@ranking-dsl/generated"];

/// The exports of the packages that are only types.
pub(crate) const TYPES: [&str; 11] = [
    "CandidateSet",
    "Context",
    "Expr",
    "Endpoint",
    "Plan",
    "AnyKey",
    "Column",
    "Param",
    "Fallback",
    "Json",
    "NodeOptions",
];

/// The namespace whose methods need no prefix.
pub(crate) const ROOT: &str = "core";

/// The default number of ids of each row's list that a fan-out follows.
pub(crate) const DEFAULT_FANOUT: i64 = 100;

/// Additional options that every op takes: the name here, and in plan JSON.
pub(crate) const UNIVERSAL: [(&str, &str); 6] = [
    ("id", "node_id"),
    ("trace", "trace"),
    ("extensions", "extensions"),
    ("timeoutMs", "timeout_ms"),
    ("fallback", "fallback"),
    ("range", "range"),
];

/// The method name of an op.
pub(crate) fn method(spec: &Spec) -> Method {
    let (namespace, name) = spec.name.split_once("::").unwrap_or((ROOT, spec.name));
    Method {
        op: spec.name.to_owned(),
        namespace: namespace.to_owned(),
        name: camel(name),
        input: spec.inputs > 0,
        bare: spec.params.iter().all(|param| !is_required(spec, param)),
    }
}

/// The option name of a parameter: `expr_id` is `expr`, `out_key` is `outKey`.
pub(crate) fn option(param: &ParamSpec) -> String {
    match param.kind {
        ParamKind::Expr | ParamKind::Pred => camel(param.name.strip_suffix("_id").unwrap_or(param.name)),
        _ => camel(param.name),
    }
}

/// Another name of the same option, if it has one: `by` is also called `key`.
pub(crate) fn alias(spec: &Spec, param: &ParamSpec) -> Option<&'static str> {
    let taken = || spec.params.iter().any(|other| other.name == "key");
    let names_keys = matches!(param.kind, ParamKind::Key | ParamKind::SortKeys);
    (param.name == "by" && names_keys && !taken()).then_some("key")
}

/// The default of an option that plan JSON requires.
pub(crate) fn default(spec: &Spec, param: &ParamSpec) -> Option<i64> {
    let fans_out = param.name == "fanout" || (spec.name == "core::fanout" && param.name == "limit");
    (fans_out && matches!(param.kind, ParamKind::Int(..))).then_some(DEFAULT_FANOUT)
}

/// True if an option must be given.
pub(crate) fn is_required(spec: &Spec, param: &ParamSpec) -> bool {
    param.required && default(spec, param).is_none()
}

/// `group_limit` as `groupLimit`.
pub(crate) fn camel(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut upper = false;
    for letter in name.chars() {
        match letter {
            '_' => upper = true,
            letter if upper => {
                out.extend(letter.to_uppercase());
                upper = false;
            }
            letter => out.push(letter),
        }
    }
    out
}
