//! Reading dates that are written in one of the usual forms, without being told which: ISO 8601 in its variants, American and
//! European dates, names of months, times with am and pm, zones by offset or abbreviation.
//!
//! The text is read from left to right; at each place the longest form that fits is taken. Relative texts ("next Friday") are
//! not read: without a year they would be incomplete anyway.

use super::calendar::MONTHS;
use super::from_string::{Fields, TextZone, Wrong};
use super::read_format::Reader;

const UNEXPECTED: &str = "Unexpected character";

pub(super) fn read(text: &[u8]) -> Result<Fields, Wrong> {
    let mut reader = Reader { text, place: 0 };
    let mut fields = Fields::default();
    loop {
        while reader.peek().is_some_and(|byte| matches!(byte, b' ' | b'\t' | b',' | b'\n')) {
            reader.place += 1;
        }
        let Some(next) = reader.peek() else { break };
        let is_read = match next {
            b'0'..=b'9' => time(&mut reader, &mut fields)? || date(&mut reader, &mut fields)?,
            b'@' => unix_time(&mut reader, &mut fields),
            b'T' | b't' if reader.text.get(reader.place + 1).is_some_and(u8::is_ascii_digit) => {
                reader.place += 1;
                time(&mut reader, &mut fields)? || packed_time(&mut reader, &mut fields)
            }
            b'+' | b'-' | b'(' => set_zone(&mut reader, &mut fields)?,
            byte if byte.is_ascii_alphabetic() => word(&mut reader, &mut fields)?,
            _ => false,
        };
        if !is_read {
            return Err(reader.wrong(UNEXPECTED));
        }
    }
    if fields == Fields::default() {
        return Err(Wrong { place: 0, why: "Empty string" });
    }
    Ok(fields)
}

/// A month by its name or the beginning of it.
pub(super) fn month_of(word: &[u8]) -> Option<i64> {
    let is_name = |name: &str| {
        let name = name.as_bytes();
        word.eq_ignore_ascii_case(name) || name.get(..3).is_some_and(|short| word.eq_ignore_ascii_case(short))
    };
    if word.eq_ignore_ascii_case(b"sept") {
        return Some(9);
    }
    MONTHS.iter().position(|name| is_name(name)).map(|place| place as i64 + 1)
}

fn is_weekday(word: &[u8]) -> bool {
    const DAYS: [&str; 7] = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
    DAYS.iter().any(|day| {
        let day = day.as_bytes();
        word.eq_ignore_ascii_case(day) || day.get(..3).is_some_and(|short| word.eq_ignore_ascii_case(short))
    })
}

fn set_time(reader: &Reader<'_>, fields: &mut Fields, hour: i64, minute: i64, second: i64) -> Result<(), Wrong> {
    if fields.hour.is_some() {
        return Err(reader.wrong("Double time specification"));
    }
    (fields.hour, fields.minute, fields.second) = (Some(hour), Some(minute), Some(second));
    Ok(())
}

fn set_date(reader: &Reader<'_>, fields: &mut Fields, year: Option<i64>, month: i64, day: i64) -> Result<(), Wrong> {
    if fields.day.is_some() {
        return Err(reader.wrong("Double date specification"));
    }
    (fields.month, fields.day) = (Some(month), Some(day));
    fields.year = year.or(fields.year);
    Ok(())
}

/// `hh:mm`, `hh:mm:ss`, `hh:mm.ss`, each with a fraction, `h am`; nothing is read if it is none of these.
fn time(reader: &mut Reader<'_>, fields: &mut Fields) -> Result<bool, Wrong> {
    let mut ahead = *reader;
    let Some((hour, _)) = ahead.digits(2) else { return Ok(false) };
    let (mut minute, mut second, mut millisecond) = (0, 0, 0);
    let has_minute = ahead.take(b':');
    if has_minute {
        let Some((minutes, _)) = ahead.digits(2) else { return Ok(false) };
        minute = minutes;
        if matches!(ahead.peek(), Some(b':' | b'.')) {
            ahead.place += 1;
            let Some((seconds, _)) = ahead.digits(2) else { return Ok(false) };
            second = seconds;
            if matches!(ahead.peek(), Some(b'.' | b',' | b':')) {
                ahead.place += 1;
                let Some((fraction, count)) = ahead.digits(9) else { return Ok(false) };
                millisecond = fraction * 10_i64.pow(9 - count as u32) / 1_000_000;
            }
        }
    }
    let mut behind = ahead;
    behind.skip_spaces();
    let meridian = half_of_day(&mut behind);
    let hour = match meridian {
        Some(_) if !(1..=12).contains(&hour) => return Ok(false),
        Some(is_after_noon) => {
            ahead = behind;
            hour % 12 + if is_after_noon { 12 } else { 0 }
        }
        None if has_minute => hour,
        None => return Ok(false),
    };
    if ahead.peek().is_some_and(|byte| byte.is_ascii_digit()) || hour > 24 || minute > 59 || second > 60 {
        return Ok(false);
    }
    set_time(reader, fields, hour, minute, second)?;
    fields.millisecond = millisecond;
    *reader = ahead;
    Ok(true)
}

/// `hhmmss` and `hhmm` behind a `T`.
fn packed_time(reader: &mut Reader<'_>, fields: &mut Fields) -> bool {
    let mut ahead = *reader;
    let Some((number, count)) = ahead.digits(6) else { return false };
    let (hour, minute, second) = match count {
        6 => (number / 10_000, number / 100 % 100, number % 100),
        4 => (number / 100, number % 100, 0),
        2 => (number, 0, 0),
        _ => return false,
    };
    if fields.hour.is_some() || hour > 23 || minute > 59 || second > 59 {
        return false;
    }
    (fields.hour, fields.minute, fields.second) = (Some(hour), Some(minute), Some(second));
    *reader = ahead;
    true
}

/// True for the half after noon.
fn half_of_day(reader: &mut Reader<'_>) -> Option<bool> {
    let mut ahead = *reader;
    let word: Vec<u8> = ahead.word().to_ascii_lowercase();
    let is_after_noon = match &word[..] {
        b"am" => false,
        b"pm" => true,
        b"a" | b"p" if ahead.take(b'.') => {
            let letter = ahead.peek()?.to_ascii_lowercase();
            if letter != b'm' {
                return None;
            }
            ahead.place += 1;
            word == b"p"
        }
        _ => return None,
    };
    ahead.take(b'.');
    *reader = ahead;
    Some(is_after_noon)
}

/// The full year of two digits.
fn full_year(number: i64, count: usize) -> i64 {
    match (count, number) {
        (1 | 2, 0..70) => number + 2000,
        (1 | 2, _) => number + 1900,
        _ => number,
    }
}

fn date(reader: &mut Reader<'_>, fields: &mut Fields) -> Result<bool, Wrong> {
    let mut ahead = *reader;
    let Some((first, count)) = ahead.digits(8) else { return Ok(false) };
    let read = match (count, ahead.peek()) {
        (8, _) => Some((Some(first / 10_000), first / 100 % 100, first % 100)),
        (7, _) => {
            (fields.year, fields.day_of_year) = (Some(first / 1000), Some(first % 1000 - 1));
            *reader = ahead;
            return Ok(true);
        }
        (4, Some(b'-' | b'/' | b'.')) => return year_first(reader, ahead, first, fields),
        (4, Some(b'W')) => return iso_week(reader, ahead, first, fields),
        (4, _) if fields.year.is_none() && fields.month.is_some() => {
            fields.year = Some(first);
            *reader = ahead;
            return Ok(true);
        }
        (1 | 2, Some(b'/')) => month_first(&mut ahead, first),
        (1 | 2, Some(b'-' | b'.')) if is_digit_behind(&ahead) => day_first(&mut ahead, first),
        (1 | 2, _) => day_and_name(&mut ahead, first),
        _ => None,
    };
    let Some((year, month, day)) = read else { return Ok(false) };
    set_date(reader, fields, year, month, day)?;
    *reader = ahead;
    Ok(true)
}

fn is_digit_behind(reader: &Reader<'_>) -> bool {
    reader.text.get(reader.place + 1).is_some_and(u8::is_ascii_digit)
}

/// `yyyy-mm-dd`, `yyyy/mm/dd`, `yyyy-Mon-dd`, `yyyy-mm`, `yyyy-Www-d`, `yyyy-ddd`.
fn year_first(reader: &mut Reader<'_>, mut ahead: Reader<'_>, year: i64, fields: &mut Fields) -> Result<bool, Wrong> {
    let Some(mark) = ahead.peek() else { return Ok(false) };
    ahead.place += 1;
    if ahead.peek() == Some(b'W') {
        let place = ahead.place;
        let ahead = Reader { text: reader.text, place };
        return iso_week(reader, ahead, year, fields);
    }
    let month = match ahead.digits(3) {
        Some((day, 3)) if mark != b'/' => {
            (fields.year, fields.day_of_year) = (Some(year), Some(day - 1));
            reader.place = ahead.place;
            return Ok(true);
        }
        Some((month, 1 | 2)) => month,
        Some(_) => return Ok(false),
        None => match month_of(ahead.word()) {
            Some(month) => month,
            None => return Ok(false),
        },
    };
    let day = if ahead.take(mark) { ahead.digits(2).map(|(day, _)| day) } else { Some(1) };
    let Some(day) = day else { return Ok(false) };
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return Ok(false);
    }
    set_date(reader, fields, Some(year), month, day)?;
    reader.place = ahead.place;
    Ok(true)
}

fn iso_week(reader: &mut Reader<'_>, mut ahead: Reader<'_>, year: i64, fields: &mut Fields) -> Result<bool, Wrong> {
    ahead.place += 1;
    let Some((week, 2)) = ahead.digits(2) else { return Ok(false) };
    ahead.take(b'-');
    let day = ahead.digits(1).map(|(day, _)| day);
    (fields.iso_year, fields.iso_week, fields.iso_day) = (Some(year), Some(week), day);
    reader.place = ahead.place;
    Ok(true)
}

/// `m/d`, `m/d/y`, `m/d/yyyy`.
fn month_first(ahead: &mut Reader<'_>, month: i64) -> Option<(Option<i64>, i64, i64)> {
    ahead.take(b'/');
    let Some((day, 1 | 2)) = ahead.digits(2) else {
        let month_named = month_of(ahead.word())?;
        let year = ahead.take(b'/').then(|| ahead.digits(4)).flatten();
        return Some((year.map(|(year, count)| full_year(year, count)), month_named, month));
    };
    let year = if ahead.take(b'/') { Some(ahead.digits(4)?) } else { None };
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    Some((year.map(|(year, count)| full_year(year, count)), month, day))
}

/// `d-m-yyyy`, `d.m.yyyy`, `d.m.yy`.
fn day_first(ahead: &mut Reader<'_>, day: i64) -> Option<(Option<i64>, i64, i64)> {
    let mark = ahead.peek()?;
    ahead.place += 1;
    let (month, _) = ahead.digits(2)?;
    if !ahead.take(mark) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (year, count) = ahead.digits(4)?;
    (count == 4 || (mark == b'.' && count == 2)).then(|| (Some(full_year(year, count)), month, day))
}

/// `4 July 2017`, `4th-Jul-2017`, `4 Jul`.
fn day_and_name(ahead: &mut Reader<'_>, day: i64) -> Option<(Option<i64>, i64, i64)> {
    skip_ordinal(ahead);
    skip_marks(ahead);
    let month = month_of(ahead.word())?;
    Some((year_behind(ahead), month, day)).filter(|_| (1..=31).contains(&day))
}

fn skip_ordinal(reader: &mut Reader<'_>) {
    let mut ahead = *reader;
    let word = ahead.word().to_ascii_lowercase();
    if [&b"st"[..], b"nd", b"rd", b"th"].contains(&&word[..]) {
        *reader = ahead;
    }
}

fn skip_marks(reader: &mut Reader<'_>) {
    while reader.peek().is_some_and(|byte| matches!(byte, b' ' | b'\t' | b',' | b'-' | b'.')) {
        reader.place += 1;
    }
}

/// A year of four digits behind a date, if it is no time.
fn year_behind(reader: &mut Reader<'_>) -> Option<i64> {
    let mut ahead = *reader;
    skip_marks(&mut ahead);
    let (year, count) = ahead.digits(5)?;
    let is_year = count == 4 && ahead.peek() != Some(b':');
    if is_year {
        *reader = ahead;
    }
    is_year.then_some(year)
}

fn unix_time(reader: &mut Reader<'_>, fields: &mut Fields) -> bool {
    let mut ahead = Reader { text: reader.text, place: reader.place + 1 };
    let sign = if ahead.take(b'-') { -1 } else { 1 };
    let Some((seconds, _)) = ahead.digits(12) else { return false };
    let parts = pando_doc::DateParts::from_milliseconds(sign * seconds * 1000);
    *fields = Fields {
        year: Some(parts.year),
        month: Some(parts.month.into()),
        day: Some(parts.day.into()),
        hour: Some(parts.hour.into()),
        minute: Some(parts.minute.into()),
        second: Some(parts.second.into()),
        zone: Some(TextZone { offset: 0, name: None }),
        ..Fields::default()
    };
    reader.place = ahead.place;
    true
}

/// A name: of a month with its day, of a day of the week, of a time of day, or a zone.
fn word(reader: &mut Reader<'_>, fields: &mut Fields) -> Result<bool, Wrong> {
    let mut ahead = *reader;
    let name = ahead.word();
    if let Some(month) = month_of(name) {
        skip_marks(&mut ahead);
        let before_day = ahead;
        let (year, day) = match ahead.digits(4) {
            Some((year, 4)) => (Some(year), 1),
            Some((day, 1 | 2)) if ahead.peek() != Some(b':') => {
                skip_ordinal(&mut ahead);
                (year_behind(&mut ahead), day)
            }
            _ => {
                ahead = before_day;
                (None, 1)
            }
        };
        set_date(reader, fields, year, month, day)?;
        *reader = ahead;
        return Ok(true);
    }
    let lower = name.to_ascii_lowercase();
    match &lower[..] {
        b"noon" => set_time(reader, fields, 12, 0, 0)?,
        b"midnight" => set_time(reader, fields, 0, 0, 0)?,
        _ if is_weekday(name) => {
            ahead.take(b'.');
        }
        _ => return set_zone(reader, fields),
    }
    *reader = ahead;
    Ok(true)
}

fn set_zone(reader: &mut Reader<'_>, fields: &mut Fields) -> Result<bool, Wrong> {
    if fields.zone.is_some() {
        return Err(reader.wrong("Double timezone specification"));
    }
    let place = reader.place;
    match zone(reader) {
        Some(found) => fields.zone = Some(found),
        None if reader.rest().contains(&b'/') => {
            let why = "passing a time zone identifier as part of the string is not allowed";
            return Err(Wrong { place, why });
        }
        None => return Err(Wrong { place, why: "The timezone could not be found in the database" }),
    }
    Ok(true)
}

/// `Z`, `+hh`, `+hhmm`, `+hh:mm`, `GMT+hh`, or an abbreviation; spaces before it are passed over.
pub(super) fn zone(reader: &mut Reader<'_>) -> Option<TextZone> {
    let mut ahead = *reader;
    ahead.skip_spaces();
    let is_in_brackets = ahead.take(b'(');
    let before_name = ahead;
    let name = ahead.word().to_ascii_lowercase();
    let is_prefix = matches!(&name[..], b"gmt" | b"utc") && matches!(ahead.peek(), Some(b'+' | b'-'));
    let found = if name.is_empty() || is_prefix {
        TextZone { offset: offset(&mut ahead)?, name: None }
    } else if ahead.peek() == Some(b'/') {
        return None;
    } else {
        let offset = abbreviated(&name)?;
        let shown = before_name.text.get(before_name.place..ahead.place).unwrap_or_default();
        TextZone { offset, name: Some(String::from_utf8_lossy(shown).to_uppercase()) }
    };
    if is_in_brackets && !ahead.take(b')') {
        return None;
    }
    *reader = ahead;
    Some(found)
}

fn offset(reader: &mut Reader<'_>) -> Option<i64> {
    let sign = if reader.take(b'-') {
        -1
    } else if reader.take(b'+') {
        1
    } else {
        return None;
    };
    let (number, count) = reader.digits(4)?;
    let (hours, minutes) = match count {
        1 | 2 if reader.take(b':') => (number, reader.digits(2)?.0),
        1 | 2 => (number, 0),
        _ => (number / 100, number % 100),
    };
    Some(sign * (hours * 60 + minutes) * 60_000)
}

/// The offset of an abbreviation in lower case, or of a letter as soldiers and sailors use it.
fn abbreviated(name: &[u8]) -> Option<i64> {
    const HOUR: i64 = 3_600_000;
    if let [letter] = name {
        return match letter {
            b'a'..=b'i' => Some(i64::from(letter - b'a' + 1) * HOUR),
            b'k'..=b'm' => Some(i64::from(letter - b'k' + 10) * HOUR),
            b'n'..=b'y' => Some(-i64::from(letter - b'n' + 1) * HOUR),
            b'z' => Some(0),
            _ => None,
        };
    }
    let half_hours = match name {
        b"utc" | b"gmt" | b"wet" | b"zulu" => 0,
        b"cet" | b"bst" | b"west" | b"met" => 2,
        b"cest" | b"eet" | b"mest" | b"sast" => 4,
        b"eest" | b"msk" => 6,
        b"msd" => 8,
        b"ist" => 11,
        b"jst" | b"kst" => 18,
        b"acst" => 19,
        b"aest" => 20,
        b"acdt" => 21,
        b"aedt" => 22,
        b"nzst" => 24,
        b"nzdt" => 26,
        b"ndt" => -5,
        b"nst" => -7,
        b"adt" => -6,
        b"ast" | b"edt" => -8,
        b"est" | b"cdt" => -10,
        b"cst" | b"mdt" => -12,
        b"mst" | b"pdt" => -14,
        b"pst" | b"akdt" => -16,
        b"akst" => -18,
        b"hst" => -20,
        b"sst" => -22,
        _ => return None,
    };
    Some(half_hours * HOUR / 2)
}
