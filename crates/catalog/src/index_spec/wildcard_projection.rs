//! What may stand in the projection of a wildcard index beside its key pattern.
//!
//! No path of it may lie above another; paths are taken in or left out, not both (but for `_id`); and a field of the key
//! beside the wildcard must not be taken in a second time by the wildcard.

use super::key_pattern::is_prefix;
use crate::index::is_wildcard_path;
use pando_base::{ErrorCode, Result, bail, ensure};
use pando_doc::{DocRef, Value};

/// Refuses a projection that does not fit the key pattern.
pub(super) fn validate(key: DocRef<'_>, projection: DocRef<'_>) -> Result<()> {
    for element in projection.elements() {
        let is_plain = element.value.is_number() || matches!(element.value, Value::Bool(_) | Value::Document(_));
        ensure!(
            is_plain,
            ErrorCode::location(51271),
            "Bad projection specification, cannot use computed fields when parsing a spec in kBanComputedFields mode: {projection}"
        );
    }
    let sorted = |wanted: bool| {
        let named = projection.elements().filter(|element| element.value.is_true() == wanted);
        let mut paths: Vec<&[u8]> = named.map(|element| -> &[u8] { element.name }).collect();
        paths.sort_unstable_by(|one, two| compare(one, two));
        paths
    };
    let (mut included, mut excluded) = (sorted(true), sorted(false));
    check_apart(&included)?;
    check_apart(&excluded)?;
    if !included.is_empty() && !excluded.is_empty() {
        let is_id = |paths: &[&[u8]]| matches!(paths, [only] if *only == b"_id");
        match (is_id(&excluded), is_id(&included)) {
            (true, _) => excluded.clear(),
            (false, true) => included.clear(),
            // Of one field alone it is a projection like any other.
            (false, false) if key.field_count() == 1 => bail!(
                ErrorCode::location(31254),
                "Cannot do exclusion on field {} in inclusion projection",
                excluded.first().map_or_else(String::new, |path| text(path))
            ),
            (false, false) => bail!(
                ErrorCode::location(7246211),
                "The wildcardProjection cannot combine inclusion and exclusion statements, with the exception that _id may be excluded for inclusion projections and included for exclusion projections"
            ),
        }
    }
    let mut fields: Vec<&[u8]> =
        key.elements().map(|element| -> &[u8] { element.name }).filter(|name| !is_wildcard_path(name)).collect();
    fields.sort_unstable_by(|one, two| compare(one, two));
    if included.is_empty() { check_excluded(&fields, &excluded) } else { check_not_included(&fields, &included) }
}

/// The order of paths, part by part.
fn compare(one: &[u8], two: &[u8]) -> std::cmp::Ordering {
    let parts = |path: &[u8]| path.split(|byte| *byte == b'.').map(<[u8]>::to_vec).collect::<Vec<_>>();
    parts(one).cmp(&parts(two))
}

fn text(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

fn check_apart(paths: &[&[u8]]) -> Result<()> {
    for pair in paths.windows(2) {
        let [one, two] = pair else { continue };
        ensure!(
            !is_prefix(one, two) && !is_prefix(two, one),
            ErrorCode::location(7246200),
            "Fields in Wildcard Projection cannot overlap, however '{}' is overlapped with '{}",
            text(one),
            text(two)
        );
    }
    Ok(())
}

fn check_not_included(fields: &[&[u8]], included: &[&[u8]]) -> Result<()> {
    for field in fields {
        if let Some(path) = included.iter().find(|path| is_prefix(path, field)) {
            bail!(
                ErrorCode::location(7246208),
                "Index Key and Wildcard Projection cannot contain overlapping fields, however '{}' index field is overlapping with '{}' wildcardProjection path",
                text(field),
                text(path)
            );
        }
    }
    Ok(())
}

fn check_excluded(fields: &[&[u8]], excluded: &[&[u8]]) -> Result<()> {
    let mut rest = excluded;
    for field in fields {
        // Paths before the field cannot exclude it, nor what comes behind it.
        while let Some((first, others)) = rest.split_first() {
            if is_prefix(first, field) || compare(first, field).is_ge() {
                break;
            }
            rest = others;
        }
        let code = match rest.first() {
            None => 7246210,
            Some(first) if is_prefix(first, field) => continue,
            Some(_) => 7246209,
        };
        bail!(
            ErrorCode::location(code),
            "wildcardProjection paths must exclude all regular index fields, however '{}'is not excluded",
            text(field)
        );
    }
    Ok(())
}
