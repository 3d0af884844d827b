//! One pattern, compiled in the ways a search needs it; each only when it is needed first.
//!
//! The first is for the interpreter: it says what is wrong with the pattern and costs a
//! microsecond, so that a list of a hundred thousand patterns is read quickly and looks at one
//! document without compiling any to machine code. With plain text nothing can be wrong; it is
//! compiled when it is used. The quick ones search a whole text and give up
//! where one place takes more than a few steps: the longer the text, the fewer. The last two look
//! at one place only.
//!
//! PCRE2 checks a text for valid UTF-8 in each call unless it was told at compiling to expect
//! anything. The crate says that together with Unicode properties for `\w` and its kin, which
//! MongoDB does not have; `(?a)` takes these away again.

use super::failed;
use bstr::BStr;
use pando_base::{Error, Result};
use pcre2::bytes::{Regex as Compiled, RegexBuilder};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// PCRE2's own limit for the steps at one place, which is MongoDB's.
const STEPS_MAX: u32 = 10_000_000;
/// The interpreter takes longer for a step.
const INTERPRETED_STEPS_MAX: u32 = 1_000_000;
/// So much the interpreter may do at each place of a text that it is given.
const SHORT_STEPS_MAX: u32 = 500;
/// The longest text for the interpreter, and for how many texts it is taken before machine code
/// pays.
pub(super) const SHORT_BYTES_MAX: usize = 512;
const SHORT_USES_MAX: u32 = 128;
/// Lengths of texts, and the steps that a search may take at each of their places: some
/// milliseconds together.
const QUICK: [(usize, u32); 4] = [(1 << 10, 8_000), (1 << 14, 500), (1 << 17, 64), (usize::MAX, 8)];

/// PCRE2's errors for a place that took too many steps, or too much stack.
const MATCH_LIMIT: i32 = -47;
const STACK_LIMIT: i32 = -46;

/// The ways a pattern is compiled.
pub(super) struct Variants {
    text: Text,
    letters: Letters,
    short: OnceLock<Option<Compiled>>,
    short_uses: AtomicU32,
    quick: [OnceLock<Option<Compiled>>; QUICK.len()],
    at_place: OnceLock<Option<Compiled>>,
    at_place_interpreted: OnceLock<Option<Compiled>>,
}

impl Variants {
    pub(super) fn new(pattern: &str, options: &BStr, operator: &str) -> Result<Variants> {
        let letters = Letters::read(options, operator)?;
        let text = Text::read(pattern, letters.is_extended);
        let short = OnceLock::new();
        if super::prefix::plain(pattern.as_bytes(), options).is_none() {
            let made = interpreted(letters, &text).map_err(|error| {
                let told = error.to_string();
                let why = told.rsplit(": ").next().unwrap_or(&told);
                Error::location(51091, format!("Regular expression is invalid: {why}"))
            })?;
            short.get_or_init(|| Some(made));
        }
        Ok(Variants {
            text,
            letters,
            short,
            short_uses: AtomicU32::new(0),
            quick: [const { OnceLock::new() }; QUICK.len()],
            at_place: OnceLock::new(),
            at_place_interpreted: OnceLock::new(),
        })
    }

    /// The interpreted pattern, as long as few texts were looked at.
    pub(super) fn short(&self, size_bytes: usize) -> Option<&Compiled> {
        let is_rare = self.short_uses.load(Ordering::Relaxed) < SHORT_USES_MAX;
        if !is_rare || size_bytes > SHORT_BYTES_MAX {
            return None;
        }
        self.short_uses.fetch_add(1, Ordering::Relaxed);
        self.short.get_or_init(|| interpreted(self.letters, &self.text).ok()).as_ref()
    }

    /// What searches so many bytes, and which of its kind it is.
    pub(super) fn quick(&self, size_bytes: usize) -> Result<(usize, &Compiled)> {
        let class = QUICK.iter().position(|(most, _)| size_bytes <= *most).unwrap_or(QUICK.len() - 1);
        let (Some((_, steps)), Some(place)) = (QUICK.get(class), self.quick.get(class)) else {
            return Err(Error::internal("there is a search for every length"));
        };
        let made = place.get_or_init(|| self.compile(*steps, &self.text.body, true));
        let made = made.as_ref().ok_or_else(|| failed(&"the pattern is too complex"))?;
        Ok((class, made))
    }

    /// How many kinds of quick searches there are.
    pub(super) const fn quick_kinds() -> usize {
        QUICK.len()
    }

    /// What looks at the place where it begins only; none for a pattern that cannot be looked for
    /// like that.
    pub(super) fn at_place(&self) -> Option<&Compiled> {
        self.at_place.get_or_init(|| self.compile(STEPS_MAX, &self.text.at_place()?, true)).as_ref()
    }

    /// The same without machine code, whose stack is small.
    pub(super) fn at_place_interpreted(&self) -> Option<&Compiled> {
        let make = || self.compile(INTERPRETED_STEPS_MAX, &self.text.at_place()?, false);
        self.at_place_interpreted.get_or_init(make).as_ref()
    }

    /// True if any was compiled to machine code.
    #[cfg(test)]
    pub(super) fn is_machine_code(&self) -> bool {
        self.at_place.get().is_some() || self.quick.iter().any(|quick| quick.get().is_some())
    }

    fn compile(&self, steps: u32, body: &str, is_machine_code: bool) -> Option<Compiled> {
        let mut builder = self.letters.builder();
        builder.jit_if_available(is_machine_code);
        let verbs = &self.text.verbs;
        if pcre2::version() >= (10, 43) {
            let ascii = if self.text.has_properties() { "" } else { "(?a)" };
            let made = builder.ucp(true).build(&format!("{verbs}(*LIMIT_MATCH={steps}){ascii}{body}"));
            if let Ok(made) = made {
                return Some(made);
            }
        }
        builder.ucp(false).utf(true).build(&format!("{verbs}(*LIMIT_MATCH={steps}){body}")).ok()
    }
}

/// The pattern for the interpreter and short texts.
fn interpreted(letters: Letters, text: &Text) -> std::result::Result<Compiled, pcre2::Error> {
    let limited = format!("{}(*LIMIT_MATCH={SHORT_STEPS_MAX}){}", text.verbs, text.body);
    letters.builder().utf(true).build(&limited)
}

/// True if the search may go on with less to look at in each call.
pub(super) fn is_limit(error: &pcre2::Error) -> bool {
    matches!(error.code(), MATCH_LIMIT | STACK_LIMIT)
}

/// True if the machine code has too little stack for it.
pub(super) fn is_stack_limit(error: &pcre2::Error) -> bool {
    error.code() == STACK_LIMIT
}

/// A pattern, taken apart as far as is needed to put something in front of it.
struct Text {
    /// What PCRE2 reads only at the very beginning, such as `(*UCP)`.
    verbs: String,
    body: String,
    is_extended: bool,
}

impl Text {
    fn read(pattern: &str, is_extended: bool) -> Text {
        let mut verbs = String::new();
        let mut body = pattern;
        while let Some((verb, rest)) = body.strip_prefix("(*").and_then(|rest| rest.split_once(')')) {
            let is_setting =
                verb.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || b"_=".contains(&byte));
            if !is_setting || !SETTINGS.iter().any(|setting| verb.starts_with(setting)) {
                break;
            }
            // How PCRE2 goes about it is decided here.
            if !verb.starts_with("NO_") {
                verbs.extend(["(*", verb, ")"]);
            }
            body = rest;
        }
        Text { verbs, body: body.to_owned(), is_extended }
    }

    fn has_properties(&self) -> bool {
        self.verbs.contains("(*UCP)")
    }

    /// The pattern, bound to the place where the search begins. What refers to the whole pattern,
    /// or to its beginning, would mean something else there.
    fn at_place(&self) -> Option<String> {
        if UNBOUND.iter().any(|part| self.body.contains(part)) {
            return None;
        }
        // A comment at the end of an extended pattern goes on to the end of its line.
        let end = if self.is_extended { "\n)" } else { ")" };
        Some(format!("\\G(?:{}{end}", self.body))
    }
}

/// Settings in front of a pattern.
const SETTINGS: &[&str] = &[
    "UTF",
    "UCP",
    "CRLF",
    "CR",
    "LF",
    "ANYCRLF",
    "ANY",
    "NUL",
    "BSR_",
    "LIMIT_",
    "NOTEMPTY",
    "NO_JIT",
    "NO_START_OPT",
    "NO_AUTO_POSSESS",
    "NO_DOTSTAR_ANCHOR",
];

/// Parts of patterns that mean something else if the pattern is a part of another.
const UNBOUND: &[&str] = &["(?R", "(?0", "\\g<0", "\\g'0", "(*", "\\G", "\\K"];

/// The option letters.
#[derive(Clone, Copy, Default)]
struct Letters {
    is_caseless: bool,
    is_multi_line: bool,
    has_dot_all: bool,
    is_extended: bool,
}

impl Letters {
    fn read(options: &BStr, operator: &str) -> Result<Letters> {
        let mut letters = Letters::default();
        for &letter in options.iter() {
            match letter {
                b'i' => letters.is_caseless = true,
                b'm' => letters.is_multi_line = true,
                b's' => letters.has_dot_all = true,
                b'x' => letters.is_extended = true,
                b'u' => {}
                other => {
                    let reason = format!("{operator} invalid flag in regex options: {}", char::from(other));
                    return Err(Error::location(51108, reason));
                }
            }
        }
        Ok(letters)
    }

    fn builder(self) -> RegexBuilder {
        let mut builder = RegexBuilder::new();
        builder
            .caseless(self.is_caseless)
            .multi_line(self.is_multi_line)
            .dotall(self.has_dot_all)
            .extended(self.is_extended);
        builder
    }
}
