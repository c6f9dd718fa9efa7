//! Any text as a plan: for the fuzzers in `fuzz/`, and for the tests that run the same function on a stable compiler.

use std::sync::LazyLock;

use anabranch_plan::op::Ops;
use serde_json::Value;

use crate::job::{At, EndpointName, Files, ImportResolution, Job, JobOutput};
use crate::make::make;
use crate::surface;

static JOB: LazyLock<Job> = LazyLock::new(|| Job {
    keys: ["id", "score", "country"].map(str::to_owned).to_vec(),
    params: ["weight"].map(str::to_owned).to_vec(),
    endpoints: vec![EndpointName {
        kind: "redis".into(),
        name: "redis_default".into(),
        id: "ep_0001".into(),
    }],
    methods: Ops::builtin().iter().map(|op| surface::method(op.spec())).collect(),
    time_ms: 100,
    memory: 16 << 20,
    file: "any.plan.ts".to_owned(),
    text: String::new(),
});

/// Makes a plan of any text. Panics if the result contains an invalid reference.
pub fn any(text: &str) {
    let made = make(&Job { text: text.to_owned(), ..JOB.clone() }, &mut NoFiles);
    let is_in = |at: &At| at.file == 0 && at.start <= at.end && at.end as usize <= text.len();
    assert!(made.faults.iter().all(|fault| fault.at.as_ref().is_none_or(is_in)), "a fault is nowhere");
    for site in &made.sites {
        let options = site.options.iter().flat_map(|(_, name, value)| [name, value]);
        assert!(options.chain([&site.at]).all(is_in), "a site is nowhere");
    }
    references(&made);
}

/// Checks that every number in a plan refers to a node or a site.
fn references(made: &JobOutput) {
    let Some(plan) = &made.plan else { return };
    assert!(
        !plan.outputs.is_empty() || !made.faults.is_empty(),
        "a plan without outputs, and nobody said so"
    );
    let is_site = |site: u64| (site as usize) < made.sites.len();
    for (at, node) in plan.nodes.iter().enumerate() {
        assert!(node.inputs.iter().all(|&input| (input as usize) < at), "an input comes later");
        assert!(node.site.is_none_or(|site| is_site(site.into())), "a node is at no site");
        sites_in(&node.options, &is_site);
    }
    assert!(
        plan.outputs.iter().all(|(output, _)| (*output as usize) < plan.nodes.len()),
        "an output is no node"
    );
}

fn sites_in(value: &Value, is_site: &dyn Fn(u64) -> bool) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| sites_in(item, is_site)),
        Value::Object(fields) => {
            let is_expr = fields.contains_key("op");
            let at = fields.get("at").filter(|_| is_expr).and_then(Value::as_u64);
            assert!(at.is_none_or(is_site), "an expression is at no site");
            fields.values().for_each(|field| sites_in(field, is_site));
        }
        _ => {}
    }
}

struct NoFiles;

impl Files for NoFiles {
    fn import(&mut self, _from: u32, specifier: &str) -> ImportResolution {
        ImportResolution::Refused { what: format!("there is no file `{specifier}`"), help: None }
    }
}
