//! Damage at rest in a store that has lived. What is promised:
//!
//! No bytes are wrong, nothing panics or hangs, and opening fails only for want of a format. Damage to the index costs
//! nothing: it is made anew, at the latest when the store is opened again. Damage to a blob's file costs that blob.
//! Damage to the log costs the blobs and derivations whose records it hit, each told when it is asked for, as long as
//! the index is whole; what the log alone knows may be lost or as it was before, if opening told that the log has
//! stretches that cannot be read, or that the index was made anew. (There are two exceptions. The end of a log that was
//! not closed: if it is cut off, that may be a crash. And a segment that no index on disk covers, cut off between two
//! records: nothing says that it was longer.)

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anabranch_content::{Class, Error, RemovalReason};
use anabranch_testkit::{Crash, CrashDisk, Rng};

use crate::crash::boundaries::WORK;
use crate::crash::driver::{Driver, Op, small};
use crate::crash::model::StoreContents;
use crate::crash::times;
use crate::crash::world::{LENS, Thing, random};
use crate::faults::open;
use crate::store::Hand;

#[derive(Clone, Debug)]
enum Harm {
    Flip(u64, u8),
    Cut(u64),
    Gone,
    Swap(PathBuf),
}

/// How a store came to rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    Closed,
    Died,
    /// The same, and the index was in memory.
    Unindexed,
}

const RESTS: [Rest; 3] = [Rest::Closed, Rest::Died, Rest::Unindexed];

/// Where the first record of a segment begins.
const FRONT: u64 = 20;

/// A store that has lived, at rest.
struct RestingStore {
    driver: Driver,
    seen: StoreContents,
    rest: Rest,
    /// The last of its log.
    last: PathBuf,
}

async fn lived(rest: Rest) -> RestingStore {
    let mut driver = Driver::new(CrashDisk::new(1));
    if rest == Rest::Unindexed {
        driver.config.recent_bytes = 1 << 20;
    }
    driver.open().unwrap();
    // Cleaning has all of the index written, and what was collected is cleaned away.
    let indexes = |op: &Op| matches!(op, Op::Clean | Op::Collect);
    for op in WORK.into_iter().filter(|op| rest != Rest::Unindexed || !indexes(op)) {
        driver.step(op).await.unwrap();
    }
    if rest == Rest::Closed {
        driver.close().await.unwrap();
    }
    let driver = driver.crashed(1, Crash::Kill);
    let indexed = driver.disk.files().iter().any(|(path, _)| path.starts_with("index"));
    assert_eq!(indexed, rest != Rest::Unindexed);
    let mut looked = driver.crashed(1, Crash::Kill);
    looked.recover(Crash::Kill).await;
    let seen = looked.look().await.unwrap();
    let last = driver.disk.files().into_iter().map(|(path, _)| path).filter(|path| path.starts_with("log"));
    RestingStore { seen, rest, last: last.max().unwrap(), driver }
}

impl RestingStore {
    /// Does harm to a file of a copy, and looks what is left.
    async fn check(&self, path: &Path, harm: &Harm) {
        let what = format!("{:?}: {} {harm:?}", self.rest, path.display());
        let mut driver = self.driver.crashed(1, Crash::Kill);
        do_harm(&driver.disk, path, harm);
        match driver.open() {
            Err(Error::Format { .. } | Error::Newer { .. }) => {
                let touched = [path, if let Harm::Swap(other) = harm { other } else { path }];
                return assert!(touched.contains(&Path::new("format")), "{what}");
            }
            opened => opened.expect(&what),
        }
        let opened = driver.store().opened();
        let lost = opened.lost > 0;
        let mut told = opened.rebuilt.is_some() || !opened.unreadable.is_empty();
        let mut looked = driver.look().await;
        if let Err(Error::Index { .. }) = looked {
            // What it does now is of no use.
            let _ = driver.close().await;
            driver.open().expect(&what);
            told |= driver.store().opened().rebuilt.is_some();
            looked = driver.look().await;
        }
        let seen = looked.expect(&what);
        self.judge(path, harm, &seen, (told, lost), &what);
        for blob in &seen.damaged {
            let gone = driver.store().status(&Thing::Blob(*blob).address()).await.unwrap().gone;
            assert!(gone.is_some_and(|gone| gone.why == RemovalReason::Damaged), "{what}");
        }
        self.works(driver, &seen, &what).await;
    }

    fn judge(&self, path: &Path, harm: &Harm, seen: &StoreContents, (told, lost): (bool, bool), what: &str) {
        let touches = |folder: &str| {
            path.starts_with(folder) || matches!(harm, Harm::Swap(other) if other.starts_with(folder))
        };
        let hit = |path: &Path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            (0..LENS.len()).find(|blob| name.starts_with(&Thing::Blob(*blob).address().to_string()))
        };
        let mut may_be_hit: BTreeSet<usize> = hit(path).into_iter().collect();
        if let Harm::Swap(other) = harm {
            may_be_hit.extend(hit(other));
        }
        // Opening notices a file of another length, and says so.
        let noticed = may_be_hit.iter().copied().filter(|blob| lost && seen.blobs[*blob].is_none());
        let gone: BTreeSet<usize> = noticed.chain(seen.damaged.iter().copied()).collect();
        if touches("log") {
            let may_be_crash =
                self.rest != Rest::Closed && path == self.last && matches!(harm, Harm::Cut(_) | Harm::Gone);
            let ends_early = self.rest == Rest::Unindexed && matches!(harm, Harm::Cut(FRONT));
            let mut left = self.seen.without(&gone, &seen.damaged_derivations);
            left.damaged.clone_from(&seen.damaged);
            assert!(told || may_be_crash || ends_early || *seen == left, "{what}:\n{seen:?}\nnot\n{left:?}");
            return;
        }
        assert!(seen.damaged.is_subset(&may_be_hit), "{what}: {:?} are damaged", seen.damaged);
        let mut left = self.seen.without(&gone, &BTreeSet::new());
        left.damaged.clone_from(&seen.damaged);
        assert_eq!(*seen, left, "{what}");
    }

    /// Whatever was lost, the store works, and has the same when it is opened again.
    async fn works(&self, mut driver: Driver, seen: &StoreContents, what: &str) {
        driver.model.settle(seen);
        driver.step(Op::Put(1, Class::Acknowledged)).await.expect(what);
        driver.step(Op::Put(13, Class::Acknowledged)).await.expect(what);
        let before = driver.look().await.expect(what);
        driver.close().await.expect(what);
        driver.open().expect(what);
        assert_eq!(driver.look().await.expect(what), before, "{what}");
    }
}

fn do_harm(disk: &CrashDisk, path: &Path, harm: &Harm) {
    match harm {
        Harm::Flip(offset, mask) => disk.flip(path, *offset, *mask),
        Harm::Cut(len) => disk.truncate(path, *len),
        Harm::Gone => disk.remove_file(path),
        Harm::Swap(other) => {
            let (one, two) = (disk.bytes(path).unwrap(), disk.bytes(other).unwrap());
            disk.put(path, two);
            disk.put(other, one);
        }
    }
}

#[tokio::test]
async fn any_byte_may_flip() {
    let mut rng = Rng::new(1);
    for rest in RESTS {
        let lived = lived(rest).await;
        for (path, len) in lived.driver.disk.files() {
            let step = (len / (80 * times())).max(1);
            let mut offset = rng.within(0..step);
            while offset < len {
                lived.check(&path, &Harm::Flip(offset, *rng.choose(&[0x01, 0xff]))).await;
                offset += 1 + rng.within(step / 2..step + step / 2 + 1);
            }
        }
    }
}

#[tokio::test]
async fn any_file_may_be_cut_or_lost() {
    for rest in RESTS {
        let lived = lived(rest).await;
        for (path, len) in lived.driver.disk.files() {
            lived.check(&path, &Harm::Gone).await;
            for cut in [0, FRONT - 1, FRONT, len / 2, len.saturating_sub(24), len.saturating_sub(1)] {
                lived.check(&path, &Harm::Cut(cut.min(len))).await;
            }
        }
    }
}

#[tokio::test]
async fn any_two_files_may_be_exchanged() {
    for rest in RESTS {
        let lived = lived(rest).await;
        let files = lived.driver.disk.files();
        for (number, (path, _)) in files.iter().enumerate() {
            for (other, _) in &files[number + 1..] {
                lived.check(path, &Harm::Swap(other.clone())).await;
            }
        }
    }
}

#[tokio::test]
async fn a_tree_may_be_anything() {
    let (disk, hand) = (CrashDisk::new(1), Hand::default());
    let bytes = random(1, (1 << 20) + 200_000);
    let store = open(&disk, &small(&hand));
    let address = store.put(bytes.clone(), Class::Acknowledged).await.unwrap().address;
    store.close().await.unwrap();
    let (tree, len) =
        disk.files().into_iter().find(|(path, _)| path.extension().is_some_and(|it| it == "tree")).unwrap();
    let flips = (0..len).step_by(len as usize / 20).map(|offset| Harm::Flip(offset, 0x40));
    for harm in flips.chain([Harm::Cut(0), Harm::Cut(len / 2), Harm::Gone]) {
        let disk = disk.snapshot();
        do_harm(&disk, &tree, &harm);
        let store = open(&disk, &small(&hand));
        let part = store.get_range(&address, 700_000..1_200_000).await.unwrap();
        assert_eq!(part, Some(bytes.slice(700_000..1_200_000)), "{harm:?}");
        assert_eq!(store.get(&address).await.unwrap(), Some(bytes.clone()), "{harm:?}");
    }
}
