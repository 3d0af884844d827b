//! `$_internalBucketGeoWithin`: whether a bucket of a time series may have a measurement whose place lies in a region.
//!
//! The extremes of a bucket are the corners of a box that all of its points lie in. Where they are no points of one kind nothing is known, and the bucket may have one.

use super::{Leaf, Predicate};
use pando_base::{Error, Result};
use pando_doc::{Doc, DocRef, FieldPath, Value, doc};
use pando_geo::plane::{PlaneBox, PlanePoint};
use pando_geo::sphere::Boxes;
use pando_geo::{GeoPredicate, Relation};
use std::sync::Arc;

/// The condition on a bucket.
#[derive(Clone, Debug)]
pub struct BucketGeoWithin {
    /// The field of measurements.
    field: FieldPath,
    /// What their places must fulfil.
    within: Arc<GeoPredicate>,
    /// The same as a condition on the column of the bucket, for indexes of its points.
    leaf: Leaf,
    /// The region as it was written.
    region: Doc,
    /// The boxes around the region, if it is on the sphere.
    boxes: Option<Boxes>,
}

impl PartialEq for BucketGeoWithin {
    fn eq(&self, other: &BucketGeoWithin) -> bool {
        self.field == other.field && self.region == other.region
    }
}

/// What a bucket tells of a field.
enum Told<'a> {
    /// No measurement has it.
    Missing,
    /// This.
    Value(Value<'a>),
    /// Nothing: there are other things than documents on the way.
    Nothing,
}

impl BucketGeoWithin {
    /// What buckets fulfil that have a measurement which fulfils the condition; none if that cannot be told.
    pub fn of(field: FieldPath, geo: &GeoPredicate) -> Option<BucketGeoWithin> {
        let (within, region) = match geo.relation() {
            Relation::Within => (geo.clone(), geo.source().view().first()?.value.as_document()?.to_doc()),
            Relation::Intersects => geo.as_within()?,
        };
        let boxes = Boxes::of(within.geometry());
        let is_known = boxes.is_some() || within.geometry().plane_region().is_some();
        let column = FieldPath::lenient(format!("data.{}", field.text())).ok().filter(|_| is_known)?;
        let within = Arc::new(within);
        let leaf = Leaf { path: column, predicate: Predicate::Geo(Arc::clone(&within)) };
        Some(BucketGeoWithin { field, within, leaf, region, boxes })
    }

    /// Reads it.
    pub(crate) fn parse(value: Value<'_>) -> Result<BucketGeoWithin> {
        const NAME: &str = "$_internalBucketGeoWithin";
        let Value::Document(parts) = value else {
            return Err(Error::type_mismatch(format!("{NAME} must be an object")));
        };
        let missing = |name: &str| Error::failed_to_parse(format!("{NAME} is missing its '{name}'"));
        let region = parts.get("withinRegion").ok_or_else(|| missing("withinRegion"))?;
        let Value::Document(region) = region else {
            return Err(Error::type_mismatch(format!("{NAME} 'withinRegion' must be an object")));
        };
        let field = parts.get("field").ok_or_else(|| missing("field"))?;
        let Value::String(field) = field else {
            return Err(Error::type_mismatch(format!("{NAME} 'field' must be a string")));
        };
        let within = GeoPredicate::parse(doc! { "$geoWithin": region }.view())?;
        let unknown = || Error::bad_value(format!("{NAME} does not know the region {region}"));
        BucketGeoWithin::of(FieldPath::lenient(field)?, &within).ok_or_else(unknown)
    }

    /// The field of measurements.
    pub fn field(&self) -> &FieldPath {
        &self.field
    }

    /// The condition that an index of the points of buckets may serve.
    pub fn leaf(&self) -> &Leaf {
        &self.leaf
    }

    /// As it is written.
    pub(crate) fn to_doc(&self) -> Doc {
        doc! { "withinRegion": &self.region, "field": self.field.text() }
    }

    /// False if no measurement of the bucket fulfils the condition.
    pub(crate) fn may_hold(&self, bucket: DocRef<'_>) -> bool {
        let control = bucket.get("control").and_then(|control| control.as_document());
        let end = |end: &str| control.and_then(|control| control.get(end)).and_then(|end| end.as_document());
        let (Some(least), Some(greatest)) = (end("min"), end("max")) else { return true };
        match (self.told(least), self.told(greatest)) {
            (Told::Missing, Told::Missing) => false,
            (Told::Value(least), Told::Value(greatest)) => match (point(least), point(greatest)) {
                (Some((min, true)), Some((max, true))) | (Some((min, false)), Some((max, false))) => {
                    self.may_meet(&PlaneBox { min, max })
                }
                _ => true,
            },
            _ => true,
        }
    }

    fn told<'a>(&self, extremes: DocRef<'a>) -> Told<'a> {
        let mut at = Value::Document(extremes);
        for part in self.field.parts() {
            let Value::Document(document) = at else { return Told::Nothing };
            match document.get(part) {
                None => return Told::Missing,
                Some(value) => at = value,
            }
        }
        Told::Value(at)
    }

    fn may_meet(&self, bounds: &PlaneBox) -> bool {
        if let Some(boxes) = &self.boxes {
            let is_on_earth =
                bounds.min.x >= -180.0 && bounds.max.x <= 180.0 && bounds.min.y >= -90.0 && bounds.max.y <= 90.0;
            return !is_on_earth || boxes.may_meet(bounds);
        }
        self.within.geometry().plane_region().is_none_or(|region| !region.is_disjoint(bounds))
    }
}

/// The point that an extreme is, and whether it is GeoJSON.
fn point(value: Value<'_>) -> Option<(PlanePoint, bool)> {
    let (coordinates, is_geojson) = match value {
        Value::Array(coordinates) => (coordinates, false),
        Value::Document(document) => {
            document.get("type").filter(|kind| kind.as_str() == Some("Point"))?;
            (document.get("coordinates")?.as_array()?, true)
        }
        _ => return None,
    };
    let mut numbers = coordinates.values().map(|number| number.to_double());
    match (numbers.next(), numbers.next(), numbers.next()) {
        (Some(Some(x)), Some(Some(y)), None) if x.is_finite() && y.is_finite() => {
            Some((PlanePoint::new(x, y), is_geojson))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(min: Value<'_>, max: Value<'_>) -> Doc {
        doc! { "control": { "min": { "p": min }, "max": { "p": max } } }
    }

    #[test]
    fn x29_boxes_of_buckets_are_compared_with_regions() {
        let polygon = doc! { "type": "Polygon", "coordinates": [[[0, 0], [3, 6], [6, 1], [0, 0]]] };
        let regions = [
            doc! { "$geometry": polygon },
            doc! { "$centerSphere": [[2, 2], 0.05] },
            doc! { "$center": [[2, 2], 3] },
            doc! { "$box": [[0, 0], [5, 5]] },
        ];
        for region in regions {
            let condition = doc! { "withinRegion": &region, "field": "p" };
            let condition = BucketGeoWithin::parse(Value::Document(condition.view())).unwrap();
            let may = |x: f64, y: f64, width: f64| {
                let point = |x: f64, y: f64| doc! { "type": "Point", "coordinates": [x, y] };
                let (min, max) = (point(x, y), point(x + width, y + width));
                condition.may_hold(bucket(Value::Document(min.view()), Value::Document(max.view())).view())
            };
            assert!(may(2.0, 2.0, 0.0) && may(-10.0, -10.0, 30.0), "{region}");
            assert!(!may(40.0, 40.0, 5.0) && !may(-100.0, -50.0, 1.0), "{region}");
            // What says nothing excludes nothing.
            assert!(condition.may_hold(bucket(Value::Int32(1), Value::Bool(true)).view()), "{region}");
            assert!(!condition.may_hold(doc! { "control": { "min": { "q": 1 }, "max": { "q": 1 } } }.view()));
        }
        for bad in [doc! {}, doc! { "field": "p" }, doc! { "withinRegion": 7, "field": "p" }] {
            assert!(BucketGeoWithin::parse(Value::Document(bad.view())).is_err());
        }
    }
}
