//! Polygons: a ring, and rings in it that are holes.

use super::{Line, Ring, SpherePoint, TOLERANCE_RADIANS};
use s2::cell::Cell;
use s2::edge_crossings::{Crossing, crossing_sign, get_intersection};
use s2::point::Point;

/// How far a line may be outside and still be taken for one on the border: a tenth of a billionth of a degree.
const LINE_TOLERANCE_RADIANS: f64 = 1e-10 * std::f64::consts::PI / 180.0;

/// What is inside a ring and outside of its holes. Each ring has the smaller part of the sphere inside.
#[derive(Clone, Debug, PartialEq)]
pub struct Polygon {
    shell: Ring,
    holes: Vec<Ring>,
}

impl Polygon {
    /// The polygon of these rings.
    pub fn new(shell: Ring, holes: Vec<Ring>) -> Polygon {
        Polygon { shell, holes }
    }

    /// Why the rings do not make a polygon, if they do not: they cross, share edges, or holes lie in each other.
    pub fn fault(&self) -> Option<String> {
        for (place, hole) in self.holes.iter().enumerate() {
            let others = std::iter::once(&self.shell).chain(self.holes.iter().take(place));
            for (number, other) in others.enumerate() {
                let this = place + 1;
                if hole.shares_edge(other) {
                    return Some(format!("Polygon isn't valid: Duplicate edge: loops {number} and {this}"));
                }
                if hole.crosses(other) {
                    return Some(format!("Polygon isn't valid: Loop {number} crosses loop {this}"));
                }
                if number == 0 && hole.shared_vertex_count(other) > 1 {
                    let reason = format!("Loop {this} shares more than one vertex with its parent loop {number}");
                    return Some(reason);
                }
                if number > 0 && (other.contains_ring(hole) || hole.contains_ring(other)) {
                    return Some("Polygon interior loops cannot be nested".to_owned());
                }
            }
        }
        None
    }

    /// The outer ring.
    pub fn shell(&self) -> &Ring {
        &self.shell
    }

    /// All rings.
    pub fn rings(&self) -> impl Iterator<Item = &Ring> {
        std::iter::once(&self.shell).chain(&self.holes)
    }

    /// True if the point is inside; of the points on the border some are.
    pub fn contains(&self, point: &Point) -> bool {
        self.shell.contains(point) && !self.holes.iter().any(|hole| hole.contains(point))
    }

    /// True if the point is inside or on the border.
    pub fn meets_point(&self, point: &SpherePoint) -> bool {
        self.contains(&point.point) || self.meets_cell(&point.leaf())
    }

    /// True if the cell has a part inside.
    pub fn meets_cell(&self, cell: &Cell) -> bool {
        let border = Ring::of_cell(cell);
        self.shell.intersects(&border) && !self.holes.iter().any(|hole| hole.contains_ring(&border))
    }

    /// True if the cell has no part outside.
    pub fn contains_cell(&self, cell: &Cell) -> bool {
        let border = Ring::of_cell(cell);
        self.shell.contains_ring(&border) && !self.holes.iter().any(|hole| hole.intersects(&border))
    }

    /// True if they share a part.
    pub fn intersects(&self, other: &Polygon) -> bool {
        // What a hole holds of the one shell in the other, it holds of the whole shell.
        self.shell.intersects(&other.shell)
            && !self.holes.iter().any(|hole| hole.contains_ring(&other.shell))
            && !other.holes.iter().any(|hole| hole.contains_ring(&self.shell))
    }

    /// True if the other has no part outside.
    pub fn contains_polygon(&self, other: &Polygon) -> bool {
        let is_harmless =
            |hole: &Ring| !hole.intersects(&other.shell) || other.holes.iter().any(|inner| inner.contains_ring(hole));
        self.shell.contains_ring(&other.shell) && self.holes.iter().all(is_harmless)
    }

    /// True if the line has a part inside.
    pub fn meets_line(&self, line: &Line) -> bool {
        line.vertices().iter().any(|vertex| self.contains(vertex))
            || line.edges().any(|(from, to)| {
                self.rings().any(|ring| ring.edges_near(&from, &to).any(|(a, b)| is_crossing(&from, &to, &a, &b)))
            })
            || line.edges().any(|(from, to)| self.pieces(&from, &to).iter().any(|middle| self.contains(middle)))
    }

    /// True if the line has no part outside.
    pub fn contains_line(&self, line: &Line) -> bool {
        let is_inside = |point: &Point| self.contains(point) || self.is_on_border(point);
        line.vertices().iter().all(is_inside)
            && line.edges().all(|(from, to)| self.pieces(&from, &to).iter().all(is_inside))
    }

    fn is_on_border(&self, point: &Point) -> bool {
        self.rings().any(|ring| ring.distance_to_border(point) <= LINE_TOLERANCE_RADIANS)
    }

    /// The middles of the pieces into which the border cuts an edge.
    fn pieces(&self, from: &Point, to: &Point) -> Vec<Point> {
        let mut cuts = vec![*from, *to];
        for (a, b) in self.rings().flat_map(|ring| ring.edges_near(from, to)) {
            match crossing_sign(from, to, &a, &b) {
                Crossing::Cross => cuts.push(get_intersection(from, to, &a, &b)),
                _ => cuts.extend([a, b].into_iter().filter(|vertex| is_on_edge(vertex, from, to))),
            }
        }
        cuts.sort_by(|one, two| from.distance(one).rad().total_cmp(&from.distance(two).rad()));
        cuts.windows(2).filter_map(|pair| Some((*pair.first()? + *pair.last()?).normalize())).collect()
    }

    /// How far it is, in radians.
    pub fn distance(&self, point: &Point) -> f64 {
        if self.contains(point) {
            return 0.0;
        }
        self.rings().map(|ring| ring.distance_to_border(point)).fold(f64::INFINITY, f64::min)
    }
}

fn is_crossing(from: &Point, to: &Point, a: &Point, b: &Point) -> bool {
    crossing_sign(from, to, a, b) == Crossing::Cross
}

fn is_on_edge(point: &Point, from: &Point, to: &Point) -> bool {
    s2::edgeutil::distance_from_segment(point, from, to).rad() <= TOLERANCE_RADIANS
}
