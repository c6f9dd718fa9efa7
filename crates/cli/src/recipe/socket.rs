//! The socket in a store's folder, on which the process that owns the store serves other commands.

use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, fchmod, open};
use rustix::process::geteuid;
use tokio::net::{UnixListener, UnixSocket, UnixStream};

const NAME: &str = "socket";

/// The longest path that fits into a socket's address, in bytes.
const PATH_MOST: usize = 107;

/// The most connections that wait to be accepted.
const BACKLOG: u32 = 1024;

/// A short enough path to the socket. It is valid as long as this exists.
struct ShortPath {
    path: PathBuf,
    _folder: Option<OwnedFd>,
}

impl ShortPath {
    fn of(folder: &Path) -> io::Result<ShortPath> {
        let path = folder.join(NAME);
        if path.as_os_str().len() <= PATH_MOST {
            return Ok(ShortPath { path, _folder: None });
        }
        let folder = open(folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let path = PathBuf::from(format!("/proc/self/fd/{}/{NAME}", folder.as_raw_fd()));
        Ok(ShortPath { path, _folder: Some(folder) })
    }
}

/// Listens in the folder of a store, which this process must own. A socket of an earlier owner is replaced. Only the
/// same user can connect.
pub(crate) fn bind(folder: &Path) -> io::Result<UnixListener> {
    remove(folder)?;
    let short = ShortPath::of(folder)?;
    let socket = UnixSocket::new_stream()?;
    // The file is created with the mode of the socket, so others can never connect.
    fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    socket.bind(&short.path)?;
    socket.listen(BACKLOG)
}

/// Connects to the owner of the store in a folder: a process of this user, or of the folder's owner, as when root names the
/// store of a user. Another user may be able to put a socket there.
pub(crate) async fn connect(folder: &Path) -> io::Result<UnixStream> {
    let short = ShortPath::of(folder)?;
    let stream = UnixStream::connect(&short.path).await?;
    let peer = stream.peer_cred()?.uid();
    match [geteuid().as_raw(), std::fs::metadata(folder)?.uid()].contains(&peer) {
        true => Ok(stream),
        false => Err(io::ErrorKind::PermissionDenied.into()),
    }
}

/// Removes the socket, if there is one. The caller still owns the store, so this is never the socket of the next owner.
pub(crate) fn remove(folder: &Path) -> io::Result<()> {
    match std::fs::remove_file(folder.join(NAME)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
