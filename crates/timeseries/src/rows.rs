//! Many measurements of a compressed bucket at once, column by column.
//!
//! For who looks at a few fields of all measurements: no documents are made, and a value costs what its column's next step costs.

use crate::column::{ColumnReader, Step};
use bstr::BStr;
use pando_base::Result;
use pando_doc::{Doc, RawElement, Value, ValueType};

/// A bucket with more measurements is read one by one.
const ROWS_MAX: usize = 10_000;
/// Nor are columns taken that unpack to more.
const COLUMN_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The values of one field, missing ones among them.
#[derive(Debug, Default)]
pub struct RowValues {
    /// The type of each value and where its bytes end.
    cells: Vec<(Option<ValueType>, usize)>,
    bytes: Vec<u8>,
}

impl RowValues {
    /// Reads a column of at most so many values; none if it has more, or too large ones.
    fn read(column: &[u8], rows_max: usize) -> Result<Option<RowValues>> {
        let mut reader = ColumnReader::default();
        let mut values = RowValues::default();
        loop {
            let cell = match reader.next(column, &mut values.bytes)? {
                Step::End => return Ok(Some(values)),
                Step::Missing => None,
                Step::Value(value_type) => Some(value_type),
            };
            if values.cells.len() == rows_max || values.bytes.len() > COLUMN_BYTES_MAX {
                return Ok(None);
            }
            values.cells.push((cell, values.bytes.len()));
        }
    }

    /// The value of a measurement.
    pub fn get(&self, row: usize) -> Option<Value<'_>> {
        let (value_type, end) = *self.cells.get(row)?;
        let start = row.checked_sub(1).and_then(|before| self.cells.get(before)).map_or(0, |(_, end)| *end);
        let value_bytes = self.bytes.get(start..end)?;
        RawElement { value_type: value_type?, name: BStr::new(b""), value_bytes, bytes: value_bytes }.value()
    }
}

/// The measurements of a bucket.
#[derive(Debug)]
pub struct Rows {
    times: Vec<i64>,
    time_values: RowValues,
    /// The name of the time field.
    time_name: Vec<u8>,
    /// The meta value as an encoded element.
    meta: Option<Vec<u8>>,
    columns: Vec<(Vec<u8>, RowValues)>,
}

impl Rows {
    /// Reads these columns; none if they are too large, or the times have not the order of time.
    pub(crate) fn read<'a>(
        (time_name, times): (&[u8], &[u8]),
        meta: Option<Vec<u8>>,
        columns: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    ) -> Result<Option<Rows>> {
        let Some(time_values) = RowValues::read(times, ROWS_MAX)? else { return Ok(None) };
        let count = time_values.cells.len();
        let times: Option<Vec<i64>> =
            (0..count).map(|row| time_values.get(row).and_then(|time| time.as_date())).collect();
        let Some(times) = times.filter(|times| times.is_sorted()) else { return Ok(None) };
        let mut read = Vec::new();
        for (name, column) in columns {
            let Some(values) = RowValues::read(column, count)? else { return Ok(None) };
            read.push((name.to_vec(), values));
        }
        Ok(Some(Rows { times, time_values, time_name: time_name.to_vec(), meta, columns: read }))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// True without any.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// The values of a field, if any measurement has one.
    pub fn values(&self, name: &str) -> Option<&RowValues> {
        if self.time_name == name.as_bytes() {
            return Some(&self.time_values);
        }
        self.columns.iter().find(|(column, _)| column == name.as_bytes()).map(|(_, values)| values)
    }

    /// The time and the meta value of a measurement, as a document without its other fields.
    pub fn head(&self, row: usize) -> Doc {
        let mut out = Vec::with_capacity(64);
        out.extend_from_slice(&[0; 4]);
        if let Some(time) = self.times.get(row) {
            out.push(ValueType::DateTime as u8);
            out.extend_from_slice(&self.time_name);
            out.push(0);
            out.extend_from_slice(&time.to_le_bytes());
        }
        out.extend_from_slice(self.meta.as_deref().unwrap_or_default());
        out.push(0);
        let size_bytes = i32::try_from(out.len()).unwrap_or(i32::MAX);
        if let Some(length) = out.get_mut(..4) {
            length.copy_from_slice(&size_bytes.to_le_bytes());
        }
        Doc::trusted(out)
    }
}
