//! One stream of values as blocks: literals and words.
//!
//! The whole stream is there before anything is written. So the scale of doubles is chosen with what comes in view: as long as a scale
//! serves, it is kept; doubles that no scale serves are written by their bits.

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

/// Writes one stream.
struct Writer<'a> {
    blocks: Vec<Block>,
    packer: Packer,
    /// The last value, and what it is as a number.
    previous: Option<Encoded<'a>>,
    number: i64,
    delta: i64,
    wide: Option<i128>,
    scale: u8,
}

/// The blocks of a stream; the first value is told apart from the reference, if there is one.
pub(super) fn encode_stream(values: &[Option<Encoded<'_>>], reference: Option<Encoded<'_>>) -> Vec<Block> {
    let scales = plan_scales(values);
    let mut writer = Writer {
        blocks: Vec::new(),
        packer: Packer::new(0),
        previous: None,
        number: 0,
        delta: 0,
        wide: None,
        scale: BITS_SCALE,
    };
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
    writer.blocks
}

impl<'a> Writer<'a> {
    fn write(&mut self, place: usize, value: Encoded<'a>, scale: u8) {
        if self.previous.is_none_or(|previous| previous.value_type != value.value_type) {
            return self.literal(place, value, scale);
        }
        if value.value_type == ValueType::Double && scale != self.scale {
            self.end_words();
            let previous = self.previous.map_or(0.0, |previous| numbers::double(previous.bytes));
            match double_to_integer(previous, scale) {
                Some(number) => (self.number, self.scale) = (number, scale),
                None => return self.literal(place, value, scale),
            }
        }
        let written = match is_wide(value.value_type) {
            true => self.write_wide(value),
            false => self.write_narrow(value),
        };
        match written {
            true => self.previous = Some(value),
            false => self.literal(place, value, scale),
        }
    }

    fn write_wide(&mut self, value: Encoded<'a>) -> bool {
        if self.previous == Some(value) {
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
        let previous = self.previous?;
        // Binary values tell neither their length nor their subtype.
        let is_alike = value.value_type != ValueType::Binary || value.bytes.get(..5) == previous.bytes.get(..5);
        is_alike.then(|| wide_number(value)).flatten()
    }

    fn write_narrow(&mut self, value: Encoded<'a>) -> bool {
        let is_same = self.previous == Some(value);
        let Some(number) = narrow_number(value, self.scale) else {
            return is_same && self.packer.append(Some(0));
        };
        if value.value_type == ValueType::ObjectId {
            let previous = self.previous.map_or(&[][..], |previous| previous.bytes);
            if numbers::object_id_process(previous) != numbers::object_id_process(value.bytes) {
                return false;
            }
        }
        let delta = number.wrapping_sub(self.number);
        let told = if uses_delta_of_delta(value.value_type) { delta.wrapping_sub(self.delta) } else { delta };
        let is_written = self.packer.append(Some(zigzag(told)));
        if is_written {
            (self.number, self.delta) = (number, delta);
        }
        is_written
    }

    fn literal(&mut self, place: usize, value: Encoded<'a>, scale: u8) {
        self.end_words();
        let mut bytes = Vec::with_capacity(value.bytes.len() + 2);
        bytes.extend_from_slice(&[value.value_type as u8, 0]);
        bytes.extend_from_slice(value.bytes);
        self.blocks.push(Block { start: place, bytes });
        self.packer = Packer::new(place + 1);
        self.remember(value, scale);
    }

    /// What comes next is told apart from this.
    fn remember(&mut self, value: Encoded<'a>, scale: u8) {
        self.scale = match value.value_type {
            // A reference need not serve the scale of what follows.
            ValueType::Double => least_scale(numbers::double(value.bytes), scale),
            _ => BITS_SCALE,
        };
        self.previous = Some(value);
        self.delta = 0;
        self.number = narrow_number(value, self.scale).unwrap_or(0);
        self.wide = wide_number(value);
    }

    /// Writes the words so far as blocks of their own.
    fn end_words(&mut self) {
        self.packer.flush();
        let words = self.packer.take_words();
        // 0x90 is the scale of 1.
        let control = if self.scale == BITS_SCALE { 0x80 } else { 0x90 + (self.scale << 4) };
        for chunk in words.chunks(WORDS_MAX) {
            let mut bytes = Vec::with_capacity(1 + chunk.len() * 8);
            bytes.push(control | (chunk.len() as u8 - 1));
            bytes.extend(chunk.iter().flat_map(|word: &Word| word.word.to_le_bytes()));
            let start = chunk.first().map_or(0, |word| word.start);
            self.blocks.push(Block { start, bytes });
        }
    }
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
