//! The search of a pattern in a text, in steps that are small enough to stop between them.
//!
//! Invariants: what a search finds does not depend on which variant found it; a search of all
//! matches looks at each place of the text a bounded number of times.

use super::compiled::{Variants, is_limit, is_stack_limit};
use super::{Regex, failed};
use bstr::BStr;
use pando_base::{Result, operation};
use pcre2::bytes::{CaptureLocations, Regex as Compiled};

/// Where the whole match and each group begin and end; none for a group that took no part.
pub type Groups = Vec<Option<(usize, usize)>>;

/// So many bytes are checked between two looks at the operation.
const CHECKED_BYTES: usize = 1 << 18;
/// So many steps is a call that finds the next match, beside the bytes it goes over.
const CALL_STEPS: u64 = 8;
/// So many steps is a look at one place that takes more than a few of PCRE2's.
const PLACE_STEPS: u64 = operation::STEPS_PER_LOOK / 2;

/// A text, known to be UTF-8 or not.
#[derive(Clone, Copy)]
pub struct Subject<'t> {
    text: &'t BStr,
    is_valid: bool,
}

impl<'t> Subject<'t> {
    /// Looks at the text once.
    pub fn new(text: &'t BStr) -> Result<Subject<'t>> {
        let mut rest: &[u8] = text;
        let mut is_valid = true;
        while is_valid && !rest.is_empty() {
            let (head, tail) = rest.split_at(boundary(rest, CHECKED_BYTES));
            operation::tick_bytes(head.len() / 16)?;
            is_valid = std::str::from_utf8(head).is_ok();
            rest = tail;
        }
        Ok(Subject { text, is_valid })
    }

    /// The text; an error if it is not UTF-8.
    pub fn checked(text: &'t BStr) -> Result<Subject<'t>> {
        let subject = Subject::new(text)?;
        if subject.is_valid { Ok(subject) } else { Err(failed(&"the input is not valid UTF-8")) }
    }
}

/// The last place up to this one that does not lie inside of a code point, if there is any.
fn boundary(text: &[u8], most: usize) -> usize {
    if text.len() <= most {
        return text.len();
    }
    (most.saturating_sub(3)..=most).rev().find(|&place| text.get(place).is_some_and(is_start)).unwrap_or(most)
}

fn is_start(byte: &u8) -> bool {
    byte & 0xC0 != 0x80
}

/// One search of a pattern in a text, for one match after the other.
pub struct Search<'r, 't> {
    variants: &'r Variants,
    subject: Subject<'t>,
    quick_places: [Option<CaptureLocations>; Variants::quick_kinds()],
    place: Option<CaptureLocations>,
}

impl<'r, 't> Search<'r, 't> {
    /// A search that has not begun.
    pub fn new(regex: &'r Regex, subject: Subject<'t>) -> Search<'r, 't> {
        Search {
            variants: &regex.variants,
            subject,
            quick_places: [const { None }; Variants::quick_kinds()],
            place: None,
        }
    }

    /// True if there is a match.
    pub fn is_match(&mut self) -> Result<bool> {
        let text = self.subject.text;
        if !self.subject.is_valid {
            return Ok(false);
        }
        operation::tick(1)?;
        if let Some(Ok(is_match)) = self.variants.short(text.len()).map(|short| short.is_match(text)) {
            return Ok(is_match);
        }
        operation::tick_bytes(text.len())?;
        let (_, quick) = self.variants.quick(text.len())?;
        match quick.is_match(text) {
            Err(error) if is_limit(&error) => Ok(self.by_places(0, &error)?.is_some()),
            outcome => outcome.map_err(|error| failed(&error)),
        }
    }

    /// The first match at or after this byte, and where its groups are.
    pub fn next(&mut self, start: usize) -> Result<Option<Groups>> {
        let text = self.subject.text;
        if !self.subject.is_valid || start > text.len() {
            return Ok(None);
        }
        operation::tick(CALL_STEPS)?;
        let (kind, quick) = self.variants.quick(text.len() - start)?;
        let Some(locations) = self.quick_places.get_mut(kind) else { return Ok(None) };
        let locations = locations.get_or_insert_with(|| quick.capture_locations());
        match quick.captures_read_at(locations, text, start) {
            Ok(None) => operation::tick_bytes(text.len() - start).map(|()| None),
            Ok(Some(found)) => {
                operation::tick_bytes(found.end().saturating_sub(start))?;
                Ok(Some(groups(locations)))
            }
            Err(error) if is_limit(&error) => self.by_places(start, &error),
            Err(error) => Err(failed(&error)),
        }
    }

    /// Looks at one place after the other. `reason` is why nothing faster will do.
    fn by_places(&mut self, start: usize, reason: &pcre2::Error) -> Result<Option<Groups>> {
        let text = self.subject.text;
        let Some(at_place) = self.variants.at_place() else { return Err(failed(reason)) };
        let locations = self.place.get_or_insert_with(|| at_place.capture_locations());
        for place in start..=text.len() {
            if text.get(place).is_some_and(|byte| !is_start(byte)) {
                continue;
            }
            operation::tick(PLACE_STEPS)?;
            match at_place.captures_read_at(locations, text, place) {
                Ok(None) => {}
                Ok(Some(_)) => return Ok(Some(groups(locations))),
                Err(error) if is_stack_limit(&error) => {
                    let found = self.variants.at_place_interpreted().map(|interpreted| read(interpreted, text, place));
                    if let Some(groups) = found.unwrap_or(Err(failed(&error)))? {
                        return Ok(Some(groups));
                    }
                }
                Err(error) => return Err(failed(&error)),
            }
        }
        Ok(None)
    }
}

/// One look by the interpreter.
fn read(compiled: &Compiled, text: &BStr, place: usize) -> Result<Option<Groups>> {
    operation::tick_bytes(text.len().saturating_sub(place))?;
    let mut locations = compiled.capture_locations();
    let found = compiled.captures_read_at(&mut locations, text, place).map_err(|error| failed(&error))?;
    Ok(found.map(|_| groups(&locations)))
}

fn groups(locations: &CaptureLocations) -> Groups {
    (0..locations.len()).map(|group| locations.get(group)).collect()
}
