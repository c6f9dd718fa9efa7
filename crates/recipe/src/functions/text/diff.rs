//! Computes the difference between two texts.

use std::cell::{Cell, RefCell};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt::Write;
use std::hash::{Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use similar::{Algorithm, DiffOp, capture_diff_slices, group_diff_ops};

use super::text;
use crate::budget::CallBudget;
use crate::function::Fault;
use crate::functions::kernels::signature;
use crate::functions::output::{Output, OutputLimit};
use crate::registry::Functions;
use crate::signature::{Arity, Signature};
use crate::whole::whole;

/// The number of unchanged lines shown around each change.
const AROUND: usize = 3;

/// The note after a last line that does not end with a line feed.
const NO_END: &[u8] = b"\\ No newline at end of file\n";

pub(super) fn add(functions: &mut Functions) {
    functions.add(whole(
        signature(
            "diff/1.0.0",
            "The changes from the first text to the second, as a unified diff with three lines of context. \
             If no line differs, the output is the two header lines. Line ends are not compared, nor \
             whether the last line has one; version 2.0.0 compares bytes.",
        )
        .inputs(Arity::exactly(2))
        .claims(8)
        // The work depends on the number of differences.
        .nanos_per_kib(Signature::OPAQUE)
        .unlike_deriva(
            "If several diffs are equally short, the result may differ from Deriva's. Inputs are refused \
             if about 20,000 common lines are in a different order.",
        ),
        |_| {
            Ok(Box::new(|inputs, budget| {
                let texts = [text(0, &inputs[0])?, text(1, &inputs[1])?];
                claim_lines(&inputs, budget)?;
                let [old, new] = texts.map(|text| text.lines().map(str::as_bytes).collect::<Vec<_>>());
                unified(&old, &new, LineEnds::LeftOut, budget)
            }))
        },
    ));
    functions.add(whole(
        signature(
            "diff/2.0.0",
            "The changes from the first input to the second, as a unified diff with three lines of \
             context. If the inputs are equal, the output is the two header lines. `patch/2.0.0` applies \
             it and returns the second input, byte by byte. Inputs are refused if about 20,000 common \
             lines are in a different order.",
        )
        .inputs(Arity::exactly(2))
        .claims(8)
        // The work depends on the number of differences.
        .nanos_per_kib(Signature::OPAQUE),
        |_| {
            Ok(Box::new(|inputs, budget| {
                claim_lines(&inputs, budget)?;
                let [old, new] = [&inputs[0], &inputs[1]]
                    .map(|text| text.split_inclusive(|byte| *byte == b'\n').collect::<Vec<_>>());
                unified(&old, &new, LineEnds::Kept, budget)
            }))
        },
    ));
}

/// The treatment of line ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LineEnds {
    /// Line ends are part of the lines.
    Kept,
    /// Line ends are not compared. As in Deriva, an empty range then also starts at line 1 or later.
    LeftOut,
}

/// The memory per line during a comparison: its slice, its number, and the search state.
const PER_LINE: u64 = 400;

fn claim_lines(texts: &[Bytes], budget: &CallBudget) -> Result<(), Fault> {
    let count = |text: &Bytes| memchr::memchr_iter(b'\n', text).count() as u64 + 1;
    budget.claim(texts.iter().map(count).sum::<u64>() * PER_LINE)
}

fn unified(old: &[&[u8]], new: &[&[u8]], ends: LineEnds, budget: &Arc<CallBudget>) -> Result<Bytes, Fault> {
    let changes = changes(old, new, budget)?;
    budget.check()?;
    let mut made = Output::new(OutputLimit::ANY, budget);
    made.write(b"--- a\n+++ b\n")?;
    if changes.iter().all(|change| matches!(change, DiffOp::Equal { .. })) {
        return Ok(made.into_bytes());
    }
    for hunk in group_diff_ops(changes, AROUND) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { continue };
        let mut header = String::from("@@ -");
        place(&mut header, first.old_range().start..last.old_range().end, ends);
        header.push_str(" +");
        place(&mut header, first.new_range().start..last.new_range().end, ends);
        header.push_str(" @@\n");
        made.write(header.as_bytes())?;
        for change in &hunk {
            match change {
                DiffOp::Equal { .. } => give(&mut made, b' ', &old[change.old_range()], ends)?,
                _ => {
                    give(&mut made, b'-', &old[change.old_range()], ends)?;
                    give(&mut made, b'+', &new[change.new_range()], ends)?;
                }
            }
        }
    }
    Ok(made.into_bytes())
}

fn place(header: &mut String, lines: Range<usize>, ends: LineEnds) {
    let written = match lines.len() {
        len if ends == LineEnds::LeftOut => write!(header, "{},{len}", lines.start + 1),
        1 => write!(header, "{}", lines.start + 1),
        // An empty range is named by the line before it.
        0 => write!(header, "{},0", lines.start),
        len => write!(header, "{},{len}", lines.start + 1),
    };
    written.expect("text takes more text");
}

fn give(made: &mut Output, mark: u8, lines: &[&[u8]], ends: LineEnds) -> Result<(), Fault> {
    for line in lines {
        made.write(&[mark])?;
        made.write(line)?;
        if ends == LineEnds::LeftOut || !line.ends_with(b"\n") {
            made.write(b"\n")?;
        }
        if ends == LineEnds::Kept && !line.ends_with(b"\n") {
            made.write(NO_END)?;
        }
    }
    Ok(())
}

/// The ranges of lines to keep, delete and insert, in order.
fn changes(old: &[&[u8]], new: &[&[u8]], budget: &CallBudget) -> Result<Vec<DiffOp>, Fault> {
    let mut changes = Vec::new();
    let (mut old_at, mut new_at) = (0, 0);
    let mut equal = common(old, new, budget)?.into_iter().peekable();
    while let Some((old_index, new_index)) = equal.next() {
        changes.extend(change(old_at..old_index, new_at..new_index));
        let mut len = 1;
        while equal.next_if_eq(&(old_index + len, new_index + len)).is_some() {
            len += 1;
        }
        changes.push(DiffOp::Equal { old_index, new_index, len });
        (old_at, new_at) = (old_index + len, new_index + len);
    }
    changes.extend(change(old_at..old.len(), new_at..new.len()));
    Ok(changes)
}

fn change(old: Range<usize>, new: Range<usize>) -> Option<DiffOp> {
    let (old_index, old_len, new_index, new_len) = (old.start, old.len(), new.start, new.len());
    match (old_len, new_len) {
        (0, 0) => None,
        (0, _) => Some(DiffOp::Insert { old_index, new_index, new_len }),
        (_, 0) => Some(DiffOp::Delete { old_index, old_len, new_index }),
        _ => Some(DiffOp::Replace { old_index, old_len, new_index, new_len }),
    }
}

/// The longest common subsequence of lines, as pairs of indexes.
///
/// Lines that only one side has are left out before the search, because its time grows with the square of the number of
/// differences.
fn common(old: &[&[u8]], new: &[&[u8]], budget: &CallBudget) -> Result<Vec<(usize, usize)>, Fault> {
    let mut numbers: HashMap<&[u8], u32> = HashMap::new();
    for line in old {
        let next = numbers.len() as u32;
        numbers.entry(line).or_insert(next);
    }
    let mut on_both = vec![false; numbers.len()];
    let right: Vec<(usize, u32)> =
        new.iter().enumerate().filter_map(|(index, line)| Some((index, *numbers.get(line)?))).collect();
    right.iter().for_each(|(_, number)| on_both[*number as usize] = true);
    let left: Vec<(usize, u32)> = old
        .iter()
        .enumerate()
        .map(|(index, line)| (index, numbers[line]))
        .filter(|(_, number)| on_both[*number as usize])
        .collect();
    let [left_numbers, right_numbers] =
        [&left, &right].map(|side| side.iter().map(|(_, number)| *number).collect::<Vec<u32>>());
    if !is_near(&left_numbers, &right_numbers, budget)? {
        let problem = "has too many lines of the first input in a different order; sort both, or compare parts of \
             them";
        return Err(Fault::input(1, problem));
    }
    let equal = |change| match change {
        DiffOp::Equal { old_index, new_index, len } => Some((old_index, new_index, len)),
        _ => None,
    };
    let check = SearchCheck { budget, compared: Cell::new(0), fault: RefCell::new(None) };
    let [left_lines, right_lines] = [&left_numbers, &right_numbers].map(|numbers| {
        numbers.iter().map(|number| Line { number: *number, check: &check }).collect::<Vec<_>>()
    });
    let changes = capture_diff_slices(Algorithm::Myers, &left_lines, &right_lines);
    if let Some(fault) = check.fault.take() {
        return Err(fault);
    }
    let pairs = changes
        .into_iter()
        .filter_map(equal)
        .flat_map(|(old, new, len)| (0..len).map(move |more| (old + more, new + more)))
        .map(|(old, new)| (left[old].0, right[new].0));
    Ok(pairs.collect())
}

/// A line in the search for differences, by its number.
struct Line<'a> {
    number: u32,
    check: &'a SearchCheck<'a>,
}

/// Checks the budget during a search, which has no interface for that: its comparisons do it. Once the call must stop,
/// all lines are equal, so that the search ends soon.
struct SearchCheck<'a> {
    budget: &'a CallBudget,
    compared: Cell<u32>,
    fault: RefCell<Option<Fault>>,
}

impl SearchCheck<'_> {
    const BETWEEN_CHECKS: u32 = 1 << 16;

    fn must_stop(&self) -> bool {
        self.compared.set(self.compared.get().wrapping_add(1));
        if self.compared.get().is_multiple_of(SearchCheck::BETWEEN_CHECKS) && self.fault.borrow().is_none() {
            self.fault.replace(self.budget.check().err());
        }
        self.fault.borrow().is_some()
    }
}

impl PartialEq for Line<'_> {
    fn eq(&self, other: &Line<'_>) -> bool {
        self.number == other.number || self.check.must_stop()
    }
}

impl Eq for Line<'_> {}

impl Hash for Line<'_> {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.number.hash(hasher);
    }
}

impl PartialOrd for Line<'_> {
    fn partial_cmp(&self, other: &Line<'_>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Line<'_> {
    fn cmp(&self, other: &Line<'_>) -> Ordering {
        self.number.cmp(&other.number)
    }
}

/// The maximum number of steps to decide whether two texts are similar enough to compare. The comparison itself takes
/// about twice as many.
const STEPS_MOST: usize = 1 << 28;

/// Whether `old` can be turned into `new` within [`STEPS_MOST`] steps. This is Myers' search without the trace: after
/// `changes` rounds it knows the furthest point reachable on each diagonal with that many changes.
fn is_near(old: &[u32], new: &[u32], budget: &CallBudget) -> Result<bool, Fault> {
    let mut steps = STEPS_MOST;
    // The furthest index in `old` reached on each diagonal: negative diagonals in `below`, the others in `above`.
    let (mut below, mut above) = (vec![0_usize], vec![0_usize]);
    for changes in 0..=old.len() + new.len() {
        budget.check()?;
        below.push(0);
        above.push(0);
        let mut diagonal = -(changes as isize);
        while diagonal <= changes as isize {
            let at = |diagonal: isize| match diagonal < 0 {
                true => below[diagonal.unsigned_abs()],
                false => above[diagonal.unsigned_abs()],
            };
            let down = diagonal == -(changes as isize)
                || (diagonal != changes as isize && at(diagonal - 1) < at(diagonal + 1));
            let mut far = match (changes, down) {
                (0, _) => 0,
                (_, true) => at(diagonal + 1),
                (_, false) => at(diagonal - 1) + 1,
            };
            let begun = far;
            while let Some(there) = far.checked_add_signed(-diagonal)
                && far < old.len()
                && there < new.len()
                && old[far] == new[there]
            {
                far += 1;
            }
            match diagonal < 0 {
                true => below[diagonal.unsigned_abs()] = far,
                false => above[diagonal.unsigned_abs()] = far,
            }
            if far >= old.len() && far.checked_add_signed(-diagonal).is_some_and(|there| there >= new.len()) {
                return Ok(true);
            }
            let Some(left) = steps.checked_sub(1 + far - begun) else { return Ok(false) };
            steps = left;
            diagonal += 2;
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::functions::tests::counted_budget;

    /// The search itself checks the budget, too, not only the estimate before it.
    #[test]
    fn a_search_for_differences_can_be_stopped() {
        let lines = |step: usize| (0..3000).map(|at| format!("{}\n", at * step % 3001)).collect::<Vec<_>>();
        let [old, new] = [lines(1), lines(1000)];
        let [old, new] = [&old, &new].map(|lines| lines.iter().map(String::as_bytes).collect::<Vec<_>>());
        let numbers = |step: usize| (0..3000).map(|at| (at * step % 3001) as u32).collect::<Vec<_>>();
        let (budget, checks) = counted_budget(u64::MAX >> 20);
        is_near(&numbers(1), &numbers(1000), &budget).unwrap();
        let estimate = checks();
        let (budget, checks) = counted_budget(u64::MAX >> 20);
        common(&old, &new, &budget).unwrap();
        assert!(checks() > estimate + 20, "{} checks, {estimate} of the estimate", checks());
        let (budget, _) = counted_budget(estimate + 10);
        let stopped = common(&old, &new, &budget);
        assert!(matches!(stopped, Err(Fault::TooLong { .. })), "{stopped:?}");
    }
}
