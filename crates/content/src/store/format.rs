//! The format of a store, and the mark files that say how it was closed.
//!
//! Format 2 keeps the aliases of derivations in a table of their own, and reads a derivation's inputs out of its bytes.
//! A store of format 1 is upgraded when it is opened: its index is rebuilt from the log, and
//! [`OpenReport::upgrade_from`] says so until its owner has converted its own data ([`Store::finish_upgrade`]).
//!
//! [`OpenReport::upgrade_from`]: super::OpenReport::upgrade_from
//! [`Store::finish_upgrade`]: super::Store::finish_upgrade

use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::Path;

use crate::log::{Position, Salt};
use crate::{Disk, Error, Open, Wait};

/// The format that this code writes, and the oldest one that it reads.
const FORMAT: u32 = 2;
const OLDEST: u32 = 1;

pub(super) const FORMAT_FILE: &str = "format";
const CLOSED_FILE: &str = "closed";
const REBUILD_FILE: &str = "rebuild";

/// The content of the format file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    pub salt: Salt,
    /// The format that the store is being upgraded from.
    pub upgrade_from: Option<u32>,
}

/// Reads the format file, or writes it in a new store. A store of an older format is marked as the current one.
pub(super) fn check(disk: &dyn Disk) -> Result<Format, Error> {
    let path = Path::new(FORMAT_FILE);
    let failed = |doing| move |cause| Error::disk(doing, path, cause);
    let Some(text) = read(disk, FORMAT_FILE)? else {
        let log = Path::new("log");
        match disk.list(log) {
            Ok(entries) if entries.is_empty() => {}
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
            Ok(_) => return Err(Error::Format { found: "no format file beside a log".to_owned() }),
            Err(cause) => return Err(Error::disk("list", log, cause)),
        }
        let salt = Salt(RandomState::new().build_hasher().finish() as u32);
        let format = Format { salt, upgrade_from: None };
        write(disk, format).map_err(failed("write"))?;
        return Ok(format);
    };
    let (number, format) = parse_format(&text).ok_or_else(|| Error::Format { found: format!("{text:?}") })?;
    match number {
        FORMAT => Ok(format),
        OLDEST..FORMAT => {
            // First of all: even if this process dies, the index of the old format must not be used again.
            make_mark(disk, REBUILD_FILE, "")
                .map_err(|cause| Error::disk("write", Path::new(REBUILD_FILE), cause))?;
            let format = Format { upgrade_from: Some(number), ..format };
            write(disk, format).map_err(failed("write"))?;
            Ok(format)
        }
        _ => Err(Error::Newer { found: number, known: FORMAT }),
    }
}

/// Marks the upgrade from an older format as done.
pub(super) fn finish_upgrade(disk: &dyn Disk, salt: Salt) -> Result<(), Error> {
    let format = Format { salt, upgrade_from: None };
    write(disk, format).map_err(|cause| Error::disk("write", Path::new(FORMAT_FILE), cause))
}

/// Parses the format file: one line with the program's name, the format, the salt of the log, the format it is upgraded
/// from (if any), and a checksum of these.
pub(crate) fn parse_format(text: &str) -> Option<(u32, Format)> {
    let (front, checksum) = text.strip_suffix('\n')?.rsplit_once(' ')?;
    let mut words = front.strip_prefix("anabranch content ")?.split(' ');
    let number: u32 = words.next()?.parse().ok()?;
    // A newer format may add fields, so the number is taken before the rest is parsed.
    if number > FORMAT {
        return Some((number, Format { salt: Salt(0), upgrade_from: None }));
    }
    let salt = u32::from_str_radix(words.next()?, 16).ok()?;
    let upgrade_from = words.next().map(|word| word.strip_prefix("from-")?.parse().ok());
    let upgrade_from = match upgrade_from {
        Some(from) => Some(from?),
        None => None,
    };
    let format = Format { salt: Salt(salt), upgrade_from };
    let whole = words.next().is_none() && line(number, format) == text;
    (whole && number >= OLDEST && !checksum.is_empty()).then_some((number, format))
}

fn line(number: u32, format: Format) -> String {
    let upgrade = format.upgrade_from.map(|from| format!(" from-{from}")).unwrap_or_default();
    let front = format!("anabranch content {number} {:08x}{upgrade}", format.salt.0);
    format!("{front} {:08x}\n", crc32fast::hash(front.as_bytes()))
}

fn write(disk: &dyn Disk, format: Format) -> io::Result<()> {
    let new = Path::new("format.new");
    match disk.remove(new) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
        _ => {}
    }
    let file = disk.open(new, Open::Create)?;
    file.write_at(line(FORMAT, format).as_bytes(), 0)?;
    file.sync()?;
    disk.rename(new, Path::new(FORMAT_FILE))?;
    disk.sync_folder(Path::new(""))
}

/// The text of a short file; `None` if there is no such file.
fn read(disk: &dyn Disk, name: &str) -> Result<Option<String>, Error> {
    let failed = |doing, cause| Error::disk(doing, Path::new(name), cause);
    let file = match disk.open(Path::new(name), Open::Read) {
        Ok(file) => file,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(cause) => return Err(failed("open", cause)),
    };
    let mut bytes = vec![0; 256];
    let count = file.read_at(&mut bytes, 0, Wait::Yes).map_err(|cause| failed("read", cause))?;
    Ok(Some(String::from_utf8_lossy(&bytes[..count]).into_owned()))
}

/// The mark of a store that was shut down cleanly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClosedMark {
    /// The first segment of the log, and where the log ends. Unknown in the mark of a store of format 1, or in one that
    /// is damaged.
    pub log: Option<(u32, Position)>,
}

/// Reads and removes the mark of a clean shutdown; `None` if there is none.
pub(super) fn take_closed(disk: &dyn Disk) -> Result<Option<ClosedMark>, Error> {
    let Some(text) = read(disk, CLOSED_FILE)? else { return Ok(None) };
    take_mark(disk, CLOSED_FILE)?;
    Ok(Some(ClosedMark { log: parse_closed(&text) }))
}

fn parse_closed(text: &str) -> Option<(u32, Position)> {
    let mut words = text.strip_suffix('\n')?.split(' ');
    let (first, segment) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let end = Position { segment, offset: words.next()?.parse().ok()? };
    (closed_line(first, end) == text).then_some((first, end))
}

fn closed_line(first: u32, end: Position) -> String {
    let front = format!("{first} {} {}", end.segment, end.offset);
    format!("{front} {:08x}\n", crc32fast::hash(front.as_bytes()))
}

/// Marks a store as shut down cleanly, with a log from this segment to this position.
pub(super) fn mark_closed(disk: &dyn Disk, first: u32, end: Position) -> Result<(), Error> {
    make_mark(disk, CLOSED_FILE, &closed_line(first, end)).map_err(|cause| {
        // Half a mark would say that the shutdown was clean.
        let _ = take_mark(disk, CLOSED_FILE);
        Error::disk("write", Path::new(CLOSED_FILE), cause)
    })
}

/// Asks for the index to be rebuilt the next time the store is opened.
pub(super) fn ask_for_new_index(disk: &dyn Disk) {
    // If this write fails too, the damage will be found again.
    let _ = make_mark(disk, REBUILD_FILE, "");
}

/// Whether a rebuild of the index was requested.
pub(super) fn is_new_index_asked_for(disk: &dyn Disk) -> Result<bool, Error> {
    Ok(read(disk, REBUILD_FILE)?.is_some())
}

/// Removes the request for a rebuild: the index is new.
pub(super) fn index_is_new(disk: &dyn Disk) -> Result<(), Error> {
    take_mark(disk, REBUILD_FILE)
}

fn take_mark(disk: &dyn Disk, name: &str) -> Result<(), Error> {
    match disk.remove(Path::new(name)) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => {
            Err(Error::disk("remove", Path::new(name), cause))
        }
        _ => Ok(()),
    }
}

fn make_mark(disk: &dyn Disk, name: &str, text: &str) -> io::Result<()> {
    match disk.open(Path::new(name), Open::Create) {
        Ok(file) => {
            file.write_at(text.as_bytes(), 0)?;
            file.sync()?;
        }
        Err(cause) if cause.kind() != io::ErrorKind::AlreadyExists => return Err(cause),
        Err(_) => {}
    }
    disk.sync_folder(Path::new(""))
}
