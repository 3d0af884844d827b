//! Time-series collections over the wire: places of measurements and of meta values.

use super::node::{Node, batch, node};
use super::*;
use pando_doc::{Array, Value};

const HOUR_MS: i64 = 1_699_999_200_000;

/// A time series and a plain collection with the same points, on a grid over part of the world; each bucket has a few that are near each other.
async fn both() -> Node {
    let mut node = node().await;
    node.ok(doc! { "create": "s", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
    let mut documents = Vec::new();
    for place in 0..120_i64 {
        let (x, y) = ((place % 12 * 30 - 170) as f64, (place / 12 * 15 - 70) as f64);
        let point = doc! { "type": "Point", "coordinates": [x, y] };
        let time = Value::DateTime(HOUR_MS + place * 1000);
        documents.push(doc! { "_id": place, "t": time, "m": { "at": &point, "n": (place / 4) }, "p": &point });
    }
    documents.push(doc! { "_id": 1000, "t": (Value::DateTime(HOUR_MS)), "m": { "n": 1 } });
    for collection in ["s", "p"] {
        let documents = Array::from_iter(documents.iter());
        node.ok(doc! { "insert": collection, "documents": documents }).await;
    }
    node.ok(doc! { "createIndexes": "p", "indexes": [{ "key": { "p": "2dsphere" }, "name": "p" }] }).await;
    node
}

async fn ids(node: &mut Node, collection: &str, pipeline: &Array) -> Vec<i64> {
    let command = doc! { "aggregate": collection, "pipeline": pipeline, "cursor": { "batchSize": 10_000 } };
    let reply = node.ok(command).await;
    batch(&reply, "firstBatch").iter().map(|found| found.get("_id").unwrap().to_i64_exact().unwrap()).collect()
}

async fn plan(node: &mut Node, pipeline: &Array) -> String {
    let command = doc! { "aggregate": "s", "pipeline": pipeline, "cursor": {} };
    node.ok(doc! { "explain": command, "verbosity": "queryPlanner" }).await.to_string()
}

#[test]
fn x29_regions_leave_out_buckets() {
    run(async {
        let mut node = both().await;
        let triangle = doc! { "type": "Polygon", "coordinates": [[[-60, -40], [70, -30], [0, 60], [-60, -40]]] };
        let regions = [
            doc! { "$geoWithin": { "$geometry": &triangle } },
            doc! { "$geoIntersects": { "$geometry": &triangle } },
            doc! { "$geoWithin": { "$centerSphere": [[170, 80], 0.6] } },
            doc! { "$geoWithin": { "$centerSphere": [[-175, 0], 0.4] } },
            doc! { "$geoWithin": { "$box": [[-20, -20], [45, 45]] } },
        ];
        let order = doc! { "$sort": { "_id": 1 } };
        let mut plans = Vec::new();
        for is_indexed in [false, true] {
            if is_indexed {
                node.ok(doc! { "createIndexes": "s", "indexes": [{ "key": { "p": "2dsphere" }, "name": "p" }] }).await;
            }
            for region in &regions {
                let pipeline = Array::from_iter([doc! { "$match": { "p": region } }, order.clone()]);
                let wanted = ids(&mut node, "p", &pipeline).await;
                assert!(!wanted.is_empty(), "{region}");
                assert_eq!(ids(&mut node, "s", &pipeline).await, wanted, "{region}");
                plans.push(plan(&mut node, &pipeline).await);
            }
        }
        assert!(plans.iter().all(|plan| plan.contains("$_internalBucketGeoWithin")));
        assert!(plans.first().is_some_and(|plan| plan.contains("COLLSCAN")));
        assert!(plans.get(5).is_some_and(|plan| plan.contains("IXSCAN")), "{plans:?}");
        // Only points can be in such an index.
        let line = doc! { "type": "LineString", "coordinates": [[0, 0], [1, 1]] };
        let refused = doc! { "insert": "s", "documents": [{ "t": (Value::DateTime(HOUR_MS)), "p": line }] };
        assert!(node.ok(refused).await.to_string().contains("183493"));
        let direct = doc! { "createIndexes": "p", "indexes": [{ "key": { "p": "2dsphere_bucket" }, "name": "b" }] };
        assert_eq!(node.code(direct).await, 67);
    });
}

#[test]
fn x29_measurements_are_found_by_distance() {
    run(async {
        let mut node = both().await;
        let near = doc! { "type": "Point", "coordinates": [12, 7] };
        let search = |key: &str| doc! { "near": &near, "key": key, "distanceField": "d", "maxDistance": 6e6, "minDistance": 1e6 };
        let pipeline = |key: &str| Array::from_iter([doc! { "$geoNear": search(key) }]);
        let wanted = ids(&mut node, "p", &pipeline("p")).await;
        assert!(wanted.len() > 5, "{wanted:?}");
        assert_eq!(ids(&mut node, "s", &pipeline("p")).await, wanted);
        // Where an index of the meta values has the order already.
        node.ok(doc! { "createIndexes": "s", "indexes": [{ "key": { "m.at": "2dsphere" }, "name": "at" }] }).await;
        assert_eq!(ids(&mut node, "s", &pipeline("m.at")).await, wanted);
        let aggregate = |stage: Doc| doc! { "aggregate": "s", "pipeline": [stage], "cursor": {} };
        let query = doc! { "near": &near, "key": "p", "distanceField": "d", "query": { "x": 1 } };
        assert_eq!(node.code(aggregate(doc! { "$geoNear": query })).await, 1_938_439);
        let located = doc! { "near": &near, "key": "p", "distanceField": "d", "includeLocs": "l" };
        assert_eq!(node.code(aggregate(doc! { "$geoNear": located })).await, 5_860_208);
    });
}
