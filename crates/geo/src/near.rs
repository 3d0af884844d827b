//! `$near`, `$nearSphere` and `$geoNear`: a point, and how near and how far documents may be.

use crate::Place;
use crate::parse::{is_legacy_point, parse_query_point};
use crate::plane::PlanePoint;
use pando_base::{Error, Result};
use pando_doc::{Doc, DocRef, Element, Value};

/// A search by distance.
#[derive(Clone, Debug)]
pub struct NearQuery {
    /// From where distances are measured: on the sphere, if it is spherical.
    pub center: Place,
    /// The least distance, in the units of the query.
    pub min_distance: f64,
    /// The greatest distance, in the units of the query.
    pub max_distance: f64,
    /// Distances are radians rather than metres; only on the sphere.
    pub is_in_radians: bool,
    /// The search goes around the world: the point is GeoJSON.
    pub is_wrapping: bool,
    source: Doc,
}

impl PartialEq for NearQuery {
    fn eq(&self, other: &NearQuery) -> bool {
        self.source == other.source
    }
}

/// What was read, before it is known whether it is whole.
struct Draft {
    center: Option<Place>,
    min_distance: f64,
    max_distance: f64,
    is_near_sphere: bool,
}

impl Draft {
    const EMPTY: Draft = Draft { center: None, min_distance: 0.0, max_distance: f64::MAX, is_near_sphere: false };
}

impl NearQuery {
    /// Reads all operators behind a path.
    pub fn parse(operators: DocRef<'_>) -> Result<NearQuery> {
        let mut draft = parse_legacy(operators)?;
        if draft.center.is_none() {
            draft = parse_document(operators)?;
        }
        let Draft { center: Some(center), min_distance, max_distance, is_near_sphere } = draft else {
            return Err(Error::bad_value("$geometry is required for geo near query"));
        };
        let is_geojson = center.is_spherical;
        if is_near_sphere && center.sphere.is_none() {
            return Err(Error::bad_value("Legacy point is out of bounds for spherical query"));
        }
        let center = Place { is_spherical: is_geojson || is_near_sphere, ..center };
        Ok(NearQuery {
            center,
            min_distance,
            max_distance,
            is_in_radians: is_near_sphere && !is_geojson,
            is_wrapping: is_geojson,
            source: operators.into(),
        })
    }

    /// As it was written.
    pub fn source(&self) -> &Doc {
        &self.source
    }

    /// The distances in which documents are measured: metres on the sphere.
    pub fn measured_range(&self) -> (f64, f64) {
        if !self.center.is_spherical {
            return (self.min_distance, self.max_distance);
        }
        let unit = if self.is_in_radians { crate::EARTH_RADIUS_METRES } else { 1.0 };
        let around = std::f64::consts::PI * crate::EARTH_RADIUS_METRES;
        ((self.min_distance * unit).min(around), (self.max_distance * unit).min(around))
    }

    /// A measured distance in the units of the query.
    pub fn shown_distance(&self, measured: f64) -> f64 {
        if self.is_in_radians { crate::sphere::radians(measured) } else { measured }
    }
}

/// `{$near: [x, y], $maxDistance: d}` and `{$near: {type: "Point", …}}`; without a point if it is of the other form.
fn parse_legacy(operators: DocRef<'_>) -> Result<Draft> {
    let mut draft = Draft::EMPTY;
    for element in operators.elements() {
        match &**element.name {
            b"$near" | b"$geoNear" | b"$nearSphere" => {
                if !matches!(element.value, Value::Document(_) | Value::Array(_)) {
                    return Ok(Draft::EMPTY);
                }
                if let Ok(center) = parse_query_point(element.value) {
                    draft.center = Some(center);
                } else if let Some((center, distance)) = point_with_distance(element.value) {
                    (draft.center, draft.max_distance) = (Some(center), distance);
                } else {
                    continue;
                }
                if draft.max_distance < 0.0 {
                    return Err(Error::location(18522, "max distance must be non-negative"));
                }
                draft.is_near_sphere = element.name == "$nearSphere";
            }
            b"$minDistance" => draft.min_distance = legacy_distance(element, [16893, 16894])?,
            b"$maxDistance" => draft.max_distance = legacy_distance(element, [16895, 16896])?,
            b"$uniqueDocs" => {}
            _ => {
                let reason = format!("invalid argument in geo near query: {}", element.name);
                return Err(Error::location(34413, reason));
            }
        }
    }
    Ok(draft)
}

fn legacy_distance(element: Element<'_>, [of_type, of_sign]: [i32; 2]) -> Result<f64> {
    let Some(distance) = element.value.to_double() else {
        return Err(Error::location(of_type, format!("{} must be a number", element.name)));
    };
    if distance >= 0.0 {
        return Ok(distance);
    }
    Err(Error::location(of_sign, format!("{} must be non-negative", element.name)))
}

/// `[x, y, distance]`.
fn point_with_distance(value: Value<'_>) -> Option<(Place, f64)> {
    let numbers: Vec<f64> =
        value.as_nested()?.elements().map(|element| element.value.to_double()).collect::<Option<_>>()?;
    match numbers.as_slice() {
        [x, y, distance] => Some((Place::legacy(PlanePoint::new(*x, *y)), *distance)),
        _ => None,
    }
}

/// `{$near: {$geometry: {…}, $maxDistance: d}}`.
fn parse_document(operators: DocRef<'_>) -> Result<Draft> {
    let mut elements = operators.elements();
    let Some(element) = elements.next() else { return Err(Error::bad_value("empty geo near query object")) };
    if let Some(extra) = elements.next() {
        let reason = format!(
            "geo near accepts just one argument when querying for a GeoJSON point. Extra field found: {}: {}",
            extra.name, extra.value
        );
        return Err(Error::bad_value(reason));
    }
    let Some(options) = element.value.as_nested() else {
        return Err(Error::bad_value("geo near query argument is not an object"));
    };
    if !matches!(&**element.name, b"$near" | b"$geoNear" | b"$nearSphere") {
        return Err(Error::bad_value(format!("invalid geo near query operator: {}", element.name)));
    }
    let mut draft = Draft::EMPTY;
    for option in options.elements() {
        match &**option.name {
            b"$geometry" => draft.center = geojson_point(option.value)?.or(draft.center),
            b"$minDistance" => draft.min_distance = finite_distance(option)?,
            b"$maxDistance" => draft.max_distance = finite_distance(option)?,
            _ => {
                let reason = format!("invalid argument in geo near query: {}", option.name);
                return Err(Error::bad_value(reason));
            }
        }
    }
    Ok(draft)
}

fn geojson_point(value: Value<'_>) -> Result<Option<Place>> {
    if !matches!(value, Value::Document(_) | Value::Array(_)) {
        return Ok(None);
    }
    let point = parse_query_point(value).map_err(|error| {
        let reason = format!("invalid point in geo near query $geometry argument: {value}  {}", error.reason());
        Error::bad_value(reason)
    })?;
    if is_legacy_point(value) {
        return Err(Error::bad_value(format!("$near requires geojson point, given {value}")));
    }
    Ok(Some(point))
}

fn finite_distance(element: Element<'_>) -> Result<f64> {
    let Some(distance) = element.value.to_double() else {
        return Err(Error::bad_value(format!("{} must be a number", element.name)));
    };
    if distance >= 0.0 && distance.is_finite() {
        return Ok(distance);
    }
    Err(Error::bad_value(format!("{} must be non-negative", element.name)))
}
