//! What lies between two circles around one point: where a search by distance looks next.

use super::{Circle, PlaneBox, PlanePoint, PlaneRegion};

/// What is at least `inner` and at most `outer` away.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Annulus {
    /// The middle.
    pub center: PlanePoint,
    /// The least distance.
    pub inner: f64,
    /// The greatest distance.
    pub outer: f64,
}

impl Annulus {
    /// True if the point is inside or on a border.
    pub fn contains(&self, point: PlanePoint) -> bool {
        self.center.beyond(point, self.inner) >= 0.0 && self.center.beyond(point, self.outer) <= 0.0
    }

    fn outer_circle(&self) -> Circle {
        Circle { center: self.center, radius: self.outer }
    }

    fn inner_circle(&self) -> Circle {
        Circle { center: self.center, radius: self.inner }
    }
}

impl PlaneRegion for Annulus {
    fn contains_box(&self, other: &PlaneBox) -> bool {
        self.outer_circle().contains_box(other) && !self.inner_circle().meets_inside(other)
    }

    fn is_disjoint(&self, other: &PlaneBox) -> bool {
        !self.outer_circle().intersects(other) || self.inner_circle().holds_inside(other)
    }
}
