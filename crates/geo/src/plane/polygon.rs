//! Polygons of legacy queries: one ring of points, which may cross itself.

use super::{PlaneBox, PlanePoint};

/// A ring of at least three points.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanePolygon {
    points: Vec<PlanePoint>,
    bounds: PlaneBox,
}

impl PlanePolygon {
    /// The ring through these points; none if there are fewer than three.
    pub fn new(points: Vec<PlanePoint>) -> Option<PlanePolygon> {
        let first = *points.first()?;
        let mut bounds = PlaneBox::between(first, first);
        points.iter().for_each(|point| bounds.extend(*point));
        (points.len() >= 3).then_some(PlanePolygon { points, bounds })
    }

    /// The box around it.
    pub fn bounds(&self) -> PlaneBox {
        self.bounds
    }

    fn edges(&self) -> impl Iterator<Item = (PlanePoint, PlanePoint)> {
        let behind = self.points.iter().cycle().skip(1);
        self.points.iter().copied().zip(behind.copied())
    }

    /// True if the point is inside or on the border: a ray to the right crosses an odd number of edges.
    pub fn contains(&self, point: PlanePoint) -> bool {
        let mut is_inside = false;
        for (from, to) in self.edges() {
            if is_on_edge(point, from, to) {
                return true;
            }
            let is_between = point.y > from.y.min(to.y) && point.y <= from.y.max(to.y);
            if !is_between || point.x > from.x.max(to.x) {
                continue;
            }
            let crossing = (point.y - from.y) * (to.x - from.x) / (to.y - from.y) + from.x;
            if from.x == to.x || point.x <= crossing {
                is_inside = !is_inside;
            }
        }
        is_inside
    }

    /// True if no part of the box is outside; false if it is not known.
    pub fn contains_box(&self, other: &PlaneBox) -> bool {
        let corners = other.corners();
        if !corners.into_iter().all(|corner| self.contains(corner)) {
            return false;
        }
        // With its corners inside the box may still be entered by an edge.
        let [a, b, c, d] = corners;
        let sides = [(a, b), (b, c), (c, d), (d, a)];
        self.edges().all(|(from, to)| sides.iter().all(|(one, two)| !segments_meet(from, to, *one, *two)))
    }
}

/// True if the point is an end of the edge, or on an edge along an axis: others are not hit exactly.
fn is_on_edge(point: PlanePoint, from: PlanePoint, to: PlanePoint) -> bool {
    if point == from || point == to {
        return true;
    }
    let within = |value: f64, one: f64, two: f64| (one.min(two)..=one.max(two)).contains(&value);
    (from.y == to.y && point.y == from.y && within(point.x, from.x, to.x))
        || (from.x == to.x && point.x == from.x && within(point.y, from.y, to.y))
}

/// True if two segments share a point.
fn segments_meet(a: PlanePoint, b: PlanePoint, c: PlanePoint, d: PlanePoint) -> bool {
    let side = |from: PlanePoint, to: PlanePoint, point: PlanePoint| {
        (to.x - from.x) * (point.y - from.y) - (to.y - from.y) * (point.x - from.x)
    };
    let (of_c, of_d) = (side(a, b, c), side(a, b, d));
    if of_c * of_d > 0.0 {
        return false;
    }
    if of_c == 0.0 && of_d == 0.0 {
        let is_between = |point: PlanePoint| PlaneBox::between(a, b).contains(point);
        return is_between(c) || is_between(d) || PlaneBox::between(c, d).contains(a);
    }
    side(c, d, a) * side(c, d, b) <= 0.0
}
