//! Keys of `2d` indexes: the cell of each legacy point, then the values of the other fields.
//!
//! A document may have many points. What its other fields have is in each key as it is; several values of one field are an array there.

use super::KeySet;
use super::along_path::values_along;
use pando_base::{Error, Result};
use pando_doc::{ArrayBuilder, DocRef, FieldPath, Value};
use pando_geo::plane::{Grid, PlanePoint};
use pando_keystring::KeyOrdering;

/// The type of the bytes that cells are stored as.
const CELL_SUBTYPE: u8 = 0x80;

/// Makes the keys of one index.
#[derive(Clone)]
pub(super) struct TwoDKeys {
    place: FieldPath,
    others: Box<[FieldPath]>,
    grid: Grid,
    pub(super) ordering: KeyOrdering,
}

impl TwoDKeys {
    pub(super) fn new(pattern: DocRef<'_>, specification: DocRef<'_>) -> Result<TwoDKeys> {
        let (mut place, mut others) = (None, Vec::new());
        for field in pattern.elements() {
            let path = FieldPath::lenient(field.name)?;
            if field.value.as_str() != Some("2d") {
                others.push(path);
                continue;
            }
            if place.is_some() {
                return Err(Error::location(16800, "can't have 2 geo fields"));
            }
            if !others.is_empty() {
                return Err(Error::location(16801, "2d has to be first in index"));
            }
            place = Some(path);
        }
        Ok(TwoDKeys {
            place: place.ok_or_else(|| Error::location(16802, "no geo field specified"))?,
            others: others.into(),
            grid: Grid::parse(specification)?,
            ordering: KeyOrdering::from_pattern(pattern)?,
        })
    }

    pub(super) fn keys(&self, document: DocRef<'_>, keys: &mut KeySet) -> Result<()> {
        for value in values_along(document, &self.place, false, &mut |_| {}) {
            let Some(fields) = value.as_nested() else { continue };
            let Some(first) = fields.first() else { continue };
            if first.value.is_number() {
                self.key(document, fields, keys)?;
                continue;
            }
            for nested in fields.elements() {
                let Some(point) = nested.value.as_nested() else {
                    let reason = "location object expected, location array not in correct format";
                    return Err(Error::location(16804, reason));
                };
                if !point.is_empty() {
                    self.key(document, point, keys)?;
                }
            }
        }
        keys.sort();
        Ok(())
    }

    fn key(&self, document: DocRef<'_>, point: DocRef<'_>, keys: &mut KeySet) -> Result<()> {
        let cell = self.grid.cell(self.point(document, point)?).key();
        keys.begin(self.ordering);
        keys.append(Value::Binary { subtype: CELL_SUBTYPE, bytes: &cell }, None)?;
        for path in &self.others {
            let values = values_along(document, path, true, &mut |_| {});
            match values.as_slice() {
                [] => keys.append(Value::Null, None)?,
                [only] => keys.append(*only, None)?,
                many => {
                    let mut array = ArrayBuilder::new();
                    many.iter().for_each(|value| array.push(*value));
                    keys.append(Value::Array(array.finish().view()), None)?;
                }
            }
        }
        keys.end();
        Ok(())
    }

    /// The point, if it is one inside the index's square.
    fn point(&self, document: DocRef<'_>, point: DocRef<'_>) -> Result<PlanePoint> {
        let mut values = point.elements().map(|element| element.value);
        let refused =
            |code: i32, reason: String| Err(Error::location(code, format!("{reason} :: caused by :: {document}")));
        let (Some(x), y) = (values.next(), values.next()) else { return refused(13067, "geo field is empty".into()) };
        let Some(y) = y else { return refused(13068, "geo field only has 1 element".into()) };
        let (Some(x), Some(y)) = (x.to_double(), y.to_double()) else {
            return refused(13026, "geo values must be 'legacy coordinate pairs' for 2d indexes".into());
        };
        let point = PlanePoint::new(x, y);
        if !self.grid.contains(point) {
            let (min, max) = (self.grid.min(), self.grid.max());
            return refused(13027, format!("point not in interval of [ {min}, {max} ]"));
        }
        Ok(point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::KeyGenerator;
    use pando_doc::{Doc, doc};

    fn keys(pattern: Doc, specification: Doc, document: Doc) -> Result<usize> {
        let mut keys = KeySet::new();
        KeyGenerator::two_d(pattern.view(), specification.view())?.keys(document.view(), &mut keys)?;
        Ok(keys.len())
    }

    #[test]
    fn u7_each_legacy_point_has_a_key() {
        let count = |document: Doc| keys(doc! { "loc": "2d", "a": 1 }, doc! {}, document);
        assert_eq!(count(doc! { "loc": [1, 2] }).unwrap(), 1);
        assert_eq!(count(doc! { "loc": [[1, 2], { "x": 3, "y": 4 }], "a": [1, 2] }).unwrap(), 2);
        assert_eq!(count(doc! { "loc": 5 }).unwrap(), 0);
        assert_eq!(count(doc! { "a": 5 }).unwrap(), 0);
        let code = |document: Doc| count(document).unwrap_err().code().number();
        assert_eq!(code(doc! { "loc": [1] }), 13068);
        assert_eq!(code(doc! { "loc": [1, "x"] }), 13026);
        assert_eq!(code(doc! { "loc": [181, 0] }), 13027);
        assert_eq!(code(doc! { "loc": ["x", "y"] }), 16804);
    }

    #[test]
    fn u7_specifications_of_2d_are_checked() {
        let code = |pattern: Doc, specification: Doc| {
            keys(pattern, specification, doc! {}).err().map(|error| error.code().number())
        };
        let plain = || doc! { "loc": "2d" };
        assert_eq!(code(plain(), doc! { "bits": 32, "min": 0, "max": 10 }), None);
        let invalid = Some(pando_base::ErrorCode::InvalidOptions.number());
        assert_eq!(code(plain(), doc! { "bits": 33 }), invalid);
        assert_eq!(code(plain(), doc! { "min": 5, "max": 5 }), invalid);
        assert_eq!(code(doc! { "a": 1, "loc": "2d" }, doc! {}), Some(16801));
        assert_eq!(code(doc! { "loc": "2d", "b": "2d" }, doc! {}), Some(16800));
    }
}
