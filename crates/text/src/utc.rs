//! Dates and times of day.

/// Milliseconds since 1970 as a date and a time of day in UTC, in the Gregorian calendar.
///
/// ```
/// assert_eq!(anabranch_text::utc(1_794_750_062_000), "2026-11-15 13:41:02");
/// ```
pub fn utc(millis: u64) -> String {
    let (days, seconds) = (millis / 86_400_000, millis / 1_000 % 86_400);
    // Years begin in March, so that a leap day is the last day of its year.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    format!("{year}-{month:02}-{day_of_month:02} {hours:02}:{minutes:02}:{seconds:02}")
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn times_are_dates() {
        assert_eq!(utc(0), "1970-01-01 00:00:00");
        assert_eq!(utc(951_868_799_000), "2000-02-29 23:59:59");
        assert_eq!(utc(951_868_800_000), "2000-03-01 00:00:00");
        assert_eq!(utc(1_772_236_800_000), "2026-02-28 00:00:00");
        assert_eq!(utc(1_772_323_200_999), "2026-03-01 00:00:00");
    }
}
