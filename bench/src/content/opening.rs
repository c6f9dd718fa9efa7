//! How long a store takes to open: after a close, after a crash, and without its index.

use std::time::Instant;
use std::{fs, io};

use anabranch_content::Class;

use super::callers::{median, own_input, put, serve_all};
use super::dependents::Memos;
use super::digits;
use super::ground::{Ground, Scratch};
use crate::report::{Report, row};

const TIMES: usize = 3;

/// Written before a crash, so that the index does not have it: less than what it is then made to hold.
const LATE: u64 = 20_000;

/// Numbers from here on are in no store yet.
const FREE: u64 = 1 << 50;

pub(super) fn report(report: &mut Report, ground: &Ground, memos: &Memos, blobs: &Scratch) -> io::Result<()> {
    report.heading("Opening");
    report.say(format_args!(
        "Stores of {} and more memos or 1 KiB blobs, their files in the system's memory. Before the crash came {} more \
        that the index on disk does not have.\n",
        digits(ground.sizes.entries as f64),
        digits(LATE as f64),
    ));
    let mut rows = vec![row(["store", "how it was left", "ms", "records read again"])];
    let folders = [("memos", &memos.folder), ("blobs", blobs)];
    for (what, folder) in folders {
        let images = leave_images(ground, what, folder, memos)?;
        rows.push(opened(what, "closed", (0..TIMES).map(|_| open(ground, folder))));
        rows.push(opened(what, "crashed", images.iter().map(|image| open(ground, image))));
        rows.push(opened(what, "without its index", std::iter::once(open_without_index(ground, folder)?)));
    }
    report.table(&rows);
    Ok(())
}

/// Milliseconds, and how many records were read again.
struct OpeningReport {
    milliseconds: f64,
    replayed: u64,
}

fn opened(what: &str, how: &str, opened: impl Iterator<Item = OpeningReport>) -> Vec<String> {
    let opened: Vec<_> = opened.collect();
    let milliseconds = digits(median(opened.iter().map(|opened| opened.milliseconds)));
    row([what, how, &milliseconds, &opened[0].replayed.to_string()])
}

fn open(ground: &Ground, folder: &Scratch) -> OpeningReport {
    let began = Instant::now();
    let store = folder.open();
    let milliseconds = began.elapsed().as_secs_f64() * 1e3;
    let replayed = store.opened().replayed;
    ground.close(store);
    OpeningReport { milliseconds, replayed }
}

fn open_without_index(ground: &Ground, folder: &Scratch) -> io::Result<OpeningReport> {
    fs::remove_dir_all(folder.path().join("index"))?;
    Ok(open(ground, folder))
}

/// What processes leave that die with this store open.
fn leave_images(
    ground: &Ground,
    what: &'static str,
    folder: &Scratch,
    memos: &Memos,
) -> io::Result<Vec<Scratch>> {
    let store = folder.open();
    let (to, outputs) = (store.clone(), memos.outputs.clone());
    serve_all(&ground.runtime, 64, FREE..FREE + LATE, move |number| {
        let (store, outputs) = (to.clone(), outputs.clone());
        async move {
            match what {
                "memos" => outputs.remember(&store, number, own_input(number)).await,
                _ => put(&store, number, Class::Acknowledged).await,
            }
        }
    });
    let images = (0..TIMES).map(|time| folder.image(ground, &format!("{what}-{time}")));
    let images = images.collect();
    ground.close(store);
    images
}
