//! The progress line, fed by hand.

use std::fmt::Write;

use anabranch_engine::NodeId;
use anabranch_engine::event::{Event, EventKind, ListenerItem, Placement, RunId};
use anabranch_engine::progress::Progress;
use expect_test::{Expect, expect};

use crate::tape::{at, tape};

fn fed(events: &str) -> Progress {
    let mut progress = Progress::default();
    tape(events).iter().for_each(|heard| progress.record(heard));
    progress
}

fn check(events: &str, now: f64, expected: Expect) {
    let progress = fed(events);
    expected.assert_eq(&progress.line(100, at(now)));
    for width in 20..140 {
        let line = progress.line(width, at(now));
        assert!(line.len() <= width && line.is_ascii(), "{width}: {line}");
    }
}

/// A run of `total` nodes of which `ended` ended, one each 10 ms, and some are in flight.
fn running(total: u32, ended: u32, in_flight: u32) -> (Progress, f64) {
    let mut progress = Progress::default();
    let mut hear = |millis: f64, kind| {
        progress.record(&ListenerItem::Event(Event { run: RunId(0), at: at(millis), kind }));
    };
    hear(0.0, EventKind::RunStarted(total));
    for node in 0..ended {
        hear(f64::from(node) * 10.0, EventKind::Started(NodeId(node), Placement::Future));
        hear(f64::from(node + 1) * 10.0, EventKind::Finished(NodeId(node)));
    }
    for node in ended..ended + in_flight {
        hear(f64::from(ended) * 10.0, EventKind::Started(NodeId(node), Placement::Future));
    }
    (progress, f64::from(ended) * 10.0)
}

#[test]
fn each_node_is_counted_where_it_stands() {
    check("", 0.0, expect!["waiting for a run"]);
    check("0 run 4", 0.0, expect!["------------------------------  0/4  0%  0/s  0ms"]);
    check(
        "0 run 4; 0 a start future; 0 b limit",
        1500.0,
        expect!["------------------------------  0/4  0%  1 running  1 waiting for a limit  0/s  1.5s"],
    );
    check(
        "0 run 4; 0 a start future; 500 a retry; 500 b start pool; 700 b running",
        1000.0,
        expect!["------------------------------  0/4  0%  1 running  1 waiting to retry  0/s  1.0s"],
    );
    check(
        "0 run 6; 0 a start future; 9 a fail error; 9 b drop; 9 c fallback deadline; 20 d start future; 99 d done",
        1000.0,
        expect![
            "####################----------  4/6  66%  1 failed  1 fell back  1 dropped  3.8/s  eta 524ms"
        ],
    );
    check(
        "0 run 2; 0 a start inline; 1 a done; 1 b start inline; 2500 b done; 2500 end complete",
        9999.0,
        expect!["##############################  2/2  100%  in 2.5s"],
    );
}

#[test]
fn a_run_that_stops_early_leaves_nodes_behind() {
    check(
        "0 run 9; 0 a start future; 0 b start future; 0 c limit; 30 a fail error; 30 end failed",
        40.0,
        expect!["###---------------------------  1/9  11%  1 failed  8 not ended  in 30ms"],
    );
}

#[test]
fn several_runs_add_up() {
    let events =
        "0 run 10; @1 0 run 5; 0 a start future; @1 0 a start future; @1 50 a done; 100 b start future";
    check(events, 1000.0, expect!["##----------------------------  1/15  6%  2 running  1.0/s  eta 14s"]);
    let counts = fed(events).counts();
    assert_eq!((counts.total, counts.finished, counts.in_flight, counts.remaining()), (15, 1, 2, 14));
    check(
        &format!("{events}; 2000 end cut; @1 3000 a done"),
        3000.0,
        expect!["##----------------------------  1/15  6%  10 not ended  0.3/s  eta 13s"],
    );
}

#[test]
fn losses_are_told_and_a_run_whose_start_was_lost_grows() {
    check(
        "lost 12; 0 c done; 5 e start future",
        1000.0,
        expect!["######------------------------  1/5  20%  1 running  12 events lost  1.0/s  eta 4.2s"],
    );
    check(
        "lost 12; 0 c done; 5 e start future; 7 end complete",
        1000.0,
        expect!["######------------------------  1/5  20%  4 not ended  12 events lost  in 7ms"],
    );
}

#[test]
fn what_matters_most_stays_longest() {
    let (progress, now) = running(1000, 512, 12);
    let mut lines = String::new();
    for width in [100, 80, 60, 50, 40, 30, 20] {
        writeln!(lines, "{width:3} |{}", progress.line(width, at(now))).unwrap();
    }
    expect![[r#"
        100 |###############---------------  512/1000  51%  12 running  100/s  eta 4.9s
         80 |###############---------------  512/1000  51%  12 running  100/s  eta 4.9s
         60 |########--------  512/1000  51%  12 running  100/s  eta 4.9s
         50 |######-------  512/1000  51%  12 running  eta 4.9s
         40 |#######--------  512/1000  51%  eta 4.9s
         30 |512/1000  51%  100/s  eta 4.9s
         20 |512/1000  51%  100/s
    "#]]
    .assert_eq(&lines);
}

#[test]
fn huge_numbers_fit_too() {
    let mut progress = Progress::default();
    for run in 0..4 {
        let kind = EventKind::RunStarted(500_000_000 / 1000);
        progress.record(&ListenerItem::Event(Event { run: RunId(run), at: at(0.0), kind }));
    }
    for width in 20..60 {
        assert!(progress.line(width, at(1.0)).len() <= width);
    }
}

#[test]
fn the_rate_follows_the_last_seconds_and_a_stall_shows() {
    let (progress, now) = running(10_000, 3_000, 4);
    let rate = |seconds: f64| progress.rate(at(now + seconds * 1e3));
    assert!((rate(0.0) - 100.0).abs() < 1.0, "{}", rate(0.0));
    assert!(rate(5.0) < 70.0 && rate(30.0) < 6.0, "{} {}", rate(5.0), rate(30.0));
    let eta = |seconds: f64| progress.eta(at(now + seconds * 1e3)).unwrap().as_secs();
    assert!((69..=71).contains(&eta(0.0)) && eta(30.0) > 1000, "{} {}", eta(0.0), eta(30.0));
}

#[test]
fn a_percentage_is_not_rounded_up_to_the_end() {
    let (progress, now) = running(1000, 999, 1);
    expect!["#################-  999/1000  99%  1 running  100/s  eta 9ms"]
        .assert_eq(&progress.line(60, at(now)));
}
