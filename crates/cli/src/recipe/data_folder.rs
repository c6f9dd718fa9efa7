//! The folder of a store: named by the user, or found.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::failure::Failure;
use crate::local_token;

/// The name of the folder if the user gives none.
pub(super) const NAME: &str = ".anabranch";

/// The folder of a store.
#[derive(Args)]
pub(crate) struct DataFolder {
    /// The folder of the store; without this, `.anabranch` here or in the nearest folder above.
    #[arg(long, value_name = "DIR", env = "ANABRANCH_DATA", hide_env_values = true)]
    data: Option<PathBuf>,
}

impl DataFolder {
    /// The folder that the user named, if any.
    pub(crate) fn given(&self) -> Option<&Path> {
        self.data.as_deref()
    }

    /// The folder. The default is the nearest `.anabranch`, or a new one in the current folder. One of another user, as
    /// in /tmp, is not trusted: in the current folder it is an error, above it is not seen.
    pub(crate) fn find(&self) -> Result<PathBuf, Failure> {
        if let Some(data) = &self.data {
            return Ok(data.clone());
        }
        let here = Path::new(NAME);
        match std::fs::metadata(here) {
            Ok(found) if found.is_dir() && !local_token::is_of_this_user(&found) => {
                Err(Failure::of(format!(
                    "{NAME} in this folder belongs to another user; to use it anyway, name it with --data {NAME}"
                )))
            }
            Ok(found) if found.is_dir() => Ok(here.to_owned()),
            _ => Ok(above().unwrap_or_else(|| here.to_owned())),
        }
    }
}

fn above() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    here.ancestors().skip(1).map(|folder| folder.join(NAME)).find(|folder| is_ours(folder))
}

fn is_ours(folder: &Path) -> bool {
    std::fs::metadata(folder).is_ok_and(|found| found.is_dir() && local_token::is_of_this_user(&found))
}
