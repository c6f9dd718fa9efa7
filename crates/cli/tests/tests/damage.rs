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
use store::{Boundary, Fixture, LostItem, OpenStore, ReadReport, Rest, copy, listed};

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

const SEEDS: u64 = 4;

/// One damage.
#[derive(Clone, Copy, Debug)]
struct Damage {
    rest: Rest,
    part: &'static str,
    kind: Kind,
    seed: u64,
}

fn damages(rest: Rest, part: &'static str) -> Vec<Damage> {
    let with_seeds = |kind| (0..SEEDS).map(move |seed| Damage { rest, part, kind, seed });
    KINDS.into_iter().flat_map(with_seeds).collect()
}

impl Damage {
    /// Damages a store; answers the file that was hit first.
    fn apply(&self, store: &Path, boundaries: &[Boundary]) -> PathBuf {
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
            Kind::Cut if self.part == "log" && self.seed < 2 => {
                return cut_between_records(store, boundaries, self.seed == 0, &mut rng);
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
            Kind::Lengthen => match rng.within(0..3) {
                0 => bytes.resize(bytes.len() + 1_000, 0),
                1 => bytes.extend_from_within(..),
                _ => bytes.extend((0..1_000).map(|_| rng.bits() as u8)),
            },
            Kind::FlipBit => {}
        }
        fs::write(file, &bytes).unwrap();
        file.clone()
    }
}

/// Cuts a segment between two records, where nothing looks torn: the last one, or any.
fn cut_between_records(store: &Path, boundaries: &[Boundary], only_last: bool, rng: &mut Rng) -> PathBuf {
    let last = &boundaries.last().expect("the log has records").file;
    let fit: Vec<&Boundary> =
        boundaries.iter().filter(|boundary| !only_last || boundary.file == *last).collect();
    let Boundary { file, len } = rng.choose(&fit);
    let file = store.join("log").join(file);
    fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(*len).unwrap();
    file
}

/// A copy of a store, damaged; removed when dropped.
struct DamagedCopy {
    folder: PathBuf,
    hit: PathBuf,
}

impl DamagedCopy {
    fn new(fixture: &Fixture, damage: Damage, test: &str) -> DamagedCopy {
        let Damage { rest, part, kind, seed } = damage;
        let folder = scratch(&format!("damage_{test}_{rest:?}_{part}_{kind:?}_{seed}"));
        fs::remove_dir_all(&folder).unwrap();
        copy(&fixture.folder, &folder.join(".anabranch"));
        let hit = damage.apply(&folder.join(".anabranch"), &fixture.boundaries);
        DamagedCopy { folder, hit }
    }

    fn store(&self) -> PathBuf {
        self.folder.join(".anabranch")
    }
}

impl Drop for DamagedCopy {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// What was found and said so far.
#[derive(Default)]
struct DamageReport {
    lost: Vec<LostItem>,
    /// What was lost, and may be by a crash.
    excused: Vec<LostItem>,
    /// Calls that failed and said why.
    errors: Vec<String>,
    /// What the store said about losses.
    reports: Vec<String>,
    problems: Vec<String>,
}

impl DamageReport {
    fn note(&mut self, fixture: &Fixture, hit: &Path, found: ReadReport) {
        self.problems.extend(found.wrong);
        self.errors.extend(found.errors);
        let (excused, lost): (Vec<_>, Vec<_>) =
            found.lost.into_iter().partition(|lost| fixture.may_be_a_crash(hit, lost));
        self.excused.extend(excused);
        self.lost.extend(lost);
    }

    /// Whatever was lost so far, somebody was told: a value by whoever asks for it, a pin or a name by the store.
    fn check(&mut self, when: &str) {
        let is_quiet = |lost: &&LostItem| match lost {
            LostItem::Value(_) => self.reports.is_empty() && self.errors.is_empty(),
            LostItem::Pin(_) | LostItem::Unpin(_) | LostItem::Name(_) => self.reports.is_empty(),
        };
        let quiet: Vec<&LostItem> = self.lost.iter().filter(is_quiet).collect();
        if let Some(first) = quiet.first() {
            let problem = format!("{when}: {} lost without a word, first {first:?}", quiet.len());
            self.problems.push(problem);
        }
    }
}

/// Opens a damaged store, reads everything, scrubs it, and opens it a second time.
async fn judge(fixture: &Fixture, damaged: &DamagedCopy) -> DamageReport {
    let mut judged = DamageReport::default();
    let opened = OpenStore::of(&damaged.store());
    judged.note(fixture, &damaged.hit, opened.look(&fixture.held).await);
    judged.reports.extend(opened.scrub().await);
    judged.note(fixture, &damaged.hit, opened.look(&fixture.held).await);
    judged.reports.extend(opened.reported());
    judged.check("opened and scrubbed");
    judged.errors.extend(opened.close().await);
    let opened = OpenStore::of(&damaged.store());
    judged.note(fixture, &damaged.hit, opened.look(&fixture.held).await);
    judged.reports.extend(opened.reported());
    judged.check("opened again");
    judged.errors.extend(opened.close().await);
    judged
}

/// Damage to the index costs nothing once the store is opened again.
async fn judge_index(fixture: &Fixture, damaged: &DamagedCopy, judged: &mut DamageReport) {
    let opened = OpenStore::of(&damaged.store());
    let found = opened.look(&fixture.held).await;
    if !found.lost.is_empty() || !found.errors.is_empty() {
        judged.problems.push(format!("the index is not made anew: {:?} {:?}", found.lost, found.errors));
    }
    opened.close().await;
}

async fn check(rest: Rest, part: &'static str) {
    let fixture = Fixture::new(rest, part).await;
    let mut problems = Vec::new();
    for damage in damages(rest, part) {
        let damaged = DamagedCopy::new(&fixture, damage, "library");
        let mut judged = judge(&fixture, &damaged).await;
        if part == "index" {
            judge_index(&fixture, &damaged, &mut judged).await;
        }
        let hit = damaged.hit.strip_prefix(damaged.store()).unwrap().display().to_string();
        problems.extend(judged.problems.iter().map(|problem| format!("{damage:?} ({hit}): {problem}")));
    }
    assert!(problems.is_empty(), "{} problems\n{}", problems.len(), problems.join("\n"));
}

#[tokio::test]
async fn damage_to_the_log_of_a_closed_store() {
    check(Rest::Closed, "log").await;
}

#[tokio::test]
async fn damage_to_the_files_of_a_closed_store() {
    check(Rest::Closed, "files").await;
}

#[tokio::test]
async fn damage_to_the_index_of_a_closed_store() {
    check(Rest::Closed, "index").await;
}

#[tokio::test]
async fn damage_to_the_log_of_a_crashed_store() {
    check(Rest::Crashed, "log").await;
}

#[tokio::test]
async fn damage_to_the_files_of_a_crashed_store() {
    check(Rest::Crashed, "files").await;
}

#[tokio::test]
async fn damage_to_the_index_of_a_crashed_store() {
    check(Rest::Crashed, "index").await;
}

/// What the binary says: for damage that loses acknowledged things some command exits with 3, or a scrub with 1, and says
/// why on stderr. Damage may also lose things that this test does not look at, such as the description of a recipe whose
/// value is there.
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
            let judged = judge(&fixture, &DamagedCopy::new(&fixture, damage, "judged")).await;
            let loses = !judged.lost.is_empty();
            let damaged = DamagedCopy::new(&fixture, damage, "binary");
            let verbs = ["status", "scrub", "status"];
            let said = verbs.map(|verb| in_folder(&damaged.folder, &["recipe", verb], ""));
            let is_told = |(verb, code): (&str, i32)| code == 3 || (verb == "scrub" && code == 1);
            let told = verbs
                .iter()
                .zip(&said)
                .any(|(verb, said)| is_told((*verb, said.code)) && !said.stderr.trim().is_empty());
            if loses && !told && judged.excused.is_empty() {
                let codes: Vec<i32> = said.iter().map(|said| said.code).collect();
                problems
                    .push(format!("{damage:?}: loses {loses}, exit codes {codes:?}\n{}", said[0].shown()));
            }
        }
    }
    assert!(problems.is_empty(), "{} problems\n{}", problems.len(), problems.join("\n"));
}
