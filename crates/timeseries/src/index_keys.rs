//! Indexes on measurements as indexes on buckets, and back.
//!
//! The meta value stands in the bucket and is indexed there. A field of measurements is indexed by its extremes: ascending as
//! `control.min` then `control.max`, descending the other way round.

use crate::TimeseriesOptions;
use pando_base::{Error, ErrorCode, Result, bail};
use pando_doc::{Doc, DocBuilder, DocRef, Element, Value, compare};

/// The key on buckets for a key on measurements.
pub fn buckets_key(key: DocRef<'_>, options: &TimeseriesOptions) -> Result<Doc> {
    if key.is_empty() {
        bail!(ErrorCode::BadValue, "Empty object is not a valid index spec");
    }
    let mut out = DocBuilder::new();
    for element in key.elements() {
        let name = element.name.to_string();
        if name == options.time_field {
            require_number(key, element, "Indexes on the time field must be ascending or descending (numbers only)")?;
            append_extremes(&name, element.value, &mut out);
        } else if let Some(meta) = meta_path(&name, options) {
            out.append(meta, element.value);
        } else if element.value.as_str() == Some("2dsphere") {
            out.append(format!("data.{name}"), "2dsphere_bucket");
        } else {
            let rule = "Indexes on measurement fields must be ascending or descending (numbers only), or '2dsphere'";
            require_number(key, element, rule)?;
            append_extremes(&name, element.value, &mut out);
        }
    }
    Ok(out.finish())
}

fn require_number(key: DocRef<'_>, element: Element<'_>, rule: &str) -> Result<()> {
    if element.value.is_number() {
        return Ok(());
    }
    let shown = Doc::from_iter([(element.name, element.value)]);
    let field = shown.to_string();
    let field = field.trim_start_matches("{ ").trim_end_matches(" }");
    Err(Error::bad_value(format!("Invalid index spec for time-series collection: {key}. {rule}: {field}")))
}

fn append_extremes(name: &str, value: Value<'_>, out: &mut DocBuilder) {
    let is_descending = is_negative(value);
    let order = if is_descending { ["max", "min"] } else { ["min", "max"] };
    for extreme in order {
        out.append(format!("control.{extreme}.{name}"), value);
    }
}

fn is_negative(value: Value<'_>) -> bool {
    value.is_number() && compare(value, Value::Int32(0)).is_lt()
}

/// The path in a bucket of a path in the meta value.
pub fn meta_path(path: &str, options: &TimeseriesOptions) -> Option<String> {
    let rest = path.strip_prefix(options.meta_field.as_deref()?)?;
    (rest.is_empty() || rest.starts_with('.')).then(|| format!("meta{rest}"))
}

/// The key on measurements for a key on buckets; none if it is not one of ours.
pub fn measurements_key(key: DocRef<'_>, options: &TimeseriesOptions) -> Option<Doc> {
    let mut out = DocBuilder::new();
    let mut elements = key.elements();
    while let Some(element) = elements.next() {
        let name = element.name.to_string();
        let control = |name: &str| {
            let rest = name.strip_prefix("control.")?;
            let (extreme, path) = rest.split_once('.')?;
            matches!(extreme, "min" | "max").then(|| (extreme.to_owned(), path.to_owned()))
        };
        if let Some((extreme, path)) = control(&name) {
            if path == options.time_field {
                // Of the pair one is enough.
                match (extreme.as_str(), element.value.is_number()) {
                    ("min", false) => return None,
                    ("min", true) => out.append(path, element.value),
                    _ => {}
                }
                continue;
            }
            let next = elements.next()?;
            let (other, same) = control(&next.name.to_string())?;
            let is_descending = is_negative(element.value);
            let wanted = if is_descending { ("max", "min") } else { ("min", "max") };
            let is_pair = (extreme.as_str(), other.as_str()) == wanted && same == path;
            if !is_pair || compare(element.value, next.value).is_ne() {
                return None;
            }
            out.append(path, next.value);
        } else if let (Some(meta), Some(rest)) = (&options.meta_field, name.strip_prefix("meta")) {
            if !rest.is_empty() && !rest.starts_with('.') {
                return None;
            }
            out.append(format!("{meta}{rest}"), element.value);
        } else if let (Some(path), Some("2dsphere_bucket")) = (name.strip_prefix("data."), element.value.as_str()) {
            out.append(path, "2dsphere");
        } else {
            return None;
        }
    }
    Some(out.finish())
}

/// True if the key on buckets is of times and meta values only, so that it tells the key on measurements.
pub fn is_plain(buckets_key: DocRef<'_>, options: &TimeseriesOptions) -> bool {
    buckets_key.elements().all(|element| {
        let name = element.name.to_string();
        let is_time = ["control.min.", "control.max."]
            .iter()
            .any(|prefix| name.strip_prefix(prefix) == Some(options.time_field.as_str()));
        let is_meta = name == "meta" || name.starts_with("meta.");
        is_time || (options.meta_field.is_some() && is_meta)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn x29_keys_go_both_ways() {
        let options = doc! { "timeField": "t", "metaField": "m" };
        let options = TimeseriesOptions::parse(options.view()).unwrap();
        for (measurements, buckets) in [
            (doc! { "t": 1 }, doc! { "control.min.t": 1, "control.max.t": 1 }),
            (doc! { "m": 1, "t": -1 }, doc! { "meta": 1, "control.max.t": -1, "control.min.t": -1 }),
            (doc! { "m.a.b": "hashed" }, doc! { "meta.a.b": "hashed" }),
            (doc! { "x.y": -1 }, doc! { "control.max.x.y": -1, "control.min.x.y": -1 }),
            (doc! { "place": "2dsphere" }, doc! { "data.place": "2dsphere_bucket" }),
        ] {
            assert_eq!(buckets_key(measurements.view(), &options).unwrap(), buckets);
            assert_eq!(measurements_key(buckets.view(), &options), Some(measurements));
        }
        for bad in [doc! {}, doc! { "t": "hashed" }, doc! { "x": "text" }] {
            assert!(buckets_key(bad.view(), &options).is_err(), "{bad:?}");
        }
        for foreign in [doc! { "_id": 1 }, doc! { "control.min.x": 1 }, doc! { "data.x": 1 }] {
            assert_eq!(measurements_key(foreign.view(), &options), None);
        }
        assert!(is_plain(doc! { "meta.a": 1, "control.min.t": 1 }.view(), &options));
        assert!(!is_plain(doc! { "control.min.x": 1 }.view(), &options));
    }
}
