//! Groups by the meta value that need less than all measurements.
//!
//! Of a group that asks for least and greatest values only, the extremes of a bucket are as good as its measurements: the
//! unpacking gives one measurement of least and one of greatest values, where the bucket tells them. Of a group that asks for the last
//! measurement of each source only, one bucket of the source is as good as all.

use super::Unpacking;
use crate::pipeline::stages::replace_root;
use crate::pipeline::{Pushdown, SharedStage};
use crate::request::{SortKey, SortPart, SortPattern};
use pando_doc::{Doc, DocRef, FieldPath, Value, doc};
use pando_expr::ParseContext;
use pando_timeseries::{TimeseriesOptions, index_keys};

/// The path of a field, if the expression is that and nothing else.
fn field(value: Value<'_>) -> Option<String> {
    let path = value.as_str()?.strip_prefix('$')?;
    (!path.is_empty() && !path.starts_with('$')).then(|| path.to_owned())
}

/// The accumulators of a group: its operators and what they are given.
fn accumulators(group: &Doc) -> Option<Vec<(String, Value<'_>)>> {
    group
        .elements()
        .filter(|element| element.name != "_id")
        .map(|element| {
            let operator = element.value.as_document()?.first()?;
            Some((operator.name.to_string(), operator.value))
        })
        .collect()
}

/// The path in the meta value that a group is by.
fn group_path(group: &Doc, options: &TimeseriesOptions) -> Option<String> {
    let path = field(group.get("_id")?)?;
    index_keys::meta_path(&path, options).map(|_| path)
}

/// The fields whose extremes are all that a group looks at, if that is so.
pub(super) fn extremes(unpacking: &Unpacking, behind: &[SharedStage]) -> Option<Vec<String>> {
    let options = &unpacking.options;
    let group = behind.first()?.grouping()?;
    group_path(group, options)?;
    let mut fields = Vec::new();
    for (operator, input) in accumulators(group)? {
        let path = field(input).filter(|_| operator == "$min" || operator == "$max")?;
        if index_keys::meta_path(&path, options).is_some() {
            continue;
        }
        let name = path.split('.').next()?.to_owned();
        // The least time of a bucket is rounded.
        if name == options.time_field {
            return None;
        }
        fields.push(name);
    }
    Some(fields)
}

/// The stages that leave one bucket of each source, if the last measurement of each is all that is asked for.
pub(super) fn last_point(unpacking: &Unpacking, behind: &[SharedStage]) -> Option<Vec<SharedStage>> {
    let options = &unpacking.options;
    let (sort, group) = (behind.first()?, behind.get(1)?);
    let Pushdown::Sort(pattern) = sort.pushdown() else { return None };
    let specification = group.grouping()?;
    let path = group_path(specification, options)?;
    let (time, sources) = pattern.parts().split_last()?;
    let name = |part: &SortPart| match &part.key {
        SortKey::Path(path) => Some(path.text().to_string()),
        SortKey::Meta(_) => None,
    };
    let is_by_source = sources.iter().all(|part| name(part).is_some_and(|name| name == path));
    if sort.is_limited() || !is_by_source || name(time)? != options.time_field {
        return None;
    }
    // The last in time comes first, or last.
    let wanted = if time.descending { "$first" } else { "$last" };
    if !accumulators(specification)?.iter().all(|(operator, _)| operator == wanted) {
        return None;
    }
    let meta = index_keys::meta_path(&path, options)?;
    // An index that has the order which was asked for gives this one too, backwards if that is the earliest first.
    let is_meta_descending = sources.first().is_some_and(|part| part.descending) == time.descending;
    let part = |path: String, descending: bool| {
        Some(SortPart { key: SortKey::Path(FieldPath::lenient(path).ok()?), descending })
    };
    let latest = SortPattern::from_parts(vec![
        part(meta.clone(), is_meta_descending)?,
        part(format!("control.max.{}", options.time_field), true)?,
        part(format!("control.min.{}", options.time_field), true)?,
    ]);
    let sort = sort.with_pattern(latest)?;
    let group = group.regrouped(&doc! { "_id": (format!("${meta}")), "bucket": { "$first": "$$ROOT" } })?;
    let unwrap = replace_root::parse_with(Value::String("$bucket".into()), &ParseContext::default()).ok()?;
    Some(vec![sort, group, unwrap])
}

/// Measurements of the least and the greatest values of a bucket; none if it does not tell them: an array has extremes place by place.
pub(super) fn extreme_measurements(bucket: &Doc, options: &TimeseriesOptions, fields: &[String]) -> Option<[Doc; 2]> {
    let control = bucket.get("control")?.as_document()?;
    let of = |end: &str| -> Option<Doc> {
        let extremes = control.get(end)?.as_document()?;
        let mut out = pando_doc::DocBuilder::new();
        if let (Some(meta), Some(value)) = (&options.meta_field, bucket.get("meta")) {
            out.append(meta, value);
        }
        for field in fields {
            let Some(value) = extremes.get(field) else { continue };
            if has_array(value) {
                return None;
            }
            out.append(field, value);
        }
        Some(out.finish())
    };
    Some([of("min")?, of("max")?])
}

fn has_array(value: Value<'_>) -> bool {
    match value {
        Value::Array(_) => true,
        Value::Document(doc) => doc_has_array(doc),
        _ => false,
    }
}

fn doc_has_array(doc: DocRef<'_>) -> bool {
    doc.elements().any(|element| has_array(element.value))
}
