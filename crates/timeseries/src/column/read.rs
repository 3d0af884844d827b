//! Reading a column, value by value.
//!
//! Nothing is read ahead, so a column of few bytes that stands for very many values costs what is taken of it. A reader keeps places, not
//! the column: who calls it has that, and gives the same each time.

use super::blocks::{narrow_number, wide_number};
use super::numbers::{self, BITS_SCALE, double_to_integer, integer_to_double, unzigzag, unzigzag_wide};
use super::simple8b::Unpacker;
use super::{Encoded, INTERLEAVED_ARRAYS, INTERLEAVED_OBJECTS, INTERLEAVED_WITHOUT_ARRAYS, damaged};
use super::{is_wide, uses_delta_of_delta};
use pando_base::Result;
use pando_doc::{DocRef, Limits, ValueType};
use std::ops::Range;

/// What comes next in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A value of this type; its bytes were appended.
    Value(ValueType),
    /// A missing value.
    Missing,
    /// The end.
    End,
}

/// A value's type and bytes.
pub type OwnedEncoded = (ValueType, Vec<u8>);

/// Reads a column.
#[derive(Default)]
pub struct ColumnReader {
    at: usize,
    plain: Stream,
    documents: Option<Documents>,
}

/// One stream: the last value, and the words that tell the next ones.
#[derive(Clone, Default)]
struct Stream {
    value_type: Option<ValueType>,
    value: Vec<u8>,
    words: Option<Unpacker>,
    number: i64,
    delta: i64,
    wide: i128,
    scale: u8,
}

/// Documents, each scalar with a stream of its own.
struct Documents {
    root: ValueType,
    reference: Range<usize>,
    enters_arrays: bool,
    streams: Vec<Stream>,
}

impl ColumnReader {
    /// The next value of the column (the contents of the binary value); its bytes go behind what `out` has.
    pub fn next(&mut self, column: &[u8], out: &mut Vec<u8>) -> Result<Step> {
        loop {
            if let Some(documents) = &mut self.documents {
                match documents.next(column, &mut self.at, out)? {
                    Step::End => {
                        self.documents = None;
                        self.plain = Stream::default();
                    }
                    step => return Ok(step),
                }
            }
            if let Some(step) = self.plain.next_of_words(column, out)? {
                return Ok(step);
            }
            match column.get(self.at) {
                None => return Err(damaged(6_067_602)),
                Some(0) if self.at + 1 == column.len() => return Ok(Step::End),
                Some(0) => return Err(damaged(7_482_200)),
                Some(control @ (&INTERLEAVED_WITHOUT_ARRAYS | &INTERLEAVED_OBJECTS | &INTERLEAVED_ARRAYS)) => {
                    self.documents = Some(Documents::begin(*control, column, &mut self.at)?);
                }
                Some(_) => {
                    self.plain.load(column, &mut self.at)?;
                    if let Some(step) = self.plain.first_of_block(column, out)? {
                        return Ok(step);
                    }
                }
            }
        }
    }

    /// The values one by one, at most so many; for tests and checks.
    pub fn read_all(column: &[u8], count_max: usize) -> Result<Vec<Option<OwnedEncoded>>> {
        let mut reader = ColumnReader::default();
        let mut values = Vec::new();
        while values.len() < count_max {
            let mut bytes = Vec::new();
            match reader.next(column, &mut bytes)? {
                Step::Value(value_type) => values.push(Some((value_type, bytes))),
                Step::Missing => values.push(None),
                Step::End => break,
            }
        }
        Ok(values)
    }
}

fn is_literal(control: u8) -> bool {
    control & 0xE0 == 0 || control == ValueType::MinKey as u8 || control == ValueType::MaxKey as u8
}

/// The scale that a block of words has.
fn scale_of(control: u8) -> Option<u8> {
    match control >> 4 {
        8 => Some(BITS_SCALE),
        scale @ 9..=13 => Some(scale - 9),
        _ => None,
    }
}

impl Stream {
    /// Takes a value as it is: a literal, or a scalar of a reference.
    fn remember(&mut self, value_type: ValueType, bytes: &[u8]) {
        let value = Encoded { value_type, bytes };
        self.value_type = Some(value_type);
        self.value.clear();
        self.value.extend_from_slice(bytes);
        self.words = None;
        self.delta = 0;
        self.number = narrow_number(value, BITS_SCALE).unwrap_or(0);
        self.wide = wide_number(value).unwrap_or(0);
    }

    /// Takes the block that comes next.
    fn load(&mut self, column: &[u8], at: &mut usize) -> Result<()> {
        let rest = column.get(*at..).unwrap_or_default();
        let control = rest.first().copied().unwrap_or_default();
        if is_literal(control) {
            let element = DocRef::trusted(rest).element_at(0).ok_or_else(|| damaged(6_067_602))?;
            check_literal(element.bytes)?;
            self.remember(element.value_type, element.value_bytes);
            *at += element.bytes.len();
            return Ok(());
        }
        self.scale = scale_of(control).ok_or_else(|| damaged(6_067_606))?;
        if self.value_type == Some(ValueType::Double) {
            let number = double_to_integer(numbers::double(&self.value), self.scale);
            self.number = number.ok_or_else(|| damaged(6_067_607))?;
        }
        let size_bytes = (usize::from(control & 15) + 1) * 8;
        if rest.len() <= size_bytes {
            return Err(damaged(6_067_608));
        }
        let before = self.words.as_ref().map_or(Some(0), Unpacker::last);
        self.words = Some(Unpacker::new(*at + 1..*at + 1 + size_bytes, before));
        *at += 1 + size_bytes;
        Ok(())
    }

    /// The first value of the block that was just taken.
    fn first_of_block(&mut self, column: &[u8], out: &mut Vec<u8>) -> Result<Option<Step>> {
        match (&self.words, self.value_type) {
            (None, Some(value_type)) => {
                out.extend_from_slice(&self.value);
                Ok(Some(Step::Value(value_type)))
            }
            _ => self.next_of_words(column, out),
        }
    }

    /// The next value that words tell.
    #[inline]
    fn next_of_words(&mut self, column: &[u8], out: &mut Vec<u8>) -> Result<Option<Step>> {
        let Some(words) = &mut self.words else { return Ok(None) };
        match words.next(column)? {
            None => Ok(None),
            Some(None) => Ok(Some(Step::Missing)),
            Some(Some(delta)) => {
                let value_type = self.advance(delta)?;
                out.extend_from_slice(&self.value);
                Ok(Some(Step::Value(value_type)))
            }
        }
    }

    fn advance(&mut self, delta: u128) -> Result<ValueType> {
        let value_type = self.value_type.ok_or_else(|| damaged(6_785_500))?;
        if delta == 0 && !uses_delta_of_delta(value_type) {
            return Ok(value_type);
        }
        if is_wide(value_type) {
            self.wide = self.wide.wrapping_add(unzigzag_wide(delta));
            self.write_wide(value_type);
            return Ok(value_type);
        }
        let told = unzigzag(delta);
        if uses_delta_of_delta(value_type) {
            self.delta = self.delta.wrapping_add(told);
            self.number = self.number.wrapping_add(self.delta);
        } else {
            self.number = self.number.wrapping_add(told);
        }
        self.write_narrow(value_type)?;
        Ok(value_type)
    }

    fn write_narrow(&mut self, value_type: ValueType) -> Result<()> {
        let number = self.number;
        match value_type {
            ValueType::Double => self.replace(&integer_to_double(number, self.scale).to_bits().to_le_bytes()),
            ValueType::Int32 => self.replace(&(number as i32).to_le_bytes()),
            ValueType::Int64 | ValueType::DateTime | ValueType::Timestamp => self.replace(&number.to_le_bytes()),
            ValueType::Bool => self.replace(&[u8::from(number != 0)]),
            ValueType::ObjectId => {
                let id = numbers::integer_to_object_id(number, &self.value);
                self.replace(&id);
            }
            _ => return Err(damaged(6_785_500)),
        }
        Ok(())
    }

    fn write_wide(&mut self, value_type: ValueType) {
        match value_type {
            ValueType::String | ValueType::Code => {
                let text = numbers::integer_to_text(self.wide);
                let length = text.len() as i32 + 1;
                self.value.clear();
                self.value.extend_from_slice(&length.to_le_bytes());
                self.value.extend_from_slice(&text);
                self.value.push(0);
            }
            ValueType::Binary => {
                let bytes = self.wide.to_le_bytes();
                for (to, from) in self.value.iter_mut().skip(5).zip(bytes) {
                    *to = from;
                }
            }
            _ => {
                let bytes = self.wide.to_le_bytes();
                self.replace(&bytes);
            }
        }
    }

    fn replace(&mut self, bytes: &[u8]) {
        self.value.clear();
        self.value.extend_from_slice(bytes);
    }
}

/// A literal must be BSON all through, for it goes into documents that nobody looks at again.
fn check_literal(element: &[u8]) -> Result<()> {
    let mut doc = Vec::with_capacity(element.len() + 5);
    doc.extend_from_slice(&i32::try_from(element.len() + 5).unwrap_or(i32::MAX).to_le_bytes());
    doc.extend_from_slice(element);
    doc.push(0);
    DocRef::parse_with(&doc, &Limits::default()).map(|_| ())
}

impl Documents {
    fn begin(control: u8, column: &[u8], at: &mut usize) -> Result<Documents> {
        let behind = column.get(*at + 1..).unwrap_or_default();
        let (reference, _) = DocRef::parse_prefix(behind, &Limits::default())?;
        let place = *at + 1..*at + 1 + reference.size_bytes();
        *at = place.end;
        let root = if control == INTERLEAVED_ARRAYS { ValueType::Array } else { ValueType::Document };
        let enters_arrays = control != INTERLEAVED_WITHOUT_ARRAYS;
        let mut streams = Vec::new();
        collect_streams(reference, enters_arrays, &mut streams);
        if streams.is_empty() {
            return Err(damaged(6_067_610));
        }
        Ok(Documents { root, reference: place, enters_arrays, streams })
    }

    fn next(&mut self, column: &[u8], at: &mut usize, out: &mut Vec<u8>) -> Result<Step> {
        let start = out.len();
        let reference = DocRef::trusted(column.get(self.reference.clone()).unwrap_or_default());
        let mut row = Row { enters_arrays: self.enters_arrays, streams: self.streams.iter_mut(), done: 0, column, at };
        if !row.document(reference, out)? {
            out.truncate(start);
            return match row.done {
                0 => Ok(Step::End),
                _ => Err(damaged(6_067_604)),
            };
        }
        // A document without fields is not there, unless it was empty in the reference; that has scalars.
        if out.len() == start + 5 {
            out.truncate(start);
            return Ok(Step::Missing);
        }
        Ok(Step::Value(self.root))
    }
}

fn enters(value_type: ValueType, enters_arrays: bool) -> bool {
    value_type == ValueType::Document || (enters_arrays && value_type == ValueType::Array)
}

fn collect_streams(reference: DocRef<'_>, enters_arrays: bool, streams: &mut Vec<Stream>) {
    for element in reference.raw_elements() {
        if enters(element.value_type, enters_arrays) {
            collect_streams(DocRef::trusted(element.value_bytes), enters_arrays, streams);
        } else {
            let mut stream = Stream::default();
            stream.remember(element.value_type, element.value_bytes);
            streams.push(stream);
        }
    }
}

/// One document on its way out of the streams.
struct Row<'r> {
    enters_arrays: bool,
    streams: std::slice::IterMut<'r, Stream>,
    done: usize,
    column: &'r [u8],
    at: &'r mut usize,
}

impl Row<'_> {
    /// Writes the document; false if the streams have ended.
    fn document(&mut self, reference: DocRef<'_>, out: &mut Vec<u8>) -> Result<bool> {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        for element in reference.raw_elements() {
            let before = out.len();
            out.push(element.value_type as u8);
            out.extend_from_slice(element.name);
            out.push(0);
            let is_written = if enters(element.value_type, self.enters_arrays) {
                let below = DocRef::trusted(element.value_bytes);
                let body = out.len();
                if !self.document(below, out)? {
                    return Ok(false);
                }
                below.is_empty() || out.len() > body + 5
            } else {
                match self.scalar(out)? {
                    Step::End => return Ok(false),
                    Step::Missing => false,
                    Step::Value(value_type) => {
                        if let Some(code) = out.get_mut(before) {
                            *code = value_type as u8;
                        }
                        true
                    }
                }
            };
            if !is_written {
                out.truncate(before);
            }
        }
        out.push(0);
        let size_bytes = i32::try_from(out.len() - start).map_err(|_| damaged(6_067_605))?;
        if let Some(length) = out.get_mut(start..start + 4) {
            length.copy_from_slice(&size_bytes.to_le_bytes());
        }
        Ok(true)
    }

    fn scalar(&mut self, out: &mut Vec<u8>) -> Result<Step> {
        let stream = self.streams.next().ok_or_else(|| damaged(6_067_603))?;
        let step = match stream.next_of_words(self.column, out)? {
            Some(step) => step,
            None => {
                match self.column.get(*self.at) {
                    None => return Err(damaged(6_067_602)),
                    Some(0) => {
                        *self.at += 1;
                        return Ok(Step::End);
                    }
                    Some(_) => stream.load(self.column, self.at)?,
                }
                stream.first_of_block(self.column, out)?.ok_or_else(|| damaged(6_067_605))?
            }
        };
        self.done += 1;
        Ok(step)
    }
}
