//! Time-series collections over the wire.

use super::node::{Node, batch, node, node_on, part, with_database};
use super::*;
use pando_doc::{Array, DocBuilder, Value, compare_docs};

/// The start of an hour, so that a bucket starts where it says.
const HOUR_MS: i64 = 1_699_999_200_000;

fn at(seconds: i64) -> Value<'static> {
    Value::DateTime(HOUR_MS + seconds * 1000)
}

async fn series() -> Node {
    let mut node = node().await;
    node.ok(doc! { "create": "s", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
    node
}

async fn insert(node: &mut Node, collection: &str, documents: &[Doc]) -> Doc {
    let documents = Array::from_iter(documents.iter());
    node.ok(doc! { "insert": collection, "documents": documents, "ordered": false }).await
}

async fn find(node: &mut Node, collection: &str, filter: Doc) -> Vec<Doc> {
    let reply = node.ok(doc! { "find": collection, "filter": filter, "batchSize": 10_000, "sort": { "_id": 1 } }).await;
    batch(&reply, "firstBatch")
}

async fn aggregate(node: &mut Node, collection: &str, pipeline: &Array) -> Vec<Doc> {
    let command = doc! { "aggregate": collection, "pipeline": pipeline, "cursor": { "batchSize": 10_000 } };
    batch(&node.ok(command).await, "firstBatch")
}

/// The code of the first error of a write.
async fn write_error(node: &mut Node, command: Doc) -> i64 {
    let reply = node.ok(command).await;
    let errors = reply.get("writeErrors").and_then(|errors| errors.as_array()).unwrap_or_else(|| panic!("{reply}"));
    errors.get(0).unwrap().as_document().unwrap().get("code").unwrap().to_i64_exact().unwrap()
}

async fn buckets(node: &mut Node) -> Vec<Doc> {
    find(node, "system.buckets.s", doc! {}).await
}

#[test]
fn x29_measurements_go_into_buckets_and_come_back() {
    run(async {
        let mut node = series().await;
        let measurements = [
            doc! { "_id": 1, "t": at(1), "m": { "b": 1, "a": 2 }, "x": 5 },
            doc! { "_id": 2, "t": at(2), "m": { "a": 2, "b": 1 }, "x": 3, "y": { "z": "v" } },
            doc! { "_id": 3, "t": at(3), "m": 7 },
            doc! { "_id": 4, "t": at(4) },
        ];
        let reply = insert(&mut node, "s", &measurements).await;
        assert_eq!(reply.get("n"), Some(Value::Int32(4)));
        let found = find(&mut node, "s", doc! {}).await;
        assert_eq!(found.len(), 4);
        assert_eq!(found[1], doc! { "t": at(2), "m": { "a": 2, "b": 1 }, "_id": 2, "x": 3, "y": { "z": "v" } });
        let buckets = buckets(&mut node).await;
        assert_eq!(buckets.len(), 3, "one for each source");
        let of_both = buckets.iter().find(|bucket| part(bucket, "data").view().contains("x")).unwrap();
        let control = part(of_both, "control");
        assert_eq!(part(&control, "min"), doc! { "t": at(0), "_id": 1, "x": 3, "y": { "z": "v" } });
        assert_eq!(part(&control, "max"), doc! { "_id": 2, "t": at(2), "x": 5, "y": { "z": "v" } });
        assert_eq!(control.get("version"), Some(Value::Int32(1)));
        assert_eq!(part(&part(of_both, "data"), "x"), doc! { "0": 5, "1": 3 });
        let reply = node.ok(doc! { "listCollections": 1, "filter": { "name": "s" } }).await;
        let [row] = &batch(&reply, "firstBatch")[..] else { panic!("{reply}") };
        assert_eq!(text(row, "type"), "timeseries");
        let options = doc! { "timeseries": {
            "timeField": "t", "metaField": "m", "granularity": "seconds", "bucketMaxSpanSeconds": 3600
        } };
        assert_eq!(part(row, "options"), options);
        assert_eq!(write_error(&mut node, doc! { "insert": "s", "documents": [{ "t": 1 }] }).await, 2);
        node.ok(doc! { "create": "s", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
        assert_eq!(node.code(doc! { "create": "s", "timeseries": { "timeField": "t" } }).await, 48);
        node.ok(doc! { "drop": "s" }).await;
        let reply = node.ok(doc! { "listCollections": 1, "filter": { "name": { "$ne": "system.views" } } }).await;
        assert_eq!(batch(&reply, "firstBatch"), Vec::<Doc>::new());
    });
}

#[test]
fn x29_full_buckets_are_compressed_and_read_as_before() {
    run(async {
        let mut node = series().await;
        let measurements: Vec<Doc> = (0..2500)
            .map(|place| doc! { "_id": (place), "t": at(i64::from(place) % 3000), "m": 1, "x": (place % 10) })
            .collect();
        insert(&mut node, "s", &measurements).await;
        let buckets = buckets(&mut node).await;
        let versions: Vec<i64> = buckets
            .iter()
            .map(|bucket| part(bucket, "control").get("version").unwrap().to_i64_exact().unwrap())
            .collect();
        assert_eq!(versions.iter().filter(|version| **version == 2).count(), 2, "{versions:?}");
        let found = find(&mut node, "s", doc! { "x": { "$lt": 3 } }).await;
        assert_eq!(found.len(), 750);
        let grouped = aggregate(
            &mut node,
            "s",
            &Array::from_iter([doc! { "$group": { "_id": "$m", "sum": { "$sum": "$x" }, "n": { "$sum": 1 } } }]),
        )
        .await;
        assert_eq!(grouped, [doc! { "_id": 1, "sum": 11_250, "n": 2500 }]);
        let count = node.ok(doc! { "count": "s", "query": { "x": 5 } }).await;
        assert_eq!(count.get("n"), Some(Value::Int32(250)));
        let distinct = node.ok(doc! { "distinct": "s", "key": "x" }).await;
        assert_eq!(distinct.get("values").unwrap().as_array().unwrap().len(), 10);
    });
}

#[test]
fn x29_measurements_out_of_order_reopen_buckets() {
    run(async {
        let mut node = series().await;
        for seconds in [7200, 100, 7300, 14_400] {
            insert(&mut node, "s", &[doc! { "t": at(seconds), "m": 1 }]).await;
        }
        let buckets = buckets(&mut node).await;
        let counts: Vec<i64> = aggregate(
            &mut node,
            "s",
            &Array::from_iter([
                doc! { "$group": { "_id": { "$dateTrunc": { "date": "$t", "unit": "hour" } }, "n": { "$sum": 1 } } },
                doc! { "$sort": { "_id": 1 } },
            ]),
        )
        .await
        .iter()
        .map(|group| group.get("n").unwrap().to_i64_exact().unwrap())
        .collect();
        assert_eq!((buckets.len(), counts), (3, vec![1, 2, 1]));
    });
}

#[test]
fn x29_indexes_are_translated_both_ways() {
    run(async {
        let mut node = series().await;
        let create = |key: Doc, name: &str| doc! { "createIndexes": "s", "indexes": [{ "key": key, "name": name }] };
        node.ok(create(doc! { "t": -1 }, "time")).await;
        node.ok(create(doc! { "x": 1 }, "value")).await;
        let list = |name: &str| doc! { "listIndexes": name };
        let keys =
            |reply: &Doc| -> Vec<Doc> { batch(reply, "firstBatch").iter().map(|row| part(row, "key")).collect() };
        let reply = node.ok(list("s")).await;
        assert_eq!(keys(&reply), [doc! { "m": 1, "t": 1 }, doc! { "t": -1 }, doc! { "x": 1 }]);
        let reply = node.ok(list("system.buckets.s")).await;
        assert_eq!(keys(&reply)[1], doc! { "control.max.t": -1, "control.min.t": -1 });
        node.ok(doc! { "dropIndexes": "s", "index": { "x": 1 } }).await;
        assert_eq!(keys(&node.ok(list("s")).await).len(), 2);
        assert_eq!(node.code(create(doc! { "x": "text" }, "text")).await, 72);
        let unique = doc! { "createIndexes": "s", "indexes": [{ "key": { "m": 1 }, "name": "u", "unique": true }] };
        assert_eq!(node.code(unique).await, 72);
        insert(&mut node, "s", &[doc! { "t": at(1), "m": 1 }]).await;
        let explained = node.ok(doc! { "explain": { "find": "s", "filter": { "m": 1 } } }).await;
        assert!(explained.to_string().contains("IXSCAN"), "{explained}");
    });
}

#[test]
fn x29_deletes_are_of_measurements_and_updates_of_meta_values() {
    run(async {
        let mut node = series().await;
        let measurements: Vec<Doc> = (0..100)
            .map(|place| doc! { "_id": (place), "t": at(i64::from(place)), "m": (place % 4), "x": (place) })
            .collect();
        insert(&mut node, "s", &measurements).await;
        let delete = |filter: Doc, limit: i32| doc! { "delete": "s", "deletes": [{ "q": filter, "limit": limit }] };
        let n = |reply: Doc| reply.get("n").unwrap().to_i64_exact().unwrap();
        assert_eq!(n(node.ok(delete(doc! { "m": 3 }, 0)).await), 25);
        assert_eq!(n(node.ok(delete(doc! { "x": { "$lt": 8 }, "m": 1 }, 0)).await), 2);
        assert_eq!(n(node.ok(delete(doc! { "x": { "$gte": 90 } }, 1)).await), 1);
        assert_eq!(find(&mut node, "s", doc! {}).await.len(), 72);
        let update = doc! { "q": { "m": 2 }, "u": { "$set": { "m": "two" } }, "multi": true };
        let reply = node.ok(doc! { "update": "s", "updates": [update] }).await;
        assert_eq!((reply.get("n"), reply.get("nModified")), (Some(Value::Int32(25)), Some(Value::Int32(25))));
        assert_eq!(find(&mut node, "s", doc! { "m": "two" }).await.len(), 25);
        assert_eq!(
            write_error(
                &mut node,
                doc! { "update": "s", "updates": [{ "q": { "x": 2 }, "u": { "$set": { "m": 1 } }, "multi": true }] }
            )
            .await,
            72
        );
        assert_eq!(
            write_error(
                &mut node,
                doc! { "update": "s", "updates": [{ "q": { "m": 2 }, "u": { "$set": { "x": 1 } }, "multi": true }] }
            )
            .await,
            72
        );
        assert_eq!(
            write_error(
                &mut node,
                doc! { "update": "s", "updates": [{ "q": { "m": 2 }, "u": { "$set": { "m": 1 } } }] }
            )
            .await,
            72
        );
        insert(&mut node, "s", &[doc! { "t": at(5), "m": 2 }]).await;
        assert_eq!(find(&mut node, "s", doc! {}).await.len(), 73);
    });
}

#[test]
fn x29_the_span_of_buckets_grows_by_coll_mod() {
    run(async {
        let mut node = series().await;
        let change = |granularity: &str| doc! { "collMod": "s", "timeseries": { "granularity": granularity } };
        node.ok(change("minutes")).await;
        assert_eq!(node.code(change("seconds")).await, 72);
        insert(&mut node, "s", &[doc! { "t": at(0), "m": 1 }, doc! { "t": at(80_000), "m": 1 }]).await;
        assert_eq!(buckets(&mut node).await.len(), 1);
        let late = find(&mut node, "s", doc! { "t": { "$gte": at(80_000) } }).await;
        assert_eq!(late.len(), 1, "the view knows the new span");
    });
}

#[test]
fn x29_hostile_buckets_are_errors_and_nothing_worse() {
    run(async {
        let mut node = series().await;
        insert(&mut node, "s", &[doc! { "t": at(0), "m": 1 }]).await;
        assert_eq!(
            write_error(&mut node, doc! { "insert": "system.buckets.s", "documents": [{ "_id": 1 }] }).await,
            121
        );
        let id = pando_doc::ObjectId::from_parts((HOUR_MS / 1000) as u32, [0; 5], 1);
        node.ok_on("admin", doc! { "setParameter": 1, "timeseriesDisableStrictBucketValidator": true }).await;
        for column in [&[][..], &[0x80], &[0x9F, 1, 2, 3], &[1, 0, 9], &[0xF1, 5, 0, 0, 0, 0, 0]] {
            let bucket = doc! {
                "_id": id, "meta": 1,
                "control": { "version": 2, "min": { "t": at(0) }, "max": { "t": at(0) }, "count": 1 },
                "data": { "t": Value::Binary { subtype: 7, bytes: column } }
            };
            node.ok(doc! { "insert": "system.buckets.s", "documents": [bucket] }).await;
            let reply = node.run(doc! { "find": "s" }).await;
            assert_ne!(reply.get("ok"), Some(Value::Double(1.0)), "{column:?}: {reply}");
            insert(&mut node, "s", &[doc! { "t": at(1), "m": 1 }]).await;
            node.ok(doc! { "delete": "system.buckets.s", "deletes": [{ "q": { "_id": id }, "limit": 1 }] }).await;
        }
        assert_eq!(find(&mut node, "s", doc! {}).await.len(), 6);
    });
}

#[test]
fn x29_only_buckets_can_be_said_to_be_buckets() {
    run(async {
        let mut node = series().await;
        node.ok(doc! { "create": "plain" }).await;
        for command in [
            doc! { "insert": "plain", "documents": [{ "t": at(1) }], "isTimeseriesNamespace": true },
            doc! { "delete": "plain", "deletes": [{ "q": {}, "limit": 0 }], "isTimeseriesNamespace": true },
            doc! { "update": "s", "updates": [{ "q": {}, "u": { "$set": { "m": 1 } } }], "isTimeseriesNamespace": true },
        ] {
            assert_eq!(node.code(command).await, 5_916_400);
        }
        let measurement =
            doc! { "insert": "system.buckets.s", "documents": [{ "t": at(1) }], "isTimeseriesNamespace": true };
        node.ok(measurement).await;
        assert_eq!(find(&mut node, "s", doc! {}).await.len(), 1);
    });
}

#[test]
fn x29_after_a_restart_open_buckets_are_found_again() {
    run(async {
        let disk = pando_engine_model::ModelDisk::new();
        let set = || ReplicationMode::OneMember("rs0".into());
        let mut first = node_on(&disk, set()).await;
        first.ok(doc! { "create": "s", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
        let measurement = doc! { "_id": 1, "t": at(1), "m": 1, "x": 1 };
        first.ok(doc! { "insert": "s", "documents": [measurement], "writeConcern": { "w": 1, "j": true } }).await;
        disk.crash();
        let mut second = node_on(&disk, set()).await;
        insert(&mut second, "s", &[doc! { "_id": 2, "t": at(2), "m": 1, "y": 2 }]).await;
        assert_eq!(find(&mut second, "s", doc! {}).await.len(), 2);
        assert_eq!(buckets(&mut second).await.len(), 1);
        drop(first.fixture);
    });
}

#[test]
fn x29_the_oplog_tells_what_was_added_to_a_bucket() {
    run(async {
        let mut node = series().await;
        insert(&mut node, "s", &[doc! { "_id": 1, "t": at(1), "m": 1, "x": 1 }]).await;
        insert(&mut node, "s", &[doc! { "_id": 2, "t": at(2), "m": 1, "x": 5, "y": 3 }]).await;
        let filter = doc! { "find": "oplog.rs", "filter": { "op": "u", "ns": "d.system.buckets.s" } };
        let entries = node.find_on("local", filter).await;
        let [entry] = &entries[..] else { panic!("{entries:?}") };
        let diff = part(&part(entry, "o"), "diff");
        let added = doc! { "i": { "y": { "1": 3 } }, "s_id": { "i": { "1": 2 } }, "st": { "i": { "1": at(2) } }, "sx": { "i": { "1": 5 } } };
        assert_eq!(part(&diff, "sdata"), added);
        let [bucket] = &buckets(&mut node).await[..] else { panic!("one bucket") };
        let applied = doc! { "applyOps": [{
            "op": "u", "ns": "d.system.buckets.s", "o2": { "_id": bucket.get("_id").unwrap() }, "o": (part(entry, "o"))
        }] };
        node.client.admin(applied).await;
        assert_eq!(buckets(&mut node).await[0], *bucket, "what is told twice is there once");
    });
}

#[test]
fn x29_writers_to_one_source_meet_in_one_bucket() {
    run(async {
        let mut node = series().await;
        let mut clients = Vec::new();
        for _ in 0..4 {
            clients.push(node.fixture.connect().await);
        }
        for round in 0..20 {
            for (place, client) in clients.iter_mut().enumerate() {
                let id = round * 10 + place as i64;
                let command = doc! { "insert": "s", "documents": [{ "_id": id, "t": at(id), "m": 1 }] };
                client.send(MsgFlags::NONE, &with_database(&command, "d")).await;
            }
            for client in &mut clients {
                let reply = client.read().await.unwrap().body().to_doc();
                assert_eq!(reply.get("n"), Some(Value::Int32(1)), "{reply}");
            }
        }
        assert_eq!(find(&mut node, "s", doc! {}).await.len(), 80);
        assert_eq!(buckets(&mut node).await.len(), 1);
    });
}

/// A small generator, so that a seed gives the same everywhere.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: u64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % bound) as i64
    }
}

fn measurement(chance: &mut Chance, id: i64) -> Doc {
    let mut out = DocBuilder::new();
    out.append("_id", id);
    out.append("t", at(chance.below(20_000)));
    if chance.below(10) > 0 {
        out.append("m", doc! { "s": (chance.below(4)) });
    }
    match chance.below(7) {
        0 => {}
        1 => out.append("x", Value::Null),
        2 => out.append("x", format!("s{}", chance.below(5)).as_str()),
        3 => out.append("x", Array::from_iter([chance.below(9), chance.below(9)])),
        4 => out.append("x", f64::NAN),
        _ => out.append("x", chance.below(9)),
    }
    if chance.below(3) > 0 {
        out.append("y", doc! { "z": (chance.below(9)), "w": (chance.below(3) == 0) });
    }
    out.finish()
}

fn condition(chance: &mut Chance, depth: u32) -> Doc {
    let operator = ["$eq", "$lt", "$lte", "$gt", "$gte", "$ne"][chance.below(6) as usize];
    match chance.below(if depth < 2 { 11 } else { 8 }) {
        0 => doc! { "t": { (operator): at(chance.below(20_000)) } },
        1 => doc! { "m.s": { (operator): (chance.below(4)) } },
        2 | 3 => doc! { "x": { (operator): (chance.below(9)) } },
        4 => doc! { "x": { (operator): (format!("s{}", chance.below(5))) } },
        5 => doc! { "y.z": { (operator): (chance.below(9)) } },
        6 => doc! { "x": { "$exists": (chance.below(2) == 0) } },
        7 => doc! { "y.z": { "$in": [(chance.below(9)), (chance.below(9)), null] } },
        8 => doc! { "$and": [(condition(chance, depth + 1)), (condition(chance, depth + 1))] },
        9 => doc! { "$or": [(condition(chance, depth + 1)), (condition(chance, depth + 1))] },
        _ => doc! { "$nor": [(condition(chance, depth + 1))] },
    }
}

fn pipeline(chance: &mut Chance) -> Array {
    let mut stages = Vec::new();
    if chance.below(3) > 0 {
        stages.push(doc! { "$match": (condition(chance, 0)) });
    }
    match chance.below(6) {
        0 => stages.push(doc! { "$sort": { "t": (1 - 2 * chance.below(2)), "_id": 1 } }),
        1 => stages.push(doc! { "$sort": { "m": 1, "_id": 1 } }),
        2 => stages.push(doc! { "$group": { "_id": "$m", "lo": { "$min": "$y.z" }, "hi": { "$max": "$y.z" } } }),
        3 => stages.push(doc! { "$group": { "_id": "$m.s", "n": { "$sum": 1 }, "sum": { "$sum": "$y.z" } } }),
        4 => stages.push(doc! { "$project": { "_id": 1, "m": 1, "v": "$y.z" } }),
        _ => stages.push(doc! { "$unset": ["y", "m"] }),
    }
    Array::from_iter(stages)
}

/// Documents without regard to their order and that of their fields.
fn unordered(mut documents: Vec<Doc>) -> Vec<Doc> {
    for document in &mut documents {
        let mut elements: Vec<_> = document.elements().collect();
        elements.sort_by(|left, right| left.name.cmp(right.name));
        let mut out = DocBuilder::new();
        elements.iter().for_each(|element| out.append_element(*element));
        *document = out.finish();
    }
    documents.sort_by(|left, right| compare_docs(left.view(), right.view()));
    documents
}

#[test]
fn x29_queries_find_what_they_find_in_a_plain_collection() {
    run(async {
        let mut node = series().await;
        let mut chance = Chance(29);
        for round in 0..6 {
            let measurements: Vec<Doc> = (0..150).map(|place| measurement(&mut chance, round * 1000 + place)).collect();
            insert(&mut node, "s", &measurements).await;
            insert(&mut node, "plain", &measurements).await;
            for _ in 0..60 {
                let filter = condition(&mut chance, 0);
                let (series, plain) =
                    (find(&mut node, "s", filter.clone()).await, find(&mut node, "plain", filter.clone()).await);
                assert_eq!(unordered(series), unordered(plain), "{filter}");
                let stages = pipeline(&mut chance);
                let (series, plain) =
                    (aggregate(&mut node, "s", &stages).await, aggregate(&mut node, "plain", &stages).await);
                let is_sorted = stages.values().any(|stage| stage.as_document().unwrap().contains("$sort"));
                if is_sorted {
                    let ids = |documents: &[Doc]| -> Vec<i64> {
                        documents.iter().map(|found| found.get("_id").unwrap().to_i64_exact().unwrap()).collect()
                    };
                    assert_eq!(ids(&series), ids(&plain), "{:?}", stages.as_doc());
                } else {
                    assert_eq!(unordered(series), unordered(plain), "{:?}", stages.as_doc());
                }
            }
            let filter = condition(&mut chance, 0);
            for collection in ["s", "plain"] {
                node.ok(doc! { "delete": collection, "deletes": [{ "q": (&filter), "limit": 0 }] }).await;
            }
        }
    });
}

#[test]
fn x29_buckets_of_many_small_batches_are_packed_while_they_are_open() {
    run(async {
        let mut node = series().await;
        for batch in 0..50_i64 {
            let measurements: Vec<Doc> = (0..30)
                .map(|place| {
                    let (source, second) = (place % 3, batch * 10 + place / 3);
                    doc! { "_id": (batch * 30 + place), "t": at(second * 2), "m": (source), "x": (second as f64 / 10.0) }
                })
                .collect();
            insert(&mut node, "s", &measurements).await;
        }
        let shape = |buckets: &[Doc]| -> Vec<(i64, i64)> {
            let number = |bucket: &Doc, name: &str| {
                part(bucket, "control").get(name).and_then(|value| value.to_i64_exact()).unwrap_or(-1)
            };
            buckets.iter().map(|bucket| (number(bucket, "version"), number(bucket, "count"))).collect()
        };
        assert_eq!(shape(&buckets(&mut node).await), [(2, 500); 3]);
        let grouped = doc! { "$group": { "_id": "$m", "sum": { "$sum": "$x" }, "n": { "$sum": 1 } } };
        let pipeline = Array::from_iter([grouped, doc! { "$sort": { "_id": 1 } }]);
        let expected: Vec<Doc> =
            (0..3).map(|source| doc! { "_id": (source as i64), "sum": 12_475.0, "n": 500 }).collect();
        assert_eq!(aggregate(&mut node, "s", &pipeline).await, expected);
        // Late, and of another source in the same batch.
        let late =
            [doc! { "_id": -1, "t": at(7), "m": 1_i64, "y": "late" }, doc! { "_id": -2, "t": at(1100), "m": 2_i64 }];
        insert(&mut node, "s", &late).await;
        let mut shapes = shape(&buckets(&mut node).await);
        shapes.sort_unstable();
        assert_eq!(shapes, [(2, 500), (2, 501), (2, 501)], "they are the same buckets");
        let found = find(&mut node, "s", doc! { "m": 1, "t": { "$gte": at(6), "$lte": at(8) } }).await;
        assert_eq!(
            found.iter().map(|found| found.get("_id").unwrap().to_i64_exact().unwrap()).collect::<Vec<_>>(),
            [-1, 10, 13]
        );
        let reply = node.ok(doc! { "delete": "s", "deletes": [{ "q": { "x": { "$lt": 10 } }, "limit": 0 }] }).await;
        assert_eq!(reply.get("n"), Some(Value::Int32(300)));
        insert(&mut node, "s", &[doc! { "_id": -3, "t": at(1200), "m": 0_i64 }]).await;
        let count = node.ok(doc! { "count": "s", "query": {} }).await;
        assert_eq!(count.get("n"), Some(Value::Int32(1203)));
        let reply = node.ok(doc! { "validate": "system.buckets.s" }).await;
        assert_eq!(reply.get("valid"), Some(Value::Bool(true)));
    });
}

#[test]
fn x29_groups_over_whole_buckets_give_what_a_plain_collection_gives() {
    run(async {
        let mut node = series().await;
        for batch in 0..60_i64 {
            let measurements: Vec<Doc> = (0..60)
                .map(|place| {
                    let (source, second) = (place % 3, batch * 20 + place / 3);
                    let mut measurement = DocBuilder::new();
                    measurement.append("_id", batch * 60 + place);
                    measurement.append("t", at(second * 11));
                    measurement.append("m", doc! { "a": (source) });
                    if second % 7 != 0 {
                        measurement.append("x", second as f64 / 4.0);
                    }
                    if second % 5 == 0 {
                        measurement.append("y", if source == 0 { Value::Null } else { Value::Int64(second) });
                    }
                    measurement.finish()
                })
                .collect();
            insert(&mut node, "s", &measurements).await;
            insert(&mut node, "plain", &measurements).await;
        }
        let cut = |unit: &str, size: i32| doc! { "$dateTrunc": { "date": "$t", "unit": unit, "binSize": (size) } };
        let fields = |id: Doc| {
            doc! { "$group": {
                "_id": id, "n": { "$sum": 1 }, "count": { "$count": {} }, "average": { "$avg": "$x" }, "sum": { "$sum": "$y" },
                "least": { "$min": "$x" }, "greatest": { "$max": "$y" }, "first": { "$first": "$x" }, "last": { "$last": "$t" },
                "all": { "$push": "$y" }, "source": { "$max": "$m.a" },
            } }
        };
        let range = doc! { "$match": { "t": { "$gte": at(1000), "$lt": at(9_999) } } };
        let order = doc! { "$sort": { "_id": 1 } };
        let by_hour = fields(doc! { "m": "$m.a", "h": (cut("hour", 1)) });
        let by_minutes = fields(doc! { "h": (cut("minute", 7)), "m": "$m" });
        let pipelines = [
            Array::from_iter([by_hour.clone(), order.clone()]),
            Array::from_iter([range.clone(), by_hour, order.clone()]),
            Array::from_iter([by_minutes.clone(), order.clone()]),
            Array::from_iter([range, by_minutes, order.clone()]),
            Array::from_iter([fields(doc! { "h": (cut("day", 1)) }), order.clone()]),
            Array::from_iter([fields(doc! { "m": "$m" }), order]),
        ];
        for pipeline in &pipelines {
            // A plain collection has the measurements of all sources in turn; a group by time alone sees them in another order.
            let without_order = |groups: Vec<Doc>| -> Vec<Doc> {
                let kept = |group: &Doc| {
                    let mut out = DocBuilder::new();
                    let is_of_one = group.get("_id").unwrap().as_document().unwrap().get("m").is_some();
                    let depends = ["first", "last", "all"];
                    group
                        .elements()
                        .filter(|element| is_of_one || !depends.iter().any(|name| element.name == *name))
                        .for_each(|element| out.append_element(element));
                    out.finish()
                };
                groups.iter().map(kept).collect()
            };
            let expected = without_order(aggregate(&mut node, "plain", pipeline).await);
            assert_eq!(without_order(aggregate(&mut node, "s", pipeline).await), expected, "{pipeline:?}");
            assert!(!expected.is_empty());
        }
    });
}

#[test]
fn x29_a_retried_batch_of_several_sources_is_recognized() {
    run(async {
        let mut node = series().await;
        let documents: Vec<Doc> =
            (0..12).map(|place| doc! { "_id": (place), "t": at(i64::from(place)), "m": (place % 4) }).collect();
        let command = doc! {
            "insert": "s", "documents": (Array::from_iter(documents.iter())),
            "lsid": { "id": Value::Binary { subtype: 4, bytes: &[9; 16] } }, "txnNumber": 5_i64,
        };
        for _ in 0..2 {
            assert_eq!(node.ok(command.clone()).await.get("n"), Some(Value::Int32(12)));
        }
        assert_eq!(find(&mut node, "s", doc! {}).await.len(), 12);
        // Four buckets in one unit of work: each entry names the one before.
        let find = doc! { "find": "oplog.rs", "filter": { "txnNumber": 5_i64 }, "sort": { "$natural": 1 } };
        let entries = node.find_on("local", find).await;
        assert_eq!(entries.len(), 4);
        for pair in entries.windows(2) {
            assert_eq!(part(&pair[1], "prevOpTime").get("ts"), pair[0].get("ts"));
        }
    });
}

#[test]
fn x29_validate_looks_into_buckets() {
    run(async {
        let mut node = node().await;
        node.ok(doc! { "create": "ts", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
        let points: Vec<Doc> = (0..20)
            .map(|place| doc! { "t": (Value::DateTime(1_700_000_040_000 + place * 1000)), "m": 1, "x": place })
            .collect();
        node.insert_into("ts", &points).await;
        let validate = doc! { "validate": "ts", "full": true };
        let report = node.ok(validate.clone()).await;
        assert_eq!(report.get("valid"), Some(Value::Bool(true)), "{report}");
        let buckets = node.ok(doc! { "find": "system.buckets.ts" }).await;
        let bucket = batch(&buckets, "firstBatch")[0].clone();
        // The same again under an id of another time.
        node.ok_on("admin", doc! { "setParameter": 1, "timeseriesDisableStrictBucketValidator": true }).await;
        let mut other = DocBuilder::new();
        other.append("_id", pando_doc::ObjectId::from_bytes([7; 12]));
        bucket.elements().skip(1).for_each(|element| other.append_element(element));
        node.ok(doc! { "insert": "system.buckets.ts", "documents": [(other.finish())] }).await;
        let report = node.ok(validate).await;
        assert_eq!(report.get("valid"), Some(Value::Bool(false)), "{report}");
        assert_eq!(number(&report, "nNonCompliantDocuments"), 1.0);
        assert!(report.to_string().contains("incompatible with time-series"), "{report}");
    });
}

#[test]
fn x29_buckets_that_clients_write_are_what_they_claim_to_be() {
    run(async {
        let mut node = series().await;
        insert(&mut node, "s", &[doc! { "_id": 1, "t": at(1), "m": 1, "x": 5 }]).await;
        let change =
            |change: Doc| doc! { "update": "system.buckets.s", "updates": [{ "q": {}, "u": { "$set": change } }] };
        let other_start = || doc! { "control.min.t": (Value::DateTime(HOUR_MS + 7_200_000)) };
        assert_eq!(write_error(&mut node, change(other_start())).await, 121);
        assert_eq!(write_error(&mut node, change(doc! { "control.version": 2 })).await, 121);
        // Extremes are not looked at.
        node.ok(change(doc! { "control.max.x": 8 })).await;
        node.ok_on("admin", doc! { "setParameter": 1, "timeseriesDisableStrictBucketValidator": true }).await;
        let reply = node.ok(change(other_start())).await;
        assert_eq!(reply.get("nModified"), Some(Value::Int32(1)), "{reply}");
        let checked = node.ok(doc! { "validate": "s" }).await;
        assert_eq!(checked.get("valid"), Some(Value::Bool(false)), "{checked}");
    });
}
