//! Opening a store: this process becomes its owner, or a client of the process that owns it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anabranch_content::{Config, Error as StoreError, Store};
use anabranch_engine::clock::{Clock as _, SystemClock};
use anabranch_recipe::{Error, Executor, Functions};
use anabranch_server::{Client, ClientError, Code, ServerAddress};

use super::owner::Owner;
use super::{credentials, data_folder, socket};
use crate::failure::Failure;
use crate::out;

/// The location of recipes.
pub(super) enum Place {
    /// The store in a folder.
    Folder { folder: PathBuf, config: Config },
    /// A server by its URL.
    Server { server: ServerAddress },
}

/// The executor that does the work of a command.
pub(super) enum Connection {
    /// In this process.
    Owner(Owner),
    /// In the process that owns the store, or in a server that the user named.
    Client(Box<Client>),
}

/// The time for which one owner may hold the store without serving it: it opens the store, shuts down, or cannot serve.
const OWNER_WAIT: Duration = Duration::from_secs(15);

/// The first pause between two attempts, and the longest. Each pause is twice the previous one.
const PAUSES: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(32)];

impl Place {
    /// Connects, and retries if needed.
    pub(super) async fn open(&self) -> Result<Connection, Failure> {
        match self {
            Place::Folder { folder, config } => find_owner(folder, config).await,
            Place::Server { server } => {
                connect(server).await.map(|client| Connection::Client(Box::new(client)))
            }
        }
    }

    /// Whether a call failed because the owner of the store ended or shuts down, so that it can be retried elsewhere.
    pub(super) async fn is_handed_over(&self, failure: &Failure) -> bool {
        let (Place::Folder { folder, .. }, Failure::Failed(error)) = (self, failure) else { return false };
        match error.downcast_ref::<ClientError>() {
            Some(ClientError::Broken { .. }) => true,
            // An owner that shuts down refuses calls. The refusal of one that still listens is final.
            Some(ClientError::Call { code: Code::Unavailable | Code::Cancelled, .. }) => {
                socket::connect(folder).await.is_err()
            }
            _ => false,
        }
    }
}

async fn find_owner(folder: &Path, config: &Config) -> Result<Connection, Failure> {
    let mut last_owner = String::new();
    let mut began = SystemClock.now();
    let mut pause = PAUSES[0];
    loop {
        if let Some(client) = client_of(folder).await {
            return Ok(Connection::Client(Box::new(client)));
        }
        let is_new = !Store::is_in(folder);
        let refused = match Executor::open_with(folder, Functions::builtin(), config.clone()).await {
            Ok(executor) => {
                if is_new {
                    out::note(&format!("made a new store in {}", absolute(folder).display()));
                }
                return Ok(Connection::Owner(Owner::new(executor, folder)));
            }
            Err(Error::Store(error @ StoreError::Owned { .. })) => error,
            Err(error) => return Err(unopened(folder, &error)),
        };
        let StoreError::Owned { owner, listens_on } = &refused else { unreachable!("matched above") };
        if let Some(listens_on) = listens_on
            && let Ok(client) = Client::connect_to(&credentials::of_owner(listens_on, folder)).await
        {
            return Ok(Connection::Client(Box::new(client)));
        }
        let now = SystemClock.now();
        if *owner != last_owner {
            (last_owner, began) = (owner.clone(), now);
        }
        if now - began >= OWNER_WAIT {
            return Err(Failure::of(format!(
                "{}: {refused}, which has not answered for {} s; wait until it ends, or end it",
                folder.display(),
                OWNER_WAIT.as_secs(),
            )));
        }
        SystemClock.sleep_until(now + pause).await;
        pause = PAUSES[1].min(pause * 2);
    }
}

async fn client_of(folder: &Path) -> Option<Client> {
    let socket = socket::connect(folder).await.ok()?;
    Client::over_socket(socket).await.ok()
}

pub(super) async fn connect(server: &ServerAddress) -> Result<Client, Failure> {
    let url = &server.url;
    match url.starts_with("http://") || url.starts_with("https://") {
        true => Ok(Client::connect_to(server).await?),
        false => Err(Failure::Wrong(format!("--server {url}: an address looks like http://127.0.0.1:7421"))),
    }
}

/// Refuses to write a file or a folder over the store, or into it. A folder also spares the usual store inside of it.
pub(super) fn check_output(path: &Path, store: &Path) -> Result<(), Failure> {
    let Ok(output) = canonical(path) else { return Ok(()) };
    for store in [store, &output.join(data_folder::NAME)] {
        let Ok(store) = store.canonicalize() else { continue };
        let problem = match Store::is_in(&store) {
            true if output.starts_with(&store) => "is in",
            true if store.starts_with(&output) => "contains",
            _ => continue,
        };
        let (output, store) = (path.display(), store.display());
        return Err(Failure::of(format!(
            "{output} {problem} the store {store}; name another place to write"
        )));
    }
    Ok(())
}

/// The path without links. Its last part need not exist.
fn canonical(path: &Path) -> std::io::Result<PathBuf> {
    let path = absolute(path);
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Err(_), Some(parent), Some(name)) => Ok(parent.canonicalize()?.join(name)),
        (canonical, ..) => canonical,
    }
}

/// The absolute path, for messages.
pub(super) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// The failure of opening a store.
pub(crate) fn unopened(folder: &Path, error: &Error) -> Failure {
    let cause = std::error::Error::source(error).map(|cause| format!(": {cause}")).unwrap_or_default();
    let help = match error {
        Error::Store(StoreError::Disk { cause, .. }) => way_out(folder, cause.kind()),
        _ => "",
    };
    Failure::of(format!("{}: {error}{cause}{help}", folder.display()))
}

/// Advice for a failure of the disk.
fn way_out(folder: &Path, kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied if Store::is_in(folder) => {
            "; reading a store takes its lock and replays its log, so it must be writable: copy the folder, and name the \
             copy with --data"
        }
        ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied => {
            "; a store can only be made in a writable folder: name one with --data"
        }
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => "; --data names a folder, not a file",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_store_that_cannot_be_written_is_refused_with_the_way_out() {
        let folder = std::env::temp_dir().join(format!("anabranch-unopened-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let said = |kind| {
            let cause = Arc::new(io::Error::from(kind));
            let error = StoreError::Disk { doing: "open", path: "lock".into(), cause };
            format!("{:?}", unopened(&folder, &Error::Store(error)))
        };
        let read_only = [ErrorKind::ReadOnlyFilesystem, ErrorKind::PermissionDenied];
        for kind in read_only {
            assert!(said(kind).contains("in a writable folder: name one with --data"), "{}", said(kind));
        }
        std::fs::write(folder.join("format"), "").unwrap();
        for kind in read_only {
            assert!(said(kind).contains("copy the folder, and name the copy with --data"), "{}", said(kind));
        }
        assert!(!said(ErrorKind::NotFound).contains("--data"));
        assert!(said(ErrorKind::AlreadyExists).contains("--data names a folder, not a file"));
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
