//! The file of a server's local token. A server with `--token-file` notes the file in its data folder, so that commands with
//! the same `--data` find the token.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// The usual token file of a data folder.
const USUAL: &str = "token";
/// The note: the path of the token file.
const NOTE: &str = "token-file";

/// The token file of the server of a data folder. `None` if the folder or the note is another user's, who could name a file
/// of this user as the token for a server of his own.
pub(crate) fn find(data: &Path) -> Result<Option<PathBuf>, Failure> {
    found(data).map_err(|error| {
        Failure::of(format!("the place of the token cannot be read in {}: {error}", data.display()))
    })
}

fn found(data: &Path) -> io::Result<Option<PathBuf>> {
    if !is_of_this_user(&fs::metadata(data)?) {
        return Ok(None);
    }
    let mut note = match File::open(data.join(NOTE)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Some(data.join(USUAL))),
        note => note?,
    };
    if !is_of_this_user(&note.metadata()?) {
        return Ok(None);
    }
    let mut path = Vec::new();
    note.read_to_end(&mut path)?;
    Ok(Some(PathBuf::from(OsString::from_vec(path))))
}

/// Whether a file or folder belongs to the user of this process.
pub(crate) fn is_of_this_user(file: &fs::Metadata) -> bool {
    file.uid() == rustix::process::geteuid().as_raw()
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
    // The note of the last start is mostly right, and a full disk takes no other.
    if fs::read(&note).is_ok_and(|noted| noted == file.as_os_str().as_encoded_bytes()) {
        return Ok(());
    }
    let unfinished = data.join(format!("{NOTE}.new"));
    let mut options = OpenOptions::new();
    let mut written = options.write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
    written.write_all(file.as_os_str().as_encoded_bytes())?;
    fs::rename(unfinished, note)
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn folder(test: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("anabranch-token-{}-{test}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    #[test]
    fn a_note_is_found_as_it_was_written() {
        let data = folder("note");
        assert_eq!(find(&data).unwrap(), Some(data.join("token")));
        // Paths are bytes, and may end with a line break.
        for name in [OsStr::from_bytes(b"t\xff"), OsStr::new("token\n")] {
            let file = Path::new("/elsewhere").join(name);
            note(&data, &file).unwrap();
            assert_eq!(find(&data).unwrap(), Some(file));
        }
        note(&data, &data.join("token")).unwrap();
        assert_eq!(find(&data).unwrap(), Some(data.join("token")));
        fs::remove_dir_all(data).unwrap();
    }

    /// A server starts again on a full disk, where nothing can be written.
    #[test]
    fn a_note_that_is_right_is_not_written_again() {
        let (data, file) = (folder("again"), Path::new("/elsewhere/token"));
        note(&data, file).unwrap();
        // In its place, no new note can be prepared.
        fs::create_dir(data.join("token-file.new")).unwrap();
        note(&data, file).unwrap();
        assert_eq!(find(&data).unwrap(), Some(file.to_owned()));
        assert!(note(&data, Path::new("/another/token")).is_err());
        fs::remove_dir_all(data).unwrap();
    }

    #[test]
    fn a_note_that_cannot_be_read_is_an_error() {
        let data = folder("unread");
        fs::create_dir(data.join(NOTE)).unwrap();
        let Failure::Failed(told) = find(&data).unwrap_err() else { panic!("it fails") };
        assert!(told.to_string().contains("cannot be read in"), "{told}");
        fs::remove_dir_all(data).unwrap();
    }

    #[test]
    fn a_stranger_names_no_token() {
        // Only root can give files away, and only another user than root finds folders of root.
        let (data, root) = (folder("stranger"), rustix::process::geteuid().is_root());
        fs::write(data.join(NOTE), "/etc/hostname").unwrap();
        fs::set_permissions(data.join(NOTE), fs::Permissions::from_mode(0o644)).unwrap();
        if root {
            std::os::unix::fs::chown(data.join(NOTE), Some(65_534), None).unwrap();
            assert_eq!(find(&data).unwrap(), None);
            fs::remove_file(data.join(NOTE)).unwrap();
            std::os::unix::fs::chown(&data, Some(65_534), None).unwrap();
            assert_eq!(find(&data).unwrap(), None);
        } else {
            assert_eq!(find(Path::new("/")).unwrap(), None);
        }
        fs::remove_dir_all(data).unwrap();
    }
}
