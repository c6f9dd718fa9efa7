//! Why rows of random plans are where they are, against a plain walk over what the model's nodes make.
//!
//! The model marks the rows of each input before a node takes them, so that it knows of every row which one it was
//! before. What a way says must be so there: each place, each value, and where it ends; and what it advises must help.

use std::collections::BTreeMap;

use anabranch_plan::Plan;
use anabranch_plan::RunOptions;
use anabranch_plan_inspect::why::{Cause, End, Verdict, Way, Why};
use anabranch_testkit::{Rng, Sim};
use serde_json::{Value, json};

use super::cell::{Cell, Kind, Row, cell, kind_of, set};
use super::exprs::Exprs;
use super::model::{Model, Watch, limited, sorted};
use super::world::{ENDPOINTS, FIELDS, World};
use super::{RandomRequest, compile, make};

/// `ANABRANCH_PLAN_SEEDS` asks for more.
fn seeds() -> u64 {
    super::seeds() / 3
}

/// How often each kind of thing was told.
type KindCounts = BTreeMap<&'static str, u32>;

/// A plan's nodes, with equal ones as one.
struct Nodes {
    /// By id: the node that stands for it.
    same: BTreeMap<String, String>,
    /// The nodes that ran.
    ran: Vec<String>,
}

#[test]
fn why_agrees_with_a_plain_walk() {
    let mut told = KindCounts::new();
    for seed in 0..seeds() {
        let mut rng = Rng::new(seed);
        let (world, plan, asked) = (World::new(&mut rng), make::plan(&mut rng), RandomRequest::new(&mut rng));
        check(seed, (&world, &plan, &asked), &mut rng, &mut told);
    }
    for kind in ["answered", "used", "absent", "predicate", "limit", "repeat", "matched"] {
        assert!(told.get(kind).is_some_and(|count| *count > 5), "hardly any {kind}: {told:?}");
    }
}

/// Plans that drop most of their rows.
#[test]
fn advice_helps() {
    let mut told = KindCounts::new();
    for seed in 0..seeds() {
        let mut rng = Rng::new(seed);
        let (world, plan, asked) = (World::new(&mut rng), dropping(&mut rng), RandomRequest::new(&mut rng));
        check(seed, (&world, &plan, &asked), &mut rng, &mut told);
    }
    for kind in ["predicate", "limit", "group", "repeat", "helped"] {
        assert!(told.get(kind).is_some_and(|count| *count > 50), "hardly any {kind}: {told:?}");
    }
}

fn dropping(rng: &mut Rng) -> Value {
    let (names, keys): (Vec<&str>, Vec<u64>) = FIELDS.into_iter().unzip();
    let (group, once, top) = (*rng.choose(&keys), *rng.choose(&keys), *rng.choose(&keys));
    let pred = Exprs { rng, keys: &keys }.pred(3);
    let node = |id: &str, op: &str, input: &[&str], params: Value| json!({"node_id": id, "op": op, "inputs": input, "params": params});
    let lookup = json!({"endpoint": ENDPOINTS[0], "key": "user:{id}", "fields": names});
    let count = rng.within(1..4);
    let order = *rng.choose(&["asc", "desc"]);
    json!({
        "schema_version": 1,
        "plan_name": "dropping",
        "nodes": [
            node("rows", "test::fixed_source", &[], json!({"row_count": 20})),
            node("fields", "core::lookup", &["rows"], lookup),
            node("where", "core::filter", &["fields"], json!({"pred_id": "p"})),
            node("group", "core::group_limit", &["fields"], json!({"by": group, "count": count})),
            node("once", "core::dedupe", &["fields"], json!({"by": once, "keep": "last"})),
            node("top", "core::topk", &["fields"], json!({"by": top, "count": count, "order": order})),
        ],
        "outputs": ["where", "group", "once", "top"],
        "expr_table": {},
        "pred_table": {"p": pred},
    })
}

fn check(
    seed: u64,
    (world, plan, asked): (&World, &Value, &RandomRequest),
    rng: &mut Rng,
    told: &mut KindCounts,
) {
    let expected = Model::new(world, plan, asked).answer();
    if expected.may_fail || expected.must_fail {
        return;
    }
    let sim = Sim::new(seed);
    let compiled = compile(world, plan, &sim, rng);
    let mut model = Model::new(world, plan, asked);
    model.watch = Some(Watch { wanted: wanted(&compiled), ..Watch::default() });
    for id in ids(&model, &compiled, rng) {
        let why = sim.block_on(anabranch_plan_inspect::why(
            &compiled,
            asked.request(compiled.engine()),
            &RunOptions::default(),
            id,
        ));
        let why = why.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        let place = format!("seed {seed}, row {id}: {why:#?}\n{}\n{plan:#}", why.text());
        Check { model: &model, nodes: nodes(&compiled, &why), why: &why, place: &place }.all(told);
    }
}

/// How many rows are wanted of nodes that read.
fn wanted(plan: &Plan) -> BTreeMap<String, usize> {
    let nodes = anabranch_plan_inspect::explain(plan).nodes.into_iter();
    let reads = nodes.filter(|node| !node.reads.is_empty() || node.op == "test::sleep");
    let ids = |id: String, also: Vec<String>| [id].into_iter().chain(also);
    let wanted = reads.filter_map(|node| Some((node.first_rows?, ids(node.id, node.stands_for))));
    wanted.flat_map(|(rows, ids)| ids.map(move |id| (id, rows as usize))).collect()
}

/// Some rows that nodes have, and one that none has.
fn ids(model: &Model<'_>, plan: &Plan, rng: &mut Rng) -> Vec<i64> {
    let all = anabranch_plan_inspect::explain(plan).nodes;
    let mut ids: Vec<i64> = (0..4)
        .filter_map(|_| {
            let rows = model.rows(&rng.choose(&all).id);
            (!rows.is_empty()).then(|| rng.choose(&rows).0)
        })
        .collect();
    ids.push(if rng.percent(50) { 77_777 } else { rng.within(1..30) as i64 });
    ids
}

fn nodes(plan: &Plan, why: &Why) -> Nodes {
    let mut nodes = Nodes { same: BTreeMap::new(), ran: Vec::new() };
    for node in anabranch_plan_inspect::explain(plan).nodes {
        let also = node.stands_for.iter().map(|other| (other.clone(), node.id.clone()));
        nodes.same.extend(also.chain([(node.id.clone(), node.id.clone())]));
        if !why.idle.contains(&node.id) {
            nodes.ran.push(node.id);
        }
    }
    nodes
}

struct Check<'a> {
    model: &'a Model<'a>,
    nodes: Nodes,
    why: &'a Why,
    place: &'a str,
}

impl Check<'_> {
    fn all(&self, told: &mut KindCounts) {
        let mut count = |kind: &'static str| *told.entry(kind).or_default() += 1;
        let expected = self.ends();
        let found: Vec<String> = self.why.ways.iter().map(end).collect();
        assert_eq!(found.len() + self.why.more_ways, expected.len(), "{expected:?}, {}", self.place);
        let mut left = expected.clone();
        for end in &found {
            let at = left.iter().position(|other| other == end);
            left.remove(at.unwrap_or_else(|| panic!("{end} is none of {expected:?}: {}", self.place)));
        }
        let kind = match &self.why.verdict {
            Verdict::Answered { places } => {
                self.answered(places);
                "answered"
            }
            Verdict::Dropped { .. } => "dropped",
            Verdict::Used { .. } => "used",
            Verdict::Absent => "absent",
        };
        count(kind);
        assert!(kind == "absent" && expected.is_empty() || found[0].starts_with(kind), "{}", self.place);
        for way in &self.why.ways {
            self.steps(way);
            if let End::Dropped { node, cause, .. } = &way.end {
                count(self.cause(way, node, cause));
                if self.helps(way, node, cause) {
                    count("helped");
                }
            }
        }
    }

    fn answered(&self, places: &[usize]) {
        let outputs = self.model.plan["outputs"].as_array().unwrap();
        let rows = outputs.iter().flat_map(|id| self.model.rows(id.as_str().unwrap()));
        let all: Vec<usize> =
            rows.zip(1..).filter(|(row, _)| row.0 == self.why.row).map(|(_, at)| at).collect();
        assert_eq!(places, all, "{}", self.place);
    }

    /// The places of the row among a node's rows.
    fn spots(&self, node: &str) -> Vec<usize> {
        let rows = self.model.rows(node).into_iter().enumerate();
        rows.filter(|(_, row)| row.0 == self.why.row).map(|(at, _)| at).collect()
    }

    /// How all ways of the row end.
    fn ends(&self) -> Vec<String> {
        let mut ends = Vec::new();
        let outputs = self.model.plan["outputs"].as_array().unwrap();
        let outputs: Vec<&String> = outputs.iter().map(|id| &self.nodes.same[id.as_str().unwrap()]).collect();
        let edges: Vec<(String, usize, String)> =
            self.nodes.ran.iter().flat_map(|node| self.edges(node)).collect();
        for node in &self.nodes.ran {
            for spot in self.spots(node) {
                let mut own: Vec<String> = Vec::new();
                let mut passed = false;
                own.extend(
                    outputs.iter().filter(|id| **id == node).map(|_| format!("answered {node}@{spot}")),
                );
                for (taker, at, _) in edges.iter().filter(|(_, _, input)| input == node) {
                    // The node must have been computed for its origins to be known.
                    self.model.rows(taker);
                    let origins = &self.model.watch.as_ref().unwrap().origins.borrow()[taker];
                    match origins.contains(&Some((*at, spot))) {
                        true => passed = true,
                        false => own.push(format!("dropped {node}@{spot} by {taker}")),
                    }
                }
                if own.is_empty() && !passed {
                    own.push(format!("used {node}@{spot}"));
                }
                ends.append(&mut own);
            }
        }
        ends
    }

    /// The inputs whose rows a node passes on: the node, the input's place in the model, and the input.
    fn edges(&self, id: &str) -> Vec<(String, usize, String)> {
        let node = self.model.nodes().iter().find(|node| node["node_id"] == id).unwrap();
        let params = &node["params"];
        let mut inputs: Vec<(usize, &Value)> = match node["op"].as_str().unwrap() {
            "core::candidates"
            | "core::viewer"
            | "core::follow"
            | "core::recommendation"
            | "core::media"
            | "core::fanout"
            | "test::fixed_source" => vec![],
            "core::concat" => vec![(0, &node["inputs"][0]), (1, &params["rhs"])],
            "core::union" => {
                let with = params["with"].as_array().unwrap();
                [&node["inputs"][0]].into_iter().chain(with).enumerate().collect()
            }
            "core::if" if params["else"].is_null() => vec![(0, &node["inputs"][0]), (1, &params["then"])],
            "core::if" => vec![(1, &params["then"]), (2, &params["else"])],
            _ => vec![(0, &node["inputs"][0])],
        };
        let same = |id: &Value| self.nodes.same[id.as_str().unwrap()].clone();
        if node["op"] == "core::if" && same(inputs[0].1) == same(inputs[1].1) {
            let holds = self.model.decides(params);
            inputs.retain(|(at, _)| (*at == 1) == holds);
        }
        inputs.into_iter().map(|(at, input)| (id.to_owned(), at, same(input))).collect()
    }

    /// Each step is as the model has it.
    fn steps(&self, way: &Way) {
        for step in &way.steps {
            let rows = self.model.rows(&step.node);
            assert_eq!((step.of, rows[step.place - 1].0), (rows.len(), self.why.row), "{}", self.place);
            for wrote in &step.wrote {
                let own = cell(&rows[step.place - 1], key_of(&wrote.column));
                assert_eq!(
                    as_json(own.as_ref()),
                    wrote.value,
                    "{} of {}: {}",
                    wrote.column,
                    step.node,
                    self.place
                );
            }
        }
    }

    /// The kind of the cause.
    fn cause(&self, way: &Way, node: &str, cause: &Cause) -> &'static str {
        match cause {
            Cause::Predicate { leaves, .. } => {
                assert!(leaves.iter().any(|leaf| leaf.decides), "{}", self.place);
                "predicate"
            }
            Cause::Limit { .. } => "limit",
            Cause::Skipped { .. } => "skipped",
            Cause::Group { .. } => "group",
            Cause::Repeat { .. } => "repeat",
            Cause::Matched { .. } | Cause::Unmatched { .. } => "matched",
            Cause::OtherSide { .. } => "other side",
            Cause::Unasked { place, first, .. } => {
                let last = way.steps.last().unwrap();
                assert_eq!((last.place, *first), (*place, self.model.rows(node).len()), "{}", self.place);
                "unasked"
            }
            Cause::Degraded { .. } | Cause::Unknown => panic!("no cause: {}", self.place),
        }
    }

    /// True if there was advice to follow; it must have helped.
    fn helps(&self, way: &Way, node: &str, cause: &Cause) -> bool {
        let node = self.model.nodes().iter().find(|other| other["node_id"] == node).unwrap();
        let params = &node["params"];
        let last = way.steps.last().unwrap();
        let input = || self.model.rows(&last.node);
        let at = last.place - 1;
        match cause {
            Cause::Predicate { keeps: Some(changes), .. }
                if changes.iter().all(|change| change.to.is_some()) =>
            {
                let mut row = input().swap_remove(at);
                for change in changes {
                    let key = key_of(&change.what);
                    assert_eq!(as_json(cell(&row, key).as_ref()), change.from, "{}", self.place);
                    set(&mut row, key, to(key, change.to.as_ref().unwrap()));
                }
                let holds = self.model.pred(self.model.entry("pred_table", &params["pred_id"]), &row);
                assert!(holds, "the advice is no good: {}", self.place);
                true
            }
            Cause::Skipped { place, offset } => {
                let mut rows = mark(input());
                if node["op"] == "core::topk" {
                    rows = sorted(rows, params, "desc");
                }
                assert!(marks(&rows[place - 1], at) && place <= offset, "{}", self.place);
                false
            }
            Cause::Limit { place, limit, offset, needs, .. } if node["op"] == "core::topk" => {
                let marked = |rows: Vec<Row>| sorted(mark(rows), params, "desc").split_off(*offset);
                let keeps =
                    |rows: Vec<Row>, count: usize| rows.into_iter().take(count).any(|row| marks(&row, at));
                assert!(
                    keeps(marked(input()), *place) && !keeps(marked(input()), place - 1),
                    "{}",
                    self.place
                );
                let Some((needs, to)) = needs.as_ref().and_then(|needs| Some((needs, needs.to.as_ref()?)))
                else {
                    return false;
                };
                let mut rows = input();
                let key = key_of(&needs.what);
                set(&mut rows[at], key, self::to(key, to));
                assert!(keeps(marked(rows), *limit), "the advice is no good: {}", self.place);
                true
            }
            Cause::Limit { place, limit, offset, .. } => {
                assert!(place + offset == at + 1 && place > limit, "{}", self.place);
                false
            }
            Cause::Group { place, limit, .. } => {
                let key = params["by"].as_u64().unwrap();
                let keeps = |count: usize| {
                    let kept = limited(mark(input()), |row| cell(row, key), count);
                    kept.iter().any(|row| marks(row, at))
                };
                assert!(place > limit && keeps(*place) && !keeps(place - 1), "{}", self.place);
                true
            }
            _ => false,
        }
    }
}

fn end(way: &Way) -> String {
    let last = way.steps.last().unwrap();
    let (node, spot) = (&last.node, last.place - 1);
    match &way.end {
        End::Answered { node, place, .. } => format!("answered {node}@{}", place - 1),
        End::Dropped { node: by, .. } => format!("dropped {node}@{spot} by {by}"),
        End::Used { .. } => format!("used {node}@{spot}"),
    }
}

/// Rows with their places in a column that no plan has.
fn mark(rows: Vec<Row>) -> Vec<Row> {
    let mut rows = rows;
    rows.iter_mut().enumerate().for_each(|(at, row)| set(row, 0, Some(Cell::Int(at as i64))));
    rows
}

fn marks(row: &Row, at: usize) -> bool {
    row.1.get(&0) == Some(&Cell::Int(at as i64))
}

fn key_of(name: &str) -> u64 {
    let more = [("parent", 1003), ("count", 1004), ("score", 2001), ("bonus", 2002), ("rank", 2003)];
    FIELDS.iter().chain(&more).find(|(other, _)| *other == name).unwrap().1
}

fn as_json(cell: Option<&Cell>) -> Value {
    cell.map_or(Value::Null, Cell::json)
}

fn to(key: u64, value: &Value) -> Option<Cell> {
    Some(match (value, kind_of(key)) {
        (Value::Null, _) => return None,
        (Value::Bool(value), _) => Cell::Bool(*value),
        (Value::String(value), _) => Cell::Text(value.clone()),
        (value, Kind::Int) => Cell::Int(value.as_i64().unwrap()),
        (value, _) => Cell::Float(value.as_f64().unwrap()),
    })
}
