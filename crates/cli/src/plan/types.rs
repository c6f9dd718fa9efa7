//! `anabranch plan types`.

use std::path::{Path, PathBuf};

use anabranch_plan::Config;
use clap::Args;

use super::project_args::{self, ProjectArgs};
use crate::failure::Failure;
use crate::out;

/// The end of the help text.
pub(crate) const HELP: &str = "\
The file declares keys, parameters, endpoints and ops, so that editors complete and check plans.

  anabranch plan types
  anabranch plan types --check

Exit codes: 0 fine; 1 stale or failed (stderr says why); 2 wrong usage.";

/// The name of the declarations file in the plan folder.
pub(super) const FILE: &str = "anabranch.d.ts";

/// Declares what plans may use.
#[derive(Args)]
pub(crate) struct Types {
    #[command(flatten)]
    project: ProjectArgs,
    /// Where to write them, `-` for stdout; anabranch.d.ts in the plan folder if not given.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Writes nothing, and fails if the file is not what would be written.
    #[arg(long)]
    check: bool,
}

impl Types {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let config = self.project.config()?;
        let text = text(&config);
        if self.out.as_deref() == Some(Path::new("-")) {
            return match self.check {
                true => Err(Failure::Wrong("--check compares with a file, and `-` is none".to_owned())),
                false => out::data(&text),
            };
        }
        let in_folder =
            || config.folder.as_deref().map(|folder| folder.join(FILE)).ok_or_else(project_args::no_folder);
        let file = self.out.map_or_else(in_folder, Ok)?;
        let shown = file.display();
        let there = match std::fs::read_to_string(&file) {
            Ok(there) => Some(there),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(error) => return Err(Failure::of(format!("cannot read {shown}: {error}"))),
        };
        match there {
            // The file is not written again, so that programs that watch it are not notified.
            Some(there) if there == text => out::note(&format!("{shown} is as it should be")),
            Some(_) if self.check => {
                return Err(Failure::of(format!("{shown} is stale; `anabranch plan types` writes it anew")));
            }
            None if self.check => {
                return Err(Failure::of(format!("there is no {shown}; `anabranch plan types` writes it")));
            }
            _ => {
                out::file(&file, &text)?;
                out::note(&format!("wrote {shown}"));
            }
        }
        Ok(())
    }
}

/// The declarations for plans of an engine.
pub(super) fn text(config: &Config) -> String {
    anabranch_plan_ts::declarations(&config.ops.and_builtin(), &config.registries)
}
