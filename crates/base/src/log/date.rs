//! Milliseconds since 1970 as a date of the Gregorian calendar, in universal time.

use std::fmt;

const MS_PER_DAY: u64 = 86_400_000;

/// A point in time, shown as "2024-02-29T23:59:59.999".
pub(super) struct Date {
    pub(super) ms: u64,
    /// What stands between date and time of day.
    pub(super) separator: char,
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = civil(self.ms / MS_PER_DAY);
        let ms = self.ms % MS_PER_DAY;
        let (hour, minute, second, ms) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60, ms % 1_000);
        write!(f, "{year:04}-{month:02}-{day:02}{}{hour:02}:{minute:02}:{second:02}.{ms:03}", self.separator)
    }
}

/// Year, month and day of a day since 1970. Years are counted from March, so that a leap day is the last day of one.
fn civil(days_since_1970: u64) -> (u64, u64, u64) {
    const DAYS_FROM_MARCH_OF_YEAR_0: u64 = 719_468;
    const DAYS_PER_400_YEARS: u64 = 146_097;
    let days = days_since_1970 + DAYS_FROM_MARCH_OF_YEAR_0;
    let (era, day_of_era) = (days / DAYS_PER_400_YEARS, days % DAYS_PER_400_YEARS);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // From March on the months have 31, 30, 31, 30, 31 days, over and over: 153 days in five.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(ms: u64) -> String {
        Date { ms, separator: 'T' }.to_string()
    }

    #[test]
    fn dates() {
        assert_eq!(shown(0), "1970-01-01T00:00:00.000");
        assert_eq!(shown(951_782_400_000 - 1), "2000-02-28T23:59:59.999");
        assert_eq!(shown(951_782_400_000), "2000-02-29T00:00:00.000");
        assert_eq!(shown(1_589_999_920_604), "2020-05-20T18:38:40.604");
        assert_eq!(shown(4_107_542_400_000), "2100-03-01T00:00:00.000");
        assert!(shown(u64::MAX).contains('T'));
    }

    #[test]
    fn every_day_is_the_one_after_the_day_before() {
        let mut before = civil(0);
        for days in 1..60_000 {
            let (year, month, day) = civil(days);
            let follows = match before {
                (y, m, d) if (year, month) == (y, m) => day == d + 1,
                (y, m, d) if year == y => month == m + 1 && day == 1 && (28..=31).contains(&d),
                (y, m, d) => (year, month, day) == (y + 1, 1, 1) && (m, d) == (12, 31),
            };
            assert!(follows, "{before:?} then {:?}", (year, month, day));
            before = (year, month, day);
        }
    }
}
