//! The plane: points, boxes, circles and polygons in coordinates without units.
//!
//! Borders belong to the shapes. Distances along one axis are compared by sums instead of differences: `51.9999 + 0.0001 <= 52` holds for doubles,
//! `52 - 51.9999 <= 0.0001` does not, and people put points exactly on borders.

mod cells;
mod covering;
mod polygon;
mod ring_region;

pub use cells::{Cell, CellUnion, Grid};
pub use covering::{PlaneRegion, covering};
pub use polygon::PlanePolygon;
pub use ring_region::Annulus;

/// A point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlanePoint {
    /// To the right; the longitude, where that has a meaning.
    pub x: f64,
    /// Upwards; the latitude, where that has a meaning.
    pub y: f64,
}

impl PlanePoint {
    /// A point.
    pub const fn new(x: f64, y: f64) -> PlanePoint {
        PlanePoint { x, y }
    }

    /// How far the other is.
    pub fn distance(self, other: PlanePoint) -> f64 {
        let (x, y) = (self.x - other.x, self.y - other.y);
        if x == 0.0 {
            return y.abs();
        }
        if y == 0.0 {
            return x.abs();
        }
        (x * x + y * y).sqrt()
    }

    /// By how much the other is further than `radius`: negative if it is nearer.
    pub fn beyond(self, other: PlanePoint, radius: f64) -> f64 {
        let along = |one: f64, two: f64| one.max(two) - (one.min(two) + radius);
        if self.x == other.x {
            return along(self.y, other.y);
        }
        if self.y == other.y {
            return along(self.x, other.x);
        }
        let (x, y) = (other.x - self.x, other.y - self.y);
        (x * x + y * y).sqrt() - radius
    }
}

/// A rectangle along the axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlaneBox {
    /// The corner with the least coordinates.
    pub min: PlanePoint,
    /// The corner with the greatest.
    pub max: PlanePoint,
}

impl PlaneBox {
    /// The box between two opposite corners, whichever they are.
    pub fn between(one: PlanePoint, two: PlanePoint) -> PlaneBox {
        PlaneBox {
            min: PlanePoint::new(one.x.min(two.x), one.y.min(two.y)),
            max: PlanePoint::new(one.x.max(two.x), one.y.max(two.y)),
        }
    }

    /// True if the point is inside or on the border.
    pub fn contains(&self, point: PlanePoint) -> bool {
        (self.min.x..=self.max.x).contains(&point.x) && (self.min.y..=self.max.y).contains(&point.y)
    }

    /// True if no part of the other is outside.
    pub fn contains_box(&self, other: &PlaneBox) -> bool {
        self.contains(other.min) && self.contains(other.max)
    }

    /// True if they share a point.
    pub fn intersects(&self, other: &PlaneBox) -> bool {
        self.min.x <= other.max.x && other.min.x <= self.max.x && self.min.y <= other.max.y && other.min.y <= self.max.y
    }

    /// The box made larger until the point is in it.
    pub fn extend(&mut self, point: PlanePoint) {
        self.min = PlanePoint::new(self.min.x.min(point.x), self.min.y.min(point.y));
        self.max = PlanePoint::new(self.max.x.max(point.x), self.max.y.max(point.y));
    }

    /// The four corners, in a circle.
    pub fn corners(&self) -> [PlanePoint; 4] {
        let (min, max) = (self.min, self.max);
        [min, PlanePoint::new(max.x, min.y), max, PlanePoint::new(min.x, max.y)]
    }

    /// The point of the box that is nearest to another.
    fn nearest_to(&self, point: PlanePoint) -> PlanePoint {
        PlanePoint::new(point.x.max(self.min.x).min(self.max.x), point.y.max(self.min.y).min(self.max.y))
    }
}

/// A disc.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Circle {
    /// Its middle.
    pub center: PlanePoint,
    /// How far its border is from the middle.
    pub radius: f64,
}

impl Circle {
    /// True if the point is inside or on the border.
    pub fn contains(&self, point: PlanePoint) -> bool {
        self.center.beyond(point, self.radius) <= 0.0
    }

    /// The box around it.
    pub fn bounds(&self) -> PlaneBox {
        let (center, radius) = (self.center, self.radius);
        PlaneBox {
            min: PlanePoint::new(center.x - radius, center.y - radius),
            max: PlanePoint::new(center.x + radius, center.y + radius),
        }
    }

    /// True if no part of the box is outside.
    pub fn contains_box(&self, other: &PlaneBox) -> bool {
        other.corners().into_iter().all(|corner| self.contains(corner))
    }

    /// True if no part of the box is outside or on the border.
    fn holds_inside(&self, other: &PlaneBox) -> bool {
        other.corners().into_iter().all(|corner| self.center.beyond(corner, self.radius) < 0.0)
    }

    /// True if they share a point.
    pub fn intersects(&self, other: &PlaneBox) -> bool {
        self.contains(other.nearest_to(self.center))
    }

    /// True if they share a point that is not on the circle's border.
    fn meets_inside(&self, other: &PlaneBox) -> bool {
        self.center.beyond(other.nearest_to(self.center), self.radius) < 0.0
    }
}
