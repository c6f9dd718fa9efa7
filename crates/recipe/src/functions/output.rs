//! The bounds of outputs that may be many times their input.

use std::io;
use std::sync::Arc;

use bytes::Bytes;

use crate::arguments::Arguments;
use crate::budget::CallBudget;
use crate::function::{Fault, Kernel, Open, Out};
use crate::param::ParamKind;
use crate::signature::Signature;

/// The most bytes of an output, if the recipe does not say.
const MOST_BYTES: i64 = 1 << 30;

impl Signature {
    /// The same with the parameter `max_bytes`.
    pub(super) fn bounds_output(self) -> Signature {
        self.may("max_bytes", ParamKind::NUMBER, MOST_BYTES, ABOUT)
    }

    /// The same for a function that holds its output in memory.
    pub(super) fn bounds_held_output(self) -> Signature {
        self.may("max_bytes", ParamKind::int(0, MOST_BYTES as i128), MOST_BYTES, ABOUT)
    }
}

const ABOUT: &str = "the most bytes of the output; more is an error";

impl Arguments<'_> {
    /// The parameter `max_bytes`.
    pub(super) fn max_bytes(&self) -> Result<u64, Fault> {
        self.number("max_bytes")
    }

    /// The same, of a function that holds its output in memory.
    pub(super) fn max_bytes_held(&self) -> Result<Most, Fault> {
        self.max_bytes().map(Most)
    }
}

/// A kernel that gives at most so many bytes in all: for one whose output can be many times its input.
pub(super) fn capped(kernel: Box<dyn Kernel>, most: u64) -> Box<dyn Kernel> {
    Box::new(Capped { kernel, given: 0, most })
}

struct Capped {
    kernel: Box<dyn Kernel>,
    given: u64,
    most: u64,
}

impl Capped {
    fn count(
        &mut self,
        out: &mut Out,
        body: impl FnOnce(&mut dyn Kernel, &mut Out) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        let before = out.len();
        body(&mut *self.kernel, out)?;
        self.given += (out.len() - before) as u64;
        match self.given > self.most {
            true => Err(Fault::TooLarge { what: "the output", most: self.most }),
            false => Ok(()),
        }
    }
}

impl Kernel for Capped {
    fn wants(&self, open: &Open<'_>) -> Option<usize> {
        self.kernel.wants(open)
    }

    fn push(&mut self, input: usize, chunk: Bytes, out: &mut Out) -> Result<(), Fault> {
        self.count(out, |kernel, out| kernel.push(input, chunk, out))
    }

    fn end(&mut self, input: usize, out: &mut Out) -> Result<(), Fault> {
        self.count(out, |kernel, out| kernel.end(input, out))
    }

    fn finish(&mut self, out: &mut Out) -> Result<(), Fault> {
        self.count(out, |kernel, out| kernel.finish(out))
    }

    fn resume(&mut self, out: &mut Out) -> Result<(), Fault> {
        self.count(out, |kernel, out| kernel.resume(out))
    }
}

/// The most bytes of an output that is held in memory.
#[derive(Clone, Copy)]
pub(super) struct Most(pub(super) u64);

impl Most {
    /// No bound besides the memory of the call.
    pub(super) const ANY: Most = Most(u64::MAX);

    /// Whether an output may have so many bytes.
    pub(super) fn allows(self, len: usize) -> Result<(), Fault> {
        match len as u64 > self.0 {
            true => Err(Fault::TooLarge { what: "the output", most: self.0 }),
            false => Ok(()),
        }
    }
}

/// An output that is held in memory: bounded, its memory claimed as it grows.
pub(super) struct Output {
    bytes: Vec<u8>,
    most: Most,
    budget: Arc<CallBudget>,
    /// The fault of a write that a serializer asked for.
    fault: Option<Fault>,
    /// Bytes since the last look at the budget's time.
    unchecked: usize,
}

impl Output {
    /// Bytes between two looks at the budget's time.
    const BETWEEN_CHECKS: usize = 64 << 10;

    pub(super) fn new(most: Most, budget: &Arc<CallBudget>) -> Output {
        Output { bytes: Vec::new(), most, budget: Arc::clone(budget), fault: None, unchecked: 0 }
    }

    /// Makes room for this many bytes more.
    pub(super) fn reserve(&mut self, more: usize) -> Result<(), Fault> {
        let (len, capacity) = (self.bytes.len().saturating_add(more), self.bytes.capacity());
        self.most.allows(len)?;
        if len > capacity {
            let larger = len.max(capacity.saturating_mul(2)).max(256);
            self.budget.claim(larger as u64)?;
            self.bytes.reserve_exact(larger - self.bytes.len());
            self.budget.release(capacity as u64);
        }
        Ok(())
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.reserve(bytes.len())?;
        self.bytes.extend_from_slice(bytes);
        self.unchecked += bytes.len();
        if self.unchecked > Output::BETWEEN_CHECKS {
            self.unchecked = 0;
            self.budget.check()?;
        }
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The fault for which a serializer stopped.
    pub(super) fn fault(&mut self) -> Fault {
        self.fault.take().expect("a write failed")
    }

    pub(super) fn into_bytes(self) -> Bytes {
        self.bytes.into()
    }
}

/// For serializers: the fault of a failed write is in [`Output::fault`].
impl io::Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match Output::write(self, bytes) {
            Ok(()) => Ok(bytes.len()),
            Err(fault) => {
                self.fault = Some(fault);
                Err(io::ErrorKind::Other.into())
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
