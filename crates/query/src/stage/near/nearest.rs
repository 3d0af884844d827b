//! How far a document is from the point of a search.

use pando_doc::{DocRef, FieldPath, OwnedValue, Value};
use pando_geo::NearQuery;
use pando_geo::plane::{Annulus, PlanePoint};
use pando_index::values_along;

/// The place of a document that is nearest to the point of a search.
pub(crate) struct Nearest {
    /// How far it is, as distances are measured.
    pub(crate) distance: f64,
    /// The place as it is stored.
    pub(crate) place: OwnedValue,
    point: Option<PlanePoint>,
}

impl Nearest {
    /// The nearest of the places that a path leads to; none if there is none.
    pub(crate) fn of(document: DocRef<'_>, path: &FieldPath, near: &NearQuery) -> Option<Nearest> {
        let mut best: Option<(f64, Value<'_>, Option<PlanePoint>)> = None;
        for value in values_along(document, path, false, &mut |_| {}) {
            // Many places may be in one array, as a place itself may be.
            let places = match (pando_geo::parse_stored(value), value) {
                (Ok(place), _) => vec![(value, place)],
                (Err(_), Value::Array(array)) => {
                    let parsed = |value| pando_geo::parse_stored(value).ok().map(|place| (value, place));
                    array.values().filter_map(parsed).collect()
                }
                (Err(_), _) => Vec::new(),
            };
            for (value, geometry) in places {
                let Some(distance) = geometry.distance(&near.center) else { continue };
                if best.as_ref().is_none_or(|(least, ..)| distance < *least) {
                    best = Some((distance, value, geometry.as_point().map(|place| place.plane)));
                }
            }
        }
        best.map(|(distance, value, point)| Nearest { distance, place: value.to_owned(), point })
    }

    /// True if it lies between the distances of the search, given as they are measured.
    pub(crate) fn is_between(&self, near: &NearQuery, (inner, outer): (f64, f64)) -> bool {
        match self.point.filter(|_| !near.center.is_spherical) {
            Some(point) => Annulus { center: near.center.plane, inner, outer }.contains(point),
            None => self.distance >= inner && self.distance <= outer,
        }
    }
}
