//! Polygons by strict winding order: what is to the left of their ring is inside, even if that is most of the sphere.
//!
//! One that is larger than half of the sphere is kept as what it leaves out.

use super::{Line, Polygon, Ring, SpherePoint};
use s2::cell::Cell;

/// A ring without holes, of any size.
#[derive(Clone, Debug, PartialEq)]
pub struct BigPolygon {
    /// The smaller side of the ring.
    polygon: Polygon,
    /// The other side is meant.
    is_inverted: bool,
}

impl BigPolygon {
    /// What is to the left of the ring.
    pub fn new(ring: Ring) -> BigPolygon {
        let is_inverted = !ring.is_normalized();
        BigPolygon { polygon: Polygon::new(ring.normalized(), Vec::new()), is_inverted }
    }

    /// The polygon, if it is not larger than half of the sphere.
    pub fn small(&self) -> Option<&Polygon> {
        (!self.is_inverted).then_some(&self.polygon)
    }

    /// True if the point is inside or on the border.
    pub fn meets_point(&self, point: &SpherePoint) -> bool {
        self.meets_cell(&point.leaf())
    }

    /// True if the cell has a part inside.
    pub fn meets_cell(&self, cell: &Cell) -> bool {
        match self.is_inverted {
            true => !self.polygon.contains_cell(cell),
            false => self.polygon.meets_cell(cell),
        }
    }

    /// True if the cell has no part outside.
    pub fn contains_cell(&self, cell: &Cell) -> bool {
        match self.is_inverted {
            true => !self.polygon.meets_cell(cell),
            false => self.polygon.contains_cell(cell),
        }
    }

    /// True if the line has a part inside.
    pub fn meets_line(&self, line: &Line) -> bool {
        match self.is_inverted {
            true => !self.polygon.contains_line(line),
            false => self.polygon.meets_line(line),
        }
    }

    /// True if the line has no part outside.
    pub fn contains_line(&self, line: &Line) -> bool {
        match self.is_inverted {
            true => !self.polygon.meets_line(line),
            false => self.polygon.contains_line(line),
        }
    }

    /// True if they share a part.
    pub fn intersects(&self, other: &Polygon) -> bool {
        match self.is_inverted {
            true => !self.polygon.contains_polygon(other),
            false => self.polygon.intersects(other),
        }
    }

    /// True if the other has no part outside.
    pub fn contains_polygon(&self, other: &Polygon) -> bool {
        match self.is_inverted {
            true => !self.polygon.intersects(other),
            false => self.polygon.contains_polygon(other),
        }
    }
}
