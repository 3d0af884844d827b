//! Reading dates by a format, letter by letter, as timelib does for MongoDB.

use super::from_string::{Fields, Wrong};
use super::read_text::{month_of, zone};

pub(super) const SPECIFIERS: &[u8] = b"bBdGHjLmMSuVYzZ";

/// A place in a text.
#[derive(Clone, Copy)]
pub(super) struct Reader<'t> {
    pub(super) text: &'t [u8],
    pub(super) place: usize,
}

impl<'t> Reader<'t> {
    pub(super) fn rest(&self) -> &'t [u8] {
        self.text.get(self.place..).unwrap_or_default()
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.get(self.place).copied()
    }

    /// Goes on if the next byte is this one.
    pub(super) fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.place += usize::from(is_next);
        is_next
    }

    pub(super) fn skip_spaces(&mut self) {
        while self.peek().is_some_and(|byte| byte == b' ' || byte == b'\t') {
            self.place += 1;
        }
    }

    /// The next digits, so many at most and at least one, with how many there were.
    pub(super) fn digits(&mut self, most: usize) -> Option<(i64, usize)> {
        let count = self.rest().iter().take(most).take_while(|byte| byte.is_ascii_digit()).count();
        let digits = self.rest().get(..count).filter(|digits| !digits.is_empty())?;
        let number = std::str::from_utf8(digits).ok()?.parse().ok()?;
        self.place += count;
        Some((number, count))
    }

    /// The next letters.
    pub(super) fn word(&mut self) -> &'t [u8] {
        let rest = self.rest();
        let count = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        self.place += count;
        rest.get(..count).unwrap_or_default()
    }

    pub(super) fn wrong(&self, why: &'static str) -> Wrong {
        Wrong { place: self.place, why }
    }
}

pub(super) fn read(text: &[u8], format: &[u8]) -> Result<Fields, Wrong> {
    let mut reader = Reader { text, place: 0 };
    let mut fields = Fields::default();
    let mut letters = format.iter();
    while let Some(letter) = letters.next() {
        // A text ends at its first zero byte.
        if reader.peek().is_none_or(|byte| byte == 0) {
            return Err(reader.wrong("Not enough data available to satisfy format"));
        }
        match (letter, letters.as_slice().first()) {
            (b'%', Some(b'%')) => {
                letters.next();
                literal(&mut reader, b'%')?;
            }
            (b'%', Some(letter)) => {
                letters.next();
                specified(&mut reader, *letter, &mut fields)?;
            }
            (literal_byte, _) => literal(&mut reader, *literal_byte)?,
        }
    }
    if reader.peek().is_some() {
        return Err(reader.wrong("Trailing data"));
    }
    Ok(fields)
}

fn literal(reader: &mut Reader<'_>, byte: u8) -> Result<(), Wrong> {
    if reader.take(byte) { Ok(()) } else { Err(reader.wrong("Format literal not found")) }
}

fn specified(reader: &mut Reader<'_>, letter: u8, fields: &mut Fields) -> Result<(), Wrong> {
    let start = *reader;
    let mut number = |most: usize, exactly: bool, why: &'static str| {
        let read = reader.digits(most).filter(|(_, count)| !exactly || *count == most);
        read.ok_or_else(|| start.wrong(why))
    };
    match letter {
        b'd' => fields.day = Some(number(2, false, "A two digit day could not be found")?.0),
        b'm' => fields.month = Some(number(2, false, "A two digit month could not be found")?.0),
        b'Y' => fields.year = Some(number(4, false, "A four digit year could not be found")?.0),
        b'H' => fields.hour = Some(number(2, false, "A two digit hour could not be found")?.0),
        b'M' => fields.minute = Some(number(2, true, "A two digit minute could not be found")?.0),
        b'S' => fields.second = Some(number(2, true, "A two digit second could not be found")?.0),
        b'L' => {
            let (fraction, count) = number(3, false, "A three digit millisecond could not be found")?;
            fields.millisecond = fraction * [1, 100, 10, 1].get(count).copied().unwrap_or(1);
        }
        b'j' => fields.day_of_year = Some(number(3, false, "A three digit day-of-year could not be found")?.0),
        b'G' => fields.iso_year = Some(number(4, false, "A four digit ISO year could not be found")?.0),
        b'V' => fields.iso_week = Some(number(2, false, "A two digit ISO week could not be found")?.0),
        b'u' => fields.iso_day = Some(number(1, false, "A single digit ISO day of week could not be found")?.0),
        b'b' | b'B' => {
            let month = month_of(reader.word());
            fields.month = Some(month.ok_or_else(|| start.wrong("A textual month could not be found"))?);
        }
        b'z' => {
            let found = zone(reader).ok_or_else(|| start.wrong("The timezone could not be found in the database"))?;
            fields.zone = Some(found);
        }
        b'Z' => {
            let why = "A valid timezone offset in minutes could not be found";
            let sign = if reader.take(b'-') { -1 } else { 1 };
            if sign == 1 {
                reader.take(b'+');
            }
            let (minutes, _) = reader.digits(5).ok_or_else(|| start.wrong(why))?;
            fields.zone = Some(super::from_string::TextZone { offset: sign * minutes * 60_000, name: None });
        }
        _ => return Err(start.wrong("Unexpected character")),
    }
    Ok(())
}
