//! Runs rewritten code: its records, and its restrictions.

#![allow(clippy::needless_pass_by_value, reason = "an `expect!` is written where it is used")]

mod hostile;
mod records;

use std::fmt::Write as _;

use expect_test::Expect;

use super::{Program, ProgramOutput, Target, run};
use crate::job::{EndpointName, Job, Method};

/// A job with a few names.
fn job() -> Job {
    let method = |op: &str, namespace: &str, name: &str, input| Method {
        op: op.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        input,
        bare: false,
    };
    Job {
        keys: ["id", "score", "country"].map(str::to_owned).to_vec(),
        params: ["weight", "pattern"].map(str::to_owned).to_vec(),
        endpoints: vec![EndpointName { kind: "redis".into(), name: "users".into(), id: "ep_0001".into() }],
        methods: vec![
            method("core::viewer", "core", "viewer", false),
            method("core::filter", "core", "filter", true),
            method("core::take", "core", "take", true),
            method("core::vm", "core", "vm", true),
            method("core::concat", "core", "concat", true),
            method("test::fixed_source", "test", "fixedSource", false),
            method("test::sleep", "test", "sleep", true),
        ],
        time_ms: 60_000,
        memory: 16 << 20,
        ..Job::default()
    }
}

/// A job with little time, for code that does not end.
fn hasty() -> Job {
    Job { time_ms: 200, ..job() }
}

fn recorded(code: &str) -> ProgramOutput {
    recorded_of(&job(), code)
}

fn recorded_of(job: &Job, code: &str) -> ProgramOutput {
    let modules = [(0, code.to_owned())].into();
    let imports = [((0, "anabranch".to_owned()), Target::Package)].into();
    run(job, Program { modules, imports })
}

/// The result of code: faults, nodes, outputs; one per line.
fn told(recorded: &ProgramOutput) -> String {
    let mut text = String::new();
    for fault in &recorded.faults {
        let place = match (fault.site, &fault.option, fault.stack) {
            (Some(site), Some(option), _) => format!("site {site}, {option}"),
            (Some(site), None, _) => format!("site {site}"),
            (None, _, Some((file, line, column))) => format!("{file}:{line}:{column}"),
            (None, ..) => "nowhere".to_owned(),
        };
        let help = fault.help.as_ref().map(|help| format!(" ({help})")).unwrap_or_default();
        writeln!(text, "{place}: {}{help}", fault.what).unwrap();
    }
    if let Some(plan) = &recorded.plan {
        for node in &plan.nodes {
            writeln!(text, "{}{:?} {}", node.op, node.inputs, node.options).unwrap();
        }
        let named = |(node, name): &(u32, Option<String>)| match name {
            Some(name) => format!("{name}: {node}"),
            None => node.to_string(),
        };
        let outputs: Vec<String> = plan.outputs.iter().map(named).collect();
        writeln!(text, "{} -> [{}]", plan.options, outputs.join(", ")).unwrap();
        for (id, payload, _) in &plan.capabilities {
            writeln!(text, "requires {id} {payload}").unwrap();
        }
    }
    text
}

fn check(code: &str, expect: Expect) {
    expect.assert_eq(&told(&recorded(code)));
}

/// Checks code inside `build`, in which `rows` exists and is the answer.
fn check_inside(code: &str, expect: Expect) {
    let lines = "definePlan({ build(ctx) { let rows = ctx.test.fixedSource({});\n";
    expect.assert_eq(&told(&recorded(&format!("{lines}{code}\nreturn rows; }} }})"))));
}

/// Checks the expressions and predicates of values, or their first problem.
fn check_values(values: &[&str], expect: Expect) {
    let mut text = String::new();
    for value in values {
        let recorded = recorded(&format!("definePlan({{ v: {value}, build: (ctx) => ctx.viewer() }})"));
        let made = recorded.plan.as_ref().map(|plan| plan.options["v"].clone()).unwrap_or_default();
        let shown = match told(&recorded).lines().next() {
            Some(fault) if !recorded.faults.is_empty() => fault.to_owned(),
            _ => format!("{} {}", made["$"], made["ir"]).replace('"', ""),
        };
        writeln!(text, "{value}\n    {shown}").unwrap();
    }
    expect.assert_eq(&text);
}
