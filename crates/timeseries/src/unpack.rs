//! Measurements out of a bucket, one after the other.
//!
//! Only the fields that are wanted are read. A measurement has the time first, then the meta value, then the other fields in the
//! order of the columns.

use crate::column::{COLUMN_SUBTYPE, ColumnReader, Step};
use crate::{Rows, TimeseriesOptions};
use bytes::Bytes;
use pando_base::{Error, Result};
use pando_doc::{Doc, DocRef, Value, ValueType};
use std::collections::HashSet;

/// Which fields of measurements are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldSet {
    /// These and no others.
    Only(HashSet<String>),
    /// All but these.
    AllBut(HashSet<String>),
}

impl FieldSet {
    /// All fields.
    pub fn all() -> FieldSet {
        FieldSet::AllBut(HashSet::new())
    }

    /// True if the field is wanted.
    pub fn contains(&self, name: &[u8]) -> bool {
        let is_in = |names: &HashSet<String>| std::str::from_utf8(name).is_ok_and(|name| names.contains(name));
        match self {
            FieldSet::Only(names) => is_in(names),
            FieldSet::AllBut(names) => !is_in(names),
        }
    }
}

/// A column being read: of a compressed bucket, or of an open one.
enum Cells {
    Compressed { column: Bytes, reader: ColumnReader },
    Plain { column: Doc, at: usize },
}

/// A field of the measurements.
struct Field {
    /// Its name, with a zero behind it.
    name: Vec<u8>,
    cells: Cells,
}

/// Reads the measurements of a bucket.
pub struct BucketReader {
    time: Cells,
    time_name: Vec<u8>,
    wants_time: bool,
    /// The meta value as an encoded element.
    meta: Option<Vec<u8>>,
    fields: Vec<Field>,
    /// The largest measurement so far, so that the next has room.
    size_bytes: usize,
}

fn malformed(what: &str) -> Error {
    Error::location(5_346_510, format!("The $_internalUnpackBucket stage requires the bucket's {what}"))
}

impl BucketReader {
    /// Reads this bucket.
    pub fn new(bucket: &Doc, options: &TimeseriesOptions, wanted: &FieldSet) -> Result<BucketReader> {
        let view = bucket.view();
        let data = match view.get("data") {
            Some(Value::Document(data)) => data,
            _ => return Err(malformed("data field to be an object")),
        };
        let time_field = options.time_field.as_bytes();
        let mut time = None;
        let mut fields = Vec::new();
        for element in data.elements() {
            let is_time = **element.name == *time_field;
            if !is_time && !wanted.contains(element.name) {
                continue;
            }
            let cells = match element.value {
                Value::Binary { subtype: COLUMN_SUBTYPE, bytes } => {
                    Cells::Compressed { column: bucket.share(bytes), reader: ColumnReader::default() }
                }
                Value::Document(column) => Cells::Plain { column: Doc::trusted(bucket.share(column.bytes())), at: 4 },
                _ => return Err(malformed("columns to be objects or columns")),
            };
            match is_time {
                true => time = Some(cells),
                false => fields.push(Field { name: with_zero(element.name), cells }),
            }
        }
        if options.meta_field.is_none() && view.contains("meta") {
            let reason = "The $_internalUnpackBucket stage requires that metadata cannot be present in a bucket when no \
                          metaField parameter is provided";
            return Err(Error::location(5_369_601, reason));
        }
        let meta_field = options.meta_field.as_deref().filter(|meta| wanted.contains(meta.as_bytes()));
        let meta = meta_field.and_then(|meta| {
            let value = view.get_raw("meta")?;
            let mut element = vec![value.value_type as u8];
            element.extend_from_slice(meta.as_bytes());
            element.push(0);
            element.extend_from_slice(value.value_bytes);
            Some(element)
        });
        Ok(BucketReader {
            time: time.ok_or_else(|| malformed("time column"))?,
            time_name: with_zero(time_field),
            wants_time: wanted.contains(time_field),
            meta,
            fields,
            size_bytes: 64,
        })
    }

    /// All measurements at once, if the bucket is compressed and not too large. None was read before.
    pub fn rows(&self) -> Result<Option<Rows>> {
        let packed = |cells: &Cells| match cells {
            Cells::Compressed { column, .. } => Some(column.clone()),
            Cells::Plain { .. } => None,
        };
        let Some(times) = packed(&self.time) else { return Ok(None) };
        let columns: Option<Vec<(&[u8], Bytes)>> =
            self.fields.iter().map(|field| Some((without_zero(&field.name), packed(&field.cells)?))).collect();
        let Some(columns) = columns else { return Ok(None) };
        let columns = columns.iter().map(|(name, column)| (*name, &column[..]));
        Rows::read((without_zero(&self.time_name), &times), self.meta.clone(), columns)
    }

    /// The next measurement.
    pub fn read(&mut self) -> Result<Option<Doc>> {
        let mut out = Vec::with_capacity(self.size_bytes);
        out.extend_from_slice(&[0; 4]);
        let mut row = Vec::new();
        if !append_field(&mut self.time, &self.time_name, &mut row, &mut out, true)? {
            return Ok(None);
        }
        if !self.wants_time {
            out.truncate(4);
        }
        if let Some(meta) = &self.meta {
            out.extend_from_slice(meta);
        }
        for field in &mut self.fields {
            append_field(&mut field.cells, &field.name, &mut row, &mut out, false)?;
        }
        out.push(0);
        let size_bytes = i32::try_from(out.len()).map_err(|_| malformed("measurements to be smaller"))?;
        if let Some(length) = out.get_mut(..4) {
            length.copy_from_slice(&size_bytes.to_le_bytes());
        }
        self.size_bytes = self.size_bytes.max(out.len());
        Ok(Some(Doc::trusted(out)))
    }
}

fn with_zero(name: &[u8]) -> Vec<u8> {
    let mut name = name.to_vec();
    name.push(0);
    name
}

fn without_zero(name: &[u8]) -> &[u8] {
    name.strip_suffix(&[0]).unwrap_or(name)
}

/// Appends the value of a field, if the measurement has one. In an open bucket the name of the time's value is that of the measurement.
fn append_field(cells: &mut Cells, name: &[u8], row: &mut Vec<u8>, out: &mut Vec<u8>, is_time: bool) -> Result<bool> {
    let start = out.len();
    match cells {
        Cells::Compressed { column, reader } => {
            out.push(0);
            out.extend_from_slice(name);
            match reader.next(column, out)? {
                Step::Value(value_type) => set_type(out, start, value_type),
                Step::Missing | Step::End => {
                    out.truncate(start);
                    return Ok(false);
                }
            }
        }
        Cells::Plain { column, at } => {
            let Some(element) = column.view().element_at(*at) else { return Ok(false) };
            if is_time {
                row.clear();
                row.extend_from_slice(element.name);
            } else if **element.name != **row {
                return Ok(false);
            }
            *at += element.bytes.len();
            out.push(element.value_type as u8);
            out.extend_from_slice(name);
            out.extend_from_slice(element.value_bytes);
        }
    }
    Ok(true)
}

fn set_type(out: &mut [u8], start: usize, value_type: ValueType) {
    if let Some(code) = out.get_mut(start) {
        *code = value_type as u8;
    }
}

impl std::fmt::Debug for BucketReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BucketReader").field("fields", &self.fields.len()).finish_non_exhaustive()
    }
}

/// How many measurements a bucket has: as it says itself, if it is compressed.
pub fn measurement_count(bucket: DocRef<'_>, options: &TimeseriesOptions) -> usize {
    let control = bucket.get("control").and_then(|control| control.as_document());
    let told = control.and_then(|control| control.get("count")).and_then(|count| count.to_i64_exact());
    told.and_then(|told| usize::try_from(told).ok()).or_else(|| count(bucket, options)).unwrap_or(0)
}

/// How many measurements a bucket has; none if that cannot be told.
pub(crate) fn count(bucket: DocRef<'_>, options: &TimeseriesOptions) -> Option<usize> {
    let data = bucket.get("data")?.as_document()?;
    match data.get(&options.time_field)? {
        Value::Document(column) => Some(column.field_count()),
        Value::Binary { subtype: COLUMN_SUBTYPE, bytes } => {
            let mut reader = ColumnReader::default();
            let (mut count, mut value) = (0, Vec::new());
            while let Step::Value(_) | Step::Missing = reader.next(bytes, &mut value).ok()? {
                value.clear();
                count += 1;
            }
            Some(count)
        }
        _ => None,
    }
}
