//! Indexes of places: whatever they find is what a scan of the collection finds, and searches by distance have their order.

use super::generate::Chance;
use super::support::*;
use crate::request::{AggregateRequest, Hint};
use pando_doc::{Doc, OwnedValue, array, doc};
use pando_storage::Direction;
use std::collections::BTreeSet;

const DOCUMENTS: i32 = 120;
const FILTERS: usize = 120;

fn coordinate(chance: &mut Chance, reach: u64) -> f64 {
    (chance.below(reach * 200) as f64 / 100.0) - reach as f64
}

/// A place: mostly points, close together now and then.
fn place(chance: &mut Chance, is_plane: bool) -> OwnedValue {
    let (x, y) = match chance.below(3) {
        0 => (coordinate(chance, 170), coordinate(chance, 80)),
        _ => (coordinate(chance, 5), coordinate(chance, 5)),
    };
    let size = 0.1 + chance.below(40) as f64 / 10.0;
    match chance.below(if is_plane { 4 } else { 8 }) {
        0..=2 => OwnedValue::Array(array![x, y]),
        3 => OwnedValue::Document(doc! { "x": x, "y": y }),
        4 => OwnedValue::Document(doc! { "type": "Point", "coordinates": [x, y] }),
        5 => {
            OwnedValue::Document(doc! { "type": "LineString", "coordinates": [[x, y], [(x + size), (y + size / 2.0)]] })
        }
        6 => OwnedValue::Document(doc! { "type": "Polygon", "coordinates": [(square(x, y, size))] }),
        _ => OwnedValue::Document(doc! { "type": "MultiPoint", "coordinates": [[x, y], [(x + size), y]] }),
    }
}

fn square(x: f64, y: f64, size: f64) -> OwnedValue {
    OwnedValue::Array(array![[x, y], [(x + size), y], [(x + size), (y + size)], [x, (y + size)], [x, y]])
}

fn condition(chance: &mut Chance) -> Doc {
    let (x, y, size) = (coordinate(chance, 6), coordinate(chance, 6), 0.2 + chance.below(60) as f64 / 10.0);
    match chance.below(6) {
        0 => doc! { "$geoWithin": { "$box": [[x, y], [(x + size), (y + size)]] } },
        1 => doc! { "$geoWithin": { "$center": [[x, y], size] } },
        2 => doc! { "$geoWithin": { "$centerSphere": [[x, y], (size.to_radians())] } },
        3 => doc! { "$geoWithin": { "$geometry": { "type": "Polygon", "coordinates": [(square(x, y, size))] } } },
        4 => doc! { "$geoIntersects": { "$geometry": { "type": "Polygon", "coordinates": [(square(x, y, size))] } } },
        _ => doc! { "$geoWithin": { "$polygon": [[x, y], [(x + size), y], [x, (y + size)]] } },
    }
}

fn filled(key: Doc, chance: &mut Chance) -> Fixture {
    let is_plane = key.elements().any(|field| field.value.as_str() == Some("2d"));
    let fixture = Fixture::new(&[index(key)]);
    for id in 0..DOCUMENTS {
        let mut document = doc! { "_id": id, "a": (chance.below(4) as i32) };
        if !chance.one_in(10) {
            document = doc! { "_id": id, "a": (chance.below(4) as i32), "loc": (place(chance, is_plane)) };
        }
        fixture.insert(&[document]);
    }
    fixture
}

fn keys() -> Vec<Doc> {
    vec![
        doc! { "loc": "2dsphere" },
        doc! { "loc": "2d" },
        doc! { "a": 1, "loc": "2dsphere" },
        doc! { "loc": "2dsphere", "a": -1 },
        doc! { "loc": "2d", "a": 1 },
    ]
}

#[test]
fn u7_indexes_of_places_find_what_a_collection_scan_finds() {
    let mut plans: BTreeSet<String> = BTreeSet::new();
    for (number, key) in keys().into_iter().enumerate() {
        let mut chance = Chance::new(number as u64 + 77);
        let fixture = filled(key.clone(), &mut chance);
        for _ in 0..FILTERS {
            let mut filter = doc! { "loc": (condition(&mut chance)) };
            if chance.one_in(2) {
                filter = doc! { "loc": (condition(&mut chance)), "a": (chance.below(4) as i32) };
            }
            let mut reference = fixture.request(filter.clone());
            reference.hint = Hint::Natural(Direction::Forward);
            let expected: BTreeSet<String> = ids(&fixture.find(&reference).unwrap()).into_iter().collect();
            let (found, plan) = fixture.find_with_summary(&fixture.request(filter.clone())).unwrap();
            let found: BTreeSet<String> = ids(&found).into_iter().collect();
            assert_eq!(found, expected, "{filter} with {key} by {plan}");
            plans.insert(format!("{key} {plan}"));
        }
        fixture.check();
    }
    for key in keys() {
        let used = |plan: &String| plan.starts_with(&key.to_string()) && plan.contains("IXSCAN");
        assert!(plans.iter().any(used), "{key} was never used: {plans:?}");
    }
}

/// What a search should find, nearest first: by distance alone, without an index.
fn brute_force(fixture: &Fixture, operators: &Doc) -> Vec<(String, f64)> {
    let near = pando_geo::NearQuery::parse(operators.view()).unwrap();
    let (least, greatest) = near.measured_range();
    let mut found = Vec::new();
    for document in fixture.find(&fixture.request(doc! {})).unwrap() {
        let Some(value) = document.get("loc") else { continue };
        let distance = pando_geo::parse_stored(value).unwrap().distance(&near.center);
        if let Some(distance) = distance.filter(|distance| (least..=greatest).contains(distance)) {
            found.push((document.get("_id").unwrap().to_string(), distance));
        }
    }
    found.sort_by(|one, two| one.1.total_cmp(&two.1));
    found
}

#[test]
fn u7_searches_by_distance_come_nearest_first() {
    for (number, key) in keys().into_iter().enumerate() {
        let mut chance = Chance::new(number as u64 + 7);
        let fixture = filled(key.clone(), &mut chance);
        let is_plane = key.to_string().contains("\"2d\"");
        for _ in 0..40 {
            let (x, y) = (coordinate(&mut chance, 8), coordinate(&mut chance, 8));
            let reach = 0.5 + chance.below(50) as f64;
            let operators = match (is_plane, chance.below(3)) {
                (true, 0) => doc! { "$near": [x, y], "$maxDistance": reach },
                (true, 1) => doc! { "$near": [x, y], "$minDistance": 0.7 },
                (_, 2) => doc! { "$nearSphere": [x, y], "$maxDistance": (reach.to_radians()) },
                (_, choice) => {
                    let point = doc! { "type": "Point", "coordinates": [x, y] };
                    let least = if choice == 0 { 0.0 } else { 150_000.0 };
                    if is_plane {
                        doc! { "$nearSphere": [x, y], "$minDistance": 0.01 }
                    } else {
                        doc! { "$near": { "$geometry": point, "$maxDistance": (reach * 100_000.0), "$minDistance": least } }
                    }
                }
            };
            let expected = brute_force(&fixture, &operators);
            let first_is_place = key.elements().next().is_some_and(|field| field.name == "loc");
            let filter = match first_is_place {
                true => doc! { "loc": (operators.clone()) },
                false => doc! { "loc": (operators.clone()), "a": { "$gte": 0 } },
            };
            let (found, plan) = fixture.find_with_summary(&fixture.request(filter)).unwrap();
            let found = ids(&found);
            assert!(plan.contains("GEO_NEAR"), "{plan}");
            let distances = |ids: &[String]| -> Vec<f64> {
                let of = |id: &String| expected.iter().find(|known| known.0 == *id).map_or(-1.0, |known| known.1);
                ids.iter().map(of).collect()
            };
            let ordered: Vec<f64> = expected.iter().map(|known| known.1).collect();
            assert_eq!(distances(&found), ordered, "{operators} with {key}");
        }
    }
}

#[test]
fn u6_geo_near_adds_distances_and_places() {
    let fixture = Fixture::new(&[index(doc! { "loc": "2dsphere" })]);
    fixture.insert(&[
        doc! { "_id": 1, "loc": [0, 1] },
        doc! { "_id": 2, "loc": [0, 0], "kind": "x" },
        doc! { "_id": 3, "loc": { "type": "Point", "coordinates": [0, 3] } },
    ]);
    let run = |stage: Doc| -> pando_base::Result<Vec<Doc>> {
        let mut operation = fixture.operation();
        let request = AggregateRequest::new(fixture.namespace.clone(), vec![doc! { "$geoNear": stage }]);
        let mut found: Vec<Doc> = Vec::new();
        let mut aggregation = fixture.engine.aggregate(&mut operation, &request, None)?;
        now(crate::executor::drive(
            &mut aggregation.executor,
            &mut operation,
            &*fixture.engine.collections,
            &mut found,
        ))?;
        Ok(found)
    };
    let near = || doc! { "type": "Point", "coordinates": [0, 0] };
    let found =
        run(doc! { "near": (near()), "distanceField": "d.m", "includeLocs": "at", "distanceMultiplier": 0.001 });
    let found = found.unwrap();
    assert_eq!(ids(&found), ["2", "1", "3"]);
    let distance = found[1].get("d").unwrap().as_document().unwrap().get("m").unwrap().to_double().unwrap();
    assert!((distance - 111.3).abs() < 0.1, "{distance}");
    assert_eq!(found[1].get("at").unwrap().to_string(), doc! { "v": [0, 1] }.get("v").unwrap().to_string());
    let some = run(doc! { "near": (near()), "distanceField": "d", "query": { "kind": "x" } }).unwrap();
    assert_eq!(ids(&some), ["2"]);
    let code = |stage: Doc| run(stage).unwrap_err().code().number();
    assert_eq!(code(doc! { "distanceField": "d" }), 5860400);
    assert_eq!(code(doc! { "near": (near()) }), 16606);
    assert_eq!(code(doc! { "near": "$a", "distanceField": "d" }), 5860402);
    assert_eq!(code(doc! { "near": (near()), "distanceField": "d", "key": "other" }), 291);
    assert_eq!(code(doc! { "near": (near()), "distanceField": "d", "limit": 1 }), 50858);
}

#[test]
fn u4_near_tells_distances_and_places_as_metadata() {
    let fixture = Fixture::new(&[index(doc! { "loc": "2d" })]);
    fixture.insert(&[doc! { "_id": 1, "loc": [[5, 5], [0, 2]] }, doc! { "_id": 2, "loc": [0, 1] }]);
    let mut request = fixture.request(doc! { "loc": { "$near": [0, 0] } });
    request.projection = doc! { "d": { "$meta": "geoNearDistance" }, "p": { "$meta": "geoNearPoint" }, "loc": 0 };
    let found = fixture.find(&request).unwrap();
    assert_eq!(found, [doc! { "_id": 2, "d": 1.0, "p": [0, 1] }, doc! { "_id": 1, "d": 2.0, "p": [0, 2] }]);
    request.sort = doc! { "_id": 1 };
    assert_eq!(ids(&fixture.find(&request).unwrap()), ["1", "2"]);
    request.filter = doc! {};
    assert_eq!(fixture.find(&request).unwrap_err().code().number(), 40218);
}
