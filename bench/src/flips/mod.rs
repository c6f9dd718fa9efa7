//! The bit-flip experiment: what do our index, redb and fjall answer after one bit of their files has flipped?
//!
//! Each index is filled, closed and remembered. A trial writes its files anew, flips one bit, and has a process of its
//! own open the index and ask for every key, so that a crash or an endless loop is a result too. The parent draws the
//! bits from a seed that it prints.

mod trial;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::content::callers::mix;
use crate::content::digits;
use crate::content::ground::{Ground, Scratch, for_each_file};
use crate::indexes::{self, Kind};
use crate::report::{Report, row};
use trial::Verdict;

pub(crate) const USAGE: &str = "flips [--seed NUMBER] [--trials NUMBER]";

/// So many entries, in so many durable batches: enough for several files and levels in each index.
const ENTRIES: u64 = 20_000;
const BATCHES: u64 = 5;
const CACHE_BYTES: u64 = 64 << 20;

/// A trial that takes longer hangs; the slowest takes a fraction of a second.
const TRIAL_TIME: Duration = Duration::from_secs(30);

pub(crate) fn bench(settings: &[&str]) -> ExitCode {
    let done = match settings {
        ["--trial", kind, folder] => trial::run(kind, Path::new(folder)),
        _ => parse(settings).and_then(|(seed, trials)| experiment(seed, trials)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("anabranch-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn parse(settings: &[&str]) -> io::Result<(u64, u64)> {
    let (mut seed, mut trials) = (1, 1_000);
    for pair in settings.chunks(2) {
        match pair {
            ["--seed", number] => seed = number.parse().map_err(io::Error::other)?,
            ["--trials", number] => trials = number.parse().map_err(io::Error::other)?,
            _ => return Err(io::Error::other(format!("usage: anabranch-bench {USAGE}"))),
        }
    }
    Ok((seed, trials))
}

fn experiment(seed: u64, trials: u64) -> io::Result<()> {
    let ground = Ground::new("flips")?;
    let mut report = Report::new("flips");
    report.say(format_args!("{LEGEND}"));
    report.say(format_args!(
        "{} entries in {BATCHES} batches; {} trials per index; seed {seed}.",
        digits(ENTRIES as f64),
        digits(trials as f64)
    ));
    let images = Kind::ALL.map(|kind| Image::make(&ground, kind));
    let mut results: [Results; 3] = Default::default();
    for number in 0..trials {
        for ((kind, image), results) in Kind::ALL.into_iter().zip(&images).zip(&mut results) {
            let image = image.as_ref().map_err(|error| io::Error::other(error.to_string()))?;
            let draw = mix(seed).wrapping_add(number);
            let (file, folder) = image.flipped(&ground, draw)?;
            results.note(judge(kind, folder.path())?, &file);
        }
    }
    write(&mut report, &results, trials);
    match ground.sizes.quick {
        true => Ok(()),
        false => report.keep(),
    }
}

const LEGEND: &str = "Each index is filled in durable batches and closed; the entries are those of `./dev bench content \
    --only index`. fjall has the first batches in its tables and its journal as closing leaves it. A trial flips one \
    random bit of one file (files weighted by length, up to their last byte that is not zero), opens the index in a \
    process of its own, and looks up every key and as many keys that were never inserted. `right`: all answers are \
    right. `refused`: the index does not open. `reported`: a lookup is an error. `missing`: a lookup says, without an \
    error, that an inserted key is not there. `wrong`: a lookup answers another value than the inserted one, or a value \
    for a key that was never inserted. `panic`, `killed` (by a signal) and `hung` (30 s) are about the process. A trial \
    counts once, for the worst of its lookups: wrong, then missing, then reported. `silent` is missing and wrong \
    together. `full check` counts the silent trials in which the index's own check of all files finds damage \
    afterwards: `verify` of ours, `check_integrity` of redb; fjall has none.";

/// The files of a closed index.
struct Image(Vec<ImageFile>);

struct ImageFile {
    path: PathBuf,
    /// Up to the last byte that is not zero; what follows is not written yet.
    bytes: Vec<u8>,
    len: u64,
}

impl Image {
    fn make(ground: &Ground, kind: Kind) -> indexes::Result<Image> {
        let folder = ground.folder("filled");
        let mut index = kind.open(folder.path(), CACHE_BYTES)?;
        let mut entries = indexes::entries(0..ENTRIES);
        for (batch, number) in entries.chunks_mut((ENTRIES / BATCHES) as usize).zip(1..) {
            index.insert(batch)?;
            if number < BATCHES {
                index.settle()?;
            }
        }
        drop(index);
        let mut files = Vec::new();
        for_each_file(folder.path(), &mut |file| {
            let mut bytes = fs::read(file)?;
            let len = bytes.len() as u64;
            bytes.truncate(bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1));
            let path = file.strip_prefix(folder.path()).expect("a file is in its folder").to_owned();
            files.push(ImageFile { path, bytes, len });
            Ok(())
        })?;
        files.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(Image(files))
    }

    /// Writes the files to a folder, one bit of them flipped; says in which.
    fn flipped(&self, ground: &Ground, draw: u64) -> io::Result<(String, Scratch)> {
        let folder = ground.folder("trial");
        let all: u64 = self.0.iter().map(|file| file.bytes.len() as u64 * 8).sum();
        let mut bit = mix(draw) % all;
        let mut hit = String::new();
        for file in &self.0 {
            let path = folder.path().join(&file.path);
            fs::create_dir_all(path.parent().unwrap_or(folder.path()))?;
            let bits = file.bytes.len() as u64 * 8;
            if hit.is_empty() && bit < bits {
                hit = kind_of_file(&file.path);
                let mut bytes = file.bytes.clone();
                bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
                fs::write(&path, bytes)?;
            } else {
                bit = bit.saturating_sub(if hit.is_empty() { bits } else { 0 });
                fs::write(&path, &file.bytes)?;
            }
            fs::File::options().write(true).open(&path)?.set_len(file.len)?;
        }
        Ok((hit, folder))
    }
}

/// A file's path with its numbers left out.
fn kind_of_file(path: &Path) -> String {
    let text = path.to_string_lossy();
    let mut short = String::new();
    for letter in text.chars().map(|letter| if letter.is_ascii_digit() { '#' } else { letter }) {
        if letter != '#' || !short.ends_with('#') {
            short.push(letter);
        }
    }
    short
}

#[derive(Default)]
struct Results {
    counts: BTreeMap<Verdict, u64>,
    files: BTreeMap<(String, Verdict), u64>,
    /// Trials with entries missing or wrong whose damage a full check finds.
    checked: Option<u64>,
}

impl Results {
    fn note(&mut self, (verdict, check): (Verdict, Option<bool>), file: &str) {
        *self.counts.entry(verdict).or_default() += 1;
        *self.files.entry((file.to_owned(), verdict)).or_default() += 1;
        if let Some(found) = check {
            *self.checked.get_or_insert(0) += u64::from(found);
        }
    }
}

fn write(report: &mut Report, results: &[Results; 3], trials: u64) {
    report.heading("What one flipped bit does");
    let mut head = vec!["index".to_owned()];
    head.extend(Verdict::ALL.map(|verdict| verdict.name().to_owned()));
    head.extend(["silent".to_owned(), "full check".to_owned()]);
    let mut rows = vec![head];
    for (kind, results) in Kind::ALL.into_iter().zip(results) {
        let count = |verdict: Verdict| results.counts.get(&verdict).copied().unwrap_or(0);
        let silent = count(Verdict::Missing) + count(Verdict::Wrong);
        let mut cells = vec![kind.name().to_owned()];
        cells.extend(Verdict::ALL.map(|verdict| count(verdict).to_string()));
        cells.push(format!("{:.1}%", 100.0 * silent as f64 / trials as f64));
        cells.push(results.checked.map_or("-".to_owned(), |found| format!("{found} of {silent}")));
        rows.push(cells);
    }
    report.table(&rows);
    report.heading("By file that was hit");
    let mut rows = vec![row(["index", "file", "result", "trials"])];
    for (kind, results) in Kind::ALL.into_iter().zip(results) {
        for ((file, verdict), count) in &results.files {
            rows.push(vec![
                kind.name().to_owned(),
                format!("`{file}`"),
                verdict.name().to_owned(),
                count.to_string(),
            ]);
        }
    }
    report.table(&rows);
}

/// Has another process look at a damaged index.
fn judge(kind: Kind, folder: &Path) -> io::Result<(Verdict, Option<bool>)> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["flips", "--trial", kind.name()])
        .arg(folder)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    match wait(&mut child)? {
        false => Ok((Verdict::Hung, None)),
        true => {
            let output = child.wait_with_output()?;
            Ok(trial::read(&String::from_utf8_lossy(&output.stdout)).unwrap_or((Verdict::Killed, None)))
        }
    }
}

/// False when the process took too long; it is ended then.
fn wait(child: &mut Child) -> io::Result<bool> {
    let end = Instant::now() + TRIAL_TIME;
    while child.try_wait()?.is_none() {
        if Instant::now() > end {
            child.kill()?;
            child.wait()?;
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(true)
}
