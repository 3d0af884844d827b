//! Whether a shape on the sphere may meet a box of degrees: by the boxes around the cells that cover it.

use super::covering::cells_of;
use s2::cell::Cell;
use s2::rect::Rect;
use s2::{r1, s1};

/// The boxes around a shape, which hold every point of it.
#[derive(Clone, Debug)]
pub struct Boxes(Vec<Rect>);

/// Coarser cells are taken for everything.
const EXACT_LEVEL: u8 = 2;

/// Nearer to a pole, in degrees, longitudes say nothing.
const POLE_DEGREES: f64 = 89.99;

/// What rounding takes, in radians.
const SLACK: f64 = 1e-9;

impl Boxes {
    /// The boxes around a shape; none if it is not on the sphere.
    pub fn of(geometry: &crate::Geometry) -> Option<Boxes> {
        let cells = cells_of(&geometry.region_parts()?, None);
        let around = |cell: super::CellId| match Cell::from(cell.id()) {
            cell if cell.level() < EXACT_LEVEL => Rect::full(),
            cell => cell.rect_bound(),
        };
        Some(Boxes(cells.into_iter().map(around).collect()))
    }

    /// False if no point of the shape is in a box of degrees.
    pub fn may_meet(&self, bounds: &crate::plane::PlaneBox) -> bool {
        if bounds.max.y >= POLE_DEGREES || bounds.min.y <= -POLE_DEGREES {
            return true;
        }
        let latitude =
            r1::interval::Interval::new(bounds.min.y.to_radians() - SLACK, bounds.max.y.to_radians() + SLACK);
        let (west, east) = (bounds.min.x.to_radians() - SLACK, bounds.max.x.to_radians() + SLACK);
        // A box that ends where the world does goes on behind it.
        let is_around = west <= -std::f64::consts::PI || east >= std::f64::consts::PI;
        let longitude = if is_around { s1::interval::FULL } else { s1::Interval::new(west, east) };
        self.0.iter().any(|own| own.lat.intersects(&latitude) && own.lng.intersects(&longitude))
    }
}
