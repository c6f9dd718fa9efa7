//! The token files: one with the local token in plain text, one with the hashes of all other tokens.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use tracing::warn;

use super::{Denial, Scope, Token};

/// Errors of the token files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be read or written.
    #[error("{}: {cause}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The cause.
        #[source]
        cause: io::Error,
    },
    /// Other users can read a secret.
    #[error(
        "{}: other users can read the token (mode {mode:03o}); run `chmod 600 {}`, and remove the file for a new token \
         if another user may have seen it",
        file.display(), file.display()
    )]
    Readable {
        /// The file.
        file: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// A file has malformed content.
    #[error("{}: {problem}", file.display())]
    Content {
        /// The file.
        file: PathBuf,
        /// The problem.
        problem: String,
    },
    /// A name is taken, unknown or malformed.
    #[error("{problem}")]
    Name {
        /// The problem, and how to fix it.
        problem: String,
    },
}

/// A token other than the local one, as stored in the token file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRecord {
    /// Its name, which logs and limits use.
    pub name: Arc<str>,
    /// The scope.
    pub scope: Scope,
    /// The hash of the secret.
    hash: blake3::Hash,
    /// The time of its creation.
    pub created: SystemTime,
    /// The time of its expiry.
    pub expires: Option<SystemTime>,
}

/// The name of the local token.
const LOCAL: &str = "local";

/// The largest file that is read.
const BYTES_MOST: u64 = 1 << 20;

/// The maximum number of tokens.
const TOKENS_MOST: usize = 1000;

/// The longest name of a token.
const NAME_MOST: usize = 64;

/// The interval at which the token file is checked, so that a revoked token soon stops working.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The tokens of a server: the local one and those of a file, which may change while the server runs.
#[derive(Debug)]
pub struct TokenFiles {
    local: Token,
    local_hash: blake3::Hash,
    /// [`LOCAL`].
    local_name: Arc<str>,
    others: PathBuf,
    known: RwLock<KnownTokens>,
}

#[derive(Debug)]
struct KnownTokens {
    /// `None` if the file cannot be read.
    records: Option<Arc<[TokenRecord]>>,
    version: Option<FileVersion>,
    looked: SystemTime,
}

/// The identity of a file's content. It changes whenever the file is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileVersion {
    inode: u64,
    modified: (i64, i64),
    len: u64,
}

impl TokenFiles {
    /// Reads the local token, creating it if its file does not exist, and the other tokens, whose file is optional.
    ///
    /// # Errors
    /// If a file cannot be read or written, other users can read the local token, or a file has malformed content.
    pub fn open(local: &Path, others: &Path) -> Result<TokenFiles, Error> {
        let known = KnownTokens::read(others)?;
        let local = local_token(local)?;
        let local_hash = local.hash();
        let (local_name, others, known) = (LOCAL.into(), others.to_owned(), RwLock::new(known));
        Ok(TokenFiles { local, local_hash, local_name, others, known })
    }

    /// The local token.
    pub fn local(&self) -> &Token {
        &self.local
    }

    /// Finds the token that a client sent. The time this takes does not depend on the secrets.
    pub(super) fn find(&self, shown: &Token) -> Result<FoundToken, Denial> {
        let hash = shown.hash();
        let mut found = None;
        if hash == self.local_hash {
            let name = Arc::clone(&self.local_name);
            found = Some(FoundToken { name, scope: Scope::Admin, expires: None });
        }
        let records = self.records();
        for record in records.iter().flat_map(|records| records.iter()) {
            if record.hash == hash {
                let TokenRecord { name, scope, expires, .. } = record;
                found = Some(FoundToken { name: Arc::clone(name), scope: *scope, expires: *expires });
            }
        }
        found.ok_or(if records.is_some() { Denial::Unknown } else { Denial::Unreadable })
    }

    /// The other tokens, read again if their file has changed. `None` if it cannot be read, which is logged.
    fn records(&self) -> Option<Arc<[TokenRecord]>> {
        let now = super::wall_clock();
        // A clock that was set back must not keep a revoked token alive.
        let is_fresh =
            |known: &KnownTokens| now.duration_since(known.looked).is_ok_and(|age| age < LOOK_EVERY);
        {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            if is_fresh(&known) {
                return known.records.clone();
            }
        }
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if !is_fresh(&known) {
            known.looked = now;
            let read = match FileVersion::of(&self.others) {
                Ok(version) if version == known.version && known.records.is_some() => {
                    return known.records.clone();
                }
                Ok(_) => KnownTokens::read(&self.others),
                Err(error) => Err(error),
            };
            match read {
                Ok(read) => *known = read,
                Err(error) => {
                    warn!(%error, "the file of tokens cannot be read, so its tokens are refused");
                    known.records = None;
                }
            }
        }
        known.records.clone()
    }
}

/// A token that a client sent, and its scope.
pub(super) struct FoundToken {
    pub(super) name: Arc<str>,
    pub(super) scope: Scope,
    pub(super) expires: Option<SystemTime>,
}

impl FileVersion {
    fn of(file: &Path) -> Result<Option<FileVersion>, Error> {
        match fs::metadata(file) {
            Ok(found) => Ok(Some(FileVersion {
                inode: found.ino(),
                modified: (found.mtime(), found.mtime_nsec()),
                len: found.len(),
            })),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(cause) => Err(Error::File { file: file.to_owned(), cause }),
        }
    }
}

impl KnownTokens {
    fn read(file: &Path) -> Result<KnownTokens, Error> {
        // The version is taken before the file is read. If the file changes in between, it is read once more.
        let version = FileVersion::of(file)?;
        let records = Some(TokenRecord::list(file)?.into());
        Ok(KnownTokens { records, version, looked: super::wall_clock() })
    }
}

/// Reads the token of a file, or creates the file with a new token if it does not exist.
fn local_token(file: &Path) -> Result<Token, Error> {
    let failed = |cause| Error::File { file: file.to_owned(), cause };
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    match made {
        Ok(mut made) => {
            let token = Token::generate().map_err(failed)?;
            made.write_all(format!("{}\n", token.as_str()).as_bytes())
                .and_then(|()| made.sync_all())
                .map_err(failed)?;
            Ok(token)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Token::of_file(file),
        Err(cause) => Err(failed(cause)),
    }
}

impl Token {
    /// Reads a token from a file that only its owner may read.
    ///
    /// # Errors
    /// If the file cannot be read, other users can read it, or it does not hold a token.
    pub fn of_file(file: &Path) -> Result<Token, Error> {
        let opened = File::open(file).map_err(|cause| Error::File { file: file.to_owned(), cause })?;
        let mode = opened.metadata().map_err(|cause| Error::File { file: file.to_owned(), cause })?.mode();
        if mode & 0o077 != 0 {
            return Err(Error::Readable { file: file.to_owned(), mode: mode & 0o777 });
        }
        let text = read(opened, file)?;
        Token::parse(text.trim()).ok_or_else(|| Error::Content {
            file: file.to_owned(),
            problem: "expected one token, printable ASCII on one line; remove the file for a new token"
                .to_owned(),
        })
    }
}

fn read(opened: File, file: &Path) -> Result<String, Error> {
    let mut text = String::new();
    match opened.take(BYTES_MOST + 1).read_to_string(&mut text) {
        Ok(len) if len as u64 > BYTES_MOST => {
            Err(Error::Content { file: file.to_owned(), problem: "the file has more than 1 MiB".to_owned() })
        }
        Ok(_) => Ok(text),
        Err(cause) => Err(Error::File { file: file.to_owned(), cause }),
    }
}

/// `tokens.toml`.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WrittenFile {
    #[serde(default, rename = "token")]
    tokens: Vec<WrittenToken>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct WrittenToken {
    name: String,
    scope: String,
    /// BLAKE3, as 64 hex digits.
    hash: String,
    /// Seconds since 1970.
    created: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<u64>,
}

impl TokenRecord {
    /// The tokens of a file; none if there is no file.
    ///
    /// # Errors
    /// If the file cannot be read or has malformed content.
    pub fn list(file: &Path) -> Result<Vec<TokenRecord>, Error> {
        let opened = match File::open(file) {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(cause) => return Err(Error::File { file: file.to_owned(), cause }),
        };
        let wrong = |problem: String| Error::Content { file: file.to_owned(), problem };
        let written: WrittenFile = toml::from_str(&read(opened, file)?)
            .map_err(|error| wrong(error.to_string().trim_end().to_owned()))?;
        if written.tokens.len() > TOKENS_MOST {
            return Err(wrong(format!("there are more than {TOKENS_MOST} tokens")));
        }
        let read = |token: &WrittenToken| {
            token
                .read()
                .map_err(|problem| wrong(format!("token {}: {problem}", anabranch_text::quote(&token.name))))
        };
        written.tokens.iter().map(read).collect()
    }

    /// Adds a token to a file and returns its secret, which is not stored.
    ///
    /// # Errors
    /// If the name is taken or malformed, or the file cannot be read or written.
    pub fn add(file: &Path, name: &str, scope: Scope, lifetime: Option<Duration>) -> Result<Token, Error> {
        check_name(name).map_err(|problem| Error::Name { problem })?;
        let _locked = Lock::take(file)?;
        let mut records = TokenRecord::list(file)?;
        if records.iter().any(|record| &*record.name == name) {
            let quoted = anabranch_text::quote(name);
            let problem = format!("there is a token {quoted}; revoke it first, or use another name");
            return Err(Error::Name { problem });
        }
        if records.len() >= TOKENS_MOST {
            return Err(Error::Name { problem: format!("there are {TOKENS_MOST} tokens; revoke one first") });
        }
        let token = Token::generate().map_err(|cause| Error::File { file: file.to_owned(), cause })?;
        let created = super::wall_clock();
        let expires = lifetime.and_then(|lifetime| created.checked_add(lifetime));
        records.push(TokenRecord { name: name.into(), scope, hash: token.hash(), created, expires });
        write(file, &records)?;
        Ok(token)
    }

    /// Removes a token from a file.
    ///
    /// # Errors
    /// If there is no such token, or the file cannot be read or written.
    pub fn revoke(file: &Path, name: &str) -> Result<(), Error> {
        let _locked = Lock::take(file)?;
        let mut records = TokenRecord::list(file)?;
        let before = records.len();
        records.retain(|record| &*record.name != name);
        if records.len() == before {
            let near = anabranch_text::closest(name, records.iter().map(|record| &*record.name));
            let help = match near {
                Some(near) => format!("did you mean {}?", anabranch_text::quote(near)),
                None => "`anabranch token list` lists them".to_owned(),
            };
            let problem = format!("there is no token {}; {help}", anabranch_text::quote(name));
            return Err(Error::Name { problem });
        }
        write(file, &records)
    }
}

impl WrittenToken {
    fn read(&self) -> Result<TokenRecord, String> {
        check_name(&self.name)?;
        let time = |seconds: u64| {
            let time = UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
            time.ok_or_else(|| format!("{seconds} is not a time"))
        };
        Ok(TokenRecord {
            name: self.name.as_str().into(),
            scope: self.scope.parse().map_err(|error| format!("scope: {error}"))?,
            hash: blake3::Hash::from_hex(&self.hash)
                .map_err(|_| "hash: expected 64 hex digits".to_owned())?,
            created: time(self.created)?,
            expires: self.expires.map(time).transpose()?,
        })
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte);
    match name {
        LOCAL | "socket" | "unknown" => Err(format!("`{name}` is a name of the server's own; use another")),
        "" => Err("a token has a name".to_owned()),
        _ if name.len() > NAME_MOST || !name.bytes().all(fits) => {
            Err(format!("a token's name has up to {NAME_MOST} letters, digits, `-`, `_`, `.` and `@`"))
        }
        _ => Ok(()),
    }
}

/// Locks a token file against other commands until it is dropped.
struct Lock(#[allow(dead_code, reason = "held open")] File);

impl Lock {
    fn take(file: &Path) -> Result<Lock, Error> {
        let path = file.with_extension("toml.lock");
        let failed = |cause| Error::File { file: path.clone(), cause };
        let lock = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        lock.lock().map_err(failed)?;
        Ok(Lock(lock))
    }
}

/// Replaces a file atomically, so that a reader sees either the old or the new content.
fn write(file: &Path, records: &[TokenRecord]) -> Result<(), Error> {
    let seconds = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let tokens = records.iter().map(|record| WrittenToken {
        name: (*record.name).to_owned(),
        scope: record.scope.word().to_owned(),
        hash: record.hash.to_hex().to_string(),
        created: seconds(record.created),
        expires: record.expires.map(seconds),
    });
    let written = WrittenFile { tokens: tokens.collect() };
    let text = toml::to_string(&written).expect("names and numbers can be written");
    let next = file.with_extension("toml.new");
    let replace = || {
        let mut opened =
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&next)?;
        opened.write_all(text.as_bytes())?;
        opened.sync_all()?;
        fs::rename(&next, file)
    };
    replace().map_err(|cause| Error::File { file: file.to_owned(), cause })
}
