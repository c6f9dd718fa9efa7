//! `anabranch recipe functions`.

use anabranch_recipe::{FunctionId, MalformedRecipe, Signature, ValueAsJson};
use anabranch_text::closest;
use clap::Args;
use serde_json::{Value as Json, json};

use super::at::At;
use super::show;
use crate::failure::Failure;
use crate::out;
use crate::table::Table;

/// Lists functions.
#[derive(Args)]
pub(crate) struct Functions {
    /// A function, with or without its version, or a part of its name; without this, all of them.
    #[arg(value_name = "NAME")]
    name: Option<String>,
    #[command(flatten)]
    at: At,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

impl Functions {
    pub(crate) fn run(self) -> Result<(), Failure> {
        // The functions of this program need no store. A server may have others.
        let all = match self.at.is_remote() {
            true => {
                self.at.run(super::at::MissingStore::Refuse, async |backend| backend.functions().await)?
            }
            false => {
                let builtin = anabranch_recipe::Functions::builtin();
                builtin.list().map(|function| function.signature().clone()).collect()
            }
        };
        let found = |is_meant: &dyn Fn(&Signature) -> bool| -> Vec<&Signature> {
            all.iter().filter(|signature| is_meant(signature)).collect()
        };
        let Some(name) = &self.name else { return self.list(&found(&|_| true)) };
        let meant = found(&|signature| signature.id.name == *name || signature.id.to_string() == *name);
        if meant.is_empty() {
            let alike = found(&|signature| signature.id.to_string().contains(name.as_str()));
            return if alike.is_empty() { Err(no_function(name, &all)) } else { self.list(&alike) };
        }
        match self.json {
            true => show::json(&meant.into_iter().map(as_json).collect()),
            false => out::data(&meant.into_iter().map(text).collect::<Vec<_>>().join("\n")),
        }
    }

    fn list(&self, functions: &[&Signature]) -> Result<(), Failure> {
        match self.json {
            true => show::json(&functions.iter().copied().map(as_json).collect()),
            false => list(functions),
        }
    }
}

fn no_function(name: &str, all: &[Signature]) -> Failure {
    let near = closest(name, all.iter().map(|signature| signature.id.name.as_str()));
    let help = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`anabranch recipe functions` lists them".to_owned(),
    };
    Failure::of(format!("no function is called `{name}`; {help}"))
}

/// Parses a function with its version.
pub(super) fn with_version(text: &str) -> Result<FunctionId, Failure> {
    let malformed = match text.parse() {
        Ok(function) => return Ok(function),
        Err(malformed) => malformed,
    };
    let builtin = anabranch_recipe::Functions::builtin();
    let all: Vec<Signature> = builtin.list().map(|function| function.signature().clone()).collect();
    let versions = all.iter().map(|signature| &signature.id).filter(|id| id.name == text);
    let versions: Vec<String> = versions.map(|id| format!("`{id}`")).collect();
    match (&versions[..], text.contains('/')) {
        ([], true) => Err(Failure::Wrong(MalformedRecipe::to_string(&malformed))),
        ([], false) => Err(no_function(text, &all)),
        (versions, _) => {
            Err(Failure::Wrong(format!("`{text}` lacks its version: write {}", versions.join(" or "))))
        }
    }
}

fn list(all: &[&Signature]) -> Result<(), Failure> {
    let mut table = Table::new(["function", "inputs", "output"]).whole_in_pipes();
    for signature in all {
        let inputs = signature.inputs.to_string().replace("any number of", "any");
        table.row([signature.id.to_string(), inputs, signature.about.to_string()]);
    }
    show::table(&table, all.len(), "no functions are known")
}

fn text(signature: &Signature) -> String {
    let inputs = signature.inputs.to_string();
    let plural = if inputs == "1" { "" } else { "s" };
    let mut text = format!("{} ({inputs} input{plural})\n  {}\n", signature.id, signature.about);
    let width = signature.params.iter().map(|param| param.name.len()).max().unwrap_or(0);
    for param in &signature.params {
        let needed = if param.is_needed() { "needed; " } else { "" };
        text.push_str(&format!("    {:<width$}  {needed}{param}: {}\n", param.name, param.about));
    }
    if signature.other_params {
        text.push_str("    and any others\n");
    }
    text.push_str(&format!(
        "  memory: {}; cost: {}\n",
        signature.memory_in_words(),
        signature.cost_in_words()
    ));
    if !signature.unlike_deriva.is_empty() {
        text.push_str(&format!("  unlike Deriva: {}\n", signature.unlike_deriva));
    }
    text
}

fn as_json(signature: &Signature) -> Json {
    let params = signature.params.iter();
    let params: Vec<Json> = params
        .map(|param| {
            let default = param.default.as_ref().map(ValueAsJson);
            json!({
                "name": param.name, "about": param.about, "needed": param.is_needed(),
                "kind": param.kind.to_string(), "default": default,
            })
        })
        .collect();
    json!({
        "function": signature.id.to_string(), "about": signature.about,
        "inputs": {"least": signature.inputs.least, "most": signature.inputs.most},
        "params": params, "other_params": signature.other_params,
        "memory": signature.memory_in_words(), "cost": signature.cost_in_words(),
        "unlike_deriva": signature.unlike_deriva,
    })
}
