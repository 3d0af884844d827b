//! The sphere: points, lines and polygons whose edges are the shortest way between their ends.
//!
//! Predicates are exact, by the crate `s2`; polygons, which it does not have, are ours. A point is taken to be as large as the smallest cell (about a
//! square centimetre): so a point that was put on a border meets the shape.

mod big_polygon;
mod boxes;
mod covering;
mod edge_tree;
mod line;
mod polygon;
mod ring;

pub use big_polygon::BigPolygon;
pub use boxes::Boxes;
pub(crate) use covering::RegionParts;
pub use covering::{CellId, SphereLevels, annulus_covering, covering, is_touched_by_annulus, keys_of_cell};
pub use line::Line;
pub use polygon::Polygon;
pub use ring::Ring;

use crate::EARTH_RADIUS_METRES;
use s2::cell::Cell;
use s2::cellid::CellID;
use s2::latlng::LatLng;
use s2::point::Point;

/// What two points may be apart, in radians, and still be taken for one.
pub(crate) const TOLERANCE_RADIANS: f64 = 1e-15;

/// A point, and the smallest cell around it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpherePoint {
    pub(crate) point: Point,
    pub(crate) cell: CellID,
}

impl SpherePoint {
    /// The point at a longitude and latitude; none if they are out of bounds.
    pub fn of_degrees(longitude: f64, latitude: f64) -> Option<SpherePoint> {
        if !(longitude.abs() <= 180.0 && latitude.abs() <= 90.0) {
            return None;
        }
        let point = Point::from(LatLng::from_degrees(latitude, longitude).normalized());
        Some(SpherePoint { point, cell: CellID::from(point) })
    }

    pub(crate) fn of_point(point: Point) -> SpherePoint {
        SpherePoint { point, cell: CellID::from(point) }
    }

    pub(crate) fn leaf(&self) -> Cell {
        Cell::from(self.cell)
    }

    /// How far the other is, in radians.
    pub fn distance(&self, other: &SpherePoint) -> f64 {
        // Rounding must not part a point from itself.
        if self.point == other.point { 0.0 } else { self.point.distance(&other.point).rad() }
    }

    /// Longitude and latitude.
    pub fn to_degrees(&self) -> (f64, f64) {
        let place = LatLng::from(self.point);
        (place.lng.deg(), place.lat.deg())
    }
}

/// What is at most so far from a point.
#[derive(Clone, Debug, PartialEq)]
pub struct Cap {
    /// The middle.
    pub center: SpherePoint,
    /// How far the border is, in radians.
    pub radius: f64,
}

impl Cap {
    fn region(&self) -> s2::cap::Cap {
        if self.radius >= std::f64::consts::PI {
            return s2::cap::Cap::full();
        }
        s2::cap::Cap::from_center_angle(&self.center.point, &s2::s1::Rad(self.radius).into())
    }

    /// True if the point is inside or on the border.
    pub fn contains(&self, point: &SpherePoint) -> bool {
        use s2::region::Region;
        self.region().intersects_cell(&point.leaf())
    }

    /// True if everything that is at least so far from the point opposite of the middle is inside.
    fn reaches(&self, distance_to_antipode: f64) -> bool {
        distance_to_antipode >= std::f64::consts::PI - self.radius
    }

    /// The box around it in degrees. It does not go around the world: what is beyond its edge is left out.
    pub fn degree_bounds(&self) -> crate::plane::PlaneBox {
        use crate::plane::{PlaneBox, PlanePoint};
        const SLACK: f64 = 1e-9;
        let (longitude, latitude) = self.center.to_degrees();
        let height = self.radius.to_degrees() + SLACK;
        let (south, north) = ((latitude - height).max(-90.0), (latitude + height).min(90.0));
        // Where a meridian touches the border; there is none if a pole is inside.
        let sine = self.radius.sin() / latitude.to_radians().cos();
        let has_pole = north >= 90.0 || south <= -90.0 || sine.is_nan() || sine >= 1.0;
        let width = if has_pole { 360.0 } else { sine.asin().to_degrees() + SLACK };
        PlaneBox { min: PlanePoint::new(longitude - width, south), max: PlanePoint::new(longitude + width, north) }
    }

    fn antipode(&self) -> Point {
        self.center.point * -1.0
    }

    /// True if no part of the line is outside.
    pub fn contains_line(&self, line: &Line) -> bool {
        self.reaches(line.distance(&self.antipode()))
    }

    /// True if no part of the polygon is outside.
    pub fn contains_polygon(&self, polygon: &Polygon) -> bool {
        self.reaches(polygon.distance(&self.antipode()))
    }
}

/// Metres on the ground, from radians.
pub fn metres(radians: f64) -> f64 {
    radians * EARTH_RADIUS_METRES
}

/// Radians, from metres on the ground.
pub fn radians(metres: f64) -> f64 {
    metres / EARTH_RADIUS_METRES
}
