//! `anabranch dataset submit`: a dataset that a server builds.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anabranch_engine::clock::{Clock as _, SystemClock};
use anabranch_server::{ApiRequest, Client, ClientError, Code, ServerAddress};
use anabranch_text::quote;
use clap::Args;
use serde_json::{Map, Value, json};

use super::budget::BudgetOptions;
use super::remote_display::RemoteDisplay;
use crate::failure::Failure;
use crate::out;
use crate::recipe::{Remote, ask};

/// The end of the help text.
pub(super) const HELP: &str = "\
The server checks the configuration and keeps the job, which outlives this command and restarts of
the server. With --wait, the command waits up to a minute for a server that restarts. Which models
there are, and which files a seed may come from, is up to the server: see docs/serving-datasets.md.
Without --server, the server of --data is asked.

stdout: the id of the dataset; with --json its id, run and page, and with --wait then its state at
the end.
stderr: where to look; with --wait how far the build is, in place on a terminal, else as a line every
5 seconds.

  anabranch dataset submit tickets.yaml --rows 1000 --demo
  anabranch dataset submit tickets.yaml --rows 1000 --server http://127.0.0.1:7421 --wait

Exit codes: 0 accepted, and with --wait built; 1 refused, failed or stopped (stderr says why); 2
wrong usage.";

/// Has a server build a dataset.
#[derive(Args)]
pub(crate) struct Submit {
    /// The configuration: .yaml, .yml or .json.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    remote: Remote,
    /// A file with `model_configs` and `providers`, for servers that allow it.
    #[arg(long, value_name = "MODELS.yaml")]
    models: Option<PathBuf>,
    /// The number of rows [default: `rows` of the configuration].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    rows: Option<u64>,
    /// Seeds all random values: the same seed gives the same samples and prompts.
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Every model alias is answered by the built-in demo model: offline, without cost, with made-up texts.
    #[arg(long)]
    demo: bool,
    /// The name of the dataset [default: the name of the file].
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The same key again answers with the same dataset, instead of building a second one.
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Waits until the dataset is built.
    #[arg(long)]
    wait: bool,
    /// JSON on stdout.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    budget: BudgetOptions,
}

/// A job that the server has accepted.
struct AcceptedJob {
    id: String,
    run: String,
}

impl Submit {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let body = self.body()?;
        let server = self.remote.server()?;
        let stopped = "stopped waiting; the server builds an accepted dataset to its end";
        ask(&server, stopped, async |client| {
            let accepted = self.accepted(client, body).await?;
            self.tell(&server, &accepted)?;
            match self.wait {
                true => self.ended(client, &accepted).await,
                false => Ok(()),
            }
        })
    }

    fn body(&self) -> Result<Value, Failure> {
        let stem = self.file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let mut body = json!({ "config": read(&self.file)?, "seed": self.seed, "demo": self.demo });
        body["name"] = self.name.clone().or(stem).into();
        if let Some(models) = &self.models {
            body["models"] = read(models)?.into();
        }
        if let Some(rows) = self.rows {
            body["rows"] = rows.into();
        }
        let budget = self.budget.budget();
        let deadline = budget.deadline.map(|time| format!("{}ms", time.as_millis()));
        let caps = [
            ("max_calls", budget.max_calls.map(Value::from)),
            ("max_tokens", budget.max_tokens.map(Value::from)),
            ("max_cost", budget.max_cost.map(Value::from)),
            ("deadline", deadline.map(Value::from)),
        ];
        let caps: Map<String, Value> =
            caps.into_iter().filter_map(|(name, cap)| Some((name.to_owned(), cap?))).collect();
        body["budget"] = Value::Object(caps);
        Ok(body)
    }

    async fn accepted(&self, client: &Client, body: Value) -> Result<AcceptedJob, Failure> {
        let request = ApiRequest::post("/v1/datasets", body).once(self.idempotency_key.as_deref());
        let answer = client.api(&request).await?;
        match (answer["id"].as_str(), answer["run"].as_str()) {
            (Some(id), Some(run)) => Ok(AcceptedJob { id: id.to_owned(), run: run.to_owned() }),
            _ => Err(Failure::of(format!("the server's answer is not understood: {answer}"))),
        }
    }

    fn tell(&self, server: &ServerAddress, AcceptedJob { id, run }: &AcceptedJob) -> Result<(), Failure> {
        let url = server.url.trim_end_matches('/');
        let page = format!("{url}/#/datasets/{id}");
        match self.json {
            true => out::data(&format!("{}\n", json!({ "id": id, "run": run, "page": page })))?,
            false => out::data(&format!("{id}\n"))?,
        }
        out::note(&format!("accepted; see {page}, or anabranch run show {run} --server {url}"));
        Ok(())
    }

    /// Follows the build. A restarted server continues it in another run, so the state of the dataset decides whether it
    /// goes on. A server that does not answer is asked again for a while.
    async fn ended(&self, client: &Client, accepted: &AcceptedJob) -> Result<(), Failure> {
        let path = format!("/v1/datasets/{}", accepted.id);
        let mut followed = FollowedRun::new(accepted.run.clone());
        let mut outage = Outage::default();
        let ended = loop {
            let read_before = followed.read;
            let broken = followed.read_all(client).await.err();
            let asked = client.api(&ApiRequest::get(&*path)).await;
            let problem = match asked {
                Ok(dataset) => match dataset["state"].as_str() {
                    Some("queued" | "running") => {
                        match (followed.continues_in(dataset["run"].as_str()), broken) {
                            (true, None) => None,
                            (_, broken) => Some(broken.unwrap_or_else(stopped_early)),
                        }
                    }
                    _ => break dataset,
                },
                Err(error) if may_pass(&error) => Some(error),
                Err(error) => return Err(error.into()),
            };
            if followed.read > read_before {
                outage = Outage::default();
            }
            if let Some(problem) = problem {
                match outage.goes_on(SystemClock.now()) {
                    Advice::TellAndRetry => out::note(&format!("{problem}; trying again")),
                    Advice::Retry => {}
                    Advice::GiveUp => return Err(given_up(&accepted.id, &problem)),
                }
                SystemClock.sleep_until(SystemClock.now() + RETRY_EVERY).await;
            }
        };
        drop(followed);
        self.report(&ended)
    }

    fn report(&self, ended: &Value) -> Result<(), Failure> {
        let state = ended["state"].as_str().unwrap_or_default();
        if self.json {
            let mut shown = ended.clone();
            // These fields are long, and the server's page has them.
            if let Some(shown) = shown.as_object_mut() {
                ["config", "history", "event"].iter().for_each(|name| _ = shown.remove(*name));
            }
            out::data(&format!("{shown}\n"))?;
        }
        let (done, dropped) = (&ended["rows_written"], &ended["rows_dropped"]);
        let seconds = ended["elapsed_seconds"].as_f64().unwrap_or_default();
        let text = format!("{state}: {done} rows, {dropped} dropped, {seconds:.1} s");
        match (state, ended["error"].as_str()) {
            ("complete", _) => {
                out::note(&text);
                Ok(())
            }
            (_, Some(error)) => Err(Failure::of(format!("{text}; {error}"))),
            (_, None) => Err(Failure::of(text)),
        }
    }
}

/// The time for which requests to a failing server are retried. Events that arrive renew it.
const RETRY_FOR: Duration = Duration::from_secs(60);
/// The pause between two attempts.
const RETRY_EVERY: Duration = Duration::from_millis(500);

/// A period without events in which the server cannot be followed.
#[derive(Default)]
struct Outage {
    began: Option<Instant>,
}

/// What to do about a problem of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Advice {
    /// The problem is the first of its period.
    TellAndRetry,
    Retry,
    GiveUp,
}

impl Outage {
    /// A problem at this time.
    fn goes_on(&mut self, now: Instant) -> Advice {
        match self.began {
            None => {
                self.began = Some(now);
                Advice::TellAndRetry
            }
            Some(began) if now.saturating_duration_since(began) < RETRY_FOR => Advice::Retry,
            Some(_) => Advice::GiveUp,
        }
    }
}

/// Whether the same request may succeed later.
fn may_pass(error: &ClientError) -> bool {
    match error {
        ClientError::Connect { .. } | ClientError::Broken { .. } => true,
        ClientError::Call { code, .. } => matches!(code, Code::Unavailable | Code::ResourceExhausted),
        _ => false,
    }
}

fn stopped_early() -> ClientError {
    ClientError::Broken { cause: "its events ended before the dataset was built".to_owned() }
}

fn given_up(id: &str, problem: &ClientError) -> Failure {
    Failure::of(format!(
        "{problem}; gave up after a minute of retries. The server builds an accepted dataset to its end: see the \
         dataset {id} later"
    ))
}

/// The run of a build, read event by event.
struct FollowedRun {
    run: String,
    /// The last event that was read; 0 before the first.
    last: u64,
    /// The number of events that were read, of all runs.
    read: u64,
    display: RemoteDisplay,
}

impl FollowedRun {
    fn new(run: String) -> FollowedRun {
        FollowedRun { run, last: 0, read: 0, display: RemoteDisplay::new() }
    }

    /// Reads the events of a run from where it is. An error if they end before the run does.
    async fn read_all(&mut self, client: &Client) -> Result<(), ClientError> {
        let mut events = client.follow(&format!("/v1/runs/{}/events?after={}", self.run, self.last)).await?;
        while let Some(event) = events.next().await {
            let event = event?;
            self.read += 1;
            self.last = event.id.unwrap_or(self.last);
            match &*event.kind {
                "progress" => self.display.update(&serde_json::from_str(&event.data).unwrap_or_default()),
                "end" => return Ok(()),
                _ => {}
            }
        }
        Err(stopped_early())
    }

    /// Goes on with the run that builds the dataset now; false if that is the same run.
    fn continues_in(&mut self, run: Option<&str>) -> bool {
        let Some(run) = run.filter(|run| *run != self.run) else { return false };
        self.run = run.to_owned();
        self.last = 0;
        true
    }
}

fn read(file: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(file)
        .map_err(|error| Failure::of(format!("cannot read {}: {error}", quote(&file.to_string_lossy()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attempts may take long: only the clock counts.
    #[test]
    fn a_server_in_trouble_is_asked_again_for_a_minute() {
        let began = SystemClock.now();
        let mut outage = Outage::default();
        let mut at = |seconds| outage.goes_on(began + Duration::from_secs(seconds));
        assert_eq!(
            [0, 1, 59, 60].map(&mut at),
            [Advice::TellAndRetry, Advice::Retry, Advice::Retry, Advice::GiveUp]
        );
        outage = Outage::default();
        assert_eq!(outage.goes_on(began + Duration::from_secs(100)), Advice::TellAndRetry);
    }

    /// The last problem is told, also one of a server that answers.
    #[test]
    fn the_last_problem_is_told() {
        let Failure::Failed(told) = given_up("d-1", &stopped_early()) else { panic!("it fails") };
        let told = told.to_string();
        assert!(told.contains("its events ended before the dataset was built"), "{told}");
        assert!(told.contains("gave up after a minute") && told.contains("dataset d-1"), "{told}");
    }
}
