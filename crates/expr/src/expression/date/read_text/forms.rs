//! The forms in which dates and times are written.
//!
//! At each place of a text the form that reaches furthest is taken, of several the first of this
//! list.

use super::pattern::{Bytes, Pattern};
use std::collections::HashMap;
use std::sync::LazyLock;

/// A form, by what is read of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Yesterday,
    Now,
    Noon,
    Midnight,
    Tomorrow,
    UnixTime,
    UnixTimeWithFraction,
    FirstOrLastDay,
    BackOrFront,
    WeekdayOfMonth,
    Time12,
    Time12WithFraction,
    Time24,
    PackedHourMinute,
    PackedTime,
    MonthDayYear,
    YearMonthDay,
    ShortYearMonthDay,
    LongYearMonthDay,
    YearMonth,
    AnyYearMonthDay,
    DayNameYear,
    DayMonthYear,
    DayMonthShortYear,
    NameYear,
    YearName,
    NameDayYear,
    DayName,
    PackedDate,
    DateAndTime,
    DayOfYear,
    IsoWeekDay,
    IsoWeek,
    NameDayYearShort,
    YearNameDay,
    LogTime,
    Year,
    Ago,
    Weekday,
    RelativeWeek,
    RelativeWord,
    Month,
    Zone,
    NameDayTime12,
    NameDayTime,
    Relative,
    /// Nothing is read of it.
    Between,
}

/// What is named for the forms, in an order in which each uses only those before.
const NAMED: &[(&str, &str)] = &[
    ("space", "[ \t]+|(\u{a0})+|(\u{202f})+"),
    ("frac", "\\.[0-9]+"),
    ("hour24", "[01]?[0-9]|2[0-4]"),
    ("hour24lz", "[01][0-9]|2[0-4]"),
    ("hour12", "0?[1-9]|1[0-2]"),
    ("minute", "[0-5]?[0-9]"),
    ("minutelz", "[0-5][0-9]"),
    ("second", "{minute}|60"),
    ("secondlz", "{minutelz}|60"),
    ("meridian", "[AaPp]\\.?[Mm]\\.?[\\0\t ]"),
    ("letter", "[A-Za-z]"),
    ("tz", "\\(?{letter}{letter}?{letter}?{letter}?{letter}?{letter}?\\)?|[A-Z][a-z]+([_/-]{letter}+)+"),
    ("correction", "(GMT)?[+-]({hour24}(:?{minute})?|{hour24lz}{minutelz}{secondlz}|{hour24lz}:{minutelz}:{secondlz})"),
    ("month", "0?[0-9]|1[0-2]"),
    ("day", "([0-2]?[0-9]|3[01])(st|nd|rd|th)?"),
    ("year", "[0-9][0-9]?[0-9]?[0-9]?"),
    ("year2", "[0-9][0-9]"),
    ("year4", "[0-9][0-9][0-9][0-9]"),
    ("yearx", "[+-]{year4}[0-9][0-9]?[0-9]?[0-9]?[0-9]?[0-9]?[0-9]?[0-9]?[0-9]?[0-9]?[0-9]?[0-9]?[0-9]?[0-9]?[0-9]?"),
    ("dayofyear", "00[1-9]|0[1-9][0-9]|[1-2][0-9][0-9]|3[0-5][0-9]|36[0-6]"),
    ("weekofyear", "0[1-9]|[1-4][0-9]|5[0-3]"),
    ("monthlz", "0[0-9]|1[0-2]"),
    ("daylz", "0[0-9]|[1-2][0-9]|3[01]"),
    (
        "dayname",
        "<sunday>|<monday>|<tuesday>|<wednesday>|<thursday>|<friday>|<saturday>|<sun>|<mon>|<tue>|<wed>|<thu>|<fri>|<sat>",
    ),
    ("dayfulls", "<sundays>|<mondays>|<tuesdays>|<wednesdays>|<thursdays>|<fridays>|<saturdays>"),
    ("daytext", "{dayfulls}|{dayname}|<weekday>|<weekdays>"),
    (
        "monthfull",
        "<january>|<february>|<march>|<april>|<may>|<june>|<july>|<august>|<september>|<october>|<november>|<december>",
    ),
    ("monthabbr", "<jan>|<feb>|<mar>|<apr>|<may>|<jun>|<jul>|<aug>|<sep>|<sept>|<oct>|<nov>|<dec>"),
    ("monthtext", "{monthfull}|{monthabbr}|I|II|III|IV|V|VI|VII|VIII|IX|X|XI|XII"),
    ("time12", "{hour12}{space}?{meridian}|{hour12}[:.]{minutelz}{space}?{meridian}"),
    ("short12", "{hour12}[:.]{minutelz}{space}?{meridian}"),
    ("long12", "{hour12}[:.]{minute}[:.]{secondlz}{space}?{meridian}"),
    ("short24", "[Tt]?{hour24}[:.]{minute}"),
    ("long24", "[Tt]?{hour24}[:.]{minute}[:.]{second}"),
    ("zoned24", "[Tt]?{hour24}[:.]{minute}[:.]{secondlz}{space}?({correction}|{tz})"),
    ("datenoyear", "{monthtext}([ .\t-])*{day}([,.stndrh\t ]+|\\0)"),
    (
        "ordinal",
        "<first>|<second>|<third>|<fourth>|<fifth>|<sixth>|<seventh>|<eight>|<eighth>|<ninth>|<tenth>|<eleventh>|<twelfth>",
    ),
    ("which", "<next>|<last>|<previous>|<this>"),
    (
        "unit",
        "<ms>|(<msec>|<millisecond>|<microsecond>|<usec>|<sec>|<second>|<min>|<minute>|<hour>|<day>|<fortnight>|<forthnight>|<month>|<year>)[Ss]?|<weeks>|{daytext}",
    ),
];

const FORMS: &[(Form, &str)] = &[
    (Form::Yesterday, "<yesterday>"),
    (Form::Now, "<now>"),
    (Form::Noon, "<noon>"),
    (Form::Midnight, "<midnight>|<today>"),
    (Form::Tomorrow, "<tomorrow>"),
    (Form::UnixTime, "@-?[0-9]+"),
    (Form::UnixTimeWithFraction, "@-?[0-9]+\\.[0-9]?[0-9]?[0-9]?[0-9]?[0-9]?[0-9]?"),
    (Form::FirstOrLastDay, "<first day of>|<last day of>"),
    (Form::BackOrFront, "(<back of >|<front of >){hour24}({space}?{meridian})?"),
    (Form::WeekdayOfMonth, "({ordinal}|{which}){space}({dayfulls}|{dayname}){space}<of>"),
    (Form::Time12, "{time12}|{long12}"),
    (Form::Time12WithFraction, "{hour12}:{minutelz}:{secondlz}[:.][0-9]+{meridian}"),
    (Form::Time24, "[Tt]{hour24}|{short24}|{long24}|{long24}{frac}"),
    (Form::PackedHourMinute, "[Tt]?{hour24lz}{minutelz}"),
    (Form::PackedTime, "[Tt]?{hour24lz}{minutelz}{secondlz}"),
    (Form::MonthDayYear, "{month}/{day}|{month}/{day}/{year}"),
    (Form::YearMonthDay, "[+-]?{year4}-{monthlz}-{daylz}|{year4}/{monthlz}/{daylz}/?|{year4}/{month}/{day}"),
    (Form::ShortYearMonthDay, "{year2}-{monthlz}-{daylz}"),
    (Form::LongYearMonthDay, "{yearx}-{monthlz}-{daylz}"),
    (Form::YearMonth, "{year4}-{month}"),
    (Form::AnyYearMonthDay, "{year}-{month}-{day}"),
    (Form::DayNameYear, "{day}([ \t.-])*{monthtext}([ \t.-])*{year}"),
    (Form::DayMonthYear, "{day}[.\t-]{month}[.-]{year4}"),
    (Form::DayMonthShortYear, "{day}[.\t]{month}\\.{year2}"),
    (Form::NameYear, "{monthtext}([ .\t-])*{year4}"),
    (Form::YearName, "{year4}([ .\t-])*{monthtext}"),
    (Form::NameDayYear, "{monthtext}([ .\t-])*{day}[,.stndrh\t ]+{year}|{datenoyear}"),
    (Form::DayName, "{day}([ .\t-])*{monthtext}"),
    (Form::PackedDate, "{year4}{monthlz}{daylz}"),
    (
        Form::DateAndTime,
        "{year4}{monthlz}{daylz}T{hour24}:{minutelz}:{secondlz}|{year4}{monthlz}{daylz}[Tt]{hour24}{minutelz}{secondlz}\
         |{year4}-{monthlz}-{daylz}T{hour24lz}:{minutelz}:{secondlz}{frac}{correction}?\
         |{year4}-{month}-{day}T{hour24}:{minute}:{second}|{year4}:{monthlz}:{daylz} {hour24lz}:{minutelz}:{secondlz}",
    ),
    (Form::DayOfYear, "{year4}[.-]?({dayofyear})"),
    (Form::IsoWeekDay, "{year4}-?W({weekofyear})-?[0-7]"),
    (Form::IsoWeek, "{year4}-?W({weekofyear})"),
    (Form::NameDayYearShort, "({monthabbr})-{daylz}-{year}"),
    (Form::YearNameDay, "{year}-({monthabbr})-{daylz}"),
    (Form::LogTime, "{day}/({monthabbr})/{year4}:{hour24lz}:{minutelz}:{secondlz}{space}{correction}"),
    (Form::Year, "{year4}"),
    (Form::Ago, "<ago>"),
    (Form::Weekday, "{daytext}"),
    (Form::RelativeWeek, "{which}{space}<week>"),
    (Form::RelativeWord, "({ordinal}|{which}){space}{unit}"),
    (Form::Month, "{monthfull}|{monthabbr}"),
    (Form::Zone, "{correction}|{tz}"),
    (Form::NameDayTime12, "{datenoyear}({short12}|{long12})"),
    (Form::NameDayTime, "{datenoyear}({short24}|{long24}|{zoned24})"),
    (
        Form::Relative,
        "[+-]*[ \t]*[0-9][0-9]?[0-9]?[0-9]?[0-9]?[0-9]?[0-9]?[0-9]?[0-9]?[0-9]?[0-9]?[0-9]?[0-9]?{space}?({unit}|<week>)",
    ),
    (Form::Between, "[.,]|{space}|[\\0\n]"),
];

struct Known {
    form: Form,
    pattern: Pattern,
    first: Bytes,
}

static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let mut named = HashMap::new();
    for (name, text) in NAMED {
        let pattern = Pattern::parse(text, &named);
        named.insert(*name, pattern);
    }
    let known = FORMS.iter().map(|(form, text)| {
        let pattern = Pattern::parse(text, &named);
        let (first, may_be_empty) = pattern.first();
        debug_assert!(!may_be_empty, "a form that may be empty reads for ever: {text}");
        Known { form: *form, pattern, first }
    });
    known.collect()
});

/// The form at this place and where it ends; the text has a zero byte at its end.
pub(super) fn form_at(text: &[u8], place: usize) -> Option<(Form, usize)> {
    let next = *text.get(place)?;
    let mut best: Option<(Form, usize)> = None;
    for known in KNOWN.iter().filter(|known| known.first.has(next)) {
        if let Some(end) = known.pattern.ends(text, &[place]).last().copied()
            && best.is_none_or(|(_, furthest)| end > furthest)
        {
            best = Some((known.form, end));
        }
    }
    best
}
