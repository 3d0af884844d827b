//! The cells of `2d` indexes: a square is halved both ways, again and again.
//!
//! A cell is a prefix of bits, x and y in turn, most significant first; a key of the index is such a prefix as eight bytes, the rest zero. All keys in
//! a cell lie between its own key and the same with the rest one.

use super::{PlaneBox, PlanePoint};
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{DocRef, Value};

/// How often an axis can be halved at most.
pub const BIT_COUNT_MAX: u32 = 32;

/// A square of the plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cell {
    bits: u64,
    level: u32,
}

impl Cell {
    /// The whole square that is indexed.
    pub const ROOT: Cell = Cell { bits: 0, level: 0 };

    /// The cell of this level in which the bits lie.
    pub fn new(bits: u64, level: u32) -> Cell {
        debug_assert!(level <= BIT_COUNT_MAX);
        Cell { bits: bits & prefix_mask(level), level }
    }

    /// How often it was halved.
    pub fn level(self) -> u32 {
        self.level
    }

    /// The least and the greatest key in it.
    pub fn key_range(self) -> ([u8; 8], [u8; 8]) {
        (self.bits.to_be_bytes(), (self.bits | !prefix_mask(self.level)).to_be_bytes())
    }

    /// The key of a point in this cell.
    pub fn key(self) -> [u8; 8] {
        self.bits.to_be_bytes()
    }

    /// True if the other is this one or a part of it.
    pub fn contains(self, other: Cell) -> bool {
        self.level <= other.level && Cell::new(other.bits, self.level) == self
    }

    /// The cell that this one is a quarter of, at a level above.
    pub fn parent(self, level: u32) -> Cell {
        Cell::new(self.bits, level.min(self.level))
    }

    /// Its four quarters; none at the last level.
    pub fn children(self) -> Option<[Cell; 4]> {
        if self.level >= BIT_COUNT_MAX {
            return None;
        }
        let level = self.level + 1;
        Some([0_u64, 1, 2, 3].map(|quarter| Cell::new(self.bits | quarter << (64 - 2 * level), level)))
    }

    /// Its place along both axes, in units of the finest cells.
    fn place(self) -> (u32, u32) {
        let (mut x, mut y) = (0_u32, 0_u32);
        for position in 0..BIT_COUNT_MAX {
            let pair = self.bits >> (62 - 2 * position);
            x = x << 1 | (pair >> 1 & 1) as u32;
            y = y << 1 | (pair & 1) as u32;
        }
        (x, y)
    }

    fn of_place(x: u32, y: u32, level: u32) -> Cell {
        let mut bits = 0_u64;
        for position in (0..BIT_COUNT_MAX).rev() {
            bits = bits << 2 | u64::from(x >> position & 1) << 1 | u64::from(y >> position & 1);
        }
        Cell::new(bits, level)
    }

    /// The cell of this level that holds this one, and those around the corner of it that is nearest.
    pub fn around_corner(self, level: u32) -> Vec<Cell> {
        let parent = self.parent(level);
        let ((x, y), (parent_x, parent_y)) = (self.place(), parent.place());
        let size = 1_u64 << (BIT_COUNT_MAX - parent.level);
        let neighbour = |place: u32, from: u32| {
            let is_low = u64::from(place - from) < size / 2;
            let other = if is_low { i64::from(from) - size as i64 } else { i64::from(from) + size as i64 };
            u32::try_from(other).ok()
        };
        let (other_x, other_y) = (neighbour(x, parent_x), neighbour(y, parent_y));
        let mut found = vec![parent];
        let level = parent.level;
        found.extend(other_x.map(|x| Cell::of_place(x, parent_y, level)));
        found.extend(other_y.map(|y| Cell::of_place(parent_x, y, level)));
        found.extend(other_x.zip(other_y).map(|(x, y)| Cell::of_place(x, y, level)));
        found.sort_unstable();
        found.dedup();
        found
    }
}

fn prefix_mask(level: u32) -> u64 {
    if level == 0 { 0 } else { u64::MAX << (64 - 2 * level) }
}

/// Cells that do not overlap, in order.
#[derive(Clone, Debug, Default)]
pub struct CellUnion {
    cells: Vec<Cell>,
}

impl CellUnion {
    /// True if the cell lies wholly in one of these.
    pub fn contains(&self, cell: Cell) -> bool {
        let behind = self.cells.partition_point(|known| *known <= cell);
        let before = behind.checked_sub(1).and_then(|place| self.cells.get(place));
        before.is_some_and(|known| known.contains(cell))
    }

    fn intersects(&self, cell: Cell) -> bool {
        self.contains(cell) || self.cells.iter().any(|known| cell.contains(*known))
    }

    /// What of these cells is not in the union, in order.
    pub fn missing_of(&self, cells: &[Cell]) -> Vec<Cell> {
        let mut missing = Vec::new();
        let mut open: Vec<Cell> = cells.to_vec();
        while let Some(cell) = open.pop() {
            if self.contains(cell) {
                continue;
            }
            match cell.children().filter(|_| self.intersects(cell)) {
                Some(children) => open.extend(children),
                None => missing.push(cell),
            }
        }
        missing.sort_unstable();
        missing
    }

    /// Adds cells that the union does not have.
    pub fn add(&mut self, cells: &[Cell]) {
        self.cells.extend_from_slice(cells);
        self.cells.sort_unstable();
        let mut kept: Vec<Cell> = Vec::with_capacity(self.cells.len());
        for cell in self.cells.drain(..) {
            if kept.last().is_none_or(|last| !last.contains(cell)) {
                kept.push(cell);
            }
        }
        self.cells = kept;
    }
}

/// The square of an index and how finely it is divided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grid {
    bits: u32,
    min: f64,
    max: f64,
}

impl Grid {
    /// Reads it from the specification of an index.
    pub fn parse(specification: DocRef<'_>) -> Result<Grid> {
        let number = |name: &str, default: f64| match specification.get(name) {
            None => Ok(default),
            Some(value) => value.to_double().ok_or_else(|| wrong_type(name, value)),
        };
        // A fraction is cut off.
        let bits = number("bits", 26.0)?.trunc();
        let (max, min) = (number("max", 180.0)?, number("min", -180.0)?);
        let refused = |reason: String| Err(Error::new(ErrorCode::InvalidOptions, reason));
        if !(1.0..=f64::from(BIT_COUNT_MAX)).contains(&bits) {
            return refused(format!("bits for hash must be > 0 and <= 32, but {bits} bits were specified"));
        }
        if min >= max || !min.is_finite() || !max.is_finite() {
            let area = "region for hash must be valid and have positive area";
            return refused(format!("{area}, but [{min}, {max}] was specified"));
        }
        let scale = 4_294_967_296.0 / (max - min);
        if !(scale > 0.0 && scale.is_finite()) {
            return refused(format!("range [{min}, {max}] is too small."));
        }
        let grid = Grid { bits: bits as u32, min, max };
        if max - min < grid.error() / 2.0 {
            return refused(format!("invalid computed error: {} on range [{min}, {max}].", grid.error()));
        }
        Ok(grid)
    }

    /// How finely.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    /// The least coordinate.
    pub fn min(&self) -> f64 {
        self.min
    }

    /// The coordinate that is just outside.
    pub fn max(&self) -> f64 {
        self.max
    }

    fn scale(&self) -> f64 {
        4_294_967_296.0 / (self.max - self.min)
    }

    /// The length of an edge of cells of a level.
    pub fn edge(&self, level: u32) -> f64 {
        (self.max - self.min) / 2_f64.powi(level as i32)
    }

    /// How far two points with one key can be apart.
    pub fn error(&self) -> f64 {
        self.edge(self.bits) * std::f64::consts::SQRT_2 + 0.001 / self.scale()
    }

    /// True if the point is inside or on the border.
    pub fn contains(&self, point: PlanePoint) -> bool {
        let is_inside = |value: f64| (self.min..=self.max).contains(&value);
        is_inside(point.x) && is_inside(point.y)
    }

    /// The cell of a point, of one outside the nearest.
    pub fn cell(&self, point: PlanePoint) -> Cell {
        Cell::of_place(self.place(point.x), self.place(point.y), self.bits)
    }

    fn place(&self, value: f64) -> u32 {
        // What is on or above the last border, and what is not a number, saturates.
        ((value - self.min) * self.scale()) as u32
    }

    /// A box that surely holds all points whose keys are in the cell.
    pub fn outline(&self, cell: Cell) -> PlaneBox {
        let (x, y) = cell.place();
        let size = 2_f64.powi((BIT_COUNT_MAX - cell.level) as i32);
        // Twice the rounding of hashing and unhashing, and once more on top, since the last cell holds its border.
        let fuzz = 8.0 * self.min.abs().max(self.max.abs()) * f64::EPSILON;
        let back = |place: f64| self.min + place / self.scale();
        PlaneBox {
            min: PlanePoint::new(back(f64::from(x)) - fuzz, back(f64::from(y)) - fuzz),
            max: PlanePoint::new(back(f64::from(x) + size) + fuzz, back(f64::from(y) + size) + fuzz),
        }
    }
}

fn wrong_type(name: &str, value: Value<'_>) -> Error {
    let reason = format!("wrong type for '{name}' field, expected number, found {value}");
    Error::new(ErrorCode::InvalidOptions, reason)
}
