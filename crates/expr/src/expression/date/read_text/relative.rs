//! How far a date is moved by words such as "+2 days", "next month", "Monday", "last day of".

use super::words;
use crate::expression::date::calendar::{first_of_month, split};
use crate::expression::date::unit::TimeUnit;
use crate::expression::date::zone::DAY;

/// Days that are not told by a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::expression::date) enum Special {
    /// The first of the month.
    FirstDay,
    /// The last of the month.
    LastDay,
    /// Weekdays are counted from the beginning of the month.
    Weekday,
    /// Weekdays are counted from the beginning of the next month.
    WeekdayBeforeNext,
}

/// What is added to a date, and the day of the week that is looked for then.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::expression::date) struct Relative {
    years: i64,
    months: i64,
    days: i64,
    milliseconds: i64,
    /// The day, and which one it may be: 0 only one after the date, 1 also the date itself, 2 one
    /// of the same week.
    weekday: Option<(i64, i64)>,
    special: Option<Special>,
}

impl Relative {
    pub(super) fn add_days(&mut self, days: i64) -> Option<()> {
        self.days = self.days.checked_add(days)?;
        Some(())
    }

    /// A week of a year is so far from its beginning.
    pub(super) fn set_days(&mut self, days: i64) {
        self.days = days;
    }

    pub(super) fn add_milliseconds(&mut self, milliseconds: i64) -> Option<()> {
        self.milliseconds = self.milliseconds.checked_add(milliseconds)?;
        Some(())
    }

    /// A day of the week by its name keeps that only days of this week are meant, if that was said.
    pub(super) fn name_weekday(&mut self, day: i64) {
        let which = self.weekday.map_or(1, |(_, which)| if which == 2 { 2 } else { 1 });
        self.weekday = Some((day, which));
    }

    pub(super) fn mean_this_week(&mut self) {
        let (day, _) = self.weekday.unwrap_or((1, 2));
        self.weekday = Some((day, 2));
    }

    pub(super) fn set_special(&mut self, special: Special) {
        self.special = Some(special);
    }

    /// So many of what a word says; none if it says nothing that is known, or it is too much.
    pub(super) fn add(&mut self, amount: i64, word: &[u8], which: i64) -> Option<()> {
        if let Some(day) = words::weekday(word) {
            let weeks = if amount > 0 { amount - 1 } else { amount };
            self.add_days(weeks.checked_mul(7)?)?;
            self.weekday = Some((day, which));
            return Some(());
        }
        let (size, unit) = words::unit(word)?;
        let by = amount.checked_mul(size)?;
        match unit {
            TimeUnit::Year => self.years = self.years.checked_add(by)?,
            TimeUnit::Month => self.months = self.months.checked_add(by)?,
            TimeUnit::Day => self.add_days(by)?,
            unit => self.milliseconds = self.milliseconds.checked_add(by.checked_mul(unit.milliseconds()?)?)?,
        }
        Some(())
    }

    /// The other way.
    pub(super) fn turn(&mut self) {
        self.years = -self.years;
        self.months = -self.months;
        self.days = -self.days;
        self.milliseconds = -self.milliseconds;
        self.weekday = self.weekday.map(|(day, which)| (if day == 0 { -7 } else { -day }, which));
    }

    /// The local time so far from a day and a time of day, which are told in milliseconds. None
    /// beyond all dates.
    pub(in crate::expression::date) fn applied(&self, days: i64, time: i64) -> Option<i64> {
        let mut days = days;
        let mut months = self.months;
        if let Some(special) = self.special {
            let date = split(days.checked_mul(DAY)?);
            let month = i64::from(date.month);
            days = match special {
                Special::FirstDay => first_of_month(date.year, month)?,
                Special::LastDay => first_of_month(date.year, month + 1)?.checked_sub(1)?,
                Special::Weekday => first_of_month(date.year, month.checked_add(months)?)?,
                Special::WeekdayBeforeNext => first_of_month(date.year, month.checked_add(months)?.checked_add(1)?)?,
            };
            if matches!(special, Special::Weekday | Special::WeekdayBeforeNext) {
                months = 0;
            }
        }
        if let Some((weekday, which)) = self.weekday {
            days = days.checked_add(self.to_weekday(days, weekday, which))?;
        }
        if self.years != 0 || months != 0 || matches!(self.special, Some(Special::FirstDay | Special::LastDay)) {
            let date = split(days.checked_mul(DAY)?);
            let (year, month) = (date.year.checked_add(self.years)?, i64::from(date.month).checked_add(months)?);
            days = match self.special {
                Some(Special::FirstDay) => first_of_month(year, month)?,
                Some(Special::LastDay) => first_of_month(year, month.checked_add(1)?)?.checked_sub(1)?,
                _ => first_of_month(year, month)?.checked_add(i64::from(date.day) - 1)?,
            };
        }
        if !matches!(self.special, Some(Special::FirstDay | Special::LastDay)) {
            days = days.checked_add(self.days)?;
        }
        days.checked_mul(DAY)?.checked_add(time)?.checked_add(self.milliseconds)
    }

    /// How many days it is to the day of the week.
    fn to_weekday(&self, days: i64, weekday: i64, which: i64) -> i64 {
        let current = days.rem_euclid(7).wrapping_add(4) % 7;
        if which == 2 {
            let weekday = match (current, weekday) {
                (0, weekday) if weekday != 0 => weekday - 7,
                (1.., 0) => 7,
                (_, weekday) => weekday,
            };
            return weekday - current;
        }
        if weekday < 0 {
            return -(7 - (weekday.abs() - current));
        }
        let difference = weekday - current;
        let is_past = if self.days < 0 { difference < 0 } else { difference <= -which };
        if is_past { difference + 7 } else { difference }
    }
}
