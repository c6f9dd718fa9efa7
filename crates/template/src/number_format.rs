//! Texts with places for values: `"%s %.2f"|format(a, b)` and `"{} {:.2f}".format(a, b)`.

use std::fmt::Write;

use anabranch_value::Value;

use crate::error::{Stop, wrong};
use crate::filters::truncated;
use crate::kinds::Number;
use crate::print::repr;
use crate::work::Work;

/// The largest width and precision of a value.
const WIDTH: usize = 1000;

/// The form of one value.
#[derive(Default)]
struct Form {
    left: bool,
    right: bool,
    zeros: bool,
    plus: bool,
    commas: bool,
    width: usize,
    precision: Option<usize>,
    /// The kind of the value: `s`, `d`, `f`, `e`, `x`, `%`, or none.
    kind: Option<char>,
}

/// Fills in the places that begin with `%`.
pub(crate) fn percent_format(work: &mut Work, text: &str, values: &[Value]) -> Result<Value, Stop> {
    work.look(text.len())?;
    let (mut made, mut left, mut values) = (String::new(), text, values.iter());
    while let Some(at) = left.find('%') {
        push(work, &mut made, &left[..at])?;
        let mut letters = left[at + 1..].char_indices();
        let Some((end, kind)) = letters.find(|(_, letter)| letter.is_alphabetic() || *letter == '%') else {
            return wrong("a `%` has no kind behind it; `%%` writes a percent sign");
        };
        let form = &left[at + 1..at + 1 + end];
        left = &left[at + 1 + end + kind.len_utf8()..];
        if kind == '%' {
            push(work, &mut made, "%")?;
            continue;
        }
        let Some(value) = values.next() else { return wrong("there are fewer values than places for them") };
        let mut form = read_form(form)?;
        form.kind = Some(if kind == 'i' { 'd' } else { kind });
        let part = formatted(work, value, &form)?;
        push(work, &mut made, &part)?;
    }
    push(work, &mut made, left)?;
    match values.next() {
        None => Ok(made.into()),
        Some(_) => wrong("there are more values than places for them"),
    }
}

/// Fills in the places in braces: `{}`, `{0}`, `{:.2f}`.
pub(crate) fn brace_format(work: &mut Work, text: &str, values: &[Value]) -> Result<Value, Stop> {
    work.look(text.len())?;
    let (mut made, mut left, mut next) = (String::new(), text, 0);
    while let Some(at) = left.find(['{', '}']) {
        push(work, &mut made, &left[..at])?;
        let brace = &left[at..at + 1];
        if left[at + 1..].starts_with(brace) {
            push(work, &mut made, brace)?;
            left = &left[at + 2..];
            continue;
        }
        let Some(end) = left[at..].find('}').filter(|_| brace == "{") else {
            return wrong("a brace has no partner; two of them write one");
        };
        let (place, form) = left[at + 1..at + end].split_once(':').unwrap_or((&left[at + 1..at + end], ""));
        let index = match place {
            "" => {
                next += 1;
                next - 1
            }
            place => match place.parse::<usize>() {
                Ok(index) => index,
                Err(_) => return wrong(format!("place {place:?} is not a number of a value")),
            },
        };
        let Some(value) = values.get(index) else {
            return wrong(format!("there is no value {index}; there are {}", values.len()));
        };
        let kind = form.chars().next_back().filter(|letter| letter.is_alphabetic() || *letter == '%');
        let mut read = read_form(&form[..form.len() - kind.map_or(0, char::len_utf8)])?;
        read.kind = kind;
        let part = formatted(work, value, &read)?;
        push(work, &mut made, &part)?;
        left = &left[at + end + 1..];
    }
    push(work, &mut made, left)?;
    Ok(made.into())
}

fn push(work: &mut Work, made: &mut String, part: &str) -> Result<(), Stop> {
    work.make(part.len())?;
    made.push_str(part);
    Ok(())
}

fn read_form(form: &str) -> Result<Form, Stop> {
    let mut read = Form::default();
    let unreadable = || wrong(format!("form {form:?} is not flags, a width and a precision"));
    let (before, precision) = match form.split_once('.') {
        Some((before, precision)) => (before, Some(precision)),
        None => (form, None),
    };
    let mut digits = before;
    while let Some(flag) = digits.chars().next().filter(|flag| "-<>+0 ,".contains(*flag)) {
        match flag {
            '-' | '<' => read.left = true,
            '>' => read.right = true,
            '0' => read.zeros = true,
            '+' => read.plus = true,
            ',' => read.commas = true,
            _ => {}
        }
        digits = &digits[1..];
    }
    let precision = match precision.and_then(|digits| digits.strip_suffix(',')).or(precision) {
        Some(digits) => Some(digits.parse::<usize>().or_else(|_| unreadable())?),
        None => None,
    };
    if let Some(rest) = digits.strip_suffix(',') {
        read.commas = true;
        digits = rest;
    }
    read.width = if digits.is_empty() { 0 } else { digits.parse().or_else(|_| unreadable())? };
    read.precision = precision;
    match read.width.max(precision.unwrap_or(0)) > WIDTH {
        true => wrong(format!("a width or precision is at most {WIDTH}")),
        false => Ok(read),
    }
}

fn formatted(work: &mut Work, value: &Value, form: &Form) -> Result<String, Stop> {
    let body = match form.kind {
        Some('r') => {
            let dialect = work.dialect;
            work.write(|out| repr(out, value, dialect))?
        }
        None if !matches!(value, Value::Int(_) | Value::Float(_)) => cut(&work.text(value)?, form.precision),
        Some('s') => cut(&work.text(value)?, form.precision),
        None if form.precision.is_none() => work.text(value)?.into_owned(),
        kind => number(work.number(value)?, kind.unwrap_or('f'), form)?,
    };
    let body = if form.commas { with_commas(&body) } else { body };
    let sign = if form.plus && !body.starts_with('-') { "+" } else { "" };
    let len = body.chars().count() + sign.len();
    let pad = form.width.saturating_sub(len);
    let is_number = value.as_number().is_some();
    // In braces a text stands at the left, behind `%` at the right.
    let left = form.left || (!is_number && !form.right && form.kind.is_none());
    Ok(match (left, form.zeros && is_number) {
        (true, _) => format!("{sign}{body}{}", " ".repeat(pad)),
        (false, true) => {
            let (minus, digits) = body.strip_prefix('-').map_or(("", &*body), |digits| ("-", digits));
            format!("{minus}{sign}{}{digits}", "0".repeat(pad))
        }
        (false, false) => format!("{}{sign}{body}", " ".repeat(pad)),
    })
}

fn cut(text: &str, precision: Option<usize>) -> String {
    match precision {
        Some(precision) => text.chars().take(precision).collect(),
        None => text.to_owned(),
    }
}

fn number(number: Number, kind: char, form: &Form) -> Result<String, Stop> {
    let precision = form.precision.unwrap_or(6);
    let integer = match number {
        Number::Integer(integer) => Some(integer),
        Number::Float(float) => truncated(float),
    };
    match (kind, integer) {
        ('d', Some(integer)) => Ok(integer.to_string()),
        ('x', Some(integer)) => Ok(format!("{integer:x}")),
        ('X', Some(integer)) => Ok(format!("{integer:X}")),
        ('o', Some(integer)) => Ok(format!("{integer:o}")),
        ('b', Some(integer)) => Ok(format!("{integer:b}")),
        ('d' | 'x' | 'X' | 'o' | 'b', None) => wrong("the number is too large for an integer"),
        ('f' | 'F', _) => Ok(format!("{:.precision$}", number.float())),
        ('%', _) => Ok(format!("{:.precision$}%", number.float() * 100.0)),
        ('e', _) => {
            let short = format!("{:.precision$e}", number.float());
            let (digits, exponent) = short.split_once('e').unwrap_or((&short, "0"));
            let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
            let mut made = format!("{digits}e{sign}");
            write!(made, "{exponent:0>2}").or_else(|_| wrong("the number cannot be written"))?;
            Ok(made)
        }
        (kind, _) => wrong(format!("kind `{kind}` is not one of s, d, f, e, x, o, b, r and %")),
    }
}

/// A number with a comma before each three digits of its integer part.
fn with_commas(body: &str) -> String {
    let (minus, digits) = body.strip_prefix('-').map_or(("", body), |digits| ("-", digits));
    let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
    let (whole, rest) = digits.split_at(end);
    let mut made = String::from(minus);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            made.push(',');
        }
        made.push(digit);
    }
    made + rest
}
