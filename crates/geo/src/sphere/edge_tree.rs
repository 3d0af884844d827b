//! Which edges of a ring can meet an edge, found without looking at all of them.
//!
//! Neighbours in a ring are neighbours on the sphere. So the boxes around runs of edges, the boxes around runs of such boxes and so on, in the ring's own
//! order, make a tree that needs no sorting. A box is one of space, around arcs on the unit sphere: it has no seam and no poles. It is never too small,
//! so what the tree leaves out cannot meet; what it gives still has to be tested.

use s2::point::Point;
use std::ops::Range;

/// How many edges, or boxes, a box is around.
const FAN: usize = 8;
/// Above all rounding, and above the distance at which points count as one.
const MARGIN: f64 = 1e-11;

/// A box in space.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounds {
    low: [f64; 3],
    high: [f64; 3],
}

impl Bounds {
    /// Around the arc between two points.
    pub fn of_edge(from: &Point, to: &Point) -> Bounds {
        let (a, b) = (coordinates(from), coordinates(to));
        let half_chord_squared: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b) / 4.0).sum();
        // The arc is nowhere farther from its chord than in the middle.
        let rise = 1.0 - (1.0 - half_chord_squared).max(0.0).sqrt() + MARGIN;
        Bounds {
            low: std::array::from_fn(|axis| a[axis].min(b[axis]) - rise),
            high: std::array::from_fn(|axis| a[axis].max(b[axis]) + rise),
        }
    }

    fn overlaps(&self, other: &Bounds) -> bool {
        (0..3).all(|axis| self.low[axis] <= other.high[axis] && other.low[axis] <= self.high[axis])
    }

    fn with(self, other: &Bounds) -> Bounds {
        Bounds {
            low: std::array::from_fn(|axis| self.low[axis].min(other.low[axis])),
            high: std::array::from_fn(|axis| self.high[axis].max(other.high[axis])),
        }
    }
}

fn coordinates(point: &Point) -> [f64; 3] {
    [point.0.x, point.0.y, point.0.z]
}

/// The boxes of a ring's edges.
#[derive(Clone, Debug, PartialEq)]
pub struct EdgeTree {
    edge_count: usize,
    /// The boxes around edges first, the last level has at most `FAN`.
    levels: Vec<Vec<Bounds>>,
}

impl EdgeTree {
    /// The tree of these edges, in their order.
    pub fn new(edges: impl Iterator<Item = (Point, Point)>) -> EdgeTree {
        let edges: Vec<Bounds> = edges.map(|(from, to)| Bounds::of_edge(&from, &to)).collect();
        let mut levels = vec![joined(&edges)];
        while let Some(last) = levels.last().filter(|last| last.len() > FAN) {
            let next = joined(last);
            levels.push(next);
        }
        EdgeTree { edge_count: edges.len(), levels }
    }

    /// Runs of edges, in their order, that hold all edges from the first one on that can meet what is in the box.
    pub fn near(&self, bounds: Bounds, first: usize) -> impl Iterator<Item = Range<usize>> {
        let top = self.levels.len().saturating_sub(1);
        let mut waiting: Vec<(usize, usize)> = self.children(top + 1, 0).rev().map(|place| (top, place)).collect();
        std::iter::from_fn(move || {
            while let Some((level, place)) = waiting.pop() {
                let edges_in_box = FAN.saturating_pow(u32::try_from(level + 1).unwrap_or(u32::MAX));
                let end = (place + 1).saturating_mul(edges_in_box).min(self.edge_count);
                let is_near = |boxes: &Vec<Bounds>| boxes.get(place).is_some_and(|around| around.overlaps(&bounds));
                if end <= first || !self.levels.get(level).is_some_and(is_near) {
                    continue;
                }
                match level.checked_sub(1) {
                    None => return Some((place * FAN).max(first)..end),
                    Some(below) => waiting.extend(self.children(level, place).rev().map(|child| (below, child))),
                }
            }
            None
        })
    }

    /// The places of the boxes below a box; below the one around all for the level above the last.
    fn children(&self, level: usize, place: usize) -> Range<usize> {
        let count = level.checked_sub(1).and_then(|below| self.levels.get(below)).map_or(0, Vec::len);
        place * FAN..((place + 1) * FAN).min(count)
    }
}

fn joined(boxes: &[Bounds]) -> Vec<Bounds> {
    boxes.chunks(FAN).filter_map(|run| run.iter().copied().reduce(|one, two| one.with(&two))).collect()
}
