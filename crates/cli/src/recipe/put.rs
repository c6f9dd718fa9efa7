//! `anabranch recipe put`.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::at::{At, Missing};
use super::input::Input;
use super::show;
use crate::failure::Failure;
use crate::out;

pub(super) const HELP: &str = "\
stdout: the address of a file, or a line `ADDRESS  FILE` for each of several. It is the BLAKE3 hash
of the bytes, as `b3sum` prints it.

  anabranch recipe put report.csv --ref report
  producer | anabranch recipe put -

Exit codes: 0 stored durably; 1 failed; 2 wrong usage; 3 stored, but data that had been acknowledged
before was lost (the log says what).";

/// Stores files as blobs.
#[derive(Args)]
pub(crate) struct Put {
    /// Files; `-` is stdin.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// A named reference for the blob.
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
            return Err(Failure::Wrong("--ref names one blob; put the files one by one".to_owned()));
        }
        // All or none, as far as one can tell before: nobody learns the addresses of some.
        let inputs = self.files.iter().map(|file| Ok((file, Input::open(file, &self.at.folder())?)));
        let inputs = inputs.collect::<Result<Vec<_>, Failure>>()?;
        self.at.run_until("stopped; no part of the unfinished file is stored", Missing::Make, async |backend| {
            let mut kept = Vec::new();
            for (file, input) in &inputs {
                let put = backend.put(input).await?;
                if let Some(name) = &self.reference {
                    backend.set_ref(name, Some(put.address)).await?;
                }
                kept.push((file.display().to_string(), put));
            }
            if self.json {
                let one = |(file, put): &(String, anabranch_content::Put)| {
                    json!({"file": file, "address": put.address.to_string(), "bytes": put.len, "new": put.new})
                };
                return show::json(&kept.iter().map(one).collect());
            }
            match &kept[..] {
                [(_, put)] => out::data(&format!("{}\n", put.address)),
                several => {
                    let line = |(file, put): &(String, anabranch_content::Put)| format!("{}  {file}\n", put.address);
                    out::data(&several.iter().map(line).collect::<String>())
                }
            }
        })
    }
}
