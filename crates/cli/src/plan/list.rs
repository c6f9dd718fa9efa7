//! `anabranch plan list`.

use clap::Args;
use serde_json::json;

use super::from::{self, From, Rows};
use crate::failure::Failure;
use crate::out;
use crate::table::Table;

/// Lists plans.
#[derive(Args)]
pub(crate) struct List {
    #[command(flatten)]
    from: From,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

impl List {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let engine = self.from.engine(None, Rows::Unneeded)?;
        let mut table = Table::new(["plan", "status", "nodes", "trips"]);
        let mut list = Vec::new();
        let names = from::names(&engine)?;
        if let (true, Some(folder)) = (names.is_empty(), engine.folder()) {
            out::note(&format!("no plan in {} (a plan is a file NAME.plan.json)", folder.display()));
        }
        for name in names {
            match engine.plan(&name) {
                Ok(plan) => {
                    let explained = plan.explain();
                    let status = out::status(0, plan.warnings().len());
                    let (nodes, trips) = (explained.nodes.len(), explained.trips);
                    list.push(json!({"plan": name, "status": status, "nodes": nodes, "trips": trips}));
                    table.row([name, status, nodes.to_string(), trips.to_string()]);
                }
                Err(error) => {
                    let status = match &error {
                        anabranch_plan::Error::Plan(problems) => out::status(problems.errors.len(), 0),
                        error => error.to_string(),
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
