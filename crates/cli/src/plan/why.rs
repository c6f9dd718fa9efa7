//! `anabranch plan why`.

use std::path::{Path, PathBuf};

use anabranch_content::Address;
use anabranch_plan::RunOptions;
use anabranch_plan_inspect::capture::{Capture, Replayer};
use anabranch_plan_inspect::why::{self, why};
use clap::Args;

use super::capture;
use super::lookup;
use super::project_args::{ProjectArgs, RowsUse};
use super::request;
use super::threads::Threads;
use crate::failure::Failure;
use crate::out;
use crate::wait;

pub(super) const HELP: &str = "\
Runs the request once more, as `plan run` would, and follows one row: the node and the list that brought it, the \
values that each node wrote, its position after each sort, and the filter or limit that dropped it, by how much, and \
what would have kept it.

  anabranch plan why feed 412 --request '{\"user_id\": 1}'
  anabranch plan why feed.plan.json 412 --registry DIR --redis HOST:PORT < request.json
  anabranch plan why ADDRESS 412 --store captures

With --store the request is a captured one; it is answered from the capture alone. An ADDRESS may be shortened to its \
first digits, at least 4.

Exit codes: 0 explained, whether or not the row is in the answer; 1 refused or failed; 2 wrong usage.";

/// The options that a capture replaces.
const OF_A_REQUEST: [&str; 11] = [
    "registry",
    "env",
    "data",
    "redis",
    "plans",
    "project",
    "request",
    "request_file",
    "cpu_threads",
    "inline_threshold",
    "sequential",
];

/// Explains why a row is in the answer to a request, or is not.
#[derive(Args)]
pub(crate) struct Why {
    /// A plan file, or the name of a plan in the plan folder; with --store, a capture.
    #[arg(value_name = "FILE|NAME|ADDRESS")]
    plan: String,
    /// The row's id.
    #[arg(value_name = "ROW", allow_negative_numbers = true)]
    row: i64,
    #[command(flatten)]
    project: ProjectArgs,
    /// The folder of the store that has the capture.
    #[arg(long, value_name = "DIR", conflicts_with_all = OF_A_REQUEST)]
    store: Option<PathBuf>,
    /// The request, instead of stdin.
    #[arg(long, value_name = "JSON")]
    request: Option<String>,
    /// A file with the request, instead of stdin.
    #[arg(long, value_name = "FILE", conflicts_with = "request")]
    request_file: Option<PathBuf>,
    #[command(flatten)]
    threads: Threads,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

impl Why {
    pub(crate) fn run(self) -> Result<(), Failure> {
        wait::here(Box::pin(self.tell()))
    }

    async fn tell(self) -> Result<(), Failure> {
        let why = match (&self.store, self.plan.parse::<Address>()) {
            (Some(store), _) => self.captured(store).await?,
            (None, Ok(address)) if !Path::new(&self.plan).exists() => {
                return Err(Failure::Wrong(format!(
                    "{address} is the address of a capture; give the folder of its store: --store DIR"
                )));
            }
            (None, _) => self.asked().await?,
        };
        match self.json {
            true => out::data(&format!("{}\n", why.json())),
            false => out::data(&why.text()),
        }
    }

    async fn captured(&self, store: &Path) -> Result<why::Why, Failure> {
        let digits = capture::address(&self.plan)
            .map_err(|what| Failure::Wrong(format!("{}: with --store, {what}", self.plan)))?;
        let store = capture::open_old(store)?;
        let capture = Capture::load(&store, capture::find(&store, &digits).await?).await?;
        Ok(Replayer::default().why(&capture, self.row).await?)
    }

    async fn asked(&self) -> Result<why::Why, Failure> {
        let engine = self.project.engine(Some(&self.threads), RowsUse::Needed)?;
        let plan = lookup::plan(&engine, &self.plan)?;
        self.project.warn_without_rows(&plan)?;
        out::warnings(&lookup::warnings(&engine, &self.plan, &plan));
        let text = match &self.request_file {
            Some(file) => request::file(file)?,
            None => request::text(self.request.as_deref())?,
        };
        let request = request::parse(&text, engine.registries())?;
        let options = RunOptions { sequential: self.threads.sequential, ..RunOptions::default() };
        Ok(why(&plan, request, &options, self.row).await?)
    }
}
