//! `anabranch recipe explain`.

use std::collections::HashSet;
use std::path::PathBuf;

use anabranch_content::{Address, RemovalReason};
use anabranch_recipe::Functions;
use anabranch_text::{count, size};
use clap::Args;
use serde_json::json;

use super::at::{At, MissingStore};
use super::backend::{Backend, RemovedMemo};
use super::node::{Node, Value};
use super::picture::Picture;
use super::show;
use crate::failure::Failure;
use crate::out;
use crate::table::Table;

pub(super) const HELP: &str = "\
stdout: the recipes that a get would compute now, in an order in which they could be computed, and \
why. A recipe that reads other recipes need not run if its function has already run on equal values \
(early cut-off), so there may be fewer. stderr: a summary, and the reasons for which the get would fail. Nothing is computed.

  anabranch recipe explain page
  anabranch recipe explain page --svg page.svg     # draws the graph

Exit codes: 0 fine, also if the get would fail; 1 not found or failed; 2 wrong usage; 3 fine, but data \
that had been acknowledged was lost (the log says what).";

/// Says what a get would compute.
#[derive(Args)]
pub(crate) struct Explain {
    /// An address, the first 6 or more digits of one, or a name.
    #[arg(value_name = "TARGET")]
    target: String,
    /// Draws the graph: which values are stored, and which a get would compute.
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
    /// The same as a page, with a table of the nodes.
    #[arg(long, value_name = "FILE.html")]
    html: Option<PathBuf>,
    /// The maximum number of boxes in the picture; those nearest to the target are drawn.
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=2000))]
    draw: u32,
    #[command(flatten)]
    at: At,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// The most recipes that are visited.
const RECIPES_MOST: usize = 100_000;

/// The work of a get.
#[derive(Default)]
struct Work {
    /// The recipes to compute, each after those that it reads.
    computed: Vec<Step>,
    /// Whether some of them may turn out to need no computing: they read the values of recipes, and their functions may
    /// have run on equal values before.
    may_be_cut_off: bool,
    /// The number of stored values that are read, and their bytes.
    stored: usize,
    stored_bytes: u64,
    /// The reasons why the get would fail.
    faults: Vec<String>,
}

struct Step {
    address: Address,
    function: String,
    why: &'static str,
}

impl Explain {
    pub(crate) fn run(self) -> Result<(), Failure> {
        self.at.run(MissingStore::Refuse, async |backend| {
            let root = backend.find(&self.target).await?;
            let work = find_work(backend, root).await?;
            self.draw(backend, root).await?;
            if self.json {
                let step = |step: &Step| {
                    json!({"address": step.address.to_string(), "function": step.function, "why": step.why})
                };
                return show::json(&json!({
                    "computed": work.computed.iter().map(step).collect::<Vec<_>>(),
                    "may_be_cut_off": work.may_be_cut_off,
                    "stored": work.stored, "stored_bytes": work.stored_bytes, "faults": work.faults,
                }));
            }
            let mut table = Table::new(["function", "address", "why"]).whole_in_pipes();
            for step in &work.computed {
                table.row([step.function.as_str(), &step.address.to_string(), step.why]);
            }
            if !work.computed.is_empty() {
                out::data(&table.text(0))?;
            }
            work.faults.iter().for_each(|fault| out::note(&format!("the get would fail: {fault}")));
            let computed = match work.computed.len() {
                0 => "nothing".to_owned(),
                recipes if work.may_be_cut_off => format!("at most {}", count(recipes, "recipe")),
                recipes => count(recipes, "recipe"),
            };
            let (values, bytes) = (count(work.stored, "stored value"), size::format(work.stored_bytes));
            out::note(&format!("a get would compute {computed} and read {values}, {bytes}"));
            Ok(())
        })
    }
}

impl Explain {
    /// Writes the picture, if one is requested.
    async fn draw(&self, backend: &Backend, root: Address) -> Result<(), Failure> {
        if self.svg.is_none() && self.html.is_none() {
            return Ok(());
        }
        let picture = Picture::read(backend, &self.target, root, self.draw as usize).await?;
        if let Some(file) = &self.svg {
            out::file(file, &picture.svg())?;
        }
        if let Some(file) = &self.html {
            out::file(file, &picture.html())?;
        }
        if picture.left_out > 0 {
            let (boxes, left_out) = (self.draw, picture.left_out_text());
            out::note(&format!("the picture has the {boxes} nearest nodes, {left_out}; --draw draws more"));
        }
        Ok(())
    }
}

/// The reason why a recipe has no value, as far as the store knows. It remembers removals for a month.
async fn why_unknown(backend: &Backend, address: Address) -> Result<&'static str, Failure> {
    Ok(match backend.removed(address).await? {
        RemovedMemo::Unknown => "not computed before, or invalidated",
        RemovedMemo::None => "not computed before",
        RemovedMemo::For(RemovalReason::Invalidated) => "its value was invalidated",
        RemovedMemo::For(RemovalReason::Collected) => "its value was collected",
        RemovedMemo::For(RemovalReason::Quota) => "its value was evicted, because of the quota",
        RemovedMemo::For(RemovalReason::Damaged) => "its value was damaged",
    })
}

/// Walks from a recipe to the stored values, depth first.
async fn find_work(backend: &Backend, root: Address) -> Result<Work, Failure> {
    enum Visit {
        Enter(Address, Option<Address>),
        Leave(Step),
    }
    let functions = Functions::builtin();
    let mut work = Work::default();
    let mut seen = HashSet::new();
    let mut waiting = vec![Visit::Enter(root, None)];
    while let Some(visit) = waiting.pop() {
        let (address, reader) = match visit {
            Visit::Enter(address, reader) => (address, reader),
            Visit::Leave(step) => {
                work.computed.push(step);
                continue;
            }
        };
        if !seen.insert(address) {
            continue;
        }
        if seen.len() > RECIPES_MOST {
            return Err(Failure::of(format!("more than {RECIPES_MOST} recipes and blobs")));
        }
        let node = Node::find(backend, address).await?;
        work.may_be_cut_off |= reader.is_some() && matches!(node, Node::Recipe { .. });
        let mut stored = |size: u64| {
            work.stored += 1;
            work.stored_bytes += size;
        };
        let (recipe, why) = match node {
            Node::Blob { size } => {
                stored(size);
                continue;
            }
            Node::Recipe { value: Value::Stored(memo), .. } => {
                stored(memo.size);
                continue;
            }
            Node::Missing => {
                let reader = reader.map(|reader| format!(", which {reader} reads,")).unwrap_or_default();
                work.faults.push(format!("{address}{reader} is neither a blob nor a recipe here"));
                continue;
            }
            Node::Recipe { recipe, value: Value::Evicted } => (recipe, "its value was evicted"),
            Node::Recipe { recipe, .. } => (recipe, why_unknown(backend, address).await?),
        };
        if !backend.is_remote() && functions.get(&recipe.function).is_none() {
            work.faults.push(format!("function `{}` of {address} is not known here", recipe.function));
        }
        waiting.push(Visit::Leave(Step { address, function: recipe.function.to_string(), why }));
        waiting.extend(recipe.inputs.iter().rev().map(|input| Visit::Enter(*input, Some(address))));
    }
    Ok(work)
}
