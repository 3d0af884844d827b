//! The functions that a database keeps in `system.js`, for requests whose JavaScript may call them: those with `$where`, and mapReduce.

use crate::{Data, Invocation, stored};
use bstr::Finder;
use pando_base::{Error, Namespace, Result};
use pando_doc::{Doc, DocBuilder, DocRef, Value};
use pando_operation::Operation;
use pando_query::executor::StoredFunctions;
use std::sync::LazyLock;

/// Every read looks for it.
static WHERE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("$where"));

/// True if a filter has a `$where`, which may call them.
pub(super) fn are_needed(filter: DocRef<'_>) -> bool {
    WHERE.find(filter.bytes()).is_some()
}

/// Gives the operation the stored functions.
pub(super) async fn load(invocation: &Invocation, data: &Data, operation: &mut Operation) -> Result<()> {
    let namespace = Namespace::new(&invocation.database, "system.js")?;
    let found = stored::find(data, operation, &namespace, Doc::new()).await?;
    let mut functions = DocBuilder::new();
    for document in &found {
        let Some(Value::String(name)) = document.get("_id") else {
            let name = document.get("_id").unwrap_or(Value::Null);
            return Err(Error::location(10209, format!("name has to be a string: _id: {name}")));
        };
        match document.get("value") {
            None => return Err(Error::location(10210, "value has to be set")),
            Some(Value::CodeWithScope { .. }) => {
                let reason = format!(
                    "BSON type 'CodeWithScope' not supported in system.js scripts. As an alternative use 'Code'. Script _id value: '{name}'"
                );
                return Err(Error::location(4_546_000, reason));
            }
            Some(value) => functions.append(name, value),
        }
    }
    operation.extensions.insert(StoredFunctions(functions.finish()));
    Ok(())
}
