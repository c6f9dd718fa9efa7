//! A dataset's configuration: parsed, checked, typed. Past this module there is no YAML and no unknown name.
//!
//! ```
//! use anabranch_dataset::config::{Config, Setting};
//! let text = "
//! columns:
//!   - {name: topic, column_type: sampler, sampler_type: category, params: {values: [tea, coffee]}}
//!   - {name: poem, column_type: llm-text, model_alias: writer, prompt: 'A poem about {{ topic }}.'}
//! ";
//! let (config, warnings) = Config::parse("poems.yaml", text, &mut Setting::default())?;
//! assert_eq!(config.dependencies().columns[1].columns, [0]);
//! assert_eq!(config.aliases_without_model(), ["writer"]);
//! assert!(warnings.is_empty());
//! # Ok::<(), anabranch_dataset::config::Problems>(())
//! ```

mod types;
mod run_options;
mod graph;
mod draft;
mod root;
mod column;
mod value;
mod template;
mod sampler;
mod llm;
mod derived;
mod custom;
mod seed;
mod models;
mod prices;
mod processors;
mod pattern;
mod structure;
mod stages;
mod steps;
mod resolve;
mod finish;
mod digest;
mod identity;

use std::io::Read;
use std::path::Path;

use anabranch_document::{Format, Limits, Notes};
use anabranch_text::size;

pub use anabranch_text::{Problem, Problems};
pub use graph::{ColumnInputs, Dependencies, Producer};
pub(crate) use pattern::matches;
pub use prices::{Price, Prices};
pub use run_options::RunOptions;
pub use types::*;

/// Other files and lookups that a configuration is read with.
#[derive(Default)]
pub struct Setting<'a> {
    /// The name and text of a file with `model_configs`, `providers` or both. The configuration's own come first.
    pub models: Option<(&'a str, &'a str)>,
    /// The name and text of a file with run options. The configuration's own come first.
    pub run: Option<(&'a str, &'a str)>,
    /// Opens the seed and returns the names of its columns, or an error message. Without it, unknown names are taken
    /// for columns of the seed.
    pub seed_columns: Option<SeedColumns<'a>>,
    /// Environment variables, for keys of providers.
    pub environment: Option<&'a Environment<'a>>,
}

/// The value of an environment variable.
pub type Environment<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Opens a seed and returns the names of its columns.
pub type SeedColumns<'a> = &'a mut dyn FnMut(&SeedConfig) -> Result<Vec<String>, String>;

/// The most bytes of a configuration; the most values in it; the most columns.
const FILE_MOST: usize = 8 << 20;
const VALUES_MOST: usize = 1_000_000;
const COLUMNS_MOST: usize = 1_000;

impl Config {
    /// Reads and checks a configuration, which is JSON if the file's name says so, else YAML. All problems are reported
    /// at once. Warnings are returned with the configuration.
    pub fn parse(
        file: &str,
        text: &str,
        setting: &mut Setting<'_>,
    ) -> Result<(Config, Vec<Problem>), Problems> {
        finish::config(file, text, setting)
    }

    /// Reads and checks the configuration in a file: `.yaml`, `.yml` or `.json`.
    pub fn load(path: &Path, setting: &mut Setting<'_>) -> Result<(Config, Vec<Problem>), Problems> {
        let text = read_file(path)?;
        Config::parse(&path.display().to_string(), &text, setting)
    }

    /// Aliases that columns use and that have no model, each once.
    pub fn aliases_without_model(&self) -> Vec<&str> {
        let mut aliases = Vec::new();
        for alias in self.columns.iter().flat_map(Column::model_aliases) {
            if !aliases.contains(&alias) && !self.models.iter().any(|model| model.alias == alias) {
                aliases.push(alias);
            }
        }
        aliases
    }
}

/// The text of a configuration file, a models file or a file of run options, within bounds.
pub fn read_file(path: &Path) -> Result<String, Problems> {
    let name = path.display().to_string();
    let whole = |what: String, help: &str| Problems::from(Problem::new(&name, what).help(help));
    if !matches!(Format::of(path), Some(Format::Yaml | Format::Json)) {
        let help = "call it .yaml, .yml or .json";
        return Err(whole("not a dataset configuration by its name".to_owned(), help));
    }
    let unreadable =
        |error: std::io::Error| whole(format!("cannot be read: {error}"), "name a file that is there");
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(unreadable)?;
    file.take(FILE_MOST as u64 + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() > FILE_MOST {
        let what = format!("the file has more than {}", size::format(FILE_MOST as u64));
        return Err(whole(what, "keep large lists in a seed file"));
    }
    String::from_utf8(bytes).map_err(|error| {
        whole(format!("not UTF-8 at byte {}", error.utf8_error().valid_up_to()), "save it as UTF-8")
    })
}

/// The root of a file.
fn parse_root(notes: &mut Notes<'_>) -> Option<anabranch_document::Node> {
    let format = Format::of(Path::new(notes.file())).filter(|format| *format == Format::Json);
    let limits = Limits { bytes: FILE_MOST, nodes: VALUES_MOST };
    anabranch_document::parse(format.unwrap_or(Format::Yaml), limits, notes)
}
