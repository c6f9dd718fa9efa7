//! Bounds on outputs that may be many times larger than their input.

use std::io;
use std::sync::Arc;

use bytes::Bytes;

use crate::arguments::Arguments;
use crate::budget::CallBudget;
use crate::function::{Fault, Kernel, OpenInputs, Out};
use crate::param::ParamKind;
use crate::signature::Signature;

/// The default maximum size of an output in bytes.
const MOST_BYTES: i64 = 1 << 30;

impl Signature {
    /// Adds the parameter `max_bytes`.
    pub(super) fn bounds_output(self) -> Signature {
        self.may("max_bytes", ParamKind::NUMBER, MOST_BYTES, ABOUT)
    }

    /// Adds the parameter `max_bytes` for a function that holds its output in memory.
    pub(super) fn bounds_held_output(self) -> Signature {
        self.may("max_bytes", ParamKind::int(0, MOST_BYTES as i128), MOST_BYTES, ABOUT)
    }
}

const ABOUT: &str = "the maximum size of the output in bytes; a larger output is an error";

impl Arguments<'_> {
    /// The parameter `max_bytes`.
    pub(super) fn max_bytes(&self) -> Result<u64, Fault> {
        self.number("max_bytes")
    }

    /// The parameter `max_bytes` of a function that holds its output in memory.
    pub(super) fn max_bytes_held(&self) -> Result<OutputLimit, Fault> {
        self.max_bytes().map(OutputLimit)
    }
}

/// A kernel that fails once its output exceeds `most` bytes, for outputs that can be many times larger than the input.
pub(super) fn capped(kernel: Box<dyn Kernel>, most: u64) -> Box<dyn Kernel> {
    Box::new(CappedKernel { kernel, given: 0, most })
}

struct CappedKernel {
    kernel: Box<dyn Kernel>,
    given: u64,
    most: u64,
}

impl CappedKernel {
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

impl Kernel for CappedKernel {
    fn wants(&self, open: &OpenInputs<'_>) -> Option<usize> {
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

/// The maximum size of an output held in memory, in bytes.
#[derive(Clone, Copy)]
pub(super) struct OutputLimit(pub(super) u64);

impl OutputLimit {
    /// No bound except the memory of the call.
    pub(super) const ANY: OutputLimit = OutputLimit(u64::MAX);

    /// Fails if an output of `len` bytes would be too large.
    pub(super) fn allows(self, len: usize) -> Result<(), Fault> {
        match len as u64 > self.0 {
            true => Err(Fault::TooLarge { what: "the output", most: self.0 }),
            false => Ok(()),
        }
    }
}

/// A bounded output held in memory. Its memory is claimed as it grows.
pub(super) struct Output {
    bytes: Vec<u8>,
    most: OutputLimit,
    budget: Arc<CallBudget>,
    /// The fault of a failed write by a serializer.
    fault: Option<Fault>,
    /// Bytes written since the budget was last checked.
    unchecked: usize,
}

impl Output {
    /// Bytes written between two checks of the budget.
    const BETWEEN_CHECKS: usize = 64 << 10;

    pub(super) fn new(most: OutputLimit, budget: &Arc<CallBudget>) -> Output {
        Output { bytes: Vec::new(), most, budget: Arc::clone(budget), fault: None, unchecked: 0 }
    }

    /// Makes room for `more` further bytes.
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

    /// The fault that stopped a serializer.
    pub(super) fn fault(&mut self) -> Fault {
        self.fault.take().expect("a write failed")
    }

    pub(super) fn into_bytes(self) -> Bytes {
        self.bytes.into()
    }
}

/// Lets serializers write. The fault of a failed write is in [`Output::fault`].
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
