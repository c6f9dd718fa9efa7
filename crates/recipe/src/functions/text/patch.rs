//! Applies a diff to a text.

use bytes::Bytes;

use super::{shown, text};
use crate::budget::CallBudget;
use crate::function::Fault;
use crate::functions::kernels::signature;
use crate::registry::Functions;
use crate::signature::Arity;
use crate::whole::whole;

pub(super) fn add(functions: &mut Functions) {
    functions.add(whole(
        signature(
            "patch/1.0.0",
            "The first input with the second input, a unified diff of one file, applied to it. Lines are \
             compared without their ends. The output has an LF between lines and none after the last line. \
             An empty diff changes nothing. The counts of a header are not checked. Version 2.0.0 keeps \
             bytes and checks counts.",
        )
        .inputs(Arity::exactly(2))
        .claims(3)
        .nanos_per_kib(800)
        .unlike_deriva(
            "A header that places a hunk before line 0 is applied at the start, and one after \
            the end is an error; Deriva panics.",
        ),
        |_| {
            Ok(Box::new(|inputs, budget| {
                let (original, diff) = (text(0, &inputs[0])?, text(1, &inputs[1])?);
                if diff.is_empty() {
                    return Ok(inputs[0].clone());
                }
                claim_lines(&inputs[0], budget)?;
                budget.claim(original.len() as u64 + diff.len() as u64)?;
                patched_lines(original, diff)
            }))
        },
    ));
    functions.add(whole(
        signature(
            "patch/2.0.0",
            "The first input with the second input, a unified diff of one file, applied to it. Every line \
             of the first input that the diff contains must be at its place, byte by byte. An empty diff \
             changes nothing.",
        )
        .inputs(Arity::exactly(2))
        .nanos_per_kib(800),
        |_| {
            Ok(Box::new(|inputs, budget| {
                claim_lines(&inputs[0], budget)?;
                patched(&inputs[0], &inputs[1])
            }))
        },
    ));
}

/// Claims memory for the slices of the lines.
fn claim_lines(original: &[u8], budget: &CallBudget) -> Result<(), Fault> {
    let lines = memchr::memchr_iter(b'\n', original).count() as u64 + 1;
    budget.claim(lines * 4 * size_of::<&[u8]>() as u64)
}

/// The text after the diff is applied. Line ends are not compared.
fn patched_lines(original: &str, diff: &str) -> Result<Bytes, Fault> {
    let original: Vec<&str> = original.lines().collect();
    let (mut at, mut made, mut in_hunk) = (0, Vec::with_capacity(original.len()), false);
    for (index, line) in diff.lines().enumerate() {
        let wrong = |problem: String| Fault::input(1, format!("line {}: {problem}", index + 1));
        if line.starts_with("@@") {
            let header = || wrong(format!("{} is not `@@ -line,count +line,count @@`", shown(line)));
            let first = hunk_start(line).ok_or_else(header)?;
            if first < at || first > original.len() {
                let allowed = format!("expected a line from {at} to {}", original.len());
                return Err(wrong(format!("the header places the hunk after line {first}; {allowed}")));
            }
            made.extend_from_slice(&original[at..first]);
            (at, in_hunk) = (first, true);
            continue;
        }
        let (mark, rest) = match line.split_at_checked(1) {
            _ if !in_hunk => continue,
            Some((mark, rest)) => (mark, rest),
            None => (" ", ""),
        };
        match mark {
            "+" => made.push(rest),
            " " | "-" if original.get(at) == Some(&rest) => {
                at += 1;
                if mark == " " {
                    made.push(rest);
                }
            }
            " " | "-" => {
                let there = original.get(at).map_or("the end of the original".to_owned(), |line| shown(line));
                return Err(wrong(format!("{} is not line {}: {there}", shown(rest), at + 1)));
            }
            _ => {}
        }
    }
    made.extend_from_slice(&original[at..]);
    Ok(made.join("\n").into())
}

/// The number of lines before the hunk with this header.
fn hunk_start(header: &str) -> Option<usize> {
    let (old, _) = header.strip_prefix("@@ -")?.split_once(" +")?;
    let first: usize = old.split(',').next()?.parse().ok()?;
    Some(first.saturating_sub(1))
}

fn patched(original: &[u8], diff: &[u8]) -> Result<Bytes, Fault> {
    let mut text = Text {
        original: original.split_inclusive(|byte| *byte == b'\n').collect(),
        at: 0,
        // The output has no line that is in neither input.
        made: Vec::with_capacity(original.len() + diff.len()),
        count: 0,
    };
    let mut diff = Diff { left: diff, line: 0 };
    diff.skip_headers()?;
    while let Some(header) = diff.next() {
        let hunk = Hunk::read(header).ok_or_else(|| {
            diff.fault(&format!("{} is not `@@ -line,count +line,count @@`", quoted(header)))
        })?;
        text.apply(&hunk, &mut diff)?;
    }
    text.keep(text.original.len());
    Ok(text.made.into())
}

/// A text to which a diff is being applied.
struct Text<'a> {
    original: Vec<&'a [u8]>,
    /// The number of original lines that were kept or deleted so far.
    at: usize,
    made: Vec<u8>,
    /// The number of output lines so far.
    count: usize,
}

impl Text<'_> {
    fn keep(&mut self, to: usize) {
        self.count += to - self.at;
        for line in &self.original[self.at..to] {
            self.made.extend_from_slice(line);
        }
        self.at = to;
    }

    fn apply(&mut self, hunk: &Hunk, diff: &mut Diff<'_>) -> Result<(), Fault> {
        let lines = self.original.len();
        if hunk.old.first < self.at || hunk.old.first > lines {
            let allowed = format!("expected a line from {} to {lines}", self.at);
            return Err(
                diff.fault(&format!("the header places the hunk after line {}; {allowed}", hunk.old.first))
            );
        }
        self.keep(hunk.old.first);
        if hunk.new.first != self.count {
            return Err(diff.fault(&format!(
                "the header places the hunk after line {} of the output; its lines come after line {}",
                hunk.new.first, self.count
            )));
        }
        let (old_end, new_end) = (hunk.old.first + hunk.old.count, hunk.new.first + hunk.new.count);
        while self.at < old_end || self.count < new_end {
            let Some(line) = diff.next() else { return Err(diff.fault("the hunk ends early")) };
            let (mark, line) = match line {
                // Some programs strip trailing spaces, so an empty context line may lack its leading space.
                b"\n" => (b' ', line),
                [mark @ (b' ' | b'-' | b'+'), line @ ..] => (*mark, line),
                _ => return Err(diff.fault(&format!("{} does not begin with ` `, `-` or `+`", quoted(line)))),
            };
            let line = diff.without_end(line);
            let fits = (mark == b'+' || self.at < old_end) && (mark == b'-' || self.count < new_end);
            if !fits {
                return Err(diff.fault("the hunk does not have the numbers of lines in its header"));
            }
            if mark != b'+' {
                self.expect(line, diff)?;
                self.at += 1;
            }
            if mark != b'-' {
                self.made.extend_from_slice(line);
                self.count += 1;
            }
        }
        Ok(())
    }

    fn expect(&self, line: &[u8], diff: &Diff<'_>) -> Result<(), Fault> {
        match self.original.get(self.at) {
            Some(original) if *original == line => Ok(()),
            Some(original) => Err(diff.fault(&format!(
                "{} is not line {} of the original: {}",
                quoted(line),
                self.at + 1,
                quoted(original)
            ))),
            None => Err(diff.fault(&format!("the original has no line {}: {}", self.at + 1, quoted(line)))),
        }
    }
}

/// Reads a diff line by line.
struct Diff<'a> {
    left: &'a [u8],
    /// The number of the line read last, from 1.
    line: usize,
}

impl<'a> Diff<'a> {
    fn peek(&self) -> Option<&'a [u8]> {
        self.left.split_inclusive(|byte| *byte == b'\n').next()
    }

    fn next(&mut self) -> Option<&'a [u8]> {
        let line = self.peek()?;
        self.left = &self.left[line.len()..];
        self.line += 1;
        Some(line)
    }

    /// Skips the lines before the first hunk: none, or all lines up to `---` and `+++`.
    fn skip_headers(&mut self) -> Result<(), Fault> {
        let begins = |line: Option<&[u8]>, start: &[u8]| line.is_some_and(|line| line.starts_with(start));
        while self.peek().is_some() && !begins(self.peek(), b"@@ ") {
            if begins(self.next(), b"--- ") && begins(self.next(), b"+++ ") {
                return Ok(());
            }
        }
        match self.line == 0 {
            true => Ok(()),
            false => Err(self.fault("not a unified diff: no `--- ` and `+++ ` before the hunks")),
        }
    }

    /// The line without its line feed, if the next line of the diff says that it has none.
    fn without_end(&mut self, line: &'a [u8]) -> &'a [u8] {
        match self.peek() {
            Some([b'\\', ..]) => {
                self.next();
                line.strip_suffix(b"\n").unwrap_or(line)
            }
            _ => line,
        }
    }

    fn fault(&self, problem: &str) -> Fault {
        Fault::input(1, format!("line {}: {problem}", self.line))
    }
}

/// The header of a hunk.
struct Hunk {
    old: Place,
    new: Place,
}

/// A range of lines on one side: the number of lines before it, and its length.
struct Place {
    first: usize,
    count: usize,
}

impl Hunk {
    /// Parses `@@ -1,2 +3,4 @@`, possibly followed by other text.
    fn read(header: &[u8]) -> Option<Hunk> {
        let header = std::str::from_utf8(header).ok()?;
        let (places, _) = header.strip_prefix("@@ -")?.split_once(" @@")?;
        let (old, new) = places.split_once(" +")?;
        Some(Hunk { old: Place::read(old)?, new: Place::read(new)? })
    }
}

impl Place {
    /// Parses `1,2`, or `1` as `1,1`. An empty range is named by the line before it.
    fn read(text: &str) -> Option<Place> {
        let (first, count) = text.split_once(',').unwrap_or((text, "1"));
        let (first, count): (usize, usize) = (first.parse().ok()?, count.parse().ok()?);
        let first = if count == 0 { first } else { first.checked_sub(1)? };
        first.checked_add(count)?;
        Some(Place { first, count })
    }
}

fn quoted(line: &[u8]) -> String {
    shown(&String::from_utf8_lossy(line))
}
