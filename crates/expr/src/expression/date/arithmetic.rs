//! `$dateAdd`, `$dateSubtract`, `$dateDiff`, `$dateTrunc`.
//!
//! Days and longer units are reckoned on the local calendar, so that the time of day stays across a change of clocks; hours and
//! shorter ones in UTC.

use super::calendar::{days_in_month, first_of_month, iso_weekday, split};
use super::unit::{TimeUnit, start_of_week};
use super::zone::{DAY, Zone};
use crate::expression::convert::coerce_to_date;
use crate::expression::{Environment, Operand};
use pando_base::{Error, Result};
use pando_doc::{Number, OwnedValue};

/// `startDate`, `unit`, `amount`, `timezone`.
pub(in crate::expression) fn date_add<'a>(
    operands: &[Option<Operand<'a>>],
    _: &Environment<'_>,
) -> Result<Operand<'a>> {
    shifted(operands, "$dateAdd")
}

pub(in crate::expression) fn date_subtract<'a>(
    operands: &[Option<Operand<'a>>],
    _: &Environment<'_>,
) -> Result<Operand<'a>> {
    shifted(operands, "$dateSubtract")
}

fn shifted<'a>(operands: &[Option<Operand<'_>>], name: &str) -> Result<Operand<'a>> {
    let [Some(date), Some(unit), Some(amount), zone] = operands else { return Ok(Operand::NULL) };
    if date.is_nullish() {
        return Ok(Operand::NULL);
    }
    let Some(unit) = TimeUnit::of_operand(unit, name)? else { return Ok(Operand::NULL) };
    if amount.is_nullish() {
        return Ok(Operand::NULL);
    }
    let Some(zone) = Zone::of_operand(zone.as_ref())? else { return Ok(Operand::NULL) };
    let start = coerce_to_date(date.or_null())
        .map_err(|_| Error::location(5166403, format!("{name} requires startDate to be convertible to a date")))?;
    let whole = amount.as_number().and_then(Number::to_i64_exact);
    let amount =
        whole.ok_or_else(|| Error::location(5166405, format!("{name} expects integer amount of time units")))?;
    let amount = match name {
        "$dateSubtract" => amount.checked_neg().ok_or_else(|| {
            Error::location(6045000, format!("invalid $dateSubtract 'amount' parameter value: {amount}"))
        })?,
        _ => amount,
    };
    add(start, unit, amount, &zone).map(|moved| Operand::Owned(OwnedValue::DateTime(moved)))
}

/// The date that many units later, in UTC.
pub fn add_to_date(start: i64, unit: TimeUnit, amount: i64) -> Result<i64> {
    add(start, unit, amount, &Zone::Utc)
}

fn add(start: i64, unit: TimeUnit, amount: i64, zone: &Zone) -> Result<i64> {
    check_amount(unit, amount)?;
    let moved = match (unit, unit.months()) {
        (_, Some(months)) => {
            let local = zone.to_local(start);
            amount.checked_mul(months).and_then(|months| add_months(local, months)).and_then(|it| zone.moment_of(it))
        }
        (TimeUnit::Day | TimeUnit::Week, _) => {
            let length = unit.milliseconds().unwrap_or(DAY);
            let local = amount.checked_mul(length).and_then(|by| zone.to_local(start).checked_add(by));
            local.and_then(|local| zone.moment_of(local))
        }
        _ => unit.milliseconds().and_then(|length| amount.checked_mul(length)).and_then(|by| start.checked_add(by)),
    };
    moved.ok_or_else(|| Error::location(5166406, "dateAdd overflowed"))
}

/// Amounts beyond the range of all dates are refused before anything is reckoned.
fn check_amount(unit: TimeUnit, amount: i64) -> Result<()> {
    const DAYS_MAX: i64 = (u64::MAX / 86_400_000) as i64 + 1;
    const YEARS_MAX: i64 = DAYS_MAX / 365 + 1;
    let most = match unit {
        TimeUnit::Millisecond => return Ok(()),
        TimeUnit::Year => YEARS_MAX,
        TimeUnit::Quarter => YEARS_MAX * 4,
        TimeUnit::Month => YEARS_MAX * 12,
        TimeUnit::Week => DAYS_MAX / 7,
        TimeUnit::Day => DAYS_MAX,
        TimeUnit::Hour => DAYS_MAX * 24,
        TimeUnit::Minute => DAYS_MAX * 24 * 60,
        TimeUnit::Second => DAYS_MAX * 24 * 3600,
    };
    if amount > -most && amount < most {
        return Ok(());
    }
    let reason = format!("invalid dateAdd 'amount' parameter value: {amount} {}", unit.name());
    Err(Error::location(5976500, reason))
}

/// The same day and time that many months later, the last of the month if it has no such day.
fn add_months(local: i64, months: i64) -> Option<i64> {
    let parts = split(local);
    let month = i64::from(parts.month).checked_add(months)?;
    let day = i64::from(parts.day).min(days_in_month(parts.year, month)?);
    let days = first_of_month(parts.year, month)?.checked_add(day - 1)?;
    let moved = i128::from(days) * i128::from(DAY) + i128::from(local.rem_euclid(DAY));
    i64::try_from(moved).ok()
}

/// `startDate`, `endDate`, `unit`, `timezone`, `startOfWeek`.
pub(in crate::expression) fn date_diff<'a>(
    operands: &[Option<Operand<'a>>],
    _: &Environment<'_>,
) -> Result<Operand<'a>> {
    const NAME: &str = "$dateDiff";
    let [Some(start), Some(end), Some(unit), zone, week_start] = operands else { return Ok(Operand::NULL) };
    if start.is_nullish() || end.is_nullish() {
        return Ok(Operand::NULL);
    }
    let Some(unit) = TimeUnit::of_operand(unit, NAME)? else { return Ok(Operand::NULL) };
    let week_start = match unit {
        TimeUnit::Week => start_of_week(week_start.as_ref(), NAME)?,
        _ => Some(7),
    };
    let Some(week_start) = week_start else { return Ok(Operand::NULL) };
    let zone = Zone::of_operand(zone.as_ref())
        .map_err(|error| error.context(format!("{NAME} parameter 'timezone' value parsing failed")))?;
    let Some(zone) = zone else { return Ok(Operand::NULL) };
    let date = |operand: &Operand<'_>, name: &str| {
        coerce_to_date(operand.or_null()).map_err(|_| {
            let reason = format!("{NAME} requires '{name}' to be a date, but got {}", operand.type_name());
            Error::location(5166307, reason)
        })
    };
    let (start, end) = (date(start, "startDate")?, date(end, "endDate")?);
    difference(start, end, unit, &zone, week_start).map(Operand::from)
}

/// How many borders of the unit lie between two dates in UTC; weeks begin on Sunday.
pub fn date_difference(start: i64, end: i64, unit: TimeUnit) -> Result<i64> {
    difference(start, end, unit, &Zone::Utc, 7)
}

fn difference(start: i64, end: i64, unit: TimeUnit, zone: &Zone, week_start: i64) -> Result<i64> {
    if unit == TimeUnit::Millisecond {
        return end.checked_sub(start).ok_or_else(|| Error::location(5166308, "dateDiff overflowed"));
    }
    let (from, to) = (zone.to_local(start), zone.to_local(end));
    let months = |local: i64| split(local).year * 12 + i64::from(split(local).month) - 1;
    Ok(match (unit, unit.months()) {
        (_, Some(length)) => months(to).div_euclid(length) - months(from).div_euclid(length),
        (TimeUnit::Day, _) => to.div_euclid(DAY) - from.div_euclid(DAY),
        (TimeUnit::Week, _) => week_number(to, week_start) - week_number(from, week_start),
        (unit, _) => {
            let length = unit.milliseconds().unwrap_or(1);
            // The borders are those of local time, but an hour that clocks repeat counts twice.
            let drift = (zone.offset_at(start) - zone.offset_at(end)) / length;
            to.div_euclid(length) - from.div_euclid(length) + drift
        }
    })
}

/// Weeks since some Monday, by their first day.
fn week_number(local: i64, week_start: i64) -> i64 {
    let day = local.div_euclid(DAY);
    let past = (iso_weekday(local) - week_start).rem_euclid(7);
    (day - past).div_euclid(7)
}

/// `date`, `unit`, `binSize`, `timezone`, `startOfWeek`.
pub(in crate::expression) fn date_trunc<'a>(
    operands: &[Option<Operand<'a>>],
    _: &Environment<'_>,
) -> Result<Operand<'a>> {
    const NAME: &str = "$dateTrunc";
    let [Some(date), Some(unit), bin_size, zone, week_start] = operands else { return Ok(Operand::NULL) };
    if date.is_nullish() {
        return Ok(Operand::NULL);
    }
    let bin_size = match bin_size {
        None => 1,
        Some(size) if size.is_nullish() => return Ok(Operand::NULL),
        Some(size) => parse_bin_size(size)?,
    };
    let Some(unit) = TimeUnit::of_operand(unit, NAME)? else { return Ok(Operand::NULL) };
    let week_start = match unit {
        TimeUnit::Week => start_of_week(week_start.as_ref(), NAME)?,
        _ => Some(7),
    };
    let Some(week_start) = week_start else { return Ok(Operand::NULL) };
    let zone = Zone::of_operand(zone.as_ref())
        .map_err(|error| error.context(format!("{NAME} parameter 'timezone' value parsing failed")))?;
    let Some(zone) = zone else { return Ok(Operand::NULL) };
    let date = coerce_to_date(date.or_null()).map_err(|_| {
        Error::location(5439012, format!("{NAME} requires 'date' to be a date, but got {}", date.type_name()))
    })?;
    truncate(date, unit, bin_size, &zone, week_start).map(|cut| Operand::Owned(OwnedValue::DateTime(cut)))
}

pub(super) fn parse_bin_size(size: &Operand<'_>) -> Result<i64> {
    let Some(whole) = size.as_number().and_then(Number::to_i64_exact) else {
        let reason = format!(
            "$dateTrunc requires 'binSize' to be a 64-bit integer, but got value '{}' of type {}",
            size.or_null(),
            size.type_name()
        );
        return Err(Error::location(5439017, reason));
    };
    if whole <= 0 {
        let reason = format!("$dateTrunc requires 'binSize' to be greater than 0, but got value {whole}");
        return Err(Error::location(5439018, reason));
    }
    Ok(whole)
}

/// Bins are counted from the beginning of 2000, for weeks from the first one that begins in 2000.
fn truncate(date: i64, unit: TimeUnit, bin_size: i64, zone: &Zone, week_start: i64) -> Result<i64> {
    const YEAR_2000: i64 = 946_684_800_000;
    let overflow = |code| Error::location(code, "dateTrunc overflowed");
    let mut reference = YEAR_2000 - zone.offset_at(YEAR_2000);
    if matches!(unit, TimeUnit::Hour | TimeUnit::Minute | TimeUnit::Second | TimeUnit::Millisecond) {
        let length = bin_size.checked_mul(unit.milliseconds().unwrap_or(1)).ok_or_else(|| overflow(5439002))?;
        let distance = date.checked_sub(reference).ok_or_else(|| overflow(5439000))?;
        return date.checked_sub(distance.rem_euclid(length)).ok_or_else(|| overflow(5439001));
    }
    if bin_size > 100_000_000_000 {
        return Err(Error::location(5439006, "dateTrunc unsupported binSize value"));
    }
    if unit == TimeUnit::Week {
        // The first of January 2000 was a Saturday.
        reference += (week_start - 6).rem_euclid(7) * DAY;
    }
    let distance = difference(reference, date, unit, zone, week_start)?;
    let lower = distance.checked_sub(distance.rem_euclid(bin_size)).ok_or_else(|| overflow(5439004))?;
    add(reference, unit, lower, zone)
}
