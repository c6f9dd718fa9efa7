//! `anabranch recipe functions`.

use anabranch_recipe::Signature;
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
    /// A function, with or without its version; without this, all of them.
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
        // No store is needed to say what this program knows; a server may know others.
        let all = match self.at.is_remote() {
            true => self.at.run(super::at::Missing::Refuse, async |backend| backend.functions().await)?,
            false => {
                let builtin = anabranch_recipe::Functions::builtin();
                builtin.list().map(|function| function.signature().clone()).collect()
            }
        };
        let Some(name) = &self.name else {
            return match self.json {
                true => show::json(&all.iter().map(as_json).collect()),
                false => list(&all),
            };
        };
        let is_meant =
            |signature: &&Signature| signature.id.name == *name || signature.id.to_string() == *name;
        let meant: Vec<&Signature> = all.iter().filter(is_meant).collect();
        if meant.is_empty() {
            let near = all.iter().map(|signature| signature.id.name.as_str());
            let near = closest(name, near).map(|near| format!("; did you mean `{near}`?"));
            let near = near.unwrap_or_else(|| "; `anabranch recipe functions` lists them".to_owned());
            return Err(Failure::of(format!("no function is called `{name}`{near}")));
        }
        match self.json {
            true => show::json(&meant.into_iter().map(as_json).collect()),
            false => out::data(&meant.into_iter().map(text).collect::<Vec<_>>().join("\n")),
        }
    }
}

fn list(all: &[Signature]) -> Result<(), Failure> {
    let mut table = Table::new(["function", "inputs", "what it gives"]);
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
        let needed = if param.needed { "needed; " } else { "" };
        text.push_str(&format!("    {:<width$}  {needed}{}\n", param.name, param.about));
    }
    if signature.other_params {
        text.push_str("    and any others\n");
    }
    text
}

fn as_json(signature: &Signature) -> Json {
    let params = signature.params.iter();
    let params: Vec<Json> = params
        .map(|param| json!({"name": param.name, "about": param.about, "needed": param.needed}))
        .collect();
    json!({
        "function": signature.id.to_string(), "about": signature.about,
        "inputs": {"least": signature.inputs.least, "most": signature.inputs.most},
        "params": params, "other_params": signature.other_params,
    })
}
