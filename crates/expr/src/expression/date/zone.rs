//! Time zones: UTC, fixed offsets such as `+05:30`, and the named ones of the IANA database, which is part of the binary.
//!
//! The database knows the years up to 9999 either way. Calendars repeat every 400 years, so a date beyond is looked up at
//! the same place of an earlier (or later) cycle.

use crate::expression::Operand;
use bstr::BStr;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, civil};
use pando_base::{Error, Result};
use pando_doc::{DateParts, Value};
use std::sync::LazyLock;

pub(super) const MINUTE: i64 = 60_000;
pub(super) const DAY: i64 = 86_400_000;
/// 400 years of the Gregorian calendar.
const CYCLE: i64 = 146_097 * DAY;
/// Where dates are looked up as they are: about the years 1 to 9600.
const KNOWN: std::ops::Range<i64> = -62_135_596_800_000..240_779_520_000_000;

static DATABASE: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// A time zone.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::expression) enum Zone {
    Utc,
    /// Milliseconds east of UTC.
    Fixed(i64),
    Named(TimeZone),
}

impl Zone {
    /// The zone of this name.
    pub(in crate::expression) fn find(name: &BStr) -> Result<Zone> {
        if name == "UTC" {
            return Ok(Zone::Utc);
        }
        if let Some(offset) = fixed_offset(name) {
            return Ok(if offset == 0 { Zone::Utc } else { Zone::Fixed(offset) });
        }
        let known = std::str::from_utf8(name).ok().and_then(|name| DATABASE.get(name).ok());
        // Names are compared with regard to case.
        let known = known.filter(|zone| zone.iana_name().is_some_and(|known| name == known));
        known
            .map(Zone::Named)
            .ok_or_else(|| Error::location(40485, format!("unrecognized time zone identifier: \"{name}\"")))
    }

    /// The zone of an operand that need not be there: UTC without one, none if it is null.
    pub(super) fn of_operand(operand: Option<&Operand<'_>>) -> Result<Option<Zone>> {
        let Some(operand) = operand else { return Ok(Some(Zone::Utc)) };
        match operand.or_null() {
            Value::String(name) => Zone::find(name).map(Some),
            value if value.is_nullish() => Ok(None),
            value => {
                let reason = format!("timezone must evaluate to a string, found {}", value.value_type());
                Err(Error::location(40517, reason))
            }
        }
    }

    /// How far local time is ahead of UTC at this moment, in milliseconds.
    pub(super) fn offset_at(&self, moment: i64) -> i64 {
        match self {
            Zone::Utc => 0,
            Zone::Fixed(offset) => *offset,
            Zone::Named(zone) => {
                let (moment, _) = within_known(moment);
                let offset = Timestamp::from_millisecond(moment).map(|moment| zone.to_offset(moment));
                offset.map_or(0, |offset| i64::from(offset.seconds()) * 1000)
            }
        }
    }

    /// The local time of a moment, as if it were UTC.
    pub(super) fn to_local(&self, moment: i64) -> i64 {
        moment.saturating_add(self.offset_at(moment))
    }

    /// The moment of a local time. A time that clocks skip is taken as if they had not; of two moments with the same local
    /// time it is the first.
    pub(super) fn moment_of(&self, local: i64) -> Option<i64> {
        match self {
            Zone::Utc => Some(local),
            Zone::Fixed(offset) => local.checked_sub(*offset),
            Zone::Named(zone) => {
                let (near, cycles) = within_known(local);
                let parts = DateParts::from_milliseconds(near);
                let narrow = |number: u32| i8::try_from(number).ok();
                let date = civil::DateTime::new(
                    i16::try_from(parts.year).ok()?,
                    narrow(parts.month)?,
                    narrow(parts.day)?,
                    narrow(parts.hour)?,
                    narrow(parts.minute)?,
                    narrow(parts.second)?,
                    i32::try_from(parts.millisecond).ok()? * 1_000_000,
                );
                let moment = zone.to_ambiguous_timestamp(date.ok()?).compatible().ok()?.as_millisecond();
                cycles.checked_mul(CYCLE)?.checked_add(moment)
            }
        }
    }

    pub(super) fn is_utc(&self) -> bool {
        matches!(self, Zone::Utc)
    }
}

/// The date moved into the years that are known, by whole cycles.
fn within_known(date: i64) -> (i64, i64) {
    if KNOWN.contains(&date) {
        return (date, 0);
    }
    // The years from 2000 on stand for those to come, the first ones for those before.
    let from = if date < KNOWN.start { KNOWN.start } else { 946_684_800_000 };
    let cycles = date.saturating_sub(from).div_euclid(CYCLE);
    (date.saturating_sub(cycles.saturating_mul(CYCLE)), cycles)
}

/// `+hh`, `+hhmm` or `+hh:mm`, in milliseconds.
pub(super) fn fixed_offset(name: &BStr) -> Option<i64> {
    let (sign, digits) = match name.split_first()? {
        (b'+', digits) => (1, digits),
        (b'-', digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits {
        [_, _] => (digits, &b"0"[..]),
        [_, _, b':', minutes @ ..] if minutes.len() == 2 => (digits.get(..2)?, minutes),
        [_, _, minutes @ ..] if minutes.len() == 2 => (digits.get(..2)?, minutes),
        _ => return None,
    };
    let number = |digits: &[u8]| -> Option<i64> {
        let is_number = digits.iter().all(u8::is_ascii_digit);
        if is_number { std::str::from_utf8(digits).ok()?.parse().ok() } else { None }
    };
    Some(sign * (number(hours)? * 60 + number(minutes)?) * MINUTE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u6_zones_reach_beyond_the_years_of_their_table() {
        let zone = Zone::find(BStr::new("Europe/Berlin")).unwrap();
        let summer = |year| DateParts { year, month: 7, day: 1, hour: 12, minute: 0, second: 0, millisecond: 5 };
        for year in [1990, 2020, 2400, 9999, 10_000, 123_456, 290_000_000] {
            let moment = summer(year).to_milliseconds().unwrap();
            assert_eq!(zone.offset_at(moment), 2 * 60 * MINUTE, "{year}");
            assert_eq!(zone.moment_of(zone.to_local(moment)), Some(moment), "{year}");
        }
        // Local mean time, before there were zones.
        let early = summer(-5000).to_milliseconds().unwrap();
        assert_eq!(zone.offset_at(early), 3_208_000);
        assert_eq!(zone.moment_of(zone.to_local(early)), Some(early));
    }

    #[test]
    fn u6_skipped_and_repeated_local_times() {
        let zone = Zone::find(BStr::new("America/New_York")).unwrap();
        let local = |text: &str| zone.moment_of(pando_doc::parse_iso_8601(text).unwrap()).map(pando_doc::iso_8601);
        assert_eq!(local("2020-03-08T02:30:00Z").unwrap(), "2020-03-08T07:30:00.000Z");
        assert_eq!(local("2020-11-01T01:30:00Z").unwrap(), "2020-11-01T05:30:00.000Z");
        assert!(Zone::find(BStr::new("america/new_york")).is_err());
    }
}
