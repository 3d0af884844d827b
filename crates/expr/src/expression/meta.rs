//! `$meta`: what the query knows of the document beside its fields. It is a hidden field of the document; see
//! [`crate::metadata`].

use super::parse::Parser;
use super::tree::{Node, Variable};
use crate::metadata::Meta;
use pando_base::{Error, Result};
use pando_doc::{Element, FieldPath, Value};

pub(super) fn parse(parser: &mut Parser<'_>, element: Element<'_>) -> Result<Node> {
    let Value::String(name) = element.value else {
        return Err(Error::location(17307, "$meta only supports string arguments"));
    };
    let kind = Meta::from_name(name)
        .ok_or_else(|| Error::location(17308, format!("Unsupported argument to $meta: {name}")))?;
    parser.context().metadata.add(kind);
    Ok(Node::Path { variable: Variable::Root, path: Some(FieldPath::lenient(kind.field())?) })
}
