//! Plans as plainly as they can be carried out: a list of rows a node, one row at a time, nothing left out or merged.

use std::collections::BTreeMap;

use serde_json::Value;

use super::world::World;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Int(i64),
    Float(f64),
    Text(String),
}

/// An id, and the cells that are not null.
pub(super) type Row = (i64, BTreeMap<u64, Cell>);

pub(super) struct Model<'a> {
    pub(super) world: &'a World,
    pub(super) plan: &'a Value,
    pub(super) user: i64,
    pub(super) params: BTreeMap<u64, f64>,
}

const COUNTRY: u64 = 3001;

impl Model<'_> {
    pub(super) fn answer(&self) -> Vec<Row> {
        let outputs = self.plan["outputs"].as_array().unwrap();
        outputs.iter().flat_map(|id| self.rows(id.as_str().unwrap())).collect()
    }

    fn rows(&self, id: &str) -> Vec<Row> {
        let nodes = self.plan["nodes"].as_array().unwrap();
        let node = nodes.iter().find(|node| node["node_id"] == id).unwrap();
        let params = &node["params"];
        let input = || self.rows(node["inputs"][0].as_str().unwrap());
        let other = |name: &str| self.rows(params[name].as_str().unwrap());
        let count = || params["count"].as_u64().unwrap() as usize;
        match node["op"].as_str().unwrap() {
            "core::viewer" => vec![self.with_country(self.user)],
            "core::follow" => self.fan_out("follow", input(), params, true),
            "core::recommendation" => self.fan_out("recommendation", input(), params, true),
            "core::media" => self.fan_out("media", input(), params, false),
            "test::fixed_source" => {
                (1..=params["row_count"].as_i64().unwrap()).map(|id| (id, BTreeMap::new())).collect()
            }
            "test::sleep" => input(),
            "core::take" => input().into_iter().take(count()).collect(),
            "core::concat" => input().into_iter().chain(other("rhs")).collect(),
            "core::sort" => sorted(input(), params, "asc"),
            "core::topk" => sorted(input(), params, "desc").into_iter().take(count()).collect(),
            "core::filter" => {
                let holds = |row: &Row| self.pred(self.entry("pred_table", &params["pred_id"]), row);
                input().into_iter().filter(holds).collect()
            }
            "core::vm" => self.vm(input(), params),
            "core::boost" => self.boost(input(), params),
            "core::fill" => fill(input(), params),
            "core::lookup" => self.lookup(input(), params),
            "core::union" => {
                let with = params["with"].as_array().unwrap();
                let others = with.iter().flat_map(|id| self.rows(id.as_str().unwrap()));
                let all: Vec<Row> = input().into_iter().chain(others).collect();
                if params["dedupe"] == false { all } else { limited(all, |row| Some(Cell::Int(row.0)), 1) }
            }
            "core::dedupe" => limited(input(), |row| cell(row, params["by"].as_u64().unwrap_or(1)), 1),
            "core::group_limit" => limited(input(), |row| cell(row, params["by"].as_u64().unwrap()), count()),
            "core::join" => {
                let right: Vec<i64> = other("with").iter().map(|row| row.0).collect();
                let wanted = params["kind"] == "semi";
                input().into_iter().filter(|row| right.contains(&row.0) == wanted).collect()
            }
            "core::if" => {
                let no_row = (0, BTreeMap::new());
                let holds = self.pred(self.entry("pred_table", &params["pred_id"]), &no_row);
                if holds {
                    other("then")
                } else if params["else"].is_null() {
                    input()
                } else {
                    other("else")
                }
            }
            op => panic!("no model of {op}"),
        }
    }

    fn entry(&self, table: &str, id: &Value) -> &Value {
        &self.plan[table][id.as_str().unwrap()]
    }

    fn with_country(&self, id: i64) -> Row {
        let country = self.world.users.get(&id).and_then(|user| user.country.clone());
        (id, country.map(|country| (COUNTRY, Cell::Text(country))).into_iter().collect())
    }

    fn fan_out(&self, list: &str, rows: Vec<Row>, params: &Value, country: bool) -> Vec<Row> {
        let fanout = params["fanout"].as_u64().unwrap() as usize;
        let lists = rows.iter().filter_map(|row| self.world.lists.get(&(list, row.0)));
        let ids = lists.flat_map(|list| list.iter().take(fanout));
        ids.map(|id| if country { self.with_country(*id) } else { (*id, BTreeMap::new()) }).collect()
    }

    fn lookup(&self, mut rows: Vec<Row>, params: &Value) -> Vec<Row> {
        for row in &mut rows {
            let user = self.world.users.get(&row.0);
            for field in params["fields"].as_array().unwrap() {
                let (key, cell) = match field.as_str().unwrap() {
                    "likes" => (1001, user.and_then(|user| user.likes).map(Cell::Int)),
                    "author" => (1002, user.and_then(|user| user.author).map(Cell::Int)),
                    "country" => (COUNTRY, user.and_then(|user| user.country.clone()).map(Cell::Text)),
                    field => panic!("no field {field}"),
                };
                set(row, key, cell);
            }
        }
        rows
    }

    fn vm(&self, mut rows: Vec<Row>, params: &Value) -> Vec<Row> {
        let expr = self.entry("expr_table", &params["expr_id"]);
        for row in &mut rows {
            let value = self.expr(expr, row).map(|value| Cell::Float(float(&value)));
            set(row, params["out_key"].as_u64().unwrap(), value);
        }
        rows
    }

    fn boost(&self, mut rows: Vec<Row>, params: &Value) -> Vec<Row> {
        let pred = self.entry("pred_table", &params["pred_id"]);
        let factor = params["factor"].as_f64().unwrap();
        for row in &mut rows {
            let holds = self.pred(pred, row);
            if let Some(Cell::Float(value)) = row.1.get_mut(&params["out_key"].as_u64().unwrap())
                && holds
            {
                *value *= factor;
            }
        }
        rows
    }

    fn expr(&self, expr: &Value, row: &Row) -> Option<Cell> {
        let operand = |name: &str| self.expr(&expr[name], row);
        let both =
            |f: fn(f64, f64) -> f64| Some(Cell::Float(f(float(&operand("a")?), float(&operand("b")?))));
        match expr["op"].as_str().unwrap() {
            "const_number" => Some(match expr["value"].as_i64() {
                Some(value) => Cell::Int(value),
                None => Cell::Float(expr["value"].as_f64().unwrap()),
            }),
            "const_string" => Some(Cell::Text(expr["value"].as_str().unwrap().to_owned())),
            "key_ref" => cell(row, expr["key_id"].as_u64().unwrap()),
            "param_ref" => self.params.get(&expr["param_id"].as_u64().unwrap()).copied().map(Cell::Float),
            "add" => both(|a, b| a + b),
            "sub" => both(|a, b| a - b),
            "mul" => both(|a, b| a * b),
            "neg" => Some(Cell::Float(-float(&operand("x")?))),
            "coalesce" => operand("a").or_else(|| operand("b")),
            op => panic!("no model of {op}"),
        }
    }

    fn pred(&self, pred: &Value, row: &Row) -> bool {
        let sub = |name: &str| self.pred(&pred[name], row);
        let operand = |name: &str| self.expr(&pred[name], row);
        match pred["op"].as_str().unwrap() {
            "const_bool" => pred["value"].as_bool().unwrap(),
            "and" => sub("a") && sub("b"),
            "or" => sub("a") || sub("b"),
            "not" => !sub("x"),
            "is_null" => operand("x").is_none(),
            "cmp" => {
                let (Some(a), Some(b)) = (operand("a"), operand("b")) else { return false };
                let order = compare(&a, &b);
                match pred["cmp"].as_str().unwrap() {
                    "==" => order.is_eq(),
                    "!=" => order.is_ne(),
                    "<" => order.is_lt(),
                    ">=" => order.is_ge(),
                    cmp => panic!("no model of {cmp}"),
                }
            }
            "in" => {
                let Some(value) = operand("lhs") else { return false };
                let list = pred["list"].as_array().unwrap();
                list.iter().any(|item| match item.as_str() {
                    Some(text) => value == Cell::Text(text.to_owned()),
                    None => float(&value) == item.as_f64().unwrap(),
                })
            }
            op => panic!("no model of {op}"),
        }
    }
}

fn cell(row: &Row, key: u64) -> Option<Cell> {
    if key == 1 { Some(Cell::Int(row.0)) } else { row.1.get(&key).cloned() }
}

fn set(row: &mut Row, key: u64, cell: Option<Cell>) {
    match cell {
        Some(cell) => row.1.insert(key, cell),
        None => row.1.remove(&key),
    };
}

fn float(cell: &Cell) -> f64 {
    match cell {
        Cell::Int(value) => *value as f64,
        Cell::Float(value) => *value,
        Cell::Text(text) => panic!("{text} is no number"),
    }
}

fn compare(a: &Cell, b: &Cell) -> std::cmp::Ordering {
    match (a, b) {
        (Cell::Int(a), Cell::Int(b)) => a.cmp(b),
        (Cell::Text(a), Cell::Text(b)) => a.cmp(b),
        (a, b) => float(a).partial_cmp(&float(b)).unwrap(),
    }
}

/// Nulls last, whichever way.
fn sorted(mut rows: Vec<Row>, params: &Value, default: &str) -> Vec<Row> {
    let key = params["by"].as_u64().unwrap();
    let descending = params["order"].as_str().unwrap_or(default) == "desc";
    rows.sort_by(|a, b| match (cell(a, key), cell(b, key)) {
        (Some(a), Some(b)) if descending => compare(&b, &a),
        (Some(a), Some(b)) => compare(&a, &b),
        (a, b) => a.is_none().cmp(&b.is_none()),
    });
    rows
}

fn fill(mut rows: Vec<Row>, params: &Value) -> Vec<Row> {
    for row in &mut rows {
        for key in params["keys"].as_array().unwrap() {
            let value = Cell::Float(params["value"].as_f64().unwrap());
            row.1.entry(key.as_u64().unwrap()).or_insert(value);
        }
    }
    rows
}

/// At most so many rows of each group; rows without a group all stay.
fn limited(rows: Vec<Row>, group: impl Fn(&Row) -> Option<Cell>, count: usize) -> Vec<Row> {
    let mut seen: Vec<Cell> = Vec::new();
    let keep = |row: &Row| match group(row) {
        None => true,
        Some(group) => {
            let before = seen.iter().filter(|other| **other == group).count();
            seen.push(group);
            before < count
        }
    };
    let mut keep = keep;
    rows.into_iter().filter(|row| keep(row)).collect()
}
