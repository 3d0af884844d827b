//! Shapes and what holds between them.

use crate::plane::{Grid, PlanePoint, covering as plane_covering};
use crate::sphere::{SphereLevels, covering};
use crate::{GeoPredicate, Geometry, NearQuery, parse_stored};
use pando_doc::{Doc, OwnedValue, Value, doc};
use proptest::prelude::*;

fn predicate(operators: Doc) -> GeoPredicate {
    GeoPredicate::parse(operators.view()).unwrap()
}

fn matches(operators: Doc, stored: Doc) -> bool {
    predicate(operators).matches(stored.get("v").unwrap())
}

fn refused(operators: Doc) -> String {
    GeoPredicate::parse(operators.view()).unwrap_err().reason().to_owned()
}

fn ring(points: &[[f64; 2]]) -> OwnedValue {
    let mut array = pando_doc::ArrayBuilder::new();
    for point in points {
        array.array(|pair| point.iter().for_each(|coordinate| pair.push(*coordinate)));
    }
    OwnedValue::Array(array.finish())
}

fn square(low: f64, high: f64) -> OwnedValue {
    ring(&[[low, low], [high, low], [high, high], [low, high], [low, low]])
}

fn polygon(rings: &[OwnedValue]) -> Doc {
    let mut array = pando_doc::ArrayBuilder::new();
    rings.iter().for_each(|ring| array.push(ring));
    doc! { "type": "Polygon", "coordinates": (array.finish()) }
}

fn within(shape: Doc) -> Doc {
    doc! { "$geoWithin": { "$geometry": shape } }
}

fn intersects(shape: Doc) -> Doc {
    doc! { "$geoIntersects": { "$geometry": shape } }
}

fn point(x: f64, y: f64) -> Doc {
    doc! { "v": { "type": "Point", "coordinates": [x, y] } }
}

fn line(points: &[[f64; 2]]) -> Doc {
    doc! { "v": { "type": "LineString", "coordinates": (ring(points)) } }
}

#[test]
fn u4_legacy_shapes_hold_points_and_their_borders() {
    let boxed = || doc! { "$geoWithin": { "$box": [[0, 0], [10, 10]] } };
    assert!(matches(boxed(), doc! { "v": [10, 10] }));
    assert!(matches(boxed(), doc! { "v": { "lng": 3, "lat": 4, "name": "x" } }));
    assert!(matches(boxed(), point(3.0, 4.0)));
    assert!(!matches(boxed(), doc! { "v": [10.1, 3] }));
    assert!(!matches(boxed(), doc! { "v": 5 }));
    let circle = || doc! { "$within": { "$center": [[52, 0], 0.0001] } };
    assert!(matches(circle(), doc! { "v": [51.9999, 0] }));
    assert!(!matches(circle(), doc! { "v": [51.9998, 0] }));
    let triangle = || doc! { "$geoWithin": { "$polygon": [[0, 0], [3, 6], [6, 0]] } };
    for inside in [[3.0, 3.0], [0.0, 0.0], [4.0, 0.0], [3.0, 6.0]] {
        assert!(matches(triangle(), doc! { "v": [(inside[0]), (inside[1])] }), "{inside:?}");
    }
    assert!(!matches(triangle(), doc! { "v": [1, 5] }));
    let cap = || doc! { "$geoWithin": { "$centerSphere": [[0, 0], 0.1] } };
    assert!(matches(cap(), doc! { "v": [5, 0] }));
    assert!(!matches(cap(), doc! { "v": [6, 0] }));
    assert!(!matches(cap(), doc! { "v": [500, 0] }), "not on the sphere");
    assert!(matches(cap(), line(&[[-1.0, 0.0], [1.0, 1.0]])));
    assert!(!matches(cap(), line(&[[-1.0, 0.0], [9.0, 1.0]])));
}

#[test]
fn u4_polygons_with_holes_hold_what_lies_in_them() {
    let ringed = || polygon(&[square(0.0, 10.0), square(4.0, 6.0)]);
    assert!(matches(within(ringed()), point(1.0, 1.0)));
    assert!(!matches(within(ringed()), point(5.0, 5.0)));
    assert!(matches(within(ringed()), point(0.0, 0.0)), "a corner");
    assert!(matches(within(ringed()), point(0.0, 5.0)), "a border along a meridian");
    assert!(!matches(within(ringed()), point(11.0, 5.0)));
    assert!(matches(within(ringed()), line(&[[1.0, 1.0], [1.0, 9.0]])));
    assert!(!matches(within(ringed()), line(&[[1.0, 5.0], [9.0, 5.0]])), "through the hole");
    assert!(matches(intersects(ringed()), line(&[[1.0, 5.0], [9.0, 5.0]])));
    assert!(!matches(intersects(ringed()), line(&[[4.5, 5.0], [5.5, 5.0]])));
    let stored = |low: f64, high: f64| doc! { "v": (polygon(&[square(low, high)])) };
    assert!(matches(within(ringed()), stored(1.0, 3.0)));
    assert!(!matches(within(ringed()), stored(1.0, 8.0)));
    assert!(matches(intersects(ringed()), stored(1.0, 8.0)));
    assert!(!matches(intersects(ringed()), stored(4.5, 5.5)));
    assert!(matches(intersects(ringed()), stored(-20.0, 20.0)));
    assert!(matches(within(polygon(&[square(-20.0, 20.0)])), doc! { "v": (ringed()) }));
    // The same border, either way around.
    let reversed = ring(&[[0.0, 0.0], [0.0, 10.0], [10.0, 10.0], [10.0, 0.0], [0.0, 0.0]]);
    assert!(matches(within(polygon(&[reversed])), point(5.0, 5.0)));
}

#[test]
fn u4_strict_winding_order_means_the_left_side() {
    let crs = || doc! { "type": "name", "properties": { "name": "urn:x-mongodb:crs:strictwinding:EPSG:4326" } };
    let big = |coordinates: OwnedValue| {
        doc! { "type": "Polygon", "coordinates": [coordinates], "crs": (crs()) }
    };
    let clockwise = || ring(&[[0.0, 0.0], [0.0, 10.0], [10.0, 10.0], [10.0, 0.0], [0.0, 0.0]]);
    assert!(!matches(within(big(clockwise())), point(5.0, 5.0)));
    assert!(matches(within(big(clockwise())), point(50.0, 5.0)));
    assert!(matches(within(big(square(0.0, 10.0))), point(5.0, 5.0)));
    assert!(!matches(intersects(big(square(0.0, 10.0))), doc! { "v": (big(square(0.0, 10.0))) }), "never stored");
    let stored = |low: f64, high: f64| doc! { "v": (polygon(&[square(low, high)])) };
    assert!(matches(within(big(clockwise())), stored(20.0, 30.0)));
    assert!(!matches(within(big(clockwise())), stored(5.0, 30.0)));
    assert!(matches(intersects(big(clockwise())), stored(5.0, 30.0)));
}

#[test]
fn u4_malformed_shapes_are_refused() {
    let cross = ring(&[[0.0, 0.0], [10.0, 10.0], [10.0, 0.0], [0.0, 10.0], [0.0, 0.0]]);
    assert!(refused(within(polygon(&[cross]))).starts_with("Loop is not valid"));
    let open = ring(&[[0.0, 0.0], [10.0, 10.0], [10.0, 0.0]]);
    assert!(refused(within(polygon(&[open]))).starts_with("Loop is not closed"));
    let outside = polygon(&[square(0.0, 10.0), square(20.0, 30.0)]);
    assert!(refused(within(outside)).starts_with("Secondary loops not contained"));
    let twice = polygon(&[square(0.0, 10.0), square(0.0, 10.0)]);
    assert!(refused(within(twice)).contains("Duplicate edge"));
    assert!(refused(within(doc! { "type": "Point", "coordinates": [1, 2] })).starts_with("$within not supported"));
    assert!(
        refused(doc! { "$geoIntersects": { "$box": [[0, 0], [1, 1]] } }).starts_with("$geoIntersect not supported")
    );
    assert!(refused(doc! { "$geoWithin": { "$centre": [[0, 0], 1] } }).starts_with("unknown geo specifier"));
    assert!(refused(doc! { "$geoWithin": { "$center": [[0, 0], (-1)] } }).starts_with("Radius must be"));
    assert!(parse_stored(Value::Document(doc! { "type": "Point", "coordinates": [1, 91] }.view())).is_err());
}

#[test]
fn u4_near_has_its_legacy_and_its_new_form() {
    let near = |operators: Doc| NearQuery::parse(operators.view()).unwrap();
    let flat = near(doc! { "$near": [1, 2], "$maxDistance": 3 });
    assert_eq!((flat.center.is_spherical, flat.max_distance, flat.is_in_radians), (false, 3.0, false));
    assert_eq!(near(doc! { "$near": [1, 2, 5] }).max_distance, 5.0);
    let sphere = near(doc! { "$nearSphere": [1, 2], "$maxDistance": 0.5 });
    assert_eq!((sphere.center.is_spherical, sphere.is_in_radians, sphere.is_wrapping), (true, true, false));
    let geometry = doc! { "type": "Point", "coordinates": [1, 2] };
    let new = near(doc! { "$near": { "$geometry": geometry, "$minDistance": 10 } });
    assert_eq!((new.min_distance, new.is_in_radians, new.is_wrapping), (10.0, false, true));
    let code = |operators: Doc| NearQuery::parse(operators.view()).unwrap_err().code().number();
    assert_eq!(code(doc! { "$near": [1, 2], "$maxDistance": "x" }), 16895);
    assert_eq!(code(doc! { "$near": [1, 2], "$maxDistance": (-1) }), 16896);
    assert_eq!(code(doc! { "$near": [1, 2], "$exists": true }), 34413);
    assert_eq!(code(doc! { "$near": { "$geometry": [1, 2] } }), 2);
}

#[test]
fn distances_are_those_to_the_nearest_part() {
    let from = crate::parse_query_point(point(0.0, 0.0).get("v").unwrap()).unwrap();
    let degree = crate::EARTH_RADIUS_METRES * std::f64::consts::PI / 180.0;
    let distance = |stored: Doc| parse_stored(stored.get("v").unwrap()).unwrap().distance(&from).unwrap() / degree;
    assert!((distance(point(3.0, 0.0)) - 3.0).abs() < 1e-9);
    assert!((distance(line(&[[2.0, -5.0], [2.0, 5.0]])) - 2.0).abs() < 1e-9);
    assert_eq!(distance(doc! { "v": (polygon(&[square(-5.0, 5.0)])) }), 0.0);
    assert!((distance(doc! { "v": (polygon(&[square(-5.0, 5.0), square(-1.0, 1.0)])) }) - 1.0).abs() < 1e-3);
}

fn covers_point(geometry: &Geometry, place: [f64; 2]) -> bool {
    let leaf = covering(&parse_stored(point(place[0], place[1]).get("v").unwrap()).unwrap(), None).unwrap();
    let cells = covering(geometry, None).unwrap();
    leaf.iter().any(|leaf| {
        cells.iter().any(|cell| (cell.key_range().0..=cell.key_range().1).contains(&leaf.key()))
            || cells.iter().any(|cell| (leaf.key_range().0..=leaf.key_range().1).contains(&cell.key()))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn u7_coverings_on_the_sphere_hold_what_the_shapes_hold(
        corner in [-170.0..170.0_f64, -80.0..80.0_f64], size in 0.001..9.0_f64, at in [0.0..1.0_f64, 0.0..1.0_f64],
    ) {
        let (x, y) = (corner[0], corner[1]);
        let border = ring(&[[x, y], [x + size, y], [x + size, y + size], [x, y + size], [x, y]]);
        let shape = predicate(within(polygon(&[border])));
        let place = [x + at[0] * size, y + at[1] * size];
        if shape.matches(point(place[0], place[1]).get("v").unwrap()) {
            prop_assert!(covers_point(shape.geometry(), place));
        }
        let cap = predicate(doc! { "$geoWithin": { "$centerSphere": [[x, y], (size.to_radians())] } });
        if cap.matches(point(place[0], place[1]).get("v").unwrap()) {
            prop_assert!(covers_point(cap.geometry(), place));
        }
        let levels = SphereLevels { coarsest: 4, finest: 16, cell_count_max: 20 };
        let cells = covering(shape.geometry(), Some(levels)).unwrap();
        prop_assert!(!cells.is_empty());
    }

    #[test]
    fn u7_coverings_on_the_plane_hold_what_the_shapes_hold(
        center in [-180.0..180.0_f64, -180.0..180.0_f64], radius in 0.0001..90.0_f64, at in [-1.0..1.0_f64, -1.0..1.0_f64],
    ) {
        let grid = Grid::parse(doc! {}.view()).unwrap();
        let place = PlanePoint::new(center[0] + at[0] * radius, center[1] + at[1] * radius);
        prop_assume!(grid.contains(place));
        let shapes = [
            doc! { "$geoWithin": { "$center": [[(center[0]), (center[1])], radius] } },
            doc! { "$geoWithin": { "$box": [[(center[0]), (center[1])], [(place.x), (place.y)]] } },
        ];
        for shape in shapes {
            let shape = predicate(shape);
            if shape.matches(doc! { "v": [(place.x), (place.y)] }.get("v").unwrap()) {
                let region = shape.geometry().plane_region().unwrap();
                let cells = plane_covering(&*region, &grid, 16);
                let key = grid.cell(place).key();
                prop_assert!(cells.iter().any(|cell| cell.key_range().0 <= key && key <= cell.key_range().1));
            }
        }
    }
}
