//! From a byte of a text value to the byte of the file that it comes from.

use std::iter::Peekable;
use std::str::CharIndices;

use crate::tree::Span;

/// The byte of the file that byte `inside` of a text value was read from. The value stands at `at` in the file, as a
/// plain, quoted or block scalar of YAML, or as a string of JSON. None if it is another value there, for instance an
/// alias.
pub fn place_in_scalar(text: &str, at: &Span, value: &str, inside: usize) -> Option<usize> {
    let inside = value.floor_char_boundary(inside);
    let source = text.get(at.start..)?;
    let (style, skip) = match source.as_bytes().first()? {
        b'"' => (Style::Double, 1),
        b'\'' => (Style::Single, 1),
        b'|' | b'>' => (Style::Raw, source.find('\n')? + 1),
        b'*' => return None,
        _ => (Style::Raw, 0),
    };
    // The lines of a block scalar may begin as other scalars do.
    let found = walk(&source[skip..], style, value, inside).map(|found| skip + found);
    Some(at.start + found.or_else(|| walk(source, Style::Raw, value, inside))?)
}

fn walk(source: &str, style: Style, value: &str, inside: usize) -> Option<usize> {
    let mut walk = Walk { letters: source.char_indices().peekable(), style, len: source.len() };
    for (place, letter) in value.char_indices() {
        if place >= inside {
            return walk.place_of(letter);
        }
        walk.take(letter)?;
    }
    walk.place()
}

#[derive(Clone, Copy)]
enum Style {
    Double,
    Single,
    Raw,
}

#[derive(Clone)]
struct Walk<'a> {
    letters: Peekable<CharIndices<'a>>,
    style: Style,
    len: usize,
}

impl Walk<'_> {
    fn place(&mut self) -> Option<usize> {
        Some(self.letters.peek().map_or(self.len, |(place, _)| *place))
    }

    /// Where a letter of the value comes from; the walk stays.
    fn place_of(&self, letter: char) -> Option<usize> {
        let mut ahead = self.clone();
        if letter.is_whitespace() {
            return ahead.place();
        }
        ahead.skip_folds();
        let place = ahead.place();
        ahead.take(letter)?;
        place
    }

    /// Spaces, line breaks and indentation of the file that are not, or not as such, in the value.
    fn skip_folds(&mut self) {
        loop {
            while self.letters.next_if(|(_, letter)| letter.is_whitespace()).is_some() {}
            let mut ahead = self.letters.clone();
            let is_joined = matches!(self.style, Style::Double)
                && ahead.next_if(|(_, letter)| *letter == '\\').is_some()
                && ahead.next_if(|(_, letter)| *letter == '\n' || *letter == '\r').is_some();
            if !is_joined {
                return;
            }
            self.letters = ahead;
        }
    }

    /// Goes past a letter of the value.
    fn take(&mut self, letter: char) -> Option<()> {
        if letter.is_whitespace() {
            // A space of the value may be that space, an escape, or a fold, which the next letter goes past.
            if self.letters.next_if(|(_, found)| *found == letter).is_none() {
                let mut ahead = self.clone();
                ahead.skip_folds();
                if matches!(self.style, Style::Double) && ahead.escape() == Some(letter) {
                    *self = ahead;
                }
            }
            return Some(());
        }
        self.skip_folds();
        let (_, found) = *self.letters.peek()?;
        match (self.style, found) {
            (Style::Double, '\\') => self.escape().filter(|escaped| *escaped == letter).map(|_| ()),
            (Style::Single, '\'') => {
                self.letters.next();
                self.letters.next_if(|(_, second)| *second == '\'' && letter == '\'').map(|_| ())
            }
            _ => self.letters.next_if(|(_, found)| *found == letter).map(|_| ()),
        }
    }

    /// The letter that an escape of a double-quoted text is.
    fn escape(&mut self) -> Option<char> {
        self.letters.next_if(|(_, letter)| *letter == '\\')?;
        let (_, kind) = self.letters.next()?;
        let digits = match kind {
            'n' => return Some('\n'),
            't' | '\t' => return Some('\t'),
            'r' => return Some('\r'),
            'b' => return Some('\u{8}'),
            'f' => return Some('\u{c}'),
            'v' => return Some('\u{b}'),
            'a' => return Some('\u{7}'),
            'e' => return Some('\u{1b}'),
            '0' => return Some('\0'),
            '_' => return Some('\u{a0}'),
            'N' => return Some('\u{85}'),
            'L' => return Some('\u{2028}'),
            'P' => return Some('\u{2029}'),
            'x' => 2,
            'u' => 4,
            'U' => 8,
            other => return Some(other),
        };
        let first = self.hex(digits)?;
        if !(0xd800..0xdc00).contains(&first) {
            return char::from_u32(first);
        }
        self.letters.next_if(|(_, letter)| *letter == '\\')?;
        self.letters.next_if(|(_, letter)| *letter == 'u')?;
        let second = self.hex(4)?.checked_sub(0xdc00)?;
        char::from_u32(0x10000 + ((first - 0xd800) << 10) + second)
    }

    fn hex(&mut self, digits: usize) -> Option<u32> {
        let mut number: u32 = 0;
        for _ in 0..digits {
            number = (number << 4) | self.letters.next()?.1.to_digit(16)?;
        }
        Some(number)
    }
}
