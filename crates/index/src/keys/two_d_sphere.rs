//! Keys of `2dsphere` indexes: for each field of the pattern the cells that cover its shapes, or its values; every combination of them is a key.
//!
//! A document without any shape has no key, unless the index is of version 1. An array of values gives a key for each; a shape is an array only as
//! a legacy point.

use super::along_path::values_along;
use super::{KeySet, Purpose, SharedCollator};
use pando_base::{Error, ErrorCode, Result, operation};
use pando_doc::{Collator, DocRef, FieldPath, Value};
use pando_geo::parse_stored;
use pando_geo::sphere::{CellId, SphereLevels, covering};
use pando_keystring::KeyOrdering;
use pando_timeseries::column_values;

/// Covering a shape is so many steps beside the keys of its cells.
const SHAPE_STEPS: u64 = 1024;

/// Makes the keys of one index.
#[derive(Clone)]
pub(super) struct TwoDSphereKeys {
    fields: Box<[(FieldPath, Part)]>,
    levels: SphereLevels,
    version: i64,
    collator: Option<SharedCollator>,
    /// A document that would have more keys is refused.
    keys_max: usize,
    pub(super) ordering: KeyOrdering,
}

/// What a field of the pattern is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Values.
    Value,
    /// Shapes.
    Place,
    /// The points of all measurements of a bucket of a time series.
    PlacesOfBucket,
}

/// What one field puts into keys.
enum Component<'d> {
    Value(Value<'d>),
    Cell(i64),
}

impl TwoDSphereKeys {
    pub(super) fn new(
        pattern: DocRef<'_>,
        specification: DocRef<'_>,
        collator: Option<SharedCollator>,
        keys_max: usize,
    ) -> Result<TwoDSphereKeys> {
        let version = version_of(specification)?;
        let mut fields = Vec::new();
        for field in pattern.elements() {
            let part = match field.value.as_str() {
                Some("2dsphere") => Part::Place,
                Some("2dsphere_bucket") => Part::PlacesOfBucket,
                _ => Part::Value,
            };
            if part == Part::Value && !field.value.is_number() {
                let reason = format!(
                    "Cannot use 2dsphere index with other special index types: {}: {}",
                    field.name, field.value
                );
                return Err(Error::location(16823, reason));
            }
            fields.push((FieldPath::lenient(field.name)?, part));
        }
        Ok(TwoDSphereKeys {
            fields: fields.into(),
            levels: SphereLevels::parse(specification, version)?,
            version,
            collator,
            keys_max,
            ordering: KeyOrdering::from_pattern(pattern)?,
        })
    }

    pub(super) fn keys(&self, document: DocRef<'_>, purpose: Purpose, keys: &mut KeySet) -> Result<()> {
        keys.track_paths(self.fields.len());
        let mut components = Vec::with_capacity(self.fields.len());
        let mut has_place = self.version < 2;
        let mut count = 1_usize;
        for (number, (path, part)) in self.fields.iter().enumerate() {
            let last = path.part_count() - 1;
            let mut values = match part {
                Part::PlacesOfBucket => Vec::new(),
                _ => values_along(document, path, false, &mut |part| keys.add_array(number, part)),
            };
            let found = match part {
                Part::PlacesOfBucket => {
                    let cells = bucket_cells(document, path)?;
                    has_place |= !cells.is_empty();
                    if cells.len() > 1 {
                        keys.add_array(number, last);
                    }
                    match cells.is_empty() {
                        true => vec![Component::Value(Value::Null)],
                        false => cells.into_iter().map(Component::Cell).collect(),
                    }
                }
                Part::Place => {
                    if self.version >= 2 && matches!(values.as_slice(), [only] if is_nothing(*only)) {
                        values.clear();
                    }
                    has_place |= !values.is_empty();
                    let (found, is_several) = self.cells(document, &values)?;
                    if is_several {
                        keys.add_array(number, last);
                    }
                    found
                }
                Part::Value => {
                    if values.iter().any(|value| matches!(value, Value::Array(_))) {
                        keys.add_array(number, last);
                    }
                    literals(&values)
                }
            };
            count = count.saturating_mul(found.len());
            if count > self.keys_max {
                if purpose == Purpose::Removing {
                    // No keys were ever added for it.
                    return Ok(());
                }
                let reason = "Insert of geo object exceeded maximum number of generated keys";
                return Err(Error::new(ErrorCode::CannotBuildIndexKeys, reason));
            }
            components.push(found);
        }
        if !has_place {
            // It has no keys; its arrays count all the same.
            return Ok(());
        }
        self.combine(&components, count, keys)
    }

    /// One key for each combination: the number of a key tells, like digits, which component of each field it has.
    fn combine(&self, components: &[Vec<Component<'_>>], count: usize, keys: &mut KeySet) -> Result<()> {
        let collator = self.collator.as_deref().map(|collator| collator as &dyn Collator);
        for number in 0..count {
            let mut rest = number;
            keys.begin(self.ordering);
            for choices in components {
                let chosen = choices.get(rest % choices.len().max(1));
                rest /= choices.len().max(1);
                match chosen {
                    Some(Component::Cell(cell)) => keys.append(Value::Int64(*cell), None)?,
                    Some(Component::Value(value)) => keys.append(*value, collator)?,
                    None => keys.append(Value::Null, None)?,
                }
            }
            keys.end();
        }
        keys.sort();
        Ok(())
    }

    /// The cells of all shapes, and whether one of them has several.
    fn cells<'d>(&self, document: DocRef<'_>, values: &[Value<'_>]) -> Result<(Vec<Component<'d>>, bool)> {
        let (mut found, mut is_several) = (Vec::new(), values.len() > 1);
        for value in values {
            operation::tick(SHAPE_STEPS)?;
            let cells = self.cells_of(*value).map_err(|error| {
                let reason = format!("Can't extract geo keys: {document}  {}", error.reason());
                Error::location(16755, reason)
            })?;
            if cells.is_empty() {
                let reason = format!("Unable to generate keys for (likely malformed) geometry: {document}");
                return Err(Error::location(16756, reason));
            }
            is_several |= cells.len() > 1;
            found.extend(cells.into_iter().map(|cell| Component::Cell(cell.key())));
        }
        if found.is_empty() {
            found.push(Component::Value(Value::Null));
        }
        Ok((found, is_several))
    }

    fn cells_of(&self, value: Value<'_>) -> Result<Vec<CellId>> {
        let geometry = parse_stored(value)?;
        if geometry.is_strict() {
            return Err(Error::bad_value("can't index geometry with strict winding order"));
        }
        if self.version < 2 && !geometry.is_simple() {
            return Err(Error::bad_value("given geometry can't be indexed in the old index format"));
        }
        if let Some(place) = geometry.as_point() {
            let Some(point) = &place.sphere else {
                let reason = format!("can't project geometry into spherical CRS: {value}");
                return Err(Error::bad_value(reason));
            };
            return Ok(vec![CellId::of_point(point)]);
        }
        Ok(covering(&geometry, Some(self.levels)).unwrap_or_default())
    }
}

/// The cells of the points that the measurements of a bucket have at a path, each once. The path begins with `data`.
fn bucket_cells(bucket: DocRef<'_>, path: &FieldPath) -> Result<Vec<i64>> {
    let mut parts = path.parts().skip(1);
    let Some(name) = parts.next() else { return Ok(Vec::new()) };
    let below: Vec<&bstr::BStr> = parts.collect();
    let data = bucket.get("data").and_then(|data| data.as_document());
    let Some(column) = data.and_then(|data| data.get(name)) else { return Ok(Vec::new()) };
    let Some(column) = column_values(column)? else { return Ok(Vec::new()) };
    let mut cells = Vec::new();
    for element in column.elements() {
        let mut value = Some(element.value);
        for name in &below {
            value = match value {
                Some(Value::Document(document)) => document.get(*name),
                _ => None,
            };
        }
        if let Some(value) = value.filter(|value| !is_nothing(*value)) {
            cells.push(point_cell(value)?.key());
        }
    }
    cells.sort_unstable();
    cells.dedup();
    Ok(cells)
}

/// The cell of a point; nothing else is indexed of measurements.
fn point_cell(value: Value<'_>) -> Result<CellId> {
    let unreadable = |reason: &str| Error::location(183_934, format!("Can't extract geo keys: {value}  {reason}"));
    let geometry = parse_stored(value).map_err(|error| unreadable(error.reason()))?;
    let Some(place) = geometry.as_point() else {
        let reason = format!("Time-series collections '2dsphere' indexes only support point data: {value}");
        return Err(Error::location(183_493, reason));
    };
    match &place.sphere {
        Some(point) => Ok(CellId::of_point(point)),
        None => Err(unreadable("it is not on the sphere")),
    }
}

/// The version in a specification, which an old one does not have.
fn version_of(specification: DocRef<'_>) -> Result<i64> {
    let Some(value) = specification.get("2dsphereIndexVersion") else { return Ok(1) };
    let refused = |what: &str| {
        let shown = format!("{what} geo index version {{ 2dsphereIndexVersion : {value} }}");
        let reason = format!("{shown}, only versions: [1,2,3] are supported");
        Err(Error::new(ErrorCode::CannotCreateIndex, reason))
    };
    if !value.is_number() {
        return refused("Invalid type for");
    }
    if matches!(value, Value::Double(number) if !number.is_normal()) {
        return refused("Invalid value for");
    }
    match value.to_i64_or_zero() {
        version @ 1..=3 => Ok(version),
        _ => refused("unsupported"),
    }
}

/// What counts as if the field were not there.
fn is_nothing(value: Value<'_>) -> bool {
    matches!(value, Value::Null | Value::Undefined) || value.as_nested().is_some_and(|fields| fields.is_empty())
}

/// The values themselves, those of arrays one by one.
fn literals<'d>(values: &[Value<'d>]) -> Vec<Component<'d>> {
    let mut found = Vec::new();
    for value in values {
        match value {
            Value::Array(array) if array.is_empty() => found.push(Component::Value(Value::Undefined)),
            Value::Array(array) => found.extend(array.values().map(Component::Value)),
            value => found.push(Component::Value(*value)),
        }
    }
    if found.is_empty() {
        found.push(Component::Value(Value::Null));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeyGenerator;
    use pando_doc::{Doc, doc};

    fn generator(pattern: Doc, specification: Doc) -> Result<KeyGenerator> {
        KeyGenerator::two_d_sphere(pattern.view(), specification.view(), None, 100_000)
    }

    fn count(pattern: Doc, document: Doc) -> Result<usize> {
        let mut keys = KeySet::new();
        generator(pattern, doc! { "2dsphereIndexVersion": 3 })?.keys(document.view(), &mut keys)?;
        Ok(keys.len())
    }

    #[test]
    fn u7_shapes_have_the_keys_of_their_cells_and_documents_without_shapes_have_none() {
        let alone = || doc! { "loc": "2dsphere" };
        let with = || doc! { "a": 1, "loc": "2dsphere" };
        assert_eq!(count(alone(), doc! { "loc": [1, 2] }).unwrap(), 1);
        for nothing in [doc! {}, doc! { "loc": null }, doc! { "loc": [] }, doc! { "loc": {} }, doc! { "a": 1 }] {
            assert_eq!(count(with(), nothing.clone()).unwrap(), 0, "{nothing}");
        }
        assert_eq!(count(with(), doc! { "a": [1, 2, 3], "loc": [1, 2] }).unwrap(), 3);
        let line = doc! { "type": "LineString", "coordinates": [[0, 0], [10, 10]] };
        assert!(count(alone(), doc! { "loc": line }).unwrap() > 1);
        let code = |document: Doc| count(alone(), document).unwrap_err().code().number();
        assert_eq!(code(doc! { "loc": [200, 2] }), 16755);
        assert_eq!(code(doc! { "loc": "here" }), 16755);
        assert_eq!(code(doc! { "loc": { "type": "Polygon", "coordinates": [[[0, 0], [1, 1]]] } }), 16755);
    }

    #[test]
    fn u7_specifications_of_2dsphere_are_checked() {
        let code = |specification: Doc| {
            generator(doc! { "loc": "2dsphere" }, specification).err().map(|error| error.code().number())
        };
        assert_eq!(code(doc! { "2dsphereIndexVersion": 2 }), None);
        assert_eq!(code(doc! { "2dsphereIndexVersion": 4 }), Some(ErrorCode::CannotCreateIndex.number()));
        assert_eq!(code(doc! { "coarsestIndexedLevel": (-1) }), Some(16747));
        assert_eq!(code(doc! { "finestIndexedLevel": 31 }), Some(16748));
        assert_eq!(code(doc! { "finestIndexedLevel": 5, "coarsestIndexedLevel": 6 }), Some(16749));
    }
}
