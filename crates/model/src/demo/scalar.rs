//! Numbers and texts that satisfy a schema's bounds.

use anabranch_value::{Map, Value};
use regex_syntax::hir::{Class, Hir, HirKind};

use super::prose;
use super::random::Random;

/// A number within the bounds.
pub(super) fn number(schema: &Map, whole: bool, random: &mut Random) -> Value {
    let bound = |name: &str| schema.get(name).and_then(Value::as_number);
    let step = bound("multipleOf").filter(|step| *step > 0.0).unwrap_or(if whole { 1.0 } else { 0.01 });
    let step = if whole && step < 1.0 { 1.0 } else { step };
    let (above, below) = (bound("exclusiveMinimum"), bound("exclusiveMaximum"));
    let low = [bound("minimum"), above].into_iter().flatten().reduce(f64::max);
    let high = [bound("maximum"), below].into_iter().flatten().reduce(f64::min);
    let (low, high) = match (low, high) {
        (Some(low), Some(high)) => (low, high),
        (Some(low), None) => (low, low + 100.0 * step.max(1.0)),
        (None, Some(high)) => (high - 100.0 * step.max(1.0), high),
        (None, None) => (step.min(1.0), 100.0 * step.max(1.0)),
    };
    // Steps from `first` to `last` are inside, but for rounding.
    let (mut first, mut last) = ((low / step).ceil(), (high / step).floor());
    if above.is_some_and(|above| first * step <= above) {
        first += 1.0;
    }
    if below.is_some_and(|below| last * step >= below) {
        last -= 1.0;
    }
    if first > last && !whole {
        return Value::Float((low + high) / 2.0);
    }
    let number = (first + ((last - first + 1.0) * random.unit()).floor()).min(last.max(first)) * step;
    if whole {
        return Value::Int(number as i64);
    }
    let rounded = (number * 1e6).round() / 1e6;
    Value::Float(if rounded >= low && rounded <= high { rounded } else { number })
}

/// A text with the format and the length of a schema, and with its pattern, if it can be used.
pub(super) fn text(schema: &Map, pattern: Option<&Hir>, name: &str, random: &mut Random) -> String {
    let bound =
        |name: &str| schema.get(name).and_then(Value::as_number).map(|number| number.max(0.0) as usize);
    let (min, max) = (bound("minLength").unwrap_or(0).min(1 << 20), bound("maxLength").unwrap_or(usize::MAX));
    if let Some(pattern) = pattern {
        let mut text = String::new();
        matching(pattern, min, &mut text, random);
        return text;
    }
    if let Some(text) =
        schema.get("format").and_then(Value::as_text).and_then(|format| formatted(format, random))
    {
        return text;
    }
    let mut text = prose::label(name, random);
    let mut length = text.chars().count();
    while length < min {
        let more = prose::label("", random);
        length += 1 + more.chars().count();
        text.push(' ');
        text.push_str(&more);
    }
    match text.char_indices().nth(max) {
        Some((end, _)) => {
            text.truncate(end);
            // A space at the end would be trimmed somewhere.
            if text.ends_with(' ') {
                text.pop();
                text.push('x');
            }
            text
        }
        None => text,
    }
}

fn formatted(format: &str, random: &mut Random) -> Option<String> {
    let mut below = |count: usize| random.below(count);
    let date = format!("20{:02}-{:02}-{:02}", 10 + below(20), 1 + below(12), 1 + below(28));
    let time = format!("{:02}:{:02}:{:02}", below(24), below(60), below(60));
    Some(match format {
        "date" => date,
        "time" => format!("{time}Z"),
        "date-time" => format!("{date}T{time}Z"),
        "duration" => format!("PT{}M", 1 + below(90)),
        "email" | "idn-email" => format!("demo{}@example.com", below(1000)),
        "uri" | "url" | "iri" | "uri-reference" => format!("https://example.com/demo/{}", below(1000)),
        "hostname" => format!("demo{}.example.com", below(1000)),
        "ipv4" => format!("192.0.2.{}", below(256)),
        "ipv6" => format!("2001:db8::{:x}", below(65_536)),
        "uuid" => {
            let (high, low) = (random.bits(), random.bits());
            format!(
                "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
                high >> 32,
                (high >> 16) & 0xffff,
                high & 0xfff,
                0x8000 | (low >> 48) & 0x3fff,
                low & 0xffff_ffff_ffff
            )
        }
        _ => return None,
    })
}

/// The longest text that is made for a pattern.
const LONGEST: usize = 4096;

/// Adds a text that matches a pattern. Repetitions continue until there are `min` characters, if the pattern allows it.
fn matching(hir: &Hir, min: usize, text: &mut String, random: &mut Random) {
    if text.len() > LONGEST {
        return;
    }
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(&String::from_utf8_lossy(&literal.0)),
        HirKind::Class(class) => text.extend(member(class, random)),
        HirKind::Capture(capture) => matching(&capture.sub, min, text, random),
        HirKind::Concat(parts) => parts.iter().for_each(|part| matching(part, min, text, random)),
        HirKind::Alternation(choices) => matching(random.choose(choices), min, text, random),
        HirKind::Repetition(repetition) => {
            let least = repetition.min as usize;
            let most = repetition.max.map_or(usize::MAX, |max| max as usize);
            let count = (least + random.below(4)).max(least.max(1)).min(most).min(LONGEST);
            let enough = most.min(min);
            let mut done = 0;
            while text.len() <= LONGEST && (done < count || (done < enough && text.chars().count() < min)) {
                matching(&repetition.sub, 0, text, random);
                done += 1;
            }
        }
    }
}

/// A character of a class, a plain one if there are any.
fn member(class: &Class, random: &mut Random) -> Option<char> {
    let ranges: Vec<(u32, u32)> = match class {
        Class::Unicode(class) => {
            class.ranges().iter().map(|range| (range.start().into(), range.end().into())).collect()
        }
        Class::Bytes(class) => {
            class.ranges().iter().map(|range| (range.start().into(), range.end().into())).collect()
        }
    };
    let within = |low: u32, high: u32| -> Vec<(u32, u32)> {
        let cut = ranges.iter().map(|(start, end)| (*start.max(&low), *end.min(&high)));
        cut.filter(|(start, end)| start <= end).collect()
    };
    let letters =
        [within('a' as u32, 'z' as u32), within('A' as u32, 'Z' as u32), within('0' as u32, '9' as u32)];
    let plain: Vec<(u32, u32)> = letters.into_iter().flatten().collect();
    let printable = within(' ' as u32, '~' as u32);
    let ranges = [plain, printable, ranges].into_iter().find(|ranges| !ranges.is_empty())?;
    let (start, end) = *random.choose(&ranges);
    char::from_u32(start + random.below((end - start + 1) as usize) as u32)
}
