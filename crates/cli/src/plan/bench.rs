//! `anabranch plan bench`.

use std::future::poll_fn;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use anabranch_plan::{Reason, Request};
use anabranch_plan_inspect::capture::{SampleCounts, Sampler};
use anabranch_text::{count, duration};
use clap::Args;
use serde_json::{Map, Value, json};
use tokio::runtime::Builder;

use super::load_generator::{Load, LoadEnd, Outcome};
use super::lookup;
use super::project_args::{ProjectArgs, RowsUse};
use super::request;
use super::threads::{A_DAY, Threads, whole};
use crate::failure::Failure;
use crate::out;
use crate::wait;

pub(super) const HELP: &str = "\
Closed loop: --concurrency callers, each of which sends its next request as soon as it has an answer.
Open loop: --rate requests per second, however many are still in flight (at most --concurrency, 1000 by default). \
Latency counts from the time at which a request was due, so a stall is not left out.

Goodput is the number of full answers per second (with --deadline-ms: those by their deadline). Beside it stand \
degraded answers (some node was replaced by its fallback; the ledger says which) and the requests that were late, \
refused by admission, or failed. In an open loop a deadline counts from the time at which the request was due, too.

A latency ends when the rows are there; writing them as JSON is not counted. Errors are counted, not fatal. In --json \
times are in microseconds or as named; cpu_us_per_request is user and system time.

  anabranch plan bench feed --requests 10000 --concurrency 10 --json
  anabranch plan bench feed --rate 2000 --duration 10s --deadline-ms 50

Exit codes: 0 measured; 1 refused, or not one request was answered; 2 wrong usage.";

/// The default of the most concurrent requests in an open loop. --concurrency overrides it.
const OPEN_LOOP_ASKERS: u32 = 1000;

/// The most ledger lines that are shown.
const LEDGER_LINES: usize = 10;

/// Measures a plan.
#[derive(Args)]
pub(crate) struct Bench {
    /// A plan file, or the name of a plan in the plan folder.
    #[arg(value_name = "FILE|NAME")]
    plan: String,
    #[command(flatten)]
    project: ProjectArgs,
    /// The request to repeat; by default user 1 without parameters.
    #[arg(long, value_name = "JSON", conflicts_with = "request_file")]
    request: Option<String>,
    /// Requests to send in turn, one per line.
    #[arg(long, value_name = "FILE.jsonl")]
    request_file: Option<PathBuf>,
    /// The number of requests; by default 1000, unless --duration is given.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = |text: &str| whole(text, 1, u64::MAX))]
    requests: Option<u64>,
    /// A duration instead of a number of requests: 5s, 500ms.
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = some_time, conflicts_with = "requests")]
    duration: Option<Duration>,
    /// Requests in flight at a time.
    #[arg(long, value_name = "C", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    concurrency: Option<u32>,
    /// Requests per second (open loop).
    #[arg(long, value_name = "R", allow_negative_numbers = true, value_parser = rate)]
    rate: Option<f64>,
    /// Requests before the measured ones; by default ten per concurrent request, from 100 to 1000.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = |text: &str| whole(text, 0, u64::MAX))]
    warmup: Option<u64>,
    /// Threads of the event loop; by default one at concurrency 1, else one per core.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u16).range(1..=1024))]
    workers: Option<u16>,
    #[command(flatten)]
    threads: Threads,
    /// The deadline of each request.
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = |text: &str| whole(text, 1, A_DAY))]
    deadline_ms: Option<u64>,
    /// Captures requests during the measurement, as [plan.captures] of the project file says.
    #[arg(long)]
    capture: bool,
    /// Switches admission off: no request is refused because it would be late.
    #[arg(long)]
    no_admission: bool,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// The rate is at least about one request per day, and at most one per nanosecond.
const LEAST_RATE: f64 = 0.00001;
const MOST_RATE: f64 = 1e9;
/// The longest duration of a load.
const LONGEST: Duration = Duration::from_secs(366 * 24 * 3600);

fn some_time(text: &str) -> Result<Duration, String> {
    duration::parse(text).and_then(|time| match time {
        Duration::ZERO => Err("no time at all".to_owned()),
        time if time > LONGEST => Err("a load lasts at most a year".to_owned()),
        time => Ok(time),
    })
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate: &f64| (LEAST_RATE..=MOST_RATE).contains(rate));
    rate.ok_or_else(|| format!("a rate is a number of requests per second, from {LEAST_RATE} to {MOST_RATE}"))
}

/// A measurement and its settings.
struct Measurement {
    plan: String,
    concurrency: u32,
    workers: u16,
    warmup: u64,
    outcome: Outcome,
}

/// Runs `work` while captures are written.
async fn during<T>(sampler: Option<&Sampler>, work: impl Future<Output = T>) -> T {
    let Some(sampler) = sampler else { return work.await };
    let mut work = pin!(work);
    let mut writing = pin!(sampler.write());
    poll_fn(|context| {
        // The writer never ends.
        let _ = writing.as_mut().poll(context);
        work.as_mut().poll(context)
    })
    .await
}

impl Bench {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let concurrency = self.concurrency.unwrap_or(if self.rate.is_some() { OPEN_LOOP_ASKERS } else { 1 });
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let default = if concurrency == 1 { 1 } else { u16::try_from(cores).unwrap_or(u16::MAX) };
        let workers = self.workers.unwrap_or(default);
        // On one thread, no wakeup crosses threads.
        let runtime = match workers {
            1 => wait::runtime(&mut Builder::new_current_thread())?,
            workers => wait::runtime(Builder::new_multi_thread().worker_threads(workers.into()))?,
        };
        let measured = wait::on(&runtime, Box::pin(self.measure(concurrency, workers)))?;
        match self.json {
            true => out::data(&format!("{}\n", self.as_json(&measured)))?,
            false => out::data(&self.text(&measured))?,
        }
        if measured.outcome.answered > 0 { Ok(()) } else { Err(Failure::of("not one request was answered")) }
    }

    async fn measure(&self, concurrency: u32, workers: u16) -> Result<Measurement, Failure> {
        let engine = self.project.engine_with(Some(&self.threads), RowsUse::Needed, |config| {
            config.admission &= !self.no_admission;
        })?;
        let sampler = self.capture.then(|| self.project.sampler(&engine)).transpose()?.map(Arc::new);
        let plan = lookup::plan(&engine, &self.plan)?;
        self.project.warn_without_rows(&plan)?;
        out::warnings(&lookup::warnings(&engine, &self.plan, &plan));
        let requests = match (&self.request, &self.request_file) {
            (Some(text), _) => vec![request::parse(text.as_bytes(), engine.registries())?],
            (None, None) => vec![Request::new(1, engine.registries())],
            (None, Some(file)) => {
                let name = file.display().to_string();
                let text = std::fs::read_to_string(file);
                let text = text.map_err(|error| Failure::of(format!("cannot read {name}: {error}")))?;
                request::lines(&name, &text, engine.registries())?
            }
        };
        let load = |until, rate: Option<f64>| Load {
            plan: plan.clone(),
            sampler: sampler.clone(),
            requests: requests.clone(),
            // A warmup for an open loop needs little concurrency.
            concurrency: if self.rate.is_some() && rate.is_none() {
                concurrency.min(16)
            } else {
                concurrency
            },
            until,
            rate,
            sequential: self.threads.sequential,
            deadline: self.deadline_ms.map(Duration::from_millis),
        };
        let warmup = self.warmup.unwrap_or_else(|| (u64::from(concurrency) * 10).clamp(100, 1000));
        if warmup > 0 {
            load(LoadEnd::Count(warmup), None).run().await;
        }
        let until = match (self.requests, self.duration) {
            (Some(count), _) => LoadEnd::Count(count),
            (None, Some(time)) => LoadEnd::Elapsed(time),
            (None, None) => LoadEnd::Count(1000),
        };
        let outcome = during(sampler.as_deref(), load(until, self.rate).run()).await;
        if let Some(sampler) = sampler {
            sampler.flush().await;
            Bench::tell(sampler.counts());
        }
        Ok(Measurement { plan: plan.name().to_owned(), concurrency, workers, warmup, outcome })
    }

    /// Reports the number of captures.
    fn tell(counts: SampleCounts) {
        let dropped = [
            ("rate", counts.dropped_rate),
            ("size", counts.dropped_size),
            ("queue", counts.dropped_queue),
            ("total", counts.dropped_total),
            ("masked", counts.dropped_masked),
            ("store", counts.dropped_store),
        ];
        let dropped = dropped.iter().filter(|(_, count)| *count > 0);
        let dropped: String = dropped.map(|(why, count)| format!(", {count} dropped ({why})")).collect();
        out::note(&format!("{}{dropped}", count(counts.written, "capture")));
    }

    fn as_json(&self, measured: &Measurement) -> Value {
        let outcome = &measured.outcome;
        let each = each(outcome);
        let errors: Map<String, Value> = outcome
            .errors
            .iter()
            .map(|(kind, (count, first))| ((*kind).to_owned(), json!({"count": count, "first": first})))
            .collect();
        json!({
            "plan": measured.plan,
            "iterations": outcome.asked(),
            "answered": outcome.answered,
            "concurrency": measured.concurrency,
            "workers": measured.workers,
            "warmup": measured.warmup,
            "rate": self.rate,
            "sequential": self.threads.sequential,
            "total_ms": rounded(outcome.wall.as_secs_f64() * 1e3),
            "throughput_rps": rounded(each.rate),
            "deadline_ms": self.deadline_ms,
            "goodput_rps": rounded(each.good),
            "degraded_rps": rounded(each.degraded),
            "late": outcome.late,
            "refused": outcome.refused,
            "failed": outcome.failed_otherwise(),
            "avg_us": rounded(each.mean_us),
            "p50_us": rounded(outcome.micros_at(0.5)),
            "p90_us": rounded(outcome.micros_at(0.9)),
            "p99_us": rounded(outcome.micros_at(0.99)),
            "p999_us": rounded(outcome.micros_at(0.999)),
            "min_us": rounded(each.least_us),
            "max_us": rounded(outcome.most.as_secs_f64() * 1e6),
            "cpu_us_per_request": rounded(each.cpu_us),
            "trips_per_request": rounded(each.trips),
            "commands_per_request": rounded(each.commands),
            "ledger": ledger(outcome).iter().map(|((node, reason, fallback), count)| {
                json!({"node": node, "reason": reason.word(), "fallback": fallback, "count": count})
            }).collect::<Value>(),
            "errors": errors,
        })
    }

    fn text(&self, measured: &Measurement) -> String {
        let Measurement { plan, concurrency, workers, warmup, outcome } = measured;
        let asked = outcome.asked();
        let load = match self.rate {
            Some(rate) => format!("{rate} due per second, at most {concurrency} at once"),
            None => format!("{concurrency} at once"),
        };
        let threads = if *workers == 1 { "1 thread".to_owned() } else { format!("{workers} threads") };
        let mut text =
            format!("plan {plan}: {asked} requests, {load}, on {threads}, after {warmup} to warm up\n");
        if outcome.answered > 0 {
            text.push_str(&figures(outcome, self.deadline_ms));
        }
        for ((node, reason, fallback), entries) in ledger(outcome) {
            let times = count(*entries, "time");
            text.push_str(&format!("ledger      {times} {node}: {reason}, {fallback}\n"));
        }
        for (kind, (errors, first)) in &outcome.errors {
            let times = count(*errors, "time");
            text.push_str(&format!("errors      {times} {kind}, the first: {first}\n"));
        }
        text
    }
}

/// Describes the throughput, latency and cost of the responses.
fn figures(outcome: &Outcome, deadline_ms: Option<u64>) -> String {
    let each = each(outcome);
    let by = deadline_ms.map_or(String::new(), |deadline| format!(" within {deadline} ms"));
    let others = [
        (outcome.degraded, format!("{:.0} degraded per second", each.degraded)),
        (outcome.late, format!("{} late", outcome.late)),
        (outcome.refused, format!("{} refused", outcome.refused)),
        (outcome.failed_otherwise(), format!("{} failed", outcome.failed_otherwise())),
    ];
    let others: String =
        others.iter().filter(|(count, _)| *count > 0).map(|(_, text)| format!("; {text}")).collect();
    let at = |quantile| shown(outcome.micros_at(quantile));
    let (least, most) = (shown(each.least_us), shown(outcome.most.as_secs_f64() * 1e6));
    format!(
        "throughput  {:.0} answers per second, in {:.1} ms\n\
         goodput     {:.0} full answers{by} per second{others}\n\
         latency     p50 {}, p90 {}, p99 {}, p99.9 {}; min {least}, mean {}, max {most}\n\
         CPU         {} per request\n\
         sources     {:.2} trips, {:.2} commands per request\n",
        each.rate,
        outcome.wall.as_secs_f64() * 1e3,
        each.good,
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999),
        shown(each.mean_us),
        shown(each.cpu_us),
        each.trips,
        each.commands,
    )
}

/// The most frequent ledger lines.
fn ledger(outcome: &Outcome) -> Vec<(&(String, Reason, String), &u64)> {
    let mut lines: Vec<_> = outcome.ledger.iter().collect();
    lines.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    lines.truncate(LEDGER_LINES);
    lines
}

/// Means per request, and rates.
struct RequestMeans {
    rate: f64,
    good: f64,
    degraded: f64,
    mean_us: f64,
    least_us: f64,
    cpu_us: f64,
    trips: f64,
    commands: f64,
}

fn each(outcome: &Outcome) -> RequestMeans {
    let answered = outcome.answered.max(1) as f64;
    let asked = outcome.asked().max(1) as f64;
    let per_second = |count: u64| count as f64 / outcome.wall.as_secs_f64().max(1e-9);
    let least = if outcome.answered == 0 { Duration::ZERO } else { outcome.least };
    RequestMeans {
        rate: per_second(outcome.answered),
        good: per_second(outcome.good),
        degraded: per_second(outcome.degraded),
        mean_us: outcome.total_latency.as_secs_f64() * 1e6 / answered,
        least_us: least.as_secs_f64() * 1e6,
        cpu_us: outcome.cpu.as_secs_f64() * 1e6 / asked,
        trips: outcome.trips as f64 / answered,
        commands: outcome.commands as f64 / answered,
    }
}

/// Rounds to three decimal places.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

fn shown(micros: f64) -> String {
    duration::format(Duration::try_from_secs_f64(micros / 1e6).unwrap_or_default())
}
