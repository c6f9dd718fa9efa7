//! The folder of a store: named by the user, or found.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::local_token;

const NAME: &str = ".anabranch";

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

    /// The folder. The default is the nearest `.anabranch`, or a new one in the current folder.
    pub(crate) fn find(&self) -> PathBuf {
        let above = || {
            let here = std::env::current_dir().ok()?;
            // A folder of another user, as in /tmp, is not trusted.
            here.ancestors().skip(1).map(|folder| folder.join(NAME)).find(|folder| is_ours(folder))
        };
        match &self.data {
            Some(data) => data.clone(),
            None if Path::new(NAME).is_dir() => NAME.into(),
            None => above().unwrap_or_else(|| NAME.into()),
        }
    }
}

fn is_ours(folder: &Path) -> bool {
    std::fs::metadata(folder).is_ok_and(|found| found.is_dir() && local_token::is_of_this_user(&found))
}
