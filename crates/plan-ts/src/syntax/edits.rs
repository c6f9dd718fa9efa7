//! Changes to a text, applied all at once, and the mapping back to the original.

use std::fmt::{Display, Write};

/// Changes to a text. Those at one position are applied in the order of their calls. They do not overlap.
#[derive(Default)]
pub(super) struct Edits {
    list: Vec<Edit>,
    /// The new text of all of them.
    new: String,
}

struct Edit {
    start: u32,
    end: u32,
    /// Its part of `new`.
    new: (u32, u32),
}

/// A change that is decided later. Without a decision, nothing changes.
#[derive(Clone, Copy)]
pub(super) struct Slot(usize);

/// The origin of each part of a changed text.
#[derive(Debug, Default)]
pub(super) struct Map {
    parts: Vec<Part>,
    /// The offset of each line of the changed text.
    lines: Vec<u32>,
}

#[derive(Debug)]
struct Part {
    /// Its start in the changed text, and in the original.
    made: u32,
    from: u32,
    origin: Origin,
}

#[derive(Debug, Clone, Copy)]
enum Origin {
    Copied,
    New,
}

impl Edits {
    /// Puts new text before a byte.
    pub(super) fn insert(&mut self, at: u32, new: impl Display) {
        self.replace(at, at, new);
    }

    /// Puts new text in the place of old.
    pub(super) fn replace(&mut self, start: u32, end: u32, new: impl Display) {
        let slot = self.slot(start);
        self.fill(slot, end, new);
    }

    /// Reserves a position in the order, for a change that is decided later.
    pub(super) fn slot(&mut self, at: u32) -> Slot {
        self.list.push(Edit { start: at, end: at, new: (0, 0) });
        Slot(self.list.len() - 1)
    }

    /// Decides a change: the text up to `end` is replaced.
    pub(super) fn fill(&mut self, slot: Slot, end: u32, new: impl Display) {
        let begin = self.new.len() as u32;
        write!(self.new, "{new}").expect("a string takes all that is written to it");
        let edit = &mut self.list[slot.0];
        edit.end = end;
        edit.new = (begin, self.new.len() as u32);
    }

    /// Makes the changes.
    pub(super) fn apply(mut self, text: &str) -> (String, Map) {
        // The sort is stable: of two changes at one position, the first call comes first.
        self.list.sort_by_key(|edit| edit.start);
        let mut out = String::with_capacity(text.len() + self.new.len());
        let mut parts = Vec::with_capacity(2 * self.list.len() + 1);
        let mut done = 0;
        for edit in &self.list {
            let start = edit.start.max(done);
            if start > done {
                parts.push(Part { made: out.len() as u32, from: done, origin: Origin::Copied });
                out.push_str(&text[done as usize..start as usize]);
            }
            if edit.new.0 < edit.new.1 {
                parts.push(Part { made: out.len() as u32, from: edit.start, origin: Origin::New });
                out.push_str(&self.new[edit.new.0 as usize..edit.new.1 as usize]);
            }
            done = start.max(edit.end);
        }
        parts.push(Part { made: out.len() as u32, from: done, origin: Origin::Copied });
        out.push_str(&text[done as usize..]);
        let lines = lines(&out);
        (out, Map { parts, lines })
    }
}

impl Map {
    /// The byte of the original that a byte of the changed text comes from; of new text, where it was put.
    pub(super) fn original(&self, made: u32) -> u32 {
        let next = self.parts.partition_point(|part| part.made <= made);
        match next.checked_sub(1).map(|index| &self.parts[index]) {
            Some(Part { made: begin, from, origin: Origin::Copied }) => from + (made - begin),
            Some(part) => part.from,
            None => 0,
        }
    }

    /// The byte offset in a changed text of a line and a column, both from 1. Columns count bytes, like the engine's. A
    /// column past a line's end is its end.
    pub(super) fn offset(&self, code: &str, line: u32, column: u32) -> u32 {
        let line = line.saturating_sub(1) as usize;
        let end = code.len() as u32;
        let Some(&start) = self.lines.get(line) else { return end };
        let next = self.lines.get(line + 1).map_or(end, |next| next - 1);
        let mut at = start.saturating_add(column.saturating_sub(1)).min(next);
        // Code can make a stack up, and point into a character.
        while !code.is_char_boundary(at as usize) {
            at -= 1;
        }
        at
    }
}

/// The starts of lines, in JavaScript's definition.
fn lines(text: &str) -> Vec<u32> {
    let mut lines = vec![0];
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let ends = match letter {
            '\r' => letters.peek().is_none_or(|(_, next)| *next != '\n'),
            '\n' | '\u{2028}' | '\u{2029}' => true,
            _ => false,
        };
        if ends {
            lines.push((at + letter.len_utf8()) as u32);
        }
    }
    lines
}
