//! Buckets as they are stored, and taken up again.
//!
//! A small bucket is stored as it is filled. A bucket that becomes large by many small batches is *packed* while it is open: its columns are
//! compressed, and what comes next is added to them. With each batch the whole bucket is written, and this is what makes that cheap.

use super::{Bucket, Column, Values};
use crate::column::{COLUMN_SUBTYPE, ColumnBuilder};
use crate::compress::{COUNT_MAX, compress, elements_of, is_compressed};
use crate::extent::Extent;
use crate::{TimeseriesOptions, VERSION_COMPRESSED, VERSION_OPEN};
use pando_base::{Error, ErrorCode, Result, bail};
use pando_doc::{Doc, DocBuilder, DocRef, Value};

/// An open bucket with so many measurements is packed, once it was written so often: one that is filled by large batches is compressed soon
/// enough when it is full.
const PACKED_COUNT: usize = 128;
const PACKED_WRITES: u32 = 8;
/// Roughly what a value takes in an open bucket beside its bytes.
const CELL_BYTES: usize = 5;

/// A bucket on its way to storage.
#[derive(Debug)]
pub struct Stored {
    /// The bucket.
    pub document: Doc,
    /// How it differs from what was stored before, as the oplog tells it; none if somebody has to compare them.
    pub change: Option<Doc>,
}

fn malformed(what: &str) -> Error {
    Error::bad_value(format!("Bucket {what} is malformed"))
}

impl Bucket {
    /// Takes up a stored bucket again, compressed or not.
    pub fn reopen(stored: DocRef<'_>, options: &TimeseriesOptions) -> Result<Bucket> {
        let id = stored.get("_id").and_then(|id| id.as_object_id()).ok_or_else(|| malformed("_id"))?;
        let control = stored.get("control").and_then(|control| control.as_document());
        let control = control.ok_or_else(|| malformed("control field"))?;
        let extreme = |name: &str| control.get(name).and_then(|value| value.as_document());
        let least = extreme("min").ok_or_else(|| malformed("control.min field"))?;
        let greatest = extreme("max").ok_or_else(|| malformed("control.max field"))?;
        let start_ms = least.get(&options.time_field).and_then(|time| time.as_date());
        let mut bucket = Bucket {
            meta: stored.get("meta").map(|meta| meta.to_owned()),
            ..Bucket::new(id, start_ms.ok_or_else(|| malformed("control.min field"))?, None, options)
        };
        (bucket.least, bucket.greatest) = (Extent::parse(least), Extent::parse(greatest));
        let data = stored.get("data").and_then(|data| data.as_document()).ok_or_else(|| malformed("data field"))?;
        match is_compressed(stored) {
            true => {
                let count = control.get("count").and_then(|count| count.to_i64_exact());
                let count = count.and_then(|count| usize::try_from(count).ok()).filter(|count| *count <= COUNT_MAX);
                bucket.count = count.ok_or_else(|| malformed("control.count field"))?;
                let latest = greatest.get(&options.time_field).and_then(|time| time.as_date());
                bucket.latest_ms = latest.ok_or_else(|| malformed("control.max field"))?;
                bucket.read_packed(data, options)?;
                bucket.is_packed = true;
            }
            false => {
                let times = data.get(&options.time_field).and_then(|times| times.as_document());
                bucket.count = times.map_or(0, DocRef::field_count);
                bucket.read_plain(data)?;
                bucket.size_bytes = stored.size_bytes();
            }
        }
        if bucket.count == 0 {
            bail!(ErrorCode::BadValue, "Bucket data field is malformed (missing a valid time column)");
        }
        bucket.is_as_stored = has_usual_fields(stored);
        Ok(bucket)
    }

    fn read_plain(&mut self, data: DocRef<'_>) -> Result<()> {
        for element in data.elements() {
            let column = element.value.as_document().ok_or_else(|| malformed("data field"))?;
            let elements = column.element_bytes().to_vec();
            let stored_bytes = Some(elements.len());
            self.push_column(element.name, Values::Plain { elements, stored_bytes });
        }
        Ok(())
    }

    fn read_packed(&mut self, data: DocRef<'_>, options: &TimeseriesOptions) -> Result<()> {
        let mut has_times = false;
        for element in data.elements() {
            let Value::Binary { subtype: COLUMN_SUBTYPE, bytes } = element.value else {
                return Err(malformed("data field"));
            };
            let (builder, size_bytes) = ColumnBuilder::resume(bytes, self.count)?;
            self.size_bytes += size_bytes + self.count * CELL_BYTES;
            has_times |= **element.name == *options.time_field.as_bytes();
            self.push_column(element.name, Values::Packed { builder: Box::new(builder), rows: self.count });
        }
        if !has_times {
            bail!(ErrorCode::BadValue, "Bucket data field is malformed (missing a valid time column)");
        }
        Ok(())
    }

    /// The bucket as it is to be stored now. What is added afterwards is told apart from that.
    pub fn store(&mut self, options: &TimeseriesOptions) -> Stored {
        self.writes = self.writes.saturating_add(1);
        if !self.is_packed && self.count >= PACKED_COUNT && self.writes >= PACKED_WRITES && !self.stays_plain {
            return self.pack(options);
        }
        let was_as_stored = std::mem::replace(&mut self.is_as_stored, true);
        if self.is_packed {
            let document = self.to_doc();
            let change = was_as_stored.then(|| replaced_contents(document.view()));
            return Stored { document, change };
        }
        let change = was_as_stored.then(|| self.additions());
        for column in &mut self.columns {
            if let Values::Plain { elements, stored_bytes } = &mut column.values {
                *stored_bytes = Some(elements.len());
            }
        }
        Stored { document: self.to_doc(), change }
    }

    /// Compresses what was plain so far.
    fn pack(&mut self, options: &TimeseriesOptions) -> Stored {
        let plain = self.to_doc();
        let packed = compress(plain.view(), options).and_then(|packed| {
            let data = packed.get("data")?.as_document()?;
            let columns = data.elements().map(|element| match element.value {
                Value::Binary { bytes, .. } => {
                    let values = Values::Packed { builder: Box::new(ColumnBuilder::trusted(bytes)), rows: self.count };
                    Some((element.name.to_vec(), values))
                }
                _ => None,
            });
            let columns = columns.collect::<Option<Vec<_>>>()?;
            Some((packed, columns))
        });
        let Some((document, columns)) = packed else {
            self.stays_plain = true;
            return self.store(options);
        };
        let latest = document.get("control").and_then(|control| control.as_document()?.get("max"));
        let latest = latest.and_then(|latest| latest.as_document()?.get(&options.time_field)?.as_date());
        self.latest_ms = latest.unwrap_or(i64::MAX);
        self.columns.clear();
        self.places.clear();
        columns.into_iter().for_each(|(name, values)| self.push_column(&name, values));
        self.is_packed = true;
        let was_as_stored = std::mem::replace(&mut self.is_as_stored, true);
        let change = was_as_stored.then(|| replaced_contents(document.view()));
        Stored { document, change }
    }

    /// The bucket with its columns as they were before they were packed.
    pub(super) fn unpack(&mut self) -> Result<()> {
        for column in &mut self.columns {
            if let Values::Packed { builder, .. } = &mut column.values {
                let mut packed = Vec::new();
                if !builder.write(&mut packed) {
                    return Err(malformed("data field"));
                }
                column.values = Values::Plain { elements: elements_of(&packed)?, stored_bytes: None };
            }
        }
        (self.is_packed, self.is_as_stored) = (false, false);
        Ok(())
    }

    /// The bucket as it is.
    pub fn to_doc(&mut self) -> Doc {
        let mut out = DocBuilder::with_capacity(if self.is_packed { 2048 } else { self.size_bytes + 256 });
        out.append("_id", self.id);
        self.append_control(&mut out);
        out.append_some("meta", self.meta());
        let data = out.begin_document("data");
        let mut packed = Vec::new();
        for column in &mut self.columns {
            match &mut column.values {
                Values::Plain { elements, .. } => {
                    let values = out.begin_document(&column.name);
                    out.append_element_bytes(elements);
                    out.end(values);
                }
                Values::Packed { builder, .. } => {
                    packed.clear();
                    let is_written = builder.write(&mut packed);
                    debug_assert!(is_written, "values that no column takes are not added");
                    out.append(&column.name, Value::Binary { subtype: COLUMN_SUBTYPE, bytes: &packed });
                }
            }
        }
        out.end(data);
        out.finish()
    }

    fn append_control(&self, out: &mut DocBuilder) {
        let control = out.begin_document("control");
        out.append("version", if self.is_packed { VERSION_COMPRESSED } else { VERSION_OPEN });
        self.least.append_to("min", out);
        self.greatest.append_to("max", out);
        if self.is_packed {
            out.append("count", i32::try_from(self.count).unwrap_or(i32::MAX));
        }
        out.end(control);
    }

    /// What was added since the bucket was stored: the new extremes, and the values behind those that were there.
    fn additions(&self) -> Doc {
        let mut out = DocBuilder::new();
        out.append("$v", 2);
        let diff = out.begin_document("diff");
        let updated = out.begin_document("u");
        self.append_control(&mut out);
        out.end(updated);
        let data = out.begin_document("sdata");
        let is_new = |column: &&Column| matches!(column.values, Values::Plain { stored_bytes: None, .. });
        if self.columns.iter().any(|column| is_new(&column)) {
            let inserted = out.begin_document("i");
            for column in self.columns.iter().filter(is_new) {
                let values = out.begin_document(&column.name);
                out.append_element_bytes(column.added());
                out.end(values);
            }
            out.end(inserted);
        }
        for column in self.columns.iter().filter(|column| !is_new(column) && !column.added().is_empty()) {
            let mut name = b"s".to_vec();
            name.extend_from_slice(&column.name);
            let values = out.begin_document(&name);
            let inserted = out.begin_document("i");
            out.append_element_bytes(column.added());
            out.end(inserted);
            out.end(values);
        }
        out.end(data);
        out.end(diff);
        out.finish()
    }
}

impl Column {
    /// The elements behind those that were stored.
    fn added(&self) -> &[u8] {
        match &self.values {
            Values::Plain { elements, stored_bytes } => elements.get(stored_bytes.unwrap_or(0)..).unwrap_or_default(),
            Values::Packed { .. } => &[],
        }
    }
}

/// The change that puts other contents into a bucket.
fn replaced_contents(document: DocRef<'_>) -> Doc {
    let mut out = DocBuilder::with_capacity(document.size_bytes() + 64);
    out.append("$v", 2);
    let diff = out.begin_document("diff");
    let updated = out.begin_document("u");
    for name in ["control", "data"] {
        if let Some(element) = document.get_raw(name) {
            out.append_raw(element);
        }
    }
    out.end(updated);
    out.end(diff);
    out.finish()
}

/// True if the fields stand as they do in buckets of ours: then a change of some leaves them in their order.
fn has_usual_fields(bucket: DocRef<'_>) -> bool {
    let mut usual = ["_id", "control", "meta", "data"].into_iter();
    bucket.raw_elements().all(|element| usual.any(|name| element.name == name))
}
