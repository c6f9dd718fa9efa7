//! Functions that reorder lines, or need the last lines.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use bytes::Bytes;
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

use super::lines::lined;
use super::text;
use crate::budget::CallBudget;
use crate::function::{Call, Fault};
use crate::functions::kernels::signature;
use crate::param::ParamKind;
use crate::registry::Functions;
use crate::signature::Signature;
use crate::whole::{Body, whole};

pub(super) fn add(functions: &mut Functions) {
    let mut add = |signature: Signature, nanos: u32, begin: fn(&Call<'_>) -> Result<Body, Fault>| {
        functions.add(whole(lined(signature.nanos_per_kib(nanos)), begin));
    };
    add(signature("sort/1.0.0", "The lines in byte order."), 4000, |_| ordered(sort));
    add(signature("sort_unique/1.0.0", "The lines in byte order, without duplicates."), 4000, |_| {
        ordered(|lines, budget| {
            sort(lines, budget)?;
            lines.dedup();
            Ok(())
        })
    });
    add(
        signature("tail/1.0.0", "The last `n` lines.").needs("n", ParamKind::NUMBER, "the number of lines"),
        100,
        |call| {
            let most = call.count("n")?;
            Ok(Box::new(move |inputs, _| Ok(last_lines(text(0, &inputs[0])?, most).into())))
        },
    );
    add(
        signature(
            "shuffle/1.0.0",
            "The lines in random order (Fisher-Yates with ChaCha12). The same seed gives the same order.",
        )
        .needs("seed", ParamKind::NUMBER, "the seed of the generator"),
        2000,
        |call| {
            let seed = call.number("seed")?;
            ordered(move |lines, _| {
                shuffle(lines, &mut ChaCha12Rng::seed_from_u64(seed));
                Ok(())
            })
        },
    );
    add(
        signature(
            "sample/1.0.0",
            "A random sample of `lines` lines in input order (reservoir sampling with ChaCha12), or all \
             lines if there are fewer. The same seed gives the same sample.",
        )
        .needs("lines", ParamKind::NUMBER, "the number of lines")
        .needs("seed", ParamKind::NUMBER, "the seed of the generator"),
        1000,
        |call| {
            let (most, seed) = (call.count("lines")?, call.number("seed")?);
            ordered(move |lines, _| {
                sample(lines, most, &mut ChaCha12Rng::seed_from_u64(seed));
                Ok(())
            })
        },
    );
}

/// A body that reorders or filters the list of lines.
fn ordered(
    order: impl FnOnce(&mut Vec<&str>, &CallBudget) -> Result<(), Fault> + Send + 'static,
) -> Result<Body, Fault> {
    Ok(Box::new(move |inputs, budget| {
        let text = text(0, &inputs[0])?;
        let count = memchr::memchr_iter(b'\n', text.as_bytes()).count() + 1;
        // The list of lines, and a copy of it while it is sorted.
        budget.claim(2 * (count * size_of::<&str>()) as u64)?;
        let mut lines = Vec::with_capacity(count);
        lines.extend(text.lines());
        order(&mut lines, budget)?;
        budget.check()?;
        Ok(Bytes::from(lines.join("\n")))
    }))
}

/// The last lines of a text, with LF between them.
fn last_lines(text: &str, most: usize) -> String {
    let Some(first) = text.lines().rev().take(most).last() else { return String::new() };
    // `first` is a slice of `text`.
    let from = first.as_ptr() as usize - text.as_ptr() as usize;
    let mut made = String::with_capacity(text.len() - from);
    for (index, line) in text[from..].lines().enumerate() {
        if index > 0 {
            made.push('\n');
        }
        made.push_str(line);
    }
    made
}

/// The number of lines sorted at a time. The sorted runs are merged afterwards.
const RUN: usize = 16 << 10;

/// Sorts lines by their bytes, and checks the budget at intervals.
fn sort(lines: &mut Vec<&str>, budget: &CallBudget) -> Result<(), Fault> {
    for run in lines.chunks_mut(RUN) {
        budget.check()?;
        run.sort_unstable();
    }
    if lines.len() <= RUN {
        return Ok(());
    }
    let mut runs: Vec<_> = lines.chunks(RUN).map(|run| run.iter().copied()).collect();
    let mut heads: BinaryHeap<Reverse<(&str, usize)>> = BinaryHeap::with_capacity(runs.len());
    heads.extend(runs.iter_mut().enumerate().filter_map(|(at, run)| Some(Reverse((run.next()?, at)))));
    let mut sorted = Vec::with_capacity(lines.len());
    while let Some(mut head) = heads.peek_mut() {
        let Reverse((line, run)) = *head;
        sorted.push(line);
        match runs[run].next() {
            Some(next) => *head = Reverse((next, run)),
            None => _ = PeekMut::pop(head),
        }
        if sorted.len() % RUN == 0 {
            budget.check()?;
        }
    }
    drop(heads);
    drop(runs);
    *lines = sorted;
    Ok(())
}

fn shuffle(lines: &mut [&str], random: &mut impl RngCore) {
    for last in (1..lines.len()).rev() {
        let drawn = match u32::try_from(last + 1) {
            Ok(count) => below_u32(count, random) as usize,
            Err(_) => below_u64(last as u64 + 1, random) as usize,
        };
        lines.swap(last, drawn);
    }
}

fn sample(lines: &mut Vec<&str>, most: usize, random: &mut impl RngCore) {
    if most >= lines.len() {
        return;
    }
    let mut chosen: Vec<usize> = (0..most).collect();
    for index in most..lines.len() {
        let drawn = below_u64(index as u64 + 1, random) as usize;
        if drawn < most {
            chosen[drawn] = index;
        }
    }
    chosen.sort_unstable();
    *lines = chosen.into_iter().map(|index| lines[index]).collect();
}

/// A uniformly distributed number below `count`: the high half of a product, drawn again if the low half would
/// introduce bias.
fn below_u32(count: u32, random: &mut impl RngCore) -> u32 {
    let zone = (count << count.leading_zeros()).wrapping_sub(1);
    loop {
        let product = u64::from(random.next_u32()) * u64::from(count);
        if product as u32 <= zone {
            return (product >> 32) as u32;
        }
    }
}

fn below_u64(count: u64, random: &mut impl RngCore) -> u64 {
    let zone = (count << count.leading_zeros()).wrapping_sub(1);
    loop {
        let product = u128::from(random.next_u64()) * u128::from(count);
        if product as u64 <= zone {
            return (product >> 64) as u64;
        }
    }
}
