//! Escapes text for markup and for JSON, because names come from outside.

use std::fmt::{self, Display, Formatter, Write};

/// Text inside an element or an attribute, in HTML and in XML.
pub(crate) struct Markup<'a>(pub(crate) &'a str);

/// A JSON string with its quotes.
pub(super) struct JsonString<'a>(pub(super) &'a str);

impl Display for Markup<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\r' | '\t' => f.write_char(' ')?,
                // XML cannot represent these characters, escaped or not.
                c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => f.write_char('\u{fffd}')?,
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

impl Display for JsonString<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for c in self.0.chars() {
            match c {
                '"' => f.write_str("\\\"")?,
                '\\' => f.write_str("\\\\")?,
                c if c.is_control() => write!(f, "\\u{:04x}", c as u32)?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('"')
    }
}

/// At most `room` characters of `text`, with an ellipsis if it was cut.
pub(crate) fn shorten(text: &str, room: usize) -> String {
    match text.char_indices().nth(room) {
        None => text.to_owned(),
        Some(_) => text.chars().take(room.saturating_sub(1)).chain(['…']).collect(),
    }
}
