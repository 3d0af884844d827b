//! Dates: their parts, texts and arithmetic, in any time zone.
//!
//! Inside, a moment is a number of milliseconds since 1970 in UTC, and a local time is the same for a calendar on the wall: what
//! `zone` makes of a moment. `calendar` looks at local times only.
//!
//! `parts`: `$year` to `$isoDayOfWeek`, `$dateToParts`, `$dateFromParts`. `arithmetic`: `$dateAdd`, `$dateSubtract`, `$dateDiff`,
//! `$dateTrunc`. `write_text`: `$dateToString`. `read_format` and `read_text`: `$dateFromString` with and without a format.

mod arithmetic;
mod calendar;
mod constants;
mod from_string;
mod parts;
mod read_format;
mod read_text;
mod unit;
mod write_text;
mod zone;

pub use arithmetic::{add_to_date, date_difference};
pub(super) use arithmetic::{date_add, date_diff, date_subtract, date_trunc};
pub(super) use calendar::MONTHS;
pub(super) use constants::check_constants;
pub(super) use from_string::{date_from_string, parse_date};
pub(super) use parts::{
    date_to_parts, day_of_month, day_of_week, hour, iso_day_of_week, iso_week_of_year, iso_week_year, millisecond,
    minute, month, number_in_year, parse_from_parts, parse_part, second, week_of_year, year,
};
pub use unit::TimeUnit;
pub(super) use write_text::{date_to_string, iso_text};
pub(super) use zone::Zone;
