//! Large blobs in and out, beside plain files and a hash.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Instant;

use anabranch_content::{Address, Class, Store};
use bytes::Bytes;
use futures_util::stream;

use super::callers::median;
use super::ground::Ground;
use super::{digits, percent, verdict};
use crate::counting::count;
use crate::report::{Report, row};

const PIECE: usize = 1 << 20;
/// A blob's bytes repeat after so many, more than a core's own cache has.
const PERIOD: usize = 8 * PIECE;

pub(super) fn report(report: &mut Report, ground: &Ground) -> io::Result<()> {
    let size = ground.sizes.blob;
    report.heading(&format!("Blobs of {} MiB", size >> 20));
    report.say(ABOUT);
    let mut rows = vec![row([
        "streams",
        "what",
        "MB/s",
        "floor, MB/s",
        "of the floor",
        "most memory",
        "most resident",
        "aim",
        "met?",
    ])];
    for streams in [1, 8] {
        let turns = if streams == 1 { ground.sizes.turns } else { ground.sizes.turns.div_ceil(2) };
        let sources: Vec<Source> = (0..streams).map(|number| Source::new(number as u64, size)).collect();
        let blobs = |turn: usize| sources.iter().map(|source| source.blob(turn as u64)).collect::<Vec<_>>();
        let mut figures = Vec::new();
        for turn in 0..turns {
            figures.push(take_turn(ground, &blobs(turn))?);
        }
        let memory = measure_memory(ground, &blobs(turns))?;
        for (place, what) in ["put", "read"].into_iter().enumerate() {
            let of = |pick: fn(&Turn) -> f64| median(figures.iter().map(|turn| pick(&turn[place])));
            let ratio = of(|turn| turn.ours / turn.floor);
            let Memory { heap, resident } = memory[place];
            let mebibytes = |bytes: f64| format!("{:.1} MiB", bytes / f64::from(1 << 20));
            rows.push(vec![
                streams.to_string(),
                what.to_owned(),
                digits(of(|turn| turn.ours)),
                digits(of(|turn| turn.floor)),
                percent(ratio),
                mebibytes(heap),
                mebibytes(resident),
                ">= 80%; <= 16 MiB".to_owned(),
                verdict(ratio >= 0.8 && heap.max(resident) <= f64::from(16 << 20)).to_owned(),
            ]);
        }
    }
    report.table(&rows);
    Ok(())
}

const ABOUT: &str = "Durable puts of streams from memory, and reads of the same blobs as streams, which the system has \
    in memory. The floor of a put writes a file in pieces of 1 MiB, hashes them by BLAKE3 and syncs; the floor of a \
    read reads them and hashes: on a thread for each stream. `most memory` is what was allocated beyond the blobs' \
    source, `most resident` how much the process grew.\n";

/// MB/s of one turn.
struct Turn {
    ours: f64,
    floor: f64,
}

/// Where blobs' bytes come from.
struct Source {
    number: u64,
    bytes: Bytes,
    pieces: usize,
}

/// A blob to be put.
#[derive(Clone)]
struct Blob {
    number: u64,
    first: Bytes,
    rest: Bytes,
    pieces: usize,
}

impl Source {
    fn new(number: u64, size: u64) -> Source {
        let mut bytes = vec![0; PERIOD];
        blake3::Hasher::new().update(&number.to_le_bytes()).finalize_xof().fill(&mut bytes);
        Source { number, bytes: bytes.into(), pieces: size as usize / PIECE }
    }

    /// The blob of a turn, which differs from all others in its first piece.
    fn blob(&self, turn: u64) -> Blob {
        let mut first = self.bytes[..PIECE].to_vec();
        first[..8].copy_from_slice(&turn.to_le_bytes());
        Blob { number: self.number, first: first.into(), rest: self.bytes.clone(), pieces: self.pieces }
    }
}

impl Blob {
    fn pieces(&self) -> impl Iterator<Item = Bytes> + Send + use<> {
        let rest = self.rest.clone();
        let piece = move |number: usize| rest.slice(number * PIECE % PERIOD..number * PIECE % PERIOD + PIECE);
        std::iter::once(self.first.clone()).chain((1..self.pieces).map(piece))
    }
}

/// A put and a read.
fn take_turn(ground: &Ground, blobs: &[Blob]) -> io::Result<[Turn; 2]> {
    let (folder, files) = (ground.folder("large"), ground.folder("files"));
    fs::create_dir_all(files.path())?;
    ground.settle()?;
    let bytes: usize = blobs.iter().map(|blob| blob.pieces * PIECE).sum();
    let speed = |began: Instant| bytes as f64 / 1e6 / began.elapsed().as_secs_f64();
    let began = Instant::now();
    by_threads(blobs, |blob| write_file(files.path(), blob))?;
    let floor_put = speed(began);
    let store = folder.open();
    let began = Instant::now();
    let addresses = put_all(ground, &store, blobs);
    let put = speed(began);
    let began = Instant::now();
    by_threads(blobs, |blob| read_file(files.path(), blob))?;
    let floor_read = speed(began);
    let began = Instant::now();
    read_all(ground, &store, &addresses);
    let read = speed(began);
    ground.close(store);
    Ok([Turn { ours: put, floor: floor_put }, Turn { ours: read, floor: floor_read }])
}

fn put_all(ground: &Ground, store: &Store, blobs: &[Blob]) -> Vec<Address> {
    let put = |blob: &Blob| {
        let (store, pieces) = (store.clone(), blob.pieces());
        ground.runtime.spawn(async move {
            let stream = stream::iter(pieces.map(Ok::<_, io::Error>));
            store.put_stream(stream, Class::Acknowledged).await.expect("the disk takes it").address
        })
    };
    let tasks: Vec<_> = blobs.iter().map(put).collect();
    tasks.into_iter().map(|task| ground.runtime.block_on(task).expect("a caller does not panic")).collect()
}

fn read_all(ground: &Ground, store: &Store, addresses: &[Address]) {
    let read = |address: &Address| {
        let (store, address) = (store.clone(), *address);
        ground.runtime.spawn(async move {
            let reader = store.read(&address, 0..u64::MAX).await.expect("the store reads");
            let mut reader = reader.expect("the blob is there");
            let (mut read, size) = (0, reader.size());
            while let Some(piece) = reader.next().await {
                read += piece.expect("the blob is whole").len() as u64;
            }
            assert_eq!(read, size, "a blob was not read to its end");
        })
    };
    let tasks: Vec<_> = addresses.iter().map(read).collect();
    tasks.into_iter().for_each(|task| ground.runtime.block_on(task).expect("a caller does not panic"));
}

fn by_threads(blobs: &[Blob], work: impl Fn(&Blob) -> io::Result<()> + Sync) -> io::Result<()> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = blobs.iter().map(|blob| scope.spawn(|| work(blob))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a floor does not panic"))
    })
}

fn write_file(folder: &Path, blob: &Blob) -> io::Result<()> {
    let mut file = File::create_new(folder.join(blob.number.to_string()))?;
    let mut hasher = blake3::Hasher::new();
    for piece in blob.pieces() {
        file.write_all(&piece)?;
        hasher.update(&piece);
    }
    std::hint::black_box(hasher.finalize());
    file.sync_all()
}

fn read_file(folder: &Path, blob: &Blob) -> io::Result<()> {
    let mut file = File::open(folder.join(blob.number.to_string()))?;
    let (mut hasher, mut piece) = (blake3::Hasher::new(), vec![0; PIECE]);
    for _ in 0..blob.pieces {
        file.read_exact(&mut piece)?;
        hasher.update(&piece);
    }
    std::hint::black_box(hasher.finalize());
    Ok(())
}

/// The most bytes in use at a time, beyond those before.
#[derive(Clone, Copy)]
struct Memory {
    /// As the allocator was asked for them.
    heap: f64,
    /// As the system counts them.
    resident: f64,
}

fn measure_memory(ground: &Ground, blobs: &[Blob]) -> io::Result<[Memory; 2]> {
    let folder = ground.folder("large");
    let store = folder.open();
    let (addresses, put) = grown(|| put_all(ground, &store, blobs))?;
    let ((), read) = grown(|| read_all(ground, &store, &addresses))?;
    ground.close(store);
    Ok([put, read])
}

fn grown<T>(work: impl FnOnce() -> T) -> io::Result<(T, Memory)> {
    // Sets the high-water mark back to what is resident now.
    fs::write("/proc/self/clear_refs", "5")?;
    let before = status("VmRSS:")?;
    let (result, counted) = count(work);
    let resident = status("VmHWM:")? - before;
    Ok((result, Memory { heap: counted.peak as f64, resident }))
}

pub(crate) fn status(field: &str) -> io::Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kibibytes: Option<f64> = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
    kibibytes.map(|kibibytes| 1024.0 * kibibytes).ok_or_else(|| io::Error::other("the system does not tell"))
}
