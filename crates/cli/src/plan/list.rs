//! `anabranch plan list`.

use clap::Args;
use serde_json::json;

use super::lookup;
use super::project_args::{ProjectArgs, RowsUse};
use crate::failure::Failure;
use crate::out;
use crate::table::Table;

/// Lists plans.
#[derive(Args)]
pub(crate) struct List {
    #[command(flatten)]
    project: ProjectArgs,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

impl List {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let engine = self.project.engine(None, RowsUse::Unneeded)?;
        let mut table = Table::new(["plan", "status", "nodes", "trips"]);
        let mut list = Vec::new();
        let names = lookup::names(&engine)?;
        if let (true, Some(folder)) = (names.is_empty(), engine.folder()) {
            out::note(&format!("no plan in {} (`anabranch plan new NAME` makes one)", folder.display()));
        }
        for name in names {
            match lookup::plan(&engine, &name) {
                Ok(plan) => {
                    let explained = anabranch_plan_inspect::explain(&plan);
                    let status = out::status(0, plan.warnings().len());
                    let (nodes, trips) = (explained.nodes.len(), explained.trips);
                    list.push(json!({"plan": name, "status": status, "nodes": nodes, "trips": trips}));
                    table.row([name, status, nodes.to_string(), trips.to_string()]);
                }
                Err(failure) => {
                    let status = match failure {
                        Failure::Refused(problems) => out::status(problems.errors.len(), 0),
                        Failure::Failed(error) => error.to_string(),
                        other => return Err(other),
                    };
                    list.push(json!({"plan": name, "status": status, "nodes": null, "trips": null}));
                    table.row([name, status, String::new(), String::new()]);
                }
            }
        }
        match self.json {
            true => out::data(&format!("{:#}\n", serde_json::Value::from(list))),
            false => out::data(&table.text(0)),
        }
    }
}
