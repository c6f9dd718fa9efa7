//! `anabranch recipe put`.

use std::path::{Path, PathBuf};

use anabranch_content::Address;
use clap::Args;
use serde_json::{Value as Json, json};

use super::at::{At, MissingStore};
use super::backend::Backend;
use super::folder::{self, PutFolder, WalkedFolder};
use super::input::Input;
use super::show;
use crate::failure::Failure;
use crate::out;

pub(super) const HELP: &str = "\
stdout: the address of a file or a folder, or a line `ADDRESS  PATH` for each of several. The address \
of a file is the BLAKE3 hash of its bytes, as `b3sum` prints it. A folder is stored with names, \
executable bits and symbolic links, which are not followed; equal folders have equal addresses.

  anabranch recipe put report.csv --ref report
  anabranch recipe put site/ --ref site       # then: anabranch recipe get site:index.html
  producer | anabranch recipe put -

Exit codes: 0 stored durably; 1 failed; 2 wrong usage; 3 stored, but data that had been acknowledged \
before was lost (the log says what).";

/// Stores files as blobs, and folders.
#[derive(Args)]
pub(crate) struct Put {
    /// Files and folders; `-` is stdin.
    #[arg(value_name = "PATH", required = true)]
    files: Vec<PathBuf>,
    /// A named reference for the file or the folder.
    #[arg(long = "ref", value_name = "NAME")]
    reference: Option<String>,
    #[command(flatten)]
    at: At,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

impl Put {
    pub(crate) fn run(self) -> Result<(), Failure> {
        if self.reference.is_some() && self.files.len() > 1 {
            return Err(Failure::Wrong("--ref names one file or folder; put them one by one".to_owned()));
        }
        // All paths are opened first, so that a bad path fails before any address is printed.
        let open = || {
            let paths = self.files.iter().map(|path| Ok((path, PathToPut::open(path, &self.at)?)));
            paths.collect::<Result<Vec<_>, Failure>>()
        };
        let stopped = "stopped; no part of an unfinished file or folder is stored";
        self.at.run_with(stopped, MissingStore::Make, open, async |backend, paths| {
            let mut kept = Vec::new();
            for (path, to_put) in paths {
                let put = to_put.put(backend, path).await?;
                if let Some(name) = &self.reference {
                    backend.set_ref(name, Some(put.address())).await?;
                }
                kept.push((path.display().to_string(), put));
            }
            if self.json {
                return show::json(&kept.iter().map(|(path, put)| put.json(path)).collect());
            }
            match &kept[..] {
                [(_, put)] => out::data(&format!("{}\n", put.address())),
                several => {
                    let line =
                        |(path, put): &(String, StoredPath)| out::line(&format!("{}  {path}", put.address()));
                    out::data(&several.iter().map(line).collect::<String>())
                }
            }
        })
    }
}

/// An opened path of the command line.
enum PathToPut {
    File(Input),
    Folder(WalkedFolder),
}

impl PathToPut {
    fn open(path: &Path, at: &At) -> Result<PathToPut, Failure> {
        let store = at.folder()?;
        match path.is_dir() {
            true => Ok(PathToPut::Folder(WalkedFolder::find(path, &store)?)),
            false => {
                let input = Input::open(path, &store)?;
                // The command before the pipe may have failed.
                if path == Path::new("-") && input.len() == 0 {
                    out::note("warning: stdin was empty, so the stored blob is empty");
                }
                Ok(PathToPut::File(input))
            }
        }
    }

    async fn put(self, backend: &Backend, path: &Path) -> Result<StoredPath, Failure> {
        match self {
            PathToPut::File(input) => Ok(StoredPath::File(backend.put(&input).await?)),
            PathToPut::Folder(walked) => {
                let put = folder::put(backend, walked).await?;
                out::note(&format!("{}: {}", path.display(), put.summary()));
                Ok(StoredPath::Folder(put))
            }
        }
    }
}

/// A stored path.
enum StoredPath {
    File(anabranch_content::Put),
    Folder(PutFolder),
}

impl StoredPath {
    fn address(&self) -> Address {
        match self {
            StoredPath::File(put) => put.address,
            StoredPath::Folder(put) => put.address,
        }
    }

    fn json(&self, path: &str) -> Json {
        let address = self.address().to_string();
        match self {
            StoredPath::File(put) => {
                json!({"file": path, "address": address, "bytes": put.len, "new": put.new})
            }
            StoredPath::Folder(put) => json!({
                "folder": path, "address": address, "bytes": put.bytes, "new": put.new,
                "files": put.files, "folders": put.folders, "links": put.links,
            }),
        }
    }
}
