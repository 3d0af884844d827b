//! Options and errors, prefixes, and searches that are large or slow.

use super::*;
use pando_base::OperationContext;
use pando_base::operation::during;

fn regex(pattern: &str, options: &str) -> Result<Regex> {
    Regex::new(BStr::new(pattern), BStr::new(options), "$regex")
}

#[test]
fn options_and_errors() {
    assert!(regex("^AB", "i").unwrap().is_match(BStr::new("abc")));
    assert!(!regex("^b", "").unwrap().is_match(BStr::new("a\nb")));
    assert!(regex("^b", "m").unwrap().is_match(BStr::new("a\nb")));
    assert!(!regex("a.b", "").unwrap().is_match(BStr::new("a\nb")));
    assert!(regex("a.b", "s").unwrap().is_match(BStr::new("a\nb")));
    assert!(regex("a b # c", "x").unwrap().is_match(BStr::new("ab")));
    assert!(regex("^.$", "").unwrap().is_match(BStr::new("é")));
    assert_eq!(regex("(", "").unwrap_err().code().number(), 51091);
    assert_eq!(regex("a", "g").unwrap_err().code().number(), 51108);
    assert!(!regex("a", "").unwrap().is_match(BStr::new(b"a\xff")));
}

#[test]
fn prefixes() {
    let prefix = |pattern: &str, options: &str| {
        regex(pattern, options).unwrap().literal_prefix().map(|prefix| (prefix.text.to_string(), prefix.is_whole))
    };
    assert_eq!(prefix("^abc", ""), Some(("abc".to_owned(), true)));
    assert_eq!(prefix("^ab*", ""), Some(("a".to_owned(), false)));
    assert_eq!(prefix("^a\\.b.c", ""), Some(("a.b".to_owned(), false)));
    assert_eq!(prefix("^é?", ""), None);
    assert_eq!(prefix("^a\\|", ""), Some(("a|".to_owned(), true)));
    assert_eq!((prefix("^\\\\|b", ""), prefix("^\\Q|\\E", "")), (None, None));
    assert_eq!(prefix("^\\Qa.\\Eb+", ""), Some(("a.b".to_owned(), false)));
    assert_eq!(prefix("^\\Qab\\E*", ""), Some(("a".to_owned(), false)));
    assert_eq!(
        (prefix("abc", ""), prefix("^abc", "i"), prefix("^a|b", ""), prefix("^a", "m")),
        (None, None, None, None)
    );
}

fn all(pattern: &str, options: &str, text: &str) -> Vec<Option<(usize, usize)>> {
    let regex = regex(pattern, options).unwrap();
    let mut search = Search::new(&regex, Subject::checked(BStr::new(text)).unwrap());
    let (mut found, mut start) = (Vec::new(), 0);
    while let Some(groups) = search.next(start).unwrap() {
        start = groups[0].unwrap().1.max(start + 1);
        found.extend(groups);
    }
    found
}

/// A pattern whose attempts take many steps is looked for place by place; what it finds is the
/// same.
#[test]
fn slow_patterns_find_what_quick_ones_find() {
    let text = format!("{}é k=v; {}", "a".repeat(3000), "b".repeat(3000)).repeat(3);
    for (slow, quick) in [("a.{0,2000}k=v", "a{1,1999}é k=v"), ("(?i)(A*)+É(.)k", "(?i)(A*)É(.)k")] {
        let (slow, quick) = (all(slow, "", &text), all(quick, "", &text));
        assert_eq!(slow.first(), quick.first(), "the first match");
        assert!(slow.len() >= 3, "{slow:?}");
    }
    let expected: Vec<_> = text.match_indices("k=v").map(|(place, part)| Some((place, place + part.len()))).collect();
    assert_eq!(all("k=v", "", &text), expected);
    assert_eq!(all("k = v # a comment", "x", &text), expected);
}

#[test]
fn letters_of_words_are_those_of_ascii() {
    assert_eq!(all("\\w+", "", "aé1 b"), [Some((0, 1)), Some((3, 4)), Some((5, 6))]);
    assert_eq!(all("(*UCP)\\w+", "", "aé1 b"), [Some((0, 4)), Some((5, 6))]);
    assert_eq!(all("\\d", "", "1٣"), [Some((0, 1))]);
    assert_eq!(all("É", "i", "é"), [Some((0, 2))]);
    assert_eq!(all("(?<=é)b|\\Ab", "", "béb"), [Some((0, 1)), Some((3, 4))]);
}

/// A pattern that takes its limit at one place is an error, also where it cannot be looked for
/// place by place.
#[test]
fn endless_patterns_are_given_up() {
    let text = "a".repeat(200);
    for pattern in ["(a+)+[bc]", "(a+)+\\K[bc]", "(?:(a+)+[bc]|(?R)[bc])"] {
        let regex = regex(pattern, "").unwrap();
        let text = BStr::new(&text);
        assert_eq!(regex.try_is_match(text).unwrap_err().code(), FAILED, "{pattern}");
        assert!(!regex.is_match(text));
    }
}

/// A megabyte, where every place takes thousands of steps: hours, were it not stopped.
#[test]
fn a_search_ends_with_its_operation() {
    let text = "a".repeat(1 << 20);
    let regex = regex("a.{0,5000}(b|c)", "").unwrap();
    let operation = OperationContext::detached();
    operation.kill(ErrorCode::Interrupted);
    during(&operation, || {
        assert_eq!(regex.try_is_match(BStr::new(&text)).unwrap_err().code(), ErrorCode::Interrupted);
        assert!(!regex.is_match(BStr::new(&text)));
        assert!(operation::ended().is_err(), "no match is no answer");
    });
}

#[test]
fn many_patterns_are_read_without_machine_code() {
    let patterns: Vec<Regex> = (0..2000).map(|number| regex(&format!("^key{number}$"), "").unwrap()).collect();
    assert!(patterns.iter().all(|pattern| !pattern.is_match(BStr::new("other"))));
    assert!(patterns.iter().all(|pattern| !pattern.variants.is_machine_code()));
}
