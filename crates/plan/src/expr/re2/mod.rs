//! Regexes are written in RE2's syntax and have RE2's meaning: this translates them to the syntax of the `regex` crate.
//!
//! The two agree in most things. They differ in `\d \w \s \b` (ASCII in RE2), in classes (`[a&&b]` and `[[a]b]` are
//! plain characters in RE2), in escapes (`\<`, `\Q..\E`, `\C`, octal) and in braces that are not repetitions (`{`,
//! `x{,3}`). The translation escapes every literal and expands every class, so that the crate cannot interpret anything
//! differently. Groups do not capture, because a predicate only tests whether there is a match.

mod class;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fmt::Write as _;

use super::pattern::PatternError;

/// RE2's limit for `n` and `m` of `x{n,m}`.
const MOST_REPEATS: u32 = 1_000;

/// A pattern in the syntax of the `regex` crate.
#[derive(Debug)]
pub(super) struct TranslatedPattern {
    /// The pattern, for a regex over bytes: `\C` and `\B` may be inside a character.
    pub(super) pattern: String,
    /// The number of classes that hold more than ASCII: each takes kilobytes and much time to compile.
    pub(super) wide_classes: usize,
}

/// Translates a pattern, or names the first part of it that RE2 would refuse.
pub(super) fn translate(pattern: &str) -> Result<TranslatedPattern, PatternError> {
    let mut translator = Translator {
        pattern,
        at: 0,
        out: String::with_capacity(2 * pattern.len()),
        groups: Vec::new(),
        names: HashSet::new(),
        operand: Operand::Missing,
        wide_classes: 0,
    };
    translator.all()?;
    Ok(TranslatedPattern { pattern: translator.out, wide_classes: translator.wide_classes })
}

struct Translator<'p> {
    pattern: &'p str,
    /// The byte that is read next.
    at: usize,
    out: String,
    /// The places of the groups that are open.
    groups: Vec<usize>,
    names: HashSet<&'p str>,
    operand: Operand,
    wide_classes: usize,
}

/// The part before a repetition operator.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Operand {
    /// There is none, because the group or the alternative begins here.
    Missing,
    Some,
    /// It is already repeated.
    Repeated,
    /// There are flags in between.
    BeforeFlags,
}

impl<'p> Translator<'p> {
    fn all(&mut self) -> Result<(), PatternError> {
        while let Some(letter) = self.next() {
            let start = self.at - letter.len_utf8();
            match letter {
                '(' => self.group(start)?,
                ')' => {
                    self.groups.pop().ok_or_else(|| self.error(start, "`)` closes no group"))?;
                    self.atom(")");
                }
                '|' => {
                    self.out.push('|');
                    self.operand = Operand::Missing;
                }
                '*' | '+' | '?' => self.repeat(start, letter.encode_utf8(&mut [0; 4]))?,
                '{' => match self.counted(start)? {
                    Some(counted) => self.repeat(start, &counted)?,
                    None => self.literal('{'.into()),
                },
                '.' => self.atom("."),
                '^' => self.atom("^"),
                '$' => self.atom("$"),
                '[' => self.class(start)?,
                '\\' => self.escape(start)?,
                letter => self.literal(letter.into()),
            }
        }
        match self.groups.pop() {
            Some(start) => Err(self.error(start, "`(` is not closed")),
            None => Ok(()),
        }
    }

    fn atom(&mut self, text: &str) {
        self.out.push_str(text);
        self.operand = Operand::Some;
    }

    /// A character as itself. A surrogate is a character in RE2 and in no text.
    fn literal(&mut self, code: u32) {
        match char::from_u32(code) {
            Some(letter) => push_literal(&mut self.out, letter),
            None => self.out.push_str(class::NONE),
        }
        self.operand = Operand::Some;
    }

    fn repeat(&mut self, start: usize, operator: &str) -> Result<(), PatternError> {
        let what = match self.operand {
            Operand::Some => {
                self.out.push_str(operator);
                if self.take("?") {
                    self.out.push('?');
                }
                self.operand = Operand::Repeated;
                return Ok(());
            }
            Operand::Missing => "has nothing to repeat",
            Operand::Repeated => "repeats a repetition; put the inner one in parentheses",
            Operand::BeforeFlags => "stands after flags; put it before them",
        };
        Err(self.error(start, format!("`{operator}` {what}")))
    }

    /// `{n}`, `{n,}` or `{n,m}`; other braces are characters.
    fn counted(&mut self, start: usize) -> Result<Option<String>, PatternError> {
        let rest = self.rest();
        let Some((inside, _)) = rest.split_once('}') else { return Ok(None) };
        let (least, most) = match inside.split_once(',') {
            None => (inside, Some(inside)),
            Some((least, "")) => (least, None),
            Some((least, most)) => (least, Some(most)),
        };
        let is_number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            digits && (text.len() == 1 || !text.starts_with('0'))
        };
        if !is_number(least) || most.is_some_and(|most| !is_number(most)) {
            return Ok(None);
        }
        // More digits than fit are more than may be.
        let number = |text: &str| text.parse::<u32>().unwrap_or(u32::MAX);
        let (least, most) = (number(least), most.map(number));
        if most.unwrap_or(least).max(least) > MOST_REPEATS {
            return Err(self.error(start, format!("`{{{inside}}}` repeats more than {MOST_REPEATS} times")));
        }
        if most.is_some_and(|most| most < least) {
            return Err(self.error(start, format!("`{{{inside}}}` ends before it begins")));
        }
        self.at += inside.len() + 1;
        Ok(Some(match most {
            Some(most) => format!("{{{least},{most}}}"),
            None => format!("{{{least},}}"),
        }))
    }

    fn group(&mut self, start: usize) -> Result<(), PatternError> {
        if !self.take("?") {
            self.open(start, "(?:");
            return Ok(());
        }
        for look in ["=", "!", "<=", "<!"] {
            if self.rest().starts_with(look) {
                return Err(self.error(start, format!("`(?{look}`: there is no looking around")));
            }
        }
        if self.take("P<") || self.take("<") {
            return self.named(start);
        }
        self.flags(start)
    }

    fn open(&mut self, start: usize, text: &str) {
        self.out.push_str(text);
        self.groups.push(start);
        self.operand = Operand::Missing;
    }

    fn named(&mut self, start: usize) -> Result<(), PatternError> {
        let (name, _) = self
            .rest()
            .split_once('>')
            .ok_or_else(|| self.error(start, "the group's name is not closed by `>`"))?;
        if name.is_empty() || !name.chars().all(|letter| letter.is_alphanumeric() || letter == '_') {
            return Err(self.error(start, "a group's name has letters, digits and `_`"));
        }
        if !self.names.insert(name) {
            return Err(self.error(start, "two groups have the same name"));
        }
        self.at += name.len() + 1;
        self.open(start, "(?:");
        Ok(())
    }

    /// `(?i)`, `(?i-s:`, `(?:` and so on.
    fn flags(&mut self, start: usize) -> Result<(), PatternError> {
        const FLAGS: [char; 4] = ['i', 'm', 's', 'U'];
        let mut set: [Option<bool>; FLAGS.len()] = [None; FLAGS.len()];
        let (mut on, mut any) = (true, false);
        let end = loop {
            let letter = self.next();
            if let Some(flag) = FLAGS.iter().position(|flag| Some(*flag) == letter) {
                (set[flag], any) = (Some(on), true);
                continue;
            }
            match letter {
                Some('-') if on => (on, any) = (false, false),
                Some(end @ (':' | ')')) if on || any => break end,
                _ => {
                    return Err(self.error(start, "after `(?` there are `:`, a name or the flags i, m, s, U"));
                }
            }
        };
        let named = |wanted: bool| -> String {
            FLAGS.iter().zip(set).filter(|(_, on)| *on == Some(wanted)).map(|(flag, _)| *flag).collect()
        };
        let (on, off) = (named(true), named(false));
        let dash = if off.is_empty() { "" } else { "-" };
        if end == ':' {
            self.open(start, &format!("(?{on}{dash}{off}:"));
        } else {
            if !on.is_empty() || !off.is_empty() {
                write!(self.out, "(?{on}{dash}{off})").expect("a string takes all that is written");
            }
            if self.operand != Operand::Missing {
                self.operand = Operand::BeforeFlags;
            }
        }
        Ok(())
    }

    fn escape(&mut self, start: usize) -> Result<(), PatternError> {
        let rest = self.rest();
        let Some(letter) = rest.chars().next() else {
            return Err(self.error(start, "`\\` at the end escapes nothing"));
        };
        let atom = match letter {
            'b' => r"(?-u:\b)",
            'B' => r"(?-u:\B)",
            'A' => r"\A",
            'z' => r"\z",
            'C' => "(?s-u:.)",
            'Q' => {
                self.at += 1;
                let quoted = self.rest();
                let quoted = quoted.split_once("\\E").map_or(quoted, |(quoted, _)| quoted);
                quoted.chars().for_each(|letter| self.literal(letter.into()));
                self.at += quoted.len();
                self.take("\\E");
                return Ok(());
            }
            _ => {
                let is_class = self.group_class(start)?;
                if !is_class {
                    let code = self.escaped(start)?;
                    self.literal(code);
                }
                return Ok(());
            }
        };
        self.at += 1;
        self.atom(atom);
        Ok(())
    }

    /// The character of an escape, whose backslash is read.
    fn escaped(&mut self, start: usize) -> Result<u32, PatternError> {
        let bad = |this: &Self, end: usize| {
            let text = this.pattern.get(start..end).unwrap_or_default();
            this.error(start, format!("`{text}` is not an escape"))
        };
        let Some(letter) = self.next() else { return Err(bad(self, self.at)) };
        Ok(match letter {
            'a' => 0x07,
            'f' => 0x0c,
            't' => 0x09,
            'n' => 0x0a,
            'r' => 0x0d,
            'v' => 0x0b,
            '0'..='7' => {
                let digits = octal_digits(&self.pattern[self.at - 1..]);
                // A single digit would be a backreference.
                if digits.len() == 1 && letter != '0' {
                    let what = format!("`\\{letter}`: there are no references to groups");
                    return Err(self.error(start, what));
                }
                self.at += digits.len() - 1;
                u32::from_str_radix(digits, 8).expect("three octal digits")
            }
            'x' => {
                let rest = self.rest();
                let (digits, len) = match rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
                    Some((digits, _)) => (digits, digits.len() + 2),
                    None => (rest.get(..2).unwrap_or_default(), 2),
                };
                let is_hex = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
                let code = u32::from_str_radix(digits.trim_start_matches('0'), 16);
                let code = if digits.bytes().all(|byte| byte == b'0') { Ok(0) } else { code };
                match code {
                    Ok(code) if is_hex && code <= char::MAX.into() => {
                        self.at += len;
                        code
                    }
                    _ => return Err(bad(self, self.at)),
                }
            }
            letter if letter.is_ascii() && !letter.is_ascii_alphanumeric() => letter.into(),
            _ => return Err(bad(self, self.at)),
        })
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.rest().chars().next()?;
        self.at += letter.len_utf8();
        Some(letter)
    }

    fn take(&mut self, text: &str) -> bool {
        let there = self.rest().starts_with(text);
        if there {
            self.at += text.len();
        }
        there
    }

    fn rest(&self) -> &'p str {
        &self.pattern[self.at..]
    }

    fn error(&self, start: usize, what: impl Into<String>) -> PatternError {
        let at = self.pattern[..start].chars().count() + 1;
        PatternError::Syntax { at, what: what.into() }
    }
}

/// Up to three octal digits at the start of a text.
fn octal_digits(text: &str) -> &str {
    let end = text.bytes().take(3).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
    &text[..end]
}

/// A character that the `regex` crate cannot take for an operator, inside of a class or outside.
fn push_literal(out: &mut String, letter: char) {
    if matches!(
        letter,
        '\\' | '.'
            | '+'
            | '*'
            | '?'
            | '('
            | ')'
            | '|'
            | '['
            | ']'
            | '{'
            | '}'
            | '^'
            | '$'
            | '#'
            | '&'
            | '-'
            | '~'
    ) {
        out.push('\\');
    }
    out.push(letter);
}
