//! Untrusted text on one line, without control sequences for a terminal.

use std::fmt::{self, Write as _};

use unicode_width::UnicodeWidthStr as _;

/// Displays a text on one line: line breaks and tabs become spaces. Other control characters, and those that change
/// the direction of writing, are escaped.
///
/// ```
/// use anabranch_text::Plain;
/// assert_eq!(Plain("red\u{1b}[31m\nand\tblue").to_string(), "red\\u{1b}[31m and blue");
/// ```
pub struct Plain<'a>(pub &'a str);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => f.write_char(' ')?,
                letter if letter.is_control() || turns(letter) => write!(f, "{}", letter.escape_unicode())?,
                letter => f.write_char(letter)?,
            }
        }
        Ok(())
    }
}

/// Whether a character changes the direction of the text after it, so that a line could look like another one.
fn turns(letter: char) -> bool {
    matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The number of terminal columns of a text. A wide character takes two, a combining one none.
pub fn columns(text: &str) -> usize {
    text.width()
}
