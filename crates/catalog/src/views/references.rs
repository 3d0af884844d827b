//! Which collections and views a pipeline refers to.

use pando_doc::{ArrayRef, DocRef, Value};

/// The names of a pipeline's other collections, in the order in which they stand there.
pub fn referenced_collections(pipeline: ArrayRef<'_>) -> Vec<String> {
    let mut found = Vec::new();
    collect(pipeline, &mut found);
    found
}

fn collect(pipeline: ArrayRef<'_>, found: &mut Vec<String>) {
    for stage in pipeline.values().filter_map(|stage| stage.as_document()) {
        let Some(stage) = stage.first() else { continue };
        match (stage.name, stage.value) {
            (name, Value::Document(body)) if name == "$lookup" || name == "$graphLookup" => {
                push(body.get("from"), found);
                nested(body, found);
            }
            (name, Value::Document(body)) if name == "$unionWith" => {
                push(body.get("coll"), found);
                nested(body, found);
            }
            (name, collection) if name == "$unionWith" => push(Some(collection), found),
            (name, Value::Document(facets)) if name == "$facet" => {
                facets.elements().filter_map(|facet| facet.value.as_array()).for_each(|facet| collect(facet, found));
            }
            _ => {}
        }
    }
}

fn push(name: Option<Value<'_>>, found: &mut Vec<String>) {
    found.extend(name.and_then(|name| name.as_str()).map(str::to_owned));
}

fn nested(body: DocRef<'_>, found: &mut Vec<String>) {
    if let Some(pipeline) = body.get("pipeline").and_then(|pipeline| pipeline.as_array()) {
        collect(pipeline, found);
    }
}
