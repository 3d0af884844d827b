//! A new specification beside the indexes that a collection has.

use super::signature::{self, Comparable};
use crate::fail_points::EXPIRE_IN_CAPPED;
use crate::index::{IndexDescriptor, IndexKind};
use crate::{ClusteredIndex, Collection};
use pando_base::{Error, ErrorCode, Result, bail, ensure};
use pando_doc::{Doc, DocRef, JsonFormat, Value, compare_docs, doc_to_json};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// The most indexes of a collection.
pub const INDEXES_MAX: usize = 64;

/// How a specification fits what is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SpecFit {
    /// It is new.
    New,
    /// There is such an index, ready.
    Exists(String),
    /// Such an index is being built.
    BeingBuilt(String),
}

/// How two specifications compare.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    /// They may both be there.
    Different,
    /// They index the same, with other options.
    Equivalent,
    /// They are one.
    Identical,
}

/// Compares a completed specification with what the collection has; an error if it conflicts.
pub fn compare_with_existing(collection: &Collection, specification: DocRef<'_>) -> Result<SpecFit> {
    let candidate = IndexDescriptor::parse(specification)?;
    if let Some(clustered) = &collection.options.clustered_index
        && let Some(name) = compare_with_clustered(clustered, &candidate)?
    {
        return Ok(SpecFit::Exists(name));
    }
    ensure!(
        collection.is_clustered() || !specification.contains("clustered"),
        ErrorCode::location(6243700),
        "Cannot create index with option 'clustered' that does not match an existing clustered index"
    );
    if let Some(named) = collection.index(&candidate.name) {
        return match compare_descriptors(&candidate, &named.descriptor) {
            Comparison::Different => conflict(
                ErrorCode::IndexKeySpecsConflict,
                "An existing index has the same name as the requested index. When index names are not specified, they are \
                 auto generated and can cause conflicts. Please refer to our documentation.",
                &candidate,
                &named.descriptor,
            ),
            Comparison::Equivalent => conflict(
                ErrorCode::IndexOptionsConflict,
                "An equivalent index already exists with the same name but different options.",
                &candidate,
                &named.descriptor,
            ),
            Comparison::Identical if named.ready => Ok(SpecFit::Exists(named.name().to_owned())),
            Comparison::Identical => Ok(SpecFit::BeingBuilt(named.name().to_owned())),
        };
    }
    for existing in &collection.indexes {
        match compare_descriptors(&candidate, &existing.descriptor) {
            Comparison::Different => {}
            Comparison::Equivalent => {
                return conflict(
                    ErrorCode::IndexOptionsConflict,
                    "An equivalent index already exists with a different name and options.",
                    &candidate,
                    &existing.descriptor,
                );
            }
            Comparison::Identical => bail!(
                ErrorCode::IndexOptionsConflict,
                "Index already exists with a different name: {}",
                existing.name()
            ),
        }
    }
    check_room(collection, &candidate)?;
    Ok(SpecFit::New)
}

fn check_room(collection: &Collection, candidate: &IndexDescriptor) -> Result<()> {
    ensure!(
        collection.indexes.len() < INDEXES_MAX,
        ErrorCode::CannotCreateIndex,
        "add index fails, too many indexes for {} key:{}",
        collection.namespace,
        shown(&candidate.key_pattern)
    );
    let text = collection.indexes.iter().find(|index| index.descriptor.kind == IndexKind::Text);
    if candidate.kind == IndexKind::Text
        && let Some(text) = text
    {
        let name = text.name();
        bail!(
            ErrorCode::CannotCreateIndex,
            "only one text index per collection allowed, found existing text index \"{name}\""
        );
    }
    ensure!(
        !(collection.is_capped() && collection.is_clustered()) || candidate.expire_after_seconds.is_none(),
        ErrorCode::location(6049202),
        "TTL indexes are not supported on capped clustered collections"
    );
    ensure!(
        !collection.is_capped() || candidate.expire_after_seconds.is_none() || EXPIRE_IN_CAPPED.should_fail(),
        ErrorCode::CannotCreateIndex,
        "Cannot create TTL index on a capped collection"
    );
    Ok(())
}

/// The clustered index is there without an entry of its own.
fn compare_with_clustered(clustered: &ClusteredIndex, candidate: &IndexDescriptor) -> Result<Option<String>> {
    let (same_key, same_name) = (clustered.has_key(candidate.key_pattern.view()), *candidate.name == *clustered.name());
    let asks = candidate.specification.view().contains("clustered");
    ensure!(
        same_key || !asks,
        ErrorCode::location(6243700),
        "Cannot create index with option 'clustered' that does not match an existing clustered index"
    );
    ensure!(
        same_key || !same_name,
        ErrorCode::location(6100906),
        "Cannot create an index where the name matches the clusteredIndex but the key does not - indexSpec: {}",
        shown(&candidate.specification)
    );
    if !same_key {
        return Ok(None);
    }
    ensure!(
        candidate.version == 2,
        ErrorCode::location(6100908),
        "Cannot create an index with the same key pattern as the collection's clusteredIndex but a different 'v' field"
    );
    Ok(Some(clustered.name().to_owned()))
}

fn compare_descriptors(candidate: &IndexDescriptor, existing: &IndexDescriptor) -> Comparison {
    let same = |left: &Option<Doc>, right: &Option<Doc>| match (left, right) {
        (Some(left), Some(right)) => sorted(left.view()) == sorted(right.view()),
        (left, right) => left.is_none() == right.is_none(),
    };
    let same_filter = |left: &Option<Doc>, right: &Option<Doc>| match (left, right) {
        (Some(left), Some(right)) => signature::conditions(left.view()) == signature::conditions(right.view()),
        (left, right) => left.is_none() == right.is_none(),
    };
    let same_projection = |left: &Option<Doc>, right: &Option<Doc>| match (left, right) {
        (Some(left), Some(right)) => signature::paths(left.view()) == signature::paths(right.view()),
        (left, right) => left.is_none() == right.is_none(),
    };
    let same_key = compare_docs(candidate.key_pattern.view(), existing.key_pattern.view()) == Ordering::Equal;
    let equivalent = same_key
        && same_projection(&candidate.wildcard_projection, &existing.wildcard_projection)
        && candidate.unique == existing.unique
        && candidate.sparse == existing.sparse
        && same(&candidate.collation, &existing.collation)
        && same_filter(&candidate.partial_filter, &existing.partial_filter);
    if !equivalent {
        return Comparison::Different;
    }
    if other_options(candidate) == other_options(existing) { Comparison::Identical } else { Comparison::Equivalent }
}

/// Options that do not make another index, but must be the same for it to be the same index.
fn other_options(descriptor: &IndexDescriptor) -> BTreeMap<Vec<u8>, Comparable> {
    const NOT_COMPARED: [&str; 13] = [
        "key",
        "ns",
        "name",
        "v",
        "textIndexVersion",
        "2dsphereIndexVersion",
        "background",
        "dropDups",
        "sparse",
        "hidden",
        "unique",
        "partialFilterExpression",
        "collation",
    ];
    let compared =
        |name: &[u8]| !NOT_COMPARED.iter().any(|not| name == not.as_bytes()) && name != b"wildcardProjection";
    let elements = descriptor.specification.view().elements().filter(|element| compared(element.name));
    elements.map(|element| (element.name.to_vec(), Comparable(element.value.to_owned()))).collect()
}

/// The fields of a document, whatever their order.
fn sorted(document: DocRef<'_>) -> BTreeMap<Vec<u8>, Comparable> {
    let flat = |value: Value<'_>| Comparable(value.to_owned());
    document.elements().map(|element| (element.name.to_vec(), flat(element.value))).collect()
}

fn conflict(code: ErrorCode, what: &str, candidate: &IndexDescriptor, existing: &IndexDescriptor) -> Result<SpecFit> {
    let (requested, there) = (shown(&candidate.specification), shown(&existing.specification));
    Err(Error::new(code, format!("{what} Requested index: {requested}, existing index: {there}")))
}

fn shown(document: &Doc) -> String {
    doc_to_json(document.view(), JsonFormat::Relaxed)
}
