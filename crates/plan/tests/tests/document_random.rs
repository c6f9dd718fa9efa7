//! Whatever the text, plans and requests are read or refused; nothing panics.

use anabranch_plan::document::Document;
use anabranch_plan::op::Ops;
use anabranch_plan::{Problems, Registries, Request};
use proptest::prelude::*;

use crate::compat;

const KEYS: &str = "
    key = [
        { key_id = 1, name = 'id', type = 'int', nullable = false, allow_write = false },
        { key_id = 2001, name = 'final_score', type = 'float', nullable = true },
        { key_id = 3001, name = 'country', type = 'string', nullable = true },
    ]";
const PARAMS: &str = "param = [{ param_id = 1, name = 'weight', type = 'float', nullable = true }]";
const ENDPOINTS: &str = "endpoint = [{ endpoint_id = 'ep_0001', name = 'users', kind = 'redis', \
    resolver = { type = 'static', host = 'h', port = 1 } }]";

const PLAN: &str = r#"{
  "schema_version": 1, "plan_name": "feed",
  "nodes": [
    {"node_id":"n0","op":"core::viewer","inputs":[],"params":{"endpoint":"ep_0001","trace":null}},
    {"node_id":"n1","op":"core::follow","inputs":["n0"],"params":{"endpoint":"ep_0001","fanout":10,"trace":"src"}},
    {"node_id":"n2","op":"core::vm","inputs":["n1"],"params":{"expr_id":"e1","out_key":2001}},
    {"node_id":"n3","op":"core::filter","inputs":["n2"],"params":{"pred_id":"p0"}},
    {"node_id":"n4","op":"core::concat","inputs":["n3"],"params":{"rhs":"n1"},"extensions":{}},
    {"node_id":"n5","op":"core::take","inputs":["n4"],"params":{"count":5}}
  ],
  "outputs": ["n5"],
  "expr_table": {"e1":{"op":"mul","a":{"op":"key_ref","key_id":1},"b":{"op":"coalesce",
      "a":{"op":"param_ref","param_id":1},"b":{"op":"const_number","value":0.2}}}},
  "pred_table": {"p0":{"op":"cmp","cmp":">=","a":{"op":"key_ref","key_id":2001},"b":{"op":"const_number","value":0.6}}},
  "capabilities_required": [], "extensions": {}, "built_by": {"tool":"x"}
}"#;

const REQUEST: &str = r#"{"user_id":"017","request_id":"r","param_overrides":{"weight":0.5},"plan":"feed"}"#;

/// The values that may replace another value.
const PIECES: &[&str] = &[
    "",
    "null",
    "0",
    "-1",
    "1e400",
    "1.5",
    "[]",
    "{}",
    "\"\"",
    "\"n1\"",
    "\"n9\"",
    "true",
    ",",
    ":",
    "}",
    "]",
    "{",
    "[",
    "\"",
    "\\",
    "18446744073709551616",
    "9223372036854775808",
    "\u{0}",
    "é",
    "\"op\":",
    "\"inputs\":[\"n5\"]",
];

fn registries() -> Registries {
    let files = [("keys.toml", KEYS), ("params.toml", PARAMS), ("endpoints.dev.toml", ENDPOINTS)];
    Registries::parse(files, None).unwrap().0
}

fn read_plan(text: &str) {
    let mut problems = Problems::default();
    let document = Document::parse(text, &Ops::builtin(), &registries(), &mut problems);
    assert_eq!(document.is_some(), problems.is_fine(), "{text}");
    for problem in problems.errors {
        assert!(!problem.place.is_empty() && !problem.what.is_empty(), "{problem:?}");
    }
}

/// Replaces stretches between the marks that JSON has; `edits` are places and pieces.
fn mutated(text: &str, edits: &[(usize, usize, usize)]) -> String {
    let mut text = text.to_owned();
    for (at, len, piece) in edits {
        let marks: Vec<usize> = text
            .char_indices()
            .filter(|(_, character)| "{}[],:\"".contains(*character))
            .map(|(at, _)| at)
            .collect();
        if marks.is_empty() {
            return text;
        }
        let first = at % marks.len();
        let last = (first + len % 6).min(marks.len() - 1);
        text.replace_range(marks[first]..marks[last], PIECES[piece % PIECES.len()]);
    }
    text
}

fn edits() -> impl Strategy<Value = Vec<(usize, usize, usize)>> {
    prop::collection::vec((any::<usize>(), any::<usize>(), any::<usize>()), 1..6)
}

#[test]
fn the_plan_itself_is_fine() {
    let mut problems = Problems::default();
    Document::parse(PLAN, &Ops::builtin(), &registries(), &mut problems);
    assert!(problems.is_fine(), "{problems}");
}

proptest! {
    #[test]
    fn any_text_as_a_plan(text in "\\PC*") {
        read_plan(&text);
    }

    #[test]
    fn any_bytes_as_a_request(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Request::parse(bytes, &registries());
    }

    #[test]
    fn mutated_plans(edits in edits()) {
        read_plan(&mutated(PLAN, &edits));
    }

    #[test]
    fn mutated_requests(edits in edits()) {
        let _ = Request::parse(mutated(REQUEST, &edits), &registries());
    }

    #[test]
    fn mutated_registries(edits in edits()) {
        let keys = mutated(KEYS, &edits);
        let endpoints = mutated(ENDPOINTS, &edits);
        let _ = Registries::parse([("keys.toml", &*keys), ("endpoints.dev.toml", &*endpoints)], None);
    }

    #[test]
    fn mutated_plans_of_rankd(which in any::<prop::sample::Index>(), edits in edits()) {
        let plans = compat::plans("plans");
        if !plans.is_empty() {
            read_plan(&mutated(&which.get(&plans).1, &edits));
        }
    }
}
