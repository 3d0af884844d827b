//! The form in which specifications are stored: version, key, name, then the options; with what the collection and the
//! plugin add.

use crate::CollectionOptions;
use crate::index::{ID_INDEX_NAME, IndexKind, is_id_key_pattern};
use crate::views::is_simple;
use pando_base::{Error, ErrorCode, Result, ensure};
use pando_doc::{Doc, DocBuilder, DocRef, Value, doc};
use std::collections::BTreeMap;

/// What new 2dsphere and text indexes have for a version.
const PLUGIN_VERSION: i32 = 3;
/// Fields that are written first, or not at all.
const PLACED: [&str; 6] = ["v", "key", "name", "ns", "_id", "dropDups"];
/// Fields of a text index that get a default.
const TEXT_FIELDS: [&str; 4] = ["weights", "default_language", "language_override", "textIndexVersion"];

/// The specification of the index on `_id` that a collection gets by itself.
pub fn default_id_index_spec(options: &CollectionOptions) -> Doc {
    let mut builder = DocBuilder::new();
    builder.append("v", 2);
    builder.document("key", |key| key.append("_id", 1));
    builder.append("name", ID_INDEX_NAME);
    builder.append_some("collation", collation_of(options));
    builder.finish()
}

/// Brings a specification that has passed [`super::validate_index_spec`] into the form that is stored.
pub fn complete_index_spec(specification: DocRef<'_>, options: &CollectionOptions) -> Result<Doc> {
    let missing = || Error::failed_to_parse("The 'key' field is a required property of an index specification");
    let key = specification.get("key").and_then(|key| key.as_document()).ok_or_else(missing)?;
    let kind = IndexKind::of_key_pattern(key).unwrap_or(IndexKind::Btree);
    let is_id = is_id_key_pattern(key);
    let mut builder = DocBuilder::with_capacity(specification.size_bytes() + 64);
    builder.append("v", specification.get("v").map_or(2, |version| version.to_i64_or_zero() as i32));
    let text = if kind == IndexKind::Text { Some(TextKey::parse(key, specification)?) } else { None };
    match &text {
        Some(text) => builder.append("key", &text.key),
        None if is_id => builder.append("key", doc! { "_id": 1 }),
        None => builder.append("key", key),
    }
    match specification.get("name") {
        Some(name) if !is_id => builder.append("name", name),
        _ => builder.append("name", ID_INDEX_NAME),
    }
    append_options(&mut builder, specification, is_id);
    append_collation(&mut builder, specification, options, kind)?;
    match (kind, text) {
        (IndexKind::Text, Some(text)) => text.append_to(&mut builder, specification),
        (IndexKind::TwoDSphere | IndexKind::TwoDSphereBucket, _) if !specification.contains("2dsphereIndexVersion") => {
            builder.append("2dsphereIndexVersion", PLUGIN_VERSION);
        }
        _ => {}
    }
    Ok(builder.finish())
}

fn append_options(builder: &mut DocBuilder, specification: DocRef<'_>, is_id: bool) {
    for element in specification.elements() {
        let is = |name: &str| element.name == name;
        if PLACED.iter().chain(&TEXT_FIELDS).any(|placed| is(placed)) || is("collation") {
            continue;
        }
        if is("unique") || is("hidden") || is("prepareUnique") {
            // A flag that is not set is not there; the index on `_id` is unique without saying so.
            if element.value.is_true() && !is_id {
                builder.append(element.name, true);
            }
            continue;
        }
        builder.append_element(element);
    }
}

/// An index without a collation has the collection's; the one that compares bytes is never written. Kinds that have none cannot
/// have the collection's either: for them it has to be said that bytes are compared.
fn append_collation(
    builder: &mut DocBuilder,
    specification: DocRef<'_>,
    options: &CollectionOptions,
    kind: IndexKind,
) -> Result<()> {
    match specification.get("collation").and_then(|collation| collation.as_document()) {
        Some(collation) if is_simple(collation) => {}
        Some(collation) => builder.append("collation", collation),
        None => {
            let inherited = collation_of(options);
            ensure!(
                inherited.is_none() || !matches!(kind, IndexKind::Text | IndexKind::TwoD),
                ErrorCode::CannotCreateIndex,
                "Index type '{}' does not support collation: {}",
                if kind == IndexKind::Text { "text" } else { "2d" },
                inherited.cloned().unwrap_or_default()
            );
            builder.append_some("collation", inherited);
        }
    }
    Ok(())
}

fn collation_of(options: &CollectionOptions) -> Option<&Doc> {
    options.collation.as_ref().filter(|collation| !is_simple(collation.view()))
}

/// The key of a text index: the text fields become weights, and one pair of fields stands for them all.
struct TextKey {
    key: Doc,
    weights: BTreeMap<Vec<u8>, f64>,
}

impl TextKey {
    fn parse(key: DocRef<'_>, specification: DocRef<'_>) -> Result<TextKey> {
        let (mut builder, mut weights, mut placed) = (DocBuilder::new(), BTreeMap::new(), false);
        for element in key.elements() {
            let is_text = matches!(element.value, Value::String(plugin) if plugin == "text");
            if element.name == "_ftsx" {
                continue;
            }
            if !is_text {
                ensure!(
                    element.name != "_fts",
                    ErrorCode::CannotCreateIndex,
                    "the field '_fts' of an index has to be 'text'"
                );
                builder.append_element(element);
                continue;
            }
            let has_dollar = element.name.split(|byte| *byte == b'.').any(|part| part.starts_with(b"$"));
            ensure!(
                !has_dollar || element.name == "$**",
                ErrorCode::CannotCreateIndex,
                "Index key contains an illegal field name: field name starts with '$': {}",
                element.name
            );
            if element.name != "_fts" {
                weights.insert(element.name.to_vec(), 1.0);
            }
            if !std::mem::replace(&mut placed, true) {
                builder.append("_fts", "text");
                builder.append("_ftsx", 1);
            }
        }
        match specification.get("weights") {
            Some(Value::Document(given)) => {
                for element in given.elements() {
                    let weight = element.value.to_double().unwrap_or(0.0);
                    ensure!(
                        weight > 0.0 && weight < 1_000_000_000.0,
                        ErrorCode::CannotCreateIndex,
                        "text index weight must be in the exclusive interval (0,1000000000) but found: {weight}"
                    );
                    weights.insert(element.name.to_vec(), weight);
                }
            }
            Some(Value::String(field)) => {
                weights.insert(field.to_vec(), 1.0);
            }
            _ => {}
        }
        ensure!(!weights.is_empty(), ErrorCode::CannotCreateIndex, "a text index needs a field to index");
        Ok(TextKey { key: builder.finish(), weights })
    }

    fn append_to(&self, builder: &mut DocBuilder, specification: DocRef<'_>) {
        builder.document("weights", |weights| {
            for (field, weight) in &self.weights {
                match Value::Double(*weight).to_i64_exact().and_then(|weight| i32::try_from(weight).ok()) {
                    Some(whole) => weights.append(field, whole),
                    None => weights.append(field, *weight),
                }
            }
        });
        match specification.get("default_language") {
            Some(language) => builder.append("default_language", language),
            None => builder.append("default_language", "english"),
        }
        match specification.get("language_override") {
            Some(field) => builder.append("language_override", field),
            None => builder.append("language_override", "language"),
        }
        let version = specification.get("textIndexVersion").map_or(PLUGIN_VERSION, |v| v.to_i64_or_zero() as i32);
        builder.append("textIndexVersion", version);
    }
}
