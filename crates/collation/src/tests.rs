//! What clients see of collations: the specification that is kept, the refusals, the order.

use crate::{Collation, IcuCollator};
use bstr::BStr;
use pando_doc::{Collator, Doc, StringComparator, doc};
use proptest::prelude::*;
use std::cmp::Ordering;

fn collator(specification: Doc) -> IcuCollator {
    IcuCollator::new(&Collation::parse(specification.view()).unwrap().unwrap()).unwrap()
}

/// The order, after a look at the sort keys, which have to agree.
fn order(collator: &IcuCollator, left: &str, right: &str) -> Ordering {
    let (left, right) = (BStr::new(left), BStr::new(right));
    let order = collator.compare(left, right);
    assert_eq!(order, collator.sort_key(left).cmp(&collator.sort_key(right)), "{left} {right}");
    order
}

fn assert_sorted(specification: Doc, words: &[&str]) {
    let collator = collator(specification.clone());
    for pair in words.windows(2) {
        assert_eq!(order(&collator, pair[0], pair[1]), Ordering::Less, "{specification}: {pair:?}");
    }
}

fn assert_same(specification: Doc, left: &str, right: &str) {
    assert_eq!(
        order(&collator(specification.clone()), left, right),
        Ordering::Equal,
        "{specification}: {left} {right}"
    );
}

#[test]
fn u7_a_collation_is_kept_with_all_its_fields() {
    let given = doc! { "backwards": true, "locale": "fr", "strength": 2.0 };
    let expected = doc! {
        "locale": "fr", "caseLevel": false, "caseFirst": "off", "strength": 2, "numericOrdering": false,
        "alternate": "non-ignorable", "maxVariable": "punct", "normalization": false, "backwards": true,
        "version": "57.1",
    };
    let parsed = Collation::parse(given.view()).unwrap().unwrap();
    assert_eq!(parsed.to_doc(), expected);
    assert_eq!(Collation::parse(expected.view()).unwrap(), Some(parsed));
    assert_eq!(Collation::parse(doc! { "locale": "simple", "strength": 1 }.view()).unwrap(), None);
}

#[test]
fn u7_what_is_no_collation_is_refused() {
    for (given, code, reason) in [
        (doc! {}, 40414, "BSON field 'collation.locale' is missing but a required field"),
        (doc! { "locale": null }, 40414, "BSON field 'collation.locale' is missing but a required field"),
        (doc! { "locale": 1 }, 14, "BSON field 'collation.locale' is the wrong type 'int', expected type 'string'"),
        (doc! { "locale": "" }, 2, "Field 'locale' cannot be the empty string in: { locale: \"\" }"),
        (doc! { "locale": "en_GB" }, 2, "Field 'locale' is invalid in: { locale: \"en_GB\" }. Did you mean 'en'?"),
        (doc! { "locale": "fr", "strength": 6 }, 51024, "BSON field 'strength' value must be <= 5, actual value '6'"),
        (doc! { "locale": "fr", "strength": -1 }, 51024, "BSON field 'strength' value must be >= 0, actual value '-1'"),
        (
            doc! { "locale": "fr", "strength": 0.5 },
            2,
            "Enumeration value '0' for field 'collation.strength' is not a valid value.",
        ),
        (
            doc! { "locale": "fr", "caseFirst": "x" },
            2,
            "Enumeration value 'x' for field 'collation.caseFirst' is not a valid value.",
        ),
        (doc! { "locale": "fr", "colour": 1 }, 40415, "BSON field 'collation.colour' is an unknown field."),
        (
            doc! { "locale": "fr_CA", "strength": 1 },
            2,
            "'backwards' is invalid with 'strength' of 1 in: { locale: \"fr_CA\", strength: 1 }",
        ),
        (
            doc! { "locale": "en", "caseFirst": "upper", "strength": 2 },
            2,
            "'caseFirst' is invalid unless 'caseLevel' is on or 'strength' is greater than 2 in: { locale: \"en\", \
             caseFirst: \"upper\", strength: 2 }",
        ),
        (
            doc! { "locale": "en", "version": "58" },
            161,
            "Requested collation version 58 but the only available collator version was 57.1. Requested collation spec: { \
             locale: \"en\", version: \"58\" }",
        ),
    ] {
        let error = Collation::parse(given.view()).unwrap_err();
        assert_eq!((error.code().number(), error.reason()), (code, reason), "{given}");
    }
}

#[test]
fn u7_strengths_say_what_counts() {
    assert_same(doc! { "locale": "en", "strength": 1 }, "resume", "Résumé");
    assert_same(doc! { "locale": "en", "strength": 2 }, "résumé", "Résumé");
    assert_sorted(doc! { "locale": "en", "strength": 2 }, &["resume", "résumé"]);
    assert_sorted(doc! { "locale": "en" }, &["a", "A", "á", "b", "B", "z"]);
    assert_same(doc! { "locale": "en" }, "a\u{0301}", "á");
    assert_sorted(doc! { "locale": "en", "strength": 5 }, &["a", "a\u{0001}"]);
    assert_same(doc! { "locale": "en", "strength": 3 }, "a", "a\u{0001}");
}

#[test]
fn u7_options_change_the_order() {
    assert_sorted(doc! { "locale": "en", "caseFirst": "upper" }, &["A", "a", "B", "b"]);
    assert_same(doc! { "locale": "en", "strength": 1, "caseLevel": true }, "a", "á");
    assert_sorted(doc! { "locale": "en", "strength": 1, "caseLevel": true }, &["a", "A"]);
    assert_sorted(doc! { "locale": "en", "numericOrdering": true }, &["a1", "a2", "a10"]);
    assert_sorted(doc! { "locale": "en" }, &["a1", "a10", "a2"]);
    assert_same(doc! { "locale": "en", "alternate": "shifted" }, "a b", "a-b");
    assert_sorted(doc! { "locale": "en", "alternate": "shifted", "maxVariable": "space" }, &["a-b", "a b"]);
    assert_sorted(doc! { "locale": "fr" }, &["cote", "coté", "côte", "côté"]);
    assert_sorted(doc! { "locale": "fr_CA" }, &["cote", "côte", "coté", "côté"]);
    assert_sorted(doc! { "locale": "es", "backwards": true }, &["cote", "côte", "coté", "nz", "ñ"]);
    assert_sorted(doc! { "locale": "fr_CA", "backwards": false }, &["cote", "coté", "côte", "côté"]);
}

#[test]
fn u7_languages_have_their_order() {
    assert_sorted(doc! { "locale": "de" }, &["Ä", "Ad", "Ae"]);
    assert_sorted(doc! { "locale": "de@collation=phonebook" }, &["Ad", "Ä", "Af"]);
    assert_sorted(doc! { "locale": "sv" }, &["z", "å", "ä", "ö"]);
    assert_sorted(doc! { "locale": "nb" }, &["z", "æ", "ø", "å"]);
    assert_sorted(doc! { "locale": "nn" }, &["z", "æ", "ø", "å"]);
    assert_sorted(doc! { "locale": "da" }, &["A", "a", "z", "æ", "ø", "å"]);
    assert_sorted(doc! { "locale": "es@collation=traditional" }, &["cz", "ch", "d"]);
    assert_sorted(doc! { "locale": "et" }, &["s", "z", "t"]);
    assert_sorted(doc! { "locale": "en_US_POSIX" }, &["A", "B", "a", "b"]);
    assert_sorted(doc! { "locale": "zh" }, &["啊", "北", "一", "中"]);
    assert_sorted(doc! { "locale": "zh_Hant" }, &["一", "中", "北"]);
    assert_sorted(doc! { "locale": "ru" }, &["а", "б", "я", "a"]);
    assert_sorted(doc! { "locale": "sr_Latn" }, &["c", "č", "ć", "d"]);
}

proptest! {
    #[test]
    fn u7_sort_keys_have_the_order_of_strings(left in ".{0,6}", right in "\\PC{0,6}", strength in 1..=5_i32) {
        let collator = collator(doc! { "locale": "en", "strength": strength });
        order(&collator, &left, &right);
        prop_assert_eq!(order(&collator, &left, &left), Ordering::Equal);
    }

    #[test]
    fn u7_any_bytes_can_be_compared(left in any::<Vec<u8>>(), right in any::<Vec<u8>>()) {
        let collator = collator(doc! { "locale": "fr_CA" });
        let (left, right) = (BStr::new(&left), BStr::new(&right));
        prop_assert_eq!(collator.compare(left, right), collator.sort_key(left).cmp(&collator.sort_key(right)));
    }
}
