//! When cells start: as soon as what they read is there.

use anabranch_dataset::output::{ExportFormat, Folder, export};
use anabranch_dataset::{BuildOptions, ColumnSettings, Dataset, Fault};
use anabranch_engine::Engine;
use anabranch_engine::retry::Retry;
use anabranch_testkit::{Leftovers, Rng, Sim};
use anabranch_value::Value;

use crate::kit::{Log, ScriptedColumn, dataset, engine, ms, scratch, shown, without_journal};

/// Builds so many rows in groups of `size`, with up to three groups in flight.
async fn build(mut dataset: Dataset, rows: u64, size: u64, test: &str) -> anabranch_dataset::BuildReport {
    dataset.run_options().buffer_size = size;
    let options = BuildOptions { rows, out: scratch(test), replace: false, ..without_journal() };
    dataset.build(options).await.unwrap().run().await.unwrap()
}

#[test]
fn independent_columns_overlap() {
    let sim = Sim::new(1);
    let (engine, log) = (engine(&sim), Log::new(&sim));
    let columns = vec![ScriptedColumn::cell("a", &[], &log), ScriptedColumn::cell("b", &[], &log)];
    sim.block_on(dataset(&engine, columns).preview(2).unwrap().preview()).unwrap();
    assert_eq!(log.lines().iter().filter(|line| line.ends_with("starts")).count(), 4);
    assert_eq!((log.at("a0 starts"), log.at("b0 starts"), log.at("b1 ends")), (0, 0, 10));
}

#[test]
fn a_cell_starts_when_its_row_is_ready() {
    let sim = Sim::new(1);
    let (engine, log) = (engine(&sim), Log::new(&sim));
    let slow_row = |row| if row == 0 { ms(100) } else { ms(10) };
    let columns =
        vec![ScriptedColumn::cell("a", &[], &log).takes(slow_row), ScriptedColumn::cell("b", &["a"], &log)];
    let preview = sim.block_on(dataset(&engine, columns).preview(3).unwrap().preview()).unwrap();
    assert_eq!((log.at("b1 starts"), log.at("b2 starts"), log.at("b0 starts")), (10, 10, 100));
    assert_eq!(preview.rows.columns[1].values[2], Value::from("b2(a2())"));
}

#[test]
fn a_batch_waits_for_the_columns_that_it_reads_and_no_others() {
    let sim = Sim::new(1);
    let (engine, log) = (engine(&sim), Log::new(&sim));
    let columns = vec![
        ScriptedColumn::cell("a", &[], &log).takes(|row| ms(10 * (row + 1))),
        ScriptedColumn::cell("slow", &[], &log).takes(|_| ms(500)),
        ScriptedColumn::batch("whole", &["a"], &log),
        ScriptedColumn::cell("after", &["whole"], &log),
    ];
    sim.block_on(dataset(&engine, columns).preview(3).unwrap().preview()).unwrap();
    assert_eq!((log.at("whole of group 0 starts with 3"), log.at("after0 starts")), (30, 40));
}

#[test]
fn row_groups_pipeline_and_are_bounded() {
    let sim = Sim::new(1);
    let (engine, log) = (engine(&sim), Log::new(&sim));
    let columns =
        vec![ScriptedColumn::cell("a", &[], &log), ScriptedColumn::cell("b", &["a"], &log).takes(|_| ms(30))];
    let report = sim.block_on(build(dataset(&engine, columns), 10, 2, "pipeline"));
    assert_eq!(report.rows, 10);
    // Groups 1 and 2 begin while group 0 is at `b`; group 3 begins when group 0 is written.
    assert_eq!((log.at("a2 starts"), log.at("a4 starts"), log.at("b0 ends")), (0, 0, 40));
    assert!(log.at("a6 starts") >= 40 && log.at("a6 starts") < 80, "{:?}", log.lines());
}

#[test]
fn a_slow_row_group_keeps_no_other_from_starting() {
    let sim = Sim::new(1);
    let (engine, log) = (engine(&sim), Log::new(&sim));
    let slow_row = |row| if row == 0 { ms(10_000) } else { ms(10) };
    let columns = vec![ScriptedColumn::cell("a", &[], &log).takes(slow_row)];
    let report = sim.block_on(build(dataset(&engine, columns), 40, 2, "slow_group"));
    assert_eq!(report.rows, 40);
    assert!(log.at("a39 ends") < 1_000);
}

#[test]
fn rows_are_finished_first() {
    let sim = Sim::new(1);
    let (engine, log) = (engine(&sim), Log::new(&sim));
    let mut dataset = Dataset::new("test", &engine);
    let limit = dataset.limits().add("model", anabranch_engine::limit::Allowance::fixed(1)).unwrap();
    for (name, reads) in [("a", &[][..]), ("b", &["a"][..]), ("c", &["b"][..])] {
        let settings = ColumnSettings { limit: Some(limit), ..ColumnSettings::default() };
        dataset.column(ScriptedColumn::cell(name, reads, &log), settings);
    }
    sim.block_on(dataset.preview(3).unwrap().preview()).unwrap();
    // With one call at a time, a row is complete before the next one begins.
    let ends: Vec<String> = log.lines().into_iter().filter(|line| line.ends_with("ends")).collect();
    assert_eq!(ends[..4], ["a0 ends", "b0 ends", "c0 ends", "a1 ends"]);
}

#[test]
fn stateful_generators_take_row_groups_in_order() {
    for grain in ["cell", "batch"] {
        let sim = Sim::new(7);
        let (engine, log) = (engine(&sim), Log::new(&sim));
        let make = |name: &str| match grain {
            "cell" => ScriptedColumn::cell(name, &["a"], &log),
            _ => ScriptedColumn::batch(name, &["a"], &log),
        };
        // Later groups are ready earlier.
        let columns = vec![
            ScriptedColumn::cell("a", &[], &log).takes(|row| ms(100 - 10 * row)),
            make("cursor").stateful(),
            make("free"),
        ];
        sim.block_on(build(dataset(&engine, columns), 6, 2, &format!("stateful_{grain}")));
        let cursor: Vec<String> = log.lines().into_iter().filter(|line| line.starts_with("cursor")).collect();
        let order = |what: &str| cursor.iter().position(|line| line.starts_with(what)).unwrap();
        if grain == "cell" {
            // Rows 0 and 1 are group 0, rows 2 and 3 group 1.
            assert!(
                order("cursor1 ends") < order("cursor2 starts")
                    && order("cursor3 ends") < order("cursor4 starts")
            );
            assert!(log.at("free4 starts") < log.at("free0 starts"));
        } else {
            assert!(order("cursor of group 0 ends") < order("cursor of group 1 starts"));
            assert!(order("cursor of group 1 ends") < order("cursor of group 2 starts"));
            assert!(log.at("free of group 2 starts with 2") < log.at("free of group 0 starts with 2"));
        }
    }
}

#[test]
fn a_failed_row_stops_paying_at_once() {
    let sim = Sim::new(1);
    let (engine, log) = (engine(&sim), Log::new(&sim));
    let columns = vec![
        ScriptedColumn::cell("quick", &[], &log).fails_on(|row| row == 1),
        ScriptedColumn::cell("slow", &[], &log).takes(|_| ms(50)),
        ScriptedColumn::cell("late", &["slow"], &log),
    ];
    let preview = sim.block_on(dataset(&engine, columns).preview(3).unwrap().preview()).unwrap();
    assert_eq!(preview.rows.ids, [Some(0), Some(2)]);
    // The call under way is cancelled, and the one behind it never starts.
    assert!(!log.has("slow1 ends") && !log.has("late1 starts"));
    assert_eq!(sim.leftovers(), Leftovers { tasks: 0, jobs: 0 });
}

#[test]
fn transient_failures_are_tried_again() {
    let sim = Sim::new(1);
    let (engine, log) = (engine(&sim), Log::new(&sim));
    let mut dataset = Dataset::new("test", &engine);
    let flaky = ScriptedColumn::cell("a", &[], &log).answers(|row, _, attempt| match (row, attempt) {
        (0, 1 | 2) => Err(Fault::transient("server_error", "500")),
        (1, _) => Err(Fault::transient("server_error", "always 500")),
        (2, _) => Err(Fault::permanent("bad_request", "400")),
        _ => Ok(Value::from(format!("try {attempt}"))),
    });
    let retry = Retry { rounds: 2, base: ms(100), longest: ms(1000), ..Retry::default() };
    dataset.column(flaky, ColumnSettings { retry: Some(retry), ..ColumnSettings::default() });
    let preview = sim.block_on(dataset.preview(4).unwrap().preview()).unwrap();
    expect_test::expect![[r#"
        {"a":"try 3"}
        {"a":"try 1"}
        row 1 column a: server_error after 3: always 500
        row 2 column a: bad_request after 1: 400"#]]
    .assert_eq(&shown(&preview));
    assert_eq!((log.count("a0 starts"), log.count("a2 starts")), (3, 1));
}

/// Five columns with random latencies and some failures.
fn tangled(sim: &Sim, engine: &Engine, latency_seed: u64) -> Dataset {
    let log = Log::new(sim);
    let takes =
        move |column: u64| move |row: u64| ms(Rng::new(latency_seed ^ (column << 32) ^ row).within(0..200));
    let columns = vec![
        ScriptedColumn::cell("a", &[], &log).takes(takes(1)).fails_on(|row| row % 13 == 5),
        ScriptedColumn::cell("b", &["a"], &log).takes(takes(2)),
        ScriptedColumn::batch("c", &["a"], &log).takes(takes(3)).fails_on(|row| row % 11 == 3),
        ScriptedColumn::cell("d", &["b", "c"], &log).takes(takes(4)).fails_on(|row| row % 17 == 2),
        ScriptedColumn::cell("e", &[], &log).takes(takes(5)).stateful(),
    ];
    dataset(engine, columns)
}

/// The rows depend neither on the order of events nor on the size of row groups.
#[test]
fn every_interleaving_gives_the_same_dataset() {
    let preview = |seed: u64| {
        let sim = Sim::new(seed);
        let engine = engine(&sim);
        let preview = sim.block_on(tangled(&sim, &engine, seed).preview(40).unwrap().preview()).unwrap();
        assert_eq!(sim.leftovers(), Leftovers { tasks: 0, jobs: 0 });
        (0..preview.rows.ids.len()).map(|row| preview.rows.row(row).to_json()).collect::<Vec<String>>()
    };
    let expected = preview(0);
    assert_eq!(expected.len(), (0..40).filter(|row| row % 13 != 5 && row % 11 != 3 && row % 17 != 2).count());
    for seed in 1..100 {
        assert_eq!(preview(seed), expected, "seed {seed}");
    }
    for seed in 1..20 {
        let sim = Sim::new(seed);
        let engine = engine(&sim);
        let out = scratch("interleaved");
        let built = async {
            let mut dataset = tangled(&sim, &engine, seed);
            dataset.run_options().buffer_size = 1 + seed;
            let options = BuildOptions { rows: 40, out: out.clone(), replace: true, ..without_journal() };
            dataset.build(options).await.unwrap().run().await.unwrap()
        };
        sim.block_on(built);
        let mut lines = Vec::new();
        export(&Folder::open(&out).unwrap(), ExportFormat::Jsonl, &out, &mut lines).unwrap();
        let lines = String::from_utf8(lines).unwrap();
        assert_eq!(lines.lines().collect::<Vec<&str>>(), expected, "seed {seed}");
    }
}

#[test]
fn a_dropped_build_leaves_nothing_behind() {
    for polls in [1, 5, 20, 60] {
        let sim = Sim::new(polls);
        let (engine, log) = (engine(&sim), Log::new(&sim));
        let columns = vec![ScriptedColumn::cell("a", &[], &log), ScriptedColumn::batch("b", &["a"], &log)];
        let build = dataset(&engine, columns).preview(20).unwrap();
        let cut = engine.clock().sleep_until(engine.clock().now() + ms(polls));
        sim.block_on(async {
            let run = std::pin::pin!(build.preview());
            drop(futures_util::future::select(run, cut).await);
        });
        assert_eq!(sim.settle(), Leftovers { tasks: 0, jobs: 0 });
    }
}
