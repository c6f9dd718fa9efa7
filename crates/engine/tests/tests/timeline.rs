//! Where the time went: small timelines in words.

mod hold;
mod large;
mod picture;
mod random;

use std::fmt::Write;
use std::time::Duration;

use anabranch_engine::event::RunId;
use anabranch_engine::timeline::{Error as TimelineError, TimeSpent, Timeline};
use anabranch_engine::{Dag, NodeId};
use expect_test::{Expect, expect};

use crate::script::Script;
use crate::tape::tape;
use hold::hold;

/// A timeline in words: a line a node, the critical path, what it spent time on.
pub(crate) fn words(timeline: &Timeline, name: &dyn Fn(NodeId) -> String) -> String {
    let mut out = String::new();
    for (node, track) in (0..).map(NodeId).zip(timeline.tracks()) {
        let time = |time: Option<Duration>| time.map_or("?".to_owned(), |time| time.as_millis().to_string());
        let times = [track.ready, track.started, track.ended].map(time).join("/");
        let attempts = if track.attempts > 1 { format!(" x{}", track.attempts) } else { String::new() };
        writeln!(out, "{} {times} {:?}{attempts}:{}", name(node), track.outcome, parts(track.spent)).unwrap();
    }
    let path: Vec<String> = timeline.critical_path().iter().map(|node| name(*node)).collect();
    write!(out, "{} in {}:{}", path.join(" > "), timeline.wall().as_millis(), parts(timeline.on_path()))
        .unwrap();
    out
}

fn parts(spent: TimeSpent) -> String {
    let parts: Vec<String> =
        spent.parts().map(|(category, time)| format!(" {category:?} {}", time.as_millis())).collect();
    parts.join(",")
}

pub(crate) fn letter(node: NodeId) -> String {
    char::from(b'a' + node.0 as u8).to_string()
}

pub(crate) fn of_tape(graph: &str, events: &str) -> Timeline {
    Timeline::new(RunId(0), &Script::parse(graph).dag, &tape(events)).unwrap()
}

fn check(graph: &str, events: &str, expected: Expect) {
    let timeline = of_tape(graph, events);
    expected.assert_eq(&words(&timeline, &letter));
    hold(&timeline);
    let again = Timeline::from_record(&timeline.record()).unwrap();
    assert_eq!(words(&again, &letter), words(&timeline, &letter));
    assert_eq!(again.html("run", &letter), timeline.html("run", &letter));
}

pub(crate) fn number(node: NodeId) -> String {
    node.to_string()
}

#[test]
fn a_nodes_time_is_split_into_waits_queue_and_work() {
    check(
        "a; b <- a; c <- b",
        "0 run 3; 1 a limit; 4 a start future; 9 a done
         9 b start pool; 12 b running; 20 b done
         22 c start blocking; 23 c running; 30 c done; 31 end complete",
        expect![[r#"
            a 0/4/9 Finished: Slot 1, Limit 3, Io 5
            b 9/9/20 Finished: Inputs 9, Queue 3, Cpu 8
            c 20/22/30 Finished: Inputs 20, Slot 2, Queue 1, Io 7
            a > b > c in 31: Slot 3, Limit 3, Queue 4, Io 12, Cpu 8, Outside 1"#]],
    );
}

#[test]
fn every_attempt_counts_and_the_pauses_between_are_waits() {
    check(
        "a",
        "0 run 1; 0 a start future; 5 a retry; 25 a limit; 28 a start future; 30 a retry; 70 a start future
         72 a fallback error; 72 end complete",
        expect![[r#"
            a 0/0/72 FellBack(Error) x3: Limit 3, Retry 60, Io 9
            a in 72: Limit 3, Retry 60, Io 9"#]],
    );
}

#[test]
fn the_critical_path_follows_the_input_that_ended_last() {
    check(
        "a; b; c <- a b; d <- a; e <- c d",
        "0 run 5; 0 a start future; 0 b start future; 10 a done; 10 d start pool; 10 d running; 15 b done
         15 c start inline; 16 c done; 40 d done; 40 e start inline; 41 e done; 41 end complete",
        expect![[r#"
            a 0/0/10 Finished: Io 10
            b 0/0/15 Finished: Io 15
            c 15/15/16 Finished: Inputs 15, Cpu 1
            d 10/10/40 Finished: Inputs 10, Cpu 30
            e 40/40/41 Finished: Inputs 40, Cpu 1
            a > d > e in 41: Io 10, Cpu 31"#]],
    );
}

#[test]
fn dropped_nodes_say_because_of_which_input() {
    check(
        "a; b <- a; c <- b; d <- ~c; e; f <- ~e",
        "0 run 6; 0 a start future; 0 e start future; 5 a fail timeout; 5 b drop; 5 c drop; 6 d start inline
         6 d done; 7 f drop; 9 e done; 9 end complete",
        expect![[r#"
            a 0/0/5 Failed(Timeout): Io 5
            b 5/?/5 Dropped(Some(#0)): Inputs 5
            c 5/?/5 Dropped(Some(#1)): Inputs 5
            d 5/6/6 Finished: Inputs 5, Slot 1
            e 0/0/9 Finished: Io 9
            f ?/?/7 Dropped(None): Inputs 7
            e in 9: Io 9"#]],
    );
    check(
        "a; b <- a; c <- ~b",
        "0 run 3; 0 a start future; 5 b drop; 6 c start future; 8 a drop; 9 c done; 9 end complete",
        expect![[r#"
            a 0/0/8 Dropped(None): Io 8
            b ?/?/5 Dropped(None): Inputs 5
            c 5/6/9 Finished: Inputs 5, Slot 1, Io 3
            b > c in 9: Inputs 5, Slot 1, Io 3"#]],
    );
}

#[test]
fn a_run_that_was_cut_ends_its_path_with_what_was_under_way() {
    check(
        "a; b <- a; c; d <- b",
        "0 run 4; 0 a start future; 0 c start future; 10 a done; 10 b start pool; 12 c done; 48 end deadline",
        expect![[r#"
            a 0/0/10 Finished: Io 10
            b 10/10/? Open: Inputs 10, Cpu 38
            c 0/0/12 Finished: Io 12
            d ?/?/? NotStarted:
            a > b in 48: Io 10, Cpu 38"#]],
    );
    check(
        "a; b",
        "0 run 2; 0 a start future; 0 b start future; 5 b fail error; 5 end failed",
        expect![[r#"
            a 0/0/? Open: Io 5
            b 0/0/5 Failed(Error): Io 5
            b in 5: Io 5"#]],
    );
}

#[test]
fn a_run_still_open_is_told_as_far_as_it_got_and_other_runs_are_left_out() {
    let heard = tape(
        "@1 0 run 9; 5 run 2; @1 5 a start inline; 5 a start future; @1 7 a done; 9 a done; 9 b limit; @1 99 end cut",
    );
    let timeline = Timeline::new(RunId(0), &Script::parse("a; b <- a").dag, &heard).unwrap();
    assert_eq!(timeline.ending(), None);
    expect![[r#"
        a 0/0/4 Finished: Io 4
        b 4/?/? Open: Inputs 4
        a in 4: Io 4"#]]
    .assert_eq(&words(&timeline, &letter));
    hold(&timeline);
    assert!(timeline.svg("", &letter).contains("not ended"));
}

#[test]
fn lost_events_leave_gaps_that_are_called_so() {
    check(
        "a; b <- a; c <- b; d",
        "lost 4; 10 d start pool; 12 b done; 12 c start future; lost 3; 30 d running; 33 d done",
        expect![[r#"
            a ?/?/? NotStarted:
            b ?/?/2 Finished: Unknown 2
            c 2/2/? Open: Inputs 2, Io 21
            d 0/0/23 Finished: Queue 20, Cpu 3
            d in 23: Queue 20, Cpu 3"#]],
    );
    let timeline = of_tape("a", "0 a start future; lost 1234; 3 a done");
    assert_eq!(timeline.lost(), 1234);
    assert!(timeline.html("", &letter).contains("1,234 events were lost"));
    assert!(timeline.trace(&letter).contains("\"lost_events\":1234"));
}

#[test]
fn a_run_of_nothing_has_a_timeline_too() {
    let heard = tape("0 run 0; 3 end complete");
    let timeline = Timeline::new(RunId(0), &Dag::new(0, &[]).unwrap(), &heard).unwrap();
    assert_eq!(words(&timeline, &letter), " in 3: Outside 3");
    hold(&timeline);
}

#[test]
fn what_is_not_this_graphs_run_is_refused() {
    let new = |graph: &str, run, events| {
        Timeline::new(RunId(run), &Script::parse(graph).dag, &tape(events)).err().unwrap()
    };
    assert_eq!(new("a", 7, "0 run 1"), TimelineError::NoEvents(RunId(7)));
    let error = new("a; b", 0, "0 run 3");
    assert_eq!(
        error.to_string(),
        "the events are of a graph of at least 3 nodes, this one has 2; pass the run's graph"
    );
    assert_eq!(new("a", 0, "0 e done"), TimelineError::OtherGraph { at_least: 5, node_count: 1 });
}

/// A record comes from a file, which may be damaged.
#[test]
fn a_damaged_record_is_refused() {
    let timeline = of_tape(
        "a; b <- a",
        "0 run 2; 0 a start future; 3 a done; 3 b start inline; 5 b done; 5 end complete",
    );
    let mut unknown_node = timeline.record();
    unknown_node.path.push(NodeId(2));
    let mut backwards = timeline.record();
    backwards.nodes[1].spans[0].1 = Duration::from_millis(9);
    for (record, node) in [(unknown_node, NodeId(2)), (backwards, NodeId(1))] {
        assert_eq!(Timeline::from_record(&record).err(), Some(TimelineError::BadRecord { node }));
    }
}
