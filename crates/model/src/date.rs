//! Points in time as servers write them, in milliseconds since 1970.

const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A date of a header such as `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(crate) fn http(text: &str) -> Option<i64> {
    let mut parts = text.split_ascii_whitespace();
    let (_, day, month) = (parts.next()?, parts.next()?, parts.next()?);
    let (year, clock, zone) = (parts.next()?, parts.next()?, parts.next()?);
    if zone != "GMT" || parts.next().is_some() {
        return None;
    }
    let month = MONTHS.iter().position(|name| *name == month)? as i64 + 1;
    let [day] = numbers(day, ':')?;
    let [year] = numbers(year, ':')?;
    Some((days(year, month, day)? * 86_400 + seconds(clock)?) * 1000)
}

/// A date such as `2024-05-06T07:08:09.5+02:00`.
pub(crate) fn rfc3339(text: &str) -> Option<i64> {
    let (date, clock) = text.split_once(['T', 't', ' '])?;
    let [year, month, day] = numbers(date, '-')?;
    let (clock, zone) = clock.split_at(clock.find(['Z', 'z', '+', '-'])?);
    let offset = match zone {
        "Z" | "z" => 0,
        _ => {
            let [hours, minutes] =
                numbers(&zone[1..], ':').filter(|[hours, minutes]| *hours < 24 && *minutes < 60)?;
            let offset = hours * 3600 + minutes * 60;
            if zone.starts_with('-') { -offset } else { offset }
        }
    };
    let (clock, millis) = match clock.split_once('.') {
        Some((clock, fraction)) => {
            let digits =
                fraction.bytes().map(|digit| digit.is_ascii_digit().then(|| i64::from(digit - b'0')));
            let digits = digits.collect::<Option<Vec<_>>>().filter(|digits| !digits.is_empty())?;
            (clock, (0..3).fold(0, |millis, place| millis * 10 + digits.get(place).copied().unwrap_or(0)))
        }
        None => (clock, 0),
    };
    Some((days(year, month, day)? * 86_400 + seconds(clock)? - offset) * 1000 + millis)
}

/// Days since 1970, by a civil calendar whose years begin in March.
fn days(year: i64, month: i64, day: i64) -> Option<i64> {
    if !(1970..10_000).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    Some(365 * year + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 719_469)
}

/// The seconds of a time of day such as `08:49:37`; leap seconds are accepted.
fn seconds(clock: &str) -> Option<i64> {
    let [hours, minutes, seconds] = numbers(clock, ':')?;
    (hours < 24 && minutes < 60 && seconds <= 60).then_some((hours * 60 + minutes) * 60 + seconds)
}

/// Exactly `N` numbers of at most four digits.
fn numbers<const N: usize>(text: &str, separator: char) -> Option<[i64; N]> {
    let mut numbers = [0; N];
    let mut parts = text.split(separator);
    for number in &mut numbers {
        let part = parts.next()?;
        let plain = (1..=4).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        *number = plain.then(|| part.parse().ok()).flatten()?;
    }
    parts.next().is_none().then_some(numbers)
}
