//! Lines: edges from vertex to vertex.

use super::SpherePoint;
use s2::cell::Cell;
use s2::edge_crossings::{Crossing, EdgeCrosser};
use s2::edgeutil::distance_from_segment;
use s2::point::Point;

/// A line through at least two points.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    vertices: Vec<Point>,
}

impl Line {
    /// The line through these points, or why there is none.
    pub fn new(vertices: Vec<Point>) -> Result<Line, String> {
        for (place, pair) in vertices.windows(2).enumerate() {
            if let [one, two] = pair
                && *one == *two * -1.0
            {
                return Err(format!("Vertices {place} and {} are antipodal", place + 1));
            }
        }
        Ok(Line { vertices })
    }

    /// The vertices.
    pub fn vertices(&self) -> &[Point] {
        &self.vertices
    }

    /// The edges.
    pub fn edges(&self) -> impl Iterator<Item = (Point, Point)> {
        self.vertices.windows(2).filter_map(|pair| Some((*pair.first()?, *pair.last()?)))
    }

    /// True if they cross or touch.
    pub fn intersects(&self, other: &Line) -> bool {
        self.edges().any(|(from, to)| other.edges().any(|(a, b)| edges_meet(&from, &to, &a, &b)))
    }

    /// True if it goes through the cell.
    pub fn meets_cell(&self, cell: &Cell) -> bool {
        let corners = cell.vertices();
        let sides = || corners.iter().zip(corners.iter().cycle().skip(1));
        self.vertices.iter().any(|vertex| cell.contains_point(vertex))
            || self.edges().any(|(from, to)| sides().any(|(a, b)| edges_meet(&from, &to, a, b)))
    }

    /// True if it goes through the point.
    pub fn meets_point(&self, point: &SpherePoint) -> bool {
        self.meets_cell(&point.leaf())
    }

    /// How far it is, in radians.
    pub fn distance(&self, point: &Point) -> f64 {
        self.edges().map(|(from, to)| distance_from_segment(point, &from, &to).rad()).fold(f64::INFINITY, f64::min)
    }
}

fn edges_meet(from: &Point, to: &Point, a: &Point, b: &Point) -> bool {
    EdgeCrosser::new(from, to).crossing_sign(a, b) != Crossing::DoNotCross
}
