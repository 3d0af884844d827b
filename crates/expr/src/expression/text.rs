//! Code points in texts that may not be valid UTF-8: a byte that begins no code point counts as one itself.

use bstr::{BStr, ByteSlice};

/// How many code points there are.
pub(super) fn count(text: &BStr) -> usize {
    text.iter().filter(|byte| !is_continuation(**byte)).count()
}

/// Where the code point of this number begins; the end of the text if there are fewer.
pub(super) fn offset(text: &BStr, number: usize) -> usize {
    starts(text).nth(number).unwrap_or(text.len())
}

/// Where each code point begins.
pub(super) fn starts(text: &BStr) -> impl Iterator<Item = usize> + '_ {
    text.iter().enumerate().filter(|(_, byte)| !is_continuation(**byte)).map(|(offset, _)| offset)
}

/// The number of the code point that begins at this byte.
pub(super) fn number_at(text: &BStr, offset: usize) -> usize {
    count(BStr::new(text.get(..offset).unwrap_or(text)))
}

pub(super) fn is_continuation(byte: u8) -> bool {
    byte & 0xC0 == 0x80
}

/// The code point that the text begins with.
pub(super) fn first_point(text: &BStr) -> Option<&BStr> {
    let end = starts(text).find(|start| *start > 0).unwrap_or(text.len());
    text.get(..end).filter(|point| !point.is_empty()).map(|point| point.as_bstr())
}

/// The code point that the text ends with.
pub(super) fn last_point(text: &BStr) -> Option<&BStr> {
    let start = text.iter().rposition(|byte| !is_continuation(*byte)).unwrap_or(0);
    text.get(start..).filter(|point| !point.is_empty()).map(|point| point.as_bstr())
}

/// The code points, as texts.
pub(super) fn points(text: &BStr) -> Vec<&BStr> {
    let ends = starts(text).skip(1).chain(std::iter::once(text.len()));
    starts(text).zip(ends).map(|(start, end)| text.get(start..end).unwrap_or_default().as_bstr()).collect()
}
