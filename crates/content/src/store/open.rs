//! Opening a store: checks its format, replays the log into the index, repairs the effects of a crash or of damage.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use tokio::sync::{Semaphore, oneshot};

use super::background::Background;
use super::catalogue::Catalogue;
use super::commit::Writer;
use super::format::{self, ClosedMark};
use super::overlay::Overlay;
use super::repair::{self, TornFile};
use super::tables::{Blob, Home, Table};
use super::{
    Config, Core, Counters, Event, Guard, ImportsUnderWay, Inner, Keeper, LongWorkLimits, NameOrder,
    OpenReport, Owner, RecentReads, Reporter, Reserve, Room, Store, Tally, UnreadableStretch, keeper, lock,
};
use crate::cache::Cache;
use crate::facts::Class;
use crate::files::{FileListing, Files};
use crate::index::{self, Index, LogCoverage};
use crate::io::Pool;
use crate::log::{Append, Damage, FRONT, Gather, Position, Record, RecordPlace, Segments, segment_path};
use crate::{Address, Disk, Error, Wait};

const INDEX_FOLDER: &str = "index";

pub(crate) fn open(disk: Arc<dyn Disk>, config: Config, owner: Option<Owner>) -> Result<Store, Error> {
    let config = config.checked()?;
    let format = format::check(&*disk)?;
    let closed = format::take_closed(&*disk)?;
    let segments = Arc::new(Segments::new(Arc::clone(&disk), format.salt)?);
    make_index_folder(&*disk)?;
    // `Files::open` syncs the folder, which also makes the new folders and the removal of the mark durable.
    let files = Files::open(Arc::clone(&disk))?;
    let reporter = Arc::new(Reporter::new(config.listener.clone()));
    let background = Arc::new(Background::default());
    let settings = index::Settings { recent_bytes: config.recent_bytes, ..index::Settings::default() };
    let mut opened =
        OpenReport { clean: closed.is_some(), upgrade_from: format.upgrade_from, ..OpenReport::default() };
    let catalogue = |index| Catalogue::new(index, config.cache_bytes, Arc::clone(&background));
    let search =
        Search { disk: &disk, segments: &segments, files: &files, settings, closed, opened: &mut opened };
    let SearchOutcome { catalogue, tally, next_segment: next, next_file, pins, log, torn_files } =
        search.run_until_found(&catalogue)?;
    let core = Arc::new(Core {
        room: Arc::new(Semaphore::new(config.queue_bytes as usize)),
        cache: Cache::new(crate::cache::Settings { bytes: config.cache_bytes }),
        read_before: RecentReads::default(),
        guard: Guard::default(),
        imports: ImportsUnderWay::default(),
        space: Room::new(config.quota_bytes, tally.used_bytes()),
        tally: Mutex::new(tally),
        counters: Counters::default(),
        orders: Gather::new(),
        background,
        keeper: Keeper::default(),
        reserve: Reserve::find(&*disk),
        tail: AtomicU32::new(next),
        next_file: AtomicU64::new(next_file),
        unsettled: AtomicBool::new(false),
        keeping: Mutex::new(()),
        applying: Mutex::new(()),
        names: NameOrder::new(config.names_kept),
        reporter,
        catalogue,
        disk,
        files,
        segments: Arc::clone(&segments),
        config,
    });
    pins.into_iter().for_each(|pin| core.cache.pin(pin));
    let owner = Arc::new(Mutex::new(owner));
    let (background, ended) = start(&core, Append::new(segments, next, core.config.segment_bytes), &owner)?;
    let mended = std::thread::scope(|scope| {
        // On a thread of its own: repairs block until the writer answers, and the caller may be in an async runtime.
        let mend = scope.spawn(|| mend(&core, log.as_ref(), &torn_files, &mut opened));
        mend.join().unwrap_or(Err(Error::Panicked))
    });
    if let Err(error) = mended {
        core.orders.close();
        let _ = background.join();
        return Err(error);
    }
    core.tell(&Event::Opened(opened.clone()));
    let inner = Inner {
        pool: Arc::new(Pool::new(core.config.io_threads)),
        core,
        opened,
        background: Mutex::new(Some(background)),
        ended: Mutex::new(Some(ended)),
        owner,
        turns: LongWorkLimits::default(),
    };
    Ok(Store { inner: Arc::new(inner) })
}

fn make_index_folder(disk: &dyn Disk) -> Result<(), Error> {
    let folder = Path::new(INDEX_FOLDER);
    disk.make_folder(folder).map_err(|cause| Error::disk("make", folder, cause))
}

/// Repairs the data in damaged parts of the log and in torn files, as far as the index knows it.
fn mend(
    core: &Core,
    log: Option<&BTreeMap<u32, u64>>,
    torn_files: &[TornFile],
    opened: &mut OpenReport,
) -> Result<(), Error> {
    let is_lost = |place: RecordPlace| match log.map(|log| log.get(&place.segment)) {
        None => false,
        Some(None) => true,
        Some(Some(len)) => u64::from(place.offset) + u64::from(place.len) > *len,
    };
    if log.is_some() || !torn_files.is_empty() {
        let repaired = repair::repair(core, is_lost, torn_files)?;
        opened.recovered = repaired.recovered;
        opened.lost += repaired.lost;
    }
    // The content of a stretch that the index does not cover is unknown: it counts as one loss.
    opened.lost +=
        opened.unreadable.iter().filter(|stretch| !stretch.torn && !stretch.covered).count() as u64;
    Ok(())
}

type EndReceiver = oneshot::Receiver<Result<(), Error>>;

/// Starts the threads of a store; returns the index thread, and a channel that receives its result.
fn start(
    core: &Arc<Core>,
    append: Append,
    owner: &Arc<Mutex<Option<Owner>>>,
) -> Result<(JoinHandle<()>, EndReceiver), Error> {
    let thread = |name: &str| std::thread::Builder::new().name(format!("content-{name}"));
    let failed = |cause| Error::disk("start a thread for", Path::new("."), cause);
    let writer = Writer::new(Arc::clone(core), append);
    let shared = Arc::clone(core);
    let writer = thread("log").spawn(move || {
        let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| writer.run()));
        shared.orders.close();
        // After a panic there may be orders left: dropping them tells their callers that they were not served.
        let mut unserved = Vec::new();
        while shared.orders.take(0, &mut unserved) {
            unserved.clear();
        }
        shared.catalogue.clear_pending();
        shared.background.writer_ended();
        ended.unwrap_or(Err(Error::Panicked))
    });
    let writer = writer.map_err(failed)?;
    let shared = Arc::clone(core);
    let keeper = thread("keeper").spawn(move || keeper::run(&shared)).map_err(failed)?;
    let (shared, owner) = (Arc::clone(core), Arc::clone(owner));
    let (tell, ended) = oneshot::channel();
    let background = thread("index").spawn(move || {
        let result = Background::run(&shared, writer, keeper);
        // The lock is released next: another process may open the store, so no file may stay open here.
        shared.files.close();
        lock(&owner).take();
        // There may be no receiver: the store may just have been dropped.
        let _ = tell.send(result);
    });
    Ok((background.map_err(failed)?, ended))
}

/// The result of the search: the index, up to date with the log, and its companions.
struct SearchOutcome {
    catalogue: Catalogue,
    tally: Tally,
    /// The first free numbers of segments and files.
    next_segment: u32,
    next_file: u64,
    pins: Vec<Address>,
    /// The existing segments with their lengths, if the index covers more than they have.
    log: Option<BTreeMap<u32, u64>>,
    torn_files: Vec<TornFile>,
}

/// The search of a store's disk.
struct Search<'a> {
    disk: &'a Arc<dyn Disk>,
    segments: &'a Segments,
    files: &'a Files,
    settings: index::Settings,
    closed: Option<ClosedMark>,
    opened: &'a mut OpenReport,
}

/// The index on disk, and the part of the log that it covers.
struct ExistingIndex {
    index: Index,
    covered: Option<(Position, Tally)>,
}

impl Search<'_> {
    /// Looks through the disk, once more if the index turns out to be damaged.
    fn run_until_found(mut self, catalogue: &impl Fn(Index) -> Catalogue) -> Result<SearchOutcome, Error> {
        match self.run(catalogue, None) {
            Err(Error::Index { what }) => self.run(catalogue, Some(what)),
            found => found,
        }
    }

    /// Looks through the disk. The index is made anew if there is a reason to.
    fn run(
        &mut self,
        catalogue: &impl Fn(Index) -> Catalogue,
        why: Option<String>,
    ) -> Result<SearchOutcome, Error> {
        // Entries about parts that the previous index covered do not apply to the new one.
        self.opened.unreadable.retain(|stretch| !stretch.covered);
        let mut list = self.present_segments()?;
        let ExistingIndex { index, covered } = self.index(&list, why)?;
        let is_covered = covered.is_some();
        let (position, mut tally) = covered.unwrap_or_default();
        let missing = missing_parts(&list, position, &tally);
        let log = (!missing.is_empty()).then(|| list.clone());
        self.opened.unreadable.extend(missing);
        if !self.opened.clean {
            keep_whole_records(self.segments, &mut list, position, &mut self.opened.unreadable)?;
        }
        let catalogue = catalogue(index);
        if tally.put_blobs.is_none() {
            tally.put_blobs = Some(count_put_blobs(&catalogue)?);
        }
        let next = self.follow(&list, position, is_covered, (&catalogue, &mut tally))?;
        let mut torn_files = Vec::new();
        let next_file =
            clear_files(self.files, &catalogue, self.opened, &mut torn_files)?.max(tally.next_file);
        // If cleaning removed every segment, the log goes on after the part that the index covers. A number is never
        // used twice.
        let covered_to = position.segment + u32::from(position.offset > 0);
        let live_to = tally.live_segments().last().map_or(0, |(last, _)| last + 1);
        let next_segment = next.max(covered_to).max(live_to).max(1);
        let pins = catalogue.pins(None)?.collect::<Result<_, Error>>()?;
        Ok(SearchOutcome { catalogue, tally, next_segment, next_file, pins, log, torn_files })
    }

    /// The segments with their lengths. Files that were swapped get their own names back; one whose name is taken is
    /// moved to quarantine.
    fn present_segments(&mut self) -> Result<BTreeMap<u32, u64>, Error> {
        let list = self.segments.list()?;
        let said = |segment: &u32| Some((*segment, self.segments.says_it_is(*segment)?));
        let misplaced: BTreeMap<u32, u32> = list.keys().filter_map(said).collect();
        if misplaced.is_empty() {
            return Ok(list);
        }
        let mut taken: BTreeSet<u32> =
            list.keys().filter(|name| !misplaced.contains_key(name)).copied().collect();
        let (fits, rest): (Vec<_>, Vec<_>) = misplaced.into_iter().partition(|(_, said)| taken.insert(*said));
        for (segment, _) in rest {
            let len = list.get(&segment).copied().unwrap_or_default();
            self.opened.unreadable.push(stretch(segment, 0..len, false));
            self.segments.quarantine(segment)?;
        }
        self.segments.rename(&fits)?;
        self.segments.list()
    }

    /// The index on disk, or an empty one to be rebuilt.
    fn index(&mut self, list: &BTreeMap<u32, u64>, why: Option<String>) -> Result<ExistingIndex, Error> {
        let why = match (why, self.opened.upgrade_from) {
            (None, Some(from)) if format::is_new_index_asked_for(&**self.disk)? => {
                Some(format!("the store was of format {from}"))
            }
            (None, None) if format::is_new_index_asked_for(&**self.disk)? => {
                Some("it was found damaged".to_owned())
            }
            (why, _) => why,
        };
        let why = match why.map_or_else(|| existing(self.disk, list, self.settings), Err) {
            Ok(existing) => return Ok(existing),
            Err(why) => why,
        };
        self.opened.rebuilt = Some(why);
        let folder = Path::new(INDEX_FOLDER);
        let index = Index::reset(Arc::clone(self.disk), folder, self.settings).map_err(plain)?;
        format::index_is_new(&**self.disk)?;
        Ok(ExistingIndex { index, covered: None })
    }

    /// Replays the log from where the index ends; returns the number of the next segment.
    fn follow(
        &mut self,
        list: &BTreeMap<u32, u64>,
        position: Position,
        is_covered: bool,
        (catalogue, tally): (&Catalogue, &mut Tally),
    ) -> Result<u32, Error> {
        let opened = &mut *self.opened;
        let last = list.last_key_value().map(|(last, _)| *last);
        let log = self.closed.and_then(|closed| closed.log);
        // Cleaning removes segments from the first on, so a gap after the first is a loss.
        let mut expected = match (is_covered, log) {
            (true, _) => Some(position.segment),
            (false, Some((first, _))) => Some(first),
            (false, None) => None,
        };
        let mut damaged = Vec::new();
        opened.replayed = 0;
        for (&segment, &len) in list.range(position.segment..) {
            damaged
                .extend((expected.unwrap_or(segment)..segment).map(|missing| stretch(missing, 0..0, false)));
            expected = Some(segment + 1);
            if len < FRONT as u64 && Some(segment) != last {
                damaged.push(stretch(segment, 0..0, false));
            }
            let from = if segment == position.segment { position.offset } else { 0 };
            if from > len {
                continue;
            }
            let replayed = replay(self.segments, segment, from, len, (catalogue, &mut *tally), opened)?;
            // The front of a segment holds no record.
            for damage in replayed.into_iter().filter(|damage| damage.to > FRONT as u64) {
                let torn = Some(segment) == last && damage.to >= len;
                damaged.push(stretch(segment, damage.from..damage.to, torn));
            }
        }
        if let Some((_, end)) = log.filter(|_| !is_covered) {
            let len = list.get(&end.segment).copied().unwrap_or_default();
            let first = expected.unwrap_or(end.segment);
            damaged.extend((first..end.segment).map(|missing| stretch(missing, 0..0, false)));
            if len < end.offset {
                damaged.push(stretch(end.segment, len..end.offset, false));
            }
        }
        // Some stretches may be listed already, if this is the second search.
        damaged.retain(|stretch| {
            opened.unreadable.iter().all(|known| known.file != stretch.file || known.from != stretch.from)
        });
        opened.unreadable.append(&mut damaged);
        let closed_to = log.map_or(0, |(_, end)| end.segment + 1);
        Ok(last.map_or(0, |last| last + 1).max(closed_to))
    }
}

/// The parts of the log that the index covers and that are missing.
fn missing_parts(list: &BTreeMap<u32, u64>, position: Position, tally: &Tally) -> Vec<UnreadableStretch> {
    let covered = |segment, range| UnreadableStretch { covered: true, ..stretch(segment, range, false) };
    let mut missing = Vec::new();
    for (segment, live) in tally.live_segments().filter(|(segment, _)| *segment < position.segment) {
        let least = FRONT as u64 + live;
        match list.get(&segment) {
            None => missing.push(covered(segment, 0..least)),
            Some(len) if *len < least => missing.push(covered(segment, *len..least)),
            Some(_) => {}
        }
    }
    let len = list.get(&position.segment).copied().unwrap_or_default();
    if len < position.offset {
        missing.push(covered(position.segment, len..position.offset));
    }
    missing
}

/// After a crash, rewrites and syncs the last segment: its end may be in the system's page cache only. From the part
/// that the index does not cover, only whole records are kept, so that a torn write is not taken for damage later.
fn keep_whole_records(
    segments: &Segments,
    list: &mut BTreeMap<u32, u64>,
    position: Position,
    unreadable: &mut Vec<UnreadableStretch>,
) -> Result<(), Error> {
    let Some(mut last) = list.last_entry() else { return Ok(()) };
    let (segment, len) = (*last.key(), *last.get());
    let from = if segment == position.segment { position.offset } else { 0 };
    // The part that the index covers is durable, and its records must keep their places. An empty file gets its front:
    // an empty segment that others follow counts as damaged.
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
            // The front of a segment holds no record.
            let damage = damage.iter().filter(|damage| damage.to > front);
            unreadable.extend(damage.map(|it| stretch(segment, it.from..it.to, torn(it))));
            Ok(())
        }
        // The disk may be full. The segment stays as it is.
        Err(_) => {
            let synced = segments.file(segment, Wait::Yes).and_then(|file| file.sync());
            synced.map_err(|cause| Error::disk("sync", &segment_path(segment), cause))
        }
    }
}

fn stretch(segment: u32, range: Range<u64>, torn: bool) -> UnreadableStretch {
    let file = segment_path(segment).display().to_string();
    UnreadableStretch { file, from: range.start, bytes: range.end - range.start, torn, covered: false }
}

/// The index on disk, or the reason for which it cannot be used.
fn existing(
    disk: &Arc<dyn Disk>,
    list: &BTreeMap<u32, u64>,
    settings: index::Settings,
) -> Result<ExistingIndex, String> {
    let (index, covered) = Index::open(Arc::clone(disk), Path::new(INDEX_FOLDER), settings)
        .map_err(|error| error.to_string())?;
    let Some(LogCoverage { position, note }) = covered else {
        // A crash came before the first flush: the whole log is replayed. But if the first segment was cleaned away,
        // there was an index.
        return match list.first_key_value() {
            Some((2.., _)) => Err("it is missing, or the log's beginning is".to_owned()),
            _ => Ok(ExistingIndex { index, covered: None }),
        };
    };
    let tally = Tally::decode(&note).ok_or("its counts are damaged")?;
    Ok(ExistingIndex { index, covered: Some((position, tally)) })
}

/// Counts the blobs that callers put.
fn count_put_blobs(catalogue: &Catalogue) -> Result<u64, Error> {
    let mut count = 0;
    for row in catalogue.rows(Table::Blob, None)? {
        let blob: Blob = catalogue.decoded(&row?.1)?;
        count += u64::from(blob.class == Class::Acknowledged);
    }
    Ok(count)
}

/// Replays a segment from an offset on.
fn replay(
    segments: &Segments,
    segment: u32,
    from: u64,
    len: u64,
    (catalogue, tally): (&Catalogue, &mut Tally),
    opened: &mut OpenReport,
) -> Result<Vec<Damage>, Error> {
    let mut records: Vec<(RecordPlace, Record)> = Vec::new();
    let mut overlay = Overlay::default();
    let mut each = |place: RecordPlace, mut record: Record| {
        opened.replayed += 1;
        record.fact.drop_bytes();
        records.push((place, record));
        match records.len() {
            REPLAYED_AT_ONCE.. => bring_in(catalogue, tally, &mut overlay, &mut records),
            _ => Ok(()),
        }
    };
    let damage = segments.scan(segment, from, &mut each)?;
    bring_in(catalogue, tally, &mut overlay, &mut records)?;
    catalogue.index().apply(std::iter::empty(), Position { segment, offset: len }, || tally.encode());
    Ok(damage)
}

/// The number of records applied to the index together.
pub(super) const REPLAYED_AT_ONCE: usize = 512;

pub(super) fn bring_in(
    catalogue: &Catalogue,
    tally: &mut Tally,
    overlay: &mut Overlay,
    records: &mut Vec<(RecordPlace, Record)>,
) -> Result<(), Error> {
    overlay.begin(catalogue, tally.gone);
    let mut end = None;
    for (place, record) in records.drain(..) {
        overlay.prepare(catalogue, &record.fact)?;
        overlay.apply(&record, place);
        end = Some(place.end());
    }
    if let Some(end) = end {
        // Files that no record names any more are found later, when all files are listed.
        catalogue.apply(overlay.changes(), end, tally);
    }
    overlay.end();
    let index = catalogue.index();
    while index.is_behind() && index.work().map_err(plain)? {}
    Ok(())
}

/// Removes files of unfinished puts, notes files of the wrong length, and returns the first free file number.
fn clear_files(
    files: &Files,
    catalogue: &Catalogue,
    opened: &mut OpenReport,
    torn_files: &mut Vec<TornFile>,
) -> Result<u64, Error> {
    let mut strays = files.clear_incoming()?;
    // After a clean shutdown there are no files but those that the log names.
    let listed = if opened.clean { FileListing::default() } else { files.list()? };
    let damaged = opened.rebuilt.is_some() || opened.unreadable.iter().any(|unreadable| !unreadable.torn);
    let mut next = 0;
    let lens = listed.blobs.iter().map(|(name, len)| (name, Some(*len)));
    for (name, len) in lens.chain(listed.orphans.iter().map(|name| (name, None))) {
        next = next.max(name.number + 1);
        let blob = catalogue.stored_blob(&name.address, Wait::Yes)?;
        if let Some(blob) = blob
            && let Home::File { number, len: expected } = blob.home
            && number == name.number
        {
            if len.is_some_and(|len| len != expected) {
                torn_files.push(TornFile { name: *name, blob });
            }
            continue;
        }
        opened.unfinished += 1;
        match damaged {
            // The record that named it may be among the losses.
            true => files.quarantine(name)?,
            false => files.remove(name)?,
        }
    }
    strays.extend(listed.strays);
    opened.strays = strays.iter().map(|path| path.display().to_string()).collect();
    Ok(next)
}

/// Converts an index error while there is no store yet.
pub(super) fn plain(error: index::Error) -> Error {
    match error {
        index::Error::Disk(error) => error,
        other => Error::Index { what: other.to_string() },
    }
}
