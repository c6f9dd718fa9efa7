//! JSON as a tree. YAML's reader knows most of JSON; this one knows all of it: tabs, surrogate pairs, `\/`, names of any
//! length.

use std::collections::HashSet;

use crate::notes::Notes;
use crate::tree::{DEEPEST, Key, Limits, Node, Span, Table, Tree};

/// The value that a text is; null if it is empty.
pub(crate) fn parse(text: &str, limits: Limits, notes: &mut Notes<'_>) -> Option<Node> {
    let mut reader = Reader { text, at: 0, depth: 0, nodes: limits.nodes };
    if text.starts_with('\u{feff}') {
        reader.at = '\u{feff}'.len_utf8();
    }
    reader.skip_space();
    if reader.at == text.len() {
        return Some(Node { at: 0..0, value: Tree::Null });
    }
    let read = reader.node().and_then(|node| {
        reader.skip_space();
        if reader.at < text.len() { Err(reader.wrong("text behind the end of the value")) } else { Ok(node) }
    });
    match read {
        Ok(node) => Some(node),
        Err((at, what)) => {
            notes.hint(&at, what, None);
            None
        }
    }
}

type Wrong = (Span, String);

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    /// Values that may still come.
    nodes: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn wrong(&self, what: &str) -> Wrong {
        let width = self.text[self.at..].chars().next().map_or(0, char::len_utf8);
        let what = if width == 0 { format!("the file ends early: {what}") } else { what.to_owned() };
        (self.at..self.at + width, what)
    }

    fn node(&mut self) -> Result<Node, Wrong> {
        let start = self.at;
        let Some(left) = self.nodes.checked_sub(1) else {
            return Err(self.wrong("the file has too many values"));
        };
        self.nodes = left;
        let value = match self.peek() {
            Some(b'{') => self.nested(Reader::table)?,
            Some(b'[') => self.nested(Reader::list)?,
            Some(b'"') => Tree::Text(self.string()?),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            _ => self.word()?,
        };
        Ok(Node { at: start..self.at, value })
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Result<Tree, Wrong>) -> Result<Tree, Wrong> {
        if self.depth == DEEPEST {
            return Err(self.wrong(&format!("lists and tables are more than {DEEPEST} deep in each other")));
        }
        self.depth += 1;
        self.at += 1;
        let tree = read(self);
        self.depth -= 1;
        tree
    }

    fn list(&mut self) -> Result<Tree, Wrong> {
        let mut items = Vec::new();
        self.skip_space();
        while self.peek() != Some(b']') {
            items.push(self.node()?);
            self.separator(b']', "expected `,` or `]`")?;
        }
        self.at += 1;
        Ok(Tree::List(items))
    }

    fn table(&mut self) -> Result<Tree, Wrong> {
        let (mut table, mut names) = (Table::new(), HashSet::new());
        self.skip_space();
        while self.peek() != Some(b'}') {
            let start = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.wrong("expected a name in double quotes"));
            }
            let name = self.string()?;
            let at = start..self.at;
            if !names.insert(name.clone()) {
                return Err((at, format!("duplicate mapping key: {name}")));
            }
            self.skip_space();
            if self.peek() != Some(b':') {
                return Err(self.wrong("expected `:`"));
            }
            self.at += 1;
            self.skip_space();
            let node = self.node()?;
            table.push((Key { at, name }, node));
            self.separator(b'}', "expected `,` or `}`")?;
        }
        self.at += 1;
        Ok(Tree::Table(table))
    }

    /// The comma behind an element, or what closes the list or table.
    fn separator(&mut self, close: u8, expected: &str) -> Result<(), Wrong> {
        self.skip_space();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                self.skip_space();
                if self.peek() == Some(close) {
                    Err(self.wrong("expected a value behind `,`"))
                } else {
                    Ok(())
                }
            }
            Some(found) if found == close => Ok(()),
            _ => Err(self.wrong(expected)),
        }
    }

    fn word(&mut self) -> Result<Tree, Wrong> {
        for (word, tree) in [("null", Tree::Null), ("true", Tree::Bool(true)), ("false", Tree::Bool(false))] {
            if self.text[self.at..].starts_with(word) {
                self.at += word.len();
                return Ok(tree);
            }
        }
        Err(self.wrong("expected a value"))
    }

    fn number(&mut self) -> Result<Tree, Wrong> {
        let rest = &self.text[self.at..];
        let is_part = |letter: char| letter.is_ascii_digit() || "+-.eE".contains(letter);
        let number = &rest[..rest.find(|letter| !is_part(letter)).unwrap_or(rest.len())];
        let at = self.at..self.at + number.len();
        let digits = number.strip_prefix('-').unwrap_or(number);
        let leads_with_zero =
            digits.len() > 1 && digits.starts_with('0') && digits.as_bytes()[1].is_ascii_digit();
        let is_whole = digits.bytes().all(|byte| byte.is_ascii_digit());
        let parsed =
            number.parse::<f64>().ok().filter(|_| digits.starts_with(|digit: char| digit.is_ascii_digit()));
        let (Some(float), false) = (parsed, leads_with_zero) else {
            return Err((at, "not a number as JSON writes it".to_owned()));
        };
        self.at = at.end;
        Ok(match number.parse() {
            Ok(int) if is_whole => Tree::Int(int),
            _ if !float.is_finite() => Tree::Other("a number that is too large"),
            _ if is_whole => Tree::Big(float),
            _ => Tree::Float(float),
        })
    }

    fn string(&mut self) -> Result<String, Wrong> {
        let start = self.at;
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.at..];
            let plain = rest
                .find(|letter: char| letter == '"' || letter == '\\' || letter < ' ')
                .unwrap_or(rest.len());
            out.push_str(&rest[..plain]);
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => out.push(self.escape()?),
                // Other readers of JSON refuse it as well; only a tab can be seen often enough to be let through.
                Some(b'\t') => {
                    out.push('\t');
                    self.at += 1;
                }
                Some(_) => {
                    return Err(self.wrong("a control character in text; write it as an escape, `\\n`"));
                }
                None => return Err((start..start + 1, "the text has no closing quote".to_owned())),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Wrong> {
        let start = self.at;
        let letter = self.text.as_bytes().get(start + 1).copied();
        self.at += 2;
        let plain = match letter {
            Some(b'n') => '\n',
            Some(b't') => '\t',
            Some(b'r') => '\r',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(found @ (b'"' | b'\\' | b'/')) => char::from(found),
            Some(b'u') => return self.unicode(start),
            _ => return Err((start..start + 1, "not an escape of JSON".to_owned())),
        };
        Ok(plain)
    }

    fn unicode(&mut self, start: usize) -> Result<char, Wrong> {
        let bad =
            |reader: &Self| (start..reader.at.min(reader.text.len()), "not an escape of JSON".to_owned());
        let first = self.hex().ok_or_else(|| bad(self))?;
        if let Some(letter) = char::from_u32(first) {
            return Ok(letter);
        }
        // The second half of a surrogate pair.
        if !self.text[self.at..].starts_with("\\u") {
            return Err(bad(self));
        }
        self.at += 2;
        let second = self.hex().filter(|second| (0xdc00..0xe000).contains(second) && first < 0xdc00);
        let letter =
            second.and_then(|second| char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)));
        letter.ok_or_else(|| bad(self))
    }

    fn hex(&mut self) -> Option<u32> {
        let digits = self
            .text
            .get(self.at..self.at + 4)
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        self.at += 4;
        u32::from_str_radix(digits, 16).ok()
    }
}
