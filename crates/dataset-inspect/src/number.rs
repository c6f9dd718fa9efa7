//! Numbers for people.

/// A whole number with commas between thousands.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with about four digits that count: `1,234,567`, `12.35`, `0.001235`, `1.2e-9`.
pub fn short(number: f64) -> String {
    let size = number.abs();
    if number == 0.0 {
        return "0".to_owned();
    }
    if !(1e-4..1e15).contains(&size) {
        return if number.is_finite() { format!("{number:.2e}") } else { number.to_string() };
    }
    if number.fract() == 0.0 || size >= 1e4 {
        let sign = if number < 0.0 { "-" } else { "" };
        return format!("{sign}{}", grouped(size.round() as u64));
    }
    let decimals = (3 - size.log10().floor() as i32).clamp(0, 8) as usize;
    let text = format!("{number:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// An amount of money, in the currency of the price table.
pub fn money(amount: f64) -> String {
    match amount.abs() {
        0.0 => "0.00".to_owned(),
        0.0..0.01 => format!("{amount:.6}"),
        0.01..100.0 => format!("{amount:.4}"),
        _ => format!("{amount:.2}"),
    }
}

/// A part of a whole in percent.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return String::new();
    }
    let share = part as f64 / whole as f64 * 100.0;
    match share {
        0.0 => "0%".to_owned(),
        0.0..0.1 => "<0.1%".to_owned(),
        0.1..10.0 => format!("{share:.1}%"),
        // All of it only if it is all.
        _ if share >= 99.5 && part < whole => ">99%".to_owned(),
        _ => format!("{share:.0}%"),
    }
}

#[cfg(test)]
mod tests {
    use super::{grouped, money, percent, short};

    #[test]
    fn numbers_have_the_digits_that_count() {
        assert_eq!([0, 999, 1_000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
        let numbers = [0.0, 3.0, -3.5, 12.3456, 0.001_234_6, 123_456.7, 1e-9, 1e300, -20_000.0];
        let expected = ["0", "3", "-3.5", "12.35", "0.001235", "123,457", "1.00e-9", "1.00e300", "-20,000"];
        assert_eq!(numbers.map(short), expected);
        assert_eq!([0.0, 0.00125, 1.5, 250.0].map(money), ["0.00", "0.001250", "1.5000", "250.00"]);
        let parts = [(0, 10), (1, 10_000), (1, 40), (1, 2), (999, 1_000), (5, 5), (1, 0)];
        assert_eq!(
            parts.map(|(part, whole)| percent(part, whole)),
            ["0%", "<0.1%", "2.5%", "50%", ">99%", "100%", ""]
        );
    }
}
