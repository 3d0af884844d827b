//! Dates as text: ISO 8601 in UTC, to the millisecond. The proleptic Gregorian calendar, as everywhere in BSON.

use std::fmt;

const MILLISECONDS_A_DAY: i64 = 86_400_000;

/// A date in UTC, taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct DateParts {
    pub year: i64,
    pub month: u32,
    pub day: u32,
    pub hour: u32,
    pub minute: u32,
    pub second: u32,
    pub millisecond: u32,
}

impl DateParts {
    /// The date that many milliseconds after 1970.
    pub fn from_milliseconds(milliseconds: i64) -> DateParts {
        let days = milliseconds.div_euclid(MILLISECONDS_A_DAY);
        let rest = milliseconds.rem_euclid(MILLISECONDS_A_DAY) as u32;
        let (year, month, day) = civil_from_days(days);
        DateParts {
            year,
            month,
            day,
            hour: rest / 3_600_000,
            minute: rest / 60_000 % 60,
            second: rest / 1000 % 60,
            millisecond: rest % 1000,
        }
    }

    /// The day alone, as `2006-01-02`.
    pub fn day_text(&self) -> impl fmt::Display {
        let DateParts { year, month, day, .. } = *self;
        fmt::from_fn(move |f| write!(f, "{year:04}-{month:02}-{day:02}"))
    }

    /// The time of day alone, as `15:04:05.678`.
    pub fn time_text(&self) -> impl fmt::Display {
        let DateParts { hour, minute, second, millisecond, .. } = *self;
        fmt::from_fn(move |f| write!(f, "{hour:02}:{minute:02}:{second:02}.{millisecond:03}"))
    }

    /// The milliseconds since 1970; none if a part is out of its range or the date out of all.
    pub fn to_milliseconds(self) -> Option<i64> {
        let in_range = (1..=12).contains(&self.month)
            && (1..=days_in_month(self.year, self.month)).contains(&self.day)
            && self.hour < 24
            && self.minute < 60
            && self.second < 60
            && self.millisecond < 1000;
        if !in_range || self.year.unsigned_abs() > 300_000_000 {
            return None;
        }
        let seconds = i64::from(self.hour * 3600 + self.minute * 60 + self.second);
        let milliseconds = seconds * 1000 + i64::from(self.millisecond);
        // The first day of all begins before the first millisecond of all.
        let days = i128::from(days_from_civil(self.year, self.month, self.day));
        i64::try_from(days * i128::from(MILLISECONDS_A_DAY) + i128::from(milliseconds)).ok()
    }
}

impl fmt::Display for DateParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}T{}Z", self.day_text(), self.time_text())
    }
}

/// The date as `2006-01-02T15:04:05.678Z`.
pub fn iso_8601(milliseconds: i64) -> String {
    DateParts::from_milliseconds(milliseconds).to_string()
}

/// Reads `2006-01-02T15:04:05[.678](Z|+hh:mm|+hhmm|+hh)`; at most three digits of a fraction count.
pub fn parse_iso_8601(text: &str) -> Option<i64> {
    let (date, time) = text.split_once('T')?;
    let mut fields = date.rsplitn(3, '-');
    let (day, month, year) = (number(fields.next()?, 2)?, number(fields.next()?, 2)?, number(fields.next()?, 4)?);
    let zone_at = time.find(['Z', '+', '-'])?;
    let (time, zone) = time.split_at(zone_at);
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let mut fields = time.split(':');
    let (hour, minute) = (number(fields.next()?, 2)?, number(fields.next()?, 2)?);
    let second = fields.next().map_or(Some(0), |second| number(second, 2))?;
    if fields.next().is_some() || fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let millisecond = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
    let parts = DateParts { year: year.into(), month, day, hour, minute, second, millisecond };
    parts.to_milliseconds()?.checked_sub(i64::from(zone_minutes(zone)?) * 60_000)
}

fn number(text: &str, digits: usize) -> Option<u32> {
    let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

fn zone_minutes(zone: &str) -> Option<i32> {
    let sign = match zone.as_bytes().first()? {
        b'Z' => return if zone.len() == 1 { Some(0) } else { None },
        b'-' => -1,
        _ => 1,
    };
    let digits: String = zone.chars().skip(1).filter(|&c| c != ':').collect();
    let (hours, minutes) = match digits.len() {
        2 => (number(&digits, 2)?, 0),
        4 => (number(digits.get(..2)?, 2)?, number(digits.get(2..)?, 2)?),
        _ => return None,
    };
    if hours > 23 || minutes > 59 { None } else { Some(sign * (hours * 60 + minutes) as i32) }
}

fn days_in_month(year: i64, month: u32) -> u32 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u32::from(is_leap),
        _ => 31,
    }
}

/// Days since 1970. The year is taken to begin in March, so that the leap day is its last, and time runs in eras of 400
/// years, which are all alike.
fn days_from_civil(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((i64::from(month) + 9) % 12) + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn civil_from_days(days: i64) -> (i64, u32, u32) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month as u32, day as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_dates() {
        for (milliseconds, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_136_214_245_678, "2006-01-02T15:04:05.678Z"),
            (32_535_215_999_000, "3000-12-31T23:59:59.000Z"),
            (-62_135_596_800_000, "0001-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(iso_8601(milliseconds), text);
            assert_eq!(parse_iso_8601(text), Some(milliseconds));
        }
        assert_eq!(parse_iso_8601("2006-01-02T16:04:05.67+01:00"), Some(1_136_214_245_670));
        assert_eq!(parse_iso_8601("2006-01-02T10:34:05-0430"), Some(1_136_214_245_000));
        for wrong in
            ["", "2006-01-02", "2006-02-29T00:00:00Z", "2006-01-02T24:00:00Z", "2006-01-02T00:00:00", "x-y-zT1Z"]
        {
            assert_eq!(parse_iso_8601(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn every_date_leads_back() {
        let mut milliseconds = i64::MIN;
        while milliseconds < i64::MAX - (1 << 54) {
            assert_eq!(DateParts::from_milliseconds(milliseconds).to_milliseconds(), Some(milliseconds));
            milliseconds += (1 << 54) + 123_456_789;
        }
    }
}
