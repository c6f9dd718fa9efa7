//! `anabranch recipe put`.

use std::path::{Path, PathBuf};

use anabranch_content::Address;
use clap::Args;
use serde_json::{Value as Json, json};

use super::at::{At, Missing};
use super::backend::Backend;
use super::folder::{self, PutFolder, Walked};
use super::input::Input;
use super::show;
use crate::failure::Failure;
use crate::out;

pub(super) const HELP: &str = "\
stdout: the address of a file or a folder, or a line `ADDRESS  PATH` for each of several. The address
of a file is the BLAKE3 hash of its bytes, as `b3sum` prints it. A folder is stored with names,
executable bits and symbolic links, which are not followed; equal folders have equal addresses.

  anabranch recipe put report.csv --ref report
  anabranch recipe put site/ --ref site       # then: anabranch recipe get site:index.html
  producer | anabranch recipe put -

Exit codes: 0 stored durably; 1 failed; 2 wrong usage; 3 stored, but data that had been acknowledged
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
        // All or none, as far as one can tell before: nobody learns the addresses of some.
        let given = self.files.iter().map(|path| Ok((path, Given::open(path, &self.at)?)));
        let given = given.collect::<Result<Vec<_>, Failure>>()?;
        let stopped = "stopped; no part of an unfinished file or folder is stored";
        self.at.run_until(stopped, Missing::Make, async |backend| {
            let mut kept = Vec::new();
            for (path, given) in given {
                let put = given.put(backend, path).await?;
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
                    let line = |(path, put): &(String, Kept)| format!("{}  {path}\n", put.address());
                    out::data(&several.iter().map(line).collect::<String>())
                }
            }
        })
    }
}

/// A path of the command line.
enum Given {
    File(Input),
    Folder(Walked),
}

impl Given {
    fn open(path: &Path, at: &At) -> Result<Given, Failure> {
        let store = at.folder();
        match path.is_dir() {
            true => Ok(Given::Folder(Walked::find(path, &store)?)),
            false => Ok(Given::File(Input::open(path, &store)?)),
        }
    }

    async fn put(self, backend: &Backend, path: &Path) -> Result<Kept, Failure> {
        match self {
            Given::File(input) => Ok(Kept::File(backend.put(&input).await?)),
            Given::Folder(walked) => {
                let put = folder::put(backend, path, walked).await?;
                out::note(&format!("{}: {}", path.display(), put.summary()));
                Ok(Kept::Folder(put))
            }
        }
    }
}

/// What was kept.
enum Kept {
    File(anabranch_content::Put),
    Folder(PutFolder),
}

impl Kept {
    fn address(&self) -> Address {
        match self {
            Kept::File(put) => put.address,
            Kept::Folder(put) => put.address,
        }
    }

    fn json(&self, path: &str) -> Json {
        let address = self.address().to_string();
        match self {
            Kept::File(put) => json!({"file": path, "address": address, "bytes": put.len, "new": put.new}),
            Kept::Folder(put) => json!({
                "folder": path, "address": address, "bytes": put.bytes, "new": put.new,
                "files": put.files, "folders": put.folders, "links": put.links,
            }),
        }
    }
}
