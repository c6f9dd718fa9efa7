//! rankd's plans load, and those it rejects are refused with the place.

use anabranch_plan::document::Document;
use anabranch_plan::effects::plan_info;
use anabranch_plan::op::Ops;
use anabranch_plan::{Problems, Registries};
use expect_test::expect;

use crate::compat;

fn parse(text: &str) -> (Option<Document>, Problems, Registries) {
    let folder = compat::folder().unwrap().join("registry");
    let (registries, _) = Registries::load(&folder, None).unwrap();
    let mut problems = Problems::default();
    let document = Document::parse(text, &Ops::builtin(), &registries, &mut problems);
    (document, problems, registries)
}

#[test]
fn accepted() {
    for (name, text) in compat::plans("plans").into_iter().chain(compat::plans("perf")) {
        let (document, problems, _) = parse(&text);
        assert!(document.is_some(), "{name}: {problems}");
        assert!(problems.warnings.is_empty(), "{name}: {:?}", problems.warnings);
    }
}

#[test]
fn rejected() {
    let mut lines = String::new();
    for (name, text) in compat::plans("rejected") {
        // The widest fan-out is the registry's to say and the op's to check, once columns are known.
        if name == "large_fanout" {
            continue;
        }
        let (document, problems, _) = parse(&text);
        assert!(document.is_none(), "{name} is refused");
        for error in problems.errors {
            lines.push_str(&format!("{name}: {error}\n"));
        }
    }
    if !lines.is_empty() {
        expect![[r#"
            bad_engine_caps_unsorted: capabilities_required: `cap.z` is not supported: no such capability is registered
            bad_engine_caps_unsorted: capabilities_required: must be sorted, but `cap.a` comes after `cap.z`
            bad_engine_caps_unsorted: capabilities_required: `cap.a` is not supported: no such capability is registered
            bad_engine_ext_not_required: extensions.cap.some.other.capability.v1: the plan does not require this capability (add it to capabilities_required)
            bad_engine_node_ext_not_declared: node `n1` (core::follow), extensions.cap.rfc.0001.extensions_capabilities.v1: the plan does not require this capability (add it to capabilities_required)
            bad_engine_nonempty_payload: extensions.cap.rfc.0001.extensions_capabilities.v1: the payload may not have `smuggled_data`
            bad_engine_unknown_cap: capabilities_required: `cap.does.not.exist.v1` is not supported: no such capability is registered
            bad_pred_table_shape: pred_table.p0.op: unknown predicate op `wat` (there are const_bool, and, or, not, cmp, in, is_null, not_null, regex)
            bad_regex_flags: pred_table.p0.flags: must be "" or "i", not "gi"
            bad_trace_type: node `n1` (core::follow), trace: must be a string or null, not 123
            concat_bad_arity: node `n2` (core::concat), rhs: is missing; it must be the id of a node
            cycle: node `a` (core::take), inputs: the nodes form a circle: `a` needs `b` needs `a`
            extra_param: node `n1` (core::follow), limit: core::follow has no such parameter
            missing_input: node `n0` (core::take), inputs: there is no node `nonexistent`
            missing_pred_id: node `n2` (core::filter), pred_id: is missing; it must be the id of an entry of pred_table
        "#]].assert_eq(&lines);
    }
}

#[test]
fn info() {
    for (name, text) in compat::plans("plans") {
        if name == "reels_plan_a" {
            let (document, _, registries) = parse(&text);
            let info = plan_info(&document.unwrap(), &Ops::builtin(), &registries);
            expect![[r#"{"capabilities_digest":"","capabilities_required":[],"extensions":{},"nodes":[{"node_id":"n0","op":"core::viewer","writes_eval":{"keys":[3001],"kind":"Exact"}},{"node_id":"n1","op":"core::follow","writes_eval":{"keys":[3001],"kind":"Exact"}},{"node_id":"n2","op":"core::vm","writes_eval":{"keys":[2001],"kind":"Exact"}},{"node_id":"n3","op":"core::filter","writes_eval":{"keys":[],"kind":"Exact"}},{"node_id":"n4","op":"core::vm","writes_eval":{"keys":[2001],"kind":"Exact"}},{"node_id":"n5","op":"core::take","writes_eval":{"keys":[],"kind":"Exact"}}],"plan_name":"reels_plan_a"}"#]].assert_eq(&info.to_string());
        }
    }
}
