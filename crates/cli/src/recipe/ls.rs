//! `anabranch recipe ls`.

use anabranch_content::{Address, Class, Holder, Time};
use anabranch_text::{closest, quote, size, utc};
use clap::{Args, ValueEnum};
use serde_json::{Map, Value as Json, json};

use super::at::{At, MissingStore};
use super::backend::Backend;
use super::inside::{holder, short};
use super::node::{Node, Value};
use super::show;
use crate::failure::Failure;
use crate::out;
use crate::table::Table;

pub(super) const HELP: &str = "\
stdout: a line per name, recipe and blob. Addresses are shortened to 12 digits, which every command \
takes; --json has them in full. `held by` is the name, pin or import that keeps it; without one, \
`recipe collect` removes it. stderr: how to see the next page.

  anabranch recipe ls
  anabranch recipe ls --kind blobs --most 1000
  anabranch recipe ls site/                 # the names that begin with site/
  anabranch recipe ls 4f1c                  # the addresses that begin with 4f1c

Exit codes: 0 fine; 1 nothing found, or failed; 2 wrong usage; 3 fine, but data that had been \
acknowledged was lost (the log says what).";

/// Lists names, recipes and blobs.
#[derive(Args)]
pub(crate) struct Ls {
    /// Only names that begin with this, and addresses that begin with it if it has at least 4 hex digits.
    #[arg(value_name = "PREFIX|NAME")]
    prefixes: Vec<String>,
    /// The kinds to list, separated by commas; all if not given.
    #[arg(long = "kind", value_name = "KIND", value_enum, value_delimiter = ',')]
    kinds: Vec<Kind>,
    /// The maximum number of lines per kind.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    most: u32,
    /// Begins after this name or address, which ended the previous page; for use with one --kind.
    #[arg(long, value_name = "NAME|ADDRESS", conflicts_with = "prefixes")]
    after: Option<String>,
    #[command(flatten)]
    at: At,
    /// As JSON: `rows`, and `next` with the --after of the next page per kind.
    #[arg(long)]
    json: bool,
}

/// The kind of an item.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Names,
    Recipes,
    Blobs,
}

/// A line of the list.
struct Row {
    kind: Kind,
    name: Option<String>,
    address: Address,
    node: Node,
    /// Whether a blob was put or computed.
    class: Option<Class>,
    at: Option<Time>,
    held_by: Option<Holder>,
}

/// The lines, and the starts of the next pages.
#[derive(Default)]
struct Page {
    rows: Vec<Row>,
    next: Vec<(Kind, String)>,
}

impl Ls {
    pub(crate) fn run(self) -> Result<(), Failure> {
        if self.after.is_some() && self.kinds.len() != 1 {
            return Err(Failure::Wrong("--after continues one kind; give it with --kind".to_owned()));
        }
        self.at.run(MissingStore::Refuse, async |backend| {
            let mut page = match self.prefixes.is_empty() {
                true => self.all(backend).await?,
                false => self.found(backend).await?,
            };
            add_holders(backend, &mut page.rows).await?;
            if self.json {
                return show::json(&page.json());
            }
            page.show()
        })
    }

    fn wants(&self, kind: Kind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }

    async fn all(&self, backend: &Backend) -> Result<Page, Failure> {
        let mut page = Page::default();
        // One item more than is shown tells whether there is another page.
        let (most, one_more) = (self.most as usize, self.most + 1);
        if self.wants(Kind::Names) {
            let mut names = backend.refs().await?;
            names.retain(|(name, _)| self.after.as_ref().is_none_or(|after| name > after));
            page.cut(Kind::Names, &mut names, most, |(name, _)| name.clone());
            for (name, address) in names {
                page.rows.push(Row::of_name(backend, name, address).await?);
            }
        }
        let after = match &self.after {
            Some(after) if !self.wants(Kind::Names) => Some(backend.find(after).await?),
            _ => None,
        };
        if self.wants(Kind::Recipes) {
            let mut recipes = backend.recipes(after, one_more).await?;
            page.cut(Kind::Recipes, &mut recipes, most, |it| it.address.to_string());
            for it in recipes {
                page.rows.push(Row::of(backend, Kind::Recipes, it.address, None, Some(it.at)).await?);
            }
        }
        if self.wants(Kind::Blobs) {
            let mut blobs = backend.blobs(after, one_more).await?;
            page.cut(Kind::Blobs, &mut blobs, most, |it| it.address.to_string());
            for it in blobs {
                page.rows.push(Row::of(backend, Kind::Blobs, it.address, Some(it.class), Some(it.at)).await?);
            }
        }
        Ok(page)
    }

    /// The items that begin with the command's arguments.
    async fn found(&self, backend: &Backend) -> Result<Page, Failure> {
        let (mut page, most) = (Page::default(), self.most as usize);
        let names = backend.refs().await?;
        for prefix in &self.prefixes {
            let before = page.rows.len();
            if self.wants(Kind::Names) {
                let fits = names.iter().filter(|(name, _)| name.starts_with(prefix.as_str()));
                let mut fits: Vec<_> = fits.cloned().collect();
                if fits.len() > most {
                    out::note(&format!(
                        "only the first {most} names that begin with {prefix}; --most shows more"
                    ));
                    fits.truncate(most);
                }
                for (name, address) in fits {
                    page.rows.push(Row::of_name(backend, name, address).await?);
                }
            }
            let is_hex = prefix.bytes().all(|digit| digit.is_ascii_hexdigit());
            if is_hex && (4..=64).contains(&prefix.len()) {
                let mut addresses = backend.find_prefix(prefix, self.most + 1).await?;
                if addresses.len() > most {
                    out::note(&format!(
                        "only the first {most} addresses that begin with {prefix}; --most shows more"
                    ));
                    addresses.truncate(most);
                }
                for address in addresses {
                    let row = Row::found(backend, address).await?;
                    page.rows.extend(row.filter(|row| self.wants(row.kind)));
                }
            }
            if page.rows.len() == before {
                return Err(nothing_begins(prefix, names.iter().map(|(name, _)| name.as_str())));
            }
        }
        Ok(page)
    }
}

impl Page {
    /// Truncates the items to a page, and records the start of the next page.
    fn cut<T>(&mut self, kind: Kind, items: &mut Vec<T>, most: usize, place: impl Fn(&T) -> String) {
        if items.len() > most {
            items.truncate(most);
            self.next.extend(items.last().map(|last| (kind, place(last))));
        }
    }

    fn json(&self) -> Json {
        let next: Map<String, Json> =
            self.next.iter().map(|(kind, after)| (kind.word().to_owned(), after.clone().into())).collect();
        json!({"rows": self.rows.iter().map(Row::json).collect::<Vec<_>>(), "next": next})
    }

    fn show(&self) -> Result<(), Failure> {
        let head = ["kind", "address", "name or function", "size", "value", "since (UTC)", "held by"];
        let mut table = Table::new(head).whole_in_pipes();
        self.rows.iter().for_each(|row| table.row(row.cells()));
        let none = "nothing is stored yet; `anabranch recipe put FILE` stores a blob";
        show::table(&table, self.rows.len(), none)?;
        for (kind, after) in &self.next {
            let (kind, after) = (kind.word(), show::shell_word(after));
            out::note(&format!("there are more {kind}: `anabranch recipe ls --kind {kind} --after {after}`"));
        }
        Ok(())
    }
}

impl Row {
    async fn of_name(backend: &Backend, name: String, address: Address) -> Result<Row, Failure> {
        let at = backend.history(&name).await?.last().map(|last| last.at);
        Ok(Row { name: Some(name), ..Row::of(backend, Kind::Names, address, None, at).await? })
    }

    async fn of(
        backend: &Backend,
        kind: Kind,
        address: Address,
        class: Option<Class>,
        at: Option<Time>,
    ) -> Result<Row, Failure> {
        let node = Node::find(backend, address).await?;
        Ok(Row { kind, name: None, address, node, class, at, held_by: None })
    }

    /// The item at an address, if it still exists.
    async fn found(backend: &Backend, address: Address) -> Result<Option<Row>, Failure> {
        let before = before(address);
        let row = match Node::find(backend, address).await? {
            Node::Missing => return Ok(None),
            Node::Blob { .. } => {
                let listed = backend.blobs(before, 1).await?.into_iter().find(|it| it.address == address);
                Row::of(backend, Kind::Blobs, address, listed.map(|it| it.class), listed.map(|it| it.at))
                    .await
            }
            Node::Recipe { .. } => {
                let listed = backend.recipes(before, 1).await?.into_iter().find(|it| it.address == address);
                Row::of(backend, Kind::Recipes, address, None, listed.map(|it| it.at)).await
            }
        };
        row.map(Some)
    }

    fn cells(&self) -> [String; 7] {
        let (what, size, value) = match &self.node {
            Node::Missing => ("missing".to_owned(), None, "not in the store"),
            Node::Blob { size } => {
                let value = match self.class {
                    Some(Class::Acknowledged) => "put",
                    Some(Class::Derivable) => "computed",
                    None => "stored",
                };
                ("blob".to_owned(), Some(*size), value)
            }
            Node::Recipe { recipe, value } => {
                let (size, value) = match value {
                    Value::Stored(memo) => (Some(memo.size), "stored"),
                    Value::Evicted => (None, "evicted"),
                    Value::Unknown(_) => (None, "not computed"),
                };
                (recipe.function.to_string(), size, value)
            }
        };
        let what = match (&self.name, self.kind) {
            (Some(name), _) => name.clone(),
            (None, Kind::Blobs) => String::new(),
            (None, _) => what,
        };
        let held_by = self.held_by.as_ref().map_or_else(String::new, |it| {
            format!("{}{}", holder(&it.root), if it.is_shared { " and others" } else { "" })
        });
        [
            self.kind.singular().to_owned(),
            short(&self.address),
            what,
            size.map(size::format).unwrap_or_default(),
            value.to_owned(),
            self.at.map(|at| utc(at.0)).unwrap_or_default(),
            held_by,
        ]
    }

    fn json(&self) -> Json {
        let mut json = self.node.json();
        json["item"] = json["kind"].take();
        json["kind"] = self.kind.singular().into();
        json["address"] = self.address.to_string().into();
        json["at_millis"] = self.at.map(|at| at.0).into();
        if let Some(name) = &self.name {
            json["name"] = name.clone().into();
            return json;
        }
        if let Some(class) = self.class {
            json["computed"] = (class == Class::Derivable).into();
        }
        json["held_by"] = self.held_by.as_ref().map(|it| holder(&it.root)).into();
        json["shared"] = self.held_by.as_ref().is_some_and(|it| it.is_shared).into();
        json
    }
}

/// Adds the holders of recipes and blobs. A name protects its address itself.
async fn add_holders(backend: &Backend, rows: &mut [Row]) -> Result<(), Failure> {
    let unheld: Vec<Address> =
        rows.iter().filter(|row| row.kind != Kind::Names).map(|row| row.address).collect();
    if unheld.is_empty() {
        return Ok(());
    }
    let holders = backend.usage(0, &unheld).await?.holders;
    let rows = rows.iter_mut().filter(|row| row.kind != Kind::Names);
    rows.zip(holders).for_each(|(row, holder)| row.held_by = holder);
    Ok(())
}

fn nothing_begins<'a>(prefix: &str, names: impl Iterator<Item = &'a str>) -> Failure {
    let help = match closest(prefix, names) {
        Some(near) => format!("did you mean {}?", quote(near)),
        None => "`anabranch recipe ls` lists all; addresses are found by 4 hex digits or more".to_owned(),
    };
    Failure::of(format!("no name and no address begins with {prefix:?}; {help}"))
}

/// The address that precedes another one in order.
fn before(address: Address) -> Option<Address> {
    let mut bytes = *address.as_bytes();
    for byte in bytes.iter_mut().rev() {
        let (less, borrows) = byte.overflowing_sub(1);
        *byte = less;
        if !borrows {
            return Some(Address::from_bytes(bytes));
        }
    }
    None
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Names => "names",
            Kind::Recipes => "recipes",
            Kind::Blobs => "blobs",
        }
    }

    fn singular(self) -> &'static str {
        match self {
            Kind::Names => "name",
            Kind::Recipes => "recipe",
            Kind::Blobs => "blob",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_before_another_one() {
        let mut bytes = [0; 32];
        assert_eq!(before(Address::from_bytes(bytes)), None);
        bytes[30] = 1;
        let less = before(Address::from_bytes(bytes)).unwrap();
        assert_eq!((less.as_bytes()[30], less.as_bytes()[31]), (0, 255));
    }
}
