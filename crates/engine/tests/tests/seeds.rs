//! Each key point and timeline of the scheduler documents this engine grew from, as a test of its own.
//!
//! On the virtual machine (two threads a pool), so the times are exact.

use expect_test::{Expect, expect};

use crate::script::{play, play_by};

fn check(script: &str, expected: Expect) {
    let played = play(script);
    played.result.unwrap();
    expected.assert_eq(&played.timeline);
}

const EXAMPLE_6: &str = "v: io 10; follow: io 15 <- v; recs: io 20 <- v; media_f: io 20 <- follow; \
    media_r: io 25 <- recs; vm_f: cpu 4 <- media_f; vm_r: cpu 4 <- media_r; merge: cpu 1 <- vm_f vm_r; \
    sort: cpu 2 <- merge; take: cpu 1 <- sort";

#[test]
fn example_1_a_source_suspends_on_io_and_the_run_ends_with_it() {
    check("viewer: io 15", expect!["0..15 viewer"]);
}

#[test]
fn example_2_cpu_work_goes_to_the_pool_once_its_source_is_there() {
    check("viewer: io 15; filter: cpu 2 <- viewer", expect!["0..15 viewer | 15..17 filter"]);
}

#[test]
fn example_3_both_branches_are_in_flight_at_once_and_end_in_any_order() {
    check("v: io 10; follow: io 20 <- v; recs: io 15 <- v", expect!["0..10 v | 10..30 follow | 10..25 recs"]);
}

#[test]
fn example_4_a_pipeline_alternates_io_and_cpu() {
    check(
        "v: io 10; f: io 15 <- v; vm: cpu 2 <- f; filter: cpu 2 <- vm; sort: cpu 2 <- filter; take: cpu 2 <- sort",
        expect!["0..10 v | 10..25 f | 25..27 vm | 27..29 filter | 29..31 sort | 31..33 take"],
    );
}

#[test]
fn example_5_a_join_starts_after_both_sides() {
    check(
        "v: io 10; left: io 12 <- v; right: io 18 <- v; join: cpu 1 <- left right",
        expect!["0..10 v | 10..22 left | 10..28 right | 28..29 join"],
    );
}

#[test]
fn example_6_ten_nodes_finish_within_a_deadline_of_100_ms() {
    let played = play_by(EXAMPLE_6, 100);
    assert_eq!(played.result.unwrap().finished, 10);
    expect!["0..10 v | 10..25 follow | 10..30 recs | 25..45 media_f | 30..55 media_r | 45..49 vm_f | 55..59 vm_r | 59..60 merge | 60..62 sort | 62..63 take"]
        .assert_eq(&played.timeline);
}

#[test]
fn example_6_with_a_deadline_of_48_ms_the_timer_wins_against_late_cpu_work() {
    let played = play_by(EXAMPLE_6, 48);
    assert_eq!(played.result.unwrap_err().to_string(), "the deadline passed with [#4, #5] still to finish",);
    assert_eq!(played.took.as_millis(), 48, "the late job is not waited for");
    expect!["0..10 v | 10..25 follow | 10..30 recs | 25..45 media_f | 30.. media_r | 45.. vm_f"]
        .assert_eq(&played.timeline);
}

#[test]
fn suspended_io_lets_others_run() {
    let slow = "slow: io 1000; ".to_owned();
    let others: Vec<String> = (0..5).map(|n| format!("quick{n}: io 1")).collect();
    check(
        &(slow + &others.join("; ")),
        expect!["0..1000 slow | 0..1 quick0 | 0..1 quick1 | 0..1 quick2 | 0..1 quick3 | 0..1 quick4"],
    );
}

#[test]
fn hundreds_of_reads_are_in_flight_on_one_task() {
    let script: Vec<String> = (0..500).map(|n| format!("read{n}: io 10")).collect();
    let played = play(&script.join("; "));
    assert_eq!(played.result.unwrap().finished, 500);
    assert_eq!(played.took.as_millis(), 10);
}

#[test]
fn cpu_branches_run_in_parallel_on_the_pool() {
    check(
        "v: io 10; vm_f: cpu 4 <- v; vm_r: cpu 4 <- v; concat <- vm_f vm_r",
        expect!["0..10 v | 10..14 vm_f | 10..14 vm_r | 14..14 concat"],
    );
}

#[test]
fn cpu_work_never_blocks_io() {
    check(
        "busy1: cpu 100 pool; busy2: cpu 100 pool; busy3: cpu 100 pool; read: io 5; next: io 5 <- read",
        expect!["0..100 busy1 | 0..100 busy2 | 0..200 busy3 | 0..5 read | 5..10 next"],
    );
}

#[test]
fn blocked_calls_never_block_cpu_work() {
    check(
        "b1: block 50; b2: block 50; b3: block 50; b4: block 50; vm: cpu 2; filter: cpu 2 <- vm",
        expect!["0..50 b1 | 0..50 b2 | 0..100 b3 | 0..100 b4 | 0..2 vm | 2..4 filter"],
    );
}

#[test]
fn the_first_error_wins_and_is_the_one_reported() {
    let played = play("early: io 10 fail; late: io 20 fail; never <- late");
    assert_eq!(played.result.unwrap_err().to_string(), "node #0 failed: broke");
    assert_eq!(played.took.as_millis(), 10);
}

#[test]
fn fail_fast_starts_nothing_more_and_waits_for_nothing() {
    let played = play("bad: io 10 fail; slow: io 800; tail <- slow; cpu: cpu 800 pool; task: spawn 800");
    assert!(played.result.is_err());
    assert_eq!(played.took.as_millis(), 10);
    expect!["0..10 bad failed | 0.. slow | 0.. cpu | 0.. task"].assert_eq(&played.timeline);
}

#[test]
fn a_node_timeout_stops_that_node_and_names_it() {
    let played = play("v: io 5; slow: io 100 timeout 20 <- v");
    assert_eq!(
        played.result.unwrap_err().to_string(),
        "node #1 failed: did not finish within its timeout of 20ms"
    );
    assert_eq!(played.took.as_millis(), 25);
}

#[test]
fn a_node_has_the_smaller_of_its_timeout_and_what_is_left() {
    let played = play_by("v: io 5; slow: io 100 timeout 50 <- v", 30);
    assert_eq!(played.result.unwrap_err().to_string(), "the deadline passed with [#1] still to finish");
    assert_eq!(played.took.as_millis(), 30);
}

#[test]
fn late_completions_harm_nobody() {
    // The timed-out job and task end at 40 ms, long after their nodes failed and while the run goes on.
    let played = play(
        "job: cpu 40 pool timeout 10 isolate; task: spawn 40 timeout 10 isolate; other: io 100; \
         after <- ~job ~task",
    );
    assert_eq!(played.result.unwrap().failed, 2);
    expect!["0..10 job failed | 0..10 task failed | 0..100 other | 10..10 after"].assert_eq(&played.timeline);
}

#[test]
fn dependencies_count_down_and_the_lowest_number_starts_first() {
    let played = play("z; y; d <- c b a; c <- z; b <- y; a");
    expect!["finish z, finish y, finish c, release z, finish b, release y, finish a, finish d, release c, release b, release a"]
        .assert_eq(&played.calls.join(", "));
}
