//! Money as people write it.

/// Dollars: cents from one dollar on, three digits below, at most six behind the point.
///
/// ```
/// use anabranch_text::money::format;
/// assert_eq!([0.0, 0.012_345, 0.5, 1234.5].map(format), ["$0", "$0.0123", "$0.50", "$1,234.50"]);
/// ```
pub fn format(dollars: f64) -> String {
    if dollars <= 0.0 || !dollars.is_finite() {
        return "$0".to_owned();
    }
    if dollars < 0.999_5 {
        let decimals = (2.0 - dollars.log10().floor()).clamp(2.0, 6.0) as usize;
        let digits = format!("{dollars:.decimals$}");
        let shortest = digits.trim_end_matches('0');
        // Cents have two digits.
        return match shortest.len() {
            0..4 if digits.starts_with("0.000000") => "under $0.000001".to_owned(),
            0..4 => format!("${}", &digits[..4]),
            _ => format!("${shortest}"),
        };
    }
    let digits = format!("{dollars:.2}");
    let (whole, cents) = digits.split_once('.').unwrap_or((&digits, "00"));
    let mut text = String::from("$");
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    format!("{text}.{cents}")
}

#[cfg(test)]
mod tests {
    use super::format;

    #[test]
    fn money_has_three_digits_below_a_dollar_and_cents_above() {
        let check = |dollars: f64, text: &str| assert_eq!(format(dollars), text, "{dollars}");
        check(0.0, "$0");
        check(0.000_000_2, "under $0.000001");
        check(0.000_001, "$0.000001");
        check(0.000_123_4, "$0.000123");
        check(0.012_345, "$0.0123");
        check(0.012, "$0.012");
        check(0.1, "$0.10");
        check(0.25, "$0.25");
        check(0.255_4, "$0.255");
        check(0.999_4, "$0.999");
        check(0.999_9, "$1.00");
        check(12.345, "$12.35");
        check(1_234_567.891, "$1,234,567.89");
        check(f64::NAN, "$0");
    }
}
