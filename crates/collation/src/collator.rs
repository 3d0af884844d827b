//! A collation at work.

use crate::data::CollationData;
use crate::locale;
use crate::{Alternate, CaseFirst, Collation, MaxVariable};
use bstr::BStr;
use icu_collator::options::{self, AlternateHandling, CaseLevel, CollatorOptions, Strength};
use icu_collator::preferences::{CollationCaseFirst, CollationNumericOrdering};
use icu_collator::{Collator as Icu, CollatorPreferences};
use icu_locale_core::Locale;
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{Collator, Doc, StringComparator};
use std::cmp::Ordering;

/// Compares strings as a collation says.
#[derive(Debug)]
pub struct IcuCollator {
    specification: Doc,
    icu: Icu,
}

impl IcuCollator {
    /// Puts a collation to work.
    pub fn new(collation: &Collation) -> Result<IcuCollator> {
        let failed = |reason: String| {
            let spec = collation.to_doc();
            Error::new(
                ErrorCode::OperationFailed,
                format!("Failed to create collator: {reason}. Collation spec: {spec}"),
            )
        };
        let locale: Locale =
            locale::unicode_name(collation.locale()).parse().map_err(|error| failed(format!("{error}")))?;
        let mut preferences = CollatorPreferences::from(&locale);
        preferences.case_first = Some(match collation.case_first {
            CaseFirst::Upper => CollationCaseFirst::Upper,
            CaseFirst::Lower => CollationCaseFirst::Lower,
            CaseFirst::Off => CollationCaseFirst::False,
        });
        preferences.numeric_ordering = Some(match collation.numeric_ordering {
            true => CollationNumericOrdering::True,
            false => CollationNumericOrdering::False,
        });
        let data = CollationData { backwards: collation.backwards };
        let icu = Icu::try_new_unstable(&data, preferences, options_of(collation))
            .map_err(|error| failed(format!("{error}")))?;
        Ok(IcuCollator { specification: collation.to_doc(), icu })
    }
}

fn options_of(collation: &Collation) -> CollatorOptions {
    let mut options = CollatorOptions::default();
    options.strength = Some(match collation.strength {
        1 => Strength::Primary,
        2 => Strength::Secondary,
        3 => Strength::Tertiary,
        4 => Strength::Quaternary,
        _ => Strength::Identical,
    });
    options.alternate_handling = Some(match collation.alternate {
        Alternate::NonIgnorable => AlternateHandling::NonIgnorable,
        Alternate::Shifted => AlternateHandling::Shifted,
    });
    options.max_variable = Some(match collation.max_variable {
        MaxVariable::Punct => options::MaxVariable::Punctuation,
        MaxVariable::Space => options::MaxVariable::Space,
    });
    options.case_level = Some(if collation.case_level { CaseLevel::On } else { CaseLevel::Off });
    options
}

impl StringComparator for IcuCollator {
    fn compare(&self, left: &BStr, right: &BStr) -> Ordering {
        self.icu.as_borrowed().compare_utf8(left, right)
    }

    fn equality_key(&self, text: &BStr) -> Vec<u8> {
        self.sort_key(text)
    }
}

impl Collator for IcuCollator {
    fn sort_key(&self, text: &BStr) -> Vec<u8> {
        let mut key = Vec::with_capacity(text.len() * 2 + 8);
        let Ok(()) = self.icu.as_borrowed().write_sort_key_utf8_to(text, &mut key);
        key
    }

    fn specification(&self) -> &Doc {
        &self.specification
    }
}
