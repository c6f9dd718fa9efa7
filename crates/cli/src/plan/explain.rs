//! `anabranch plan explain`.

use std::path::PathBuf;

use clap::Args;

use super::lookup;
use super::project_args::{ProjectArgs, RowsUse};
use super::threads::Threads;
use crate::failure::Failure;
use crate::out;

/// Shows what a plan will do.
#[derive(Args)]
pub(crate) struct Explain {
    /// A plan file, or the name of a plan in the plan folder.
    #[arg(value_name = "FILE|NAME")]
    plan: String,
    #[command(flatten)]
    project: ProjectArgs,
    #[command(flatten)]
    threads: Threads,
    /// Also writes the graph as a picture.
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

impl Explain {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let engine = self.project.engine(Some(&self.threads), RowsUse::Unneeded)?;
        let plan = lookup::plan(&engine, &self.plan)?;
        out::warnings(plan.warnings());
        let explanation = anabranch_plan_inspect::explain(&plan);
        if let Some(file) = &self.svg {
            out::file(file, &explanation.svg())?;
            out::note(&format!("the picture: {}", file.display()));
        }
        match self.json {
            true => out::data(&format!("{}\n", explanation.json())),
            false => out::data(&explanation.text()),
        }
    }
}
