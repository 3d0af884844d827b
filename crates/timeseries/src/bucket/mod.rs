//! A bucket that measurements are added to.
//!
//! `{_id, control: {version, min, max}, meta, data}`: `data` has a document for each field, in which the place of a measurement names its
//! value. The first four bytes of the `_id` are the start of the bucket in seconds.

mod shape;
mod stored;

pub use stored::Stored;

use crate::column::{ColumnBuilder, Encoded, is_storable};
use crate::extent::{End, Extent};
use crate::{BucketLimits, TimeseriesOptions, measurement_meta};
use pando_base::{ErrorCode, Result, bail};
use pando_doc::{DocBuilder, DocRef, ObjectId, OwnedValue, RawElement, StringComparator, Value, ValueType};
use shape::{Places, Shape};
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
/// which they were made. An id has room for the years 1970 to 2038 in their order; what starts before or after comes behind all of them, so
/// that the last bucket tells whether there is any such.
pub fn bucket_id(start_ms: i64, fresh: ObjectId) -> ObjectId {
    let mut bytes = *fresh.bytes();
    let seconds = start_ms.div_euclid(1000);
    let seconds = match i32::try_from(seconds) {
        Ok(seconds) => seconds as u32,
        Err(_) => seconds as u32 | OUT_OF_RANGE,
    };
    for (to, from) in bytes.iter_mut().zip(seconds.to_be_bytes()) {
        *to = from;
    }
    ObjectId::from_bytes(bytes)
}

/// The bit that the ids of buckets have which start before 1970 or after 2038.
const OUT_OF_RANGE: u32 = 1 << 31;

/// True for the id of a bucket that starts before 1970 or after 2038. Where the last one does not, the ids of all are in the order of their times.
pub fn is_out_of_range(id: ObjectId) -> bool {
    id.seconds() & OUT_OF_RANGE != 0
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
        let Some(other) = greatest.get_raw(element.name) else { return false };
        let is_nested = matches!(element.value_type, ValueType::Document | ValueType::Array);
        element.value_type.canonical_order() != other.value_type.canonical_order()
            || (is_nested && are_mixed(DocRef::trusted(element.value_bytes), DocRef::trusted(other.value_bytes)))
    })
}

/// A field and its values.
#[derive(Clone, Debug)]
struct Column {
    name: Vec<u8>,
    values: Values,
}

#[derive(Clone, Debug)]
enum Values {
    /// Encoded elements, named by their places. So many bytes of them were stored before; none if the column is new.
    Plain { elements: Vec<u8>, stored_bytes: Option<usize> },
    /// A compressed column with so many values, missing ones among them.
    Packed { builder: Box<ColumnBuilder>, rows: usize },
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
    /// Where columns are; only asked where the order of fields does not tell it.
    places: HashMap<Vec<u8>, usize>,
    count: usize,
    /// As large as it would be if it were not packed.
    size_bytes: usize,
    is_kept_open: bool,
    /// It was stored in the form that it has, so that what was added is all that is new.
    is_as_stored: bool,
    /// Its columns are compressed.
    is_packed: bool,
    /// The last time in a packed bucket, which has the order of time.
    latest_ms: i64,
    /// It has values that no column takes.
    stays_plain: bool,
    /// So often it was stored since it was taken up.
    writes: u32,
    /// The fields of the last measurement.
    shape: Shape,
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
            is_as_stored: false,
            is_packed: false,
            latest_ms: i64::MIN,
            stays_plain: false,
            writes: 0,
            shape: Shape::new(),
        }
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

    fn push_column(&mut self, name: &[u8], values: Values) {
        self.shape.clear();
        self.places.insert(name.to_vec(), self.columns.len());
        self.columns.push(Column { name: name.to_vec(), values });
    }

    /// Where the column is; most measurements have their fields in one order.
    fn place(&self, name: &[u8], guess: usize) -> Option<usize> {
        if self.columns.get(guess).is_some_and(|column| column.name == name) {
            return Some(guess);
        }
        self.places.get(name).copied()
    }

    /// Where the column is, which is made if there is none.
    fn column(&mut self, name: &[u8], guess: usize) -> usize {
        if let Some(place) = self.place(name, guess) {
            return place;
        }
        let values = match self.is_packed {
            true => Values::Packed { builder: Box::new(ColumnBuilder::missing(self.count)), rows: self.count },
            false => Values::Plain { elements: Vec::new(), stored_bytes: None },
        };
        self.push_column(name, values);
        self.columns.len() - 1
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
        if self.has_shape(measurement) {
            return self.add_alike(measurement, time_ms, options, limits, active_count, strings);
        }
        let meta_field = options.meta_field.as_deref().map(str::as_bytes);
        let is_meta = |name: &[u8]| meta_field == Some(name);
        let growth = self.growth(measurement, options);
        if self.count > 0
            && let Some(reason) = self.rollover(time_ms, options, limits, active_count, growth)
        {
            return Some(reason);
        }
        if self.count > 0 && !(self.least.fits(measurement, is_meta) && self.greatest.fits(measurement, is_meta)) {
            return Some(Rollover::SchemaChange);
        }
        if self.is_packed && (time_ms < self.latest_ms || !can_be_packed(measurement)) && self.unpack().is_err() {
            return Some(Rollover::SchemaChange);
        }
        let elements = measurement.raw_elements().filter(|element| !is_meta(element.name)).enumerate();
        let columns: Vec<(usize, RawElement<'_>)> =
            elements.map(|(guess, element)| (self.column(element.name, guess), element)).collect();
        match self.is_packed {
            true => self.add_packed(columns.into_iter(), time_ms),
            false => self.add_plain(columns.into_iter()),
        }
        self.least.update(measurement, End::Least, strings, is_meta);
        self.greatest.update(measurement, End::Greatest, strings, is_meta);
        self.count += 1;
        self.size_bytes += growth;
        self.learn_shape(measurement, options);
        None
    }

    /// Adds a measurement with the fields of the last one.
    fn add_alike(
        &mut self,
        measurement: DocRef<'_>,
        time_ms: i64,
        options: &TimeseriesOptions,
        limits: &BucketLimits,
        active_count: usize,
        strings: Option<&dyn StringComparator>,
    ) -> Option<Rollover> {
        let shape = std::mem::take(&mut self.shape);
        let fields = || {
            let fields = measurement.raw_elements().zip(&shape);
            fields.filter_map(|(element, field)| Some((element, field.places?)))
        };
        let cell_bytes = 2 + digits(self.count);
        let growth = fields().map(|(element, _)| element.value_bytes.len() + cell_bytes).sum();
        let mut reason = self.rollover(time_ms, options, limits, active_count, growth);
        let fits = |(element, places): (RawElement<'_>, Places)| {
            self.least.fits_at(places.least, element) && self.greatest.fits_at(places.greatest, element)
        };
        if reason.is_none() && !fields().all(fits) {
            reason = Some(Rollover::SchemaChange);
        }
        let is_storable = |element: RawElement<'_>| {
            is_storable(Encoded { value_type: element.value_type, bytes: element.value_bytes })
        };
        let stays_packed = time_ms >= self.latest_ms && fields().all(|(element, _)| is_storable(element));
        if reason.is_none() && self.is_packed && !stays_packed && self.unpack().is_err() {
            reason = Some(Rollover::SchemaChange);
        }
        if reason.is_none() {
            let columns = fields().map(|(element, places)| (places.column, element));
            match self.is_packed {
                true => self.add_packed(columns, time_ms),
                false => self.add_plain(columns),
            }
            for (element, places) in fields() {
                if let Some(value) = element.value() {
                    self.least.update_at(places.least, value, End::Least, strings);
                    self.greatest.update_at(places.greatest, value, End::Greatest, strings);
                }
            }
            self.count += 1;
            self.size_bytes += growth;
        }
        self.shape = shape;
        reason
    }

    /// Adds the elements to their columns.
    fn add_plain<'a>(&mut self, columns: impl Iterator<Item = (usize, RawElement<'a>)>) {
        let name = self.count.to_string();
        for (place, element) in columns {
            let Some(Column { values: Values::Plain { elements, .. }, .. }) = self.columns.get_mut(place) else {
                continue;
            };
            elements.push(element.value_type as u8);
            elements.extend_from_slice(name.as_bytes());
            elements.push(0);
            elements.extend_from_slice(element.value_bytes);
        }
    }

    /// The same where columns are compressed.
    fn add_packed<'a>(&mut self, columns: impl Iterator<Item = (usize, RawElement<'a>)>, time_ms: i64) {
        self.latest_ms = time_ms;
        let row = self.count;
        for (place, element) in columns {
            if let Some(Column { values: Values::Packed { builder, rows }, .. }) = self.columns.get_mut(place) {
                builder.push(Encoded { value_type: element.value_type, bytes: element.value_bytes });
                *rows = row + 1;
            }
        }
        for column in &mut self.columns {
            if let Values::Packed { builder, rows } = &mut column.values
                && *rows == row
            {
                builder.skip(1);
                *rows = row + 1;
            }
        }
    }

    fn rollover(
        &mut self,
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
            // Told once of each, when it gets more than the one that is large: it may have been read again since.
            let was_small = self.size_bytes <= limits.effective_size_bytes_max(active_count);
            self.is_kept_open |= self.count == 1 || (self.count > 1 && was_small);
        }
        None
    }

    /// How much larger the measurement makes it: a column that is new brings its name and both extremes.
    fn growth(&self, measurement: DocRef<'_>, options: &TimeseriesOptions) -> usize {
        let digits = digits(self.count);
        let (mut growth, mut guess) = (0, 0);
        for element in measurement.raw_elements() {
            if options.meta_field.as_deref().is_some_and(|meta| element.name == meta) {
                if self.count == 0 {
                    growth += element.value_bytes.len() + 1 + "meta".len();
                }
                continue;
            }
            let is_new = self.place(element.name, guess).is_none();
            guess += 1;
            if is_new {
                growth += EMPTY_COLUMN_BYTES + element.name.len() + 2 * element.bytes.len();
            }
            growth += element.value_bytes.len() + 1 + digits + 1;
        }
        growth
    }

    /// True if a measurement of this meta value belongs to its source.
    pub fn is_of(&self, meta: Option<Value<'_>>) -> bool {
        match (self.meta(), meta) {
            (None, None) => true,
            (Some(own), Some(meta)) => own == meta,
            _ => false,
        }
    }

    /// Roughly how much memory it takes.
    pub fn memory_bytes(&self) -> usize {
        let columns = self.columns.iter().map(|column| {
            let values = match &column.values {
                Values::Plain { elements, .. } => elements.capacity(),
                Values::Packed { builder, .. } => builder.size_bytes(),
            };
            values + COLUMN_MEMORY_BYTES + 6 * column.name.len()
        });
        size_of::<Bucket>() + columns.sum::<usize>()
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

/// How many digits the number of a measurement has.
fn digits(count: usize) -> usize {
    count.checked_ilog10().unwrap_or(0) as usize + 1
}

/// Roughly what a column takes beside its values: its place, its name and its extremes.
const COLUMN_MEMORY_BYTES: usize = 320;

/// Two fields of one name, and values at either end of the order, are in no column.
fn can_be_packed(measurement: DocRef<'_>) -> bool {
    let (mut first, mut count) = ([[].as_slice(); COMPARED_NAMES_MAX], 0);
    for element in measurement.raw_elements() {
        let name: &[u8] = element.name;
        let known = first.get(..count).unwrap_or_default();
        let is_alone = !known.iter().any(|other| other.len() == name.len() && *other == name);
        if !is_alone || !is_storable(Encoded { value_type: element.value_type, bytes: element.value_bytes }) {
            return false;
        }
        if let Some(place) = first.get_mut(count) {
            *place = name;
        }
        count += 1;
    }
    count <= COMPARED_NAMES_MAX || has_distinct_names(measurement)
}

/// Few names are compared each with each.
const COMPARED_NAMES_MAX: usize = 16;

fn has_distinct_names(measurement: DocRef<'_>) -> bool {
    let mut names: Vec<&[u8]> = measurement.raw_elements().map(|element| &**element.name).collect();
    names.sort_unstable();
    names.windows(2).all(|pair| pair.first() != pair.last())
}
