//! What a trip to the CPU pool costs a plan here, and from what size on it is cheap beside the work.

use std::hint::black_box;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::aims::Aims;
use super::cpu::Work;
use super::ours::{self, Ours};
use super::turns::{Pace, median, micros, take_turns};
use super::{digits, in_place};
use crate::report::{Report, row};
use crate::watch::Spread;

pub(super) fn report(report: &mut Report, _: &mut Aims, pace: Pace) -> io::Result<()> {
    let pace = pace.shorter(10);
    report.heading("Inline threshold");
    report.say(
        "Latency of a request in us (p50 / p99, medians of turns), its CPU work done in place, or sent to the pool \
        whatever it costs. The difference is what a trip to the pool costs; the default threshold is 50 us.\n",
    );
    let mut rows = vec![row(["plan", "in place", "on the pool", "difference at p50"])];
    let runtime = in_place()?;
    for work in [Work::Pipeline(10), Work::Pipeline(1_000), Work::Pipeline(10_000), Work::Pipeline(100_000)] {
        let ours = Ours::new(&work.plan(), Arc::new(ours::memory(&Arc::default())));
        let forms = [ours.clone().inline_up_to(Duration::MAX), ours.inline_up_to(Duration::ZERO)];
        let turns = take_turns(pace.rounds, forms.len(), |form| {
            runtime.block_on(async {
                let (mut latencies, end) = (Vec::new(), Instant::now() + pace.window);
                while Instant::now() < end || latencies.len() < 20 {
                    let began = Instant::now();
                    drop(black_box(forms[form].answer().await));
                    latencies.push(began.elapsed());
                }
                Spread::of(latencies)
            })
        });
        let of =
            |form: usize, pick: fn(&Spread) -> Duration| median(turns[form].iter().map(|s| micros(pick(s))));
        let [p50, pooled] = [0, 1].map(|form| of(form, |spread| spread.p50));
        let [p99, pooled_p99] = [0, 1].map(|form| of(form, |spread| spread.p99));
        let cell = |p50, p99| format!("{} / {}", digits(p50), digits(p99));
        rows.push(row([&work.name(), &cell(p50, p99), &cell(pooled, pooled_p99), &digits(pooled - p50)]));
    }
    report.table(&rows);
    Ok(())
}
