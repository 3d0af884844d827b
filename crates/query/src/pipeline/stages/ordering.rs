//! The order of values under the collation of a pipeline.

use pando_doc::{CompareOptions, StringComparator};
use pando_expr::SharedCollator;

/// How values are compared.
pub(super) fn options(collator: &Option<SharedCollator>) -> CompareOptions<'_> {
    let strings = collator.as_deref().map(|collator| collator as &dyn StringComparator);
    CompareOptions { strings, ..CompareOptions::default() }
}
