//! Words that stand for numbers: months, days of the week, units, ordinals.

use crate::expression::date::calendar::MONTHS;
use crate::expression::date::unit::TimeUnit;

/// A month by its name, the beginning of it, or its number as the Romans wrote it.
pub(super) fn month(word: &[u8]) -> Option<i64> {
    const ROMAN: [&str; 12] = ["i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii"];
    month_of(word).or_else(|| {
        ROMAN.iter().position(|roman| word.eq_ignore_ascii_case(roman.as_bytes())).map(|place| place as i64 + 1)
    })
}

/// A month by its name or the beginning of it.
pub(in crate::expression::date) fn month_of(word: &[u8]) -> Option<i64> {
    let is_name = |name: &str| {
        let name = name.as_bytes();
        word.eq_ignore_ascii_case(name) || name.get(..3).is_some_and(|short| word.eq_ignore_ascii_case(short))
    };
    if word.eq_ignore_ascii_case(b"sept") {
        return Some(9);
    }
    MONTHS.iter().position(|name| is_name(name)).map(|place| place as i64 + 1)
}

/// A day of the week, Sunday is 0; also in the plural.
pub(super) fn weekday(word: &[u8]) -> Option<i64> {
    const DAYS: [&str; 7] = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
    let lower = word.to_ascii_lowercase();
    let is_day = |day: &str| {
        let day = day.as_bytes();
        lower == day || day.get(..3) == Some(&lower[..]) || lower.strip_suffix(b"s") == Some(day)
    };
    DAYS.iter().position(|day| is_day(day)).map(|place| place as i64)
}

/// How many of which unit a word stands for.
pub(super) fn unit(word: &[u8]) -> Option<(i64, TimeUnit)> {
    let lower = word.to_ascii_lowercase();
    let single = lower.strip_suffix(b"s").unwrap_or(&lower);
    Some(match (single, &lower[..]) {
        (_, b"ms") | (b"msec" | b"millisecond", _) => (1, TimeUnit::Millisecond),
        (b"sec" | b"second", _) => (1, TimeUnit::Second),
        (b"min" | b"minute", _) => (1, TimeUnit::Minute),
        (b"hour", _) => (1, TimeUnit::Hour),
        (b"day", _) => (1, TimeUnit::Day),
        (b"week", _) => (7, TimeUnit::Day),
        (b"fortnight" | b"forthnight", _) => (14, TimeUnit::Day),
        (b"month", _) => (1, TimeUnit::Month),
        (b"year", _) => (1, TimeUnit::Year),
        _ => return None,
    })
}

/// The number that an ordinal or a relative word stands for; `this` is 0.
pub(super) fn count(word: &[u8]) -> Option<i64> {
    Some(match &word.to_ascii_lowercase()[..] {
        b"last" | b"previous" => -1,
        b"this" => 0,
        b"first" | b"next" => 1,
        b"second" => 2,
        b"third" => 3,
        b"fourth" => 4,
        b"fifth" => 5,
        b"sixth" => 6,
        b"seventh" => 7,
        b"eight" | b"eighth" => 8,
        b"ninth" => 9,
        b"tenth" => 10,
        b"eleventh" => 11,
        b"twelfth" => 12,
        _ => return None,
    })
}
