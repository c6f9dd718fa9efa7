//! Classes of characters: `[a-z]`, `[[:alpha:]]`, `\d`, `\p{Greek}`.

use super::{Translator, push_literal};
use crate::expr::pattern::PatternError;

/// A class that holds no character.
pub(super) const NONE: &str = r"[^\x00-\x{10FFFF}]";

/// The ASCII classes of `\d` and so on, by letter.
const PERL: [(char, &str); 3] = [('d', "0-9"), ('s', r"\t\n\f\r "), ('w', "0-9A-Za-z_")];

/// The ASCII classes of `[[:alpha:]]` and so on, by name.
const POSIX: [(&str, &str); 14] = [
    ("alnum", "0-9A-Za-z"),
    ("alpha", "A-Za-z"),
    ("ascii", r"\x00-\x7F"),
    ("blank", r"\t "),
    ("cntrl", r"\x00-\x1F\x7F"),
    ("digit", "0-9"),
    ("graph", r"\x21-\x7E"),
    ("lower", "a-z"),
    ("print", r"\x20-\x7E"),
    ("punct", r"\x21-\x2F\x3A-\x40\x5B-\x60\x7B-\x7E"),
    ("space", r"\t\n\x0B\f\r "),
    ("upper", "A-Z"),
    ("word", "0-9A-Za-z_"),
    ("xdigit", "0-9A-Fa-f"),
];

impl Translator<'_> {
    /// A class in brackets, whose first bracket is read.
    pub(super) fn class(&mut self, start: usize) -> Result<(), PatternError> {
        let opened = self.out.len();
        let negated = self.take("^");
        self.out.push_str(if negated { "[^" } else { "[" });
        self.wide_classes += usize::from(negated);
        let items = self.out.len();
        let mut first = true;
        loop {
            let item = self.at;
            match self.rest().chars().next() {
                None => return Err(self.error(start, "`[` is not closed")),
                Some(']') if !first => break,
                Some(_) => {}
            }
            first = false;
            if self.posix(item)? {
                continue;
            }
            if self.rest().starts_with('\\') {
                self.at += 1;
                if self.group_class(item)? {
                    continue;
                }
                self.at = item;
            }
            self.range(start)?;
        }
        self.at += 1;
        // Only surrogates, which no text holds.
        if self.out.len() == items {
            self.out.truncate(opened);
            self.out.push_str(if negated { r"[\x00-\x{10FFFF}]" } else { NONE });
            self.atom("");
            return Ok(());
        }
        self.atom("]");
        Ok(())
    }

    /// Parses `[:alpha:]` or `[:^alpha:]` inside of a class. Consumes nothing if it is not one.
    fn posix(&mut self, start: usize) -> Result<bool, PatternError> {
        let inside = self.rest().strip_prefix("[:").and_then(|rest| rest.split_once(":]"));
        let Some((name, _)) = inside else { return Ok(false) };
        let (negated, plain) = match name.strip_prefix('^') {
            Some(plain) => (true, plain),
            None => (false, name),
        };
        let Some((_, ranges)) = POSIX.iter().find(|(known, _)| *known == plain) else {
            return Err(self.error(start, format!("`[:{name}:]` is not a class")));
        };
        self.at += name.len() + 4;
        self.ascii(ranges, negated);
        Ok(true)
    }

    /// Parses `\d` or `\p{Greek}` after its backslash, inside of a class or outside. Consumes nothing if it is not one.
    pub(super) fn group_class(&mut self, start: usize) -> Result<bool, PatternError> {
        let Some(letter) = self.rest().chars().next() else { return Ok(false) };
        let lower = letter.to_ascii_lowercase();
        let negated = letter != lower;
        if lower == 'p' {
            self.at += 1;
            self.unicode(start, negated)?;
            return Ok(true);
        }
        let Some((_, ranges)) = PERL.iter().find(|(known, _)| *known == lower) else { return Ok(false) };
        self.at += 1;
        self.ascii(ranges, negated);
        Ok(true)
    }

    /// A class of its own, so that it is negated after cases are folded.
    fn ascii(&mut self, ranges: &str, negated: bool) {
        self.wide_classes += usize::from(negated);
        let open = if negated { "[^" } else { "[" };
        self.out.extend([open, ranges]);
        self.atom("]");
    }

    /// The name of a Unicode class, after `\p`.
    fn unicode(&mut self, start: usize, negated: bool) -> Result<(), PatternError> {
        let rest = self.rest();
        let name = match rest.strip_prefix('{') {
            Some(rest) => rest.split_once('}').map(|(name, _)| name),
            None => rest.chars().next().map(|letter| &rest[..letter.len_utf8()]),
        };
        let plain = name.map(|name| name.strip_prefix('^').unwrap_or(name)).unwrap_or_default();
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        let Some(name) = name.filter(|_| !plain.is_empty() && plain.bytes().all(is_name)) else {
            return Err(
                self.error(start, "`\\p` takes the name of a Unicode class, as in `\\pL` or `\\p{Greek}`")
            );
        };
        self.at += if rest.starts_with('{') { name.len() + 2 } else { name.len() };
        let negated = negated != (plain.len() < name.len());
        self.wide_classes += 1;
        self.out.extend([if negated { r"\P{" } else { r"\p{" }, plain]);
        self.atom("}");
        Ok(())
    }

    /// `a` or `a-z` inside of a class that begins at `class`.
    fn range(&mut self, class: usize) -> Result<(), PatternError> {
        let start = self.at;
        let low = self.character(class)?;
        let is_range =
            self.rest().len() >= 2 && self.rest().starts_with('-') && !self.rest().starts_with("-]");
        let high = if is_range {
            self.at += 1;
            self.character(class)?
        } else {
            low
        };
        if high < low {
            let range = &self.pattern[start..self.at];
            return Err(self.error(start, format!("the range `{range}` ends before it begins")));
        }
        self.wide_classes += usize::from(high > low && high > 0x7f);
        // Surrogates are in no text; a range over all of them goes around.
        let low = char::from_u32(low).unwrap_or('\u{e000}');
        let high = char::from_u32(high).unwrap_or('\u{d7ff}');
        if low <= high {
            push_literal(&mut self.out, low);
            if low < high {
                self.out.push('-');
                push_literal(&mut self.out, high);
            }
        }
        Ok(())
    }

    fn character(&mut self, class: usize) -> Result<u32, PatternError> {
        let start = self.at;
        match self.next() {
            None => Err(self.error(class, "`[` is not closed")),
            Some('\\') => self.escaped(start),
            Some(letter) => Ok(letter.into()),
        }
    }
}
