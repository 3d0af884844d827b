//! The calendar: parts of a local time, which is told in milliseconds as if it were UTC.

use super::zone::DAY;
use pando_doc::DateParts;

pub(super) fn split(local: i64) -> DateParts {
    DateParts::from_milliseconds(local)
}

/// Sunday is 0.
pub(super) fn weekday(local: i64) -> i64 {
    (local.div_euclid(DAY) + 4).rem_euclid(7)
}

/// Monday is 1, Sunday is 7.
pub(super) fn iso_weekday(local: i64) -> i64 {
    (weekday(local) + 6) % 7 + 1
}

/// The number of the day since 1970 on which a month begins; the month may be any number, 1 is January.
pub(super) fn first_of_month(year: i64, month: i64) -> Option<i64> {
    let year = year.checked_add(month.checked_sub(1)?.div_euclid(12))?;
    let month = (month - 1).rem_euclid(12) as u32 + 1;
    // The first year of all begins before the first millisecond of all: it is reckoned from the same place of the next cycle.
    let cycle = if year < 0 { 1 } else { 0 };
    let year = year.checked_add(cycle * 400)?;
    let first = DateParts { year, month, day: 1, hour: 0, minute: 0, second: 0, millisecond: 0 };
    Some(first.to_milliseconds()?.div_euclid(DAY) - cycle * 146_097)
}

/// 1 is the first of January.
pub(super) fn day_of_year(local: i64) -> i64 {
    let first = first_of_month(split(local).year, 1).unwrap_or(0);
    local.div_euclid(DAY) - first + 1
}

/// Weeks begin on Sunday; the days before the first Sunday are in week 0.
pub(super) fn week(local: i64) -> i64 {
    (day_of_year(local) + 6 - weekday(local)) / 7
}

/// The year and number of the week that holds the Thursday of this one.
pub(super) fn iso_week(local: i64) -> (i64, i64) {
    const CYCLE_DAYS: i64 = 146_097;
    let thursday = local.div_euclid(DAY) + 4 - iso_weekday(local);
    // It may lie beyond the first or last of all moments: then it is looked at in the next cycle of
    // the calendar.
    let cycles = if thursday < 0 { 1 } else { -1 };
    let (thursday, cycles) = match thursday.checked_mul(DAY) {
        Some(moment) => (moment, 0),
        None => ((thursday + cycles * CYCLE_DAYS).saturating_mul(DAY), cycles),
    };
    (split(thursday).year - cycles * 400, (day_of_year(thursday) - 1) / 7 + 1)
}

/// The day since 1970 of an ISO week and weekday; both may be any number.
pub(super) fn day_of_iso_week(year: i64, week: i64, weekday: i64) -> Option<i64> {
    // The fourth of January is always in the first week.
    let fourth = first_of_month(year, 1)?.checked_add(3)?;
    let monday = fourth - (iso_weekday(fourth.checked_mul(DAY)?) - 1);
    monday.checked_add(week.checked_sub(1)?.checked_mul(7)?)?.checked_add(weekday.checked_sub(1)?)
}

/// How many days a month has; the month may be any number.
pub(super) fn days_in_month(year: i64, month: i64) -> Option<i64> {
    Some(first_of_month(year, month.checked_add(1)?)? - first_of_month(year, month)?)
}

pub(in crate::expression) const MONTHS: [&str; 12] = [
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
