//! Specifications by themselves: fields, types, and options that exclude each other.

use super::expiry::{KEEP_AS_GIVEN, SKIP_CHECK};
use super::{EXPIRE_AFTER_SECONDS_INACTIVE, validate_key_pattern};
use crate::engine_options::check_engine_options;
use crate::fail_points::SKIP_FIELD_NAMES;
use crate::index::{ID_INDEX_NAME, IndexKind, is_id_key_pattern};
use pando_base::{ErrorCode, Result, bail, ensure};
use pando_doc::{Doc, DocBuilder, DocRef, Element, JsonFormat, Value, ValueType, doc_to_json};

/// The version of new indexes.
pub const INDEX_VERSION: i32 = 2;

/// Fields of a specification.
const FIELDS: [&str; 26] = [
    "2dsphereIndexVersion",
    "background",
    "bits",
    "bucketSize",
    "clustered",
    "coarsestIndexedLevel",
    "collation",
    "default_language",
    "dropDups",
    "expireAfterSeconds",
    "finestIndexedLevel",
    "hidden",
    "key",
    "language_override",
    "max",
    "min",
    "name",
    "ns",
    "originalSpec",
    "partialFilterExpression",
    "prepareUnique",
    "sparse",
    "storageEngine",
    "textIndexVersion",
    "unique",
    "v",
];
/// More of them, for the plugins that have documents.
const DOCUMENT_FIELDS: [&str; 3] = ["weights", "wildcardProjection", "_id"];
/// Fields of the index on `_id`.
const ID_FIELDS: [&str; 6] = ["collation", "name", "v", "key", "ns", "_id"];

/// Checks a specification and gives it back with its version and without its namespace. It must have a key and a name.
pub fn validate_index_spec(specification: DocRef<'_>) -> Result<Doc> {
    for element in specification.elements() {
        let known = FIELDS.iter().chain(&DOCUMENT_FIELDS).any(|field| element.name == *field);
        ensure!(
            known || SKIP_FIELD_NAMES.should_fail(),
            ErrorCode::InvalidIndexSpecificationOption,
            "The field '{}' is not valid for an index specification. Specification: {}",
            element.name,
            shown(specification)
        );
    }
    for element in specification.elements() {
        validate_field(specification, element)?;
    }
    for field in ["key", "name"] {
        ensure!(
            specification.contains(field),
            ErrorCode::FailedToParse,
            "The '{field}' field is a required property of an index specification"
        );
    }
    validate_id_name(specification)?;
    validate_together(specification)?;
    Ok(with_version(specification))
}

/// The specification without fields that no specification has.
pub fn known_fields_of_index(specification: DocRef<'_>) -> Doc {
    let mut builder = DocBuilder::with_capacity(specification.size_bytes());
    for element in specification.raw_elements() {
        if FIELDS.iter().chain(&DOCUMENT_FIELDS).any(|field| element.name == *field) {
            builder.append_raw(element);
        }
    }
    builder.finish()
}

fn validate_field(specification: DocRef<'_>, element: Element<'_>) -> Result<()> {
    let (name, value): (&[u8], _) = (element.name, element.value);
    match name {
        b"key" => match value {
            Value::Document(key) => validate_key_pattern(key),
            _ => wrong_type(element, "an object"),
        },
        b"name" => match value.as_str() {
            Some(name) => validate_name(name),
            None => wrong_type(element, "a string"),
        },
        b"hidden" if value.as_bool().is_none() => wrong_type(element, "a bool"),
        b"v" => validate_version(specification, element),
        b"collation" | b"originalSpec" => match value {
            Value::Document(document) => {
                let name = element.name;
                ensure!(!document.is_empty(), ErrorCode::BadValue, "The field '{name}' cannot be an empty object.");
                Ok(())
            }
            _ => wrong_type(element, "an object"),
        },
        b"partialFilterExpression" | b"storageEngine" if value.as_document().is_none() => {
            wrong_type(element, "an object")
        }
        b"storageEngine" => validate_engine_options(value.as_document().unwrap_or(EMPTY)),
        b"wildcardProjection" => validate_projection(specification, element),
        b"weights" => match value {
            Value::Document(_) => Ok(()),
            Value::String(all) if all == "$**" => Ok(()),
            Value::String(_) | Value::Array(_) => {
                bail!(ErrorCode::CannotCreateIndex, "text index option 'weights' must be an object")
            }
            _ => wrong_type(element, "an object"),
        },
        b"background" | b"unique" | b"sparse" | b"dropDups" | b"prepareUnique" | b"clustered"
            if !value.is_number() && value.as_bool().is_none() =>
        {
            bail!(
                ErrorCode::TypeMismatch,
                "The field '{} has value {}, which is not convertible to bool",
                element.name,
                pando_doc::value_to_json(value, JsonFormat::Relaxed)
            )
        }
        b"default_language" | b"language_override" if value.value_type() != ValueType::String => {
            wrong_type(element, "a string")
        }
        b"2dsphereIndexVersion"
        | b"textIndexVersion"
        | b"bits"
        | b"min"
        | b"max"
        | b"coarsestIndexedLevel"
        | b"finestIndexedLevel"
        | b"bucketSize"
            if !value.is_number() =>
        {
            wrong_type(element, "a number")
        }
        b"textIndexVersion" => {
            let version = value.to_i64_or_zero();
            ensure!((1..=3).contains(&version), ErrorCode::CannotCreateIndex, "bad textIndexVersion: {version}");
            Ok(())
        }
        _ => Ok(()),
    }
}

fn wrong_type(element: Element<'_>, wanted: &str) -> Result<()> {
    let (name, found) = (element.name, element.value.value_type().name());
    bail!(ErrorCode::TypeMismatch, "The field '{name}' must be {wanted}, but got {found}")
}

fn validate_name(name: &str) -> Result<()> {
    ensure!(!name.contains('\0'), ErrorCode::CannotCreateIndex, "index name cannot contain NUL bytes");
    ensure!(!name.is_empty(), ErrorCode::CannotCreateIndex, "index name cannot be empty");
    ensure!(name != "*", ErrorCode::BadValue, "The index name '*' is not valid.");
    Ok(())
}

/// The name of the index on `_id` is for no other.
fn validate_id_name(specification: DocRef<'_>) -> Result<()> {
    let (name, key) = (specification.get("name"), specification.get("key"));
    let (Some(Value::String(name)), Some(Value::Document(key))) = (name, key) else { return Ok(()) };
    ensure!(
        name != ID_INDEX_NAME || is_id_key_pattern(key),
        ErrorCode::BadValue,
        "The index name '{ID_INDEX_NAME}' is reserved for the _id index, which must have key pattern {{_id: 1}}, found key: {key}"
    );
    Ok(())
}

fn validate_version(specification: DocRef<'_>, element: Element<'_>) -> Result<()> {
    if !element.value.is_number() {
        return wrong_type(element, "a number");
    }
    let version = element.value.to_i64_exact().and_then(|version| i32::try_from(version).ok());
    let Some(version) = version else {
        bail!(
            ErrorCode::BadValue,
            "Index version must be representable as a 32-bit integer, but got {}",
            pando_doc::value_to_json(element.value, JsonFormat::Relaxed)
        );
    };
    ensure!(
        (1..=INDEX_VERSION).contains(&version),
        ErrorCode::CannotCreateIndex,
        "Invalid index specification {}; cannot create an index with v={version}",
        shown(specification)
    );
    Ok(())
}

fn validate_engine_options(options: DocRef<'_>) -> Result<()> {
    ensure!(
        !options.is_empty(),
        ErrorCode::CannotCreateIndex,
        "Empty \"storageEngine\" options are invalid. Please remove the field or include valid options."
    );
    check_engine_options(options)
}

fn validate_projection(specification: DocRef<'_>, element: Element<'_>) -> Result<()> {
    let key = key_of(specification);
    ensure!(
        IndexKind::of_key_pattern(key) == Some(IndexKind::Wildcard),
        ErrorCode::BadValue,
        "The field 'wildcardProjection' is only allowed in 'wildcard' indexes"
    );
    let Value::Document(projection) = element.value else { return wrong_type(element, "a non-empty object") };
    ensure!(
        key.contains("$**"),
        ErrorCode::FailedToParse,
        "The field 'wildcardProjection' is only allowed when 'key' is {{\"$**\": ±1}}"
    );
    ensure!(
        !projection.is_empty(),
        ErrorCode::FailedToParse,
        "The 'wildcardProjection' field can't be an empty object"
    );
    // An index on everything has nothing beside the projection that this could meet.
    if key.field_count() > 1 { super::wildcard_projection::validate(key, projection) } else { Ok(()) }
}

fn key_of(specification: DocRef<'_>) -> DocRef<'_> {
    specification.get("key").and_then(|key| key.as_document()).unwrap_or(EMPTY)
}

const EMPTY: DocRef<'static> = DocRef::trusted(&[5, 0, 0, 0, 0]);

fn validate_together(specification: DocRef<'_>) -> Result<()> {
    let is_true = |field: &str| specification.get(field).is_some_and(|value| value.is_true());
    let code = ErrorCode::CannotCreateIndex;
    let key = key_of(specification);
    let kind = IndexKind::of_key_pattern(key).unwrap_or(IndexKind::Btree);
    if let Some(clustered) = specification.get("clustered") {
        ensure!(clustered.is_true(), ErrorCode::location(6492800), "Value 'false' for field 'clustered' is invalid");
        ensure!(is_true("unique"), code, "The 'unique' field is required when 'clustered' is specified");
    }
    let version = specification.get("v").and_then(|version| version.to_i64_exact()).unwrap_or(2);
    ensure!(
        !specification.contains("collation") || version >= 2,
        code,
        "Invalid index specification {}; cannot create an index with the 'collation' option and v={version}",
        shown(specification)
    );
    ensure!(
        kind == IndexKind::Text || !specification.contains("weights"),
        code,
        "Invalid index specification {}; the field 'weights' can only be specified with text indexes",
        shown(specification)
    );
    ensure!(
        !is_true("unique") || !is_true("prepareUnique"),
        code,
        "Invalid index specification {}; cannot create an index with the 'unique' option and the 'prepareUnique' option",
        shown(specification)
    );
    ensure!(
        !specification.contains("partialFilterExpression") || !is_true("sparse"),
        code,
        "cannot mix \"partialFilterExpression\" and \"sparse\" options"
    );
    let is_whole_compound = kind == IndexKind::Wildcard && key.contains("$**") && key.field_count() > 1;
    ensure!(
        !is_whole_compound || specification.contains("wildcardProjection"),
        code,
        "Compound wildcard indexes on all fields must also specify 'wildcardProjection' option"
    );
    validate_plugin_options(specification, kind, version)?;
    validate_expiry(specification, kind)
}

fn validate_plugin_options(specification: DocRef<'_>, kind: IndexKind, version: i64) -> Result<()> {
    let is_true = |field: &str| specification.get(field).is_some_and(|value| value.is_true());
    let plugin = kind.plugin_name();
    let refused: &[&str] = match kind {
        IndexKind::Wildcard => &["sparse", "unique", "prepareUnique"],
        IndexKind::Hashed => &["unique", "prepareUnique"],
        _ => &[],
    };
    for option in refused {
        let reason = match kind {
            IndexKind::Hashed => {
                "Currently hashed indexes cannot guarantee uniqueness. Use a regular index.".to_owned()
            }
            _ => format!("Index type '{plugin}' does not support the '{option}' option"),
        };
        let code = match (kind, *option) {
            (IndexKind::Hashed, "unique") => ErrorCode::location(16764),
            _ => ErrorCode::CannotCreateIndex,
        };
        ensure!(!is_true(option), code, "{reason}");
    }
    ensure!(
        kind != IndexKind::Wildcard || version >= 2,
        ErrorCode::CannotCreateIndex,
        "Index type '{plugin}' is not allowed with index version v: {version}"
    );
    let has_collation = specification.get("collation").and_then(|collation| collation.as_document());
    let collates = matches!(kind, IndexKind::Btree | IndexKind::TwoDSphere | IndexKind::Hashed | IndexKind::Wildcard);
    ensure!(
        collates || has_collation.is_none_or(crate::views::is_simple),
        ErrorCode::CannotCreateIndex,
        "Index type '{plugin}' does not support collation"
    );
    Ok(())
}

fn validate_expiry(specification: DocRef<'_>, kind: IndexKind) -> Result<()> {
    let Some(seconds) = specification.get("expireAfterSeconds") else { return Ok(()) };
    let code = ErrorCode::CannotCreateIndex;
    ensure!(
        seconds.is_number(),
        code,
        "TTL index 'expireAfterSeconds' option must be numeric, but received a type of '{}'",
        seconds.value_type().name()
    );
    // The stored form of a text index has two fields in its key, whatever it is about.
    let is_stored_text = kind == IndexKind::Text && key_of(specification).contains("_fts");
    let is_single = match specification.get("weights").filter(|_| is_stored_text) {
        Some(Value::Document(weights)) => weights.field_count() == 1 && key_of(specification).field_count() == 2,
        _ => key_of(specification).field_count() == 1,
    };
    ensure!(
        is_single && kind != IndexKind::Wildcard,
        code,
        "TTL indexes are single-field indexes, compound indexes do not support TTL. Index spec: {}",
        shown(specification)
    );
    if SKIP_CHECK.should_fail() {
        return Ok(());
    }
    ensure!(
        seconds.to_double().is_some_and(|seconds| seconds.is_nan()) || seconds.to_i64_or_zero() >= 0,
        code,
        "TTL index 'expireAfterSeconds' option cannot be less than 0. Index spec: {}",
        shown(specification)
    );
    ensure!(
        seconds.to_i64_or_zero() <= i64::from(i32::MAX),
        code,
        "TTL index 'expireAfterSeconds' option must be within an acceptable range, try a different number than {}. Index \
         spec: {}",
        seconds.to_i64_or_zero(),
        shown(specification)
    );
    Ok(())
}

/// Checks the specification of an index on `_id`, which has passed [`validate_index_spec`].
pub fn validate_id_index_spec(specification: DocRef<'_>) -> Result<()> {
    for element in specification.elements() {
        ensure!(element.name != "hidden", ErrorCode::BadValue, "can't hide _id index");
        ensure!(
            ID_FIELDS.iter().any(|field| element.name == *field),
            ErrorCode::InvalidIndexSpecificationOption,
            "The field '{}' is not valid for an _id index specification. Specification: {}",
            element.name,
            shown(specification)
        );
    }
    let key = key_of(specification);
    ensure!(
        is_id_key_pattern(key),
        ErrorCode::BadValue,
        "The field 'key' for an _id index must be {{_id: 1}}, but got {}",
        shown(key)
    );
    Ok(())
}

/// With a version, without a namespace, and with an expiry that can be used.
fn with_version(specification: DocRef<'_>) -> Doc {
    let mut builder = DocBuilder::with_capacity(specification.size_bytes() + 8);
    for element in specification.elements() {
        let name: &[u8] = element.name;
        match name {
            b"ns" => {}
            b"v" => builder.append("v", element.value.to_i64_or_zero() as i32),
            b"expireAfterSeconds"
                if element.value.to_double().is_none_or(f64::is_nan) && !KEEP_AS_GIVEN.should_fail() =>
            {
                builder.append("expireAfterSeconds", EXPIRE_AFTER_SECONDS_INACTIVE);
            }
            _ => builder.append_element(element),
        }
    }
    if !specification.contains("v") {
        builder.append("v", INDEX_VERSION);
    }
    builder.finish()
}

fn shown(document: DocRef<'_>) -> String {
    doc_to_json(document, JsonFormat::Relaxed)
}
