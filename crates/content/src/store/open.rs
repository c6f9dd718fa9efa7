//! Opening a store: checks its format, brings the index up to the log, mends what a crash left.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex};

use tokio::sync::{Semaphore, oneshot};

use super::apply::{Batch, Known};
use super::background::Background;
use super::commit::Writer;
use super::tables::{Blob, Home, Row, Table, last_address};
use super::{
    Config, Core, Counters, Event, Guard, Inner, Keeper, Opened, Owner, Pending, Recalled, Reporter, Store,
    Tally, Turns, Unreadable, keeper,
};
use crate::cache::Cache;
use crate::files::{Files, Listed};
use crate::index::{self, Covered, Index};
use crate::io::Pool;
use crate::log::{Append, Damage, FRONT, Gather, Place, Position, Record, Salt, Segments, segment_path};
use crate::{Address, Disk, Error, Open, Wait};

/// The format this code reads and writes.
const FORMAT: u32 = 1;

pub(super) const FORMAT_FILE: &str = "format";
const CLOSED_FILE: &str = "closed";
const REBUILD_FILE: &str = "rebuild";
const INDEX_FOLDER: &str = "index";

pub(crate) fn open(disk: Arc<dyn Disk>, config: Config, owner: Option<Owner>) -> Result<Store, Error> {
    let config = config.checked()?;
    let salt = check_format(&*disk)?;
    let clean = take_mark(&*disk, CLOSED_FILE)?;
    let segments = Arc::new(Segments::new(Arc::clone(&disk), salt)?);
    let folder = Path::new(INDEX_FOLDER);
    disk.make_folder(folder).map_err(|cause| Error::disk("make", folder, cause))?;
    // This makes durable which folders there are, and that the mark is gone.
    let files = Files::open(Arc::clone(&disk))?;
    let settings = index::Settings { recent_bytes: config.recent_bytes, ..index::Settings::default() };
    let mut opened = Opened { clean, ..Opened::default() };
    let mut find = |why| Found::new(&disk, &segments, &files, settings, &mut opened, why);
    let found = match find(None) {
        // Damage that was met on the way.
        Err(Error::Index { what }) => find(Some(what))?,
        found => found?,
    };
    let Found { index, tally, next_segment: next, next_file, pins } = found;
    let core = Arc::new(Core {
        room: Arc::new(Semaphore::new(config.queue_bytes as usize)),
        cache: Cache::new(crate::cache::Settings { bytes: config.cache_bytes }),
        guard: Guard::new(),
        pending: Pending::new(),
        recalled: Recalled::new(config.cache_bytes),
        used: AtomicU64::new(tally.used_bytes()),
        tally: Mutex::new(tally),
        counters: Counters::default(),
        reporter: Arc::new(Reporter::new(config.listener.clone())),
        orders: Gather::new(),
        background: Background::default(),
        keeper: Keeper::default(),
        tail: AtomicU32::new(next),
        next_file: AtomicU64::new(next_file),
        index_is_damaged: AtomicBool::new(false),
        unsettled: AtomicBool::new(false),
        keeping: Mutex::new(()),
        naming: tokio::sync::Mutex::new(()),
        disk,
        files,
        index,
        segments: Arc::clone(&segments),
        config,
    });
    pins.into_iter().for_each(|pin| core.cache.pin(pin));
    core.tell(&Event::Opened(opened.clone()));
    let append = Append::new(segments, next, core.config.segment_bytes);
    start(core, append, opened, owner)
}

/// Starts the threads of a store.
fn start(core: Arc<Core>, append: Append, opened: Opened, owner: Option<Owner>) -> Result<Store, Error> {
    let pool = Arc::new(Pool::new(core.config.io_threads));
    let thread = |name: &str| std::thread::Builder::new().name(format!("content-{name}"));
    let failed = |cause| Error::disk("start a thread for", Path::new("."), cause);
    let writer = Writer::new(Arc::clone(&core), append);
    let shared = Arc::clone(&core);
    let writer = thread("log").spawn(move || {
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| writer.run()));
        shared.orders.close();
        // After a panic there may be orders left: whoever waits for them learns that they were not served.
        let mut unserved = Vec::new();
        while shared.orders.take(0, &mut unserved) {
            unserved.clear();
        }
        shared.pending.clear();
        shared.background.writer_ended();
        ended.unwrap_or(Err(Error::Panicked))
    });
    let writer = writer.map_err(failed)?;
    let shared = Arc::clone(&core);
    let keeper = thread("keeper").spawn(move || keeper::run(&shared)).map_err(failed)?;
    let shared = Arc::clone(&core);
    let (tell, ended) = oneshot::channel();
    let background = thread("index").spawn(move || {
        // Nobody may be waiting: the store may just have been dropped.
        let _ = tell.send(Background::run(&shared, writer, keeper));
    });
    let inner = Inner {
        core,
        pool,
        opened,
        background: Mutex::new(Some(background.map_err(failed)?)),
        ended: Mutex::new(Some(ended)),
        owner: Mutex::new(owner),
        turns: Turns::default(),
    };
    Ok(Store { inner: Arc::new(inner) })
}

/// Reads the format file, or writes it in a new store.
fn check_format(disk: &dyn Disk) -> Result<Salt, Error> {
    let path = Path::new(FORMAT_FILE);
    let failed = |doing| move |cause| Error::disk(doing, path, cause);
    let file = match disk.open(path, Open::Read) {
        Ok(file) => file,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => {
            let log = Path::new("log");
            match disk.list(log) {
                Ok(entries) if entries.is_empty() => {}
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
                Ok(_) => return Err(Error::Format { found: "no format file beside a log".to_owned() }),
                Err(cause) => return Err(Error::disk("list", log, cause)),
            }
            return write_format(disk).map_err(failed("write"));
        }
        Err(cause) => return Err(failed("open")(cause)),
    };
    let mut bytes = vec![0; 256];
    let count = file.read_at(&mut bytes, 0, Wait::Yes).map_err(failed("read"))?;
    let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
    let parsed = parse_format(&text);
    let (format, salt) = parsed.ok_or_else(|| Error::Format { found: format!("{text:?}") })?;
    if format > FORMAT {
        return Err(Error::Newer { found: format, known: FORMAT });
    }
    Ok(salt)
}

/// One line: what it is, its format, the salt of its log, and a checksum of all that.
pub(crate) fn parse_format(text: &str) -> Option<(u32, Salt)> {
    let (front, checksum) = text.strip_suffix('\n')?.rsplit_once(' ')?;
    let mut words = front.strip_prefix("anabranch content ")?.split(' ');
    let format: u32 = words.next()?.parse().ok()?;
    // A later format's line may say more, so its number is believed before the rest is understood.
    if format > FORMAT {
        return Some((format, Salt(0)));
    }
    let salt = u32::from_str_radix(words.next()?, 16).ok()?;
    let whole = words.next().is_none() && format_line(salt) == text;
    (whole && format == FORMAT && !checksum.is_empty()).then_some((format, Salt(salt)))
}

fn format_line(salt: u32) -> String {
    let front = format!("anabranch content {FORMAT} {salt:08x}");
    format!("{front} {:08x}\n", crc32fast::hash(front.as_bytes()))
}

fn write_format(disk: &dyn Disk) -> io::Result<Salt> {
    let salt = RandomState::new().build_hasher().finish() as u32;
    let new = Path::new("format.new");
    match disk.remove(new) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
        _ => {}
    }
    let file = disk.open(new, Open::Create)?;
    file.write_at(format_line(salt).as_bytes(), 0)?;
    file.sync()?;
    disk.rename(new, Path::new(FORMAT_FILE))?;
    disk.sync_folder(Path::new(""))?;
    Ok(Salt(salt))
}

/// What opening found on the disk: the index, brought up to the log's end, and what goes with it.
struct Found {
    index: Index,
    tally: Tally,
    /// The first free numbers.
    next_segment: u32,
    next_file: u64,
    pins: Vec<Address>,
}

impl Found {
    /// Looks through the disk. The index is made anew if there is a reason to.
    fn new(
        disk: &Arc<dyn Disk>,
        segments: &Segments,
        files: &Files,
        settings: index::Settings,
        opened: &mut Opened,
        why: Option<String>,
    ) -> Result<Found, Error> {
        let mut list = segments.list()?;
        let (index, covered) = known(disk, &list, settings, opened, why)?;
        let (position, mut tally) = covered.unwrap_or((Position { segment: 0, offset: 0 }, Tally::default()));
        if !opened.clean {
            mend(segments, &mut list, position, &mut opened.unreadable)?;
        }
        follow(segments, &list, position, (&index, &mut tally), opened)?;
        let next_file = clear_files(files, &index, opened)?.max(tally.next_file);
        // A log that was cleaned away entirely begins behind what the index covers.
        let next_segment = list.last_key_value().map_or(1, |(last, _)| last + 1).max(position.segment);
        let pins = index.scan(&[Table::Pin as u8], None).map_err(plain)?;
        let pins =
            pins.map(|row| Ok(last_address(&row.map_err(plain)?.0).expect("a pin's key has an address")));
        Ok(Found { pins: pins.collect::<Result<_, Error>>()?, index, tally, next_segment, next_file })
    }
}

/// The index as it is, or an empty one.
fn known(
    disk: &Arc<dyn Disk>,
    list: &BTreeMap<u32, u64>,
    settings: index::Settings,
    opened: &mut Opened,
    why: Option<String>,
) -> Result<Existing, Error> {
    let why = match why {
        None if is_marked(&**disk, REBUILD_FILE)? => Some("it was found damaged".to_owned()),
        why => why,
    };
    let why = match why.map_or_else(|| existing(disk, list, settings), Err) {
        Ok(known) => return Ok(known),
        Err(why) => why,
    };
    opened.rebuilt = Some(why);
    let index = Index::reset(Arc::clone(disk), Path::new(INDEX_FOLDER), settings).map_err(plain)?;
    take_mark(&**disk, REBUILD_FILE)?;
    Ok((index, None))
}

/// A process that died left a log whose end only the system knows: it must last before anything builds on it. Of what
/// the index does not cover, the whole records are kept, so that nobody takes what a crash left for damage later.
fn mend(
    segments: &Segments,
    list: &mut BTreeMap<u32, u64>,
    position: Position,
    unreadable: &mut Vec<Unreadable>,
) -> Result<(), Error> {
    let Some(mut last) = list.last_entry() else { return Ok(()) };
    let (segment, len) = (*last.key(), *last.get());
    let from = if segment == position.segment { position.offset } else { 0 };
    // What the index covers is durable, and what it means must stay where it is. An empty file gets its front: once
    // others follow, one that is empty has lost what it had.
    if segment < position.segment || (from >= len && len > 0) {
        return Ok(());
    }
    let front = FRONT as u64;
    let covered = front..from.max(front);
    let mut whole = Vec::from([covered]);
    let damage = segments.scan(segment, from, &mut |place, _| {
        let (start, end) = (u64::from(place.offset), u64::from(place.offset) + u64::from(place.len));
        match whole.last_mut() {
            Some(last) if last.end == start => last.end = end,
            _ => whole.push(start..end),
        }
        Ok(())
    })?;
    let torn = |damage: &Damage| damage.to >= len;
    damage.iter().filter(|damage| !torn(damage)).for_each(|damage| segments.keep_damaged(damage));
    match segments.rewrite(segment, &whole) {
        Ok(len) => {
            *last.get_mut() = len;
            unreadable.extend(damage.iter().map(|it| stretch(segment, it.from..it.to, torn(it))));
            Ok(())
        }
        // For want of room, perhaps. It is read as it is.
        Err(_) => {
            let synced = segments.file(segment, Wait::Yes).and_then(|file| file.sync());
            synced.map_err(|cause| Error::disk("sync", &segment_path(segment), cause))
        }
    }
}

/// Brings the index up to the log's end.
fn follow(
    segments: &Segments,
    list: &BTreeMap<u32, u64>,
    position: Position,
    (index, tally): (&Index, &mut Tally),
    opened: &mut Opened,
) -> Result<(), Error> {
    let last = list.last_key_value().map(|(last, _)| *last);
    let mut before = None;
    let mut damaged = Vec::new();
    opened.replayed = 0;
    for (&segment, &len) in list.range(position.segment..) {
        // Segments are removed from the first on: one that is missing was lost.
        for missing in before.map_or(segment, |before| before + 1)..segment {
            damaged.push(stretch(missing, 0..0, false));
        }
        before = Some(segment);
        if len == 0 && Some(segment) != last {
            damaged.push(stretch(segment, 0..0, false));
        }
        let from = if segment == position.segment { position.offset } else { 0 };
        for damage in replay(segments, segment, from, len, (index, &mut *tally), opened)? {
            let torn = Some(segment) == last && damage.to >= len;
            damaged.push(stretch(segment, damage.from..damage.to, torn));
        }
    }
    // Some of it may be known, if the log is read for a second time.
    damaged.retain(|stretch| !opened.unreadable.contains(stretch));
    opened.unreadable.append(&mut damaged);
    Ok(())
}

fn stretch(segment: u32, range: Range<u64>, torn: bool) -> Unreadable {
    let file = segment_path(segment).display().to_string();
    Unreadable { file, from: range.start, bytes: range.end - range.start, torn }
}

type Existing = (Index, Option<(Position, Tally)>);

/// The index as it is on disk, or why it cannot be used.
fn existing(
    disk: &Arc<dyn Disk>,
    list: &BTreeMap<u32, u64>,
    settings: index::Settings,
) -> Result<Existing, String> {
    let (index, covered) = Index::open(Arc::clone(disk), Path::new(INDEX_FOLDER), settings)
        .map_err(|error| error.to_string())?;
    let Some(Covered { position: (segment, offset), note }) = covered else {
        // A crash before the first flush: all is read again. But before the log's first segment goes, there is an index.
        return match list.first_key_value() {
            Some((2.., _)) => Err("it is missing, or the log's beginning is".to_owned()),
            _ => Ok((index, None)),
        };
    };
    let tally = Tally::decode(&note).ok_or("its counts are damaged")?;
    let reaches = match list.get(&segment) {
        Some(&len) => offset <= len,
        // The end of a log that had been closed, before its next segment was begun.
        None => offset == 0 && list.keys().all(|&there| there < segment),
    };
    if !reaches {
        return Err("it knows more than the log has".to_owned());
    }
    Ok((index, Some((Position { segment, offset }, tally))))
}

/// Reads a segment again from an offset on.
fn replay(
    segments: &Segments,
    segment: u32,
    from: u64,
    len: u64,
    (index, tally): (&Index, &mut Tally),
    opened: &mut Opened,
) -> Result<Vec<Damage>, Error> {
    let mut records: Vec<(Place, Record)> = Vec::new();
    let mut each = |place: Place, mut record: Record| {
        opened.replayed += 1;
        record.fact.drop_bytes();
        records.push((place, record));
        match records.len() {
            REPLAYED_AT_ONCE.. => bring_in(index, tally, &mut records),
            _ => Ok(()),
        }
    };
    let damage = segments.scan(segment, from, &mut each)?;
    bring_in(index, tally, &mut records)?;
    index.apply(std::iter::empty(), (segment, len), || tally.encode());
    Ok(damage)
}

/// How many records are brought into the index together.
const REPLAYED_AT_ONCE: usize = 512;

fn bring_in(index: &Index, tally: &mut Tally, records: &mut Vec<(Place, Record)>) -> Result<(), Error> {
    let mut batch = Batch::new(index, tally);
    let mut end = None;
    for (place, record) in records.drain(..) {
        batch.apply(&record, place, Known::Unknown).map_err(plain)?;
        end = Some((place.segment, u64::from(place.offset) + u64::from(place.len)));
    }
    let (changes, _) = batch.done();
    if let Some(end) = end {
        index.apply(changes, end, || tally.encode());
    }
    while index.is_behind() && index.work().map_err(plain)? {}
    Ok(())
}

/// Removes what unfinished puts left, and finds the first free file number.
fn clear_files(files: &Files, index: &Index, opened: &mut Opened) -> Result<u64, Error> {
    let mut strays = files.clear_incoming()?;
    // A store that was closed in order has no other files than its log says.
    let listed = if opened.clean { Listed::default() } else { files.list()? };
    let damaged = opened.rebuilt.is_some() || opened.unreadable.iter().any(|unreadable| !unreadable.torn);
    let mut next = 0;
    for name in listed.blobs.iter().map(|(name, _)| name).chain(&listed.orphans) {
        next = next.max(name.number + 1);
        let row = index.get(&Table::Blob.key(&name.address), Wait::Yes).map_err(plain)?;
        let home = row.as_deref().and_then(Blob::decode).map(|blob| blob.home);
        if matches!(home, Some(Home::File { number, .. }) if number == name.number) {
            continue;
        }
        opened.unfinished += 1;
        match damaged {
            // The record that named it may be what is lost.
            true => files.quarantine(name)?,
            false => files.remove(name)?,
        }
    }
    strays.extend(listed.strays);
    opened.strays = strays.iter().map(|path| path.display().to_string()).collect();
    Ok(next)
}

/// An index error while there is no store yet.
fn plain(error: index::Error) -> Error {
    match error {
        index::Error::Disk(error) => error,
        other => Error::Index { what: other.to_string() },
    }
}

fn is_marked(disk: &dyn Disk, name: &str) -> Result<bool, Error> {
    match disk.open(Path::new(name), Open::Read) {
        Ok(_) => Ok(true),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(cause) => Err(Error::disk("open", Path::new(name), cause)),
    }
}

/// Is there such a mark? It is removed.
fn take_mark(disk: &dyn Disk, name: &str) -> Result<bool, Error> {
    match disk.remove(Path::new(name)) {
        Ok(()) => Ok(true),
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(cause) => Err(Error::disk("remove", Path::new(name), cause)),
    }
}

/// Marks a store as closed in order.
pub(crate) fn mark_closed(disk: &dyn Disk) -> Result<(), Error> {
    make_mark(disk, CLOSED_FILE).map_err(|cause| Error::disk("write", Path::new(CLOSED_FILE), cause))
}

/// Has the index made anew the next time the store is opened.
pub(crate) fn ask_for_new_index(disk: &dyn Disk) {
    // If even this cannot be written, the damage will be found again.
    let _ = make_mark(disk, REBUILD_FILE);
}

fn make_mark(disk: &dyn Disk, name: &str) -> io::Result<()> {
    match disk.open(Path::new(name), Open::Create) {
        Err(cause) if cause.kind() != io::ErrorKind::AlreadyExists => Err(cause),
        _ => disk.sync_folder(Path::new("")),
    }
}
