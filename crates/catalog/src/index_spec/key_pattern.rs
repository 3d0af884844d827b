//! Key patterns: which fields, in which direction, with which plugin.

use crate::index::{IndexKind, is_wildcard_path};
use pando_base::{Error, ErrorCode, Result, bail, ensure};
use pando_doc::{DocRef, Element, Value};

/// The longest key pattern, in bytes.
const KEY_PATTERN_BYTES_MAX: usize = 2048;

const CODE: ErrorCode = ErrorCode::CannotCreateIndex;

/// The name that an index gets when it has none: `a_1_b_-1`.
pub fn default_index_name(key: DocRef<'_>) -> String {
    let mut name = String::new();
    for element in key.elements() {
        if !name.is_empty() {
            name.push('_');
        }
        name.push_str(&String::from_utf8_lossy(element.name));
        name.push('_');
        match element.value {
            Value::String(plugin) => name.push_str(&String::from_utf8_lossy(plugin)),
            value => match (value.to_i64_exact(), value.to_double()) {
                (Some(direction), _) => name.push_str(&direction.to_string()),
                (None, Some(direction)) => name.push_str(&direction.to_string()),
                (None, None) => {}
            },
        }
    }
    name
}

/// Checks a key pattern by the rules for new indexes.
pub fn validate_key_pattern(key: DocRef<'_>) -> Result<()> {
    ensure!(key.size_bytes() <= KEY_PATTERN_BYTES_MAX, CODE, "Index key pattern too large.");
    ensure!(!key.is_empty(), CODE, "Index keys cannot be empty.");
    let plugin = plugin_name(key);
    let kind = kind_of(plugin)?;
    if kind == IndexKind::Wildcard {
        validate_wildcard(key)?;
    }
    if kind == IndexKind::Hashed {
        validate_hashed(key)?;
    }
    if kind == IndexKind::Text {
        validate_text(key)?;
    }
    let mut seen: Vec<&[u8]> = Vec::new();
    for element in key.elements() {
        validate_value(element, plugin)?;
        validate_path(element, kind)?;
        let name: &[u8] = element.name;
        ensure!(
            !seen.contains(&name),
            ErrorCode::BadValue,
            "The field '{}' appears multiple times in the index key pattern",
            element.name
        );
        seen.push(name);
    }
    Ok(())
}

/// Only one field can be hashed.
fn validate_hashed(key: DocRef<'_>) -> Result<()> {
    let hashed = key.elements().filter(|element| element.value.as_str() == Some("hashed")).count();
    if hashed > 1 {
        let reason = format!("A maximum of one index field is allowed to be hashed but found {hashed} for 'key' {key}");
        return Err(Error::location(31303, reason));
    }
    Ok(())
}

/// The fields beside the text ascend or descend, nothing else.
fn validate_text(key: DocRef<'_>) -> Result<()> {
    let is_direction = |value: Value<'_>| value.to_double().is_some_and(|number| number.abs() == 1.0);
    for element in key.elements().filter(|element| element.value.is_number() && element.name != "_ftsx") {
        ensure!(is_direction(element.value), CODE, "Expected value 1 or -1 for non-text key in compound index: {key}");
    }
    Ok(())
}

/// The first string in the pattern, or "wildcard"; empty for an ordinary index.
fn plugin_name(key: DocRef<'_>) -> &[u8] {
    for element in key.elements() {
        match element.value {
            Value::String(plugin) => return plugin,
            _ if is_wildcard_path(element.name) => return IndexKind::Wildcard.plugin_name().as_bytes(),
            _ => {}
        }
    }
    b""
}

fn kind_of(plugin: &[u8]) -> Result<IndexKind> {
    match IndexKind::from_plugin(plugin) {
        Some(kind) => Ok(kind),
        None if plugin == b"geoHaystack" => {
            bail!(CODE, "GeoHaystack indexes cannot be created in version 5.0 and above")
        }
        None => bail!(CODE, "Unknown index plugin '{}'", String::from_utf8_lossy(plugin)),
    }
}

fn validate_value(element: Element<'_>, plugin: &[u8]) -> Result<()> {
    match element.value {
        Value::String(name) => {
            let name: &[u8] = name;
            ensure!(!name.is_empty(), CODE, "Values in the index key pattern cannot be empty strings");
            ensure!(name == plugin, CODE, "Can't use more than one index plugin for a single index.");
            let is_wildcard = element.name == "$**" || element.name.ends_with(b".$**");
            ensure!(
                name != b"wildcard",
                if is_wildcard { CODE } else { ErrorCode::location(7246202) },
                "The key pattern value for an 'wildcard' index must be a non-zero number, not a string."
            );
        }
        value if value.is_number() => {
            let direction = value.to_double().unwrap_or(f64::NAN);
            ensure!(!direction.is_nan(), CODE, "Values in the index key pattern cannot be NaN.");
            ensure!(direction != 0.0, CODE, "Values in the index key pattern cannot be 0.");
        }
        value => bail!(
            CODE,
            "Values in v:2 index key pattern cannot be of type {}. Only numbers > 0, numbers < 0, and strings are allowed.",
            value.value_type().name()
        ),
    }
    Ok(())
}

fn validate_path(element: Element<'_>, kind: IndexKind) -> Result<()> {
    let path: &[u8] = element.name;
    ensure!(!path.is_empty(), CODE, "Index keys cannot be an empty field.");
    let is_all = path == b"$**" && matches!(kind, IndexKind::Text | IndexKind::Wildcard);
    if is_all {
        return Ok(());
    }
    ensure!(path != b"_fts" || kind == IndexKind::Text, CODE, "Index key contains an illegal field name: '_fts'");
    let part_count = path.split(|byte| *byte == b'.').count();
    for (place, part) in path.split(|byte| *byte == b'.').enumerate() {
        ensure!(!part.is_empty(), CODE, "Index keys cannot contain an empty field.");
        let may_be_reference = place > 0 && matches!(part, b"$db" | b"$id" | b"$ref");
        let is_wildcard = place + 1 == part_count && part == b"$**" && kind == IndexKind::Wildcard;
        ensure!(
            part.first() != Some(&b'$') || may_be_reference || is_wildcard,
            CODE,
            "Index key contains an illegal field name: field name starts with '$'."
        );
    }
    Ok(())
}

/// One wildcard in a pattern, and no field beside it that it could take in too.
fn validate_wildcard(key: DocRef<'_>) -> Result<()> {
    let wildcards: Vec<_> = key.elements().filter(|element| is_wildcard_path(element.name)).collect();
    ensure!(wildcards.len() <= 1, ErrorCode::location(7246201), "Index Key can contain only one wildcard index field");
    ensure!(
        !wildcards.is_empty(),
        ErrorCode::location(7246202),
        "No wildcard index field is specified for the wildcard index"
    );
    let Some(root) = wildcards.first().and_then(|wildcard| wildcard.name.strip_suffix(b".$**")) else { return Ok(()) };
    for element in key.elements().filter(|element| !is_wildcard_path(element.name)) {
        let path: &[u8] = element.name;
        ensure!(
            !is_prefix(root, path),
            ErrorCode::location(7246204),
            "A wildcard index field should not overlap with and index key fields if wildcard projection is empty, however '{}' is overlapping with the wildcard index field.",
            element.name
        );
    }
    Ok(())
}

/// True if the path is the other or above it.
pub(super) fn is_prefix(path: &[u8], other: &[u8]) -> bool {
    other.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.first() == Some(&b'.'))
}
