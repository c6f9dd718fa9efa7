//! Kinds of crashes, and which changes survive one by chance.

use crate::Rng;

/// How a process ends. A change is durable once it is synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// The process is killed. The next process sees all its writes; they are as durable as before.
    Kill,
    /// Power loss that loses every change that is not durable.
    Total,
    /// Power loss under a journalled file system. Of the changes that are not durable, a random part survives: each
    /// sector of each write on its own, and the changes of a file's length and of a folder's names up to a random one.
    Power,
    /// Power loss without a journal in the file system and without a capacitor in the disk. As [`Power`](Crash::Power),
    /// and sectors may be zeroed or torn, and each change of a folder's names survives on its own.
    Chaos,
}

/// The state, after power loss, of the bytes that one write put into one sector.
#[derive(Clone, Copy)]
pub(super) enum SectorOutcome {
    New,
    Old,
    Zeros,
    /// New bytes up to a random offset, then random bytes.
    Torn,
}

/// The chances of one file, or of all names, to survive a crash.
pub(super) struct Chances<'a> {
    crash: Crash,
    /// In percent, drawn once per file. With 50% for every change, many changes would never all survive or all be lost.
    kept: u64,
    pub(super) rng: &'a mut Rng,
}

impl<'a> Chances<'a> {
    pub(super) fn new(crash: Crash, rng: &'a mut Rng) -> Chances<'a> {
        let kept = match crash {
            Crash::Kill => 100,
            Crash::Total => 0,
            Crash::Power | Crash::Chaos => *rng.choose(&[0, 10, 50, 90, 100]),
        };
        Chances { crash, kept, rng }
    }

    pub(super) fn keeps(&mut self) -> bool {
        self.rng.percent(self.kept)
    }

    pub(super) fn sector_outcome(&mut self) -> SectorOutcome {
        match (self.keeps(), self.crash) {
            (true, _) => SectorOutcome::New,
            (false, Crash::Chaos) => {
                *self.rng.choose(&[SectorOutcome::Old, SectorOutcome::Zeros, SectorOutcome::Torn])
            }
            (false, _) => SectorOutcome::Old,
        }
    }

    /// How many of `count` changes that survive in order do survive.
    pub(super) fn surviving_prefix(&mut self, count: usize) -> usize {
        match (self.crash, self.rng.within(0..4)) {
            (Crash::Total, _) | (Crash::Power | Crash::Chaos, 0) => 0,
            (Crash::Kill, _) | (Crash::Power | Crash::Chaos, 1) => count,
            _ => self.rng.within(0..count as u64 + 1) as usize,
        }
    }

    /// Whether a change of a folder's names survives only if the earlier ones do.
    pub(super) fn is_in_order(&self) -> bool {
        self.crash != Crash::Chaos
    }
}
