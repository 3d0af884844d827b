//! A bucket that measurements are added to.
//!
//! `{_id, control: {version, min, max}, meta, data}`: `data` has a document for each field, in which the place of a measurement names its
//! value. The first four bytes of the `_id` are the start of the bucket in seconds.

use crate::compress::{decompress, is_compressed};
use crate::extent::{End, Extent};
use crate::{BucketLimits, TimeseriesOptions, VERSION_OPEN, measurement_meta};
use pando_base::{Error, ErrorCode, Result, bail};
use pando_doc::{Doc, DocBuilder, DocRef, ObjectId, OwnedValue, StringComparator, Value, ValueType};
use std::collections::HashMap;

/// Why a measurement does not go into a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Rollover {
    TimeForward,
    TimeBackward,
    Count,
    Size,
    CachePressure,
    SchemaChange,
}

/// The time of a measurement.
pub fn measurement_time(measurement: DocRef<'_>, options: &TimeseriesOptions) -> Result<i64> {
    match measurement.get(&options.time_field) {
        Some(Value::DateTime(time)) => Ok(time),
        _ => bail!(
            ErrorCode::BadValue,
            "'{}' must be present and contain a valid BSON UTC datetime value",
            options.time_field
        ),
    }
}

/// The id of a bucket that starts at this time. What else tells it apart is a new id's: so buckets with one start are in the order in
/// which they were made.
pub fn bucket_id(start_ms: i64, fresh: ObjectId) -> ObjectId {
    let mut bytes = *fresh.bytes();
    let seconds = start_ms.div_euclid(1000) as u32;
    for (to, from) in bytes.iter_mut().zip(seconds.to_be_bytes()) {
        *to = from;
    }
    ObjectId::from_bytes(bytes)
}

/// True if values of different kinds are at a path of the bucket, so that its extremes do not tell what is between them.
pub fn has_mixed_schema(bucket: DocRef<'_>) -> bool {
    let control = bucket.get("control").and_then(|control| control.as_document());
    let extremes =
        control.and_then(|control| Some((control.get("min")?.as_document()?, control.get("max")?.as_document()?)));
    extremes.is_some_and(|(least, greatest)| are_mixed(least, greatest))
}

fn are_mixed(least: DocRef<'_>, greatest: DocRef<'_>) -> bool {
    least.raw_elements().any(|element| {
        let Some(other) = greatest.get_raw(element.name) else { return true };
        let is_nested = matches!(element.value_type, ValueType::Document | ValueType::Array);
        element.value_type.canonical_order() != other.value_type.canonical_order()
            || (is_nested && are_mixed(DocRef::trusted(element.value_bytes), DocRef::trusted(other.value_bytes)))
    })
}

/// A field's values.
#[derive(Clone, Debug)]
struct Column {
    name: Vec<u8>,
    /// Encoded elements, named by their places.
    elements: Vec<u8>,
    /// So many bytes of them were stored before; none if the column is new.
    stored_bytes: Option<usize>,
}

/// An open bucket.
#[derive(Clone, Debug)]
pub struct Bucket {
    /// Its `_id`.
    pub id: ObjectId,
    start_ms: i64,
    meta: Option<OwnedValue>,
    least: Extent,
    greatest: Extent,
    columns: Vec<Column>,
    places: HashMap<Vec<u8>, usize>,
    count: usize,
    size_bytes: usize,
    is_kept_open: bool,
    /// It was stored as it is written now, so that what was added is all that is new.
    is_stored_open: bool,
}

/// A document with an empty document under an empty name.
const EMPTY_COLUMN_BYTES: usize = 12;

impl Bucket {
    /// A bucket without measurements. The meta value is normalized.
    pub fn new(id: ObjectId, start_ms: i64, meta: Option<OwnedValue>, options: &TimeseriesOptions) -> Bucket {
        let mut start = DocBuilder::new();
        start.append(&options.time_field, Value::DateTime(start_ms));
        Bucket {
            id,
            start_ms,
            meta,
            least: Extent::parse(start.finish().view()),
            greatest: Extent::default(),
            columns: Vec::new(),
            places: HashMap::new(),
            count: 0,
            size_bytes: 0,
            is_kept_open: false,
            is_stored_open: false,
        }
    }

    /// Takes up a stored bucket again, compressed or not.
    pub fn reopen(stored: DocRef<'_>, options: &TimeseriesOptions) -> Result<Bucket> {
        if is_compressed(stored) {
            let plain = decompress(stored, options)?;
            let bucket = Bucket::reopen(plain.view(), options)?;
            return Ok(Bucket { is_stored_open: false, ..bucket });
        }
        let malformed = |what: &str| Error::bad_value(format!("Bucket {what} is malformed"));
        let id = stored.get("_id").and_then(|id| id.as_object_id()).ok_or_else(|| malformed("_id"))?;
        let nested =
            |doc: DocRef<'_>, name: &str| doc.get(name).and_then(|value| value.as_document()).map(DocRef::to_doc);
        let control = nested(stored, "control").ok_or_else(|| malformed("control field"))?;
        let least = nested(control.view(), "min").ok_or_else(|| malformed("control.min field"))?;
        let greatest = nested(control.view(), "max").ok_or_else(|| malformed("control.max field"))?;
        let start_ms = least.get(&options.time_field).and_then(|time| time.as_date());
        let mut bucket = Bucket {
            meta: stored.get("meta").map(|meta| meta.to_owned()),
            ..Bucket::new(id, start_ms.ok_or_else(|| malformed("control.min field"))?, None, options)
        };
        (bucket.least, bucket.greatest) = (Extent::parse(least.view()), Extent::parse(greatest.view()));
        let data = nested(stored, "data").ok_or_else(|| malformed("data field"))?;
        for element in data.elements() {
            let column = element.value.as_document().ok_or_else(|| malformed("data field"))?;
            if **element.name == *options.time_field.as_bytes() {
                bucket.count = column.field_count();
            }
            let place = bucket.column(element.name);
            if let Some(to) = bucket.columns.get_mut(place) {
                to.elements.extend_from_slice(column.element_bytes());
                to.stored_bytes = Some(to.elements.len());
            }
        }
        if bucket.count == 0 {
            bail!(ErrorCode::BadValue, "Bucket data field is malformed (missing a valid time column)");
        }
        bucket.size_bytes = stored.size_bytes();
        bucket.is_stored_open = true;
        Ok(bucket)
    }

    /// How many measurements it has.
    pub fn count(&self) -> usize {
        self.count
    }

    /// When it starts.
    pub fn start_ms(&self) -> i64 {
        self.start_ms
    }

    /// The meta value of its measurements.
    pub fn meta(&self) -> Option<Value<'_>> {
        self.meta.as_ref().map(OwnedValue::view)
    }

    /// True once it is larger than others because its measurements are.
    pub fn is_kept_open(&self) -> bool {
        self.is_kept_open
    }

    fn column(&mut self, name: &[u8]) -> usize {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        let place = self.columns.len();
        self.columns.push(Column { name: name.to_vec(), elements: Vec::new(), stored_bytes: None });
        self.places.insert(name.to_vec(), place);
        place
    }

    /// Adds a measurement; else says why it does not fit. A bucket without measurements takes any.
    pub fn add(
        &mut self,
        measurement: DocRef<'_>,
        time_ms: i64,
        options: &TimeseriesOptions,
        limits: &BucketLimits,
        active_count: usize,
        strings: Option<&dyn StringComparator>,
    ) -> Option<Rollover> {
        let meta_field = options.meta_field.as_deref().map(str::as_bytes);
        let is_meta = |name: &[u8]| meta_field == Some(name);
        let growth = self.growth(measurement, options);
        if self.count > 0
            && let Some(reason) = self.rollover(measurement, time_ms, options, limits, active_count, growth)
        {
            return Some(reason);
        }
        let place = self.count.to_string();
        for element in measurement.raw_elements().filter(|element| !is_meta(element.name)) {
            let column = self.column(element.name);
            let Some(column) = self.columns.get_mut(column) else { continue };
            column.elements.push(element.value_type as u8);
            column.elements.extend_from_slice(place.as_bytes());
            column.elements.push(0);
            column.elements.extend_from_slice(element.value_bytes);
        }
        self.least.update(measurement, End::Least, strings, is_meta);
        self.greatest.update(measurement, End::Greatest, strings, is_meta);
        self.count += 1;
        self.size_bytes += growth;
        None
    }

    fn rollover(
        &mut self,
        measurement: DocRef<'_>,
        time_ms: i64,
        options: &TimeseriesOptions,
        limits: &BucketLimits,
        active_count: usize,
        growth: usize,
    ) -> Option<Rollover> {
        if time_ms < self.start_ms {
            return Some(Rollover::TimeBackward);
        }
        if !options.covers(self.start_ms, time_ms) {
            return Some(Rollover::TimeForward);
        }
        if self.count >= limits.count_max {
            return Some(Rollover::Count);
        }
        let size_bytes = self.size_bytes + growth;
        if size_bytes > limits.effective_size_bytes_max(active_count) {
            let is_large = self.count < limits.count_min;
            if !is_large || size_bytes > limits.absolute_size_bytes_max(active_count) {
                let is_pressed = limits.is_under_pressure(active_count);
                return Some(if is_pressed { Rollover::CachePressure } else { Rollover::Size });
            }
            self.is_kept_open = true;
        }
        let meta_field = options.meta_field.as_deref().map(str::as_bytes);
        let is_left_out = |name: &[u8]| meta_field == Some(name);
        let fits = self.least.fits(measurement, is_left_out) && self.greatest.fits(measurement, is_left_out);
        (!fits).then_some(Rollover::SchemaChange)
    }

    /// How much larger the measurement makes it: a column that is new brings its name and both extremes.
    fn growth(&self, measurement: DocRef<'_>, options: &TimeseriesOptions) -> usize {
        let digits = self.count.checked_ilog10().unwrap_or(0) as usize + 1;
        let mut growth = 0;
        for element in measurement.raw_elements() {
            if options.meta_field.as_deref().is_some_and(|meta| element.name == meta) {
                if self.count == 0 {
                    growth += element.value_bytes.len() + 1 + "meta".len();
                }
                continue;
            }
            if !self.places.contains_key(&**element.name) {
                growth += EMPTY_COLUMN_BYTES + element.name.len() + 2 * element.bytes.len();
            }
            growth += element.value_bytes.len() + 1 + digits + 1;
        }
        growth
    }

    /// The bucket as it is stored.
    pub fn to_doc(&self) -> Doc {
        let mut out = DocBuilder::with_capacity(self.size_bytes + 256);
        out.append("_id", self.id);
        self.append_control(&mut out);
        out.append_some("meta", self.meta());
        let data = out.begin_document("data");
        for column in &self.columns {
            let values = out.begin_document(&column.name);
            out.append_element_bytes(&column.elements);
            out.end(values);
        }
        out.end(data);
        out.finish()
    }

    fn append_control(&self, out: &mut DocBuilder) {
        let control = out.begin_document("control");
        out.append("version", VERSION_OPEN);
        self.least.append_to("min", out);
        self.greatest.append_to("max", out);
        out.end(control);
    }

    /// What was added since the bucket was taken up, as the oplog tells an update: the new extremes, and the values behind those that
    /// were there. None if the bucket was stored in another form.
    pub fn change(&self) -> Option<Doc> {
        if !self.is_stored_open {
            return None;
        }
        let mut out = DocBuilder::new();
        out.append("$v", 2);
        let diff = out.begin_document("diff");
        let updated = out.begin_document("u");
        self.append_control(&mut out);
        out.end(updated);
        let data = out.begin_document("sdata");
        if self.columns.iter().any(|column| column.stored_bytes.is_none()) {
            let inserted = out.begin_document("i");
            for column in self.columns.iter().filter(|column| column.stored_bytes.is_none()) {
                let values = out.begin_document(&column.name);
                out.append_element_bytes(&column.elements);
                out.end(values);
            }
            out.end(inserted);
        }
        for column in &self.columns {
            let added = column.stored_bytes.and_then(|stored| column.elements.get(stored..)).unwrap_or_default();
            if !added.is_empty() {
                let mut name = b"s".to_vec();
                name.extend_from_slice(&column.name);
                let values = out.begin_document(&name);
                let inserted = out.begin_document("i");
                out.append_element_bytes(added);
                out.end(inserted);
                out.end(values);
            }
        }
        out.end(data);
        out.end(diff);
        Some(out.finish())
    }

    /// True if a measurement of this meta value belongs to its source.
    pub fn is_of(&self, meta: Option<Value<'_>>) -> bool {
        match (self.meta(), meta) {
            (None, None) => true,
            (Some(own), Some(meta)) => own == meta,
            _ => false,
        }
    }

    /// The stored bucket says that nothing more goes into it.
    pub fn is_closed(stored: DocRef<'_>) -> bool {
        let control = stored.get("control").and_then(|control| control.as_document());
        control.and_then(|control| control.get("closed")).is_some_and(|closed| closed.is_true())
    }

    /// The meta value of a measurement as a bucket has it.
    pub fn meta_of(measurement: DocRef<'_>, options: &TimeseriesOptions) -> Option<OwnedValue> {
        let element = measurement_meta(measurement, options)?;
        element.value().map(crate::normalized)
    }
}
