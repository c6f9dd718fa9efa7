//! Folders: names with the addresses of files and other folders. A folder is a recipe of the function `folder`, and its
//! entries are the inputs. So pins, names, collection, archives and invalidation treat them like the inputs of any
//! other recipe. Equal folders are equal recipes, so they have the same address.
//!
//! ```text
//! function  folder/1.0.0
//! inputs    the files by their names, then the folders by theirs
//! params    files: names, rising by their bytes      folders: names, rising
//!           executable: some of `files`, rising      links: { name: target }
//! ```
//!
//! An empty parameter is left out, so each folder has exactly one encoding.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use anabranch_content::{Address, Value};

use crate::executor::{Draft, DraftInput};
use crate::function::Fault;
use crate::recipe::{FunctionId, MalformedRecipe, Params, Recipe};

/// A folder: its entries by name. `A` is the type of an entry's address.
///
/// ```
/// # use anabranch_recipe::{Address, Folder, FolderEntry};
/// let mut folder = Folder::new();
/// folder.add("run.sh", FolderEntry::File { address: Address::of(b"true\n"), executable: true })?;
/// assert!(folder.add("../run.sh", FolderEntry::Link { target: "run.sh".to_owned() }).is_err());
/// let recipe = folder.recipe();
/// assert_eq!(Folder::of(&recipe)?, Some(folder));
/// # Ok::<(), anabranch_recipe::MalformedRecipe>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder<A = Address> {
    entries: BTreeMap<String, FolderEntry<A>>,
    /// The total size of names and link targets, in bytes.
    text: usize,
}

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FolderEntry<A = Address> {
    /// A file.
    File {
        /// The blob or the recipe with its bytes.
        address: A,
        /// Whether its owner may execute it.
        executable: bool,
    },
    /// Another folder.
    Folder {
        /// The recipe of that folder.
        address: A,
    },
    /// A symbolic link.
    Link {
        /// The path that it holds. The path need not exist.
        target: String,
    },
}

/// The name and version of the folder function.
pub(crate) const FUNCTION: &str = "folder/1.0.0";

/// The parameters of the folder function.
pub(crate) const FILES: &str = "files";
pub(crate) const FOLDERS: &str = "folders";
pub(crate) const EXECUTABLE: &str = "executable";
pub(crate) const LINKS: &str = "links";

impl<A> Default for Folder<A> {
    fn default() -> Folder<A> {
        Folder { entries: BTreeMap::new(), text: 0 }
    }
}

impl<A: Clone> Folder<A> {
    /// The maximum number of entries per folder.
    pub const ENTRIES_MOST: usize = 100_000;

    /// The maximum total size of names and link targets per folder, in bytes.
    pub const TEXT_MOST: usize = 4 << 20;

    /// The maximum length of a name in bytes.
    pub const NAME_MOST: usize = 255;

    /// The maximum length of a link target in bytes.
    pub const TARGET_MOST: usize = 4095;

    /// The maximum nesting of folders, including the outermost one.
    pub const DEPTH_MOST: usize = 128;

    /// The maximum number of files, folders and links in a folder and all folders below it.
    pub const ALL_MOST: usize = 1_000_000;

    /// The maximum total size of the files in a folder and all folders below it: 16 TiB.
    pub const BYTES_MOST: u64 = 16 << 40;

    /// An empty folder.
    pub fn new() -> Folder<A> {
        Folder::default()
    }

    /// Adds an entry. Fails if the name or the entry is not valid.
    pub fn add(&mut self, name: impl Into<String>, entry: FolderEntry<A>) -> Result<(), MalformedRecipe> {
        let name = name.into();
        check_name(&name).map_err(MalformedRecipe)?;
        self.text += name.len();
        if let FolderEntry::Link { target } = &entry {
            if target.is_empty() || target.len() > Self::TARGET_MOST || target.contains('\0') {
                let most = Self::TARGET_MOST;
                return Err(MalformedRecipe(format!("the link {name:?} holds no path of 1 to {most} bytes")));
            }
            self.text += target.len();
        }
        let count = self.entries.len();
        match self.entries.entry(name) {
            Entry::Occupied(taken) => Err(MalformedRecipe(format!("{:?} is there twice", taken.key()))),
            Entry::Vacant(_) if count == Self::ENTRIES_MOST => Err(MalformedRecipe(format!(
                "more than {} entries in one folder; spread them over several folders",
                Self::ENTRIES_MOST
            ))),
            Entry::Vacant(_) if self.text > Self::TEXT_MOST => Err(MalformedRecipe(format!(
                "the names in one folder have more than {} bytes together; spread them over several folders",
                Self::TEXT_MOST
            ))),
            Entry::Vacant(free) => {
                free.insert(entry);
                Ok(())
            }
        }
    }

    /// The entry with this name.
    pub fn get(&self, name: &str) -> Option<&FolderEntry<A>> {
        self.entries.get(name)
    }

    /// The entries, sorted by name.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (&str, &FolderEntry<A>)> {
        self.entries.iter().map(|(name, entry)| (name.as_str(), entry))
    }

    /// The total size of names and link targets, in bytes.
    pub(crate) fn text_bytes(&self) -> u64 {
        self.text as u64
    }

    /// Parses the inputs and parameters of a folder's recipe.
    pub(crate) fn read(inputs: &[A], params: &Params) -> Result<Folder<A>, Fault> {
        let (files, folders) = (names(params, FILES)?, names(params, FOLDERS)?);
        let executable = names(params, EXECUTABLE)?;
        if files.len() + folders.len() != inputs.len() {
            let (named, inputs) = (files.len() + folders.len(), inputs.len());
            let problem = format!(
                "`{FILES}` and `{FOLDERS}` name {named} entries, and the recipe has {inputs} inputs; give as many"
            );
            return Err(Fault::param(FILES, problem));
        }
        if let Some(other) = executable.iter().find(|name| files.binary_search(name).is_err()) {
            return Err(Fault::param(EXECUTABLE, format!("{other:?} is not one of `{FILES}`")));
        }
        let mut folder = Folder::new();
        let mut add = |param: &str, name: &str, entry| {
            folder.add(name, entry).map_err(|MalformedRecipe(problem)| Fault::param(param, problem))
        };
        for (name, address) in files.iter().zip(inputs) {
            let executable = executable.binary_search(name).is_ok();
            add(FILES, name, FolderEntry::File { address: address.clone(), executable })?;
        }
        for (name, address) in folders.iter().zip(&inputs[files.len()..]) {
            add(FOLDERS, name, FolderEntry::Folder { address: address.clone() })?;
        }
        for (name, target) in links(params)? {
            add(LINKS, name, FolderEntry::Link { target: target.to_owned() })?;
        }
        Ok(folder)
    }

    /// The inputs and parameters of its recipe.
    fn parts(&self) -> (Vec<A>, Params) {
        let (mut inputs, mut below) = (Vec::new(), Vec::new());
        let (mut files, mut folders, mut executables) = (Vec::new(), Vec::new(), Vec::new());
        let mut links = BTreeMap::new();
        for (name, entry) in &self.entries {
            let text = || Value::Text(name.clone());
            match entry {
                FolderEntry::File { address, executable } => {
                    inputs.push(address.clone());
                    files.push(text());
                    executables.extend(executable.then(text));
                }
                FolderEntry::Folder { address } => {
                    below.push(address.clone());
                    folders.push(text());
                }
                FolderEntry::Link { target } => {
                    links.insert(name.clone(), Value::Text(target.clone()));
                }
            }
        }
        inputs.append(&mut below);
        let lists = [(FILES, files), (FOLDERS, folders), (EXECUTABLE, executables)];
        let lists = lists.into_iter().filter(|(_, names)| !names.is_empty());
        let mut params: Params = lists.map(|(param, names)| (param.to_owned(), Value::List(names))).collect();
        if !links.is_empty() {
            params.insert(LINKS.to_owned(), Value::Map(links));
        }
        (inputs, params)
    }
}

impl Folder {
    /// The recipe of this folder.
    pub fn recipe(&self) -> Recipe {
        let (inputs, params) = self.parts();
        Recipe { function: function(), inputs, params }
    }

    /// The folder that a recipe describes; `None` if it has another function. An invalid folder is an error.
    pub fn of(recipe: &Recipe) -> Result<Option<Folder>, MalformedRecipe> {
        if recipe.function != function() {
            return Ok(None);
        }
        match Folder::read(&recipe.inputs, &recipe.params) {
            Ok(folder) => Ok(Some(folder)),
            Err(fault) => Err(MalformedRecipe(format!("not a folder: {fault}"))),
        }
    }
}

impl Folder<DraftInput> {
    /// The recipe of this folder, to add together with those of the folders in it.
    pub fn draft(&self) -> Draft {
        let (inputs, params) = self.parts();
        Draft { function: function(), inputs, params }
    }
}

fn function() -> FunctionId {
    FUNCTION.parse().expect("a name and a version")
}

/// Checks the name of an entry. An invalid name could refer to a place outside the folder, or could not be written.
fn check_name(name: &str) -> Result<(), String> {
    let most = Folder::<Address>::NAME_MOST;
    match name {
        "" => Err("a name in a folder is empty".to_owned()),
        "." | ".." => Err(format!("{name:?} cannot be a name in a folder")),
        _ if name.len() > most => Err(format!("the name {name:?} has more than {most} bytes")),
        _ if name.contains(['/', '\0']) => Err(format!("the name {name:?} has a `/` or a NUL in it")),
        _ => Ok(()),
    }
}

/// The names listed in a parameter, in ascending order; empty if the parameter is absent.
fn names<'a>(params: &'a Params, param: &str) -> Result<Vec<&'a str>, Fault> {
    let Some(value) = params.get(param) else { return Ok(Vec::new()) };
    let Value::List(values) = value else { return Err(Fault::param(param, "it is not a list of names")) };
    let name = |value: &'a Value| match value {
        Value::Text(name) => Ok(name.as_str()),
        _ => Err(Fault::param(param, "it is not a list of names: one is not text")),
    };
    let names = values.iter().map(name).collect::<Result<Vec<_>, _>>()?;
    if names.is_empty() {
        return Err(Fault::param(param, "it is empty; leave it out"));
    }
    match names.windows(2).find(|pair| pair[0] >= pair[1]) {
        Some(pair) => {
            let problem = format!("{:?} is not behind {:?}; sort the names by their bytes", pair[1], pair[0]);
            Err(Fault::param(param, problem))
        }
        None => Ok(names),
    }
}

fn links(params: &Params) -> Result<impl Iterator<Item = (&str, &str)>, Fault> {
    let wrong = || Fault::param(LINKS, "it is not a map from names to paths, or empty");
    let mut links = Vec::new();
    match params.get(LINKS) {
        None => {}
        Some(Value::Map(map)) if !map.is_empty() => {
            for (name, target) in map {
                let Value::Text(target) = target else { return Err(wrong()) };
                links.push((name.as_str(), target.as_str()));
            }
        }
        Some(_) => return Err(wrong()),
    }
    Ok(links.into_iter())
}
