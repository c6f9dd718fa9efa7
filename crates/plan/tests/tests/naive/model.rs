//! Plans as plainly as they can be carried out: a list of rows a node, one row at a time, nothing left out or merged.

use std::cell::{Cell as Flag, RefCell};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::rc::Rc;

use anabranch_plan::UserId;
use serde_json::Value;

use super::RandomRequest;
use super::cell::{Cell, Kind, Row, cell, compare, float, kind_of, name, set};
use super::world::{ENDPOINTS, FIELDS, World};

pub(super) struct Model<'a> {
    pub(super) world: &'a World,
    pub(super) plan: &'a Value,
    pub(super) user: &'a UserId,
    pub(super) params: &'a BTreeMap<u64, Cell>,
    candidates: &'a [Row],
    known: RefCell<BTreeMap<String, Rc<Vec<Row>>>>,
    /// If somebody asks where rows come from.
    pub(super) watch: Option<Watch>,
    /// Something goes wrong, if it is not left out.
    may_fail: Flag<bool>,
    /// Something goes wrong that is not left out.
    must_fail: Flag<bool>,
}

/// The answer of a plan.
pub(super) struct ExpectedAnswer {
    pub(super) rows: Vec<Row>,
    pub(super) may_fail: bool,
    pub(super) must_fail: bool,
}

const COUNTRY: u64 = 3001;
/// The column of marks, which no plan has.
const MARK: u64 = 0;
/// More rows than a node has.
const MOST: usize = 1 << 40;

/// An input and the place of a row there.
type Origin = Option<(usize, usize)>;

/// Where the rows of nodes come from.
#[derive(Default)]
pub(super) struct Watch {
    /// Of nodes that read: how many rows are wanted.
    pub(super) wanted: BTreeMap<String, usize>,
    /// By node, for each row: the input and the place there, unless the node brought it.
    pub(super) origins: RefCell<BTreeMap<String, Vec<Origin>>>,
}

impl Watch {
    /// The rows of a node, with their marks turned into origins.
    fn noted(&self, id: &str, mut rows: Vec<Row>) -> Vec<Row> {
        rows.truncate(self.wanted.get(id).copied().unwrap_or(usize::MAX));
        let origin = |row: &mut Row| match row.1.remove(&MARK) {
            Some(Cell::Int(mark)) => Some((mark as usize / MOST, mark as usize % MOST)),
            _ => None,
        };
        let origins = rows.iter_mut().map(origin).collect();
        self.origins.borrow_mut().insert(id.to_owned(), origins);
        rows
    }
}

impl<'a> Model<'a> {
    pub(super) fn new(world: &'a World, plan: &'a Value, asked: &'a RandomRequest) -> Model<'a> {
        let (known, fine) = (RefCell::default(), || Flag::new(false));
        let RandomRequest { user, params, candidates, .. } = asked;
        let (may_fail, must_fail) = (fine(), fine());
        Model { world, plan, user, params, candidates, known, watch: None, may_fail, must_fail }
    }

    pub(super) fn answer(&self) -> ExpectedAnswer {
        let outputs = self.plan["outputs"].as_array().unwrap();
        let rows = outputs.iter().flat_map(|id| self.rows(id.as_str().unwrap())).collect();
        // What nobody needs may run all the same, as what two branches share does if neither is taken.
        let may_fail =
            self.may_fail.get() || self.reads_what_fails() || self.sleeps_badly() || self.lacks_a_pattern();
        ExpectedAnswer { rows, may_fail, must_fail: self.must_fail.get() }
    }

    /// A pattern is looked at as soon as there are rows, even if no row gets there.
    fn lacks_a_pattern(&self) -> bool {
        let tables = [&self.plan["expr_table"], &self.plan["pred_table"]];
        !self.params.contains_key(&2)
            && tables.iter().any(|table| table.to_string().contains(r#""kind":"param""#))
    }

    fn may_fail(&self) {
        self.may_fail.set(true);
    }

    fn reads_what_fails(&self) -> bool {
        let Some((endpoint, prefix)) = self.world.failing else { return false };
        self.nodes().iter().any(|node| {
            let text = node.to_string();
            let op = node["op"].as_str().unwrap().trim_start_matches("core::");
            let own = prefix == "user:" || prefix.trim_end_matches(':') == op || text.contains(prefix);
            own && node["params"]["endpoint"] == ENDPOINTS[endpoint]
        })
    }

    fn sleeps_badly(&self) -> bool {
        self.nodes().iter().any(|node| node["params"]["fail_after_sleep"] == true)
    }

    pub(super) fn nodes(&self) -> &Vec<Value> {
        self.plan["nodes"].as_array().unwrap()
    }

    pub(super) fn rows(&self, id: &str) -> Vec<Row> {
        if let Some(rows) = self.known.borrow().get(id) {
            return rows.to_vec();
        }
        let rows = self.computed(self.nodes().iter().find(|node| node["node_id"] == id).unwrap());
        let rows = Rc::new(match &self.watch {
            Some(watch) => watch.noted(id, rows),
            None => rows,
        });
        self.known.borrow_mut().insert(id.to_owned(), Rc::clone(&rows));
        rows.to_vec()
    }

    /// The rows of a node as those of an input, by its place.
    fn taken(&self, at: usize, id: &Value) -> Vec<Row> {
        let mut rows = self.rows(id.as_str().unwrap());
        if self.watch.is_some() {
            let marked = rows.iter_mut().enumerate();
            marked.for_each(|(position, row)| set(row, MARK, Some(Cell::Int((at * MOST + position) as i64))));
        }
        rows
    }

    fn computed(&self, node: &Value) -> Vec<Row> {
        let params = &node["params"];
        let input = || self.taken(0, &node["inputs"][0]);
        let other = |name: &str| self.taken(1 + usize::from(name == "else"), &params[name]);
        let count = || params["count"].as_u64().unwrap() as usize;
        let holds = |row: &Row| self.pred(self.entry("pred_table", &params["pred_id"]), row);
        match node["op"].as_str().unwrap() {
            "test::fixed_source" => {
                (1..=params["row_count"].as_i64().unwrap()).map(|id| (id, BTreeMap::new())).collect()
            }
            "test::sleep" => {
                self.must_fail.set(self.must_fail.get() || params["fail_after_sleep"] == true);
                input()
            }
            "core::candidates" => self.brought(params),
            "core::select" => selected(input(), params),
            "core::take" => paged(input(), params),
            "core::concat" => input().into_iter().chain(other("rhs")).collect(),
            "core::sort" => sorted(input(), params, "asc"),
            "core::topk" => paged(sorted(input(), params, "desc"), params),
            "core::filter" => input().into_iter().filter(holds).collect(),
            "core::vm" => self.vm(input(), params),
            "core::boost" => self.boost(input(), params),
            "core::fill" => fill(input(), params),
            "core::union" => self.union(input(), params),
            "core::dedupe" => dedupe(input(), params),
            "core::group_limit" => limited(input(), |row| cell(row, params["by"].as_u64().unwrap()), count()),
            "core::join" => join(input(), &other("with"), params),
            "core::if" => match (self.decides(params), params["else"].is_null()) {
                (true, _) => other("then"),
                (false, true) => input(),
                (false, false) => other("else"),
            },
            op => self.read(op, params, input),
        }
    }

    /// The candidates with the columns that are listed.
    fn brought(&self, params: &Value) -> Vec<Row> {
        let sure = self.candidates.iter().any(|(_, cells)| cells.contains_key(&2004));
        let listed = |key: u64| keys(params).contains(&key);
        let row = |(id, cells): &Row| {
            let cells = cells.iter().filter(|(key, _)| listed(**key)).map(|(key, cell)| (*key, cell.clone()));
            let default = (listed(2004) && !sure).then_some((2004, Cell::Float(0.5)));
            (*id, cells.chain(default).collect())
        };
        self.candidates.iter().map(row).collect()
    }

    /// True if the condition of an `if` holds: for the request, or for the first row of a node.
    pub(super) fn decides(&self, params: &Value) -> bool {
        let row = match params["on"].as_str() {
            Some(on) => self.rows(on).into_iter().next(),
            None => Some((0, BTreeMap::new())),
        };
        row.is_some_and(|row| self.pred(self.entry("pred_table", &params["pred_id"]), &row))
    }

    pub(super) fn entry(&self, table: &str, id: &Value) -> &Value {
        &self.plan[table][id.as_str().unwrap()]
    }

    /// The ops that read.
    fn read(&self, op: &str, params: &Value, input: impl Fn() -> Vec<Row>) -> Vec<Row> {
        let country = |rows: Vec<Row>| self.with_fields(rows, params, "user:{id}", &["country"]);
        let list = |name: &str| self.fan_out(&input(), params, &format!("{name}:{{id}}"), &params["fanout"]);
        match op {
            "core::viewer" => country(vec![(self.user.row_id(), BTreeMap::new())]),
            "core::follow" => country(list("follow")),
            "core::recommendation" => country(list("recommendation")),
            "core::media" => list("media"),
            "core::lookup" => {
                self.with_fields(input(), params, params["key"].as_str().unwrap(), &fields(params))
            }
            "core::fanout" => {
                let rows = self.fan_out(&input(), params, params["key"].as_str().unwrap(), &params["limit"]);
                match params["fields_key"].as_str() {
                    Some(key) => self.with_fields(rows, params, key, &fields(params)),
                    None => rows,
                }
            }
            op => panic!("no model of {op}"),
        }
    }

    fn fails(&self, params: &Value, key: &str) -> bool {
        let endpoint = |at: usize| params["endpoint"] == ENDPOINTS[at];
        self.world.failing.is_some_and(|(at, prefix)| endpoint(at) && key.starts_with(prefix))
    }

    fn fan_out(&self, rows: &[Row], params: &Value, pattern: &str, limit: &Value) -> Vec<Row> {
        let limit = limit.as_u64().unwrap() as usize;
        let store = &self.world.stores[usize::from(params["endpoint"] == ENDPOINTS[1])];
        let mut made = Vec::new();
        for parent in rows {
            let Some(key) = self.key(pattern, parent) else { continue };
            self.must_fail.set(self.must_fail.get() || self.fails(params, &key));
            let plain = store.lists.get(&key).into_iter().flatten().map(|id| (*id, None));
            let scored = store.scored.get(&key).into_iter().flatten().map(|(id, score)| (*id, Some(*score)));
            for (id, score) in plain.chain(scored).take(limit) {
                let mut row = (id, BTreeMap::new());
                if let Some(key) = params["parent_key"].as_u64() {
                    set(&mut row, key, Some(Cell::Int(parent.0)));
                }
                if let Some(key) = params["score_key"].as_u64() {
                    set(&mut row, key, score.map(Cell::Float));
                }
                made.push(row);
            }
        }
        made
    }

    fn with_fields(&self, mut rows: Vec<Row>, params: &Value, pattern: &str, fields: &[&str]) -> Vec<Row> {
        let store = &self.world.stores[usize::from(params["endpoint"] == ENDPOINTS[1])];
        for row in &mut rows {
            let hash = self.key(pattern, row).and_then(|key| store.hashes.get(&key));
            for field in fields {
                let (_, key) = FIELDS.iter().find(|(name, _)| name == field).unwrap();
                let found = hash.and_then(|hash| hash.get(field));
                if found == Some(&None) {
                    self.may_fail();
                }
                let default = (*key == 2004).then_some(Cell::Float(0.5));
                set(row, *key, found.cloned().flatten().or(default));
            }
        }
        rows
    }

    /// The key that a pattern makes of a row, unless a part of it is null.
    fn key(&self, pattern: &str, row: &Row) -> Option<String> {
        let (prefix, rest) = pattern.split_once('{').unwrap();
        // The row of a string user has a number as its id, and keys have the string.
        let own = self.user.as_int().map_or(Some(Cell::Int(self.user.row_id())), |_| None);
        let of_row = |key: u64| match cell(row, key)? {
            cell if Some(&cell) == own.as_ref() => Some(self.user.to_string()),
            cell => Some(cell.to_string()),
        };
        let part = match rest.trim_end_matches('}') {
            "id" => of_row(1)?,
            "user_id" => self.user.to_string(),
            "author" => of_row(1002)?,
            "parent" => of_row(1003)?,
            "country" => of_row(COUNTRY)?,
            "$cap" => self.params.get(&3)?.to_string(),
            part => panic!("no model of {part}"),
        };
        Some(format!("{prefix}{part}"))
    }

    fn vm(&self, mut rows: Vec<Row>, params: &Value) -> Vec<Row> {
        let expr = self.entry("expr_table", &params["expr_id"]);
        let key = params["out_key"].as_u64().unwrap();
        for row in &mut rows {
            let value = match self.expr(expr, row) {
                Some(value) if kind_of(key) == Kind::Float => Some(Cell::Float(float(&value))),
                value => value,
            };
            if matches!(value, Some(Cell::Float(value)) if !value.is_finite())
                || (value.is_none() && key == 2004)
            {
                self.may_fail();
            }
            set(row, key, value);
        }
        rows
    }

    fn boost(&self, mut rows: Vec<Row>, params: &Value) -> Vec<Row> {
        let pred = self.entry("pred_table", &params["pred_id"]);
        let (factor, add) = (params["factor"].as_f64().unwrap_or(1.0), params["add"].as_f64().unwrap_or(0.0));
        for row in &mut rows {
            let holds = self.pred(pred, row);
            if let Some(Cell::Float(value)) = row.1.get_mut(&params["out_key"].as_u64().unwrap())
                && holds
            {
                *value = *value * factor + add;
                if !value.is_finite() {
                    self.may_fail();
                }
            }
        }
        rows
    }

    fn union(&self, rows: Vec<Row>, params: &Value) -> Vec<Row> {
        let with = params["with"].as_array().unwrap();
        let others = with.iter().enumerate().flat_map(|(at, id)| self.taken(at + 1, id));
        let all: Vec<Row> = rows.into_iter().chain(others).collect();
        if params["dedupe"] == false { all } else { limited(all, |row| Some(Cell::Int(row.0)), 1) }
    }
}

fn keys(params: &Value) -> Vec<u64> {
    params["columns"].as_array().unwrap().iter().map(|key| key.as_u64().unwrap()).collect()
}

fn selected(mut rows: Vec<Row>, params: &Value) -> Vec<Row> {
    // Marks stay: they tell where a row comes from.
    rows.iter_mut().for_each(|(_, cells)| cells.retain(|key, _| *key == MARK || keys(params).contains(key)));
    rows
}

fn fields(params: &Value) -> Vec<&str> {
    params["fields"].as_array().unwrap().iter().map(|field| field.as_str().unwrap()).collect()
}

/// Nulls last, whichever way.
pub(super) fn sorted(mut rows: Vec<Row>, params: &Value, default: &str) -> Vec<Row> {
    let default = params["order"].as_str().unwrap_or(default);
    let one = [params["by"].clone()];
    let by: Vec<(u64, &str)> = params["by"]
        .as_array()
        .map_or(&one[..], Vec::as_slice)
        .iter()
        .map(|by| match by {
            Value::Object(_) => (by["key"].as_u64().unwrap(), by["order"].as_str().unwrap_or(default)),
            key => (key.as_u64().unwrap(), default),
        })
        .collect();
    let order = |a: &Cell, b: &Cell| compare(a, b).unwrap_or(Ordering::Equal);
    let by_one = |a: &Row, b: &Row, (key, way): &(u64, &str)| match (cell(a, *key), cell(b, *key)) {
        (Some(a), Some(b)) if *way == "desc" => order(&b, &a),
        (Some(a), Some(b)) => order(&a, &b),
        (a, b) => a.is_none().cmp(&b.is_none()),
    };
    rows.sort_by(|a, b| {
        by.iter().map(|by| by_one(a, b, by)).find(|it| it.is_ne()).unwrap_or(Ordering::Equal)
    });
    rows
}

/// The rows that `offset` and `count` keep.
pub(super) fn paged(rows: Vec<Row>, params: &Value) -> Vec<Row> {
    let number = |name: &str| params[name].as_u64().unwrap_or(0) as usize;
    rows.into_iter().skip(number("offset")).take(number("count")).collect()
}

fn fill(mut rows: Vec<Row>, params: &Value) -> Vec<Row> {
    for row in &mut rows {
        for key in params["keys"].as_array().unwrap() {
            let value = match &params["value"] {
                Value::String(text) => Cell::Text(text.clone()),
                value => Cell::Float(value.as_f64().unwrap()),
            };
            row.1.entry(key.as_u64().unwrap()).or_insert(value);
        }
    }
    rows
}

fn dedupe(mut rows: Vec<Row>, params: &Value) -> Vec<Row> {
    let by = |row: &Row| cell(row, params["by"].as_u64().unwrap_or(1));
    if params["keep"] != "last" {
        return limited(rows, by, 1);
    }
    rows.reverse();
    let mut kept = limited(rows, by, 1);
    kept.reverse();
    kept
}

/// At most so many rows of each group; rows without a group all stay.
pub(super) fn limited(rows: Vec<Row>, group: impl Fn(&Row) -> Option<Cell>, count: usize) -> Vec<Row> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut keep = |row: &Row| match group(row) {
        None => true,
        Some(group) => {
            let seen = seen.entry(name(&group)).or_default();
            *seen += 1;
            *seen <= count
        }
    };
    rows.into_iter().filter(|row| keep(row)).collect()
}

fn join(left: Vec<Row>, right: &[Row], params: &Value) -> Vec<Row> {
    let on = params["on"].as_u64().unwrap_or(1);
    let on_right = params["on_right"].as_u64().unwrap_or(on);
    let value = |row: &Row, key: u64| cell(row, key).map(|cell| name(&cell));
    let mut by_value: BTreeMap<String, Vec<&Row>> = BTreeMap::new();
    for row in right {
        if let Some(value) = value(row, on_right) {
            by_value.entry(value).or_default().push(row);
        }
    }
    let kind = params["kind"].as_str().unwrap();
    let mut made = Vec::new();
    for row in left {
        let none = Vec::new();
        let matches = value(&row, on).and_then(|value| by_value.get(&value)).unwrap_or(&none);
        match kind {
            "semi" | "anti" if matches.is_empty() == (kind == "anti") => made.push(row),
            "semi" | "anti" => {}
            "left" if matches.is_empty() => made.push(joined(&row, None, params)),
            _ => made.extend(matches.iter().map(|other| joined(&row, Some(other), params))),
        }
    }
    made
}

fn joined(row: &Row, other: Option<&Row>, params: &Value) -> Row {
    let mut row = row.clone();
    for key in params["columns"].as_array().unwrap() {
        let key = key.as_u64().unwrap();
        set(&mut row, key, other.and_then(|other| cell(other, key)));
    }
    row
}
