//! Sizes in bytes as people write them.

use crate::count::count;

/// `512 bytes`, `1.5 KiB`, `20 MiB`.
///
/// ```
/// assert_eq!(anabranch_text::size::format(1536), "1.5 KiB");
/// ```
pub fn format(bytes: u64) -> String {
    if bytes < 1024 {
        return count(bytes, "byte");
    }
    let mut scaled = bytes as f64 / 1024.0;
    let mut units = ["KiB", "MiB", "GiB", "TiB"].into_iter();
    let mut unit = units.next();
    // A value that would be rounded to 1024.0 is shown in the next unit.
    while scaled >= 1023.95
        && let Some(next) = units.next()
    {
        (scaled, unit) = (scaled / 1024.0, Some(next));
    }
    let digits = format!("{scaled:.1}");
    format!("{} {}", digits.strip_suffix(".0").unwrap_or(&digits), unit.unwrap_or_default())
}

/// A number of bytes, or a number and a unit with or without a space between them: `1048576`, `512MiB`, `1.5 GB`.
pub fn parse(text: &str) -> Result<u64, String> {
    const UNITS: [(&str, u64); 12] = [
        ("", 1),
        ("B", 1),
        ("byte", 1),
        ("bytes", 1),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
    ];
    let is_number = |letter: char| letter.is_ascii_digit() || letter == '.';
    let (number, unit) = text.split_at(text.find(|letter| !is_number(letter)).unwrap_or(text.len()));
    let unit = unit.strip_prefix(' ').filter(|unit| !unit.is_empty()).unwrap_or(unit);
    let scale = UNITS.iter().find_map(|(name, bytes)| (*name == unit).then_some(*bytes));
    let bytes = scale.and_then(|scale| match number.parse::<u64>() {
        Ok(number) => number.checked_mul(scale),
        Err(_) => part(number, scale),
    });
    bytes.ok_or_else(|| {
        "a size looks like 512MiB, 1.5GiB, 10GB or 1048576; units are B, KB, MB, GB, TB, KiB, MiB, GiB, TiB".to_owned()
    })
}

/// Converts a fractional number of units to bytes.
fn part(number: &str, scale: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.')?;
    let whole: u64 = whole.parse().ok()?;
    let digits = u32::try_from(fraction.len()).ok().filter(|digits| (1..=9).contains(digits))?;
    let fraction: u64 = fraction.parse().ok()?;
    let bytes = u128::from(fraction) * u128::from(scale) / 10_u128.pow(digits);
    whole.checked_mul(scale)?.checked_add(u64::try_from(bytes).ok()?).filter(|_| scale > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        let check = |bytes, text| assert_eq!(format(bytes), text);
        check(0, "0 bytes");
        check(1, "1 byte");
        check(1023, "1023 bytes");
        check(1024, "1 KiB");
        check(1536, "1.5 KiB");
        check((1 << 20) - 1, "1 MiB");
        check(100 << 20, "100 MiB");
        check(u64::MAX, "16777216 TiB");
    }

    #[test]
    fn sizes_are_read_with_their_units() {
        let check = |text, bytes| assert_eq!(parse(text), Ok(bytes), "{text}");
        check("0", 0);
        check("1048576", 1 << 20);
        check("7B", 7);
        check("512 bytes", 512);
        check("512MiB", 512 << 20);
        check("1.5 KiB", 1536);
        check("1 GiB", 1 << 30);
        check("10GB", 10_000_000_000);
        check("0.25GB", 250_000_000);
        let wrong = ["", "GiB", "-1GB", "1.5", "1.GiB", ".5GiB", "1..5GiB", "1 ", "1  GiB", "10gb", "10G"];
        for wrong in
            wrong.into_iter().chain(["99999999999TiB", "1.0000000000GiB", "16777215.99999999TiBs", "٣"])
        {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
