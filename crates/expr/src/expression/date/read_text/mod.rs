//! Reading dates that are written in one of the usual forms, without being told which: ISO 8601 in
//! its variants, American and European dates, names of months, times with am and pm, zones by
//! offset or abbreviation, and words that move a date.
//!
//! It works as timelib's scanner does, so that texts are misread in the same way: at each place the
//! form that reaches furthest is taken (`forms`), and what it tells is kept. Telling a date, a time
//! or a zone twice is refused. The text ends in a zero byte, which forms see.

mod forms;
mod pattern;
mod relative;
mod words;
mod zone;

pub(super) use relative::Relative;
pub(super) use words::month_of;
pub(super) use zone::zone;

use super::calendar::{days_in_month, first_of_month, weekday};
use super::from_string::{Fields, TextZone, Wrong};
use super::read_format::Reader;
use super::zone::DAY;
use forms::{Form, form_at};
use pando_base::operation;
use relative::Special;

const OUT_OF_RANGE: &str = "Number out of range";

pub(super) fn read(text: &[u8]) -> Result<Fields, Wrong> {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\x0b' | b'\x0c' | b'\r');
    let start = text.iter().take_while(|byte| is_space(byte)).count();
    let end = text.len() - text.iter().rev().take_while(|byte| is_space(byte)).count();
    if text.is_empty() {
        return Err(Wrong { place: 0, why: "Empty string" });
    }
    let mut padded = text.get(..end.max(start)).unwrap_or_default().to_vec();
    padded.push(0);
    let mut reading = Reading::default();
    let mut place = start;
    while place + 1 < padded.len() {
        operation::count(1);
        let wrong = |why| Wrong { place, why };
        let Some((form, end)) = form_at(&padded, place) else { return Err(wrong("Unexpected character")) };
        let token = Token::new(padded.get(place..end).unwrap_or_default());
        reading.take(form, token).map_err(wrong)?;
        place = end;
    }
    reading.finish(end)
}

/// The text of a form, which ends at its first zero byte, and how far it is read.
#[derive(Clone, Copy)]
struct Token<'t> {
    reader: Reader<'t>,
}

impl<'t> Token<'t> {
    fn new(text: &'t [u8]) -> Token<'t> {
        let end = text.iter().position(|byte| *byte == 0).unwrap_or(text.len());
        Token { reader: Reader { text: text.get(..end).unwrap_or_default(), place: 0 } }
    }

    /// The next number of so many digits at most; what stands before it is passed over.
    fn number(&mut self, most: usize) -> Option<(i64, usize)> {
        while self.reader.peek().is_some_and(|byte| !byte.is_ascii_digit()) {
            self.reader.place += 1;
        }
        self.reader.digits(most)
    }

    fn digits(&mut self, most: usize) -> Option<i64> {
        self.number(most).map(|(number, _)| number)
    }

    /// The next number with the sign right before it.
    fn signed(&mut self, most: usize) -> Option<i64> {
        while self.reader.peek().is_some_and(|byte| !byte.is_ascii_digit() && byte != b'+' && byte != b'-') {
            self.reader.place += 1;
        }
        let is_negative = self.reader.peek() == Some(b'-');
        let number = self.digits(most)?;
        Some(if is_negative { -number } else { number })
    }

    /// A year: of fewer than four digits it is one near 2000.
    fn year(&mut self, most: usize) -> Option<i64> {
        let (year, count) = self.number(most)?;
        Some(match year {
            _ if count >= 4 => year,
            0..70 => year + 2000,
            70..100 => year + 1900,
            _ => year,
        })
    }

    fn month(&mut self) -> Option<i64> {
        while self.reader.peek().is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'-' | b'.' | b'/')) {
            self.reader.place += 1;
        }
        words::month(self.reader.word())
    }

    /// The letters behind a day, as in 4th.
    fn skip_suffix(&mut self) {
        let mut ahead = self.reader;
        let word = ahead.word().to_ascii_lowercase();
        if [&b"st"[..], b"nd", b"rd", b"th"].contains(&&word[..]) {
            self.reader = ahead;
        }
    }

    fn is_at(&self, marks: &[u8]) -> bool {
        self.reader.peek().is_some_and(|byte| marks.contains(&byte))
    }

    /// The fraction of a second that stands here, in milliseconds; a mark comes before it.
    fn fraction(&mut self) -> i64 {
        self.reader.place += 1;
        let digits = self.reader.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        let fraction = (0..3).fold(0, |sum, place| {
            let digit = if place < digits { self.reader.rest().get(place).map_or(0, |byte| byte - b'0') } else { 0 };
            sum * 10 + i64::from(digit)
        });
        self.reader.place += digits;
        fraction
    }

    /// Twelve hours more if it says so; `hour` is told as on a clock of twelve.
    fn hour_of_day(&mut self, hour: i64) -> i64 {
        while self.reader.peek().is_some_and(|byte| !matches!(byte, b'A' | b'a' | b'P' | b'p')) {
            self.reader.place += 1;
        }
        match (self.reader.peek().map(|byte| byte.to_ascii_lowercase()), hour) {
            (Some(b'a'), 12) => 0,
            (Some(b'p'), 12) | (Some(b'a') | None, _) => hour,
            _ => hour + 12,
        }
    }

    fn word(&mut self) -> &'t [u8] {
        while self.reader.peek().is_some_and(|byte| !byte.is_ascii_alphabetic()) {
            self.reader.place += 1;
        }
        self.reader.word()
    }
}

/// What was read so far.
#[derive(Default)]
struct Reading {
    fields: Fields,
    times: u8,
    has_date: bool,
}

type Taken = Result<(), &'static str>;

impl Reading {
    fn finish(self, end: usize) -> Result<Fields, Wrong> {
        let fields = self.fields;
        if self.has_date {
            let year = fields.year.unwrap_or(1970);
            let is_valid = fields.month.zip(fields.day).is_some_and(|(month, day)| {
                let most = if (1..=12).contains(&month) { days_in_month(year, month) } else { None };
                most.is_none_or(|most| (1..=most).contains(&day)) && (1..=12).contains(&month)
            });
            if !is_valid {
                return Err(Wrong { place: end, why: "The parsed date was invalid" });
            }
        }
        Ok(fields)
    }

    fn begin_time(&mut self) -> Taken {
        if self.times > 0 {
            return Err("Double time specification");
        }
        self.times = 1;
        self.set_time(0, 0, 0);
        Ok(())
    }

    fn set_time(&mut self, hour: i64, minute: i64, second: i64) {
        let fields = &mut self.fields;
        (fields.hour, fields.minute, fields.second) = (Some(hour), Some(minute), Some(second));
        fields.millisecond = 0;
    }

    /// Midnight, and a time may still be told.
    fn forget_time(&mut self) {
        self.times = 0;
        self.set_time(0, 0, 0);
    }

    fn begin_date(&mut self) -> Taken {
        if self.has_date {
            return Err("Double date specification");
        }
        self.has_date = true;
        Ok(())
    }

    fn set_date(&mut self, year: Option<i64>, month: Option<i64>, day: Option<i64>) {
        self.fields.year = year;
        self.fields.month = month;
        self.fields.day = day;
    }

    fn begin_zone(&self) -> Taken {
        if self.fields.zone.is_some() { Err("Double timezone specification") } else { Ok(()) }
    }

    fn zone(&mut self, token: &mut Token<'_>) -> Taken {
        let found = zone(&mut token.reader);
        let why = "passing a time zone identifier as part of the string is not allowed";
        self.fields.zone = Some(found.ok_or(why)?);
        Ok(())
    }

    /// `h:m:s.f` as far as it is there, then perhaps a zone.
    fn clock(&mut self, token: &mut Token<'_>) -> Taken {
        let hour = token.digits(2).unwrap_or(0);
        let mut minute_second = [0, 0];
        for part in &mut minute_second {
            if !token.is_at(b":.") {
                break;
            }
            *part = token.digits(2).unwrap_or(0);
        }
        let [minute, second] = minute_second;
        self.set_time(hour, minute, second);
        if token.is_at(b".:") {
            self.fields.millisecond = token.fraction();
        }
        if token.reader.peek().is_some() { self.zone(token) } else { Ok(()) }
    }

    /// The same on a clock of twelve hours.
    fn clock12(&mut self, token: &mut Token<'_>) {
        let hour = token.digits(2).unwrap_or(0);
        let minute = if token.is_at(b":.") { token.digits(2).unwrap_or(0) } else { 0 };
        let second = if token.is_at(b":.") { token.digits(2).unwrap_or(0) } else { 0 };
        let fraction = if token.is_at(b":.") { token.fraction() } else { 0 };
        let hour = token.hour_of_day(hour);
        self.set_time(hour, minute, second);
        self.fields.millisecond = fraction;
    }

    fn take(&mut self, form: Form, token: Token<'_>) -> Taken {
        let mut token = token;
        match form {
            Form::Between | Form::Now => Ok(()),
            Form::Yesterday | Form::Tomorrow | Form::Midnight | Form::Noon => self.day_word(form),
            Form::Time12
            | Form::Time12WithFraction
            | Form::Time24
            | Form::PackedHourMinute
            | Form::PackedTime
            | Form::BackOrFront => self.time(form, &mut token),
            Form::UnixTime | Form::UnixTimeWithFraction => self.unix_time(&mut token),
            Form::DateAndTime | Form::LogTime | Form::NameDayTime | Form::NameDayTime12 => {
                self.date_and_time(form, &mut token)
            }
            Form::Year => {
                self.fields.year = token.digits(4);
                Ok(())
            }
            Form::Zone => {
                self.begin_zone()?;
                self.zone(&mut token)
            }
            Form::FirstOrLastDay
            | Form::WeekdayOfMonth
            | Form::Ago
            | Form::Weekday
            | Form::RelativeWeek
            | Form::RelativeWord
            | Form::Relative => self.relative(form, &mut token),
            _ => self.date(form, &mut token),
        }
    }

    fn day_word(&mut self, form: Form) -> Taken {
        self.forget_time();
        let moved = match form {
            Form::Yesterday => self.fields.relative.add_days(-1),
            Form::Tomorrow => self.fields.relative.add_days(1),
            Form::Noon => {
                self.times = 1;
                self.set_time(12, 0, 0);
                Some(())
            }
            _ => Some(()),
        };
        moved.ok_or(OUT_OF_RANGE)
    }

    fn time(&mut self, form: Form, token: &mut Token<'_>) -> Taken {
        match form {
            // The second of them is a year.
            Form::PackedHourMinute => {
                match self.times {
                    0 => {
                        let (hour, minute) = (token.digits(2).unwrap_or(0), token.digits(2).unwrap_or(0));
                        self.set_time(hour, minute, 0);
                    }
                    1 => self.fields.year = token.digits(4),
                    _ => return Err("Double time specification"),
                }
                self.times += 1;
                return Ok(());
            }
            Form::BackOrFront => {
                let is_back = token.reader.peek().is_some_and(|byte| byte.eq_ignore_ascii_case(&b'b'));
                self.forget_time();
                self.times = 1;
                let hour = token.digits(2).unwrap_or(0);
                let hour = if token.reader.peek().is_some() { token.hour_of_day(hour) } else { hour };
                match is_back {
                    true => self.set_time(hour, 15, 0),
                    false => self.set_time(hour - 1, 45, 0),
                }
                return Ok(());
            }
            _ => self.begin_time()?,
        }
        match form {
            Form::PackedTime => {
                let mut next = || token.digits(2).unwrap_or(0);
                let (hour, minute, second) = (next(), next(), next());
                self.set_time(hour, minute, second);
                Ok(())
            }
            Form::Time24 => self.clock(token),
            _ => {
                self.clock12(token);
                Ok(())
            }
        }
    }

    fn unix_time(&mut self, token: &mut Token<'_>) -> Taken {
        self.begin_zone()?;
        let is_negative = token.reader.text.get(1) == Some(&b'-');
        let seconds = token.signed(24).ok_or(OUT_OF_RANGE)?;
        let fraction = if token.is_at(b".") { token.fraction() } else { 0 };
        let milliseconds = seconds.checked_mul(1000).ok_or(OUT_OF_RANGE)?;
        let milliseconds = milliseconds + if is_negative { -fraction } else { fraction };
        self.has_date = false;
        self.forget_time();
        self.set_date(Some(1970), Some(1), Some(1));
        self.fields.zone = Some(TextZone { offset: 0, name: None });
        self.fields.relative.add_milliseconds(milliseconds).ok_or(OUT_OF_RANGE)
    }

    fn date_and_time(&mut self, form: Form, token: &mut Token<'_>) -> Taken {
        if matches!(form, Form::DateAndTime | Form::LogTime) {
            self.begin_time()?;
        }
        self.begin_date()?;
        match form {
            Form::DateAndTime => {
                let (year, month, day) = (token.digits(4), token.digits(2), token.digits(2));
                self.set_date(year, month, day);
            }
            Form::LogTime => {
                let (day, month) = (token.digits(2), token.month());
                self.set_date(token.digits(4), month, day);
            }
            _ => {
                let (month, day) = (token.month(), token.digits(2));
                (self.fields.month, self.fields.day) = (month, day);
                self.begin_time()?;
            }
        }
        match form {
            Form::NameDayTime12 => {
                self.clock12(token);
                Ok(())
            }
            Form::NameDayTime => self.clock(token),
            _ => {
                let mut next = || token.digits(2).unwrap_or(0);
                let (hour, minute, second) = (next(), next(), next());
                self.set_time(hour, minute, second);
                if token.is_at(b".") {
                    self.fields.millisecond = token.fraction();
                }
                token.reader.skip_spaces();
                if token.reader.peek().is_some() { self.zone(token) } else { Ok(()) }
            }
        }
    }

    fn date(&mut self, form: Form, token: &mut Token<'_>) -> Taken {
        self.begin_date()?;
        let before = self.fields.year;
        let (year, month, day) = match form {
            Form::MonthDayYear => {
                let (month, day) = (token.digits(2), token.digits(2));
                (if token.is_at(b"/") { token.year(4) } else { before }, month, day)
            }
            Form::YearMonthDay => (token.signed(4), token.digits(2), token.digits(2)),
            Form::LongYearMonthDay => (Some(token.signed(19).ok_or(OUT_OF_RANGE)?), token.digits(2), token.digits(2)),
            Form::ShortYearMonthDay | Form::AnyYearMonthDay => (token.year(4), token.digits(2), token.digits(2)),
            Form::YearMonth => (token.year(4), token.digits(2), Some(1)),
            Form::DayNameYear => {
                let day = token.digits(2);
                token.skip_suffix();
                let month = token.month();
                (token.year(4), month, day)
            }
            Form::DayMonthYear => {
                let (day, month) = (token.digits(2), token.digits(2));
                (token.digits(4), month, day)
            }
            Form::DayMonthShortYear => {
                let (day, month) = (token.digits(2), token.digits(2));
                (token.year(2), month, day)
            }
            Form::NameYear => {
                let month = token.month();
                (token.year(4), month, Some(1))
            }
            Form::YearName => (token.year(4), token.month(), Some(1)),
            Form::NameDayYear | Form::NameDayYearShort => {
                let (month, day) = (token.month(), token.digits(2));
                (token.year(4), month, day)
            }
            Form::DayName => {
                let day = token.digits(2);
                token.skip_suffix();
                (before, token.month(), day)
            }
            Form::YearNameDay => (token.year(4), token.month(), token.digits(2)),
            Form::PackedDate => (token.digits(4), token.digits(2), token.digits(2)),
            Form::DayOfYear => (token.year(4), Some(1), token.digits(3)),
            Form::IsoWeekDay | Form::IsoWeek => {
                let (year, week) = (token.digits(4).unwrap_or(0), token.digits(2).unwrap_or(1));
                let day = if form == Form::IsoWeek { 1 } else { token.digits(1).unwrap_or(1) };
                // The days from the first of January: weeks that begin on Friday to Sunday are the
                // first of their year.
                let first = weekday(first_of_month(year, 1).unwrap_or(0).saturating_mul(DAY));
                let first = if first > 4 { 7 - first } else { -first };
                let days = first + (week - 1) * 7 + day;
                self.fields.relative.set_days(days);
                (Some(year), Some(1), Some(1))
            }
            _ => (before, words::month(token.word()), self.fields.day),
        };
        self.set_date(year, month, day);
        Ok(())
    }

    fn relative(&mut self, form: Form, token: &mut Token<'_>) -> Taken {
        let is_last = token.reader.peek().is_some_and(|byte| byte.eq_ignore_ascii_case(&b'l'));
        match form {
            Form::FirstOrLastDay => {
                self.forget_time();
                let special = if is_last { Special::LastDay } else { Special::FirstDay };
                self.fields.relative.set_special(special);
            }
            Form::Ago => self.fields.relative.turn(),
            Form::Weekday => {
                self.forget_time();
                let day = words::weekday(token.word()).ok_or("A textual day could not be found")?;
                self.fields.relative.name_weekday(day);
            }
            Form::Relative => {
                let amount = token.signed(24).ok_or(OUT_OF_RANGE)?;
                let word = token.word();
                self.fields.relative.add(amount, word, 1).ok_or(OUT_OF_RANGE)?;
            }
            _ => {
                let which = token.word();
                let amount = words::count(which).unwrap_or(0);
                let behaviour = i64::from(which.eq_ignore_ascii_case(b"this"));
                let word = token.word();
                if form == Form::WeekdayOfMonth {
                    let special = if amount > 0 { Special::Weekday } else { Special::WeekdayBeforeNext };
                    self.fields.relative.set_special(special);
                }
                let behaviour = if form == Form::WeekdayOfMonth && amount > 0 { 1 } else { behaviour };
                // The time of day is that of the day which is named.
                if form != Form::RelativeWeek && words::weekday(word).is_some() {
                    self.forget_time();
                }
                self.fields.relative.add(amount, word, behaviour).ok_or(OUT_OF_RANGE)?;
                if form == Form::RelativeWeek {
                    self.fields.relative.mean_this_week();
                }
            }
        }
        Ok(())
    }
}
