//! Random plans that pass the checks.

use anabranch_testkit::Rng;
use serde_json::{Value, json};

use super::cell::{Kind, kind_of};
use super::exprs::Exprs;
use super::world::{BROUGHT, ENDPOINTS, FIELDS};

/// A node made so far, and the columns of its rows.
struct MadeNode {
    id: String,
    keys: Vec<u64>,
}

struct Maker<'a> {
    rng: &'a mut Rng,
    nodes: Vec<Value>,
    made: Vec<MadeNode>,
    exprs: Vec<Value>,
    preds: Vec<Value>,
}

const COUNTRY: u64 = 3001;

pub(crate) fn plan(rng: &mut Rng) -> Value {
    let mut maker = Maker { rng, nodes: Vec::new(), made: Vec::new(), exprs: Vec::new(), preds: Vec::new() };
    maker.source();
    for _ in 0..maker.rng.within(1..14) {
        maker.node();
    }
    let outputs: Vec<String> = (0..maker.rng.within(1..4)).map(|_| maker.any().id.clone()).collect();
    let table = |prefix: &str, entries: Vec<Value>| -> Value {
        entries.into_iter().enumerate().map(|(at, entry)| (format!("{prefix}{at}"), entry)).collect()
    };
    json!({
        "schema_version": 1,
        "plan_name": "random",
        "nodes": maker.nodes,
        "outputs": outputs,
        "expr_table": table("e", maker.exprs),
        "pred_table": table("p", maker.preds),
    })
}

impl Maker<'_> {
    fn add(&mut self, op: &str, inputs: &[&str], params: Value, keys: Vec<u64>) -> String {
        let id = format!("n{}", self.nodes.len());
        self.nodes.push(json!({"node_id": id, "op": op, "inputs": inputs, "params": params}));
        self.made.push(MadeNode { id: id.clone(), keys: unique(keys) });
        id
    }

    /// Mostly one of the last.
    fn any(&mut self) -> &MadeNode {
        let count = self.made.len() as u64;
        let at = if self.rng.percent(70) { count - 1 } else { self.rng.within(0..count) };
        &self.made[at as usize]
    }

    fn pick(&mut self) -> (String, Vec<u64>) {
        let MadeNode { id, keys } = self.any();
        (id.clone(), keys.clone())
    }

    fn source(&mut self) {
        if self.rng.percent(20) {
            let columns: Vec<u64> = BROUGHT.into_iter().filter(|_| self.rng.percent(50)).collect();
            self.add("core::candidates", &[], json!({"columns": columns}), columns);
        } else if self.rng.percent(70) {
            let params = json!({"endpoint": self.endpoint()});
            self.add("core::viewer", &[], params, vec![COUNTRY]);
        } else {
            // Now and then more than fit a chunk of rows.
            let rows = if self.rng.percent(4) { self.rng.within(1000..2200) } else { self.rng.within(1..20) };
            self.add("test::fixed_source", &[], json!({"row_count": rows}), vec![]);
        }
    }

    fn endpoint(&mut self) -> &'static str {
        ENDPOINTS[usize::from(self.rng.percent(25))]
    }

    fn node(&mut self) {
        let (input, keys) = self.pick();
        let count = self.rng.within(1..12);
        match self.rng.within(0..28) {
            0 => self.source(),
            1 | 2 => self.list_op(&input),
            3..=5 => self.fanout(&input, &keys),
            6..=9 => self.vm(&input, keys),
            10 | 11 => {
                let params = json!({"pred_id": self.pred(&keys)});
                self.add("core::filter", &[&input], params, keys);
            }
            12 | 13 => self.sorts(&input, keys, count),
            14 | 15 => {
                let params = self.page(json!({"count": count}));
                self.add("core::take", &[&input], params, keys);
            }
            16 | 17 => self.both(&input, keys),
            18 => self.groups(&input, keys, count),
            19 | 20 => self.lookup(&input, keys),
            21 => self.boost(&input, keys),
            22 => self.fill(&input, keys),
            23 | 24 => self.join(&input, keys),
            25 => {
                let fails = self.rng.percent(4);
                let params = json!({"duration_ms": self.rng.within(0..4), "fail_after_sleep": fails});
                self.add("test::sleep", &[&input], params, keys);
            }
            26 => {
                let columns: Vec<u64> = keys.into_iter().filter(|_| self.rng.percent(50)).collect();
                self.add("core::select", &[&input], json!({"columns": columns}), columns);
            }
            _ => self.choice(&input, keys),
        }
    }

    fn list_op(&mut self, input: &str) {
        let ops = [("core::follow", COUNTRY), ("core::recommendation", COUNTRY), ("core::media", 0)];
        let (op, key) = *self.rng.choose(&ops);
        let params = json!({"endpoint": self.endpoint(), "fanout": self.rng.within(1..6)});
        self.add(op, &[input], params, (key > 0).then_some(key).into_iter().collect());
    }

    fn fanout(&mut self, input: &str, keys: &[u64]) {
        let mut patterns = vec!["follow:{id}", "media:{user_id}", "rank:{id}", "follow:{$cap}"];
        patterns.extend(keys.contains(&1002).then_some("follow:{author}"));
        patterns.extend(keys.contains(&COUNTRY).then_some("near:{country}"));
        let key = *self.rng.choose(&patterns);
        let mut params = json!({"endpoint": self.endpoint(), "key": key, "limit": self.rng.within(1..6)});
        let mut made = Vec::new();
        if key.starts_with("rank") {
            params["kind"] = json!("scored");
            if self.rng.percent(70) {
                params["score_key"] = json!(2003);
                made.push(2003);
            }
        }
        if self.rng.percent(50) {
            params["parent_key"] = json!(1003);
            made.push(1003);
        }
        if self.rng.percent(60) {
            let places: &[&str] =
                if made.contains(&1003) { &["user:{id}", "user:{parent}"] } else { &["user:{id}"] };
            params["fields_key"] = json!(*self.rng.choose(places));
            let (names, more) = self.fields();
            params["fields"] = json!(names);
            made.extend(more);
        }
        self.add("core::fanout", &[input], params, made);
    }

    /// Some fields, in any order.
    fn fields(&mut self) -> (Vec<&'static str>, Vec<u64>) {
        let first = *self.rng.choose(&FIELDS);
        let mut fields: Vec<(&str, u64)> = FIELDS.iter().copied().filter(|_| self.rng.percent(30)).collect();
        fields.retain(|field| *field != first);
        fields.push(first);
        fields.into_iter().unzip()
    }

    fn lookup(&mut self, input: &str, mut keys: Vec<u64>) {
        let mut patterns = vec!["user:{id}", "user:{id}", "user:{user_id}", "user:{$cap}"];
        patterns.extend(keys.contains(&1002).then_some("user:{author}"));
        let (names, more) = self.fields();
        keys.extend(more);
        let key = *self.rng.choose(&patterns);
        let params = json!({"endpoint": self.endpoint(), "key": key, "fields": names, "overwrite": true});
        self.add("core::lookup", &[input], params, keys);
    }

    fn vm(&mut self, input: &str, mut keys: Vec<u64>) {
        let out = *self.rng.choose(&[2001, 2001, 2002, 2004, 1004, 1005, 3002]);
        let mut expr = Exprs { rng: self.rng, keys: &keys }.expr(kind_of(out), 3);
        if out == 2004 {
            let zero = json!({"op": "const_number", "value": 0});
            expr = json!({"op": "coalesce", "a": expr, "b": zero});
        }
        self.exprs.push(expr);
        keys.push(out);
        let params = json!({"out_key": out, "expr_id": format!("e{}", self.exprs.len() - 1)});
        self.add("core::vm", &[input], params, keys);
    }

    fn pred(&mut self, keys: &[u64]) -> String {
        let pred = Exprs { rng: self.rng, keys }.pred(2);
        self.preds.push(pred);
        format!("p{}", self.preds.len() - 1)
    }

    /// Now and then the first rows are skipped.
    fn page(&mut self, mut params: Value) -> Value {
        if self.rng.percent(30) {
            params["offset"] = json!(self.rng.within(0..7));
        }
        params
    }

    fn sorts(&mut self, input: &str, keys: Vec<u64>, count: u64) {
        let mut params = json!({"by": self.sort_keys(&keys)});
        if self.rng.percent(70) {
            params["order"] = json!(*self.rng.choose(&["asc", "desc"]));
        }
        if self.rng.percent(50) {
            self.add("core::sort", &[input], params, keys);
        } else {
            params["count"] = json!(count);
            let params = self.page(params);
            self.add("core::topk", &[input], params, keys);
        }
    }

    /// One key, or several with or without an order of their own.
    fn sort_keys(&mut self, keys: &[u64]) -> Value {
        if self.rng.percent(50) {
            return json!(self.key(keys));
        }
        let by: Vec<u64> = (0..self.rng.within(1..4)).map(|_| self.key(keys)).collect();
        let entry = |key: u64| match self.rng.within(0..3) {
            0 => json!(key),
            1 => json!({"key": key, "order": "asc"}),
            _ => json!({"key": key, "order": "desc"}),
        };
        unique(by).into_iter().map(entry).collect()
    }

    fn both(&mut self, input: &str, mut keys: Vec<u64>) {
        let (other, more) = self.pick();
        keys.extend(more);
        if self.rng.percent(50) {
            self.add("core::concat", &[input], json!({"rhs": other}), keys);
        } else {
            let (third, more) = self.pick();
            keys.extend(more);
            let params = json!({"with": [other, third], "dedupe": self.rng.percent(60)});
            self.add("core::union", &[input], params, keys);
        }
    }

    fn groups(&mut self, input: &str, keys: Vec<u64>, count: u64) {
        let by = self.key(&keys);
        let keep = *self.rng.choose(&["first", "last"]);
        match self.rng.percent(60) {
            true => self.add("core::dedupe", &[input], json!({"by": by, "keep": keep}), keys),
            false => self.add("core::group_limit", &[input], json!({"by": by, "count": count}), keys),
        };
    }

    fn boost(&mut self, input: &str, keys: Vec<u64>) {
        let floats: Vec<u64> = keys.iter().copied().filter(|key| kind_of(*key) == Kind::Float).collect();
        if floats.is_empty() {
            return self.vm(input, keys);
        }
        let out = *self.rng.choose(&floats);
        let mut params = json!({"out_key": out, "pred_id": self.pred(&keys), "factor": 2.5});
        if self.rng.percent(50) {
            params["add"] = json!(-0.5);
        }
        self.add("core::boost", &[input], params, keys);
    }

    fn fill(&mut self, input: &str, mut keys: Vec<u64>) {
        let (filled, value) = match self.rng.percent(50) {
            true => (vec![2001, 2002], json!(0.25)),
            false => (vec![COUNTRY, 3002], json!("ZZ")),
        };
        let filled = if self.rng.percent(50) { filled } else { vec![filled[0]] };
        keys.extend(&filled);
        self.add("core::fill", &[input], json!({"keys": filled, "value": value}), keys);
    }

    fn join(&mut self, input: &str, mut keys: Vec<u64>) {
        let (other, more) = self.pick();
        let kind = *self.rng.choose(&["inner", "left", "semi", "anti"]);
        let mut params = json!({"kind": kind});
        let on = self.key(&keys);
        let same: Vec<u64> = more.iter().copied().filter(|key| kind_of(*key) == kind_of(on)).collect();
        if self.rng.percent(60) && !same.is_empty() {
            (params["on"], params["on_right"]) = (json!(on), json!(*self.rng.choose(&same)));
        }
        if matches!(kind, "semi" | "anti") {
            params["with"] = json!(other);
            self.add("core::join", &[input], params, keys);
            return;
        }
        // A few of each: they are multiplied.
        let few = json!({"count": self.rng.within(1..9)});
        let left = self.add("core::take", &[input], few.clone(), keys.clone());
        params["with"] = json!(self.add("core::take", &[&other], few, more.clone()));
        let brought: Vec<u64> = more.into_iter().filter(|_| self.rng.percent(60)).collect();
        params["columns"] = json!(brought);
        params["overwrite"] = json!(true);
        keys.extend(brought);
        self.add("core::join", &[&left], params, keys);
    }

    /// Reads parameters alone, or the first row of a node.
    fn choice(&mut self, input: &str, keys: Vec<u64>) {
        let (then, mut either) = self.pick();
        let mut params = json!({"then": then});
        if self.rng.percent(50) {
            let (on, columns) = self.pick();
            params["pred_id"] = json!(self.pred(&columns));
            params["on"] = json!(on);
        } else {
            let weight = json!({"op": "param_ref", "param_id": 1});
            let half = json!({"op": "const_number", "value": 0.5});
            self.preds.push(json!({"op": "cmp", "cmp": "<", "a": weight, "b": half}));
            params["pred_id"] = json!(format!("p{}", self.preds.len() - 1));
        }
        if self.rng.percent(50) {
            either.extend(keys);
        } else {
            let (or, more) = self.pick();
            either.extend(more);
            params["else"] = json!(or);
        }
        self.add("core::if", &[input], params, either);
    }

    fn key(&mut self, keys: &[u64]) -> u64 {
        if keys.is_empty() || self.rng.percent(30) { 1 } else { *self.rng.choose(keys) }
    }
}

fn unique(mut keys: Vec<u64>) -> Vec<u64> {
    keys.sort_unstable();
    keys.dedup();
    keys
}
