//! The text that every match of a pattern begins with, read off the pattern: what an index can be
//! bounded by.

use bstr::BString;

/// What every match begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The text.
    pub text: BString,
    /// True if the pattern says nothing more.
    pub is_whole: bool,
}

/// Characters that may stand for more than themselves.
const SPECIAL: &[u8] = b"\\^$.[|()?*+{";

pub(super) fn of(pattern: &[u8], options: &[u8]) -> Option<Prefix> {
    let is_multiline = options.contains(&b'm');
    if options.contains(&b'i') || options.contains(&b'x') {
        return None;
    }
    let rest = match pattern {
        [b'^', rest @ ..] if !is_multiline => rest,
        [b'\\', b'A', rest @ ..] => rest,
        _ => return None,
    };
    if has_alternative(pattern) {
        return None;
    }
    literal(rest)
}

/// The text that a pattern says and nothing else, and whether what it is looked for in has to begin
/// with it.
pub(super) fn plain<'p>(pattern: &'p [u8], options: &[u8]) -> Option<(&'p [u8], bool)> {
    let (text, is_beginning) = match pattern {
        [b'^', text @ ..] => (text, true),
        text => (text, false),
    };
    let has_meaning = |byte: &u8| SPECIAL.contains(byte);
    let is_changed = options.iter().any(|letter| !matches!(letter, b's' | b'u'));
    (!is_changed && !text.iter().any(has_meaning)).then_some((text, is_beginning))
}

/// True if a bar may divide the pattern: one that is not escaped, or behind more than one
/// backslash.
fn has_alternative(pattern: &[u8]) -> bool {
    let is_escaped = |place: usize| {
        let before = pattern.get(..place).unwrap_or_default();
        before.ends_with(b"\\") && !before.ends_with(b"\\\\")
    };
    pattern.iter().enumerate().any(|(place, byte)| *byte == b'|' && !is_escaped(place))
}

/// Collects characters up to the first that has a meaning of its own.
fn literal(pattern: &[u8]) -> Option<Prefix> {
    let mut text: Vec<u8> = Vec::new();
    let mut rest = pattern;
    let mut last_start = 0;
    loop {
        match rest {
            [] => return Some(Prefix { text: BString::from(text), is_whole: true }),
            [b'*' | b'?' | b'{', ..] => {
                // The character before may be absent.
                text.truncate(last_start);
                break;
            }
            [b'\\', b'Q', tail @ ..] => {
                // Quoted up to \E.
                let length = tail.windows(2).position(|pair| pair == b"\\E").unwrap_or(tail.len());
                let (quoted, behind) = tail.split_at(length);
                last_start = text.len() + quoted.iter().rposition(|byte| !is_continuation(*byte)).unwrap_or(0);
                text.extend_from_slice(quoted);
                rest = behind.get(2..).unwrap_or_default();
            }
            [b'\\', escaped, tail @ ..] if escaped.is_ascii_punctuation() => {
                last_start = text.len();
                text.push(*escaped);
                rest = tail;
            }
            [special, ..] if SPECIAL.contains(special) => break,
            [byte, tail @ ..] => {
                if !is_continuation(*byte) {
                    last_start = text.len();
                }
                text.push(*byte);
                rest = tail;
            }
        }
    }
    (!text.is_empty()).then(|| Prefix { text: BString::from(text), is_whole: false })
}

fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}
