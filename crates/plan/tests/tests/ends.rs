//! How requests end, alone and beside many others: at once when a node fails, without a trace when nobody waits any
//! more, and a hundred of them on one worker.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anabranch_engine::clock::Clock;
use anabranch_plan::source::{
    Bound, Fault, Fetch, Keys, Memory, MemoryData, Pattern, Read, ReadContext, Redis, RedisConfig, Source,
};
use anabranch_plan::{Answer, Config, Engine, Error, Plan, Request, Scalar};
use anabranch_rows::Key;
use anabranch_testkit::{FakeServer, Sim, thread_cpu_time};
use futures_util::future::{Either, join_all, select};
use serde_json::{Value, json};

use crate::naive::world::registries;
use crate::sources::{clock, config};

const LIKES: u32 = 1001;

fn node(id: &str, op: &str, inputs: &[&str], params: Value) -> Value {
    json!({"node_id": id, "op": op, "inputs": inputs, "params": params})
}

fn plan(engine: &Engine, nodes: &[Value], output: &str, rest: Value) -> Plan {
    let mut plan = json!({"schema_version": 1, "plan_name": "ends", "nodes": nodes, "outputs": [output]});
    plan.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
    engine.compile(&plan.to_string(), Path::new(".")).unwrap()
}

fn engine(sim: &Sim, source: Arc<dyn Source>) -> Engine {
    let config = Config::new(registries(), vec![Arc::clone(&source), source]);
    Engine::on(sim.engine(&anabranch_engine::Config::default()), config)
}

fn run(sim: &Sim, plan: &Plan) -> (Result<Answer, Error>, Duration) {
    let clock = sim.clock();
    let start = clock.now();
    let answer = sim.block_on(plan.run(Request::new(1, plan.engine().registries())));
    (answer, clock.now() - start)
}

/// A store whose trips take 10 ms, one at a time, and are counted while they are under way.
struct Slow {
    memory: Memory,
    under_way: Arc<()>,
    reads: Mutex<Vec<Read>>,
}

impl Slow {
    fn new(clock: Arc<dyn Clock>) -> Slow {
        let data = r#"{"hashes": {"user:1": {"likes": 7, "author": 2}}, "lists": {"media:1": [1, 1, 5]}}"#;
        let data = Arc::new(MemoryData::from_json("data", data).unwrap());
        let fault = Fault { delay: Duration::from_millis(10), ..Fault::default() };
        let memory = Memory::new("ep_0001", data, clock).with_fault("", fault);
        Slow { memory, under_way: Arc::default(), reads: Mutex::default() }
    }
}

impl Source for Slow {
    fn bind(&self, pattern: &Pattern, read: &Read) -> Arc<dyn Bound> {
        self.reads.lock().unwrap().push(read.clone());
        Arc::new(SlowRead(self.memory.bind(pattern, read), Arc::clone(&self.under_way)))
    }

    fn max_inflight(&self) -> Option<u32> {
        Some(1)
    }
}

struct SlowRead(Arc<dyn Bound>, Arc<()>);

impl Bound for SlowRead {
    fn fetch(&self, keys: Keys, context: ReadContext<'_>) -> Fetch {
        let trip = Arc::clone(&self.1);
        match self.0.fetch(keys, context) {
            Fetch::Ready(reply) => Fetch::Ready(reply),
            Fetch::Later(reply) => Fetch::Later(Box::pin(async move {
                let _trip = trip;
                reply.await
            })),
        }
    }
}

#[test]
fn a_failure_does_not_wait_for_what_is_slow() {
    let sim = Sim::new(1);
    let engine = engine(&sim, Arc::new(Slow::new(sim.clock())));
    let nodes = [
        node("source", "test::fixed_source", &[], json!({"row_count": 3})),
        node("fails", "test::sleep", &["source"], json!({"duration_ms": 3, "fail_after_sleep": true})),
        node("sleeps", "test::sleep", &["source"], json!({"duration_ms": 800})),
        node("reads", "core::media", &["source"], json!({"endpoint": "ep_0001", "fanout": 5})),
        node("all", "core::union", &["fails"], json!({"with": ["sleeps", "reads"]})),
    ];
    let (answer, took) = run(&sim, &plan(&engine, &nodes, "all", json!({})));
    assert_eq!(
        answer.unwrap_err().to_string(),
        "node `fails` (test::sleep): intentional failure (fail_after_sleep=true)"
    );
    assert_eq!(took, Duration::from_millis(3));
    let left = sim.settle();
    assert_eq!((left.tasks, left.jobs), (0, 0));
}

#[tokio::test]
async fn a_failure_does_not_wait_for_a_busy_core() {
    let source: Arc<dyn Source> = Arc::new(Slow::new(clock()));
    let engine = Engine::load(Config::new(registries(), vec![Arc::clone(&source), source])).unwrap();
    let nodes = [
        node("source", "test::fixed_source", &[], json!({"row_count": 3})),
        node("fails", "test::sleep", &["source"], json!({"duration_ms": 10, "fail_after_sleep": true})),
        node("busy", "test::busy_cpu", &["source"], json!({"busy_wait_ms": 600_000})),
        node("all", "core::concat", &["fails"], json!({"rhs": "busy"})),
    ];
    let plan = plan(&engine, &nodes, "all", json!({}));
    let start = clock().now();
    assert!(plan.run(Request::new(1, engine.registries())).await.is_err());
    assert!(clock().now() - start < Duration::from_secs(300));
}

/// Two nodes that read the same beside each other, and one behind them.
fn shared_reads() -> [Value; 5] {
    let likes = json!({"endpoint": "ep_0001", "key": "user:{id}", "fields": ["likes"]});
    [
        node("viewer", "test::fixed_source", &[], json!({"row_count": 1})),
        node("media", "core::media", &["viewer"], json!({"endpoint": "ep_0001", "fanout": 5})),
        node("a", "core::lookup", &["viewer"], likes.clone()),
        node("b", "core::lookup", &["media"], likes),
        node("all", "core::concat", &["a"], json!({"rhs": "b"})),
    ]
}

#[test]
fn a_request_that_nobody_waits_for_leaves_nothing_behind() {
    for millis in 0..35 {
        let sim = Sim::new(millis);
        let source = Arc::new(Slow::new(sim.clock()));
        let (clock, under_way) = (sim.clock(), Arc::clone(&source.under_way));
        let engine = engine(&sim, source);
        let plan = plan(&engine, &shared_reads(), "all", json!({}));
        let idle = Arc::strong_count(&under_way);
        for _ in 0..3 {
            let request = plan.run(Request::new(1, engine.registries()));
            let soon = clock.sleep_until(clock.now() + Duration::from_millis(millis));
            match sim.block_on(select(Box::pin(request), soon)) {
                Either::Left((answer, _)) => assert!(answer.is_ok()),
                Either::Right((_, request)) => drop(request),
            }
            assert_eq!(Arc::strong_count(&under_way), idle, "no trip is left after {millis} ms");
            let left = sim.leftovers();
            assert_eq!((left.tasks, left.jobs), (0, 0), "after {millis} ms");
        }
        // One trip at a time: a slot that was lost would be waited for in vain.
        let (answer, took) = run(&sim, &plan);
        let likes: Vec<String> =
            answer.unwrap().candidates().map(|row| format!("{} {:?}", row.id, row.get(Key(LIKES)))).collect();
        assert_eq!(likes, ["1 Some(Int(7))", "1 Some(Int(7))", "1 Some(Int(7))", "5 None"]);
        assert_eq!(took, Duration::from_millis(30), "three trips, each after the other");
    }
}

#[test]
fn a_column_that_nobody_reads_is_not_fetched_to_be_filled() {
    let sim = Sim::new(1);
    let source = Arc::new(Slow::new(sim.clock()));
    let engine = engine(&sim, Arc::clone(&source) as Arc<dyn Source>);
    let nodes = [
        node("viewer", "test::fixed_source", &[], json!({"row_count": 1})),
        node(
            "read",
            "core::lookup",
            &["viewer"],
            json!({"endpoint": "ep_0001", "key": "user:{id}", "fields": ["likes", "author"]}),
        ),
        node("filled", "core::fill", &["read"], json!({"keys": ["likes", "author"], "value": 0})),
        node("kept", "core::filter", &["filled"], json!({"pred_id": "liked"})),
        node("media", "core::media", &["kept"], json!({"endpoint": "ep_0001", "fanout": 5})),
    ];
    let likes = json!({"op": "key_ref", "key_id": LIKES});
    let liked = json!({"op": "cmp", "cmp": ">", "a": likes, "b": {"op": "const_number", "value": 0}});
    let plan = plan(&engine, &nodes, "media", json!({"pred_table": {"liked": liked}}));
    assert_eq!(run(&sim, &plan).0.unwrap().candidates().count(), 3);
    let reads = source.reads.lock().unwrap();
    let names = reads.iter().filter_map(|read| match read {
        Read::Fields(fields) => Some(fields.iter().map(|field| field.name.to_string()).collect::<Vec<_>>()),
        _ => None,
    });
    assert_eq!(names.collect::<Vec<_>>(), [["likes"]]);
}

#[test]
fn much_work_goes_to_the_pool_wherever_its_rows_come_from() {
    let sim = Sim::new(1);
    let engine = engine(&sim, Arc::new(Slow::new(sim.clock())));
    let nodes = [
        node("source", "test::fixed_source", &[], json!({"row_count": 1_000_000})),
        node("scored", "core::vm", &["source"], json!({"out_key": 2001, "expr_id": "half"})),
        node("best", "core::topk", &["scored"], json!({"by": 2001, "count": 3})),
    ];
    let half =
        json!({"op": "mul", "a": {"op": "key_ref", "key_id": 1}, "b": {"op": "const_number", "value": 0.5}});
    let (answer, _) = run(&sim, &plan(&engine, &nodes, "best", json!({"expr_table": {"half": half}})));
    assert_eq!(answer.unwrap().outputs[0].ids().collect::<Vec<_>>(), [1_000_000, 999_999, 999_998]);
    assert!(sim.jobs_begun() > 0, "a million rows were scored in place");
}

/// A pattern is compiled once; the request that brings it first waits for a thread of the pool, the worker does not.
#[test]
fn a_pattern_of_a_request_is_compiled_on_the_pool() {
    let sim = Sim::new(1);
    let engine = engine(&sim, Arc::new(Slow::new(sim.clock())));
    let nodes = [
        node("source", "test::fixed_source", &[], json!({"row_count": 3})),
        node("named", "core::vm", &["source"], json!({"out_key": 3001, "expr_id": "name"})),
        node("kept", "core::filter", &["named"], json!({"pred_id": "named"})),
    ];
    let tables = json!({
        "expr_table": {"name": {"op": "const_string", "value": "US"}},
        "pred_table": {"named": {"op": "regex", "key_id": 3001, "pattern": {"kind": "param", "param_id": 2}}},
    });
    let plan = plan(&engine, &nodes, "kept", tables);
    let ask = || {
        let mut request = Request::new(1, engine.registries());
        request.set("pattern", Some(Scalar::Text("^U".into())), engine.registries()).unwrap();
        let answer = sim.block_on(plan.run(request)).unwrap();
        assert_eq!(answer.candidates().count(), 3);
        sim.jobs_begun()
    };
    assert_eq!((ask(), ask()), (1, 1), "compiled by a job, and then kept");
}

/// The same for a pattern that decides between two branches.
#[test]
fn a_pattern_of_a_condition_is_compiled_on_the_pool() {
    let sim = Sim::new(1);
    let engine = engine(&sim, Arc::new(Slow::new(sim.clock())));
    let nodes = [
        node("few", "test::fixed_source", &[], json!({"row_count": 3})),
        node("named", "core::vm", &["few"], json!({"out_key": 3001, "expr_id": "name"})),
        node("many", "test::fixed_source", &[], json!({"row_count": 5})),
        node("chosen", "core::if", &["few"], json!({"pred_id": "named", "then": "many", "on": "named"})),
    ];
    let tables = json!({
        "expr_table": {"name": {"op": "const_string", "value": "US"}},
        "pred_table": {"named": {"op": "regex", "key_id": 3001, "pattern": {"kind": "param", "param_id": 2}}},
    });
    let plan = plan(&engine, &nodes, "chosen", tables);
    let ask = |pattern: &str| {
        let mut request = Request::new(1, engine.registries());
        request.set("pattern", Some(Scalar::Text(pattern.into())), engine.registries()).unwrap();
        let answer = sim.block_on(plan.run(request)).unwrap();
        (answer.candidates().count(), sim.jobs_begun())
    };
    assert_eq!([ask("^U"), ask("^U"), ask("^u")], [(5, 1), (5, 1), (3, 2)], "compiled by a job, then kept");
}

/// The commands of a hundred and more requests are all sent before the first is answered, from one thread.
#[tokio::test(flavor = "current_thread")]
async fn one_worker_keeps_the_commands_of_many_requests_in_flight() {
    const EACH: usize = 64;
    let server = FakeServer::start(|talk| {
        talk.answer_hello();
        let commands: Vec<_> = std::iter::from_fn(|| talk.command()).take(EACH).collect();
        for words in commands {
            let id = words[1].strip_prefix("user:").unwrap();
            talk.send(format!("${}\r\n{id}\r\n", id.len()));
        }
        talk.command();
    });
    let patient = RedisConfig { max_inflight: 1_000, ..config(server.port()) };
    let source: Arc<dyn Source> = Arc::new(Redis::new(patient, clock()));
    let engine = Engine::load(Config::new(registries(), vec![Arc::clone(&source), source])).unwrap();
    let plan = plan(
        &engine,
        &[node("viewer", "core::viewer", &[], json!({"endpoint": "ep_0001"}))],
        "viewer",
        json!({}),
    );
    let request = |user: i64| plan.run(Request::new(user, engine.registries()));
    let answers = join_all((1..=2 * EACH as i64).map(request)).await;
    for (answer, user) in answers.into_iter().zip(1..) {
        let answer = answer.unwrap();
        let row = answer.candidates().next().unwrap();
        assert_eq!(format!("{:?}", row.get(Key(3001))), format!("Some(Text(\"{user}\"))"));
    }
    assert_eq!(server.connections(), 2);
}

/// Loads a plan with these nodes, of which the last is the output, and says how much CPU time it took.
fn load(nodes: &[Value]) -> Duration {
    let sim = Sim::new(1);
    let engine = engine(&sim, Arc::new(Slow::new(sim.clock())));
    let never = json!({"op": "const_bool", "value": false});
    let start = thread_cpu_time();
    let last = nodes[nodes.len() - 1]["node_id"].as_str().unwrap().to_owned();
    plan(&engine, nodes, &last, json!({"pred_table": {"never": never}}));
    thread_cpu_time() - start
}

#[test]
fn large_plans_load_soon() {
    let source = node("n0", "test::fixed_source", &[], json!({}));
    let sleep = |at: usize| {
        node(&format!("n{at}"), "test::sleep", &[&format!("n{}", at - 1)], json!({"duration_ms": 0}))
    };
    let branch = |at: usize, then: &str| {
        node(&format!("n{at}"), "core::if", &["n0"], json!({"pred_id": "never", "then": then}))
    };
    // One branch of many nodes.
    let mut long: Vec<Value> = std::iter::once(source.clone()).chain((1..9_000).map(sleep)).collect();
    long.push(branch(9_000, "n8999"));
    // Branches within branches.
    let mut nested = vec![source];
    for at in (1..4_000).step_by(2) {
        nested.push(sleep(at));
        nested.push(branch(at + 1, &format!("n{at}")));
    }
    let took = [load(&long), load(&nested)];
    assert!(took.iter().max() < Some(&Duration::from_secs(10)), "{took:?}");
}

#[test]
fn plans_of_many_regions_load_soon() {
    let region = |at: usize, input: &str| {
        json!({"node_id": format!("r{at}"), "op": "core::timeout", "inputs": [input], "params": {},
               "fallback": "empty"})
    };
    let source = node("n0", "test::fixed_source", &[], json!({}));
    let sleep =
        |at: usize, input: &str| node(&format!("n{at}"), "test::sleep", &[input], json!({"duration_ms": 0}));
    let mut wide = vec![source.clone()];
    for at in 1..=900 {
        wide.push(sleep(at, "n0"));
        wide.push(region(at, &format!("n{at}")));
    }
    let others: Vec<String> = (1..=900).map(|at| format!("r{at}")).collect();
    wide.push(node("all", "core::union", &["n0"], json!({"with": others})));
    let took = load(&wide);
    assert!(took < Duration::from_secs(10), "{took:?}");
    // Regions within regions are as many stages to give up each time, so they are bounded.
    let mut nested = vec![source];
    for at in 1..=2_000 {
        let before = if at == 1 { "n0".to_owned() } else { format!("r{}", at - 1) };
        nested.push(sleep(at, &before));
        nested.push(region(at, &format!("n{at}")));
    }
    let sim = Sim::new(1);
    let text = json!({"schema_version": 1, "plan_name": "deep", "nodes": nested, "outputs": ["r2000"]});
    let refused = engine(&sim, Arc::new(Slow::new(sim.clock()))).compile(&text.to_string(), Path::new("."));
    let error = refused.err().expect("too deep").to_string();
    assert!(error.contains("is within 16 other regions"), "{error}");
}

#[test]
fn what_hangs_on_a_closed_side_does_not_run_however_deep() {
    let sleep = |id: &str, input: &str, millis: u32| {
        node(id, "test::sleep", &[input], json!({"duration_ms": millis}))
    };
    let check = |outer: bool, inner: bool, expected: u64| {
        let nodes = [
            node("source", "test::fixed_source", &[], json!({})),
            sleep("deep", "source", 100),
            sleep("deeper", "deep", 100),
            node("inner", "core::if", &["source"], json!({"pred_id": "inner", "then": "deeper"})),
            sleep("behind", "inner", 10),
            node("outer", "core::if", &["source"], json!({"pred_id": "outer", "then": "behind"})),
        ];
        let preds = json!({
            "inner": {"op": "const_bool", "value": inner},
            "outer": {"op": "const_bool", "value": outer},
        });
        let sim = Sim::new(1);
        let engine = engine(&sim, Arc::new(Slow::new(sim.clock())));
        let (answer, took) = run(&sim, &plan(&engine, &nodes, "outer", json!({"pred_table": preds})));
        assert_eq!(answer.unwrap().candidates().count(), 1);
        assert_eq!(took, Duration::from_millis(expected), "outer {outer}, inner {inner}");
    };
    check(false, false, 0);
    check(false, true, 0);
    check(true, false, 10);
    check(true, true, 210);
}
