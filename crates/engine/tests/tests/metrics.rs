//! Metrics: what is counted, what is timed, what is forgotten.

use std::time::Duration;

use anabranch_engine::NodeId;
use anabranch_engine::event::{Event, EventKind, ListenerItem, Placement, RunEnding, RunId};
use anabranch_engine::metrics::{DurationStats, Metrics, Snapshot};
use expect_test::{Expect, expect};

use crate::alloc;
use crate::tape::{at, tape};

fn fed(events: &str) -> Snapshot {
    let mut metrics = Metrics::new();
    tape(events).iter().for_each(|heard| metrics.record(heard));
    metrics.snapshot()
}

/// The lines of the text that are not zero, without those that explain.
fn check(events: &str, expected: Expect) {
    let text = fed(events).render("engine", &[]);
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.ends_with(" 0"));
    let lines: Vec<&str> = lines.filter(|line| !line.contains("_bucket")).collect();
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn everything_is_counted_under_its_name() {
    check(
        "0 run 6; 0 a start future; 4 a done; 4 b start pool; 5 b running; 9 b fail timeout; 9 c drop
         9 d limit; 12 d start spawned; 13 d retry; 23 d start spawned; 25 d fallback error; 25 e start inline
         26 e done; 30 end complete; @1 30 run 1; @1 31 a start blocking; @2 40 run 1; @2 40 end deadline",
        expect![[r#"
            engine_runs_started_total 3
            engine_runs_ended_total{ending="complete"} 1
            engine_runs_ended_total{ending="deadline"} 1
            engine_node_attempts_total 6
            engine_nodes_finished_total 2
            engine_nodes_fell_back_total{reason="error"} 1
            engine_nodes_failed_total{reason="timeout"} 1
            engine_nodes_dropped_total 1
            engine_runs_open 1
            engine_nodes_in_flight 1
            engine_node_seconds_sum{place="inline"} 0.001
            engine_node_seconds_count{place="inline"} 1
            engine_node_seconds_sum{place="future"} 0.004
            engine_node_seconds_count{place="future"} 1
            engine_node_seconds_sum{place="spawned"} 0.003
            engine_node_seconds_count{place="spawned"} 2
            engine_node_seconds_sum{place="pool"} 0.004
            engine_node_seconds_count{place="pool"} 1
            engine_wait_seconds_sum{on="limit"} 0.003
            engine_wait_seconds_count{on="limit"} 1
            engine_wait_seconds_sum{on="retry"} 0.01
            engine_wait_seconds_count{on="retry"} 1
            engine_wait_seconds_sum{on="queue"} 0.001
            engine_wait_seconds_count{on="queue"} 1
            engine_run_seconds_sum 0.03
            engine_run_seconds_count 2"#]],
    );
    check(
        "0 run 4; 0 a limit; 0 b retry; 0 c start future; 0 d start pool; 9 d drop",
        expect![[r#"
        engine_runs_started_total 1
        engine_node_attempts_total 2
        engine_nodes_dropped_total 1
        engine_runs_open 1
        engine_nodes_in_flight 1
        engine_nodes_waiting{on="limit"} 1
        engine_nodes_waiting{on="retry"} 1"#]],
    );
    check(
        "0 run 4; 0 a limit; 0 c start future; 7 end dropped",
        expect![[r#"
        engine_runs_started_total 1
        engine_runs_ended_total{ending="dropped"} 1
        engine_node_attempts_total 1
        engine_run_seconds_sum 0.007
        engine_run_seconds_count 1"#]],
    );
}

#[test]
fn the_text_is_what_prometheus_reads() {
    let text =
        fed("0 run 1; 0 a start future; 5 a done; 5 end complete").render("x", &[("host", "a\"b\\c\nd")]);
    let start: Vec<&str> = text.lines().take(8).collect();
    expect![[r##"
        # HELP x_runs_started_total Runs that were admitted.
        # TYPE x_runs_started_total counter
        x_runs_started_total{host="a\"b\\c\nd"} 1
        # HELP x_runs_ended_total Runs that ended, by how they ended.
        # TYPE x_runs_ended_total counter
        x_runs_ended_total{host="a\"b\\c\nd",ending="complete"} 1
        x_runs_ended_total{host="a\"b\\c\nd",ending="failed"} 0
        x_runs_ended_total{host="a\"b\\c\nd",ending="deadline"} 0"##]]
    .assert_eq(&start.join("\n"));
    let buckets = text.lines().filter(|line| line.starts_with("x_run_seconds"));
    let buckets: Vec<&str> = buckets.skip(5).take(3).chain(text.lines().rev().take(3)).collect();
    expect![[r#"
        x_run_seconds_bucket{host="a\"b\\c\nd",le="0.0025"} 0
        x_run_seconds_bucket{host="a\"b\\c\nd",le="0.005"} 1
        x_run_seconds_bucket{host="a\"b\\c\nd",le="0.01"} 1
        x_run_seconds_count{host="a\"b\\c\nd"} 1
        x_run_seconds_sum{host="a\"b\\c\nd"} 0.005
        x_run_seconds_bucket{host="a\"b\\c\nd",le="+Inf"} 1"#]]
    .assert_eq(&buckets.join("\n"));
    assert_valid(&text);
}

/// Every sample follows the head of its family; buckets never fall and end with the count.
fn assert_valid(text: &str) {
    let (mut family, mut last) = ("", 0.0);
    for line in text.lines() {
        if let Some(head) = line.strip_prefix("# TYPE ") {
            family = head.split(' ').next().unwrap();
            continue;
        }
        if line.starts_with("# HELP ") {
            continue;
        }
        let (name, value) = line.rsplit_once(' ').unwrap();
        let value: f64 = value.parse().unwrap();
        let name = name.split('{').next().unwrap();
        let suffix = name.strip_prefix(family).unwrap_or_else(|| panic!("{line} is not of {family}"));
        assert!(["", "_bucket", "_sum", "_count"].contains(&suffix), "{line}");
        if suffix == "_bucket" {
            assert!(value >= last, "{line}");
            last = value;
        } else if suffix == "_count" {
            assert_eq!(value, last, "{line}");
            last = 0.0;
        }
    }
}

#[test]
#[should_panic = "`9a` is not a valid name"]
fn a_bad_name_is_refused() {
    fed("").render("x", &[("9a", "")]);
}

fn event(run: u64, millis: f64, kind: EventKind) -> ListenerItem {
    ListenerItem::Event(Event { run: RunId(run), at: at(millis), kind })
}

#[test]
fn percentiles_are_right_to_a_hundredth() {
    let mut metrics = Metrics::new();
    for node in 0..1_000 {
        metrics.record(&event(0, 0.0, EventKind::Started(NodeId(node), Placement::Future)));
        metrics.record(&event(0, f64::from(node + 1), EventKind::Finished(NodeId(node))));
    }
    let (_, times) = &metrics.snapshot().node_times[1];
    let near = |time: Duration, millis: f64| (time.as_secs_f64() * 1e3 / millis - 1.0).abs() < 0.011;
    assert!(near(times.p50, 500.0) && near(times.p90, 900.0) && near(times.p99, 990.0), "{times:?}");
    assert!(near(times.p999, 999.0) && near(times.max, 1000.0), "{times:?}");
    assert_eq!(times.count, 1000);
    let whole: f64 = times.sum.as_secs_f64();
    assert!((whole - 500.5).abs() < 1e-6, "{whole}");
    let second = DurationStats::BOUNDS.iter().position(|bound| *bound == Duration::from_secs(1)).unwrap();
    assert_eq!(times.within[second], 1000);
}

#[test]
fn after_a_loss_what_stays_silent_is_forgotten() {
    let mut metrics = Metrics::new();
    let mut feed = |events: &str| {
        tape(events).iter().for_each(|heard| metrics.record(heard));
        let snapshot = metrics.snapshot();
        (snapshot.runs_open, snapshot.in_flight)
    };
    assert_eq!(feed("0 run 9; @1 0 run 9; 0 a start future; @1 0 a start future; 5 b start future"), (2, 3));
    assert_eq!(feed("lost 7; 50000 c start future"), (2, 4), "they may yet end");
    assert_eq!(feed("60005 d start future"), (1, 2), "run 1, a and b were silent since the loss");
    assert_eq!(
        feed("60010 a done; 200000 d done"),
        (1, 1),
        "an end still counts; without a loss nothing ages"
    );
    assert_eq!(metrics.snapshot().finished, 2);
    assert_eq!(metrics.snapshot().node_times[1].1.count, 1, "but is not timed");
}

#[test]
fn memory_has_a_bound_however_many_ends_are_missing() {
    let mut metrics = Metrics::new();
    for node in 0..300_000 {
        metrics.record(&event(0, 0.0, EventKind::Started(NodeId(node), Placement::Future)));
    }
    for run in 0..100_000 {
        metrics.record(&event(run, 0.0, EventKind::RunStarted(1)));
    }
    let snapshot = metrics.snapshot();
    assert_eq!((snapshot.in_flight, snapshot.runs_open), (131_072, 65_536));
    assert_eq!(snapshot.untimed, 300_000 - 131_072 + 100_000 - 65_536);
    for run in 0..100_000 {
        metrics.record(&event(run, 1.0, EventKind::RunEnded(RunEnding::Cut)));
    }
    let snapshot = metrics.snapshot();
    assert_eq!((snapshot.in_flight, snapshot.runs_open), (0, 0));
    let mut short_run = |run| {
        metrics.record(&event(run, 2.0, EventKind::RunStarted(1)));
        metrics.record(&event(run, 2.0, EventKind::Started(NodeId(0), Placement::Inline)));
        metrics.record(&event(run, 2.0, EventKind::Finished(NodeId(0))));
        metrics.record(&event(run, 2.0, EventKind::RunEnded(RunEnding::Complete)));
    };
    short_run(0);
    let ((), steady) = alloc::count_of(|| (1..1_000).for_each(short_run));
    assert_eq!(steady, 0, "what is open is kept in tables that are used again");
}
