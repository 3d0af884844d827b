//! `$_testApiVersion`: an operator that is in no version of the API, or one that is to go; for tests of what such are refused by.

use super::parse::Parser;
use super::tree::Node;
use pando_base::{Error, Result};
use pando_doc::{Element, OwnedValue, Value};

/// Reads it: one field, `unstable` or `deprecated`, which is true. It gives 1.
pub(super) fn parse(_: &mut Parser<'_>, element: Element<'_>) -> Result<Node> {
    let refused = |code, reason: &str| Err(Error::location(code, format!("{} {reason}", element.name)));
    let Value::Document(specification) = element.value else {
        return refused(5161700, "only supports an object as its argument");
    };
    let Some(field) = specification.first().filter(|_| specification.field_count() == 1) else {
        return refused(5161701, "only accepts an object with a single field.");
    };
    match &**field.name {
        b"unstable" | b"deprecated" => match field.value {
            Value::Bool(_) => Ok(Node::Constant(Some(OwnedValue::Int32(1)))),
            _ if field.name == "unstable" => refused(5161702, "unstable must be a boolean"),
            _ => refused(5161703, "deprecated must be a boolean"),
        },
        _ => {
            let reason = format!("{} is not a valid argument for {}", field.name, element.name);
            Err(Error::location(5161704, reason))
        }
    }
}
