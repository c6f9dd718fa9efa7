//! `anabranch recipe`: one file per verb, or per few verbs that belong together.

mod at;
mod remote;
mod data_folder;
mod options;
mod socket;
mod owner;
mod interrupt;
mod place;
mod input;
mod backend;
mod inside;
mod folder;
mod incoming;
mod pour;
mod show;
mod put;
mod add;
mod graph;
mod check;
mod get;
mod progress;
mod resolve;
mod node;
mod tree;
mod picture;
mod explain;
mod ls;
mod du;
mod rm;
mod invalidate;
mod pin;
mod reference;
mod collect;
mod credentials;
mod scrub;
mod archive;
mod functions;
mod status;
mod bench;

use clap::Subcommand;

pub(crate) use at::runtime;
pub(crate) use data_folder::DataFolder;
pub(crate) use options::{StoreOptions, check_losses, quota};
pub(crate) use place::unopened;
pub(crate) use remote::{Remote, ask};
pub(crate) use socket::{bind, remove};

use crate::args::{EXIT_CODES, STORE_EXIT_CODES};
use crate::failure::Failure;

/// The verbs of recipes.
#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Stores files and folders and prints their addresses.
    #[command(after_help = put::HELP)]
    Put(put::Put),
    /// Stores a recipe, or a file of recipes that read each other by name, and prints addresses.
    #[command(after_help = add::HELP)]
    Add(add::Add),
    /// Checks recipe files without storing anything.
    #[command(after_help = check::HELP)]
    Check(check::Check),
    /// Writes the value of a blob or a recipe, which is computed unless its value is stored; or writes a folder.
    #[command(after_help = get::HELP)]
    Get(get::Get),
    /// Describes an address or a name: a blob, a folder, or a recipe and its stored value.
    #[command(after_help = STORE_EXIT_CODES)]
    Resolve(resolve::Resolve),
    /// Shows the graph of a recipe: its inputs and theirs, with sizes, times and which values are stored.
    #[command(after_help = tree::HELP)]
    Tree(tree::Tree),
    /// Says which recipes a get would compute, and why, without computing them.
    #[command(after_help = explain::HELP)]
    Explain(explain::Explain),
    /// Lists names, recipes and blobs, with sizes, values and holders.
    #[command(after_help = ls::HELP)]
    Ls(ls::Ls),
    /// Shows how much space is used: by kind, and per name, pin and import.
    #[command(after_help = du::HELP)]
    Du(du::Du),
    /// Removes blobs, recipes and values that nothing holds.
    #[command(after_help = rm::HELP)]
    Rm(rm::Rm),
    /// Forgets the stored value of a recipe, so that it is computed again.
    #[command(after_help = STORE_EXIT_CODES)]
    Invalidate(invalidate::Invalidate),
    /// Pins addresses: collection keeps them, and everything needed to derive them.
    #[command(after_help = STORE_EXIT_CODES)]
    Pin(pin::Pin),
    /// Removes pins.
    #[command(after_help = STORE_EXIT_CODES)]
    Unpin(pin::Unpin),
    /// Lists pinned addresses.
    #[command(after_help = STORE_EXIT_CODES)]
    Pins(pin::Pins),
    /// Named references: names for addresses, with their history.
    #[command(subcommand, arg_required_else_help = true)]
    Ref(reference::Verb),
    /// Removes items that no pin, name or import leads to.
    #[command(after_help = collect::HELP)]
    Collect(collect::Collect),
    /// Reads and checks everything in the store.
    #[command(after_help = scrub::HELP)]
    Scrub(scrub::Scrub),
    /// Writes addresses and all that they lead to into an archive.
    #[command(after_help = STORE_EXIT_CODES)]
    Export(archive::Export),
    /// Adds the content of an archive.
    #[command(after_help = STORE_EXIT_CODES)]
    Import(archive::Import),
    /// Lists the imports, which hold their content, or drops one.
    #[command(after_help = STORE_EXIT_CODES)]
    Imports(archive::Imports),
    /// Lists the functions that recipes are made of; with a name, its parameters.
    #[command(after_help = EXIT_CODES)]
    Functions(functions::Functions),
    /// Shows the counts, sizes and health of the store.
    #[command(after_help = STORE_EXIT_CODES)]
    Status(status::Status),
    /// Measures puts, cache hits and computed values, in a store of its own.
    #[command(after_help = EXIT_CODES)]
    Bench(bench::Bench),
}

impl Verb {
    pub(crate) fn run(self) -> Result<(), Failure> {
        match self {
            Verb::Put(put) => put.run(),
            Verb::Add(add) => add.run(),
            Verb::Check(check) => check.run(),
            Verb::Get(get) => get.run(),
            Verb::Resolve(resolve) => resolve.run(),
            Verb::Tree(tree) => tree.run(),
            Verb::Explain(explain) => explain.run(),
            Verb::Ls(ls) => ls.run(),
            Verb::Du(du) => du.run(),
            Verb::Rm(rm) => rm.run(),
            Verb::Invalidate(invalidate) => invalidate.run(),
            Verb::Pin(pin) => pin.run(),
            Verb::Unpin(unpin) => unpin.run(),
            Verb::Pins(pins) => pins.run(),
            Verb::Ref(verb) => verb.run(),
            Verb::Collect(collect) => collect.run(),
            Verb::Scrub(scrub) => scrub.run(),
            Verb::Export(export) => export.run(),
            Verb::Import(import) => import.run(),
            Verb::Imports(imports) => imports.run(),
            Verb::Functions(functions) => functions.run(),
            Verb::Status(status) => status.run(),
            Verb::Bench(bench) => bench.run(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use clap::Command;

    use super::*;

    #[test]
    fn every_verb_can_write_json() {
        fn add(command: &Command, lacking: &mut Vec<String>) {
            if !command.has_subcommands() && command.get_arguments().all(|arg| arg.get_long() != Some("json"))
            {
                lacking.push(command.get_name().to_owned());
            }
            command.get_subcommands().for_each(|verb| add(verb, lacking));
        }
        let mut lacking = Vec::new();
        add(&Verb::augment_subcommands(Command::new("recipe")), &mut lacking);
        assert_eq!(lacking, Vec::<String>::new(), "these verbs lack --json");
    }

    #[test]
    fn the_page_has_every_option_and_variable() {
        fn add(command: &Command, names: &mut BTreeSet<String>) {
            for arg in command.get_arguments().filter(|arg| !arg.is_hide_set()) {
                names.extend(arg.get_long().map(|long| format!("--{long}")));
                names.extend(arg.get_env().map(|name| name.to_string_lossy().into_owned()));
            }
            command.get_subcommands().for_each(|verb| add(verb, names));
        }
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/recipes.md");
        let (mut names, page) = (BTreeSet::new(), std::fs::read_to_string(file).unwrap());
        add(&Verb::augment_subcommands(Command::new("recipe")), &mut names);
        let is_word = |byte: &char| byte.is_ascii_alphanumeric() || matches!(byte, '-' | '_');
        names.retain(|name| {
            !page
                .split(name.as_str())
                .skip(1)
                .any(|rest| !rest.chars().next().is_some_and(|next| is_word(&next)))
        });
        assert_eq!(names, BTreeSet::new(), "docs/recipes.md lacks these options and variables");
    }
}
