//! The file of a server's local token. A server with `--token-file` notes the file in its data folder, so that commands with
//! the same `--data` find the token.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The usual token file of a data folder.
const USUAL: &str = "token";
/// The note: the path of the token file.
const NOTE: &str = "token-file";

/// The token file of the server of a data folder.
pub(crate) fn find(data: &Path) -> PathBuf {
    match fs::read_to_string(data.join(NOTE)) {
        Ok(noted) if !noted.trim().is_empty() => PathBuf::from(noted.trim_end_matches('\n')),
        _ => data.join(USUAL),
    }
}

/// Notes the token file of the server that owns a data folder. The note of an earlier server is replaced.
pub(crate) fn note(data: &Path, file: &Path) -> Result<(), Failure> {
    write(data, file).map_err(|error| {
        Failure::of(format!("the place of the token cannot be written into {}: {error}", data.display()))
    })
}

fn write(data: &Path, file: &Path) -> io::Result<()> {
    let note = data.join(NOTE);
    let file = std::path::absolute(file)?;
    if file == std::path::absolute(data.join(USUAL))? {
        return match fs::remove_file(note) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
    }
    let unfinished = data.join(format!("{NOTE}.new"));
    let mut options = OpenOptions::new();
    let mut written = options.write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    written.write_all(file.as_os_str().as_encoded_bytes())?;
    fs::rename(unfinished, note)
}
