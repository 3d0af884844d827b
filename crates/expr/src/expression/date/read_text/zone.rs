//! Zones that stand in a text: by their distance from UTC, or by an abbreviation.

use crate::expression::date::from_string::TextZone;
use crate::expression::date::read_format::Reader;

/// `Z`, `+hh`, `+hhmm`, `+hh:mm`, `GMT+hh`, or an abbreviation; spaces before it are passed over.
pub(in crate::expression::date) fn zone(reader: &mut Reader<'_>) -> Option<TextZone> {
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

/// `+h`, `+hh`, `+hhmm`, `+hhmmss`, `+hh:mm`, `+hh:mm:ss`.
fn offset(reader: &mut Reader<'_>) -> Option<i64> {
    let sign = if reader.take(b'-') {
        -1
    } else if reader.take(b'+') {
        1
    } else {
        return None;
    };
    let (number, count) = reader.digits(6)?;
    let mut part = || if reader.take(b':') { reader.digits(2).map(|(number, _)| number) } else { Some(0) };
    let (hours, minutes, seconds) = match count {
        1 | 2 => (number, part()?, part()?),
        3 | 4 => (number / 100, number % 100, 0),
        6 => (number / 10_000, number / 100 % 100, number % 100),
        _ => return None,
    };
    Some(sign * (hours * 3600 + minutes * 60 + seconds) * 1000)
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
