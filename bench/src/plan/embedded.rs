//! Plans on the memory source: what the machinery itself costs, a request at a time.

use std::hint::black_box;
use std::io;
use std::sync::Arc;

use super::aims::Aims;
use super::ours::{self, Ours};
use super::plans::{self, ChainOp};
use super::turns::{Pace, fastest, median, repeat, take_turns};
use super::{digits, in_place};
use crate::counting::count;
use crate::report::{Report, row};
use crate::watch::Share;

/// Requests whose allocations are counted.
const COUNTED: usize = 100;

pub(super) fn report(report: &mut Report, aims: &mut Aims, pace: Pace) -> io::Result<()> {
    let pace = pace.shorter(10);
    report.heading("On the memory source");
    report.say("Microseconds a request, from request to answer, one after the other on one thread.\n");
    let texts = [
        ("reels_plan_a", plans::reels()),
        ("concat_plan", plans::concat()),
        ("chain_100", plans::chain(ChainOp::Take)),
        ("wide_100", plans::wide()),
        ("chain_async_100", plans::chain(ChainOp::Later)),
        ("follow_10", plans::follow(10)),
        ("follow_100", plans::follow(100)),
        ("follow_1000", plans::follow(1_000)),
        ("follow_100, remembered", plans::remembering(&plans::follow(100))),
        ("feed_100", plans::feed(100)),
        ("10 rows, 5 columns", plans::funnel(10, false, 5)),
        ("1000000 rows, best 10", plans::funnel(1_000_000, true, 0)),
        ("1000000 rows, best 10, 5 columns", plans::funnel(1_000_000, true, 5)),
    ];
    let data = ours::embedded();
    let plans = texts.each_ref().map(|(_, text)| Ours::new(text, Arc::new(ours::memory(&data))));
    let runtime = in_place()?;
    let turns = take_turns(pace.rounds, plans.len(), |plan| {
        runtime.block_on(repeat(pace.window, async || drop(black_box(plans[plan].answer().await))))
    });
    let mut rows = vec![row(["plan", "fastest turn", "median turn", "CPU", "allocations", "rows"])];
    for (((name, _), ours), turns) in texts.iter().zip(&plans).zip(&turns) {
        let (answer, counted) = count(|| {
            runtime.block_on(async {
                for _ in 1..COUNTED {
                    drop(black_box(ours.answer().await));
                }
                ours.answer().await
            })
        });
        let (fastest, allocations) = (fastest(turns), counted.calls as f64 / COUNTED as f64);
        let middle = median(turns.iter().map(|turn: &Share| turn.wall));
        let [wall, middle, cpu] = [fastest.wall, middle, fastest.cpu].map(|nanos| digits(nanos / 1e3));
        let count = answer.candidates().count().to_string();
        rows.push(row([name, &wall, &middle, &cpu, &digits(allocations), &count]));
        judge(name, fastest.wall / 1e3, allocations, aims);
    }
    report.table(&rows);
    Ok(())
}

fn judge(name: &str, micros: f64, allocations: f64, aims: &mut Aims) {
    match name {
        "chain_100" => {
            aims.add("`chain_100`: at most 10 us", format!("{} us", digits(micros)), micros <= 10.0);
        }
        "reels_plan_a" => {
            let measured = format!("{} us, {} allocations", digits(micros), digits(allocations));
            let met = micros <= 5.0 && allocations <= 60.0;
            aims.add("`reels_plan_a` on the memory source: at most 5 us and 60 allocations", measured, met);
        }
        _ => {}
    }
}
