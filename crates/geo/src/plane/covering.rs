//! Few cells that cover a region of the plane.
//!
//! The largest cells that lie partly inside are divided first, until there are as many as are allowed.

use super::{Cell, Circle, Grid, PlaneBox, PlanePolygon};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A part of the plane, as far as coverings need to know it.
pub trait PlaneRegion {
    /// True if the box lies inside for sure.
    fn contains_box(&self, other: &PlaneBox) -> bool;

    /// True if the box lies outside for sure.
    fn is_disjoint(&self, other: &PlaneBox) -> bool;
}

impl PlaneRegion for PlaneBox {
    fn contains_box(&self, other: &PlaneBox) -> bool {
        PlaneBox::contains_box(self, other)
    }

    fn is_disjoint(&self, other: &PlaneBox) -> bool {
        !self.intersects(other)
    }
}

impl PlaneRegion for Circle {
    fn contains_box(&self, other: &PlaneBox) -> bool {
        Circle::contains_box(self, other)
    }

    fn is_disjoint(&self, other: &PlaneBox) -> bool {
        !self.bounds().intersects(other)
    }
}

impl PlaneRegion for PlanePolygon {
    fn contains_box(&self, other: &PlaneBox) -> bool {
        PlanePolygon::contains_box(self, other)
    }

    fn is_disjoint(&self, other: &PlaneBox) -> bool {
        !self.bounds().intersects(other)
    }
}

/// Cells that hold every point of the region, about `count_max` of them, in order.
pub fn covering(region: &dyn PlaneRegion, grid: &Grid, count_max: usize) -> Vec<Cell> {
    let touches = |cell: &Cell| !region.is_disjoint(&grid.outline(*cell));
    let is_final = |cell: Cell| cell.level() >= grid.bits() || region.contains_box(&grid.outline(cell));
    let mut found = Vec::new();
    let mut open: BinaryHeap<(Reverse<u32>, Cell)> = BinaryHeap::new();
    open.extend(touches(&Cell::ROOT).then_some((Reverse(0), Cell::ROOT)));
    while let Some((_, cell)) = open.pop() {
        if is_final(cell) {
            found.push(cell);
            continue;
        }
        let children: Vec<Cell> = cell.children().into_iter().flatten().filter(touches).collect();
        if children.len() > 1 && found.len() + open.len() + children.len() > count_max {
            found.push(cell);
            continue;
        }
        open.extend(children.into_iter().map(|child| (Reverse(child.level()), child)));
    }
    found.sort_unstable();
    found
}
