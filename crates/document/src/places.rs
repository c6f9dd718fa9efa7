//! Lines and columns of many bytes of one text, each found in bounded time.

use anabranch_text::position;

/// Bytes between marks: at most so many are counted for one place.
const STEP: usize = 1024;

/// Lines and columns of a text.
#[derive(Clone, Debug, Default)]
pub struct Places {
    /// Line and character, both from 1, at every multiple of [`STEP`], rounded down to a character.
    marks: Vec<(usize, usize)>,
}

impl Places {
    /// The places of a text.
    pub fn of(text: &str) -> Places {
        let (mut marks, mut at, mut here) = (vec![(1, 1)], 0, (1, 1));
        while at + STEP <= text.len() {
            let (start, end) = (text.floor_char_boundary(at), text.floor_char_boundary(at + STEP));
            here = after(here, &text[start..end]);
            marks.push(here);
            at += STEP;
        }
        Places { marks }
    }

    /// Line and character, both from 1, of a byte of the same text.
    pub fn position(&self, text: &str, byte: usize) -> (usize, usize) {
        let byte = text.floor_char_boundary(byte);
        let mut mark = byte / STEP;
        if text.floor_char_boundary(mark * STEP) > byte {
            mark -= 1;
        }
        match self.marks.get(mark) {
            Some(here) => after(*here, &text[text.floor_char_boundary(mark * STEP)..byte]),
            None => position(text, byte),
        }
    }
}

fn after((line, column): (usize, usize), text: &str) -> (usize, usize) {
    let (lines, columns) = position(text, text.len());
    if lines == 1 { (line, column + columns - 1) } else { (line + lines - 1, columns) }
}
