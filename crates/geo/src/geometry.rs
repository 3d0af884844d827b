//! Shapes of documents and queries, and how they lie to each other.
//!
//! A legacy point is on the plane, and on the sphere too if its coordinates could be degrees; a GeoJSON point is on both. All other shapes
//! are on one of them, and shapes that are not on the same never meet.

use crate::plane::{Circle, PlaneBox, PlanePoint, PlanePolygon, PlaneRegion};
use crate::sphere::{BigPolygon, Cap, Line, Polygon, RegionParts, SpherePoint};

/// A point with where it can be used.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// Its coordinates, as they were written.
    pub plane: PlanePoint,
    /// It was written as GeoJSON, or a query put it onto the sphere.
    pub is_spherical: bool,
    /// Where it is on the sphere, if it could be.
    pub sphere: Option<SpherePoint>,
}

impl Place {
    /// A legacy point.
    pub fn legacy(plane: PlanePoint) -> Place {
        Place { plane, is_spherical: false, sphere: SpherePoint::of_degrees(plane.x, plane.y) }
    }
}

/// GeoJSON other than a point: one shape or many.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shapes {
    /// Points.
    pub points: Vec<SpherePoint>,
    /// Lines.
    pub lines: Vec<Line>,
    /// Polygons.
    pub polygons: Vec<Polygon>,
    /// Polygons by strict winding order.
    pub big_polygons: Vec<BigPolygon>,
    /// It is a single line or polygon.
    pub is_simple: bool,
    /// It is a list of shapes of any kind.
    pub is_collection: bool,
}

/// A shape.
#[derive(Clone, Debug, PartialEq)]
pub enum Geometry {
    /// A point.
    Point(Place),
    /// `$box`.
    Box(PlaneBox),
    /// `$polygon`.
    PlanePolygon(PlanePolygon),
    /// `$center`.
    Circle(Circle),
    /// `$centerSphere`, with the circle in degrees and radians that it was written as.
    Cap(Cap, Circle),
    /// GeoJSON.
    Shapes(Shapes),
}

impl Geometry {
    /// True if it is on the plane rather than on the sphere.
    pub fn is_flat(&self) -> bool {
        match self {
            Geometry::Point(place) => !place.is_spherical,
            Geometry::Box(_) | Geometry::PlanePolygon(_) | Geometry::Circle(_) => true,
            Geometry::Cap(..) | Geometry::Shapes(_) => false,
        }
    }

    /// True if it is a polygon by strict winding order, or has one.
    pub fn is_strict(&self) -> bool {
        matches!(self, Geometry::Shapes(shapes) if !shapes.big_polygons.is_empty())
    }

    /// True if something can be within it.
    pub fn can_contain(&self) -> bool {
        match self {
            Geometry::Point(_) => false,
            Geometry::Box(_) | Geometry::PlanePolygon(_) | Geometry::Circle(_) | Geometry::Cap(..) => true,
            Geometry::Shapes(shapes) => !shapes.polygons.is_empty() || !shapes.big_polygons.is_empty(),
        }
    }

    /// The point, if it is one.
    pub fn as_point(&self) -> Option<&Place> {
        match self {
            Geometry::Point(place) => Some(place),
            _ => None,
        }
    }

    /// True if it is a point, a line or a polygon.
    pub fn is_simple(&self) -> bool {
        match self {
            Geometry::Point(_) => true,
            Geometry::Shapes(shapes) => shapes.is_simple,
            _ => false,
        }
    }

    /// Its part of the plane, for coverings: of what is on the sphere, the box around it in degrees.
    pub fn plane_region(&self) -> Option<Box<dyn PlaneRegion>> {
        match self {
            Geometry::Point(place) => Some(Box::new(PlaneBox::between(place.plane, place.plane))),
            Geometry::Box(shape) => Some(Box::new(*shape)),
            Geometry::PlanePolygon(shape) => Some(Box::new(shape.clone())),
            Geometry::Circle(shape) => Some(Box::new(*shape)),
            Geometry::Cap(cap, _) => Some(Box::new(cap.degree_bounds())),
            Geometry::Shapes(_) => None,
        }
    }

    /// Its part of the sphere, for coverings; none if it is on the plane.
    pub(crate) fn region_parts(&self) -> Option<RegionParts> {
        match self {
            Geometry::Point(place) => {
                Some(RegionParts { points: place.sphere.into_iter().collect(), ..RegionParts::default() })
            }
            Geometry::Cap(cap, _) => Some(RegionParts { caps: vec![cap.clone()], ..RegionParts::default() }),
            Geometry::Shapes(shapes) => Some(RegionParts {
                points: shapes.points.clone(),
                lines: shapes.lines.clone(),
                polygons: shapes.polygons.clone(),
                big: shapes.big_polygons.clone(),
                caps: Vec::new(),
            }),
            Geometry::Box(_) | Geometry::PlanePolygon(_) | Geometry::Circle(_) => None,
        }
    }

    /// True if the other has no part outside.
    pub fn contains(&self, other: &Geometry) -> bool {
        let plane = || other.as_point().map(|place| place.plane);
        match self {
            Geometry::Point(_) => false,
            Geometry::Box(shape) => plane().is_some_and(|point| shape.contains(point)),
            Geometry::PlanePolygon(shape) => plane().is_some_and(|point| shape.contains(point)),
            Geometry::Circle(shape) => plane().is_some_and(|point| shape.contains(point)),
            Geometry::Cap(cap, _) => other.all_parts(
                |point| cap.contains(point),
                |line| cap.contains_line(line),
                |polygon| cap.contains_polygon(polygon),
            ),
            Geometry::Shapes(shapes) => other.all_parts(
                |point| shapes.surround_point(point),
                |line| shapes.surround_line(line),
                |polygon| shapes.surround_polygon(polygon),
            ),
        }
    }

    /// True if they share a point. Both must be on the sphere.
    pub fn intersects(&self, other: &Geometry) -> bool {
        let alone;
        let own = match self {
            Geometry::Shapes(shapes) => shapes,
            Geometry::Point(place) => {
                alone = Shapes { points: place.sphere.into_iter().collect(), ..Shapes::default() };
                &alone
            }
            _ => return false,
        };
        !other.all_parts(
            |point| !own.meet_point(point),
            |line| !own.meet_line(line),
            |polygon| !own.meet_polygon(polygon),
        )
    }

    /// True if each part passes; what has no parts on the sphere does not. A part by strict winding order never passes.
    fn all_parts(
        &self,
        point: impl Fn(&SpherePoint) -> bool,
        line: impl Fn(&Line) -> bool,
        polygon: impl Fn(&Polygon) -> bool,
    ) -> bool {
        match self {
            Geometry::Point(place) => place.sphere.as_ref().is_some_and(point),
            Geometry::Shapes(shapes) => {
                shapes.points.iter().all(point)
                    && shapes.lines.iter().all(line)
                    && shapes.polygons.iter().all(polygon)
                    && shapes.big_polygons.is_empty()
            }
            _ => false,
        }
    }

    /// How far it is: in the plane's units if it is on the plane, else in metres. None if that cannot be told.
    pub fn distance(&self, from: &Place) -> Option<f64> {
        match self {
            Geometry::Point(place) if !from.is_spherical => Some(place.plane.distance(from.plane)),
            Geometry::Point(place) => Some(crate::sphere::metres(place.sphere?.distance(&from.sphere?))),
            Geometry::Shapes(shapes) if from.is_spherical => {
                let point = &from.sphere?;
                let points = shapes.points.iter().map(|other| other.distance(point));
                let lines = shapes.lines.iter().map(|line| line.distance(&point.point));
                let polygons = shapes.polygons.iter().map(|polygon| polygon.distance(&point.point));
                let least = points.chain(lines).chain(polygons).fold(f64::INFINITY, f64::min);
                least.is_finite().then(|| crate::sphere::metres(least))
            }
            _ => None,
        }
    }
}

impl Shapes {
    fn surround_point(&self, point: &SpherePoint) -> bool {
        self.polygons.iter().any(|polygon| polygon.meets_point(point))
            || self.big_polygons.iter().any(|polygon| polygon.meets_point(point))
    }

    fn surround_line(&self, line: &Line) -> bool {
        self.polygons.iter().any(|polygon| polygon.contains_line(line))
            || self.big_polygons.iter().any(|polygon| polygon.contains_line(line))
    }

    fn surround_polygon(&self, other: &Polygon) -> bool {
        self.polygons.iter().any(|polygon| polygon.contains_polygon(other))
            || self.big_polygons.iter().any(|polygon| polygon.contains_polygon(other))
    }

    fn meet_point(&self, point: &SpherePoint) -> bool {
        self.points.iter().any(|own| own.cell == point.cell)
            || self.lines.iter().any(|line| line.meets_point(point))
            || self.surround_point(point)
    }

    fn meet_line(&self, other: &Line) -> bool {
        self.points.iter().any(|point| other.meets_point(point))
            || self.lines.iter().any(|line| line.intersects(other))
            || self.polygons.iter().any(|polygon| polygon.meets_line(other))
            || self.big_polygons.iter().any(|polygon| polygon.meets_line(other))
    }

    fn meet_polygon(&self, other: &Polygon) -> bool {
        self.points.iter().any(|point| other.meets_point(point))
            || self.lines.iter().any(|line| other.meets_line(line))
            || self.polygons.iter().any(|polygon| polygon.intersects(other))
            || self.big_polygons.iter().any(|polygon| polygon.intersects(other))
    }
}
