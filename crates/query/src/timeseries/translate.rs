//! Filters and updates that clients write about measurements, as they are for buckets: the meta field has another name there.

use pando_base::{ErrorCode, Result, bail, ensure};
use pando_doc::{ArrayBuilder, Doc, DocBuilder, DocRef, Element, OwnedValue, Value};

fn is_meta(field: &str, meta: &str) -> bool {
    field.split('.').next() == Some(meta)
}

fn renamed(field: &str) -> String {
    match field.split_once('.') {
        Some((_, rest)) => format!("meta.{rest}"),
        None => "meta".to_owned(),
    }
}

fn require_query_on_meta(is_on_meta: bool, meta: &str) -> Result<()> {
    ensure!(
        is_on_meta,
        ErrorCode::InvalidOptions,
        "Cannot perform an update or delete on a time-series collection when querying on a field that is not the \
         metaField '{meta}'"
    );
    Ok(())
}

/// A filter on the meta value alone, as a filter on buckets.
pub(super) fn query(filter: DocRef<'_>, meta: &str) -> Result<Doc> {
    let mut out = DocBuilder::new();
    for element in filter.elements() {
        query_element(element, meta, true, false, &mut out)?;
    }
    Ok(out.finish())
}

fn query_element(
    element: Element<'_>,
    meta: &str,
    is_top_level: bool,
    parent_is_array: bool,
    out: &mut DocBuilder,
) -> Result<()> {
    let mut name = element.name.to_string();
    for operator in ["$expr", "$where"] {
        ensure!(
            name != operator,
            ErrorCode::InvalidOptions,
            "Cannot use {operator} when performing an update or delete on a time-series collection"
        );
    }
    if name == "$jsonSchema" {
        out.append("$jsonSchema", schema(element.value, meta)?);
        return Ok(());
    }
    if is_top_level && !name.starts_with('$') {
        require_query_on_meta(is_meta(&name, meta), meta)?;
        name = renamed(&name);
    }
    match element.value {
        Value::Document(nested) => {
            let mut below = DocBuilder::new();
            for element in nested.elements() {
                query_element(element, meta, parent_is_array, false, &mut below)?;
            }
            out.append(name, below.finish());
        }
        Value::Array(values) => {
            let mut below = DocBuilder::new();
            for element in values.as_doc().elements() {
                query_element(element, meta, false, true, &mut below)?;
            }
            let below = below.finish();
            out.append(name, Value::Array(pando_doc::ArrayRef::from_doc(below.view())));
        }
        scalar => out.append(name, scalar),
    }
    Ok(())
}

fn schema(value: Value<'_>, meta: &str) -> Result<Doc> {
    let Value::Document(schema) = value else {
        bail!(ErrorCode::TypeMismatch, "$jsonSchema must be an object");
    };
    let mut out = DocBuilder::new();
    for element in schema.elements() {
        match (&**element.name, element.value) {
            (b"required", Value::Array(names)) => {
                let mut array = ArrayBuilder::new();
                for name in names.values() {
                    require_query_on_meta(name.as_str() == Some(meta), meta)?;
                    array.push("meta");
                }
                out.append("required", array.finish());
            }
            (b"properties", Value::Document(properties)) => {
                let mut below = DocBuilder::new();
                for property in properties.elements() {
                    require_query_on_meta(property.name == meta, meta)?;
                    below.append("meta", property.value);
                }
                out.append("properties", below.finish());
            }
            _ => out.append_element(element),
        }
    }
    Ok(out.finish())
}

/// An update of the meta value, as an update of buckets.
pub(super) fn update(update: &OwnedValue, meta: &str) -> Result<Doc> {
    let OwnedValue::Document(update) = update else {
        bail!(
            ErrorCode::InvalidOptions,
            "Cannot perform an update on a time-series collection using a pipeline update"
        );
    };
    let is_modifier = update.view().first().is_some_and(|first| first.name.starts_with(b"$"));
    ensure!(
        is_modifier,
        ErrorCode::InvalidOptions,
        "Cannot perform an update on a time-series collection using a replacement document"
    );
    let require = |is_on_meta: bool| -> Result<()> {
        ensure!(
            is_on_meta,
            ErrorCode::InvalidOptions,
            "Cannot perform an update on a time-series collection which updates a field that is not the metaField '{meta}'"
        );
        Ok(())
    };
    let mut out = DocBuilder::new();
    for operator in update.elements() {
        let Value::Document(fields) = operator.value else {
            out.append_element(operator);
            continue;
        };
        let mut below = DocBuilder::new();
        for field in fields.elements() {
            let name = field.name.to_string();
            require(is_meta(&name, meta))?;
            match field.value {
                Value::String(to) if operator.name == "$rename" => {
                    require(is_meta(&to.to_string(), meta))?;
                    below.append(renamed(&name), renamed(&to.to_string()).as_str());
                }
                _ if operator.name == "$rename" => require(false)?,
                value => below.append(renamed(&name), value),
            }
        }
        out.append(operator.name, below.finish());
    }
    Ok(out.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn x29_filters_on_the_meta_value_are_renamed() {
        let filter = doc! { "$or": [{ "m.a": 1 }, { "m": { "m": 2 } }], "m.b": { "$gt": 3 } };
        let renamed = doc! { "$or": [{ "meta.a": 1 }, { "meta": { "m": 2 } }], "meta.b": { "$gt": 3 } };
        assert_eq!(query(filter.view(), "m").unwrap(), renamed);
        for bad in [doc! { "x": 1 }, doc! { "$and": [{ "x": 1 }] }, doc! { "$expr": true }] {
            assert_eq!(query(bad.view(), "m").unwrap_err().code(), ErrorCode::InvalidOptions, "{bad:?}");
        }
    }

    #[test]
    fn x29_updates_of_the_meta_value_are_renamed() {
        let given = OwnedValue::Document(doc! { "$set": { "m.a": 1 }, "$rename": { "m.b": "m.c" } });
        let renamed = doc! { "$set": { "meta.a": 1 }, "$rename": { "meta.b": "meta.c" } };
        assert_eq!(update(&given, "m").unwrap(), renamed);
        for bad in [doc! { "$set": { "x": 1 } }, doc! { "m": 1 }, doc! { "$rename": { "m.a": "x" } }] {
            assert!(update(&OwnedValue::Document(bad), "m").is_err());
        }
    }
}
