//! `anabranch recipe check`.

use std::path::{Path, PathBuf};

use anabranch_recipe::{FilesOutside, Functions, Problems, RecipeFile, UnknownFunction};
use anabranch_text::count;
use clap::Args;
use serde_json::{Value as Json, json};

use super::show;
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
    /// Writes the counts and the errors of each file to stdout, as JSON.
    #[arg(long)]
    json: bool,
}

impl Check {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let unknown = if self.allow_unknown { UnknownFunction::Accept } else { UnknownFunction::Refuse };
        let outside = if self.allow_files_outside { FilesOutside::Accept } else { FilesOutside::Refuse };
        let functions = Functions::builtin();
        let read = |path: &PathBuf| RecipeFile::read(path, &functions, unknown, outside);
        let checked: Vec<_> = self.files.iter().map(|path| (path, read(path))).collect();
        if self.json {
            show::json(&checked.iter().map(|(path, result)| as_json(path, result)).collect())?;
        } else {
            checked.iter().try_for_each(|(path, result)| tell(path, result))?;
        }
        if checked.iter().all(|(_, result)| result.is_ok()) { Ok(()) } else { Err(Failure::Reported) }
    }
}

fn tell(path: &Path, result: &Result<RecipeFile, Problems>) -> Result<(), Failure> {
    match result {
        Ok(file) => {
            let (blobs, recipes) = (count(file.blobs.len(), "blob"), count(file.recipes.len(), "recipe"));
            out::data(&out::line(&format!("{}: fine, {blobs} and {recipes}", path.display())))
        }
        Err(problems) => {
            out::problems(problems);
            Ok(())
        }
    }
}

fn as_json(path: &Path, result: &Result<RecipeFile, Problems>) -> Json {
    let mut json = json!({"file": path.display().to_string(), "errors": []});
    match result {
        Ok(file) => {
            json["blobs"] = file.blobs.len().into();
            json["recipes"] = file.recipes.len().into();
        }
        Err(problems) => json["errors"] = problems.errors.iter().map(out::problem_json).collect(),
    }
    json
}
