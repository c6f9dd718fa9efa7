//! A recipe that reads very many blobs, got for the first time.

use std::io;

use super::shapes::{Shape, get, in_memory, on_disk};
use super::turns::Turns;
use crate::content::callers::SMALL;
use crate::content::ground::Ground;
use crate::content::{digits, verdict};
use crate::report::{Report, row};

const WIDTH: usize = 10_000;

pub(super) fn report(report: &mut Report, ground: &Ground) -> io::Result<()> {
    report.heading("First get of a wide recipe");
    report.say(format_args!(
        "`concat` over {} blobs of 1 KiB, each time others; milliseconds until all bytes are there as one. The \
        baseline has the blobs in a map, or in a file each, as the design has it; it keeps nothing. `copied` is the loop that appends them to one another.\n",
        digits(WIDTH as f64)
    ));
    let mut turns: [Turns; 5] = Default::default();
    for turn in 0..=ground.sizes.turns {
        let shape = Shape::wide(WIDTH, SMALL, 1 + turn as u64);
        let runtime = &ground.runtime;
        let folder = ground.folder("wide");
        for (place, executor) in [in_memory(), on_disk(folder.path())].into_iter().enumerate() {
            shape.add_to(runtime, &executor);
            ground.settle()?;
            let bytes = turns[place].time(1, || runtime.block_on(get(&executor, &shape.tip())));
            assert_eq!(bytes.len(), WIDTH * SMALL);
            ground.close(executor.store().clone());
        }
        let baseline = shape.baseline();
        let bytes = turns[2].time(1, || runtime.block_on(baseline.materialise(shape.tip())));
        assert_eq!(bytes.expect("it can be computed").len(), WIDTH * SMALL);
        let files = ground.folder("leaves");
        let baseline = shape.baseline_on_files(files.path())?;
        let bytes = turns[3].time(1, || runtime.block_on(baseline.materialise(shape.tip())));
        assert_eq!(bytes.expect("it can be computed").len(), WIDTH * SMALL);
        let bytes = turns[4].time(1, || std::hint::black_box(shape.leaves.concat()));
        assert_eq!(bytes.len(), WIDTH * SMALL);
        if turn == 0 {
            turns.iter_mut().for_each(Turns::forget);
        }
    }
    let mut rows = vec![row([
        "what",
        "ms",
        "ms CPU",
        "times as fast as the baseline",
        "as the baseline on files",
        "aim",
        "met?",
    ])];
    let names = ["get, in memory", "get, on disk", "baseline", "baseline on files", "copied"];
    for (place, (name, own)) in names.iter().zip(&turns).enumerate() {
        let [faster, than_files] = [2, 3].map(|place| turns[place].times(own));
        let (aim, met) = match place {
            0 => (">= 5x", verdict(faster >= 5.0)),
            1 => (">= 5x on files", verdict(than_files >= 5.0)),
            _ => ("", "-"),
        };
        let millis = |nanos: f64| format!("{:.2}", nanos / 1e6);
        let [faster, than_files] = [faster, than_files].map(|times| format!("{times:.1}x"));
        rows.push(row([name, &millis(own.wall()), &millis(own.cpu()), &faster, &than_files, aim, met]));
    }
    report.table(&rows);
    Ok(())
}
