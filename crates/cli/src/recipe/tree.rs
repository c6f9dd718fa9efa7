//! `anabranch recipe tree`.

use std::collections::HashSet;

use anabranch_content::Address;
use clap::Args;
use serde_json::Value as Json;

use super::at::{At, Missing};
use super::node::Node;
use super::show;
use crate::failure::Failure;
use crate::out;
use crate::table::Table;

pub(super) const HELP: &str = "\
stdout: a line per recipe and blob, each below the recipe that reads it. A recipe that is read more
than once is shown with its inputs the first time. Nothing is computed.

  anabranch recipe tree page

Exit codes: 0 fine; 1 not found or failed; 2 wrong usage; 3 fine, but data that had been acknowledged
was lost (the log says what).";

/// Shows a graph.
#[derive(Args)]
pub(crate) struct Tree {
    /// An address, the first 6 or more digits of one, or a name.
    #[arg(value_name = "TARGET")]
    target: String,
    /// The most lines.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    most: u32,
    #[command(flatten)]
    at: At,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// A node where it is read.
struct Line {
    depth: usize,
    address: Address,
    node: Node,
    /// Its inputs were shown before.
    is_repeated: bool,
}

impl Tree {
    pub(crate) fn run(self) -> Result<(), Failure> {
        self.at.run(Missing::Refuse, async |backend| {
            let root = backend.find(&self.target).await?;
            let (mut lines, mut shown) = (Vec::new(), HashSet::new());
            let mut waiting = vec![(0, root)];
            while let Some((depth, address)) = waiting.pop() {
                if lines.len() == self.most as usize {
                    out::note(&format!("only the first {} lines; --most shows more", self.most));
                    break;
                }
                let node = Node::find(backend, address).await?;
                let is_repeated = !shown.insert(address);
                if let (Node::Recipe { recipe, .. }, false) = (&node, is_repeated) {
                    waiting.extend(recipe.inputs.iter().rev().map(|input| (depth + 1, *input)));
                }
                lines.push(Line { depth, address, node, is_repeated });
            }
            if self.json {
                return show::json(&lines.iter().map(Line::json).collect());
            }
            let mut table = Table::new(["what", "address", "size", "value"]).whole_in_pipes();
            lines.iter().for_each(|line| table.row(line.cells()));
            out::data(&table.text(0))
        })
    }
}

impl Line {
    fn cells(&self) -> [String; 4] {
        let [what, size, value] = self.node.words();
        let has_inputs = matches!(&self.node, Node::Recipe { recipe, .. } if !recipe.inputs.is_empty());
        let value = if self.is_repeated && has_inputs { format!("{value}; inputs above") } else { value };
        [format!("{}{what}", "  ".repeat(self.depth)), self.address.to_string(), size, value]
    }

    fn json(&self) -> Json {
        let mut json = self.node.json();
        json["depth"] = self.depth.into();
        json["address"] = self.address.to_string().into();
        json
    }
}
