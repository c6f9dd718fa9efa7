//! Recipe files: blobs and recipes that refer to each other by name, in TOML or YAML, added together.
//!
//! ```
//! # use anabranch_recipe::{FileFormat, Functions, RecipeFile, UnknownFunction};
//! let text = r#"
//!     [blob.greeting]
//!     text = "hello, "
//!
//!     [recipe.twice]
//!     function = "concat/1.0.0"
//!     inputs = ["greeting", "greeting"]
//!     ref = true
//! "#;
//! let functions = Functions::builtin();
//! let file = RecipeFile::parse("twice.toml", text, FileFormat::Toml, &functions, UnknownFunction::Refuse)?;
//! assert_eq!(file.recipes[0].name, "twice");
//! # Ok::<(), anabranch_recipe::Problems>(())
//! ```

mod named;
mod read;
mod order;
mod check;
mod source;

use std::collections::BTreeMap;
use std::path::Path;

use anabranch_document::{Format, Limits, Notes, Table, Tree};
use anabranch_text::{Problem, Problems, size};
use bytes::Bytes;

use crate::executor::{Draft, DraftInput, UnknownFunction};
use crate::recipe::{FunctionId, Params};
use crate::registry::Functions;
use anabranch_content::Address;

pub use named::NamedPath;

use source::Source;

/// The format of a recipe file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileFormat {
    /// TOML.
    Toml,
    /// YAML.
    Yaml,
}

impl FileFormat {
    /// The format for a file name extension: `.toml`, `.yaml` or `.yml`.
    pub fn of(path: &Path) -> Option<FileFormat> {
        match path.extension()?.to_str()? {
            "toml" => Some(FileFormat::Toml),
            "yaml" | "yml" => Some(FileFormat::Yaml),
            _ => None,
        }
    }
}

/// A checked recipe file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecipeFile {
    /// The blobs, in the order of declaration.
    pub blobs: Vec<FileBlob>,
    /// The recipes, each after those that it reads.
    pub recipes: Vec<FileRecipe>,
    /// The names and paths that only a store can find.
    source: Source,
}

/// A blob of a recipe file.
#[derive(Clone, Debug, PartialEq)]
pub struct FileBlob {
    /// Its name in the file.
    pub name: String,
    /// Its bytes.
    pub bytes: FileBytes,
    /// The named reference to set to its address.
    pub reference: Option<String>,
}

/// The location of a blob's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileBytes {
    /// In the recipe file.
    Here(Bytes),
    /// In a separate file.
    At(NamedPath),
    /// In the files of a folder. The entry becomes that folder.
    Folder(NamedPath),
}

/// Whether a recipe file may name files outside its folder. An untrusted recipe file could name secret files, which
/// would then be stored on a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FilesOutside {
    /// It is an error.
    Refuse,
    /// They are read.
    Accept,
}

/// A recipe of a recipe file.
#[derive(Clone, Debug, PartialEq)]
pub struct FileRecipe {
    /// Its name in the file.
    pub name: String,
    /// Its function.
    pub function: FunctionId,
    /// Its inputs, in order.
    pub inputs: Vec<FileInput>,
    /// Its parameters.
    pub params: Params,
    /// The named reference to set to its address.
    pub reference: Option<String>,
}

/// An input of a recipe in a recipe file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileInput {
    /// The blob at this index in the file.
    Blob(usize),
    /// A file or a folder inside the blob at this index, which is a folder.
    Inside(usize, String),
    /// The recipe at this index in the file.
    Recipe(usize),
    /// The address of a named reference at the time when the file is added.
    Reference(String),
    /// A blob or a recipe by address.
    Address(Address),
}

/// The maximum size of a recipe file in bytes. Larger data belongs in separate files.
const FILE_MOST: u64 = 64 << 20;

impl RecipeFile {
    /// Reads and checks a recipe file. The files that it names are relative to its folder.
    pub fn read(
        path: &Path,
        functions: &Functions,
        unknown: UnknownFunction,
        outside: FilesOutside,
    ) -> Result<RecipeFile, Problems> {
        let name = path.display().to_string();
        let whole = |what: String, help: &str| Problems::from(Problem::new(&name, what).help(help));
        let Some(format) = FileFormat::of(path) else {
            return Err(whole(
                "the name of a recipe file ends in .toml, .yaml or .yml".to_owned(),
                "rename the file",
            ));
        };
        if std::fs::metadata(path).is_ok_and(|found| found.len() >= FILE_MOST) {
            let what = format!("a recipe file is smaller than {}", size::format(FILE_MOST));
            return Err(whole(what, "keep large blobs in files, and name them with `file`"));
        }
        let text = std::fs::read_to_string(path).map_err(|error| {
            let is_text = error.kind() != std::io::ErrorKind::InvalidData;
            let help = if is_text { "check the path" } else { "save the file as UTF-8" };
            whole(format!("cannot be read: {error}"), help)
        })?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse_in(&read::Folder { path: folder, outside }, &name, &text, format, &(functions, unknown))
    }

    /// Checks the text of a recipe file. The name is used in messages. The files that it names are relative to the
    /// current folder, and must be in it or below.
    pub fn parse(
        name: &str,
        text: &str,
        format: FileFormat,
        functions: &Functions,
        unknown: UnknownFunction,
    ) -> Result<RecipeFile, Problems> {
        let folder = read::Folder { path: Path::new(""), outside: FilesOutside::Refuse };
        Self::parse_in(&folder, name, text, format, &(functions, unknown))
    }

    fn parse_in(
        folder: &read::Folder<'_>,
        name: &str,
        text: &str,
        format: FileFormat,
        known: &(&Functions, UnknownFunction),
    ) -> Result<RecipeFile, Problems> {
        let mut notes = Notes::new(name, text);
        let entries = read::entries(table(format, &mut notes), folder, &mut notes);
        check::calls(&entries, known.0, known.1, &mut notes);
        let file = order::linked(&entries, &mut notes);
        notes.none_or(file)
    }

    /// The named references that the recipes of the file read, each once.
    pub fn references(&self) -> impl Iterator<Item = &str> {
        self.source.references.keys().map(String::as_str)
    }

    /// The paths inside folders that the recipes of the file read, each once, with the index of its blob.
    pub fn insides(&self) -> impl Iterator<Item = (usize, &str)> {
        self.source.insides.keys().map(|(blob, path)| (*blob, path.as_str()))
    }

    /// A problem with an input that reads this reference.
    pub fn reference_problem(&self, name: &str, what: impl Into<String>) -> Problem {
        self.source.problem(self.source.references.get(name), what)
    }

    /// A problem with an input that reads this path inside the blob at this index.
    pub fn inside_problem(&self, blob: usize, path: &str, what: impl Into<String>) -> Problem {
        self.source.problem(self.source.insides.get(&(blob, path.to_owned())), what)
    }

    /// The recipes to add, given the addresses of the blobs, of the references, and of the paths inside folders.
    ///
    /// # Panics
    /// If a blob, a reference or a path is missing.
    pub fn drafts(
        &self,
        blobs: &[Address],
        references: &BTreeMap<String, Address>,
        insides: &BTreeMap<(usize, String), Address>,
    ) -> Vec<Draft> {
        let input = |input: &FileInput| match input {
            FileInput::Blob(place) => DraftInput::Address(blobs[*place]),
            FileInput::Inside(place, path) => DraftInput::Address(insides[&(*place, path.clone())]),
            FileInput::Recipe(place) => DraftInput::Earlier(*place),
            FileInput::Reference(name) => DraftInput::Address(references[name]),
            FileInput::Address(address) => DraftInput::Address(*address),
        };
        let draft = |recipe: &FileRecipe| Draft {
            function: recipe.function.clone(),
            inputs: recipe.inputs.iter().map(input).collect(),
            params: recipe.params.clone(),
        };
        self.recipes.iter().map(draft).collect()
    }
}

/// Parses the file as a table.
fn table(format: FileFormat, notes: &mut Notes<'_>) -> Table {
    let format = match format {
        FileFormat::Toml => Format::Toml,
        FileFormat::Yaml => Format::Yaml,
    };
    let limits = Limits { bytes: FILE_MOST as usize, ..Limits::default() };
    let Some(root) = anabranch_document::parse(format, limits, notes) else { return Table::new() };
    match root.value {
        Tree::Table(mut table) => {
            table.sort_by_key(|(key, _)| key.at.start);
            table
        }
        Tree::Null => Table::new(),
        other => {
            let what = format!("a recipe file is a table, this is {}", other.kind());
            notes.note(&root.at, what, "write `blob:` and `recipe:` with entries below them");
            Table::new()
        }
    }
}
