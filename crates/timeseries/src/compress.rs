//! Closed buckets: every column compressed, the measurements in the order of time, their number in `control.count`.

use crate::column::{COLUMN_SUBTYPE, ColumnBuilder, ColumnReader, Encoded, Step, encode};
use crate::{TimeseriesOptions, VERSION_COMPRESSED};
use pando_base::{Error, Result};
use pando_doc::{Doc, DocBuilder, DocRef, RawElement, Value, ValueType};

/// A bucket with more measurements than this cannot be ours.
pub(crate) const COUNT_MAX: usize = 1_000_000;
/// What is spared must be more than such a part.
const WORTHWHILE: usize = 20;
/// Nor one that unpacks to more than this.
pub(crate) const SIZE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// True if the bucket is compressed.
pub fn is_compressed(bucket: DocRef<'_>) -> bool {
    let control = bucket.get("control").and_then(|control| control.as_document());
    let version = control.and_then(|control| control.get("version")).and_then(|version| version.to_i64_exact());
    version.is_some_and(|version| version >= i64::from(VERSION_COMPRESSED))
}

/// The bucket compressed; none if it cannot be: it has values that columns do not take, or places that are out of order.
pub fn compress(bucket: DocRef<'_>, options: &TimeseriesOptions) -> Option<Doc> {
    let data = bucket.get("data")?.as_document()?;
    let mut columns: Vec<(&[u8], Vec<RawElement<'_>>)> = Vec::new();
    for element in data.elements() {
        columns.push((element.name, element.value.as_document()?.raw_elements().collect()));
    }
    let time_place = columns.iter().position(|(name, _)| *name == options.time_field.as_bytes())?;
    let (_, times) = columns.remove(time_place);
    let mut order: Vec<(i64, usize)> = Vec::with_capacity(times.len());
    for (place, time) in times.iter().enumerate() {
        order.push((time.value()?.as_date()?, place));
    }
    order.sort_unstable();
    let mut out = DocBuilder::with_capacity(bucket.size_bytes() / 4);
    out.append("_id", bucket.get("_id")?);
    write_control(bucket.get("control")?.as_document()?, order.len(), &mut out);
    for element in
        bucket.elements().filter(|element| !["_id", "control", "data"].iter().any(|name| element.name == *name))
    {
        out.append_element(element);
    }
    let compressed = out.begin_document("data");
    append_column(&mut out, options.time_field.as_bytes(), &in_order(&times, &times, &order)?)?;
    for (name, values) in &columns {
        append_column(&mut out, name, &in_order(&times, values, &order)?)?;
    }
    out.end(compressed);
    Some(out.finish())
}

/// The compressed bucket with the values of each column encoded together, if that makes it smaller: one that was filled batch by batch.
pub fn recompress(bucket: DocRef<'_>) -> Option<Doc> {
    let mut out = DocBuilder::with_capacity(bucket.size_bytes());
    for element in bucket.elements() {
        let Some(data) = element.value.as_document().filter(|_| element.name == "data") else {
            out.append_element(element);
            continue;
        };
        let open = out.begin_document("data");
        for column in data.elements() {
            let Value::Binary { subtype: COLUMN_SUBTYPE, bytes } = column.value else { return None };
            let bytes = &ColumnBuilder::reencoded(bytes, COUNT_MAX)?;
            out.append(column.name, Value::Binary { subtype: COLUMN_SUBTYPE, bytes });
        }
        out.end(open);
    }
    let out = out.finish();
    (out.size_bytes() < bucket.size_bytes() - bucket.size_bytes() / WORTHWHILE).then_some(out)
}

fn append_column(out: &mut DocBuilder, name: &[u8], values: &[Option<Encoded<'_>>]) -> Option<()> {
    out.append(name, Value::Binary { subtype: COLUMN_SUBTYPE, bytes: &encode(values)? });
    Some(())
}

/// Everything as it was but the version, and the count.
fn write_control(control: DocRef<'_>, count: usize, out: &mut DocBuilder) {
    let open = out.begin_document("control");
    out.append("version", VERSION_COMPRESSED);
    for element in control.elements().filter(|element| element.name != "version" && element.name != "count") {
        out.append_element(element);
    }
    out.append("count", i32::try_from(count).unwrap_or(i32::MAX));
    out.end(open);
}

/// The values of a column by time; places that the times do not have are no measurements of ours.
fn in_order<'a>(
    times: &[RawElement<'_>],
    values: &[RawElement<'a>],
    order: &[(i64, usize)],
) -> Option<Vec<Option<Encoded<'a>>>> {
    let mut by_place = vec![None; times.len()];
    let mut rest = values.iter().peekable();
    for (time, slot) in times.iter().zip(&mut by_place) {
        *slot = rest
            .next_if(|value| value.name == time.name)
            .map(|value| Encoded { value_type: value.value_type, bytes: value.value_bytes });
    }
    if rest.next().is_some() {
        return None;
    }
    Some(order.iter().map(|(_, place)| by_place.get(*place).copied().flatten()).collect())
}

/// The values of a column of a bucket, under the numbers of their measurements; none if it is no column.
pub fn column_values(column: Value<'_>) -> Result<Option<Doc>> {
    match column {
        Value::Document(plain) => Ok(Some(plain.to_doc())),
        Value::Binary { subtype: COLUMN_SUBTYPE, bytes } => {
            let elements = elements_of(bytes)?;
            let size_bytes =
                i32::try_from(elements.len() + 5).map_err(|_| Error::bad_value("a column is too large"))?;
            let mut document = Vec::with_capacity(elements.len() + 5);
            document.extend_from_slice(&size_bytes.to_le_bytes());
            document.extend_from_slice(&elements);
            document.push(0);
            Ok(Some(Doc::trusted(document)))
        }
        _ => Ok(None),
    }
}

/// The column's values as elements named by their places.
pub(crate) fn elements_of(column: &[u8]) -> Result<Vec<u8>> {
    let mut reader = ColumnReader::default();
    let mut elements = Vec::with_capacity(column.len() * 4);
    for place in 0..COUNT_MAX {
        let start = elements.len();
        elements.push(0);
        elements.extend_from_slice(place.to_string().as_bytes());
        elements.push(0);
        match reader.next(column, &mut elements)? {
            Step::Value(value_type) => set_type(&mut elements, start, value_type),
            Step::Missing => elements.truncate(start),
            Step::End => {
                elements.truncate(start);
                return Ok(elements);
            }
        }
        if elements.len() > SIZE_BYTES_MAX {
            break;
        }
    }
    Err(Error::bad_value("Bucket could not be decompressed"))
}

fn set_type(elements: &mut [u8], start: usize, value_type: ValueType) {
    if let Some(code) = elements.get_mut(start) {
        *code = value_type as u8;
    }
}
