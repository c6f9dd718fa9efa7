//! Untrusted text in a page.

use std::fmt::{self, Display, Formatter, Write as _};

/// Displays a text in HTML, as content or as the value of an attribute. Markup is escaped. Control characters and those
/// that change the direction of writing are shown as their codes; line breaks and tabs stay.
pub(crate) struct Html<'a>(pub(crate) &'a str);

impl Display for Html<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for letter in self.0.chars() {
            match letter {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\'' => f.write_str("&#39;")?,
                '\n' | '\t' => f.write_char(letter)?,
                letter if letter.is_control() || turns(letter) => write!(f, "{}", letter.escape_unicode())?,
                letter => f.write_char(letter)?,
            }
        }
        Ok(())
    }
}

/// True if a character changes the direction of the text after it, or is invisible and breaks lines.
fn turns(letter: char) -> bool {
    matches!(letter, '\u{61c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::Html;

    #[test]
    fn nothing_of_a_text_is_markup() {
        let check = |text: &str, shown: &str| assert_eq!(Html(text).to_string(), shown);
        check(
            "<script>alert('1 & \"2\"')</script>",
            "&lt;script&gt;alert(&#39;1 &amp; &quot;2&quot;&#39;)&lt;/script&gt;",
        );
        check("one\ntwo\tthree\r", "one\ntwo\tthree\\u{d}");
        check("\0\u{1b}[31m\u{202e}abc\u{2066}", "\\u{0}\\u{1b}[31m\\u{202e}abc\\u{2066}");
        check("مرحبا ☕", "مرحبا ☕");
    }
}
