//! `arrayFilters`: conditions on values of arrays, by identifier.

use crate::matcher::Node;
use crate::{Features, MatchExpression, ParseContext};
use bstr::{BStr, BString, ByteSlice};
use pando_base::{Error, Result};
use pando_doc::{DocRef, Value, doc};

/// A condition for an identifier.
#[derive(Clone, Debug)]
pub(super) struct ArrayFilter {
    pub(super) identifier: BString,
    filter: MatchExpression,
}

impl ArrayFilter {
    /// True if the value fulfils the condition.
    pub(super) fn matches(&self, value: Value<'_>) -> Result<bool> {
        self.filter.try_matches(doc! { (&self.identifier): value }.view())
    }
}

pub(super) fn parse(filters: &[DocRef<'_>], context: &ParseContext) -> Result<Vec<ArrayFilter>> {
    let context = context.clone().with_features(Features { expr: false, ..Features::NONE });
    let mut parsed: Vec<ArrayFilter> = Vec::new();
    for filter in filters {
        let expression =
            MatchExpression::parse(*filter, &context).map_err(|error| error.context("Error parsing array filter"))?;
        let Some(identifier) = identifier_of(expression.root(), None)? else {
            let reason = "Cannot use an expression without a top-level field name in arrayFilters";
            return Err(Error::failed_to_parse(reason));
        };
        check_identifier(identifier)?;
        let identifier = identifier.to_owned();
        if parsed.iter().any(|other| other.identifier == identifier) {
            let reason = format!("Found multiple array filters with the same top-level field name {identifier}");
            return Err(Error::failed_to_parse(reason));
        }
        parsed.push(ArrayFilter { identifier, filter: expression });
    }
    Ok(parsed)
}

/// The first part of all paths, which has to be one.
fn identifier_of<'n>(node: &'n Node, known: Option<&'n BStr>) -> Result<Option<&'n BStr>> {
    let Some(path) = node.path() else {
        return node.children().iter().try_fold(known, |known, child| identifier_of(child, known));
    };
    let first = path.part(0);
    match known {
        Some(known) if known != first => {
            let reason = format!(
                "Error parsing array filter :: caused by :: Expected a single top-level field name, found '{known}' and '{first}'"
            );
            Err(Error::failed_to_parse(reason))
        }
        _ => Ok(Some(first)),
    }
}

fn check_identifier(identifier: &BStr) -> Result<()> {
    let is_valid = identifier.first().is_some_and(u8::is_ascii_lowercase)
        && identifier.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if is_valid {
        return Ok(());
    }
    let reason = format!(
        "Error parsing array filter :: caused by :: The top-level field name must be an alphanumeric string beginning with a lowercase letter, found '{identifier}'"
    );
    Err(Error::bad_value(reason))
}
