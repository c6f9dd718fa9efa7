//! A segment that leaves the log while somebody reads it.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use super::{SALT, Segments};
use crate::{Disk, Entry, File, Memory, Open, Wait};

/// A disk that runs a closure in the middle of one call: after a file is opened, before one is removed or renamed.
#[derive(Default)]
struct InterruptedDisk {
    memory: Memory,
    meanwhile: Mutex<Option<(&'static str, Interruption)>>,
}

type Interruption = Box<dyn FnOnce() + Send>;

impl InterruptedDisk {
    fn interrupt(&self, call: &str) {
        let run = self.meanwhile.lock().unwrap().take_if(|(at, _)| *at == call);
        if let Some((_, run)) = run {
            run();
        }
    }
}

impl fmt::Debug for InterruptedDisk {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.memory.fmt(out)
    }
}

impl Disk for InterruptedDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        let file = self.memory.open(path, how);
        self.interrupt("open");
        file
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<Entry>> {
        self.memory.list(folder)
    }

    fn make_folder(&self, folder: &Path) -> io::Result<()> {
        self.memory.make_folder(folder)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.interrupt("rename");
        self.memory.rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.interrupt("remove");
        self.memory.remove(path)
    }

    fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        self.memory.sync_folder(folder)
    }
}

/// Runs `first` with `second` in the middle of its call `at`; afterwards no file of the segment may be open.
fn check(at: &'static str, first: fn(&Segments), second: fn(&Segments)) {
    let disk = Arc::new(InterruptedDisk::default());
    let new = || Segments::new(Arc::clone(&disk) as Arc<dyn Disk>, SALT).unwrap();
    new().create(1).unwrap();
    // A second one has not opened the segment yet.
    let segments = Arc::new(new());
    disk.make_folder(Path::new("quarantine")).unwrap();
    let other = Arc::clone(&segments);
    *disk.meanwhile.lock().unwrap() = Some((at, Box::new(move || second(&other))));
    first(&segments);
    assert!(disk.meanwhile.lock().unwrap().is_none(), "`{at}` was never called");
    let open = segments.file(1, Wait::No).map_err(|error| error.kind());
    assert_eq!(open.err(), Some(io::ErrorKind::WouldBlock), "the segment's file is still open");
}

fn read(segments: &Segments) {
    segments.file(1, Wait::Yes).unwrap();
}

#[test]
fn a_segment_that_leaves_while_it_is_opened_is_not_kept_open() {
    check("open", read, |segments| segments.remove(1).unwrap());
    check("open", read, |segments| segments.quarantine(1).unwrap());
}

#[test]
fn a_segment_that_is_opened_while_it_leaves_is_not_kept_open() {
    check("remove", |segments| segments.remove(1).unwrap(), read);
    check("rename", |segments| segments.quarantine(1).unwrap(), read);
}
