//! `anabranch recipe check`.

use std::path::PathBuf;

use anabranch_recipe::{FilesOutside, Functions, RecipeFile, UnknownFunction};
use anabranch_text::count;
use clap::Args;

use crate::failure::Failure;
use crate::out;

pub(super) const HELP: &str = "\
stdout: a line per file that is fine. stderr: all errors of the others, with their lines. No store is \
opened, so names of the store that a file reads (`ref:NAME`) are not looked up.

  anabranch recipe check graph.toml

Exit codes: 0 all files are fine; 1 a file has errors; 2 wrong usage.";

/// Checks recipe files.
#[derive(Args)]
pub(crate) struct Check {
    /// Recipe files, TOML or YAML.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Lets a recipe file name files outside of its folder.
    #[arg(long)]
    allow_files_outside: bool,
    /// Accepts functions that are not known.
    #[arg(long)]
    allow_unknown: bool,
}

impl Check {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let unknown = if self.allow_unknown { UnknownFunction::Accept } else { UnknownFunction::Refuse };
        let outside = if self.allow_files_outside { FilesOutside::Accept } else { FilesOutside::Refuse };
        let functions = Functions::builtin();
        let mut result = Ok(());
        for path in &self.files {
            match RecipeFile::read(path, &functions, unknown, outside) {
                Ok(file) => out::data(&format!(
                    "{}: fine, {} and {}\n",
                    path.display(),
                    count(file.blobs.len(), "blob"),
                    count(file.recipes.len(), "recipe"),
                ))?,
                Err(problems) => {
                    out::problems(&problems);
                    result = Err(Failure::Reported);
                }
            }
        }
        result
    }
}
