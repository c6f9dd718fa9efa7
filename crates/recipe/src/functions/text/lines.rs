//! Functions that process one line at a time.

use std::fmt::Write;
use std::sync::Arc;

use super::pattern::{Caches, Pattern, REGEX};
use super::split::{Gap, LineVisitor, of_lines, shown};
use crate::function::{Call, Fault, Kernel, Out};
use crate::functions::kernels::{Begin, StreamingFunction, signature};
use crate::functions::output::capped;
use crate::param::ParamKind;
use crate::registry::Functions;
use crate::signature::Signature;

/// The rules for lines, shared by all functions that output lines.
const LINES: &str = " The input is UTF-8. Lines end at LF or CR LF, and have at most 16 MiB. The output \
    has an LF between lines and none after the last line.";

/// Adds the rules for lines to a signature.
pub(super) fn lined(mut signature: Signature) -> Signature {
    signature.about.to_mut().push_str(LINES);
    signature
}

pub(super) fn add(functions: &mut Functions) {
    let mut add = |signature: Signature, begin: Begin| {
        functions.add(StreamingFunction(lined(signature.nanos_per_kib(1000)), begin));
    };
    add(
        signature("head/1.0.0", "The first `n` lines. The rest of the input is not read.").needs(
            "n",
            ParamKind::NUMBER,
            "the number of lines",
        ),
        |call| {
            let left = call.number("n")?;
            Ok(of_lines(call, Head { left, gap: Gap::default() }))
        },
    );
    add(
        signature("nth/1.0.0", "The line with this index. The lines after it are not read.").needs(
            "index",
            ParamKind::NUMBER,
            "the index of the line, from 0; an error if there are fewer lines",
        ),
        |call| Ok(of_lines(call, NthLine { index: call.number("index")?, found: false })),
    );
    add(signature("unique/1.0.0", "The lines, without adjacent duplicates."), |call| {
        let mut before: Option<String> = None;
        Ok(kept(call, move |line| match &mut before {
            Some(before) if before == line => false,
            Some(before) => {
                before.clear();
                before.push_str(line);
                true
            }
            None => {
                before = Some(line.to_owned());
                true
            }
        }))
    });
    let grep = |id, about| signature(id, about).needs("pattern", ParamKind::Text, REGEX).compiles();
    add(grep("grep/1.0.0", "The lines that match the pattern."), |call| matching(call, true));
    add(grep("grep_invert/1.0.0", "The lines that do not match the pattern."), |call| matching(call, false));
    add_changed(functions);
    add_sums(functions);
}

fn add_changed(functions: &mut Functions) {
    let mut add = |signature: Signature, begin: Begin| {
        functions.add(StreamingFunction(lined(signature.nanos_per_kib(1000)), begin));
    };
    add(
        signature("line_prefix/1.0.0", "Each line with `prefix` in front of it.")
            .needs("prefix", ParamKind::Text, "the text before each line")
            .bounds_output(),
        |call| {
            let prefix = call.text("prefix")?.to_owned();
            let prefixed = each(call, move |_, line, out| {
                out.write(prefix.as_bytes());
                out.write(line.as_bytes());
            });
            Ok(capped(prefixed, call.max_bytes()?))
        },
    );
    add(
        signature(
            "line_number/1.0.0",
            "Each line with its number in front: from 1, padded to six characters, then a tab.",
        ),
        |call| {
            let mut start = String::new();
            Ok(each(call, move |number, line, out| {
                start.clear();
                write!(start, "{number:>6}\t").expect("text takes more text");
                out.write(start.as_bytes());
                out.write(line.as_bytes());
            }))
        },
    );
    add(
        signature(
            "truncate_lines/1.0.0",
            "The lines, each cut to `max_line_bytes` bytes. A character that would be cut is left out.",
        )
        .needs(
            "max_line_bytes",
            ParamKind::NUMBER,
            "the maximum number of bytes per line, without the line end",
        ),
        |call| {
            let most = call.count("max_line_bytes")?;
            Ok(each(call, move |_, line, out| out.write(&line.as_bytes()[..line.floor_char_boundary(most)])))
        },
    );
}

fn add_sums(functions: &mut Functions) {
    let sum = signature(
        "sum/1.0.0",
        "The sum of the numbers in the lines, in decimal digits; 0 if there are none. Blank lines are \
         skipped. The sum is a 64-bit float, with as few digits as are needed to read it back, and without \
         an exponent. `nan` and `inf` are refused.",
    );
    let average = signature(
        "average/1.0.0",
        "The sum of the numbers in the lines, as in `sum/1.0.0`, divided by their count. An error if there \
         are none.",
    );
    functions.add(StreamingFunction(sum.nanos_per_kib(5000), |call| {
        Ok(of_lines(call, Sum { sum: 0.0, count: 0, total: |sum, _| Some(sum) }))
    }));
    functions.add(StreamingFunction(average.nanos_per_kib(5000), |call| {
        let total = |sum, count| (count > 0).then_some(sum / count as f64);
        Ok(of_lines(call, Sum { sum: 0.0, count: 0, total }))
    }));
}

/// A kernel that outputs the lines that match a pattern, or those that do not.
fn matching(call: &Call<'_>, wanted: bool) -> Result<Box<dyn Kernel>, Fault> {
    let pattern = Pattern::of(call, "pattern")?;
    let (mut caches, budget, mut gap) = (Caches::default(), Arc::clone(call.budget), Gap::default());
    Ok(of_lines(call, move |_, line: &str, out: &mut Out| {
        if pattern.is_match(&mut caches, line, &budget)? == wanted {
            gap.before(out);
            out.write(line.as_bytes());
        }
        Ok(())
    }))
}

/// A kernel that outputs the lines for which `keep` returns true.
fn kept(call: &Call<'_>, mut keep: impl FnMut(&str) -> bool + Send + 'static) -> Box<dyn Kernel> {
    let mut gap = Gap::default();
    of_lines(call, move |_, line: &str, out: &mut Out| {
        if keep(line) {
            gap.before(out);
            out.write(line.as_bytes());
        }
        Ok(())
    })
}

/// A kernel that writes one output line per input line.
fn each(call: &Call<'_>, mut give: impl FnMut(u64, &str, &mut Out) + Send + 'static) -> Box<dyn Kernel> {
    let mut gap = Gap::default();
    of_lines(call, move |number, line: &str, out: &mut Out| {
        gap.before(out);
        give(number, line, out);
        Ok(())
    })
}

struct Head {
    left: u64,
    gap: Gap,
}

impl LineVisitor for Head {
    fn line(&mut self, _: u64, line: &str, out: &mut Out) -> Result<(), Fault> {
        self.left -= 1;
        self.gap.before(out);
        out.write(line.as_bytes());
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.left == 0
    }
}

struct NthLine {
    index: u64,
    found: bool,
}

impl LineVisitor for NthLine {
    fn line(&mut self, number: u64, line: &str, out: &mut Out) -> Result<(), Fault> {
        if number - 1 == self.index {
            out.write(line.as_bytes());
            self.found = true;
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.found
    }

    fn finish(&mut self, lines: u64, _: &mut Out) -> Result<(), Fault> {
        match self.found {
            true => Ok(()),
            false => Err(Fault::input(0, format!("has {lines} lines, none with index {}", self.index))),
        }
    }
}

struct Sum {
    sum: f64,
    count: u64,
    /// Computes the result from the sum and the count; `None` if it is undefined.
    total: fn(f64, u64) -> Option<f64>,
}

impl LineVisitor for Sum {
    fn line(&mut self, number: u64, line: &str, _: &mut Out) -> Result<(), Fault> {
        let digits = line.trim();
        if digits.is_empty() {
            return Ok(());
        }
        match digits.parse::<f64>() {
            Ok(value) if value.is_finite() => {
                self.sum += value;
                self.count += 1;
                Ok(())
            }
            _ => Err(Fault::input(0, format!("line {number}: {} is not a number", shown(digits)))),
        }
    }

    fn finish(&mut self, _: u64, out: &mut Out) -> Result<(), Fault> {
        let Some(result) = (self.total)(self.sum, self.count) else {
            return Err(Fault::input(0, "has no numbers, so they have no average"));
        };
        if !result.is_finite() {
            return Err(Fault::input(0, "the sum of its numbers is too large for a 64-bit float"));
        }
        out.write(result.to_string().as_bytes());
        Ok(())
    }
}
