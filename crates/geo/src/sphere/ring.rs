//! Closed rings of edges: what lies to their left is inside.
//!
//! Whether a point is inside is told by counting how often the way from a fixed point, the origin, crosses the ring. Where rings share vertices, the
//! order of the edges around the vertex decides, so that polygons that fill a plane without gaps hold each point once.
//!
//! Edges are looked up in a tree of boxes: a client may send rings of half a million vertices, and comparing each with each would keep a thread for the better
//! part of an hour.

use super::edge_tree::{Bounds, EdgeTree};
use pando_base::operation;
use s2::cell::Cell;
use s2::edge_crossings::{Crossing, EdgeCrosser, crossing_sign, robust_cross_prod};
use s2::edgeutil::distance_from_segment;
use s2::latlng::LatLng;
use s2::point::{Point, ordered_ccw};
use s2::predicates::{Direction, robust_sign};
use s2::rect::Rect;
use s2::rect_bounder::RectBounder;
use std::collections::HashMap;

/// A ring of at least three vertices; the last is joined to the first.
#[derive(Clone, Debug, PartialEq)]
pub struct Ring {
    vertices: Vec<Point>,
    is_origin_inside: bool,
    bound: Rect,
    tree: EdgeTree,
}

/// How many pairs of edges are tested at most before a ring counts as too tangled to be checked. Coasts and borders need a few tests for each edge.
const TEST_COUNT_MAX: usize = 50_000_000;

/// So many steps are counted for each edge, whose neighbours are looked up, and for each pair that is tested.
const STEPS_PER_EDGE: u64 = 16;
const STEPS_PER_TEST: u64 = 4;

impl Ring {
    /// The ring through these points, the first of which is not repeated.
    pub fn new(vertices: Vec<Point>) -> Ring {
        debug_assert!(vertices.len() >= 3);
        let mut ring = Ring::unplaced(vertices);
        ring.bound = ring.find_bound();
        ring
    }

    /// The border of a cell.
    pub fn of_cell(cell: &Cell) -> Ring {
        let mut ring = Ring::unplaced(cell.vertices().to_vec());
        ring.bound = cell.rect_bound();
        ring
    }

    fn unplaced(vertices: Vec<Point>) -> Ring {
        let tree = EdgeTree::new(edges_of(&vertices));
        let mut ring = Ring { vertices, is_origin_inside: false, bound: Rect::full(), tree };
        ring.find_inside();
        ring
    }

    /// Whether the origin is inside follows from the second vertex, which is inside if a fixed direction there is.
    fn find_inside(&mut self) {
        let [before, at, behind] = [self.vertex(0), self.vertex(1), self.vertex(2)];
        let should_be_inside = ordered_ccw(&at.ortho(), &before, &behind, &at);
        if should_be_inside != self.contains_by_crossings(&at) {
            self.is_origin_inside = true;
        }
    }

    fn find_bound(&self) -> Rect {
        let mut bounder = RectBounder::new();
        self.vertices.iter().chain(self.vertices.first()).for_each(|vertex| bounder.add_point(vertex));
        let mut bound = bounder.get_bound();
        if self.contains_by_crossings(&Point::from_coords(0.0, 0.0, 1.0)) {
            bound.lat.hi = std::f64::consts::FRAC_PI_2;
            bound.lng = s2::rect::VALID_RECT_LNG_RANGE;
        }
        if self.contains_by_crossings(&Point::from_coords(0.0, 0.0, -1.0)) {
            bound.lat.lo = -std::f64::consts::FRAC_PI_2;
            bound.lng = s2::rect::VALID_RECT_LNG_RANGE;
        }
        bound
    }

    fn vertex(&self, place: usize) -> Point {
        vertex_of(&self.vertices, place)
    }

    fn edge(&self, place: usize) -> (Point, Point) {
        (self.vertex(place), self.vertex(place + 1))
    }

    /// The places of the edges, from the first one on and in their order, among which are all that can meet this one.
    fn places_near(&self, from: &Point, to: &Point, first: usize) -> impl Iterator<Item = usize> {
        self.tree.near(Bounds::of_edge(from, to), first).flatten()
    }

    /// The edges among which are all that can meet this one.
    pub fn edges_near(&self, from: &Point, to: &Point) -> impl Iterator<Item = (Point, Point)> {
        self.places_near(from, to, 0).map(|place| self.edge(place))
    }

    /// The vertices.
    pub fn vertices(&self) -> &[Point] {
        &self.vertices
    }

    /// The edges, each from one vertex to the next.
    pub fn edges(&self) -> impl Iterator<Item = (Point, Point)> {
        edges_of(&self.vertices)
    }

    /// A rectangle around it.
    pub fn bound(&self) -> &Rect {
        &self.bound
    }

    /// Why it is not a ring that can be reckoned with, if it is not.
    pub fn fault(&self) -> Option<String> {
        let mut places: HashMap<[u64; 3], usize> = HashMap::with_capacity(self.vertices.len());
        for (place, vertex) in self.vertices.iter().enumerate() {
            let bits = [vertex.0.x, vertex.0.y, vertex.0.z].map(|coordinate| (coordinate + 0.0).to_bits());
            if let Some(first) = places.insert(bits, place) {
                return Some(format!("Duplicate vertices: {first} and {place}"));
            }
        }
        self.crossing_edges(TEST_COUNT_MAX)
    }

    fn crossing_edges(&self, test_count_max: usize) -> Option<String> {
        let count = self.vertices.len();
        let mut test_count = 0_usize;
        for one in 0..count {
            operation::count(STEPS_PER_EDGE);
            let (from, to) = self.edge(one);
            let mut crosser = EdgeCrosser::new(&from, &to);
            // The neighbours of an edge share a vertex with it and never cross it.
            for two in self.places_near(&from, &to, one + 2) {
                if one == 0 && two == count - 1 {
                    continue;
                }
                test_count += 1;
                operation::count(STEPS_PER_TEST);
                if test_count > test_count_max {
                    return Some(format!("Too many of its {count} edges lie side by side"));
                }
                let (other_from, other_to) = self.edge(two);
                if crosser.crossing_sign(&other_from, &other_to) == Crossing::Cross {
                    let show = |point: &Point| {
                        let place = LatLng::from(point);
                        format!("[{}, {}]", place.lat.deg(), place.lng.deg())
                    };
                    let edge = |from: &Point, to: &Point| format!("{}-{}", show(from), show(to));
                    return Some(format!(
                        "Edges {one} and {two} cross. Edge locations in degrees: {} and {}",
                        edge(&from, &to),
                        edge(&other_from, &other_to)
                    ));
                }
            }
        }
        None
    }

    /// By how much the way around turns to the left in all: less than a full turn, if more than half of the sphere is inside.
    fn turning_angle(&self) -> f64 {
        let mut sum = 0.0;
        for place in 0..self.vertices.len() {
            let (a, b, c) = (self.vertex(place), self.vertex(place + 1), self.vertex(place + 2));
            let angle = robust_cross_prod(&a, &b).0.angle(&robust_cross_prod(&b, &c).0).rad();
            match robust_sign(&a, &b, &c) {
                Direction::CounterClockwise => sum += angle,
                _ => sum -= angle,
            }
        }
        sum
    }

    /// True if at most half of the sphere is inside.
    pub fn is_normalized(&self) -> bool {
        // Rounding must not turn a half around.
        self.turning_angle() >= -1e-14
    }

    /// The same border with the other side inside.
    #[must_use]
    pub fn inverted(&self) -> Ring {
        Ring::new(self.vertices.iter().rev().copied().collect())
    }

    /// The same border, with the smaller side inside.
    #[must_use]
    pub fn normalized(self) -> Ring {
        if self.is_normalized() { self } else { self.inverted() }
    }

    fn contains_by_crossings(&self, point: &Point) -> bool {
        let mut is_inside = self.is_origin_inside;
        let origin = Point::origin();
        let mut crosser = EdgeCrosser::new_with_c(&origin, point, &self.vertex(0));
        for place in 1..=self.vertices.len() {
            is_inside ^= crosser.chain_edge_or_vertex_crossing(&self.vertex(place));
        }
        is_inside
    }

    /// True if the point is inside; of the points on the border some are.
    pub fn contains(&self, point: &Point) -> bool {
        self.bound.contains_point(point) && self.contains_by_crossings(point)
    }

    fn has_vertex(&self, point: &Point) -> bool {
        self.places_near(point, point, 0).any(|place| self.vertex(place) == *point)
    }

    /// True if edges cross, or if at a shared vertex the test says so of the edges before and behind it in both rings.
    fn borders_meet(&self, other: &Ring, test: impl Fn(&Wedge) -> bool) -> bool {
        for one in 0..self.vertices.len() {
            let (from, to) = self.edge(one);
            let mut crosser = EdgeCrosser::new(&from, &to);
            operation::count(STEPS_PER_EDGE);
            for two in other.places_near(&from, &to, 0) {
                operation::count(STEPS_PER_TEST);
                let (previous, next) = other.edge(two);
                match crosser.crossing_sign(&previous, &next) {
                    Crossing::Cross => return true,
                    Crossing::MaybeCross if to == next => {
                        let wedge = Wedge {
                            before: from,
                            at: to,
                            behind: self.vertex(one + 2),
                            other_before: previous,
                            other_behind: other.vertex(two + 2),
                        };
                        if test(&wedge) {
                            return true;
                        }
                    }
                    _ => {}
                }
            }
        }
        false
    }

    /// True if the insides share a point.
    pub fn intersects(&self, other: &Ring) -> bool {
        if !self.bound.intersects(&other.bound) {
            return false;
        }
        let holds = |outer: &Ring, inner: &Ring| {
            let vertex = inner.vertices.iter().find(|vertex| !outer.has_vertex(vertex));
            vertex.is_some_and(|vertex| outer.contains(vertex))
        };
        self.borders_meet(other, Wedge::intersects)
            || holds(self, other)
            || holds(other, self)
            || self.is_same_as(other)
    }

    fn is_same_as(&self, other: &Ring) -> bool {
        self.vertices.len() == other.vertices.len() && self.vertices.iter().all(|vertex| other.has_vertex(vertex))
    }

    /// True if everything inside the other is inside this one.
    pub fn contains_ring(&self, other: &Ring) -> bool {
        if !self.bound.intersects(&other.bound) || self.borders_meet(other, |wedge| !wedge.contains()) {
            return false;
        }
        let own = |vertex: &&Point| !self.has_vertex(vertex);
        if other.vertices.iter().find(own).is_some_and(|vertex| !self.contains(vertex)) {
            return false;
        }
        // The other may surround this one, or hold all that is outside of it.
        let foreign = |vertex: &&Point| !other.has_vertex(vertex);
        self.vertices.iter().find(foreign).is_none_or(|vertex| !other.contains(vertex))
    }

    /// How many vertices they share.
    pub fn shared_vertex_count(&self, other: &Ring) -> usize {
        self.vertices.iter().filter(|vertex| other.has_vertex(vertex)).count()
    }

    /// True if edges of both cross.
    pub fn crosses(&self, other: &Ring) -> bool {
        self.borders_meet(other, |_| false)
    }

    /// True if an edge is in both, in whatever direction.
    pub fn shares_edge(&self, other: &Ring) -> bool {
        self.edges().any(|(from, to)| {
            other.edges_near(&from, &to).any(|(other_from, other_to)| {
                (from == other_from && to == other_to) || (from == other_to && to == other_from)
            })
        })
    }

    /// True if the edge crosses the border or touches a vertex of it.
    pub fn meets_edge(&self, from: &Point, to: &Point) -> bool {
        self.edges_near(from, to).any(|(a, b)| crossing_sign(from, to, &a, &b) != Crossing::DoNotCross)
    }

    /// How far the border is, in radians.
    pub fn distance_to_border(&self, point: &Point) -> f64 {
        self.edges().map(|(from, to)| distance_from_segment(point, &from, &to).rad()).fold(f64::INFINITY, f64::min)
    }
}

fn vertex_of(vertices: &[Point], place: usize) -> Point {
    // The ring has at least one vertex.
    vertices.get(place % vertices.len().max(1)).copied().unwrap_or_else(Point::origin)
}

fn edges_of(vertices: &[Point]) -> impl Iterator<Item = (Point, Point)> {
    (0..vertices.len()).map(|place| (vertex_of(vertices, place), vertex_of(vertices, place + 1)))
}

/// The edges of two rings at a vertex that they share.
struct Wedge {
    before: Point,
    at: Point,
    behind: Point,
    other_before: Point,
    other_behind: Point,
}

impl Wedge {
    /// True if what is left of the other's edges is left of these.
    fn contains(&self) -> bool {
        ordered_ccw(&self.behind, &self.other_behind, &self.other_before, &self.at)
            && ordered_ccw(&self.other_before, &self.before, &self.behind, &self.at)
    }

    /// True if both have something on their left in common.
    fn intersects(&self) -> bool {
        !(ordered_ccw(&self.before, &self.other_behind, &self.other_before, &self.at)
            && ordered_ccw(&self.other_before, &self.behind, &self.before, &self.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ring(places: impl IntoIterator<Item = (f64, f64)>) -> Ring {
        let vertices = places.into_iter();
        Ring::new(
            vertices.map(|(latitude, longitude)| Point::from(LatLng::from_degrees(latitude, longitude))).collect(),
        )
    }

    /// A coast: a circle whose radius wavers.
    fn coast(count: u32) -> Vec<(f64, f64)> {
        let place = |number: u32| {
            let angle = f64::from(number) / f64::from(count) * std::f64::consts::TAU;
            let radius = 5.0 + f64::from(number % 7) * 0.001;
            (60.0 + radius * angle.sin(), radius * angle.cos())
        };
        (0..count).map(place).collect()
    }

    #[test]
    fn u4_rings_of_many_vertices_are_checked_edge_by_near_edge() {
        let mut places = coast(20_000);
        assert_eq!(ring(places.clone()).crossing_edges(400_000), None, "a few tests for each edge are enough");
        places.swap(10_000, 10_003);
        let fault = ring(places).fault().unwrap();
        assert!(fault.starts_with("Edges 10000 and 10002 cross"), "{fault}");
    }

    #[test]
    fn u4_rings_of_edges_side_by_side_are_given_up() {
        let comb = (0..2_000_u32).map(|tooth| {
            let (along, is_tip) = (f64::from(tooth) * 1e-5, tooth % 2 == 1);
            if is_tip { (10.0 + along, 10.0) } else { (along, 0.0) }
        });
        let comb = ring(comb.chain([(-5.0, 20.0)]));
        let fault = comb.crossing_edges(10_000).unwrap();
        assert!(fault.starts_with("Too many of its 2001 edges"), "{fault}");
    }

    proptest! {
        #[test]
        fn u4_the_tree_leaves_out_no_edge_that_meets(
            places in prop::collection::vec((-90.0..90.0_f64, -180.0..180.0_f64), 3..120),
            ends in [(-90.0..90.0_f64, -180.0..180.0_f64), (-90.0..90.0_f64, -180.0..180.0_f64)],
        ) {
            let ring = ring(places);
            let [from, to] = ends.map(|(latitude, longitude)| Point::from(LatLng::from_degrees(latitude, longitude)));
            let meeting = |(a, b): &(Point, Point)| crossing_sign(&from, &to, a, b) != Crossing::DoNotCross;
            let all: Vec<_> = ring.edges().filter(meeting).collect();
            prop_assert_eq!(&all, &ring.edges_near(&from, &to).filter(meeting).collect::<Vec<_>>());
            prop_assert!(ring.vertices().iter().all(|vertex| ring.has_vertex(vertex)));
            prop_assert!(!ring.has_vertex(&from));
        }
    }
}
