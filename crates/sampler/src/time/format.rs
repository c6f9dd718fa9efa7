//! `strftime` formats, to write times and to read them back.

use std::fmt::Write as _;

use super::civil::{Civil, Date, MONTHS, WEEKDAYS, in_range};

/// A parsed `strftime` format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeFormat {
    parts: Vec<Part>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    /// A directive, and whether its number is padded.
    Field(char, Padding),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Padding {
    Full,
    None,
}

/// Longer formats are mistakes.
const MAX_FORMAT: usize = 1_000;

/// Directives that stand for several others.
const SHORTHANDS: [(char, &str); 8] = [
    ('F', "%Y-%m-%d"),
    ('T', "%H:%M:%S"),
    ('X', "%H:%M:%S"),
    ('D', "%m/%d/%y"),
    ('x', "%m/%d/%y"),
    ('R', "%H:%M"),
    ('c', "%a %b %e %H:%M:%S %Y"),
    ('r', "%I:%M:%S %p"),
];

const FIELDS: &str = "YmdHMSfyjBbhAaIpzZeuwUWGVsC";

impl TimeFormat {
    /// Parses a format; the error names the directive that is not known.
    pub fn new(format: &str) -> Result<TimeFormat, String> {
        if format.len() > MAX_FORMAT {
            return Err(format!(
                "a date format has at most {MAX_FORMAT} bytes, this one has {}",
                format.len()
            ));
        }
        let mut parts = Vec::new();
        read(format, &mut parts)?;
        Ok(TimeFormat { parts })
    }

    /// The time as text. Seconds since 1970, within the years 1 to 9999.
    pub fn format(&self, time: i64) -> String {
        let civil = Civil::at(time);
        let mut out = String::with_capacity(24);
        for part in &self.parts {
            match part {
                Part::Literal(text) => out.push_str(text),
                Part::Field(directive, padding) => write_field(&mut out, *directive, *padding, civil),
            }
        }
        out
    }

    /// The time that a text in this format stands for; parts that the format lacks are those of 1970-01-01.
    pub fn parse(&self, text: &str) -> Option<i64> {
        let mut found = Fields::default();
        let mut rest = text;
        for part in &self.parts {
            rest = match part {
                Part::Literal(literal) => rest.strip_prefix(literal.as_str())?,
                Part::Field(directive, _) => found.read(*directive, rest)?,
            };
        }
        if rest.is_empty() { found.time().filter(|time| in_range(*time)) } else { None }
    }
}

fn read(format: &str, parts: &mut Vec<Part>) -> Result<(), String> {
    let mut chars = format.chars();
    while let Some(next) = chars.next() {
        if next != '%' {
            push_literal(parts, next);
            continue;
        }
        let mut directive = chars.next();
        let padding = if matches!(directive, Some('-' | '#')) { Padding::None } else { Padding::Full };
        if padding == Padding::None {
            directive = chars.next();
        }
        match directive {
            Some('%') => push_literal(parts, '%'),
            Some('n') => push_literal(parts, '\n'),
            Some('t') => push_literal(parts, '\t'),
            Some(field) if FIELDS.contains(field) => parts.push(Part::Field(field, padding)),
            Some(other) => match SHORTHANDS.iter().find(|(name, _)| *name == other) {
                Some((_, long)) => read(long, parts)?,
                None => {
                    return Err(format!("unknown directive %{other}; use %Y %m %d %H %M %S %j %B %A or %%"));
                }
            },
            None => return Err("a single % at the end; write %% for the character itself".to_owned()),
        }
    }
    Ok(())
}

fn push_literal(parts: &mut Vec<Part>, character: char) {
    if let Some(Part::Literal(text)) = parts.last_mut() {
        text.push(character);
    } else {
        parts.push(Part::Literal(character.to_string()));
    }
}

fn write_field(out: &mut String, directive: char, padding: Padding, civil: Civil) {
    let date = civil.date;
    let half_day = (civil.hour + 11) % 12 + 1;
    let (number, width) = match directive {
        'Y' => (i64::from(date.year()), 4),
        'C' => (i64::from(date.year() / 100), 2),
        'y' => (i64::from(date.year() % 100), 2),
        'G' => (iso_week(date).0, 4),
        'V' => (iso_week(date).1, 2),
        'U' => ((date.day_of_year() + 6 - (date.weekday() + 1) % 7) / 7, 2),
        'W' => ((date.day_of_year() + 6 - date.weekday()) / 7, 2),
        'm' => (i64::from(date.month()), 2),
        'd' => (i64::from(date.day()), 2),
        'j' => (date.day_of_year(), 3),
        'H' => (i64::from(civil.hour), 2),
        'I' => (i64::from(half_day), 2),
        'M' => (i64::from(civil.minute), 2),
        'S' => (i64::from(civil.second), 2),
        'f' => (0, 6),
        'u' => (date.weekday() + 1, 1),
        'w' => ((date.weekday() + 1) % 7, 1),
        's' => (civil.seconds(), 1),
        'e' if padding == Padding::Full => {
            let _ = write!(out, "{:>2}", date.day());
            return;
        }
        'e' => (i64::from(date.day()), 1),
        _ => return out.push_str(&name(directive, civil)),
    };
    let width = if padding == Padding::None { 1 } else { width };
    let _ = write!(out, "{number:0width$}");
}

fn name(directive: char, civil: Civil) -> String {
    let month = MONTHS[civil.date.month() as usize - 1];
    let weekday = WEEKDAYS[civil.date.weekday() as usize];
    match directive {
        'B' => month.to_owned(),
        'b' | 'h' => month[..3].to_owned(),
        'A' => weekday.to_owned(),
        'a' => weekday[..3].to_owned(),
        'p' => if civil.hour < 12 { "AM" } else { "PM" }.to_owned(),
        // Times have no zone: as Python, %z and %Z are empty.
        _ => String::new(),
    }
}

/// The year and number of the ISO week.
fn iso_week(date: Date) -> (i64, i64) {
    let thursday = Date::from_days(date.days() - date.weekday() + 3);
    (i64::from(thursday.year()), (thursday.day_of_year() - 1) / 7 + 1)
}

/// The parts of a time, as far as they were read.
#[derive(Default)]
struct Fields {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    hour: i64,
    minute: i64,
    second: i64,
    afternoon: Option<bool>,
    unix: Option<i64>,
}

impl Fields {
    fn read<'a>(&mut self, directive: char, text: &'a str) -> Option<&'a str> {
        match directive {
            'B' | 'b' | 'h' => {
                let (index, rest) = read_name(&MONTHS, text)?;
                self.month = Some(index as i64 + 1);
                return Some(rest);
            }
            'A' | 'a' => return read_name(&WEEKDAYS, text).map(|(_, rest)| rest),
            'p' => {
                let half = text.get(..2)?.to_ascii_uppercase();
                self.afternoon = Some(if half == "PM" {
                    true
                } else if half == "AM" {
                    false
                } else {
                    return None;
                });
                return text.get(2..);
            }
            'z' | 'Z' => return Some(text),
            _ => {}
        }
        let most = match directive {
            'Y' | 'G' => 4,
            'j' => 3,
            'f' => 9,
            's' => 12,
            'u' | 'w' => 1,
            _ => 2,
        };
        let trimmed = text.trim_start_matches(' ');
        let digits = trimmed.bytes().take(most).take_while(u8::is_ascii_digit).count();
        let number: i64 = trimmed[..digits].parse().ok()?;
        match directive {
            'Y' => self.year = Some(number),
            // As Python: 69 to 99 are of the last century.
            'y' => self.year = Some(if number < 69 { 2000 + number } else { 1900 + number }),
            'm' => self.month = Some(number),
            'd' | 'e' => self.day = Some(number),
            'j' => self.day_of_year = Some(number),
            'H' | 'I' => self.hour = number,
            'M' => self.minute = number,
            'S' => self.second = number,
            's' => self.unix = Some(number),
            _ => {}
        }
        Some(&trimmed[digits..])
    }

    fn time(&self) -> Option<i64> {
        if self.unix.is_some() {
            return self.unix;
        }
        let year = i32::try_from(self.year.unwrap_or(1970)).ok()?;
        let part = |part: Option<i64>| u32::try_from(part.unwrap_or(1)).ok();
        let mut date = Date::new(year, part(self.month)?, part(self.day)?)?;
        if let (Some(day), None) = (self.day_of_year, self.month) {
            date = Date::from_days(date.days() + day - 1);
        }
        let hour = match self.afternoon {
            Some(afternoon) if (1..=12).contains(&self.hour) => {
                self.hour % 12 + if afternoon { 12 } else { 0 }
            }
            Some(_) => return None,
            None => self.hour,
        };
        let valid = hour < 24 && self.minute < 60 && self.second < 60;
        let (hour, minute, second) = (hour as u32, self.minute as u32, self.second as u32);
        valid.then(|| Civil { date, hour, minute, second }.seconds())
    }
}

/// The index of the name that the text begins with, whole or its first three letters.
fn read_name<'a>(names: &[&str], text: &'a str) -> Option<(usize, &'a str)> {
    let begins = |name: &str| text.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
    let long = names.iter().position(|name| begins(name)).map(|index| (index, names[index].len()));
    let (index, length) =
        long.or_else(|| names.iter().position(|name| begins(&name[..3])).map(|index| (index, 3)))?;
    Some((index, &text[length..]))
}
