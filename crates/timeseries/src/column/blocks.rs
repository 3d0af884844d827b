//! One stream of values as blocks: literals and words.
//!
//! Where the whole stream is there before anything is written, the scale of doubles is chosen with what comes in view: as long as a
//! scale serves, it is kept; doubles that no scale serves are written by their bits. A [`GrowingStream`] takes a finer scale when it
//! meets a double that needs it.

use super::numbers::{self, BITS_SCALE, double_to_integer, least_scale, zigzag, zigzag_wide};
use super::simple8b::{Packer, Word};
use super::{Encoded, is_wide, uses_delta_of_delta};
use pando_doc::ValueType;

/// A block takes so many words.
const WORDS_MAX: usize = 16;
/// After so many doubles that a scale serves, bits are given up.
const SCALED_MIN: usize = 8;

/// A block and the place of its first value in the stream.
pub(super) struct Block {
    pub(super) start: usize,
    pub(super) bytes: Vec<u8>,
}

/// Writes one stream, value by value.
#[derive(Clone, Debug)]
struct Writer {
    /// The blocks so far, one behind the other.
    bytes: Vec<u8>,
    /// Of each block the place of its first value, and where its bytes begin.
    begins: Vec<(usize, usize)>,
    packer: Packer,
    /// The last value, and what it is as a number.
    previous: Option<ValueType>,
    previous_bytes: Vec<u8>,
    number: i64,
    delta: i64,
    wide: Option<i128>,
    scale: u8,
}

/// The blocks of a stream; the first value is told apart from the reference, if there is one.
pub(super) fn encode_stream(values: &[Option<Encoded<'_>>], reference: Option<Encoded<'_>>) -> Vec<Block> {
    let scales = plan_scales(values);
    let mut writer = Writer::new();
    let scale_at = |place: usize| scales.get(place).copied().unwrap_or(BITS_SCALE);
    if let Some(reference) = reference {
        writer.remember(reference, scale_at(0));
    }
    for (place, value) in values.iter().enumerate() {
        match value {
            None => {
                writer.packer.append(None);
            }
            Some(value) => writer.write(place, *value, scale_at(place)),
        }
    }
    writer.end_words();
    writer.into_blocks()
}

/// A stream whose values come batch by batch. What is written of it stays; what is in no word yet is written afresh each time. A scale
/// is kept as long as it serves, so that no value has to be looked at twice.
#[derive(Clone, Debug)]
pub(super) struct GrowingStream {
    writer: Writer,
    count: usize,
    /// The scale of the last doubles.
    scale: u8,
    /// So many doubles in a row were written by their bits though a scale serves them.
    scaled: usize,
}

impl Default for GrowingStream {
    fn default() -> GrowingStream {
        GrowingStream { writer: Writer::new(), count: 0, scale: 0, scaled: 0 }
    }
}

impl GrowingStream {
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a value.
    pub(super) fn push(&mut self, value: Encoded<'_>) {
        if value.value_type == ValueType::Double {
            self.choose_scale(numbers::double(value.bytes));
        }
        self.writer.write(self.count, value, self.scale);
        self.writer.retire_words();
        self.count += 1;
    }

    /// Adds missing values.
    pub(super) fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.writer.packer.append(None);
        }
        self.writer.retire_words();
        self.count += count;
    }

    fn choose_scale(&mut self, value: f64) {
        if self.scale != BITS_SCALE {
            if double_to_integer(value, self.scale).is_none() {
                let finer = least_scale(value, self.scale);
                self.scale = if finer == BITS_SCALE { least_scale(value, 0) } else { finer };
            }
            return;
        }
        let least = least_scale(value, 0);
        self.scaled = if least == BITS_SCALE { 0 } else { self.scaled + 1 };
        if self.scaled == SCALED_MIN {
            (self.scale, self.scaled) = (least, 0);
        }
    }

    /// Appends the blocks of all values.
    pub(super) fn write_to(&self, out: &mut Vec<u8>) {
        let writer = &self.writer;
        out.extend_from_slice(&writer.bytes);
        let mut packer = writer.packer.clone();
        packer.flush();
        for chunk in packer.take_words().chunks(WORDS_MAX) {
            put_words(chunk, writer.scale, out);
        }
    }

    /// How much memory it takes.
    pub(super) fn size_bytes(&self) -> usize {
        self.writer.bytes.capacity() + self.writer.packer.size_bytes()
    }
}

impl Writer {
    fn new() -> Writer {
        Writer {
            bytes: Vec::new(),
            begins: Vec::new(),
            packer: Packer::new(0),
            previous: None,
            previous_bytes: Vec::new(),
            number: 0,
            delta: 0,
            wide: None,
            scale: BITS_SCALE,
        }
    }

    fn into_blocks(self) -> Vec<Block> {
        let ends = self.begins.iter().skip(1).map(|(_, begin)| *begin).chain([self.bytes.len()]);
        let blocks = self.begins.iter().zip(ends).map(|((start, begin), end)| Block {
            start: *start,
            bytes: self.bytes.get(*begin..end).unwrap_or_default().to_vec(),
        });
        blocks.collect()
    }

    fn write(&mut self, place: usize, value: Encoded<'_>, scale: u8) {
        if self.previous != Some(value.value_type) {
            return self.literal(place, value, scale);
        }
        if value.value_type == ValueType::Double && scale != self.scale {
            self.end_words();
            match double_to_integer(numbers::double(&self.previous_bytes), scale) {
                Some(number) => (self.number, self.scale) = (number, scale),
                None => return self.literal(place, value, scale),
            }
        }
        let written = match is_wide(value.value_type) {
            true => self.write_wide(value),
            false => self.write_narrow(value),
        };
        match written {
            true => self.keep(value),
            false => self.literal(place, value, scale),
        }
    }

    /// The value is the last one now.
    fn keep(&mut self, value: Encoded<'_>) {
        self.previous = Some(value.value_type);
        self.previous_bytes.clear();
        self.previous_bytes.extend_from_slice(value.bytes);
    }

    fn write_wide(&mut self, value: Encoded<'_>) -> bool {
        if self.previous_bytes == value.bytes {
            return self.packer.append(Some(0));
        }
        let Some(number) = self.wide_number(value) else { return false };
        // Behind a value that is no number a zero means that value again.
        if self.wide.is_none() && number == 0 {
            return false;
        }
        let delta = number.wrapping_sub(self.wide.unwrap_or(0));
        let is_written = self.packer.append(Some(zigzag_wide(delta)));
        if is_written {
            self.wide = Some(number);
        }
        is_written
    }

    /// The value as a number, if the one before lets it be told from it.
    fn wide_number(&self, value: Encoded<'_>) -> Option<i128> {
        // Binary values tell neither their length nor their subtype.
        let is_alike = value.value_type != ValueType::Binary || value.bytes.get(..5) == self.previous_bytes.get(..5);
        is_alike.then(|| wide_number(value)).flatten()
    }

    fn write_narrow(&mut self, value: Encoded<'_>) -> bool {
        let Some(number) = narrow_number(value, self.scale) else {
            return self.previous_bytes == value.bytes && self.packer.append(Some(0));
        };
        if value.value_type == ValueType::ObjectId
            && numbers::object_id_process(&self.previous_bytes) != numbers::object_id_process(value.bytes)
        {
            return false;
        }
        let delta = number.wrapping_sub(self.number);
        let told = if uses_delta_of_delta(value.value_type) { delta.wrapping_sub(self.delta) } else { delta };
        let is_written = self.packer.append(Some(zigzag(told)));
        if is_written {
            (self.number, self.delta) = (number, delta);
        }
        is_written
    }

    fn literal(&mut self, place: usize, value: Encoded<'_>, scale: u8) {
        self.end_words();
        self.begins.push((place, self.bytes.len()));
        self.bytes.extend_from_slice(&[value.value_type as u8, 0]);
        self.bytes.extend_from_slice(value.bytes);
        self.packer = Packer::new(place + 1);
        self.remember(value, scale);
    }

    /// What comes next is told apart from this.
    fn remember(&mut self, value: Encoded<'_>, scale: u8) {
        self.scale = match value.value_type {
            // A reference need not serve the scale of what follows.
            ValueType::Double => least_scale(numbers::double(value.bytes), scale),
            _ => BITS_SCALE,
        };
        self.keep(value);
        self.delta = 0;
        self.number = narrow_number(value, self.scale).unwrap_or(0);
        self.wide = wide_number(value);
    }

    /// Writes the words so far as blocks of their own.
    fn end_words(&mut self) {
        self.packer.flush();
        for chunk in self.packer.take_words().chunks(WORDS_MAX) {
            self.put_block(chunk);
        }
    }

    /// Writes the words that fill blocks.
    fn retire_words(&mut self) {
        while let Some(words) = self.packer.take_first(WORDS_MAX) {
            self.put_block(&words);
        }
    }

    fn put_block(&mut self, words: &[Word]) {
        self.begins.push((words.first().map_or(0, |word| word.start), self.bytes.len()));
        put_words(words, self.scale, &mut self.bytes);
    }
}

/// A block of words.
fn put_words(words: &[Word], scale: u8, out: &mut Vec<u8>) {
    // 0x90 is the scale of 1.
    let control = if scale == BITS_SCALE { 0x80 } else { 0x90 + (scale << 4) };
    out.push(control | (words.len() as u8 - 1));
    words.iter().for_each(|word| out.extend_from_slice(&word.word.to_le_bytes()));
}

/// The value as an integer of 64 bits, for the types that have one.
pub(super) fn narrow_number(value: Encoded<'_>, scale: u8) -> Option<i64> {
    match value.value_type {
        ValueType::Double => double_to_integer(numbers::double(value.bytes), scale),
        ValueType::Int32 => Some(numbers::int32(value.bytes)),
        ValueType::Int64 | ValueType::DateTime | ValueType::Timestamp => Some(numbers::int64(value.bytes)),
        ValueType::Bool => value.bytes.first().map(|byte| i64::from(*byte)),
        ValueType::ObjectId => Some(numbers::object_id_to_integer(value.bytes)),
        ValueType::Null | ValueType::Undefined => Some(0),
        _ => None,
    }
}

/// The value as an integer of 128 bits, for the types that have one.
pub(super) fn wide_number(value: Encoded<'_>) -> Option<i128> {
    match value.value_type {
        ValueType::String | ValueType::Code => numbers::text_to_integer(numbers::text(value.bytes)),
        ValueType::Binary => numbers::bytes_to_integer(numbers::binary(value.bytes)),
        ValueType::Decimal => numbers::bytes_to_integer(value.bytes),
        _ => None,
    }
}

/// The scale of each double of a stream.
fn plan_scales(values: &[Option<Encoded<'_>>]) -> Vec<u8> {
    // A scale that has served before is tried first; a lesser one would do for some, but seldom for those behind them.
    let mut last = 0;
    let doubles: Vec<(usize, f64, u8)> = values
        .iter()
        .enumerate()
        .filter_map(|(place, value)| {
            let value = (*value)?;
            let number = (value.value_type == ValueType::Double).then(|| numbers::double(value.bytes))?;
            if last == BITS_SCALE || double_to_integer(number, last).is_none() {
                last = least_scale(number, 0);
            }
            Some((place, number, last))
        })
        .collect();
    if doubles.is_empty() {
        return Vec::new();
    }
    let mut scales = vec![BITS_SCALE; values.len()];
    let mut rest = &doubles[..];
    while !rest.is_empty() {
        let (count, scale) = scaled_run(rest);
        let (run, behind) = rest.split_at(count.clamp(1, rest.len()));
        for (place, ..) in run {
            if let Some(planned) = scales.get_mut(*place) {
                *planned = scale;
            }
        }
        rest = behind;
    }
    scales
}

/// How many doubles one scale serves, and which.
fn scaled_run(doubles: &[(usize, f64, u8)]) -> (usize, u8) {
    let needs_bits = |(_, _, scale): &(usize, f64, u8)| *scale == BITS_SCALE;
    if doubles.first().is_some_and(needs_bits) {
        let mut count = 0;
        let mut scaled = 0;
        for double in doubles {
            scaled = if needs_bits(double) { 0 } else { scaled + 1 };
            count += 1;
            if scaled == SCALED_MIN {
                return (count - scaled, BITS_SCALE);
            }
        }
        return (count, BITS_SCALE);
    }
    let (mut scale, mut largest) = (0, 0.0_f64);
    for (count, (_, value, least)) in doubles.iter().enumerate() {
        let wanted = scale.max(*least);
        // The largest is the first that a finer scale does not serve.
        let bound = if value.abs() > largest.abs() { *value } else { largest };
        let serves = *least != BITS_SCALE
            && double_to_integer(bound, wanted).is_some()
            && double_to_integer(*value, wanted).is_some();
        let serves_earlier = wanted == scale
            || doubles.iter().take(count).all(|(_, value, _)| double_to_integer(*value, wanted).is_some());
        if !serves || !serves_earlier {
            return (count, scale);
        }
        (scale, largest) = (wanted, bound);
    }
    (doubles.len(), scale)
}
