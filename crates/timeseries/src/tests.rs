//! Buckets as a whole: measurements go in, are compressed, come out and can be added to again.

use super::*;
use pando_base::ErrorCode;
use pando_doc::{Doc, DocRef, Value, doc};

fn options() -> TimeseriesOptions {
    TimeseriesOptions::parse(doc! { "timeField": "t", "metaField": "m" }.view()).unwrap().completed().unwrap()
}

/// A sensor whose values drift: a tenth of a degree up or down, a counter, a state that seldom changes.
fn drifting(count: usize) -> Vec<Doc> {
    let mut state = 42_u64;
    let mut tenths = 215_i32;
    (0..count)
        .map(|place| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            tenths += (state >> 40) as i32 % 3 - 1;
            let time = Value::DateTime(1_700_000_040_000 + place as i64 * 1000);
            let id = pando_doc::ObjectId::from_parts(1_700_000_040 + place as u32, [1, 2, 3, 4, 5], place as u32);
            doc! {
                "_id": id, "t": time, "m": { "sensor": 7, "site": "north" },
                "temperature": (f64::from(tenths) / 10.0), "count": (place as i64), "on": (state >> 60 == 0)
            }
        })
        .collect()
}

fn bucket_of(measurements: &[Doc], options: &TimeseriesOptions) -> (Bucket, Option<Rollover>) {
    let first = measurements.first().unwrap();
    let time = measurement_time(first.view(), options).unwrap();
    let start = options.rounded_time(time);
    let meta = Bucket::meta_of(first.view(), options);
    let mut bucket = Bucket::new(bucket_id(start, pando_doc::ObjectId::default()), start, meta, options);
    let limits = BucketLimits::default();
    for measurement in measurements {
        let time = measurement_time(measurement.view(), options).unwrap();
        if let Some(reason) = bucket.add(measurement.view(), time, options, &limits, 1, None) {
            return (bucket, Some(reason));
        }
    }
    (bucket, None)
}

fn unpack(bucket: &Doc, options: &TimeseriesOptions, wanted: &FieldSet) -> Vec<Doc> {
    let mut reader = BucketReader::new(bucket, options, wanted).unwrap();
    std::iter::from_fn(|| reader.read().unwrap()).collect()
}

/// The fields in a fixed order, for a bucket does not keep it.
fn sorted(doc: DocRef<'_>) -> pando_doc::OwnedValue {
    normalized(Value::Document(doc))
}

#[test]
fn x29_buckets_give_back_their_measurements() {
    let options = options();
    let measurements = drifting(300);
    let (mut bucket, reason) = bucket_of(&measurements, &options);
    assert_eq!(reason, None);
    let open = bucket.to_doc();
    let compressed = compress(open.view(), &options).unwrap();
    assert!(!is_compressed(open.view()) && is_compressed(compressed.view()));
    for stored in [&open, &compressed] {
        let found = unpack(stored, &options, &FieldSet::all());
        assert_eq!(found.len(), measurements.len());
        for (found, measurement) in found.iter().zip(&measurements) {
            assert_eq!(sorted(found.view()), sorted(measurement.view()));
        }
        assert_eq!(check_bucket(stored, &options, None), None);
        let reopened = Bucket::reopen(stored.view(), &options).unwrap();
        assert_eq!(reopened.count(), 300);
    }
    let some = unpack(&compressed, &options, &FieldSet::Only(["count".into()].into()));
    assert_eq!(some.get(7), Some(&doc! { "count": 7_i64 }));
}

#[test]
fn x29_drifting_sensors_take_a_fifth_and_less() {
    let options = options();
    let measurements = drifting(1000);
    let plain: usize = measurements.iter().map(Doc::size_bytes).sum();
    let (mut bucket, _) = bucket_of(&measurements, &options);
    let stored = compress(bucket.to_doc().view(), &options).unwrap();
    let count = bucket.count();
    assert!(count * plain / 1000 > 5 * stored.size_bytes(), "{count}: {plain} bytes and {}", stored.size_bytes());
}

#[test]
fn x29_buckets_have_limits() {
    let options = options();
    let at = |seconds: i64| Value::DateTime(1_700_000_040_000 + seconds * 1000);
    let small: Vec<Doc> = (0..1001).map(|place| doc! { "t": at(place) }).collect();
    assert_eq!(bucket_of(&small, &options).1, Some(Rollover::Count));
    let cases = [
        (doc! { "t": at(3600) }, Rollover::TimeForward),
        (doc! { "t": at(-61) }, Rollover::TimeBackward),
        (doc! { "t": at(1), "x": "text" }, Rollover::SchemaChange),
    ];
    for (second, reason) in cases {
        assert_eq!(bucket_of(&[doc! { "t": at(0), "x": 1 }, second], &options).1, Some(reason));
    }
    let large = "x".repeat(20_000);
    let few: Vec<Doc> = (0..100).map(|place| doc! { "t": at(place), "x": large.as_str() }).collect();
    let (bucket, reason) = bucket_of(&few, &options);
    assert_eq!((bucket.count(), reason, bucket.is_kept_open()), (10, Some(Rollover::Size), true));
}

#[test]
fn x29_measurements_of_one_shape_are_added_as_any_other() {
    let (options, limits) = (options(), BucketLimits::default());
    let mut state = 5_u64;
    let mut below = |bound: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    let mut reasons = 0;
    for _ in 0..60 {
        let mut buckets = [false, true].map(|_| Bucket::new(pando_doc::ObjectId::default(), 0, None, &options));
        for place in 0..300_u64 {
            let late = if below(40) == 0 { 5000 } else { 0 };
            let time = Value::DateTime((place * 1000).saturating_sub(late) as i64);
            let number = below(1000) as i64;
            // Mostly one shape; now and then other fields, another order, another type.
            let measurement = match below(50) {
                0 => doc! { "t": time, "a": number, "n": { "x": number } },
                1 => doc! { "a": (number as f64), "t": time, "m": 3, "b": "text" },
                2 => doc! { "t": time, "m": 3, "a": "other", "b": number },
                3 => doc! { "t": time, "m": 3, "a": number, "b": (Value::MaxKey) },
                4 => doc! { "t": time, "m": 3, "a": (number as i32), "b": (number as f64 / 10.0) },
                _ => doc! { "t": time, "m": 3, "a": number, "b": (number as f64 / 100.0) },
            };
            buckets[1].forget_shape();
            let time_ms = measurement_time(measurement.view(), &options).unwrap();
            let [one, other] = [0, 1].map(|which: usize| {
                let reason = buckets[which].add(measurement.view(), time_ms, &options, &limits, 1, None);
                let stored = (place % 7 == 6).then(|| buckets[which].store(&options).document);
                (reason, stored, buckets[which].to_doc())
            });
            reasons += u32::from(one.0.is_some());
            assert_eq!(one, other, "{measurement:?}");
        }
    }
    assert!(reasons > 20);
}

#[test]
fn x29_measurements_out_of_order_are_sorted_when_compressed() {
    let options = options();
    let at = |seconds: i64| Value::DateTime(1_700_000_040_000 + seconds * 1000);
    let measurements = [doc! { "t": at(30), "x": 3 }, doc! { "t": at(10) }, doc! { "t": at(20), "x": 2, "y": 1 }];
    let (mut bucket, _) = bucket_of(&measurements, &options);
    let compressed = compress(bucket.to_doc().view(), &options).unwrap();
    let expected = [doc! { "t": at(10) }, doc! { "t": at(20), "x": 2, "y": 1 }, doc! { "t": at(30), "x": 3 }];
    assert_eq!(unpack(&compressed, &options, &FieldSet::all()), expected);
}

#[test]
fn x29_hostile_buckets_are_errors() {
    let options = options();
    let time = Value::DateTime(0);
    assert_eq!(measurement_time(doc! { "t": 1 }.view(), &options).unwrap_err().code(), ErrorCode::BadValue);
    let id = bucket_id(0, pando_doc::ObjectId::default());
    let control = doc! { "version": 2, "min": { "t": time }, "max": { "t": time } };
    for data in [
        doc! {},
        doc! { "t": 1 },
        doc! { "t": Value::Binary { subtype: 7, bytes: &[0x80, 1, 2] } },
        doc! { "t": Value::Binary { subtype: 0, bytes: &[0] } },
    ] {
        let bucket = doc! { "_id": id, "control": control.view(), "data": data.view() };
        assert!(Bucket::reopen(bucket.view(), &options).is_err(), "{bucket:?}");
        assert!(check_bucket(&bucket, &options, None).is_some());
        let read = BucketReader::new(&bucket, &options, &FieldSet::all()).and_then(|mut reader| reader.read());
        assert!(read.is_err(), "{bucket:?}");
    }
    let open = doc! { "_id": id, "control": control.view(), "data": { "t": { "0": time, "1": time }, "x": { "1": 5, "0": 4 } } };
    assert_eq!(compress(open.view(), &options), None);
    assert_eq!(unpack(&open, &options, &FieldSet::all()), [doc! { "t": time }, doc! { "t": time, "x": 5 }]);
}

/// Adds measurements batch by batch, and stores the bucket after each; what is stored is what the change makes of what was.
fn stored_in_batches(measurements: &[Doc], batch: usize, options: &TimeseriesOptions) -> (Bucket, Doc) {
    let (mut bucket, _) = bucket_of(&measurements[..1], options);
    let mut document = bucket.store(options).document;
    for (step, batch) in measurements[1..].chunks(batch).enumerate() {
        for measurement in batch {
            let time = measurement_time(measurement.view(), options).unwrap();
            let refused = bucket.add(measurement.view(), time, options, &BucketLimits::default(), 1, None);
            assert_eq!(refused, None);
        }
        let Stored { document: new, change } = bucket.store(options);
        if let Some(change) = change {
            let diff = change.get("diff").unwrap().as_document().unwrap();
            let updated = diff.get("u").unwrap().as_document().unwrap();
            assert_eq!(updated.get("control"), new.get("control"));
            assert!(updated.get("data").is_none_or(|data| Some(data) == new.get("data")));
        }
        assert_eq!(check_bucket(&new, options, None), None);
        document = new;
        if step % 16 == 15 {
            bucket = Bucket::reopen(document.view(), options).unwrap();
        }
    }
    (bucket, document)
}

#[test]
fn x29_large_open_buckets_are_packed_and_go_on() {
    let options = options();
    let measurements = drifting(700);
    for batch in [1, 10, 33] {
        let (mut bucket, stored) = stored_in_batches(&measurements, batch, &options);
        assert!(is_compressed(stored.view()));
        assert_eq!(measurement_count(stored.view(), &options), 700);
        let found = unpack(&stored, &options, &FieldSet::all());
        assert_eq!(found.len(), 700);
        for (found, measurement) in found.iter().zip(&measurements) {
            assert_eq!(sorted(found.view()), sorted(measurement.view()));
        }
        let plain: usize = measurements.iter().map(Doc::size_bytes).sum();
        assert!(stored.size_bytes() * 7 < plain, "{} of {plain}", stored.size_bytes());
        assert_eq!(bucket.count(), 700);
        assert_eq!(bucket.to_doc(), stored);
        let together = recompress(stored.view()).unwrap();
        assert_eq!(unpack(&together, &options, &FieldSet::all()), found);
        assert!(together.size_bytes() < stored.size_bytes());
        assert_eq!(recompress(together.view()), None, "nothing is left to be spared");
    }
}

#[test]
fn x29_packed_buckets_take_what_is_late_new_or_in_no_column() {
    let options = options();
    let at = |seconds: i64| Value::DateTime(1_700_000_040_000 + seconds * 1000);
    let even = |place: i64| doc! { "t": (at(place * 2)), "x": (place as i32) };
    let mut measurements: Vec<Doc> = (0..200).map(even).collect();
    let is_packed = |measurements: &[Doc]| is_compressed(stored_in_batches(measurements, 1, &options).1.view());
    assert!(is_packed(&measurements));
    measurements.push(doc! { "t": (at(3)), "y": "late" });
    measurements.push(doc! { "t": (at(500)), "z": { "new": [1, 2] } });
    let (_, stored) = stored_in_batches(&measurements, 1, &options);
    assert!(is_compressed(stored.view()), "it is packed again");
    let found = unpack(&stored, &options, &FieldSet::all());
    assert_eq!(found.len(), 202);
    assert_eq!(found.get(2), Some(&doc! { "t": (at(3)), "y": "late" }));
    assert_eq!(found.last(), Some(&doc! { "t": (at(500)), "z": { "new": [1, 2] } }));
    measurements.push(doc! { "t": (at(501)), "least": Value::MinKey });
    assert!(!is_packed(&measurements));
    let (_, stored) = stored_in_batches(&measurements, 1, &options);
    assert_eq!(unpack(&stored, &options, &FieldSet::all()).len(), 203);
}
