//! Operators behind `$[]` and `$[identifier]`: on each value of an array that its filters let through.

use super::apply::Walk;
use super::mutable::Mutable;
use super::node::Node;
use bstr::BString;
use pando_base::{Error, Result, operation};
use pando_doc::OwnedValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

impl<'d> Walk<'_, 'd> {
    pub(super) fn array(&mut self, nodes: &BTreeMap<BString, Node>, value: &mut Mutable<'d>) -> Result<()> {
        if !value.is_array() {
            let name = self.path.last().cloned().unwrap_or_default();
            let reason = format!("Cannot apply array updates to non-array element {name}: {}", value.to_owned_value());
            return Err(Error::bad_value(reason));
        }
        value.expand();
        let Mutable::Array(values) = value else { return Ok(()) };
        for (index, value) in values.iter_mut().enumerate() {
            operation::tick(1)?;
            self.path.push(BString::from(index.to_string()));
            if let Some(node) = self.matching(nodes, value)?
                && self.existing(&node, value)?
            {
                *value = Mutable::Owned(OwnedValue::Null);
            }
            self.path.pop();
        }
        Ok(())
    }

    /// The operators whose filters the value passes, as one.
    fn matching<'n>(&self, nodes: &'n BTreeMap<BString, Node>, value: &Mutable<'d>) -> Result<Option<Cow<'n, Node>>> {
        let mut found: Option<Cow<'n, Node>> = None;
        let mut current = None;
        for (identifier, node) in nodes {
            let filter = self.operators.filters.iter().find(|filter| filter.identifier == *identifier);
            let passes = match filter {
                None => true,
                Some(filter) => filter.matches(current.get_or_insert_with(|| value.to_owned_value()).view())?,
            };
            if passes {
                found = Some(match found {
                    None => Cow::Borrowed(node),
                    Some(other) => Cow::Owned(Node::merge(&other, node, &self.path_text().to_string())?),
                });
            }
        }
        Ok(found)
    }
}
