//! Estimates the memory of a TOML document before it is parsed.

/// The memory of parts of a document: of the parser's events, its values, and the JSON made of them. Lists grow by
/// doubling, which the numbers allow for.
mod cost {
    pub(super) const BYTE: u64 = 12;
    pub(super) const LINE: u64 = 150;
    pub(super) const COMMENT: u64 = 80;
    pub(super) const TEXT: u64 = 80;
    /// An element of an array.
    pub(super) const ELEMENT: u64 = 400;
    /// A key with its value.
    pub(super) const ENTRY: u64 = 500;
    /// A `[table]`.
    pub(super) const HEADER: u64 = 1000;
    /// An inline table, or one of a dotted key.
    pub(super) const TABLE: u64 = 1200;
}

/// An upper bound of the memory that a document takes, in bytes. It follows from the marks outside of texts and comments.
pub(super) fn memory_of(text: &str) -> u64 {
    let mut scan = Scan { left: text.as_bytes(), open: Vec::new(), place: Place::LineStart };
    let mut memory = text.len() as u64 * cost::BYTE;
    while let Some((&byte, left)) = scan.left.split_first() {
        scan.left = left;
        memory += scan.step(byte);
    }
    memory
}

/// A scan over the marks of a document.
struct Scan<'a> {
    left: &'a [u8],
    /// The brackets that are open in a value.
    open: Vec<u8>,
    place: Place,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    LineStart,
    Key,
    Value,
}

impl Scan<'_> {
    fn step(&mut self, byte: u8) -> u64 {
        match byte {
            b'\n' => {
                if self.open.is_empty() {
                    self.place = Place::LineStart;
                }
                cost::LINE
            }
            b' ' | b'\t' | b'\r' => 0,
            b'#' => {
                let end = memchr::memchr(b'\n', self.left).unwrap_or(self.left.len());
                self.left = &self.left[end..];
                cost::COMMENT
            }
            b'"' | b'\'' => {
                self.begin_key();
                self.skip_text(byte);
                cost::TEXT
            }
            b'=' => {
                self.place = Place::Value;
                cost::ENTRY
            }
            b'.' if self.place != Place::Value => cost::TABLE,
            b'[' if self.place == Place::LineStart => {
                self.place = Place::Key;
                cost::HEADER
            }
            b'[' | b'{' if self.place == Place::Value => {
                self.open.push(byte);
                self.place = if byte == b'{' { Place::Key } else { Place::Value };
                if byte == b'{' { cost::TABLE } else { cost::ELEMENT }
            }
            b']' | b'}' if !self.open.is_empty() => {
                self.open.pop();
                self.place = Place::Value;
                0
            }
            b',' => {
                self.place = if self.open.last() == Some(&b'{') { Place::Key } else { Place::Value };
                cost::ELEMENT
            }
            _ => {
                self.begin_key();
                0
            }
        }
    }

    fn begin_key(&mut self) {
        if self.place == Place::LineStart {
            self.place = Place::Key;
        }
    }

    /// Skips the rest of a text: up to its quote, which is three quotes if it may have several lines. One that does not
    /// end on its line is an error, which the parser reports.
    fn skip_text(&mut self, quote: u8) {
        let is_long = self.left.starts_with(&[quote, quote]);
        if is_long {
            self.left = &self.left[2..];
        }
        while let Some((&byte, left)) = self.left.split_first() {
            if byte == b'\n' && !is_long {
                return;
            }
            self.left = left;
            if byte == b'\\' && quote == b'"' && (is_long || !left.starts_with(b"\n")) {
                self.left = self.left.get(1..).unwrap_or_default();
            } else if byte == quote && !is_long {
                return;
            } else if byte == quote && self.left.starts_with(&[quote, quote]) {
                // Up to two quotes before the end belong to the text.
                self.left = &self.left[2..];
                while let Some(left) = self.left.strip_prefix(&[quote]) {
                    self.left = left;
                }
                return;
            }
        }
    }
}
