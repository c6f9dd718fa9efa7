//! `anabranch recipe tree`.

use std::collections::HashSet;

use anabranch_content::Address;
use anabranch_recipe::{Folder, FolderEntry};
use clap::Args;
use serde_json::{Value as Json, json};

use super::at::{At, MissingStore};
use super::backend::Backend;
use super::node::Node;
use super::show;
use crate::failure::Failure;
use crate::out;
use crate::table::Table;

pub(super) const HELP: &str = "\
stdout: a line per recipe, blob, folder and link, each below the recipe or folder that has it. An item \
that occurs more than once is shown with its inputs the first time. Nothing is computed.

  anabranch recipe tree page

Exit codes: 0 fine; 1 not found or failed; 2 wrong usage; 3 fine, but data that had been acknowledged \
was lost (the log says what).";

/// Shows a graph.
#[derive(Args)]
pub(crate) struct Tree {
    /// An address, the first 6 or more digits of one, a name, or FOLDER:PATH.
    #[arg(value_name = "TARGET")]
    target: String,
    /// The maximum number of lines.
    #[arg(long, value_name = "N", default_value_t = 1000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    most: u32,
    #[command(flatten)]
    at: At,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

/// A node, at a place where it is read.
struct Line {
    depth: usize,
    /// Its name in its folder.
    name: Option<String>,
    what: TreeItem,
    /// Whether its inputs were already shown.
    is_repeated: bool,
}

enum TreeItem {
    Node(Address, Node),
    Folder(Address, Folder),
    /// A symbolic link, with its target.
    Link(String),
}

/// A node that has not been looked up yet.
struct ItemToFind {
    depth: usize,
    name: Option<String>,
    to: Result<Address, String>,
}

impl Tree {
    pub(crate) fn run(self) -> Result<(), Failure> {
        self.at.run(MissingStore::Refuse, async |backend| {
            let root = backend.find(&self.target).await?;
            let (mut lines, mut shown) = (Vec::new(), HashSet::new());
            let mut waiting = vec![ItemToFind { depth: 0, name: None, to: Ok(root) }];
            while let Some(ItemToFind { depth, name, to }) = waiting.pop() {
                if lines.len() == self.most as usize {
                    out::note(&format!("only the first {} lines; --most shows more", self.most));
                    break;
                }
                let (what, is_repeated) = match to {
                    Err(target) => (TreeItem::Link(target), false),
                    Ok(address) => (TreeItem::find(backend, address).await?, !shown.insert(address)),
                };
                if !is_repeated {
                    waiting.extend(what.below(depth + 1).into_iter().rev());
                }
                lines.push(Line { depth, name, what, is_repeated });
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

impl TreeItem {
    async fn find(backend: &Backend, address: Address) -> Result<TreeItem, Failure> {
        let node = Node::find(backend, address).await?;
        Ok(match &node {
            Node::Recipe { recipe, .. } => match Folder::of(recipe) {
                Ok(Some(folder)) => TreeItem::Folder(address, folder),
                // A malformed folder is shown as a recipe.
                Ok(None) | Err(_) => TreeItem::Node(address, node),
            },
            _ => TreeItem::Node(address, node),
        })
    }

    /// Its inputs or entries.
    fn below(&self, depth: usize) -> Vec<ItemToFind> {
        match self {
            TreeItem::Node(_, Node::Recipe { recipe, .. }) => {
                let input = |input: &Address| ItemToFind { depth, name: None, to: Ok(*input) };
                recipe.inputs.iter().map(input).collect()
            }
            TreeItem::Folder(_, folder) => {
                let entry = |(name, entry): (&str, &FolderEntry)| match entry {
                    FolderEntry::File { address, .. } | FolderEntry::Folder { address } => {
                        ItemToFind { depth, name: Some(name.to_owned()), to: Ok(*address) }
                    }
                    FolderEntry::Link { target } => {
                        ItemToFind { depth, name: Some(name.to_owned()), to: Err(target.clone()) }
                    }
                };
                folder.entries().map(entry).collect()
            }
            TreeItem::Node(..) | TreeItem::Link(_) => Vec::new(),
        }
    }

    fn address(&self) -> Option<Address> {
        match self {
            TreeItem::Node(address, _) | TreeItem::Folder(address, _) => Some(*address),
            TreeItem::Link(_) => None,
        }
    }
}

impl Line {
    fn cells(&self) -> [String; 4] {
        let [what, size, value] = match &self.what {
            TreeItem::Link(target) => [format!("link to {target}"), String::new(), String::new()],
            TreeItem::Folder(_, folder) => {
                ["folder".to_owned(), String::new(), format!("{} inside", folder.entries().len())]
            }
            TreeItem::Node(_, node) => node.words(),
        };
        let has_inputs = match &self.what {
            TreeItem::Node(_, Node::Recipe { recipe, .. }) => !recipe.inputs.is_empty(),
            TreeItem::Folder(_, folder) => folder.entries().len() > 0,
            _ => false,
        };
        let value = match (self.is_repeated && has_inputs, &self.what) {
            (true, TreeItem::Folder(..)) => format!("{value}, shown above"),
            (true, _) => format!("{value}; inputs above"),
            (false, _) => value,
        };
        let name = self.name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default();
        let address = self.what.address().map(|address| address.to_string()).unwrap_or_default();
        [format!("{}{name}{what}", "  ".repeat(self.depth)), address, size, value]
    }

    fn json(&self) -> Json {
        let mut json = match &self.what {
            TreeItem::Link(target) => json!({"kind": "link", "target": target}),
            TreeItem::Folder(_, folder) => json!({"kind": "folder", "entries": folder.entries().len()}),
            TreeItem::Node(_, node) => node.json(),
        };
        json["depth"] = self.depth.into();
        if let Some(name) = &self.name {
            json["name"] = name.as_str().into();
        }
        if let Some(address) = self.what.address() {
            json["address"] = address.to_string().into();
        }
        json
    }
}
