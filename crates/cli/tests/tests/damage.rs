//! A stopped store is damaged in 144 ways: no byte that comes out of it is ever wrong, and no loss is quiet.
//!
//! Six kinds of damage to the log, the files of large blobs and the index, of a store that was closed and of one that
//! crashed, with four seeds each. Whatever was acknowledged is there and right; or it is missing, or a name or a pin is
//! as it was before, and the store says so: a call fails, opening it or a scrub reports it. The one exception is the
//! end of a log that was not closed, which a crash may cut.

mod store;

use std::fs;
use std::path::{Path, PathBuf};

use anabranch_testkit::Rng;

use crate::binary::{in_folder, scratch};
use store::{Fixture, Found, Lost, Opened, Rest, copy, listed};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    FlipBit,
    ZeroPage,
    Cut,
    Lose,
    Swap,
    Lengthen,
}

const KINDS: [Kind; 6] = [Kind::FlipBit, Kind::ZeroPage, Kind::Cut, Kind::Lose, Kind::Swap, Kind::Lengthen];

const PARTS: [&str; 3] = ["log", "files", "index"];

const SEEDS: u64 = 4;

/// One damage.
#[derive(Clone, Copy, Debug)]
struct Damage {
    rest: Rest,
    part: &'static str,
    kind: Kind,
    seed: u64,
}

fn damages(rest: Rest) -> Vec<Damage> {
    let mut damages = Vec::new();
    for part in PARTS {
        for kind in KINDS {
            damages.extend((0..SEEDS).map(|seed| Damage { rest, part, kind, seed }));
        }
    }
    damages
}

impl Damage {
    /// Damages a store; answers the file that was hit first.
    fn apply(&self, store: &Path) -> PathBuf {
        let mut rng = Rng::new(self.seed * 1_000 + self.kind as u64 * 10 + self.part.len() as u64);
        let files = listed(&store.join(self.part));
        assert!(files.len() > 1, "{self:?}: {files:?}");
        let hit = rng.within(0..files.len() as u64) as usize;
        let file = &files[hit];
        let mut bytes = fs::read(file).unwrap();
        let at = if bytes.is_empty() { 0 } else { rng.within(0..bytes.len() as u64) as usize };
        match self.kind {
            Kind::FlipBit if !bytes.is_empty() => bytes[at] ^= 1 << rng.within(0..8),
            Kind::ZeroPage => {
                let page = at / 512 * 512;
                let end = bytes.len().min(page + 512);
                bytes[page..end].fill(0);
            }
            Kind::Cut => bytes.truncate(at),
            Kind::Lose => {
                fs::remove_file(file).unwrap();
                return file.clone();
            }
            Kind::Swap => {
                let other = &files[(hit + rng.within(1..files.len() as u64) as usize) % files.len()];
                let others = fs::read(other).unwrap();
                fs::write(other, &bytes).unwrap();
                bytes = others;
            }
            Kind::Lengthen => match rng.within(0..2) {
                0 => bytes.resize(bytes.len() + 1_000, 0),
                _ => bytes.extend((0..1_000).map(|_| rng.bits() as u8)),
            },
            Kind::FlipBit => {}
        }
        fs::write(file, &bytes).unwrap();
        file.clone()
    }
}

/// A copy of a store, damaged; removed when dropped.
struct Damaged {
    folder: PathBuf,
    hit: PathBuf,
}

impl Damaged {
    fn new(fixture: &Fixture, damage: Damage, test: &str) -> Damaged {
        let Damage { rest, part, kind, seed } = damage;
        let folder = scratch(&format!("damage_{test}_{rest:?}_{part}_{kind:?}_{seed}"));
        fs::remove_dir_all(&folder).unwrap();
        copy(&fixture.folder, &folder.join(".anabranch"));
        let hit = damage.apply(&folder.join(".anabranch"));
        Damaged { folder, hit }
    }

    fn store(&self) -> PathBuf {
        self.folder.join(".anabranch")
    }
}

impl Drop for Damaged {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// What was found and said so far.
#[derive(Default)]
struct Judged {
    lost: Vec<Lost>,
    said: Vec<String>,
    problems: Vec<String>,
}

impl Judged {
    fn note(&mut self, fixture: &Fixture, hit: &Path, found: Found) {
        self.problems.extend(found.wrong);
        self.said.extend(found.errors);
        self.lost.extend(found.lost.into_iter().filter(|lost| !fixture.may_be_a_crash(hit, lost)));
    }

    /// Whatever was lost so far, somebody was told.
    fn check(&mut self, when: &str) {
        if !self.lost.is_empty() && self.said.is_empty() {
            let (count, first) = (self.lost.len(), &self.lost[0]);
            self.problems.push(format!("{when}: {count} lost and nobody told, first {first:?}"));
        }
    }
}

/// Opens a damaged store, reads everything, scrubs it, and opens it a second time.
async fn judge(fixture: &Fixture, damaged: &Damaged) -> Judged {
    let mut judged = Judged::default();
    let opened = Opened::of(&damaged.store());
    judged.note(fixture, &damaged.hit, opened.look(&fixture.held).await);
    judged.said.extend(opened.reported());
    judged.said.extend(opened.scrub().await);
    judged.note(fixture, &damaged.hit, opened.look(&fixture.held).await);
    judged.said.extend(opened.reported());
    judged.check("opened and scrubbed");
    judged.said.extend(opened.close().await);
    let opened = Opened::of(&damaged.store());
    judged.note(fixture, &damaged.hit, opened.look(&fixture.held).await);
    judged.said.extend(opened.reported());
    judged.check("opened again");
    judged.said.extend(opened.close().await);
    judged
}

/// Damage to the index costs nothing once the store is opened again.
async fn judge_index(fixture: &Fixture, damaged: &Damaged, judged: &mut Judged) {
    let opened = Opened::of(&damaged.store());
    let found = opened.look(&fixture.held).await;
    if !found.lost.is_empty() || !found.errors.is_empty() {
        judged.problems.push(format!("the index is not made anew: {:?} {:?}", found.lost, found.errors));
    }
    opened.close().await;
}

async fn check(rest: Rest) {
    let fixture = Fixture::new(rest, "library").await;
    let mut problems = Vec::new();
    let damages = damages(rest);
    assert_eq!(damages.len(), 72);
    for damage in damages {
        let damaged = Damaged::new(&fixture, damage, "library");
        let mut judged = judge(&fixture, &damaged).await;
        if damage.part == "index" {
            judge_index(&fixture, &damaged, &mut judged).await;
        }
        let hit = damaged.hit.strip_prefix(damaged.store()).unwrap().display().to_string();
        problems.extend(judged.problems.iter().map(|problem| format!("{damage:?} ({hit}): {problem}")));
    }
    assert!(problems.is_empty(), "{} problems\n{}", problems.len(), problems.join("\n"));
}

#[tokio::test]
async fn damage_to_a_closed_store_is_never_quiet() {
    check(Rest::Closed).await;
}

#[tokio::test]
async fn damage_to_a_crashed_store_is_never_quiet() {
    check(Rest::Crashed).await;
}

/// What the binary says: for damage that loses acknowledged things some command ends with 3 and a line on stderr, and for
/// damage that loses nothing none does.
#[tokio::test]
async fn the_binary_tells_of_losses() {
    let mut problems = Vec::new();
    for rest in [Rest::Closed, Rest::Crashed] {
        let fixture = Fixture::new(rest, "binary").await;
        for (part, kind) in [
            ("log", Kind::FlipBit),
            ("log", Kind::Cut),
            ("log", Kind::Lose),
            ("log", Kind::Swap),
            ("files", Kind::Lose),
            ("index", Kind::Lose),
        ] {
            let damage = Damage { rest, part, kind, seed: 1 };
            let loses = {
                let damaged = Damaged::new(&fixture, damage, "judged");
                !judge(&fixture, &damaged).await.lost.is_empty()
            };
            let damaged = Damaged::new(&fixture, damage, "binary");
            let said: Vec<_> = ["status", "scrub", "status"]
                .map(|verb| in_folder(&damaged.folder, &["recipe", verb], ""))
                .into_iter()
                .collect();
            let told = said.iter().any(|said| said.code == 3 && !said.stderr.trim().is_empty());
            if told != loses {
                let codes: Vec<i32> = said.iter().map(|said| said.code).collect();
                problems
                    .push(format!("{damage:?}: loses {loses}, exit codes {codes:?}\n{}", said[0].shown()));
            }
        }
    }
    assert!(problems.is_empty(), "{} problems\n{}", problems.len(), problems.join("\n"));
}
