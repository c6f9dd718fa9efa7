//! Plans that compute, beside polars and a loop by hand.

use std::hint::black_box;
use std::io;
use std::sync::Arc;

use super::aims::Aims;
use super::cpu::{self, Work, digest, read_out};
use super::ours::{self, Ours};
use super::polars_peer::{Peer, Style};
use super::turns::{Pace, fastest, repeat, take_turns};
use super::{digits, in_place};
use crate::report::Report;
use crate::watch::Share;

/// Who computes, in the order of the table.
const CONTENDERS: [&str; 6] =
    ["ours", "by hand", "polars lazy", "polars lazy, 1 thread", "polars eager", "polars eager, 1 thread"];

pub(super) fn report(report: &mut Report, aims: &mut Aims, pace: Pace) -> io::Result<()> {
    let pace = pace.shorter(4);
    report.heading("CPU pipelines");
    report.say(LEGEND);
    let heading = ["plan"].into_iter().chain(CONTENDERS).chain(["the best polars to ours"]);
    let mut rows = vec![heading.map(str::to_owned).collect()];
    let mut peers = [Peer::start(None)?, Peer::start(Some(1))?];
    for work in cpu::ALL {
        let turns = measure(work, pace, &mut peers)?;
        let shares: Vec<Share> = turns.iter().map(|turns| fastest(turns)).collect();
        let polars = shares[2..].iter().map(|share| share.wall).min_by(f64::total_cmp).expect("four of them");
        let ratio = polars / shares[0].wall;
        rows.push(line(work, &shares, ratio));
        let (name, nanos) = (work.name(), shares[0].wall / work.rows() as f64);
        aims.add(&format!("`{name}`: faster than polars"), format!("{ratio:.1}x"), ratio > 1.0);
        if work.rows() >= 1_000 {
            let ratio = shares[0].wall / shares[1].wall;
            aims.add(&format!("`{name}`: at most 1.5x of by hand"), format!("{ratio:.1}x"), ratio <= 1.5);
        }
        if work == Work::Pipeline(100_000) {
            let met = nanos <= 15.0;
            aims.add(&format!("`{name}`: at most 15 ns a row"), format!("{} ns", digits(nanos)), met);
        }
    }
    report.table(&rows);
    Ok(())
}

const LEGEND: &str = "Nanoseconds a row: wall / CPU (of all threads). The fastest of several turns. Everybody reads \
    every id and score of the answer once. Ours and polars 0.55.2 find their ids ready made, polars its query (`lazy`) \
    written down, which it optimises each time; the loop by hand counts its ids. \
    Polars has 1 thread or as many as it likes, and is not asked for a stable order.\n";

fn measure(work: Work, pace: Pace, peers: &mut [Peer; 2]) -> io::Result<Vec<Vec<Share>>> {
    let runtime = in_place()?;
    let ours = Ours::new(&work.plan(), Arc::new(ours::memory(&Arc::default())));
    let expected = digest(work.by_hand());
    let answer = runtime.block_on(ours.rows());
    let answer = answer.iter().map(|row| (row.id, row.score.expect("each row has a score")));
    assert_eq!(digest(answer), expected, "{}: ours", work.name());
    let mut fault = None;
    let turns = take_turns(pace.rounds, CONTENDERS.len(), |contender| {
        let (peer, style) = match contender {
            0 => {
                return runtime.block_on(repeat(pace.window, async || {
                    black_box(read_out(ours::scores(&ours.answer().await)));
                }));
            }
            1 => {
                return runtime.block_on(repeat(pace.window, async || {
                    black_box(read_out(black_box(work).by_hand()));
                }));
            }
            2 => (0, Style::Lazy),
            3 => (1, Style::Lazy),
            4 => (0, Style::Eager),
            _ => (1, Style::Eager),
        };
        match peers[peer].turn(work, style, pace.window) {
            Ok(computed) => {
                assert_eq!(computed.digest, expected, "{}: polars, {style:?}", work.name());
                computed.share
            }
            Err(error) => {
                fault = Some(error);
                Share { wall: f64::NAN, cpu: f64::NAN }
            }
        }
    });
    fault.map_or(Ok(turns), Err)
}

fn line(work: Work, shares: &[Share], ratio: f64) -> Vec<String> {
    let rows = work.rows() as f64;
    let cell = |share: &Share| format!("{} / {}", digits(share.wall / rows), digits(share.cpu / rows));
    let (name, ratio) = (work.name(), format!("{ratio:.1}x"));
    std::iter::once(name).chain(shares.iter().map(cell)).chain([ratio]).collect()
}
