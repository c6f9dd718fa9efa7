//! The proleptic Gregorian calendar. A time is the number of seconds since 1970.

use crate::params::TimeUnit;

/// Seconds per day.
pub(crate) const DAY: i64 = 86_400;

pub(crate) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// From Monday on.
pub(crate) const WEEKDAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// A day of the civil calendar, in the years 1 to 9999.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Date {
    year: i32,
    month: u32,
    day: u32,
}

impl Date {
    /// The day, if the calendar has it.
    pub fn new(year: i32, month: u32, day: u32) -> Option<Date> {
        let exists = (1..=9999).contains(&year)
            && (1..=12).contains(&month)
            && (1..=days_in_month(year, month)).contains(&day);
        exists.then_some(Date { year, month, day })
    }

    /// The day of a time in seconds since 1970, within the years 1 to 9999.
    pub fn from_unix(seconds: i64) -> Date {
        let Civil { date, .. } = Civil::at(seconds);
        date
    }

    /// The year.
    pub fn year(self) -> i32 {
        self.year
    }

    /// The month, from 1.
    pub fn month(self) -> u32 {
        self.month
    }

    /// The day of the month, from 1.
    pub fn day(self) -> u32 {
        self.day
    }

    /// Days since 1970.
    pub(crate) fn days(self) -> i64 {
        // Years begin in March, so that the leap day is the last one.
        let year = i64::from(self.year) - i64::from(self.month <= 2);
        let era = year.div_euclid(400);
        let of_era = year.rem_euclid(400);
        let month = (i64::from(self.month) + 9) % 12;
        let of_year = (153 * month + 2) / 5 + i64::from(self.day) - 1;
        era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
    }

    pub(crate) fn from_days(days: i64) -> Date {
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let of_era = shifted.rem_euclid(146_097);
        let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
        let of_year = of_era - (365 * year + year / 4 - year / 100);
        let month = (5 * of_year + 2) / 153;
        let day = of_year - (153 * month + 2) / 5 + 1;
        let month = if month < 10 { month + 3 } else { month - 9 };
        let year = year + era * 400 + i64::from(month <= 2);
        Date { year: year as i32, month: month as u32, day: day as u32 }
    }

    /// The same day in an earlier year; the last of February where that year has no such day.
    pub(crate) fn years_before(self, years: u32) -> Date {
        let year = (self.year - years as i32).max(1);
        Date { year, day: self.day.min(days_in_month(year, self.month)), ..self }
    }

    /// From 0 on Monday.
    pub(crate) fn weekday(self) -> i64 {
        (self.days() + 3).rem_euclid(7)
    }

    /// From 1 on the first of January.
    pub(crate) fn day_of_year(self) -> i64 {
        self.days() - Date { month: 1, day: 1, ..self }.days() + 1
    }
}

impl std::fmt::Display for Date {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

fn days_in_month(year: i32, month: u32) -> u32 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// A time in its parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Civil {
    pub(crate) date: Date,
    pub(crate) hour: u32,
    pub(crate) minute: u32,
    pub(crate) second: u32,
}

impl Civil {
    pub(crate) fn at(time: i64) -> Civil {
        let of_day = time.rem_euclid(DAY) as u32;
        Civil {
            date: Date::from_days(time.div_euclid(DAY)),
            hour: of_day / 3600,
            minute: of_day / 60 % 60,
            second: of_day % 60,
        }
    }

    pub(crate) fn seconds(self) -> i64 {
        self.date.days() * DAY + i64::from(self.hour * 3600 + self.minute * 60 + self.second)
    }
}

/// Whether the time is within the years 1 to 9999.
pub(crate) fn in_range(time: i64) -> bool {
    (-62_135_596_800..253_402_300_800).contains(&time)
}

/// The start of the unit that the time is in.
pub(crate) fn truncate(time: i64, unit: TimeUnit) -> i64 {
    let step = match unit {
        TimeUnit::Second => 1,
        TimeUnit::Minute => 60,
        TimeUnit::Hour => 3600,
        TimeUnit::Day => DAY,
        TimeUnit::Month | TimeUnit::Year => {
            let date = Civil::at(time).date;
            let month = if unit == TimeUnit::Year { 1 } else { date.month };
            return Date { month, day: 1, ..date }.days() * DAY;
        }
    };
    time.div_euclid(step) * step
}
