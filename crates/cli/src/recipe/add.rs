//! `anabranch recipe add`.

use std::path::{Path, PathBuf};

use anabranch_content::{Address, Value};
use anabranch_recipe::{
    Draft, DraftInput, FilesOutside, Functions, JsonBudget, Params, RecipeFile, UnknownFunction, check_call,
    value_from_json,
};
use clap::Args;
use serde_json::json;

use super::at::{At, MissingStore};
use super::backend::Backend;
use super::folder::{self, WalkedFolder};
use super::input::Input;
use super::{functions, graph, show};
use crate::failure::Failure;
use crate::out;

pub(super) const HELP: &str = "\
stdout: the recipe's address; of a file, a table of names and addresses. Nothing is computed.

  anabranch recipe add concat/1.0.0 -i title -i story --ref page
  anabranch recipe add hmac_sha256/1.0.0 -i page -p key=c0ffee   # = takes text
  anabranch recipe add take/1.0.0 -i page -p bytes:=10           # := takes JSON
  anabranch recipe add --file graph.toml                         # blobs and recipes by name

Exit codes: 0 stored durably; 1 refused or failed; 2 wrong usage; 3 stored, but data that had been \
acknowledged before was lost (the log says what).";

/// Stores recipes.
#[derive(Args)]
pub(crate) struct Add {
    /// The function: NAME/VERSION.
    #[arg(value_name = "FUNCTION", required_unless_present = "file")]
    function: Option<String>,
    /// An input: an address, the first 6 or more digits of one, a name, FOLDER:PATH of a file in a folder, or a file or
    /// folder on disk, which is put; repeat it for each input, in order.
    #[arg(short, long = "input", value_name = "TARGET")]
    inputs: Vec<String>,
    /// A parameter: NAME=TEXT, or NAME:=JSON.
    #[arg(short, long = "param", value_name = "NAME=TEXT", value_parser = param)]
    params: Vec<(String, Value)>,
    /// A recipe file, TOML or YAML: all of its blobs and recipes are stored at once.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["function", "inputs", "params", "reference"])]
    file: Option<PathBuf>,
    /// A named reference for the recipe.
    #[arg(long = "ref", value_name = "NAME")]
    reference: Option<String>,
    /// Lets a recipe file name files outside of its folder.
    #[arg(long, requires = "file")]
    allow_files_outside: bool,
    /// Stores recipes whose function is not known, too.
    #[arg(long)]
    allow_unknown: bool,
    #[command(flatten)]
    at: At,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

impl Add {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let unknown = if self.allow_unknown { UnknownFunction::Accept } else { UnknownFunction::Refuse };
        let Some(function) = &self.function else {
            let file = self.file.as_deref().unwrap_or_else(|| unreachable!("clap wants one of the two"));
            let outside = if self.allow_files_outside { FilesOutside::Accept } else { FilesOutside::Refuse };
            // A server has its own functions, and refuses unknown ones itself.
            let known = if self.at.is_remote() { UnknownFunction::Accept } else { unknown };
            let file = RecipeFile::read(file, &Functions::builtin(), known, outside)?;
            return self.at.run(MissingStore::Make, async |backend| {
                let put = graph::put(backend, file, unknown, &self.at.folder()?).await?;
                if self.json {
                    return show::json(&graph::as_json(&put));
                }
                graph::warn(&put);
                out::data(&graph::text(&put))
            });
        };
        let function = functions::with_version(function)?;
        let mut params = Params::new();
        for (name, value) in &self.params {
            if params.insert(name.clone(), value.clone()).is_some() {
                return Err(Failure::Wrong(format!("parameter `{name}` is given twice")));
            }
        }
        if let Some(known) = Functions::builtin().get(&function) {
            check_call(known.as_ref(), self.inputs.len(), &params)
                .map_err(|fault| Failure::of(format!("`{function}`: {fault}")))?;
        }
        self.at.run(MissingStore::Make, async |backend| {
            let mut inputs = Vec::with_capacity(self.inputs.len());
            for input in &self.inputs {
                inputs.push(DraftInput::Address(find_or_put(backend, input, &self.at.folder()?).await?));
            }
            let draft = Draft { function, inputs, params };
            let added = backend.add_all(&[draft], unknown).await?;
            let [added] = &added[..] else { return Err(Failure::of("the answer is not about one recipe")) };
            if let Some(name) = &self.reference {
                backend.set_ref(name, Some(added.address)).await?;
            }
            if self.json {
                let dangling = show::addresses(&added.dangling);
                let address = added.address.to_string();
                return show::json(&json!({"address": address, "new": added.new, "dangling": dangling}));
            }
            show::dangling(None, &added.dangling);
            out::data(&format!("{}\n", added.address))
        })
    }
}

/// The address of an input. A file or folder is stored, unless the input is also a name or an address.
async fn find_or_put(backend: &Backend, input: &str, store: &Path) -> Result<Address, Failure> {
    if let Some(address) = backend.look_up(input).await? {
        return Ok(address);
    }
    let path = Path::new(input);
    if path.is_dir() {
        let put = folder::put(backend, WalkedFolder::find(path, store)?).await?;
        out::note(&format!("put the folder {input} as {}", put.address));
        return Ok(put.address);
    }
    if !path.is_file() {
        let (what, help) = backend.unknown(input).await?;
        return Err(Failure::of(format!("{what}; there is no such file either; {help}")));
    }
    let put = backend.put(&Input::open(path, path)?).await?;
    out::note(&format!("put the file {input} as {}", put.address));
    Ok(put.address)
}

/// Parses `name=text` or `name:=json`.
fn param(text: &str) -> Result<(String, Value), String> {
    let Some((name, value)) = text.split_once('=') else {
        return Err("a parameter looks like NAME=TEXT or NAME:=JSON".to_owned());
    };
    match name.strip_suffix(':') {
        None => Ok((name.to_owned(), Value::Text(value.to_owned()))),
        Some(name) => {
            // The text is the user's own, and no longer than a command line.
            let value = value_from_json(value, &JsonBudget::new(usize::MAX));
            Ok((name.to_owned(), value.map_err(|error| format!("not a parameter in JSON: {error}"))?))
        }
    }
}
