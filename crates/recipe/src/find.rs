//! Resolves a text to an address: an address or its first digits, a name, or a path inside a folder.

use anabranch_content::Address;
use anabranch_text::closest;

use crate::error::Error;
use crate::executor::{Executor, MATCHES_MOST, is_short_address};
use crate::folder::{Folder, FolderEntry};

/// The separator between a folder and a path inside it.
const INSIDE: char = ':';

impl Executor {
    /// Resolves a text to an address. The text is an address, a name, the beginning of an address (at least
    /// [`SHORT_ADDRESS_LEAST`](crate::SHORT_ADDRESS_LEAST) hex digits), or `TARGET:path/inside` for a path in a folder.
    /// A name takes precedence over the beginning of an address, and a name with a colon over a path.
    pub async fn find(&self, text: &str) -> Result<Address, Error> {
        if let Some(address) = self.find_whole(text).await? {
            return Ok(address);
        }
        // A name has at most 255 bytes, so there are few positions to try.
        for (at, _) in text.char_indices().filter(|(at, letter)| *letter == INSIDE && *at <= 255) {
            let (target, path) = (&text[..at], &text[at + 1..]);
            if let Some(address) = self.find_whole(target).await? {
                return self.find_inside(address, target, path).await;
            }
        }
        Err(Error::NoSuchName { name: text.to_owned() })
    }

    /// The folder at an address; `None` if the address is not a folder.
    pub async fn folder(&self, address: &Address) -> Result<Option<Folder>, Error> {
        match self.resolve(address).await? {
            Some(recipe) => Ok(Folder::of(&recipe)?),
            None => Ok(None),
        }
    }

    async fn find_whole(&self, text: &str) -> Result<Option<Address>, Error> {
        if let Ok(address) = text.parse() {
            return Ok(Some(address));
        }
        let store = &self.inner.store;
        let named = match store.named(text).await {
            Err(anabranch_content::Error::Name { .. }) => None,
            named => named?,
        };
        if named.is_some() || !is_short_address(text) {
            return Ok(named);
        }
        match &store.find_prefix(text, MATCHES_MOST).await?[..] {
            [] => Ok(None),
            [address] => Ok(Some(*address)),
            several => Err(Error::Ambiguous { prefix: text.to_owned(), matches: several.to_vec() }),
        }
    }

    async fn find_inside(&self, mut address: Address, target: &str, path: &str) -> Result<Address, Error> {
        let fail =
            |problem: String| Error::NotInside { target: target.to_owned(), path: path.to_owned(), problem };
        let inside = path.strip_suffix('/').unwrap_or(path);
        let names = inside.split('/').filter(|_| !inside.is_empty());
        let mut walked = String::new();
        for (depth, name) in names.enumerate() {
            if depth == Folder::<Address>::DEPTH_MOST {
                return Err(fail(format!("the path has more than {depth} names")));
            }
            let Some(folder) = self.folder(&address).await? else {
                let what = if walked.is_empty() { target } else { &walked };
                return Err(fail(format!("{what:?} is not a folder")));
            };
            address = match folder.get(name) {
                Some(FolderEntry::File { address, .. } | FolderEntry::Folder { address }) => *address,
                Some(FolderEntry::Link { target }) => {
                    return Err(fail(format!(
                        "{name:?} is a symbolic link to {target:?}, which is not followed; name its target"
                    )));
                }
                None => {
                    let near = closest(name, folder.entries().map(|(name, _)| name));
                    let help = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
                    return Err(fail(format!("there is no {name:?} in the folder{help}")));
                }
            };
            if !walked.is_empty() {
                walked.push('/');
            }
            walked.push_str(name);
        }
        if path.is_empty() || self.folder(&address).await?.is_some() || !path.ends_with('/') {
            return Ok(address);
        }
        Err(fail(format!("{walked:?} is not a folder")))
    }
}
