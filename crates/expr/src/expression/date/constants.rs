//! What operators on dates know before there is a document: units, zones, days and sizes that are
//! constant.

use super::arithmetic::parse_bin_size;
use super::unit::{TimeUnit, start_of_week};
use super::zone::Zone;
use crate::expression::Operand;
use pando_base::{Error, Result};

/// Refuses what is wrong about the constants among the named operands. True if one of them is null,
/// and the result with it.
pub(in crate::expression) fn check_constants<'n>(
    operator: &str,
    given: &dyn Fn(&str) -> Option<Operand<'n>>,
) -> Result<bool> {
    let has_week = matches!(operator, "$dateTrunc" | "$dateDiff");
    if (has_week || matches!(operator, "$dateAdd" | "$dateSubtract"))
        && let Some(unit) = given("unit")
        && TimeUnit::of_operand(&unit, operator)?.is_none()
    {
        return Ok(true);
    }
    if has_week
        && let Some(day) = given("startOfWeek")
        && start_of_week(Some(&day), operator)?.is_none()
    {
        return Ok(true);
    }
    if let Some(zone) = given("timezone") {
        let named = |error: Error| match has_week {
            true => error.context(format!("{operator} parameter 'timezone' value parsing failed")),
            false => error,
        };
        let is_null = Zone::of_operand(Some(&zone)).map_err(named)?.is_none();
        // The others have something to say of a date that is null.
        let ends = has_week || matches!(operator, "$dateAdd" | "$dateSubtract" | "$dateToParts" | "$dateFromParts");
        if is_null && ends {
            return Ok(true);
        }
    }
    match given("binSize") {
        Some(size) if operator == "$dateTrunc" && size.is_nullish() => Ok(true),
        Some(size) if operator == "$dateTrunc" => parse_bin_size(&size).map(|_| false),
        _ => Ok(false),
    }
}
