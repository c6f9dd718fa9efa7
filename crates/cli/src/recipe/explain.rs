//! `anabranch recipe explain`.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use anabranch_content::{Address, RemovalReason};
use anabranch_recipe::{FunctionId, Recipe};
use anabranch_text::{count, size};
use clap::Args;
use serde_json::json;

use super::at::{At, MissingStore};
use super::backend::Backend;
use super::node::{Node, Value};
use super::picture::Picture;
use super::show;
use crate::failure::Failure;
use crate::out;
use crate::table::Table;

pub(super) const HELP: &str = "\
stdout: the recipes that a get would compute now, in an order in which they could be computed, and \
why. A recipe that reads the values of these need not run if its function has already run on equal values \
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
    /// The recipes without a value whose functions have already run on equal inputs, so they need not run.
    cut_off: Vec<Address>,
    /// Whether some of the computed ones may turn out to be such recipes: they read values that are not known yet.
    may_be_cut_off: bool,
    /// The number of stored values that are read, and their bytes.
    stored: usize,
    stored_bytes: u64,
    /// The reasons why the get would fail.
    faults: Vec<String>,
}

struct Step {
    address: Address,
    function: FunctionId,
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
                    let (address, function) = (step.address.to_string(), step.function.to_string());
                    json!({"address": address, "function": function, "why": step.why})
                };
                return show::json(&json!({
                    "computed": work.computed.iter().map(step).collect::<Vec<_>>(),
                    "cut_off": show::addresses(&work.cut_off), "may_be_cut_off": work.may_be_cut_off,
                    "stored": work.stored, "stored_bytes": work.stored_bytes, "faults": work.faults,
                }));
            }
            let mut table = Table::new(["function", "address", "why"]).whole_in_pipes();
            for step in &work.computed {
                table.row([&step.function.to_string(), &step.address.to_string(), step.why]);
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
            let cut_off = match work.cut_off.len() {
                0 => String::new(),
                recipes => format!(" ({} had equal inputs before)", count(recipes, "recipe")),
            };
            let (values, bytes) = (count(work.stored, "stored value"), size::format(work.stored_bytes));
            out::note(&format!("a get would compute {computed}{cut_off} and read {values}, {bytes}"));
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
            let (boxes, left_out) = (count(self.draw, "nearest node"), picture.left_out_text());
            out::note(&format!("the picture has the {boxes}, {left_out}; --draw draws more"));
        }
        Ok(())
    }
}

/// The reason why a recipe has no value, as far as the store knows. It remembers removals for a month.
fn why_absent(value: &Value) -> &'static str {
    match value {
        Value::Stored(_) => "its value is stored",
        Value::Evicted => "its value was evicted",
        Value::Unknown(None) => "not computed before",
        Value::Unknown(Some(removal)) => match removal.why {
            RemovalReason::Invalidated => "its value was invalidated",
            RemovalReason::Collected => "its value was collected",
            RemovalReason::Quota => "its value was evicted, because of the quota",
            RemovalReason::Damaged => "its value was damaged",
        },
    }
}

/// Finds the work of a get.
async fn find_work(backend: &Backend, root: Address) -> Result<Work, Failure> {
    let mut search = Search { backend, work: Work::default(), values: HashMap::new(), read: HashSet::new() };
    search.walk(root).await?;
    search.read(root);
    let mut work = search.work;
    if !work.computed.is_empty() {
        let known: HashSet<FunctionId> = backend.functions().await?.into_iter().map(|it| it.id).collect();
        let unknown = work.computed.iter().filter(|step| !known.contains(&step.function));
        let fault =
            |step: &Step| format!("function `{}` of {} is not known here", step.function, step.address);
        work.faults.extend(unknown.map(fault));
    }
    Ok(work)
}

struct Search<'a> {
    backend: &'a Backend,
    work: Work,
    /// The values that need not be computed, with their sizes, by the address of their blob or recipe.
    values: HashMap<Address, (Address, u64)>,
    /// Those of them that are read.
    read: HashSet<Address>,
}

enum Visit {
    Enter(Address, Option<Address>),
    /// A recipe without a value, after its inputs.
    Leave(Address, Recipe, Value),
}

impl Search<'_> {
    /// Walks from a recipe to the stored values, depth first.
    async fn walk(&mut self, root: Address) -> Result<(), Failure> {
        let mut seen = HashSet::new();
        let mut waiting = vec![Visit::Enter(root, None)];
        while let Some(visit) = waiting.pop() {
            let (address, reader) = match visit {
                Visit::Enter(address, reader) => (address, reader),
                Visit::Leave(address, recipe, value) => {
                    self.leave(address, recipe, &value).await?;
                    continue;
                }
            };
            if !seen.insert(address) {
                continue;
            }
            if seen.len() > RECIPES_MOST {
                return Err(Failure::of(format!(
                    "the graph has more than {RECIPES_MOST} recipes and blobs, the most that are visited; explain a \
                     recipe inside of it"
                )));
            }
            match Node::find(self.backend, address).await? {
                Node::Blob { size } => {
                    self.values.insert(address, (address, size));
                }
                Node::Recipe { value: Value::Stored(memo), .. } => {
                    self.values.insert(address, (memo.output, memo.size));
                }
                Node::Recipe { recipe, value } => {
                    let inputs = recipe.inputs.clone();
                    waiting.push(Visit::Leave(address, recipe, value));
                    waiting.extend(inputs.into_iter().rev().map(|input| Visit::Enter(input, Some(address))));
                }
                Node::Missing => {
                    let reader = reader.map(|reader| format!(", which {reader} reads,")).unwrap_or_default();
                    let fault = format!("{address}{reader} is neither a blob nor a recipe here");
                    self.work.faults.push(fault);
                }
            }
        }
        Ok(())
    }

    /// Decides whether a recipe must run, after the same was decided for its inputs.
    async fn leave(&mut self, address: Address, recipe: Recipe, value: &Value) -> Result<(), Failure> {
        let outputs = recipe.inputs.iter().map(|input| self.values.get(input).map(|(output, _)| *output));
        let outputs: Option<Vec<Address>> = outputs.collect();
        self.work.may_be_cut_off |= outputs.is_none();
        if let Some(outputs) = outputs
            && let Some(stored) = self.earlier_call(&recipe, outputs, value).await?
        {
            self.values.insert(address, stored);
            self.work.cut_off.push(address);
            return Ok(());
        }
        recipe.inputs.iter().for_each(|input| self.read(*input));
        self.work.computed.push(Step { address, function: recipe.function, why: why_absent(value) });
        Ok(())
    }

    /// The stored value of an earlier call of the same function on these inputs, as the executor would find it.
    async fn earlier_call(
        &self,
        recipe: &Recipe,
        outputs: Vec<Address>,
        value: &Value,
    ) -> Result<Option<(Address, u64)>, Failure> {
        let Value::Unknown(removal) = value else { return Ok(None) };
        if outputs == recipe.inputs {
            return Ok(None);
        }
        let call = Recipe { inputs: outputs, ..recipe.clone() };
        let call = call.address().map_err(|malformed| Failure::of(malformed.to_string()))?;
        let found = self.backend.resolve(call).await?;
        let is_invalid =
            |at| removal.is_some_and(|removal| removal.why == RemovalReason::Invalidated && removal.at >= at);
        let memo = found.memo.filter(|memo| !is_invalid(memo.at));
        Ok(memo.and_then(|memo| found.size.map(|size| (memo.output, size))))
    }

    /// Counts a stored value that the get would read.
    fn read(&mut self, address: Address) {
        if let Some((_, size)) = self.values.get(&address)
            && self.read.insert(address)
        {
            self.work.stored += 1;
            self.work.stored_bytes += size;
        }
    }
}
