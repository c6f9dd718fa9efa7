//! `anabranch dataset new`.

use std::path::Path;

use clap::Args;

use crate::failure::Failure;
use crate::fresh::{is_there, missing, write};
use crate::out;

/// The end of the help text.
pub(super) const HELP: &str = "\
It writes NAME.yaml, and models.yaml if there is none. No file is ever replaced.

  anabranch dataset new tickets
  anabranch dataset preview tickets.yaml --demo

Exit codes: 0 fine; 1 refused or failed (stderr says why); 2 wrong usage.";

const CONFIG: &str = include_str!("scaffold/dataset.yaml");
const MODELS: &str = include_str!("scaffold/models.yaml");
const MODELS_FILE: &str = "models.yaml";

/// Writes the beginning of a dataset.
#[derive(Args)]
pub(crate) struct New {
    /// The dataset's name: its file is NAME.yaml.
    #[arg(value_name = "NAME", default_value = "dataset")]
    name: String,
}

impl New {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
        if self.name.is_empty() || self.name.len() > 100 || !self.name.chars().all(is_word) {
            let what = "a name has 1 to 100 letters, digits, `_` and `-`";
            return Err(Failure::Wrong(format!("`{}` cannot be a dataset's name: {what}", self.name)));
        }
        let file = format!("{}.yaml", self.name);
        if file == MODELS_FILE {
            return Err(Failure::Wrong("`models` is the name of the models file; choose another".to_owned()));
        }
        missing([Path::new(&file)])?;
        write(Path::new(&file), &CONFIG.replace("NAME", &self.name))?;
        match is_there(Path::new(MODELS_FILE))? {
            true => out::note(&format!("{MODELS_FILE} exists already and is not changed")),
            false => write(Path::new(MODELS_FILE), MODELS)?,
        }
        out::note(&format!(
            "next:\n  anabranch dataset preview {file} --demo\n  anabranch dataset build {file} --rows 100 --out {name} \
             --demo\n  anabranch dataset build {file} --rows 100 --out {name} --models {MODELS_FILE}   (with a real model)",
            name = self.name
        ));
        Ok(())
    }
}
