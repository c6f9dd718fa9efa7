//! How a process ends, and which changes survive by chance.

use crate::Rng;

/// How a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// It is killed. All its writes are there, as durable as before.
    Kill,
    /// Power fails at the worst moment: every change that is not durable is lost.
    Total,
    /// Power fails under a journalled file system. A change that is not durable survives or is lost: each sector of each
    /// write by itself, lengths up to some moment, a folder's names up to some moment.
    Power,
    /// Power fails, the file system has no journal and the disk no capacitor. In addition to [`Power`](Crash::Power),
    /// sectors may be zeros or torn, and each of a folder's changes survives by itself.
    Chaos,
}

/// The fate of the bytes that one write has in one sector.
#[derive(Clone, Copy)]
pub(super) enum Fate {
    New,
    Old,
    Zeros,
    /// New bytes up to somewhere, then any.
    Torn,
}

/// The chances of one file, or of the names of the disk.
pub(super) struct Luck<'a> {
    crash: Crash,
    /// In percent. Drawn once per file: a chance of 50% each would never keep all of many changes, nor lose all.
    kept: u64,
    pub(super) rng: &'a mut Rng,
}

impl<'a> Luck<'a> {
    pub(super) fn new(crash: Crash, rng: &'a mut Rng) -> Luck<'a> {
        let kept = match crash {
            Crash::Kill => 100,
            Crash::Total => 0,
            Crash::Power | Crash::Chaos => *rng.choose(&[0, 10, 50, 90, 100]),
        };
        Luck { crash, kept, rng }
    }

    pub(super) fn keeps(&mut self) -> bool {
        self.rng.percent(self.kept)
    }

    pub(super) fn fate(&mut self) -> Fate {
        match (self.keeps(), self.crash) {
            (true, _) => Fate::New,
            (false, Crash::Chaos) => *self.rng.choose(&[Fate::Old, Fate::Zeros, Fate::Torn]),
            (false, _) => Fate::Old,
        }
    }

    /// How many of so many changes happened that happen in order.
    pub(super) fn first(&mut self, of: usize) -> usize {
        match (self.crash, self.rng.within(0..4)) {
            (Crash::Total, _) | (Crash::Power | Crash::Chaos, 0) => 0,
            (Crash::Kill, _) | (Crash::Power | Crash::Chaos, 1) => of,
            _ => self.rng.within(0..of as u64 + 1) as usize,
        }
    }

    /// Did a folder's change happen only if those before it did?
    pub(super) fn in_order(&self) -> bool {
        self.crash != Crash::Chaos
    }
}
