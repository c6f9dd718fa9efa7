//! One version of a plan: the loaded plan, and the statistics of its requests.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use anabranch_engine::timeline::NodeOutcome;
use anabranch_plan::{Engine, Error, Plan};
use anabranch_plan_inspect::{Explanation, Trace, explain};
use sha2::{Digest as _, Sha256};

use super::histogram::Histogram;

/// The interval of tracing one request of a plan, for the times of its nodes.
const TRACE_EVERY: Duration = Duration::from_millis(100);

/// A loaded plan.
pub(crate) struct Version {
    /// 12 hex digits of a digest of the plan, the files that it names, and the registry.
    pub(crate) id: String,
    /// A digest of the plan and the files that it names.
    pub(crate) source: String,
    pub(crate) plan: Plan,
    pub(crate) stats: Arc<VersionStats>,
    explanation: OnceLock<Explanation>,
}

/// The statistics of a version's requests.
pub(crate) struct VersionStats {
    pub(crate) latency: Histogram,
    pub(crate) failed: AtomicU64,
    pub(crate) degraded: AtomicU64,
    /// By stage. Timers have no entry.
    pub(crate) nodes: Vec<NodeStats>,
    /// The start of counting, and the time of the next trace in microseconds after it.
    began: Instant,
    next_trace: AtomicU64,
}

/// The statistics of a stage in the traced requests.
#[derive(Default)]
pub(crate) struct NodeStats {
    pub(crate) latency: Histogram,
    pub(crate) failed: AtomicU64,
}

impl Version {
    /// The version of a plan. It continues the statistics of the served version of the same files, if there is one: a
    /// changed registry does not restart a trial.
    pub(crate) fn new<'a>(plan: Plan, served: impl IntoIterator<Item = &'a Arc<Version>>) -> Version {
        let (id, source) = digests(&plan);
        let now = plan.engine().runs().clock().now();
        let stages = plan.compiled().stages.len();
        let is_same = |served: &&Arc<Version>| served.source == source && served.stats.nodes.len() == stages;
        let stats = match served.into_iter().find(is_same) {
            Some(same) => Arc::clone(&same.stats),
            None => Arc::new(VersionStats::new(stages, now)),
        };
        Version { id, source, plan, stats, explanation: OnceLock::new() }
    }

    /// The version compiled from the same files for another engine.
    pub(crate) fn on(self: &Arc<Self>, engine: &Engine) -> Result<Version, Error> {
        let origin = &self.plan.compiled().origin;
        let plan = engine.compile_with_files(&origin.text, &origin.files)?;
        Ok(Version::new(plan.warned(self.plan.warnings().to_vec()), [self]))
    }

    /// The explanation of the plan.
    pub(crate) fn explanation(&self) -> &Explanation {
        self.explanation.get_or_init(|| explain(&self.plan))
    }
}

impl VersionStats {
    fn new(stages: usize, began: Instant) -> VersionStats {
        VersionStats {
            latency: Histogram::default(),
            failed: AtomicU64::new(0),
            degraded: AtomicU64::new(0),
            nodes: (0..stages).map(|_| NodeStats::default()).collect(),
            began,
            next_trace: AtomicU64::new(0),
        }
    }

    /// True for the one request per [`TRACE_EVERY`] that should be traced.
    pub(crate) fn is_trace_due(&self, now: Instant) -> bool {
        let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let now = us(now.saturating_duration_since(self.began));
        let due = self.next_trace.load(Ordering::Relaxed);
        let next = now.saturating_add(us(TRACE_EVERY));
        now >= due
            && self.next_trace.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Adds the times of the stages of a request.
    pub(crate) fn add_trace(&self, trace: &Trace) {
        for (track, stats) in trace.timeline().tracks().iter().zip(&self.nodes) {
            if let (Some(started), Some(ended)) = (track.started, track.ended) {
                stats.latency.add(ended.saturating_sub(started));
            }
            if matches!(track.outcome, NodeOutcome::FellBack(_) | NodeOutcome::Failed(_)) {
                stats.failed.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

/// The digests of the plan with its files and the registry, and of its files alone.
fn digests(plan: &Plan) -> (String, String) {
    fn add(hasher: &mut Sha256, part: &[u8]) {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    }
    let compiled = plan.compiled();
    let mut hasher = Sha256::new();
    add(&mut hasher, compiled.origin.text.as_bytes());
    for (name, bytes) in &compiled.origin.files {
        add(&mut hasher, name.as_bytes());
        add(&mut hasher, bytes);
    }
    let source = short(hasher.clone());
    for (name, text) in compiled.registries.texts.iter() {
        add(&mut hasher, name.as_bytes());
        add(&mut hasher, text.as_bytes());
    }
    (short(hasher), source)
}

fn short(hasher: Sha256) -> String {
    let mut id = String::with_capacity(12);
    for byte in &hasher.finalize()[..6] {
        write!(id, "{byte:02x}").expect("a String takes all that is written");
    }
    id
}
