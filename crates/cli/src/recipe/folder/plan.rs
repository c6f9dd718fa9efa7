//! The files, folders and links to write for a folder, all found and checked before the first byte is written.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anabranch_content::Address;
use anabranch_recipe::{Folder, FolderEntry};

use super::super::backend::Backend;
use crate::failure::Failure;

/// Everything in a folder, as paths inside of it.
#[derive(Default)]
pub(super) struct Plan {
    /// The folders, each after its parent.
    pub(super) folders: Vec<PathBuf>,
    pub(super) files: Vec<PlannedFile>,
    /// The links, with their targets.
    pub(super) links: Vec<(PathBuf, String)>,
}

pub(super) struct PlannedFile {
    pub(super) path: PathBuf,
    pub(super) address: Address,
    pub(super) executable: bool,
}

impl Plan {
    /// Finds everything in a folder. A folder that occurs several times is looked up once and written several times, so
    /// a few folders can expand to very many. There are limits for this reason.
    pub(super) async fn find(backend: &Backend, root: Folder) -> Result<Plan, Failure> {
        let mut plan = Plan::default();
        let mut known: HashMap<Address, Arc<Folder>> = HashMap::new();
        let mut waiting = vec![(PathBuf::new(), Arc::new(root), 1)];
        while let Some((path, folder, depth)) = waiting.pop() {
            for (name, entry) in folder.entries() {
                let inside = path.join(name);
                if plan.len() == Folder::<Address>::ALL_MOST {
                    let most = Folder::<Address>::ALL_MOST;
                    return Err(Failure::of(format!(
                        "the folder has more than {most} files, folders and links; get a part of it with TARGET:path"
                    )));
                }
                match entry {
                    FolderEntry::File { address, executable } => {
                        let (address, executable) = (*address, *executable);
                        plan.files.push(PlannedFile { path: inside, address, executable });
                    }
                    FolderEntry::Link { target } => plan.links.push((inside, target.clone())),
                    FolderEntry::Folder { address } => {
                        if depth == Folder::<Address>::DEPTH_MOST {
                            let problem = format!("more than {depth} folders are inside of each other");
                            return Err(Failure::of(format!("{}: {problem}", inside.display())));
                        }
                        let folder = match known.get(address) {
                            Some(folder) => Arc::clone(folder),
                            None => Arc::new(find(backend, *address, &inside).await?),
                        };
                        known.insert(*address, Arc::clone(&folder));
                        plan.folders.push(inside.clone());
                        waiting.push((inside, folder, depth + 1));
                    }
                }
            }
        }
        Ok(plan)
    }

    fn len(&self) -> usize {
        self.folders.len() + self.files.len() + self.links.len()
    }
}

async fn find(backend: &Backend, address: Address, path: &Path) -> Result<Folder, Failure> {
    let wrong = |problem: &str| Failure::of(format!("{} is {address}, {problem}", path.display()));
    match backend.resolve(address).await?.recipe {
        None => Err(wrong("which is not a folder here")),
        Some(recipe) => match Folder::of(&recipe) {
            Ok(Some(folder)) => Ok(folder),
            Ok(None) => Err(wrong("which is another recipe, not a folder")),
            Err(malformed) => Err(wrong(&malformed.to_string())),
        },
    }
}
