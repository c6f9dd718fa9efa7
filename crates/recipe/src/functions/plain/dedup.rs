//! Content-defined chunking: finds the offsets at which the content splits an input into blocks.

use std::sync::Arc;

use bytes::Bytes;

use crate::budget::CallBudget;
use crate::function::Fault;
use crate::functions::kernels::signature;
use crate::functions::output::{Output, OutputLimit};
use crate::param::ParamKind;
use crate::registry::Functions;
use crate::whole::whole;

/// The minimum and the maximum block size in bytes.
const LEAST: usize = 2048;
const MOST: usize = 65_536;

/// A block ends where these bits of the hash are zero.
const MASK: u64 = (1 << 13) - 1;

/// The base of the rolling hash.
const BASE: u64 = 31;

/// Bytes between two checks of the budget.
const BETWEEN_CHECKS: usize = 1 << 20;

pub(super) fn add(functions: &mut Functions) {
    let about = "The offsets of content-defined block boundaries, as a JSON list from 0 to the length. A \
        block has 2048 to 65536 bytes. It ends where the low 13 bits of a rolling hash (base 31, 64 bits) \
        of the last `window_size` bytes are zero. The hash starts anew after each boundary, so blocks do \
        not align again after a boundary at 65536 bytes.";
    functions.add(whole(
        signature("dedup_analyze/1.0.0", about)
            .may("window_size", ParamKind::NUMBER, 48, "the number of bytes in the window of the hash")
            .nanos_per_kib(1500)
            .unlike_deriva(
                "The rule is Deriva's as far as it is known; the offsets were not compared with Deriva's \
                 own.",
            ),
        |call| {
            let window = call.count("window_size")?;
            Ok(Box::new(move |inputs, budget| cuts(&inputs[0], window, budget)))
        },
    ));
}

fn cuts(input: &[u8], window: usize, budget: &Arc<CallBudget>) -> Result<Bytes, Fault> {
    let mut made = Output::new(OutputLimit::ANY, budget);
    made.write(b"[0")?;
    // No byte ever leaves a window that is longer than any input in memory.
    let leaving = u32::try_from(window).map_or(0, |window| BASE.wrapping_pow(window));
    let (mut start, mut hash) = (0, 0_u64);
    for (at, byte) in input.iter().enumerate() {
        if at % BETWEEN_CHECKS == 0 {
            budget.check()?;
        }
        hash = hash.wrapping_mul(BASE).wrapping_add(u64::from(*byte));
        if let Some(left) = at.checked_sub(window) {
            hash = hash.wrapping_sub(u64::from(input[left]).wrapping_mul(leaving));
        }
        let len = at + 1 - start;
        if len == MOST || (len >= LEAST && hash & MASK == 0) {
            (start, hash) = (at + 1, 0);
            made.write(format!(",{start}").as_bytes())?;
        }
    }
    if start < input.len() {
        made.write(format!(",{}", input.len()).as_bytes())?;
    }
    made.write(b"]")?;
    Ok(made.into_bytes())
}
