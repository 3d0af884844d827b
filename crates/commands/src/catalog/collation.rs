//! Collations as the catalog keeps them: with every field.

use pando_base::Result;
use pando_collation::{Collation, IcuCollator};
use pando_doc::{Doc, DocRef};

/// Checks a collation and completes it; none for the simple one, which compares bytes and is never kept.
pub(super) fn complete(collation: DocRef<'_>) -> Result<Option<Doc>> {
    let Some(collation) = Collation::parse(collation)? else { return Ok(None) };
    // A collation that cannot be used is refused now, not by the first write.
    IcuCollator::new(&collation)?;
    Ok(Some(collation.to_doc()))
}
