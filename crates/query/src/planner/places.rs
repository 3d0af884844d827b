//! Bounds of `2d` and `2dsphere` indexes: the keys of the cells that cover a query's shape.
//!
//! Cells say where to look, never what is there: documents are looked at in any case. An index has no document without a shape, so that it serves
//! only filters with a condition on one of its places.

use super::condition::Condition;
use super::{IndexBounds, IndexField, IndexInfo, Interval, IntervalList, Tightness};
use pando_base::Result;
use pando_catalog::IndexDescriptor;
use pando_doc::{OwnedValue, Value};
use pando_expr::matcher::Predicate;
use pando_geo::plane::{self, Grid};
use pando_geo::sphere::{self, CellId, SphereLevels};
use pando_geo::{GeoPredicate, Geometry, NearQuery, Relation};

/// How many cells of the plane are looked at, about.
pub(crate) const PLANE_CELLS_MAX: usize = 16;
/// The type of the bytes that cells of the plane are stored as.
const CELL_SUBTYPE: u8 = 0x80;

/// The cells that are the keys of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PlaceField {
    /// Cells of the plane.
    Plane(Grid),
    /// Cells of the sphere.
    Sphere(SphereLevels),
}

impl PlaceField {
    /// The cells of a field whose key pattern has this name, if it is one of places.
    pub(super) fn of(plugin: Option<&str>, descriptor: &IndexDescriptor) -> Result<Option<PlaceField>> {
        let specification = descriptor.specification.view();
        let version = || specification.get("2dsphereIndexVersion").map_or(1, |version| version.to_i64_or_zero());
        match plugin {
            Some("2d") => Ok(Some(PlaceField::Plane(Grid::parse(specification)?))),
            Some("2dsphere" | "2dsphere_bucket") => {
                Ok(Some(PlaceField::Sphere(SphereLevels::parse(specification, version())?)))
            }
            _ => Ok(None),
        }
    }

    /// True if searches of this kind can use the cells.
    pub fn serves(&self, near: &NearQuery) -> bool {
        match self {
            PlaceField::Plane(_) => !near.is_wrapping,
            PlaceField::Sphere(_) => near.center.is_spherical,
        }
    }
}

/// The intervals of a condition on a field of an index of places.
pub(super) fn intervals(field: &IndexField, condition: &Condition<'_>) -> Option<(IntervalList, Tightness)> {
    let place = field.place.as_ref().filter(|_| !condition.negated)?;
    let list = match condition.predicate {
        Predicate::Geo(geo) => covering(place, geo)?,
        Predicate::Near(near) if place.serves(near) => IntervalList::everything(),
        _ => return None,
    };
    Some((list, Tightness::NeedsFetch))
}

/// True if the bounds have a condition on a place.
pub(super) fn is_bounded(info: &IndexInfo, bounds: &IndexBounds) -> bool {
    let is_bounded = |(field, bounds): (&IndexField, &super::FieldBounds)| {
        field.place.is_some() && !bounds.intervals.is_everything()
    };
    info.fields.iter().zip(&bounds.fields).any(is_bounded)
}

fn covering(place: &PlaceField, geo: &GeoPredicate) -> Option<IntervalList> {
    match place {
        PlaceField::Plane(grid) if geo.relation() == Relation::Within && !wraps(geo.geometry(), grid) => {
            let region = geo.geometry().plane_region()?;
            Some(of_plane_cells(&plane::covering(&*region, grid, PLANE_CELLS_MAX)))
        }
        PlaceField::Plane(_) => None,
        PlaceField::Sphere(_) if geo.geometry().is_flat() => None,
        PlaceField::Sphere(levels) => {
            let cells = sphere::covering(geo.geometry(), None)?;
            Some(of_sphere_cells(&cells, levels))
        }
    }
}

/// The keys of these cells of the plane.
pub(crate) fn of_plane_cells(cells: &[plane::Cell]) -> IntervalList {
    let key = |bytes: [u8; 8]| Value::Binary { subtype: CELL_SUBTYPE, bytes: &bytes }.to_owned();
    IntervalList::of(cells.iter().map(|cell| {
        let (least, greatest) = cell.key_range();
        Interval::new(key(least), true, key(greatest), true)
    }))
}

/// The keys of these cells of the sphere, of all in them, and of those that hold them.
pub(crate) fn of_sphere_cells(cells: &[CellId], levels: &SphereLevels) -> IntervalList {
    let ranges = sphere::keys_of_cell(cells, levels.coarsest);
    IntervalList::of(
        ranges
            .into_iter()
            .map(|(least, greatest)| Interval::new(OwnedValue::Int64(least), true, OwnedValue::Int64(greatest), true)),
    )
}

/// The keys of these cells of the sphere and of all in them.
pub(crate) fn inside_sphere_cells(cells: &[CellId]) -> IntervalList {
    IntervalList::of(cells.iter().map(|cell| {
        let (least, greatest) = cell.key_range();
        Interval::new(OwnedValue::Int64(least), true, OwnedValue::Int64(greatest), true)
    }))
}

/// How far a distance in degrees reaches along a circle of latitude.
pub(crate) fn degrees_along_latitude(latitude: f64, degrees: f64) -> f64 {
    let north = (latitude + degrees).min(89.0).to_radians().cos();
    let south = (latitude - degrees).max(-89.0).to_radians().cos();
    degrees / north.min(south)
}

/// True for a cap that goes over an edge of the map: cells of the plane do not.
fn wraps(geometry: &Geometry, grid: &Grid) -> bool {
    let Geometry::Cap(_, circle) = geometry else { return false };
    let vertical = circle.radius.to_degrees() + grid.error().to_radians();
    let horizontal = degrees_along_latitude(circle.center.y, vertical);
    let fits = circle.center.x + horizontal < 180.0
        && circle.center.x - horizontal > -180.0
        && circle.center.y + vertical < 90.0
        && circle.center.y - vertical > -90.0;
    !fits
}
