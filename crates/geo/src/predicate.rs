//! `$geoWithin`, `$within` and `$geoIntersects`: the condition that they put on a value.

use crate::parse::{parse_query_shape, parse_stored};
use crate::{Geometry, Place};
use pando_base::{Error, Result};
use pando_doc::{Doc, DocRef, Value, doc};
use std::sync::Arc;

/// What has to hold between the query's shape and that of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The document's shape lies in the query's.
    Within,
    /// They share a point.
    Intersects,
}

/// A condition.
#[derive(Clone, Debug)]
pub struct GeoPredicate {
    relation: Relation,
    geometry: Arc<Geometry>,
    source: Doc,
}

impl PartialEq for GeoPredicate {
    fn eq(&self, other: &GeoPredicate) -> bool {
        self.source == other.source
    }
}

impl GeoPredicate {
    /// Reads all operators behind a path, of which the first must be the one and only.
    pub fn parse(operators: DocRef<'_>) -> Result<GeoPredicate> {
        let mut elements = operators.elements();
        let Some(element) = elements.next() else {
            return Err(Error::bad_value(format!("invalid geo query predicate: {operators}")));
        };
        if let Some(extra) = elements.next() {
            return Err(Error::bad_value(format!("can't parse extra field: {}: {}", extra.name, extra.value)));
        }
        let relation = match &**element.name {
            b"$geoIntersects" => Relation::Intersects,
            b"$geoWithin" | b"$within" => Relation::Within,
            _ => return Err(Error::bad_value(format!("invalid geo query predicate: {operators}"))),
        };
        let Value::Document(shapes) = element.value else {
            return Err(Error::bad_value("geometry must be an object"));
        };
        let mut geometry = None;
        for shape in shapes.elements() {
            if geometry.is_some() && element.name == "$geoWithin" {
                let reason = format!("$geoWithin doesn't accept multiple shapes {}: {}", element.name, element.value);
                return Err(Error::bad_value(reason));
            }
            if shape.name != "$uniqueDocs" {
                geometry = Some(parse_query_shape(shape)?);
            }
        }
        let Some(geometry) = geometry else {
            return Err(Error::bad_value("geo query doesn't have any geometry"));
        };
        let geometry = Arc::new(fit(geometry, relation, operators)?);
        Ok(GeoPredicate { relation, geometry, source: operators.into() })
    }

    /// The same condition as a `$geoWithin`, which of points says the same, and its shape as it was written.
    pub fn as_within(&self) -> Option<(GeoPredicate, Doc)> {
        let shape = self.source.view().first()?.value.as_document()?.to_doc();
        let within = GeoPredicate::parse(doc! { "$geoWithin": &shape }.view()).ok()?;
        Some((within, shape))
    }

    /// What has to hold.
    pub fn relation(&self) -> Relation {
        self.relation
    }

    /// The query's shape.
    pub fn geometry(&self) -> &Geometry {
        &self.geometry
    }

    /// As it was written.
    pub fn source(&self) -> &Doc {
        &self.source
    }

    /// True if the value is a shape for which the condition holds.
    pub fn matches(&self, value: Value<'_>) -> bool {
        let Ok(stored) = parse_stored(value) else { return false };
        if stored.is_strict() {
            return false;
        }
        let is_comparable = match &stored {
            Geometry::Point(place) => self.geometry.is_flat() || place.sphere.is_some(),
            _ => !self.geometry.is_flat(),
        };
        is_comparable
            && match self.relation {
                Relation::Within => self.geometry.contains(&stored),
                Relation::Intersects => self.geometry.intersects(&stored),
            }
    }
}

/// The shape where its operator needs it: on the sphere for `$geoIntersects`.
fn fit(geometry: Geometry, relation: Relation, operators: DocRef<'_>) -> Result<Geometry> {
    if relation == Relation::Within && !geometry.can_contain() {
        let reason = format!("$within not supported with provided geometry: {operators}");
        return Err(Error::bad_value(reason));
    }
    if let Geometry::Shapes(shapes) = &geometry
        && geometry.is_strict()
        && shapes.is_collection
    {
        let reason = "strict winding order CRS is only supported for a standalone Polygon query geometry";
        return Err(Error::bad_value(reason));
    }
    match (relation, geometry) {
        (Relation::Within, geometry) => Ok(geometry),
        (Relation::Intersects, Geometry::Point(place)) if place.sphere.is_some() => {
            Ok(Geometry::Point(Place { is_spherical: true, ..place }))
        }
        (Relation::Intersects, geometry) if geometry.is_flat() => {
            Err(Error::bad_value(format!("$geoIntersect not supported with provided geometry: {operators}")))
        }
        (Relation::Intersects, geometry) => Ok(geometry),
    }
}
