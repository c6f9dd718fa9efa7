//! Runs of plans, recipes and datasets: the latest ones with their details, and those in progress with their events.
//!
//! Memory is bounded: summaries by number, details by bytes. Runs with details, and dataset jobs, are also stored in a
//! folder, one file per run, and are listed again after a restart.

mod id;
mod summary;
mod detail;
mod timeline;
mod size;
mod log;
mod live;
mod disk;
mod feed;
mod rate;

use std::collections::{BTreeMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use anabranch_engine::clock::{Clock as _, SystemClock};
pub use detail::{GraphEdge, GraphNode, RunDetail, RunGraph};
use disk::Disk;
pub use disk::{RunsFolder, StoredRun};
pub(crate) use feed::FeedId;
pub use id::{NotARunId, RunId};
use live::LiveRunShared;
pub(crate) use live::RunEvent;
pub use live::{LiveRun, RunEnd};
pub(crate) use log::{Item, Log, Reader};
pub(crate) use rate::Rate;
pub use summary::{EndedRun, RunFilter, RunKind, RunState, RunSummary};
pub use timeline::{RunTimeline, TimelineNode, TimelineSpan};

use crate::blocking::Blocking;
use crate::load::{Slot, SlotBounds, SlotRefusal, Slots};

/// The limits of the registry.
#[derive(Clone, Debug)]
pub struct RunSettings {
    /// The most summaries in memory.
    pub summaries_most: usize,
    /// The most bytes of details in memory.
    pub detail_bytes_most: usize,
    /// The most runs in the folder.
    pub files_most: usize,
    /// The most bytes of the folder.
    pub file_bytes_most: u64,
    /// The most concurrent readers of events, at most half of them for one client.
    pub readers_most: usize,
}

impl Default for RunSettings {
    fn default() -> RunSettings {
        RunSettings {
            summaries_most: 10_000,
            detail_bytes_most: 64 << 20,
            files_most: 4_000,
            file_bytes_most: 256 << 20,
            readers_most: 4_096,
        }
    }
}

/// The registry of runs. A handle: clones share it.
#[derive(Clone)]
pub struct Runs {
    shared: Arc<RunsShared>,
}

struct RunsShared {
    settings: RunSettings,
    reads: Blocking,
    disk: Option<Arc<Disk>>,
    state: Mutex<State>,
    /// Summaries of runs that started or ended, for live lists.
    feed: Log<RunSummary>,
    /// Distinguishes the feed from those of earlier processes.
    epoch: u64,
    readers: Arc<Slots>,
}

#[derive(Default)]
struct State {
    last: RunId,
    /// Finished runs, by id.
    ended: VecDeque<RunSummary>,
    live: BTreeMap<RunId, Arc<LiveRunShared>>,
    /// The events of dataset jobs that ended recently.
    replays: VecDeque<Arc<LiveRunShared>>,
    details: BTreeMap<RunId, (usize, Arc<RunDetail>)>,
    detail_bytes: usize,
}

/// The most concurrent reads of stored runs.
const READ_THREADS: usize = 4;

/// The number of finished dataset jobs that can still be followed from their first event.
const REPLAYS_MOST: usize = 32;

/// The number of starts and ends that are kept for slow readers.
const FEED_MOST: usize = 1_024;

/// A run with its details.
#[derive(Clone, Debug)]
pub struct Run {
    /// The summary of the run.
    pub summary: RunSummary,
    /// Its graph, timeline, request and ledger, if they are kept.
    pub detail: Option<Arc<RunDetail>>,
}

/// A page of runs, newest first.
#[derive(Clone, Debug)]
pub struct RunPage {
    /// The runs.
    pub runs: Vec<RunSummary>,
    /// The id to pass as `before` for the next page; `None` if there is none.
    pub next: Option<RunId>,
}

impl Runs {
    /// A registry that keeps nothing on disk.
    pub fn in_memory() -> Runs {
        Runs::new(RunSettings::default(), None, Vec::new())
    }

    /// A registry that stores runs in `folder`, and lists those in it. It blocks while it reads the folder.
    pub fn open(folder: &Path, settings: RunSettings) -> std::io::Result<Runs> {
        let (disk, found) = Disk::open(folder, &settings)?;
        Ok(Runs::new(settings, Some(Arc::new(disk)), found))
    }

    fn new(settings: RunSettings, disk: Option<Arc<Disk>>, found: Vec<RunSummary>) -> Runs {
        let last = found.last().map_or(RunId::default(), |run| run.id);
        // Readers that find no slot are refused, so none waits.
        let bounds = SlotBounds { most: settings.readers_most, queue_most: 0, wait: Duration::ZERO };
        let state = State { last, ended: found.into(), ..State::default() };
        let shared = RunsShared {
            settings,
            reads: Blocking::new(READ_THREADS),
            disk,
            state: Mutex::new(state),
            feed: Log::new(FEED_MOST, usize::MAX),
            epoch: RandomState::new().hash_one(0),
            readers: Slots::new(bounds, Arc::new(SystemClock)),
        };
        Runs { shared: Arc::new(shared) }
    }

    /// Adds a finished run. Without details, this costs one short lock.
    pub fn record(&self, run: EndedRun, detail: Option<RunDetail>) -> RunId {
        let (sized, now) = (detail.map(size::sized), now());
        let mut state = self.shared.lock();
        let summary = run.summary(state.next_id(now), sized.is_some());
        state.end(summary.clone(), &self.shared.settings);
        if let Some((size, detail)) = &sized {
            state.keep(summary.id, *size, detail, &self.shared.settings);
        }
        drop(state);
        let id = summary.id;
        if let Some((_, detail)) = sized {
            self.store(summary.clone(), Some(detail));
        }
        self.shared.feed.push(summary, 0);
        id
    }

    /// Adds a run that begins. The caller limits the number of runs.
    pub fn begin(&self, kind: RunKind, name: impl Into<Arc<str>>) -> LiveRun {
        self.begin_as(self.reserve(), kind, name)
    }

    /// An id for a run that may begin later.
    pub fn reserve(&self) -> RunId {
        self.shared.lock().next_id(now())
    }

    /// Adds a run that begins under a reserved id.
    pub fn begin_as(&self, id: RunId, kind: RunKind, name: impl Into<Arc<str>>) -> LiveRun {
        self.insert(RunSummary::beginning(id, kind, name.into(), now()), SystemClock.now())
    }

    /// Adds a run that began earlier. The caller limits the number of runs.
    pub(crate) fn begin_late(&self, kind: RunKind, name: impl Into<Arc<str>>, began: Instant) -> LiveRun {
        let now = now();
        let started = now.checked_sub(SystemClock.now().saturating_duration_since(began)).unwrap_or(now);
        self.insert(RunSummary::beginning(self.reserve(), kind, name.into(), started), began)
    }

    fn insert(&self, summary: RunSummary, began: Instant) -> LiveRun {
        let mut state = self.shared.lock();
        let live = Arc::new(LiveRunShared::new(summary.clone()));
        state.live.insert(summary.id, Arc::clone(&live));
        drop(state);
        self.shared.feed.push(summary, 0);
        LiveRun::new(self.clone(), live, began)
    }

    /// Called by [`LiveRun`] at the end of its run.
    fn ended(&self, live: &Arc<LiveRunShared>, summary: RunSummary, detail: Option<RunDetail>) {
        let sized = detail.map(size::sized);
        let summary = RunSummary { has_detail: sized.is_some(), ..summary };
        // Requests are many. If they were all kept, they would displace the runs of datasets.
        let is_job = summary.kind == RunKind::Dataset;
        let mut state = self.shared.lock();
        state.live.remove(&summary.id);
        if is_job {
            state.replays.push_back(Arc::clone(live));
        }
        if state.replays.len() > REPLAYS_MOST {
            state.replays.pop_front();
        }
        state.end(summary.clone(), &self.shared.settings);
        if let Some((size, detail)) = &sized {
            state.keep(summary.id, *size, detail, &self.shared.settings);
        }
        drop(state);
        live.finish(&summary);
        if is_job || sized.is_some() {
            self.store(summary.clone(), sized.map(|(_, detail)| detail));
        }
        self.shared.feed.push(summary, 0);
    }

    fn store(&self, summary: RunSummary, detail: Option<Arc<RunDetail>>) {
        if let Some(disk) = &self.shared.disk {
            disk.write(summary, detail);
        }
    }

    /// The runs that match `filter`, newest first.
    pub fn list(&self, filter: &RunFilter) -> RunPage {
        let most = filter.limit.max(1);
        let mut runs: Vec<RunSummary> = {
            let state = self.shared.lock();
            let live = state.live.values().map(|live| live.summary()).filter(|run| filter.passes(run));
            let mut runs: Vec<RunSummary> = live.collect();
            runs.extend(state.ended.iter().rev().filter(|run| filter.passes(run)).take(most + 1).cloned());
            runs
        };
        runs.sort_by_key(|run| std::cmp::Reverse(run.id));
        let has_more = runs.len() > most;
        runs.truncate(most);
        let next = runs.last().filter(|_| has_more).map(|run| run.id);
        RunPage { runs, next }
    }

    /// The summary of a run, in progress or finished.
    pub fn summary(&self, id: RunId) -> Option<RunSummary> {
        let state = self.shared.lock();
        if let Some(live) = state.live.get(&id) {
            return Some(live.summary());
        }
        state.ended.binary_search_by_key(&id, |run| run.id).ok().map(|at| state.ended[at].clone())
    }

    /// A run with its details. They are read from the folder if they are no longer in memory.
    pub async fn get(&self, id: RunId) -> Option<Run> {
        let summary = self.summary(id);
        let held = self.shared.lock().details.get(&id).map(|(_, detail)| Arc::clone(detail));
        match (summary, held) {
            (Some(summary), Some(detail)) => return Some(Run { summary, detail: Some(detail) }),
            (Some(summary), None) if !summary.has_detail => return Some(Run { summary, detail: None }),
            _ => {}
        }
        let path = self.shared.disk.as_ref()?.path(id);
        let StoredRun { run, detail } = self.read(path).await?;
        Some(Run { summary: run, detail: detail.map(Arc::new) })
    }

    async fn read(&self, path: PathBuf) -> Option<StoredRun> {
        self.shared.reads.run(move || disk::read(&path).ok()).await.ok().flatten()
    }

    /// Asks a run to stop. False if it is not in progress.
    pub fn cancel(&self, id: RunId) -> bool {
        let live = self.shared.lock().live.get(&id).cloned();
        live.is_some_and(|live| live.cancel())
    }

    /// A reader of the events of a run after the event `after`; `None` if its events are not kept.
    pub(crate) fn events(&self, id: RunId, after: Option<u64>) -> Option<Reader<RunEvent>> {
        let state = self.shared.lock();
        let replay = || state.replays.iter().find(|live| live.id() == id);
        let live = state.live.get(&id).or_else(replay)?;
        Some(live.events().read(after.unwrap_or(0)))
    }

    /// A reader of the starts and ends of runs, from now on or after the event `after`.
    pub(crate) fn feed(&self, after: Option<FeedId>) -> Reader<RunSummary> {
        let feed = &self.shared.feed;
        match after {
            None => feed.read(feed.last()),
            Some(FeedId { epoch: None, number: 0 }) => feed.read(0),
            Some(FeedId { epoch, number }) if epoch == Some(self.shared.epoch) => feed.read(number),
            Some(_) => feed.read_after_another(),
        }
    }

    /// The id of an event in the feed.
    pub(crate) fn feed_id(&self, number: u64) -> FeedId {
        FeedId { epoch: Some(self.shared.epoch), number }
    }

    /// A slot for a reader of events, if there is one for this client.
    pub(crate) fn take_reader(&self, client: &Arc<str>) -> Result<Slot, SlotRefusal> {
        self.shared.readers.try_enter(client)
    }
}

impl RunsShared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RunsShared {
    fn drop(&mut self) {
        self.disk.iter().for_each(|disk| disk.finish());
    }
}

impl State {
    fn next_id(&mut self, now: SystemTime) -> RunId {
        self.last = self.last.next(now);
        self.last
    }

    /// Inserts a summary in order of id. A long run ends after runs with larger ids.
    fn end(&mut self, summary: RunSummary, settings: &RunSettings) {
        let at = match self.ended.back() {
            Some(last) if last.id > summary.id => self.ended.partition_point(|run| run.id < summary.id),
            _ => self.ended.len(),
        };
        self.ended.insert(at, summary);
        while self.ended.len() > settings.summaries_most {
            self.ended.pop_front();
        }
    }

    fn keep(&mut self, id: RunId, size: usize, detail: &Arc<RunDetail>, settings: &RunSettings) {
        self.detail_bytes += size;
        self.details.insert(id, (size, Arc::clone(detail)));
        while self.detail_bytes > settings.detail_bytes_most
            && let Some((_, (size, _))) = self.details.pop_first()
        {
            self.detail_bytes -= size;
        }
    }
}

impl std::fmt::Debug for Runs {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = self.shared.lock();
        let counts = (state.live.len(), state.ended.len(), state.details.len());
        out.debug_struct("Runs").field("live, ended, details", &counts).finish()
    }
}

/// The date and time, which lists of runs show.
#[allow(clippy::disallowed_methods, reason = "the engine's clock has no time of day")]
fn now() -> SystemTime {
    SystemTime::now()
}

/// A duration in milliseconds, to the microsecond.
fn millis(duration: Duration) -> f64 {
    duration.as_micros() as f64 / 1e3
}

/// The inverse of [`millis`]. Negative and invalid numbers become 0.
fn from_millis(millis: f64) -> Duration {
    Duration::try_from_secs_f64(millis / 1e3).unwrap_or_default()
}
