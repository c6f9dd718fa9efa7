//! Programs that check code.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

/// The programs that check code. Without one, a parser does.
#[derive(Clone, Debug)]
pub struct Tools {
    pub ruff: Option<PathBuf>,
    pub sqlfluff: Option<PathBuf>,
    /// The longest run of a program on one batch.
    pub wall: Duration,
}

impl Tools {
    /// The programs that the environment's `PATH` has.
    pub fn on_path() -> Tools {
        Tools { ruff: find("ruff"), sqlfluff: find("sqlfluff"), ..Tools::none() }
    }

    /// Parsers only.
    pub fn none() -> Tools {
        Tools { ruff: None, sqlfluff: None, wall: Duration::from_secs(120) }
    }
}

fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| {
        file.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    })
}
