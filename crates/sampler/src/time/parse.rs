//! Times in the forms that people write.

use super::civil::{Civil, DAY, Date, MONTHS, in_range};

/// Longer texts are not dates.
const MAX_LENGTH: usize = 64;

/// The seconds since 1970 of a date or time, or `None` if the text is neither.
///
/// Forms: `2024`, `2024-05`, `2024-05-31` (also with `/` or `.`), `20240531`, `05/31/2024` (month first), `31 May 2024`,
/// `May 31, 2024`; then, after `T` or a space, `14:30`, `14:30:15`, `14:30:15.5`, `2:30 PM`; then a zone (`Z`, `UTC`,
/// `+02:00`), which is converted to UTC. Fractions of a second are cut off.
pub fn parse_time(text: &str) -> Option<i64> {
    let text = text.trim();
    if text.len() > MAX_LENGTH || !text.is_ascii() {
        return None;
    }
    let mut reader = Reader { rest: text.as_bytes() };
    let date = reader.named_date().or_else(|| reader.numeric_date())?;
    let mut time = date.days() * DAY;
    if reader.rest.first().is_some_and(|byte| matches!(byte, b'T' | b't' | b' ')) {
        reader.rest = &reader.rest[1..];
        time += reader.clock()?;
        reader.spaces();
        time -= reader.zone()?;
    }
    (reader.rest.is_empty() && in_range(time)).then_some(time)
}

struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    /// A number of up to `most` digits, with the count of its digits.
    fn number(&mut self, most: usize) -> Option<(u32, usize)> {
        let digits = self.rest.iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
        let number = self.rest[..digits].iter().fold(0, |sum, byte| sum * 10 + u32::from(byte - b'0'));
        self.rest = &self.rest[digits..];
        (digits > 0).then_some((number, digits))
    }

    fn eat(&mut self, wanted: u8) -> bool {
        let found = self.rest.first() == Some(&wanted);
        if found {
            self.rest = &self.rest[1..];
        }
        found
    }

    fn spaces(&mut self) {
        while self.eat(b' ') {}
    }

    fn word(&mut self) -> String {
        let length = self.rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let word = self.rest[..length].to_ascii_lowercase();
        self.rest = &self.rest[length..];
        String::from_utf8(word).unwrap_or_default()
    }

    fn month(&mut self) -> Option<u32> {
        let word = self.word();
        self.eat(b'.');
        let matches = |month: &str| word.len() >= 3 && month.to_ascii_lowercase().starts_with(&word);
        MONTHS.iter().position(|month| matches(month)).map(|index| index as u32 + 1)
    }

    /// `May 31, 2024`, `31 May 2024`, `31-May-2024`; reads nothing if it is another form.
    fn named_date(&mut self) -> Option<Date> {
        let start = self.rest;
        let date = self.try_named_date();
        if date.is_none() {
            self.rest = start;
        }
        date
    }

    fn try_named_date(&mut self) -> Option<Date> {
        let month_first = self.rest.first()?.is_ascii_alphabetic();
        let mut month = 0;
        if month_first {
            month = self.month()?;
            self.spaces();
        }
        let (day, digits) = self.number(2)?;
        if digits > 2 {
            return None;
        }
        if !month_first {
            if !self.eat(b'-') {
                self.spaces();
            }
            month = self.month()?;
            self.eat(b'-');
        }
        self.eat(b',');
        self.spaces();
        let (year, digits) = self.number(4)?;
        if digits == 4 { Date::new(year as i32, month, day) } else { None }
    }

    fn numeric_date(&mut self) -> Option<Date> {
        let (first, digits) = self.number(8)?;
        if digits == 8 {
            return Date::new((first / 10_000) as i32, first / 100 % 100, first % 100);
        }
        let separator = *self.rest.first().unwrap_or(&0);
        if !matches!(separator, b'-' | b'/' | b'.') {
            return if digits == 4 { Date::new(first as i32, 1, 1) } else { None };
        }
        self.rest = &self.rest[1..];
        let (second, _) = self.number(2)?;
        if digits == 4 {
            let day = if self.eat(separator) { self.number(2)?.0 } else { 1 };
            return Date::new(first as i32, second, day);
        }
        if digits > 2 || !self.eat(separator) {
            return None;
        }
        let (year, digits) = self.number(4)?;
        if digits != 4 {
            return None;
        }
        Date::new(year as i32, first, second)
    }

    fn clock(&mut self) -> Option<i64> {
        self.spaces();
        let (mut hour, _) = self.number(2)?;
        let minute = if self.eat(b':') { self.number(2)?.0 } else { 0 };
        let second = if self.eat(b':') { self.number(2)?.0 } else { 0 };
        if self.eat(b'.') {
            self.number(12)?;
        }
        let before = self.rest;
        self.spaces();
        match self.word().as_str() {
            "am" if (1..=12).contains(&hour) => hour %= 12,
            "pm" if (1..=12).contains(&hour) => hour = hour % 12 + 12,
            _ => self.rest = before,
        }
        let valid = hour < 24 && minute < 60 && second < 60;
        let epoch = Date::new(1970, 1, 1)?;
        valid.then(|| Civil { date: epoch, hour, minute, second }.seconds())
    }

    /// Seconds ahead of UTC.
    fn zone(&mut self) -> Option<i64> {
        let sign = match self.rest.first() {
            None => return Some(0),
            Some(b'+') => 1,
            Some(b'-') => -1,
            Some(_) => return matches!(self.word().as_str(), "z" | "utc" | "gmt").then_some(0),
        };
        self.rest = &self.rest[1..];
        let (hours, _) = self.number(2)?;
        self.eat(b':');
        let minutes = if self.rest.is_empty() { 0 } else { self.number(2)?.0 };
        (hours < 24 && minutes < 60).then(|| sign * i64::from(hours * 3600 + minutes * 60))
    }
}
