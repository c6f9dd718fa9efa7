//! Ranking plans: rows from sources, expressions, filters and sorts, answered in time.
//!
//! A [`Project`] names the registry, the plans and the stores. [`Setup`] makes the parts of an [`Engine`] from it, the
//! engine compiles plans, and a [`Plan`] answers any number of requests at once:
//!
//! ```
//! use anabranch_plan::{Engine, Project, Request, Setup};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/shop");
//! // Load the project: the nearest anabranch.toml, in this folder or above.
//! let project = Project::find(folder.as_ref())?;
//! let (config, warnings) = Setup { project, ..Setup::default() }.config()?;
//! assert!(warnings.is_empty());
//! let engine = Engine::load(config)?;
//!
//! // Run a plan: `plans/cheapest.plan.json`. Plans in TypeScript are compiled to JSON by `anabranch-plan-ts`.
//! let plan = engine.plan("cheapest")?;
//! let request = Request::parse(r#"{"user_id": 1, "param_overrides": {"budget": 30}}"#, engine.registries())?;
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! # runtime.block_on(async {
//! let answer = plan.run(request).await?;
//!
//! // Read the rows, best first, and the ledger of the parts that are degraded.
//! let price = engine.registries().keys.named("price").expect("the registry has it").key;
//! let rows: Vec<_> = answer.candidates().map(|row| (row.id, row.get(price))).collect();
//! assert_eq!(format!("{rows:?}"), "[(103, Some(Float(8.5))), (101, Some(Float(25.0)))]");
//! assert!(answer.ledger.is_empty());
//! # Ok::<(), anabranch_plan::Error>(())
//! # })?;
//! # Ok(())
//! # }
//! ```
//!
//! Your own ops are added to the built-in ones:
//!
//! ```
//! use anabranch_plan::op::*;
//! use anabranch_plan::{Config, Engine, Registries, Request};
//!
//! /// `mine::reverse`: the rows in reverse order.
//! struct Reverse;
//!
//! static SPEC: Spec = Spec {
//!     name: "mine::reverse",
//!     doc: "The rows in reverse order.",
//!     inputs: 1,
//!     params: &[],
//!     writes: Effect::Keys(&[]),
//!     contract: Contract::Permutation,
//!     mark: Mark::Auto,
//!     distinct: false,
//! };
//!
//! impl Op for Reverse {
//!     fn spec(&self) -> &Spec {
//!         &SPEC
//!     }
//!
//!     fn plan(&self, node: &mut Node<'_>) -> Option<NodePlan> {
//!         let schema = node.input(0).clone();
//!         // About two nanoseconds per row; offloaded to a thread pool when that adds up.
//!         Some(NodePlan::new(schema, [Takes::passing([])], |_, _| Form::compute(2.0, |inputs, _, _| {
//!             let rows = inputs[0].as_ref().expect("it needs its input");
//!             Ok(rows.with_active(rows.iter().rev().map(|row| row as u32).collect::<Vec<_>>()))
//!         })))
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let keys = "[[key]]\nkey_id = 1\nname = 'id'\ntype = 'int'\nnullable = false\nallow_write = false";
//! let (registries, _) = Registries::parse([("keys.toml", keys)], None)?;
//! let mut config = Config::new(registries, vec![]);
//! config.ops.add(Reverse);
//! let engine = Engine::load(config)?;
//! let text = r#"{"schema_version": 1, "plan_name": "backwards", "outputs": ["b"], "nodes": [
//!     {"node_id": "a", "op": "test::fixed_source", "inputs": [], "params": {"row_count": 3}},
//!     {"node_id": "b", "op": "mine::reverse", "inputs": ["a"]}]}"#;
//! let plan = engine.compile(text, ".".as_ref())?;
//! let request = Request::new(1, engine.registries());
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
//! let answer = runtime.block_on(plan.run(request))?;
//! assert_eq!(answer.candidates().map(|row| row.id).collect::<Vec<_>>(), [3, 2, 1]);
//! # Ok(())
//! # }
//! ```
//!
//! ARCHITECTURE.md walks through loading and one request, file by file. To inspect requests from outside ([`inspect`]),
//! use the crate `anabranch-plan-inspect`.

mod json;
mod toml_text;
mod fields;
mod places;
mod value;
pub mod bounds;
mod spread;
mod times;
pub mod schema;
pub mod registry;
pub mod document;
pub mod expr;
pub mod source;
pub mod call;
mod error;
pub mod op;
mod ops;
pub mod effects;
mod request;
mod ledger;
mod answer;
mod capture_settings;
mod serve_settings;
pub mod project;
mod compiled;
mod planner;
mod stand_in;
mod watch;
mod run;
pub mod metrics;
mod admission;
mod engine;
mod setup;
pub mod inspect;
#[cfg(test)]
mod reference;

pub use anabranch_rows::Kind;
pub use anabranch_text::{Excerpt, Problem, Problems};
pub use answer::{Answer, Candidate, RequestId, Stats};
pub use engine::{Config, Engine, Plan, RunOptions};
pub use error::{Error, OpError};
pub use ledger::{LedgerEntry, Reason};
pub use places::with_lines;
pub use project::Project;
pub use registry::Registries;
pub use request::{Request, RequestError, UserId};
pub use setup::{RowsFrom, Setup};
pub use value::{List, Scalar, Values};
