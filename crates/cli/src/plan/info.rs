//! `anabranch plan info`.

use anabranch_plan::Problems;
use anabranch_plan::document::Document;
use anabranch_plan::effects::plan_info;
use clap::Args;

use super::lookup;
use super::project_args::{ProjectArgs, RowsUse};
use crate::failure::Failure;
use crate::out;

/// Says what is known of a plan without running it.
#[derive(Args)]
pub(crate) struct Info {
    /// A plan file, or the name of a plan in the plan folder.
    #[arg(value_name = "FILE|NAME")]
    plan: String,
    #[command(flatten)]
    project: ProjectArgs,
}

impl Info {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let engine = self.project.engine(None, RowsUse::Unneeded)?;
        let text = lookup::text(&engine, &self.plan)?;
        let mut problems = Problems::default();
        match Document::parse(&text, engine.ops(), engine.registries(), &mut problems) {
            Some(document) => {
                let info = plan_info(&document, engine.ops(), engine.registries());
                out::data(&format!("{info:#}\n"))
            }
            None => Err(problems.into()),
        }
    }
}
