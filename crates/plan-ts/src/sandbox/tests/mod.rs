//! Rewritten code, run: what it records, and what it cannot do.

use super::{Program, Recorded, run};
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
        time_ms: 200,
        memory: 16 << 20,
        ..Job::default()
    }
}

fn recorded(code: &str) -> Recorded {
    let modules = [(0, code.to_owned())].into();
    run(&job(), Program { modules, ..Program::default() })
}

#[test]
fn first() {
    let r = recorded(
        "definePlan(__ab_at(0, {name: 'x', build: (ctx) => ctx.viewer(__ab_at(1, {endpoint: __ab_get(3, __ab_get(2, EP, 'redis'), 'users')}))\n.vm({expr: __ab_op(4, '*', __ab_get(5, Key, 'id'), 2)}).fliter({})}))\n",
    );
    for f in &r.faults {
        println!("{} {:?} {:?} {:?}", f.what, f.help, f.site, f.stack);
    }
    println!("{}", serde_json::to_string_pretty(&r.plan).unwrap());
    panic!();
}
