//! A column that values are added to.
//!
//! A column may be followed by another one: a reader takes what stands before the end mark and goes on. Values come into a
//! [`GrowingStream`], which encodes each of them once. Documents and arrays are encoded together, so the last of them afresh each time:
//! only once there are [`SEGMENT_COUNT`] of them they are left as they are. A column that was read from a bucket is continued without a
//! look at its end.

use super::blocks::GrowingStream;
use super::{ColumnReader, Encoded, Step, damaged, encode, is_storable};
use crate::compress::SIZE_BYTES_MAX;
use pando_base::Result;
use pando_doc::ValueType;

/// So many documents are encoded together. Each segment begins with a whole document, which more of them would spare; all of the last
/// one are encoded with each batch.
const SEGMENT_COUNT: usize = 96;
/// The mark behind the last block.
const END: u8 = 0;

/// A column to be continued.
#[derive(Clone, Debug, Default)]
pub struct ColumnBuilder {
    /// Blocks that stay, without the end mark.
    done: Vec<u8>,
    /// The values behind them, up to the first document.
    stream: GrowingStream,
    /// The values from there on: their types and where their bytes end. Nothing is in the stream then.
    tail: Vec<Option<(ValueType, usize)>>,
    tail_bytes: Vec<u8>,
    /// It was given a value that no column takes.
    is_unstorable: bool,
}

impl ColumnBuilder {
    /// A column of so many missing values.
    pub fn missing(count: usize) -> ColumnBuilder {
        let mut builder = ColumnBuilder::default();
        builder.skip(count);
        builder.write(&mut Vec::new());
        builder
    }

    /// Continues a column that was just encoded.
    pub fn trusted(column: &[u8]) -> ColumnBuilder {
        let done = column.strip_suffix(&[END]).unwrap_or(column).to_vec();
        ColumnBuilder { done, ..ColumnBuilder::default() }
    }

    /// Continues a stored column, which must have no more than so many values and gets so many. Tells also how many bytes the values have.
    /// A column that saves little is encoded afresh with the next values: it may be one of many short segments.
    pub fn resume(column: &[u8], count: usize) -> Result<(ColumnBuilder, usize)> {
        let afresh = ColumnBuilder::read(column, count)?;
        let (read, size_bytes) = (afresh.tail.len(), afresh.tail_bytes.len());
        let mut builder = if column.len() > size_bytes / 4 { afresh } else { ColumnBuilder::trusted(column) };
        builder.skip(count - read);
        Ok((builder, size_bytes))
    }

    /// The values of a column, none of them encoded.
    fn read(column: &[u8], count_max: usize) -> Result<ColumnBuilder> {
        let mut reader = ColumnReader::default();
        let mut builder = ColumnBuilder::default();
        loop {
            match reader.next(column, &mut builder.tail_bytes)? {
                Step::End => return Ok(builder),
                Step::Missing => builder.tail.push(None),
                Step::Value(value_type) => builder.tail.push(Some((value_type, builder.tail_bytes.len()))),
            }
            if builder.tail.len() > count_max || builder.tail_bytes.len() > SIZE_BYTES_MAX {
                return Err(damaged(6_067_609));
            }
        }
    }

    /// The column with all of its values encoded together; none if it cannot be read.
    pub fn reencoded(column: &[u8], count_max: usize) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(column.len());
        ColumnBuilder::read(column, count_max).ok()?.write(&mut out).then_some(out)
    }

    /// Adds a value.
    pub fn push(&mut self, value: Encoded<'_>) {
        self.is_unstorable |= !is_storable(value);
        let is_nested = matches!(value.value_type, ValueType::Document | ValueType::Array);
        if self.tail.is_empty() && !is_nested {
            return self.stream.push(value);
        }
        self.end_stream();
        self.tail_bytes.extend_from_slice(value.bytes);
        self.tail.push(Some((value.value_type, self.tail_bytes.len())));
    }

    /// Adds missing values.
    pub fn skip(&mut self, count: usize) {
        match self.tail.is_empty() {
            true => self.stream.skip(count),
            false => self.tail.extend(std::iter::repeat_n(None, count)),
        }
    }

    /// What is in the stream stays as it is.
    fn end_stream(&mut self) {
        if !self.stream.is_empty() {
            std::mem::take(&mut self.stream).write_to(&mut self.done);
        }
    }

    /// Appends the column; false if a value cannot be in one.
    pub fn write(&mut self, out: &mut Vec<u8>) -> bool {
        if self.is_unstorable {
            return false;
        }
        out.extend_from_slice(&self.done);
        if self.tail.is_empty() {
            self.stream.write_to(out);
            out.push(END);
            return true;
        }
        let mut start = 0;
        let values: Vec<Option<Encoded<'_>>> = self
            .tail
            .iter()
            .map(|value| {
                let (value_type, end) = (*value)?;
                let bytes = self.tail_bytes.get(start..end).unwrap_or_default();
                start = end;
                Some(Encoded { value_type, bytes })
            })
            .collect();
        let Some(column) = encode(&values) else { return false };
        out.extend_from_slice(&column);
        if self.tail.len() >= SEGMENT_COUNT {
            self.done.extend_from_slice(column.strip_suffix(&[END]).unwrap_or(&column));
            self.tail.clear();
            self.tail_bytes.clear();
        }
        true
    }

    /// How much memory it takes.
    pub fn size_bytes(&self) -> usize {
        self.done.capacity()
            + self.stream.size_bytes()
            + self.tail_bytes.capacity()
            + self.tail.capacity() * size_of::<Option<(ValueType, usize)>>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::OwnedEncoded;
    use crate::column::tests::random_rows;

    fn written(builder: &mut ColumnBuilder) -> Vec<u8> {
        let mut out = Vec::new();
        assert!(builder.write(&mut out));
        out
    }

    #[test]
    fn x29_a_continued_column_has_all_values() {
        for seed in 0..200 {
            let rows = random_rows(seed);
            let mut builder = ColumnBuilder::default();
            let mut expected: Vec<Option<OwnedEncoded>> = Vec::new();
            for (step, chunk) in rows.chunks(1 + seed as usize % 23).enumerate() {
                for row in chunk {
                    match row.view().get_raw("v") {
                        Some(value) => {
                            builder.push(Encoded { value_type: value.value_type, bytes: value.value_bytes });
                            expected.push(Some((value.value_type, value.value_bytes.to_vec())));
                        }
                        None => {
                            builder.skip(1);
                            expected.push(None);
                        }
                    }
                }
                let column = written(&mut builder);
                assert_eq!(ColumnReader::read_all(&column, usize::MAX).unwrap(), expected, "seed {seed}");
                // Now and then it is taken up from what was stored.
                if step % 5 == 4 {
                    builder = ColumnBuilder::resume(&column, expected.len()).unwrap().0;
                }
            }
        }
    }

    #[test]
    fn x29_a_column_that_grows_is_hardly_larger_than_one_at_once() {
        let (mut state, mut hundredths) = (11_u64, 2150_i64);
        let mut builder = ColumnBuilder::default();
        let mut values = Vec::new();
        for place in 0..1000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            hundredths += (state >> 40) as i64 % 11 - 5;
            let value = (hundredths as f64 / 100.0).to_le_bytes();
            builder.push(Encoded { value_type: ValueType::Double, bytes: &value });
            values.push(value);
            if place % 10 == 9 {
                written(&mut builder);
            }
        }
        let values: Vec<_> =
            values.iter().map(|bytes| Some(Encoded { value_type: ValueType::Double, bytes: &bytes[..] })).collect();
        let (grown, at_once) = (written(&mut builder).len(), encode(&values).unwrap().len());
        assert!(grown <= at_once + at_once / 20, "{grown} and {at_once} bytes");
    }

    #[test]
    fn x29_a_column_that_begins_late_has_missing_values_before() {
        let mut builder = ColumnBuilder::missing(200);
        builder.push(Encoded { value_type: ValueType::Int32, bytes: &7_i32.to_le_bytes() });
        let values = ColumnReader::read_all(&written(&mut builder), usize::MAX).unwrap();
        assert_eq!(values.len(), 201);
        assert!(values.iter().take(200).all(Option::is_none) && values.last().unwrap().is_some());
        let column = written(&mut builder);
        assert!(ColumnBuilder::resume(&column, 200).is_err(), "more values than the bucket has");
        let (mut padded, _) = ColumnBuilder::resume(&column, 205).unwrap();
        assert_eq!(ColumnReader::read_all(&written(&mut padded), usize::MAX).unwrap().len(), 205);
    }
}
