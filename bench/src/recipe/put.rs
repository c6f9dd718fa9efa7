//! A put of a large file, beside `b3sum` of the same file.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anabranch_recipe::Executor;
use bytes::Bytes;
use futures_util::stream;

use super::shapes::on_disk;
use crate::content::callers::median;
use crate::content::ground::Ground;
use crate::content::{digits, percent, verdict};
use crate::report::{Report, row};

/// Bytes of the file: 1 GB.
const LEN: u64 = 1_000_000_000;

/// Bytes that are read at a time.
const CHUNK: usize = 512 << 10;

const TURNS: usize = 3;

pub(super) fn report(report: &mut Report, ground: &Ground) -> io::Result<()> {
    report.heading("Put of 1 GB beside b3sum");
    report.say(format_args!(
        "A file of 1 GB in the page cache. `b3sum` hashes it on all cores and writes nothing. `put` hashes it on all \
        cores too, makes the tree for verified ranges, writes a copy and waits until that is on the disk; `write` is \
        a copy with an fsync and without a hash.\n"
    ));
    let folder = ground.folder("put");
    std::fs::create_dir_all(folder.path())?;
    let file = folder.path().join("file");
    fill(&file)?;
    let mut seconds = [const { Vec::new() }; 3];
    for turn in 0..TURNS {
        seconds[0].extend(b3sum(&file)?);
        seconds[1].push(write(&file, &folder.path().join("copy"))?);
        // A store of its own: a blob that is there is not written again.
        let store = ground.folder(&format!("put-{turn}"));
        let executor = on_disk(store.path());
        seconds[2].push(put(ground, &executor, &file)?);
        ground.close(executor.store().clone());
        ground.settle()?;
    }
    let mut rows = vec![row(["what", "s", "MB/s", "of b3sum and write", "aim", "met?"])];
    let [b3sum, write, put] = seconds.map(|turns| (!turns.is_empty()).then(|| median(turns.into_iter())));
    let floor = b3sum.unwrap_or(0.0).max(write.unwrap_or(0.0));
    for (what, took) in [("b3sum", b3sum), ("write", write), ("put", put)] {
        let Some(took) = took else {
            rows.push(row([what, "not installed", "-", "-", "", "-"]));
            continue;
        };
        let (share, rate) = (percent(took / floor), digits(LEN as f64 / 1e6 / took));
        let (aim, met) = if what == "put" { ("<= 130%", verdict(took <= 1.3 * floor)) } else { ("", "-") };
        rows.push(row([what, &digits(took), &rate, &share, aim, met]));
    }
    report.table(&rows);
    Ok(())
}

fn fill(path: &Path) -> io::Result<()> {
    let mut random = File::open("/dev/urandom")?.take(LEN);
    let mut file = File::create(path)?;
    io::copy(&mut random, &mut file)?;
    file.sync_all()
}

/// The time of `b3sum`; `None` if it is not installed.
fn b3sum(path: &Path) -> io::Result<Option<f64>> {
    let began = Instant::now();
    match Command::new("b3sum").arg(path).stdout(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(Some(began.elapsed().as_secs_f64())),
        Ok(status) => Err(io::Error::other(format!("b3sum ended with {status}"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn write(from: &Path, to: &Path) -> io::Result<f64> {
    let began = Instant::now();
    let (mut from, mut copy) = (File::open(from)?, File::create(to)?);
    let mut buffer = vec![0; CHUNK];
    loop {
        match from.read(&mut buffer)? {
            0 => break,
            len => copy.write_all(&buffer[..len])?,
        }
    }
    copy.sync_all()?;
    let took = began.elapsed().as_secs_f64();
    std::fs::remove_file(to)?;
    Ok(took)
}

fn put(ground: &Ground, executor: &Executor, path: &Path) -> io::Result<f64> {
    let began = Instant::now();
    let chunks = stream::unfold(File::open(path)?, async |mut file| {
        let mut chunk = vec![0; CHUNK];
        match file.read(&mut chunk) {
            Ok(0) => None,
            Ok(len) => {
                chunk.truncate(len);
                Some((Ok(Bytes::from(chunk)), file))
            }
            Err(error) => Some((Err(error), file)),
        }
    });
    ground.runtime.block_on(executor.put_stream(chunks)).map_err(io::Error::other)?;
    Ok(began.elapsed().as_secs_f64())
}
