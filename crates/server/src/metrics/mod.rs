//! `/metrics`: counters, gauges and histograms in the text format of Prometheus.

mod process;
mod requests;
mod store;

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anabranch_engine::metrics::{Metrics, MetricsPage};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

use crate::service::{Service, Shared};
pub(crate) use requests::RequestMetrics;

/// Adds its own metrics to the page. It is called for every request of the page, so it must be fast.
pub type MetricsPart = Box<dyn Fn(&mut MetricsPage<'_>) + Send + Sync>;

/// The prefix of all names.
const PREFIX: &str = "anabranch";

/// The most engine events that wait to be counted. Older ones are dropped, and the page reports their number.
const EVENTS_MOST: NonZeroUsize = NonZeroUsize::new(1 << 16).expect("not zero");

/// The interval between two batches of events.
const COUNT_EVERY: Duration = Duration::from_millis(20);

/// The interval after a batch of at least [`MANY_EVENTS`]. Otherwise the batches of a busy server would each take a core
/// from its requests for longer than the requests take.
const COUNT_SOON: Duration = Duration::from_millis(2);
const MANY_EVENTS: usize = 512;

impl Service {
    /// The same service with more metrics on its page.
    ///
    /// # Panics
    /// If the service has been cloned or its router has been built.
    pub fn with_metrics(mut self, part: MetricsPart) -> Service {
        self.setup().metrics_parts.push(part);
        self
    }

    /// Counts the engine's events until the future is dropped. Without it, the page has no metrics of nodes and runs.
    pub async fn count_engine_events(&self) {
        let mut listener = self.shared.executor.engine().events().listen(EVENTS_MOST);
        *lock(&self.shared.engine_metrics) = Some(Metrics::new());
        let clock = Arc::clone(&self.shared.clock);
        let mut pause = COUNT_EVERY;
        loop {
            // Events are counted in batches, because a wakeup per event would cost a request more than its events do.
            clock.sleep_until(clock.now() + pause).await;
            let mut metrics = lock(&self.shared.engine_metrics);
            let metrics = metrics.get_or_insert_default();
            let mut counted = 0;
            listener.take_all(|item| {
                metrics.record(item);
                counted += 1;
            });
            pause = if counted >= MANY_EVENTS { COUNT_SOON } else { COUNT_EVERY };
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers with the page.
pub(crate) async fn page(State(shared): State<Arc<Shared>>) -> Response {
    let mut page = MetricsPage::new(PREFIX, &[]);
    shared.metrics.write(&mut page);
    load(&shared, &mut page);
    store::write(&shared.executor.status(), &mut page);
    process::write(&shared, &mut page);
    for part in &shared.metrics_parts {
        part(&mut page);
    }
    let mut text = page.finish();
    shared.metrics.write_times(&mut text);
    if let Some(plans) = &shared.plans {
        text.push_str(&plans.metrics());
    }
    if let Some(datasets) = &shared.datasets {
        text.push_str(&datasets.metrics());
    }
    if let Some(metrics) = &*lock(&shared.engine_metrics) {
        text.push_str(&metrics.snapshot().render("anabranch_engine", &[]));
    }
    ([(CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

/// A gauge without labels.
fn gauge(page: &mut MetricsPage<'_>, name: &str, help: &str, value: u64) {
    page.gauges(name, help, [(Vec::new(), value)]);
}

/// A counter without labels.
fn counter(page: &mut MetricsPage<'_>, name: &str, help: &str, value: u64) {
    page.counters(name, help, [(Vec::new(), value)]);
}

fn load(shared: &Shared, page: &mut MetricsPage<'_>) {
    use std::sync::atomic::Ordering::Relaxed;
    let (working, queued) = shared.slots.load();
    gauge(page, "connections", "Open connections.", shared.traffic.connections.load(Relaxed) as u64);
    let refused = shared.traffic.refused.load(Relaxed) as u64;
    counter(page, "connections_refused", "Connections beyond the share of their client.", refused);
    let calls = shared.traffic.calls.load(Relaxed) as u64;
    gauge(page, "requests_open", "Requests that are not answered, or whose answer is not read.", calls);
    gauge(page, "requests_in_flight", "Requests that the server works on.", working as u64);
    gauge(page, "requests_queued", "Requests that wait for a slot.", queued as u64);
    gauge(page, "unfinished_bytes", "Bytes of requests that are not answered.", shared.budget.taken() as u64);
    let (uploads, uploads_queued) = shared.uploads.load();
    gauge(page, "uploads", "Large blobs that are being stored.", uploads as u64);
    gauge(page, "uploads_queued", "Large blobs that wait for a place.", uploads_queued as u64);
}
