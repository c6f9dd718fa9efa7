//! `core::fanout`: rows that others point to, from any store and key.

use anabranch_rows::{Key, Kind};

use super::fetch::{self, FanOut};
use super::fields::Fields;
use super::pattern;
use crate::op::{Contract, Effect, Mark, Node, NodePlan, Op, ParamKind, ParamSpec, Spec};
use crate::schema::Schema;
use crate::source::{Pattern, Read};

pub(super) struct Fanout;

static SPEC: Spec = Spec {
    name: "core::fanout",
    doc: "The ids on the list whose key a pattern makes of each row, and fields of theirs.",
    inputs: 1,
    params: &[
        ParamSpec::required("endpoint", ParamKind::Endpoint(None), "where the lists are kept"),
        ParamSpec::required("key", ParamKind::Text, "the key of a row's list, as in `follow:{id}`"),
        ParamSpec::required("limit", ParamKind::Int(1, u32::MAX as i64), "the most ids of a list"),
        ParamSpec::optional(
            "kind",
            ParamKind::Choice(&["list", "scored"]),
            "a list, or a sorted set from its highest score down; `list` if not given",
        ),
        ParamSpec::optional("score_key", ParamKind::Key, "the float column for the scores"),
        ParamSpec::optional(
            "parent_key",
            ParamKind::Key,
            "the int column for the id of the row it came from",
        ),
        ParamSpec::optional("fields", ParamKind::Json, "fields of the new rows, as for core::lookup"),
        ParamSpec::optional("fields_key", ParamKind::Text, "the key of a new row's hash, as in `user:{id}`"),
    ],
    writes: Effect::Unknown,
    contract: Contract::Dense,
    mark: Mark::Auto,
    distinct: false,
};

impl Op for Fanout {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
        let list = pattern(node, "key", node.input(0));
        let limit = fetch::width(node, "limit");
        let scored = node.text("kind") == Some("scored");
        let score = column(node, "score_key", Kind::Float);
        if score.is_some() && !scored {
            node.problem_with_help(
                "score_key",
                "lists have no scores",
                "`kind: \"scored\"` reads sorted sets",
            );
        }
        let parent = column(node, "parent_key", Kind::Int);
        let fields = Fields::parse(node, "fields");
        let mut schema = Schema::default();
        let own = score.map(|key| (key, Kind::Float)).into_iter().chain(parent.map(|key| (key, Kind::Int)));
        own.for_each(|(key, kind)| schema.add(key, kind));
        let fields_at = fields_at(node, &fields, &schema);
        for (key, kind) in fields.columns() {
            if schema.kind(key).is_some() {
                node.problem("fields", format!("key {key} is also the `score_key` or the `parent_key`"));
            }
            schema.add(key, kind);
        }
        let (limit, endpoint) = (limit?, node.endpoint("endpoint")?.index);
        let read = if scored { Read::Scored { limit } } else { Read::List { limit } };
        let fan_out = FanOut { endpoint, list: list?, read, score, parent, fields, fields_at: fields_at? };
        Some(fan_out.planned(schema))
    }
}

/// The key that a parameter names, of this kind.
fn column(node: &mut Node<'_>, param: &str, kind: Kind) -> Option<Key> {
    let entry = node.key(param)?;
    let found = node.writable(param, entry)?;
    if found != kind {
        node.problem(param, format!("key `{}` is {found}, not {kind}", entry.name));
        return None;
    }
    Some(entry.key)
}

/// The key pattern for the fields of the new rows. It is given if and only if there are fields.
fn fields_at(node: &mut Node<'_>, fields: &Fields, schema: &Schema) -> Option<Pattern> {
    match (node.text("fields_key").is_some(), fields.is_empty()) {
        (true, false) => pattern(node, "fields_key", schema),
        (true, true) => {
            node.problem("fields_key", "there are no `fields` to read");
            None
        }
        (false, false) => {
            node.problem(
                "fields",
                "without a `fields_key`, as in `user:{id}`, there is nowhere to read them",
            );
            None
        }
        (false, true) => Some(Pattern::of_id("")),
    }
}
