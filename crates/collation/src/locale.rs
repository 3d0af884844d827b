//! The locales that can be asked for, what each is by default, and its variants.
//!
//! A locale is known by exactly one name: `de`, `de_AT`, `zh_Hant`, with a variant `de@collation=phonebook`. Anything else is
//! refused with the name that was probably meant. The variant that a locale has anyway may not be named.

use crate::{Alternate, CaseFirst};

/// What a locale is by default, where it is not the default of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Defaults {
    pub(crate) case_first: CaseFirst,
    pub(crate) alternate: Alternate,
    pub(crate) normalization: bool,
    pub(crate) backwards: bool,
}

const PLAIN: Defaults =
    Defaults { case_first: CaseFirst::Off, alternate: Alternate::NonIgnorable, normalization: false, backwards: false };
const NORMALIZED: Defaults = Defaults { normalization: true, ..PLAIN };
const UPPER: Defaults = Defaults { case_first: CaseFirst::Upper, ..PLAIN };
const BACKWARDS: Defaults = Defaults { backwards: true, ..PLAIN };
const THAI: Defaults = Defaults { alternate: Alternate::Shifted, ..NORMALIZED };

/// A locale: its name, its defaults, the variants that are its own.
type Row = (&'static str, Defaults, &'static [&'static str]);

/// Every locale, sorted by name.
#[rustfmt::skip]
const LOCALES: &[Row] = &[
    ("af", PLAIN, &[]), ("am", PLAIN, &[]), ("ar", PLAIN, &["compat"]), ("as", NORMALIZED, &[]),
    ("az", PLAIN, &[]), ("be", PLAIN, &[]), ("bg", PLAIN, &[]), ("bn", NORMALIZED, &["traditional"]),
    ("bo", PLAIN, &[]), ("bs", PLAIN, &[]), ("bs_Cyrl", PLAIN, &[]), ("ca", PLAIN, &[]), ("chr", PLAIN, &[]),
    ("cs", PLAIN, &[]), ("cy", PLAIN, &[]), ("da", UPPER, &[]), ("de", PLAIN, &["phonebook"]),
    ("de_AT", PLAIN, &["phonebook"]), ("dsb", PLAIN, &[]), ("dz", PLAIN, &[]), ("ee", PLAIN, &[]),
    ("el", NORMALIZED, &[]), ("en", PLAIN, &[]), ("en_US", PLAIN, &[]), ("en_US_POSIX", PLAIN, &[]),
    ("eo", PLAIN, &[]), ("es", PLAIN, &["traditional"]), ("et", PLAIN, &[]), ("fa", NORMALIZED, &[]),
    ("fa_AF", NORMALIZED, &[]), ("fi", PLAIN, &["traditional"]), ("fil", PLAIN, &[]), ("fo", PLAIN, &[]),
    ("fr", PLAIN, &[]), ("fr_CA", BACKWARDS, &[]), ("ga", PLAIN, &[]), ("gl", PLAIN, &[]),
    ("gu", NORMALIZED, &[]), ("ha", PLAIN, &[]), ("haw", PLAIN, &[]), ("he", NORMALIZED, &[]),
    ("hi", NORMALIZED, &[]), ("hr", PLAIN, &[]), ("hsb", PLAIN, &[]), ("hu", PLAIN, &[]), ("hy", PLAIN, &[]),
    ("id", PLAIN, &[]), ("ig", NORMALIZED, &[]), ("is", PLAIN, &[]), ("it", PLAIN, &[]),
    ("ja", PLAIN, &["unihan"]), ("ka", PLAIN, &[]), ("kk", PLAIN, &[]), ("kl", PLAIN, &[]),
    ("km", NORMALIZED, &[]), ("kn", NORMALIZED, &["traditional"]), ("ko", PLAIN, &["searchjl", "unihan"]),
    ("kok", NORMALIZED, &[]), ("ky", PLAIN, &[]), ("lb", PLAIN, &[]), ("lkt", PLAIN, &[]),
    ("ln", PLAIN, &["phonetic"]), ("lo", PLAIN, &[]), ("lt", PLAIN, &[]), ("lv", PLAIN, &[]), ("mk", PLAIN, &[]),
    ("ml", PLAIN, &[]), ("mn", PLAIN, &[]), ("mr", NORMALIZED, &[]), ("ms", PLAIN, &[]), ("mt", UPPER, &[]),
    ("my", NORMALIZED, &[]), ("nb", PLAIN, &[]), ("ne", PLAIN, &[]), ("nl", PLAIN, &[]), ("nn", PLAIN, &[]),
    ("om", PLAIN, &[]), ("or", NORMALIZED, &[]), ("pa", NORMALIZED, &[]), ("pl", PLAIN, &[]),
    ("ps", NORMALIZED, &[]), ("pt", PLAIN, &[]), ("ro", PLAIN, &[]), ("ru", PLAIN, &[]), ("se", PLAIN, &[]),
    ("si", NORMALIZED, &["dictionary"]), ("sk", PLAIN, &[]), ("sl", PLAIN, &[]), ("smn", PLAIN, &[]),
    ("sq", PLAIN, &[]), ("sr", PLAIN, &[]), ("sr_Latn", PLAIN, &[]), ("sv", PLAIN, &["reformed"]),
    ("sw", PLAIN, &[]), ("ta", NORMALIZED, &[]), ("te", NORMALIZED, &[]), ("th", THAI, &[]), ("to", PLAIN, &[]),
    ("tr", PLAIN, &[]), ("ug", PLAIN, &[]), ("uk", PLAIN, &[]), ("ur", PLAIN, &[]),
    ("vi", NORMALIZED, &["traditional"]), ("wae", PLAIN, &[]), ("yi", NORMALIZED, &[]), ("yo", NORMALIZED, &[]),
    ("zh", PLAIN, CHINESE), ("zh_Hant", PLAIN, CHINESE), ("zu", PLAIN, &[]),
];

const CHINESE: &[&str] = &["big5han", "gb2312han", "pinyin", "stroke", "unihan", "zhuyin"];

/// The variants that every locale has.
const COMMON: &[&str] = &["emoji", "eor", "search", "standard"];

/// A variant's name in specifications, and in the tags of languages.
const TAGS: &[(&str, &str)] = &[
    ("big5han", "big5han"),
    ("compat", "compat"),
    ("dictionary", "dict"),
    ("emoji", "emoji"),
    ("eor", "eor"),
    ("gb2312han", "gb2312"),
    ("phonebook", "phonebk"),
    ("phonetic", "phonetic"),
    ("pinyin", "pinyin"),
    ("reformed", "reformed"),
    ("search", "search"),
    ("searchjl", "searchjl"),
    ("standard", "standard"),
    ("stroke", "stroke"),
    ("traditional", "trad"),
    ("unihan", "unihan"),
    ("zhuyin", "zhuyin"),
];

/// Why a name is no locale's.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    /// It cannot be the name of a locale.
    Malformed,
    /// There is none of this name; perhaps this one was meant.
    NotFound(Option<String>),
}

/// The defaults of the locale of this name.
pub(crate) fn defaults(name: &str) -> Result<Defaults, Unknown> {
    let (base, keywords) = split(name);
    if base.split(['_', '-']).next().is_some_and(|language| language.len() >= 12) {
        return Err(Unknown::Malformed);
    }
    let Some(row) = nearest(base) else { return Err(Unknown::NotFound(None)) };
    let variant = keywords.and_then(variant_of).filter(|variant| is_offered(row, variant));
    let valid = match variant {
        Some(variant) => format!("{}@collation={variant}", row.0),
        None => row.0.to_owned(),
    };
    if valid != name {
        return Err(Unknown::NotFound(Some(valid)));
    }
    Ok(match variant {
        None => row.1,
        Some("search" | "searchjl") => NORMALIZED,
        Some("emoji" | "eor") => PLAIN,
        // A language's own variants begin where its standard does.
        Some(_) => Defaults { case_first: CaseFirst::Off, alternate: Alternate::NonIgnorable, ..row.1 },
    })
}

/// The name of a known locale as the tags of languages have it.
pub(crate) fn unicode_name(name: &str) -> String {
    let (base, keywords) = split(name);
    let base = match base {
        // These have the order of a neighbour.
        "fa_AF" => "ps",
        "kl" => "da",
        other => other,
    };
    let tag = keywords.and_then(variant_of).and_then(|variant| match (base, variant) {
        // Today's standard is the reformed one.
        ("sv", "standard") => Some("trad"),
        (_, "search" | "searchjl" | "phonetic" | "big5han" | "gb2312han") => None,
        (_, variant) => TAGS.iter().find(|(known, _)| *known == variant).map(|(_, tag)| *tag),
    });
    let base = base.replace('_', "-");
    match tag {
        Some(tag) => format!("{base}-u-co-{tag}"),
        None => base,
    }
}

fn split(name: &str) -> (&str, Option<&str>) {
    match name.split_once('@') {
        Some((base, keywords)) => (base, Some(keywords)),
        None => (name, None),
    }
}

/// The known locale that a name comes closest to: in canonical case, and without what is not known at its end.
fn nearest(base: &str) -> Option<&'static Row> {
    let canonical = canonical(base);
    let mut prefix = canonical.as_str();
    loop {
        if let Some(row) = LOCALES.iter().find(|row| row.0 == prefix) {
            return Some(row);
        }
        prefix = prefix.rsplit_once('_')?.0.trim_end_matches('_');
    }
}

/// The parts with the case that each has: `zh_Hant`, `en_US_POSIX`.
fn canonical(base: &str) -> String {
    let mut out = String::with_capacity(base.len());
    for (place, part) in base.split(['_', '-']).enumerate() {
        if place == 0 {
            out.push_str(&part.to_ascii_lowercase());
            continue;
        }
        out.push('_');
        let is_script = place == 1 && part.len() == 4 && part.bytes().all(|byte| byte.is_ascii_alphabetic());
        match part.split_at_checked(1).filter(|_| is_script) {
            Some((first, rest)) => {
                out.push_str(&first.to_ascii_uppercase());
                out.push_str(&rest.to_ascii_lowercase());
            }
            None => out.push_str(&part.to_ascii_uppercase()),
        }
    }
    out
}

/// The variant that keywords ask for, under its name in specifications.
fn variant_of(keywords: &str) -> Option<&'static str> {
    let values = keywords.split(';').filter_map(|keyword| keyword.split_once('='));
    let mut asked = values.filter(|(name, _)| name.eq_ignore_ascii_case("collation")).map(|(_, value)| value);
    let asked = asked.next()?;
    TAGS.iter()
        .find(|(name, tag)| name.eq_ignore_ascii_case(asked) || tag.eq_ignore_ascii_case(asked))
        .map(|(name, _)| *name)
}

/// True for variants that a locale has beside its default.
fn is_offered(row: &Row, variant: &str) -> bool {
    let default = match row.0 {
        "sv" => "reformed",
        "zh" => "pinyin",
        "zh_Hant" => "stroke",
        _ => "standard",
    };
    variant != default && (row.2.contains(&variant) || COMMON.contains(&variant))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u7_locales_have_their_defaults() {
        assert_eq!(defaults("en_US"), Ok(PLAIN));
        assert!(defaults("fr_CA").unwrap().backwards && !defaults("fr").unwrap().backwards);
        assert_eq!(defaults("da").unwrap().case_first, CaseFirst::Upper);
        assert_eq!(defaults("th").unwrap().alternate, Alternate::Shifted);
        assert!(defaults("vi").unwrap().normalization && defaults("de@collation=search").unwrap().normalization);
        assert!(LOCALES.is_sorted_by_key(|row| row.0), "the table is sorted");
    }

    #[test]
    fn u7_other_names_are_refused_with_what_was_meant() {
        let meant = |name: &str| match defaults(name) {
            Err(Unknown::NotFound(meant)) => meant.unwrap_or_default(),
            other => panic!("{name}: {other:?}"),
        };
        for (name, expected) in [
            ("garbage", ""),
            ("", ""),
            ("root", ""),
            ("_en", ""),
            ("xx_US", ""),
            ("@collation=phonebook", ""),
            ("en_", "en"),
            ("en__US_POSIX", "en"),
            ("en_GB", "en"),
            ("en_US_FOO", "en_US"),
            ("en-US", "en_US"),
            ("en_us_posix", "en_US_POSIX"),
            ("ZH_hant", "zh_Hant"),
            ("zh_TW@collation=stroke", "zh@collation=stroke"),
            ("de@collation", "de"),
            ("de@collation=standard", "de"),
            ("de@collation=phonebk", "de@collation=phonebook"),
            ("de@collation=phonebook;", "de@collation=phonebook"),
            ("en_US@collation=phonebook", "en_US"),
        ] {
            assert_eq!(meant(name), expected, "{name}");
        }
        assert_eq!(defaults(&"x".repeat(33)), Err(Unknown::Malformed));
        for name in
            ["de@collation=phonebook", "zh_Hant@collation=pinyin", "sv@collation=standard", "es@collation=search"]
        {
            assert!(defaults(name).is_ok(), "{name}");
        }
    }
}
