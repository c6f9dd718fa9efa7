//! Folders: names with the addresses of files and of other folders. A folder is a recipe of the function `folder`, so
//! that its entries are its inputs: pins, names, collection, archives and invalidation know them as they know the
//! inputs of every recipe. Equal folders are equal recipes, and so they have one address.
//!
//! ```text
//! function  folder/1.0.0
//! inputs    the files by their names, then the folders by theirs
//! params    files: names, rising by their bytes      folders: names, rising
//!           executable: some of `files`, rising      links: { name: target }
//! ```
//!
//! A parameter that would be empty is left out, so each folder has one encoding.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use anabranch_content::{Address, Value};

use crate::executor::{Draft, Ref};
use crate::function::Fault;
use crate::recipe::{FunctionId, Malformed, Params, Recipe};

/// A folder: its entries by name. `A` is how an entry is addressed.
///
/// ```
/// # use anabranch_recipe::{Address, Folder, FolderEntry};
/// let mut folder = Folder::new();
/// folder.add("run.sh", FolderEntry::File { address: Address::of(b"true\n"), executable: true })?;
/// assert!(folder.add("../run.sh", FolderEntry::Link { target: "run.sh".to_owned() }).is_err());
/// let recipe = folder.recipe();
/// assert_eq!(Folder::of(&recipe)?, Some(folder));
/// # Ok::<(), anabranch_recipe::Malformed>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder<A = Address> {
    entries: BTreeMap<String, FolderEntry<A>>,
    /// Bytes of names and of the targets of links.
    text: usize,
}

/// An entry of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FolderEntry<A = Address> {
    /// A file.
    File {
        /// The blob or the recipe that has its bytes.
        address: A,
        /// Its owner may execute it.
        executable: bool,
    },
    /// Another folder.
    Folder {
        /// The recipe of that folder.
        address: A,
    },
    /// A symbolic link.
    Link {
        /// The path that it holds, whatever that leads to.
        target: String,
    },
}

/// The name and the version of the function whose recipes are folders.
pub(crate) const FUNCTION: &str = "folder/1.0.0";

/// The parameters of that function.
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
    /// The most entries of one folder.
    pub const ENTRIES_MOST: usize = 100_000;

    /// The most bytes of the names and link targets of one folder, all together.
    pub const TEXT_MOST: usize = 4 << 20;

    /// The most bytes of a name.
    pub const NAME_MOST: usize = 255;

    /// The most bytes of the target of a link.
    pub const TARGET_MOST: usize = 4095;

    /// The most folders that are inside of each other, the outermost one included.
    pub const DEPTH_MOST: usize = 128;

    /// The most files, folders and links of a folder and of all folders in it.
    pub const ALL_MOST: usize = 1_000_000;

    /// The most bytes of the files of a folder and of all folders in it: 16 TiB.
    pub const BYTES_MOST: u64 = 16 << 40;

    /// A folder without entries.
    pub fn new() -> Folder<A> {
        Folder::default()
    }

    /// Adds an entry, if its name and what it is can be kept.
    pub fn add(&mut self, name: impl Into<String>, entry: FolderEntry<A>) -> Result<(), Malformed> {
        let name = name.into();
        check_name(&name).map_err(Malformed)?;
        self.text += name.len();
        if let FolderEntry::Link { target } = &entry {
            if target.is_empty() || target.len() > Self::TARGET_MOST || target.contains('\0') {
                let most = Self::TARGET_MOST;
                return Err(Malformed(format!("the link {name:?} holds no path of 1 to {most} bytes")));
            }
            self.text += target.len();
        }
        let count = self.entries.len();
        match self.entries.entry(name) {
            Entry::Occupied(taken) => Err(Malformed(format!("{:?} is there twice", taken.key()))),
            Entry::Vacant(_) if count == Self::ENTRIES_MOST => Err(Malformed(format!(
                "more than {} entries in one folder; spread them over several folders",
                Self::ENTRIES_MOST
            ))),
            Entry::Vacant(_) if self.text > Self::TEXT_MOST => Err(Malformed(format!(
                "the names in one folder have more than {} bytes together; spread them over several folders",
                Self::TEXT_MOST
            ))),
            Entry::Vacant(free) => {
                free.insert(entry);
                Ok(())
            }
        }
    }

    /// The entry of that name.
    pub fn get(&self, name: &str) -> Option<&FolderEntry<A>> {
        self.entries.get(name)
    }

    /// The entries, by their names.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = (&str, &FolderEntry<A>)> {
        self.entries.iter().map(|(name, entry)| (name.as_str(), entry))
    }

    /// Bytes of names and of the targets of links.
    pub(crate) fn text_bytes(&self) -> u64 {
        self.text as u64
    }

    /// The folder that has these inputs and parameters, if they are those of one.
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
            folder.add(name, entry).map_err(|Malformed(problem)| Fault::param(param, problem))
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

    /// Its inputs and its parameters as a recipe.
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
    /// The recipe that the folder is.
    pub fn recipe(&self) -> Recipe {
        let (inputs, params) = self.parts();
        Recipe { function: function(), inputs, params }
    }

    /// The folder that a recipe is; `None` if it has another function, and an error if it is a folder that cannot be.
    pub fn of(recipe: &Recipe) -> Result<Option<Folder>, Malformed> {
        if recipe.function != function() {
            return Ok(None);
        }
        match Folder::read(&recipe.inputs, &recipe.params) {
            Ok(folder) => Ok(Some(folder)),
            Err(fault) => Err(Malformed(format!("not a folder: {fault}"))),
        }
    }
}

impl Folder<Ref> {
    /// The recipe that the folder is, to be added with the folders in it.
    pub fn draft(&self) -> Draft {
        let (inputs, params) = self.parts();
        Draft { function: function(), inputs, params }
    }
}

fn function() -> FunctionId {
    FUNCTION.parse().expect("a name and a version")
}

/// Why a text cannot be the name of an entry. Such names would write outside of the folder, or could not be written.
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

/// A list of names that rise, under this parameter; none if it is not there.
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
