//! Collations as the catalog keeps them: with every field.

use pando_base::Result;
use pando_collation::{Collation, IcuCollator};
use pando_doc::{Doc, DocBuilder, DocRef, Value};

/// Checks a collation and completes it; none for the simple one, which compares bytes and is never kept.
pub(super) fn complete(collation: DocRef<'_>) -> Result<Option<Doc>> {
    let Some(collation) = Collation::parse(collation)? else { return Ok(None) };
    // A collation that cannot be used is refused now, not by the first write.
    IcuCollator::new(&collation)?;
    Ok(Some(collation.to_doc()))
}

/// An index specification whose collation, if it has one, is checked and complete.
pub(super) fn with_complete(specification: DocRef<'_>) -> Result<Doc> {
    let Some(Value::Document(given)) = specification.get("collation") else { return Ok(specification.to_doc()) };
    let Some(completed) = complete(given)? else { return Ok(specification.to_doc()) };
    let mut whole = DocBuilder::with_capacity(specification.size_bytes() + completed.size_bytes());
    for element in specification.raw_elements() {
        match element.name == "collation" {
            true => whole.append("collation", &completed),
            false => whole.append_raw(element),
        }
    }
    Ok(whole.finish())
}
