//! Counts and times of requests, by route and status.

use std::fmt::Write as _;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anabranch_engine::metrics::MetricsPage;

use super::{PREFIX, counter, lock};
use crate::api::{GRPC, ROUTES};
use crate::load::SlotRefusal;

/// The upper bounds of the histogram's buckets, in microseconds.
const BOUNDS: [u64; 14] = [
    250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 5_000_000,
    30_000_000,
];

/// Counts of all requests.
#[derive(Debug)]
pub(crate) struct RequestMetrics {
    /// One entry per HTTP route and gRPC call, and one for all other requests of each protocol.
    routes: Vec<RouteMetrics>,
    shed: [AtomicU64; 3],
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
}

#[derive(Debug)]
struct RouteMetrics {
    method: &'static str,
    path: String,
    /// Requests by status. Statuses below 17 are gRPC codes, the others HTTP statuses.
    statuses: Mutex<Vec<(u16, u64)>>,
    times: Times,
}

#[derive(Debug, Default)]
struct Times {
    within: [AtomicU64; BOUNDS.len()],
    count: AtomicU64,
    micros: AtomicU64,
}

impl Default for RequestMetrics {
    fn default() -> RequestMetrics {
        let route = |method, path: String| RouteMetrics {
            method,
            path,
            statuses: Mutex::default(),
            times: Times::default(),
        };
        let http = ROUTES.iter().map(|row| route(row.method, row.path.to_owned()));
        let methods = GRPC.iter().flat_map(|(service, methods, _)| {
            methods.iter().map(move |method| route("gRPC", format!("/{service}/{method}")))
        });
        let others = [route("other", "other".to_owned()), route("gRPC", "other".to_owned())];
        RequestMetrics {
            routes: http.chain(methods).chain(others).collect(),
            shed: Default::default(),
            bytes_in: AtomicU64::new(0),
            bytes_out: AtomicU64::new(0),
        }
    }
}

impl RequestMetrics {
    /// The index of a request's counters, by its index in the table of HTTP routes or gRPC calls.
    pub(crate) fn place(&self, route: Option<usize>, is_grpc: bool) -> usize {
        match (route, is_grpc) {
            (Some(route), false) => route,
            (Some(call), true) => ROUTES.len() + call,
            (None, false) => self.routes.len() - 2,
            (None, true) => self.routes.len() - 1,
        }
    }

    /// Records the end of a request.
    pub(crate) fn record(&self, place: usize, status: u16, after: Option<Duration>, bytes: u64) {
        let route = &self.routes[place];
        {
            let mut statuses = lock(&route.statuses);
            match statuses.iter_mut().find(|(known, _)| *known == status) {
                Some((_, count)) => *count += 1,
                None => statuses.push((status, 1)),
            }
        }
        if let Some(after) = after {
            route.times.record(after);
        }
        self.bytes_out.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Records a request that was refused because of load.
    pub(crate) fn shed(&self, shed: SlotRefusal) {
        self.shed[shed as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Records received bytes of a body.
    pub(crate) fn received(&self, bytes: u64) {
        self.bytes_in.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn write(&self, page: &mut MetricsPage<'_>) {
        let mut lines: Vec<(&RouteMetrics, String, u64)> = Vec::new();
        for route in &self.routes {
            lines.extend(
                lock(&route.statuses).iter().map(|(status, count)| (route, status.to_string(), *count)),
            );
        }
        let rows = lines.iter().map(|(route, status, count)| {
            (vec![("method", route.method), ("route", &*route.path), ("status", &**status)], *count)
        });
        page.counters("requests", "Requests by route and status (below 17: of gRPC).", rows);
        let shed = |shed: SlotRefusal| self.shed[shed as usize].load(Ordering::Relaxed);
        page.counters(
            "requests_shed",
            "Requests that were refused for load.",
            [
                (vec![("by", "client")], shed(SlotRefusal::Client)),
                (vec![("by", "server")], shed(SlotRefusal::Server)),
                (vec![("by", "deadline")], shed(SlotRefusal::Deadline)),
            ],
        );
        let bytes = |bytes: &AtomicU64| bytes.load(Ordering::Relaxed);
        counter(page, "received_bytes", "Bytes of request bodies.", bytes(&self.bytes_in));
        counter(page, "sent_bytes", "Bytes of answers.", bytes(&self.bytes_out));
    }

    /// Writes the histogram of the times until the response headers, for routes that were used.
    pub(super) fn write_times(&self, out: &mut String) {
        let name = format!("{PREFIX}_request_seconds");
        out.push_str(&format!(
            "# HELP {name} Time from the head of a request to the head of its answer.\n# TYPE {name} histogram\n"
        ));
        for route in self.routes.iter().filter(|route| route.times.count.load(Ordering::Relaxed) > 0) {
            let labels = format!("method=\"{}\",route=\"{}\"", route.method, route.path);
            route.times.write(&name, &labels, out);
        }
    }
}

impl Times {
    fn record(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        if let Some(bucket) = BOUNDS.iter().position(|bound| micros <= *bound) {
            self.within[bucket].fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    fn write(&self, name: &str, labels: &str, out: &mut String) {
        let count = self.count.load(Ordering::Relaxed);
        let mut sum = 0;
        let mut line = |text: std::fmt::Arguments<'_>| out.write_fmt(text).expect("a String takes it all");
        for (bound, within) in BOUNDS.iter().zip(&self.within) {
            sum += within.load(Ordering::Relaxed);
            let bound = *bound as f64 / 1e6;
            line(format_args!("{name}_bucket{{{labels},le=\"{bound}\"}} {sum}\n"));
        }
        // Counters are read one by one, and the counts of buckets must not decrease.
        let count = count.max(sum);
        line(format_args!("{name}_bucket{{{labels},le=\"+Inf\"}} {count}\n"));
        let seconds = self.micros.load(Ordering::Relaxed) as f64 / 1e6;
        line(format_args!("{name}_sum{{{labels}}} {seconds}\n{name}_count{{{labels}}} {count}\n"));
    }
}
