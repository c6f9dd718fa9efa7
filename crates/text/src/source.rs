//! Lines and columns of a source, and the line that a problem is about.

use std::fmt;
use std::ops::Range;

use crate::plain::{Plain, columns};

/// Line and character, both from 1, of a byte.
pub fn position(text: &str, byte: usize) -> (usize, usize) {
    let before = &text[..text.floor_char_boundary(byte)];
    let begin = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before[..begin].matches('\n').count() + 1, before[begin..].chars().count() + 1)
}

/// The byte at a line and character, both from 1; the end of the text if it has fewer.
pub fn offset(text: &str, line: usize, column: usize) -> usize {
    let begin = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum::<usize>();
    begin + text[begin..].chars().take(column.saturating_sub(1)).map(char::len_utf8).sum::<usize>()
}

/// A line of a source, with a mark under the part that matters.
///
/// ```
/// # use anabranch_text::Excerpt;
/// assert_eq!(Excerpt::of("a = 1\nb = 東京 + c", 19..20).to_string(), "  2 | b = 東京 + c\n    |            ^");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The number of the line, from 1.
    pub line: usize,
    /// The character that the part begins at, from 1.
    pub column: usize,
    /// The number of characters of the part within the line, at least 1.
    pub width: usize,
    /// The shown part of the line. A long line is cut.
    shown: String,
    /// The terminal columns to the left of the mark, and under it.
    mark: (usize, usize),
}

/// The most columns of a line that are shown. If a line is cut, `BEFORE / 2` of them are left of the mark.
const SHOWN: usize = 100;
const BEFORE: usize = 60;

impl Excerpt {
    /// The line with the first of these bytes.
    pub fn of(text: &str, bytes: Range<usize>) -> Excerpt {
        let start = text.floor_char_boundary(bytes.start);
        let (line, column) = position(text, start);
        let begin = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let finish = text[start..].find('\n').map_or(text.len(), |newline| start + newline);
        let end = text.floor_char_boundary(bytes.end).clamp(start, finish);
        let part = text[start..end].trim_end();
        let mut before = shown(last(&text[begin..start]));
        if columns(&before) > BEFORE {
            while columns(&before) > BEFORE / 2 {
                before.remove(0);
            }
        }
        let (left, under) = (columns(&before), columns(&shown(first(part))));
        let rest = shown(first(&text[start..finish]));
        Excerpt {
            line,
            column,
            width: part.chars().count().max(1),
            shown: cut(before + &rest).trim_end().to_owned(),
            mark: (left, under.clamp(1, SHOWN - left)),
        }
    }
}

/// The beginning of a text that is too long to show.
fn first(text: &str) -> &str {
    text.char_indices().nth(SHOWN).map_or(text, |(end, _)| &text[..end])
}

fn last(text: &str) -> &str {
    text.char_indices().nth_back(SHOWN).map_or(text, |(start, _)| &text[start..])
}

fn shown(text: &str) -> String {
    Plain(&text.replace('\t', "    ")).to_string()
}

/// The first columns of a text.
fn cut(mut text: String) -> String {
    while columns(&text) > SHOWN {
        text.pop();
    }
    text
}

impl fmt::Display for Excerpt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, (left, under)) = (self.line.to_string(), self.mark);
        writeln!(f, "  {number} | {}", self.shown)?;
        write!(f, "  {:len$} | {:left$}{}", "", "", "^".repeat(under), len = number.len())
    }
}

#[cfg(test)]
mod tests {
    use super::{Excerpt, offset, position};

    /// Checks the excerpt of the line with a part in `<` and `>`, which are not part of it.
    fn check(marked: &str, expected: &str) {
        let (start, end) = (marked.find('<').unwrap(), marked.find('>').unwrap() - 1);
        let text = marked.replacen('<', "", 1).replacen('>', "", 1);
        assert_eq!(Excerpt::of(&text, start..end).to_string(), expected);
    }

    #[test]
    fn the_mark_is_under_the_part() {
        check("one\nfour <bad> words", "  2 | four bad words\n    |      ^^^");
        check("<>", "  1 | \n    | ^");
        check("cut at the <end  \nof a> line", "  1 | cut at the end\n    |            ^^^");
    }

    #[test]
    fn the_mark_stands_right_behind_wide_combining_and_control_characters() {
        check("\t<bad>", "  1 |     bad\n    |     ^^^");
        check("東京 <bad>", "  1 | 東京 bad\n    |      ^^^");
        check("<東京> bad", "  1 | 東京 bad\n    | ^^^^");
        check("cafe\u{301} <bad>", "  1 | cafe\u{301} bad\n    |      ^^^");
        check("e<\u{301}>", "  1 | e\u{301}\n    |  ^");
        check("a\u{1b}[2J<b>", "  1 | a\\u{1b}[2Jb\n    |           ^");
    }

    #[test]
    fn a_long_line_is_cut_around_the_part() {
        let long = Excerpt::of(&"x".repeat(2_000), 500..1_400);
        assert_eq!((long.column, long.width), (501, 900));
        assert_eq!(long.to_string(), format!("  1 | {}\n    | {:30}{}", "x".repeat(100), "", "^".repeat(70)));
        let wide = Excerpt::of(&"東".repeat(2_000), 1_500..1_503);
        assert_eq!(wide.to_string(), format!("  1 | {}\n    | {:30}^^", "東".repeat(50), ""));
    }

    #[test]
    fn positions_and_offsets_are_inverse() {
        let text = "a\r\n東b\n";
        for (at, _) in text.char_indices() {
            let (line, column) = position(text, at);
            assert_eq!(offset(text, line, column), at);
        }
        assert_eq!(position(text, 5), (2, 1), "inside a character");
        assert_eq!((offset(text, 9, 9), position(text, 99)), (text.len(), (3, 1)));
    }
}
