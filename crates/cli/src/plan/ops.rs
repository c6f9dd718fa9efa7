//! `anabranch plan ops`.

use anabranch_plan::op::{ParamKind, Spec};
use clap::Args;
use serde_json::json;

use crate::failure::Failure;
use crate::out;

/// Lists ops.
#[derive(Args)]
pub(crate) struct Ops {
    /// Only ops whose name contains this.
    #[arg(value_name = "PART", default_value = "")]
    part: String,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

impl Ops {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let ops = anabranch_plan::op::Ops::builtin();
        let found: Vec<&Spec> =
            ops.iter().map(|op| op.spec()).filter(|spec| spec.name.contains(&self.part)).collect();
        if found.is_empty() {
            return Err(Failure::of(format!(
                "no op has `{}` in its name; `anabranch plan ops` lists all",
                self.part
            )));
        }
        match self.json {
            true => out::data(&format!(
                "{:#}\n",
                found.iter().map(|spec| as_json(spec)).collect::<serde_json::Value>()
            )),
            false => out::data(&found.iter().map(|spec| text(spec)).collect::<Vec<_>>().join("\n")),
        }
    }
}

fn text(spec: &Spec) -> String {
    let inputs = match spec.inputs {
        0 => "no inputs".to_owned(),
        1 => "1 input".to_owned(),
        count => format!("{count} inputs"),
    };
    let mut text = format!("{} ({inputs})\n  {}\n", spec.name, spec.doc);
    for param in spec.params {
        let optional = if param.required { "" } else { ", optional" };
        text.push_str(&format!("    {:<12} {}{optional}: {}\n", param.name, kind(param.kind), param.doc));
    }
    text
}

fn as_json(spec: &Spec) -> serde_json::Value {
    let params = spec.params.iter().map(|param| {
        json!({"name": param.name, "type": kind(param.kind), "required": param.required, "doc": param.doc})
    });
    let params: Vec<_> = params.collect();
    json!({"op": spec.name, "doc": spec.doc, "inputs": spec.inputs, "params": params})
}

/// Describes the type of a parameter.
fn kind(kind: ParamKind) -> String {
    match kind {
        ParamKind::Int(least, most) => match (least, most) {
            (i64::MIN, i64::MAX) => "int".to_owned(),
            (least, i64::MAX) => format!("int from {least}"),
            (least, most) => format!("int from {least} to {most}"),
        },
        ParamKind::Float => "float".to_owned(),
        ParamKind::Bool => "bool".to_owned(),
        ParamKind::Text => "string".to_owned(),
        ParamKind::Choice(words) => format!("one of {}", words.join(", ")),
        ParamKind::Key => "key".to_owned(),
        ParamKind::SortKeys => "key or list of keys".to_owned(),
        ParamKind::Node => "node".to_owned(),
        ParamKind::Nodes => "nodes".to_owned(),
        ParamKind::Endpoint(None) => "endpoint".to_owned(),
        ParamKind::Endpoint(Some(kind)) => format!("{kind} endpoint"),
        ParamKind::Expr => "expr".to_owned(),
        ParamKind::Pred => "pred".to_owned(),
        ParamKind::Json => "JSON".to_owned(),
    }
}
