//! `$where`: JavaScript that decides about a document.

use crate::ParseContext;
use crate::expression::needs_script;
use bstr::ByteSlice;
use pando_base::{Error, Result};
use pando_doc::{DocRef, Value};
use pando_script::{FunctionId, SharedScript, Usage};
use std::fmt;

/// A function that was compiled.
#[derive(Clone)]
pub struct WhereClause {
    code: String,
    script: SharedScript,
    function: FunctionId,
}

impl WhereClause {
    pub(super) fn parse(value: Value<'_>, context: &ParseContext) -> Result<WhereClause> {
        let code = match value {
            Value::String(code) | Value::Code(code) => code.to_str_lossy().into_owned(),
            Value::CodeWithScope { .. } => {
                let reason = "$where no longer supports deprecated BSON type CodeWScope";
                return Err(Error::bad_value(reason));
            }
            _ => return Err(Error::bad_value("$where got bad type")),
        };
        let reason = "no globalScriptEngine in $where parsing";
        let script = SharedScript::clone(needs_script(context, 6_108_304, reason)?);
        if !context.is_map_reduce {
            script.use_for(Usage::Filter)?;
        }
        let function = script.scope()?.compile(&code)?;
        Ok(WhereClause { code, script, function })
    }

    /// The code as it was written.
    pub fn code(&self) -> &str {
        &self.code
    }

    pub(super) fn matches(&self, document: DocRef<'_>) -> Result<bool> {
        self.script.scope()?.test(self.function, document)
    }
}

impl PartialEq for WhereClause {
    fn eq(&self, other: &WhereClause) -> bool {
        self.code == other.code
    }
}

impl fmt::Debug for WhereClause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "$where: {:?}", self.code)
    }
}
