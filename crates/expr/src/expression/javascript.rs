//! `$function`, JavaScript of its operands, and `$_internalJsEmit`, the map function of mapReduce.
//!
//! The code is compiled when the expression is read; that it cannot be is told, as in MongoDB, by the first evaluation.

use super::Operand;
use super::evaluate::{Scope, evaluate as evaluate_node};
use super::parse::Parser;
use super::tree::Node;
use crate::ParseContext;
use bstr::ByteSlice;
use pando_base::{Error, Result};
use pando_doc::{ArrayBuilder, Doc, DocBuilder, Element, OwnedValue, Value, doc};
use pando_script::{SharedScript, Usage};

/// How much a map function may emit for one document.
const EMIT_BYTES_MAX: usize = 100 * 1024 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Function,
    Emit,
}

/// A call of a client's function.
#[derive(Clone, Debug)]
pub struct ScriptCall {
    kind: Kind,
    source: String,
    script: SharedScript,
    /// The array of arguments, or the document to map.
    pub(super) input: Node,
}

impl PartialEq for ScriptCall {
    fn eq(&self, other: &ScriptCall) -> bool {
        (self.kind, &self.source, &self.input) == (other.kind, &other.source, &other.input)
    }
}

impl ScriptCall {
    fn node(kind: Kind, source: String, script: &SharedScript, input: Node) -> Node {
        if let Ok(scope) = script.scope() {
            let _ = scope.compile(&source);
        }
        Node::Script(Box::new(ScriptCall { kind, source, script: SharedScript::clone(script), input }))
    }

    pub(super) fn name(&self) -> &'static str {
        match self.kind {
            Kind::Function => "$function",
            Kind::Emit => "$_internalJsEmit",
        }
    }

    /// As `explain` shows it.
    pub(super) fn to_doc(&self, input: OwnedValue) -> Doc {
        match self.kind {
            Kind::Function => doc! { "body": self.source.as_str(), "args": input, "lang": "js" },
            Kind::Emit => doc! { "eval": self.source.as_str(), "this": input },
        }
    }
}

/// Where JavaScript runs, or the error that it does not.
pub(crate) fn needs_script<'c>(context: &'c ParseContext, code: i32, reason: &str) -> Result<&'c SharedScript> {
    context.script.as_ref().ok_or_else(|| Error::location(code, reason))
}

/// The source of a function: a string or code.
pub(crate) fn function_source(value: Value<'_>) -> Option<String> {
    match value {
        Value::String(code) | Value::Code(code) => Some(code.to_str_lossy().into_owned()),
        _ => None,
    }
}

const NO_ENGINE: &str = "Cannot run server-side javascript without the javascript engine enabled";

pub(super) fn parse_function(parser: &mut Parser<'_>, element: Element<'_>) -> Result<Node> {
    if !parser.context().features.functions {
        return Err(Error::location(4_660_800, "$function cannot be used inside a validator."));
    }
    let Value::Document(fields) = element.value else {
        let reason = format!("$function requires an object as an argument, found: {}", element.value.value_type());
        return Err(Error::location(31260, reason));
    };
    let Some(body) = fields.get("body") else {
        return Err(Error::location(31261, "The body function must be specified."));
    };
    let Node::Constant(Some(body)) = parser.operand(body)? else {
        return Err(Error::location(31432, "The body function must be a constant expression"));
    };
    let Some(source) = function_source(body.view()) else {
        return Err(Error::location(31262, "The body function must evaluate to type string or code"));
    };
    let Some(arguments) = fields.get("args") else {
        return Err(Error::location(31263, "The args field must be specified."));
    };
    let input = parser.operand(arguments)?;
    match fields.get("lang") {
        None => return Err(Error::location(31418, "The lang field must be specified.")),
        Some(Value::String(language)) if language == "js" => {}
        Some(_) => {
            return Err(Error::location(31419, "Currently the only supported language specifier is 'js'."));
        }
    }
    let script = needs_script(parser.context(), 31264, NO_ENGINE)?;
    script.use_for(Usage::Expression)?;
    Ok(ScriptCall::node(Kind::Function, source, script, input))
}

pub(super) fn parse_emit(parser: &mut Parser<'_>, element: Element<'_>) -> Result<Node> {
    if !parser.context().features.functions {
        return Err(Error::location(4_660_801, "$_internalJsEmit cannot be used inside a validator."));
    }
    let Value::Document(fields) = element.value else {
        let reason =
            format!("$_internalJsEmit requires an object as an argument, found: {}", element.value.value_type());
        return Err(Error::location(31221, reason));
    };
    let Some(map) = fields.get("eval") else {
        return Err(Error::location(31222, "The map function must be specified."));
    };
    let Some(source) = function_source(map) else {
        return Err(Error::location(31224, "The map function must be of type string or code"));
    };
    let Some(this) = fields.get("this") else {
        return Err(Error::location(31223, "$_internalJsEmit requires 'this' to be specified"));
    };
    let input = parser.operand(this)?;
    let script = needs_script(parser.context(), 31264, NO_ENGINE)?;
    script.use_for(Usage::Expression)?;
    Ok(ScriptCall::node(Kind::Emit, source, script, input))
}

pub(super) fn evaluate<'a>(call: &'a ScriptCall, scope: &mut Scope<'a>) -> Result<Operand<'a>> {
    let interpreter = call.script.scope()?;
    let function = interpreter.compile(&call.source)?;
    let input = evaluate_node(&call.input, scope)?;
    match call.kind {
        Kind::Function => {
            let Some(Value::Array(arguments)) = input.view() else {
                return Err(Error::location(31266, "The args field must be of type array"));
            };
            let arguments: Vec<Value<'_>> = arguments.values().collect();
            let given = interpreter.call(function, Some(pando_doc::DocRef::EMPTY), &arguments)?;
            Ok(Operand::Owned(given))
        }
        Kind::Emit => {
            let Some(Value::Document(document)) = input.view() else {
                return Err(Error::location(31225, "'this' must be an object."));
            };
            let mut list = ArrayBuilder::new();
            for (key, value) in interpreter.emit(function, document, EMIT_BYTES_MAX)? {
                let mut pair = DocBuilder::new();
                pair.append("k", key.view());
                pair.append("v", value.view());
                list.push(Value::Document(pair.finish().view()));
            }
            Ok(Operand::Owned(OwnedValue::Array(list.finish())))
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Expression, MatchExpression, ParseContext};
    use pando_doc::{OwnedValue, Value, doc};
    use pando_script::{Script, ScriptLimits};
    use std::sync::Arc;

    fn context() -> ParseContext {
        ParseContext { script: Some(Arc::new(Script::new(ScriptLimits::default()))), ..ParseContext::new(0) }
    }

    #[test]
    fn u6_function_is_called_with_its_arguments() {
        let written = doc! { "$function": { "body": "function(a, b) { return a + b.c; }", "args": ["$x", { "c": 2 }], "lang": "js" } };
        let expression = Expression::parse(Value::Document(written.view()), &context()).unwrap().optimize().unwrap();
        let document = doc! { "x": 40 };
        let value = expression.evaluate_document(document.view()).unwrap().into_value();
        assert_eq!(value, Some(OwnedValue::Double(42.0)));
        let refused = |written: pando_doc::Doc| {
            let written = doc! { "$function": written };
            Expression::parse(Value::Document(written.view()), &context()).unwrap_err().code().number()
        };
        assert_eq!(refused(doc! { "args": [], "lang": "js" }), 31261);
        assert_eq!(refused(doc! { "body": 1, "args": [], "lang": "js" }), 31262);
        assert_eq!(refused(doc! { "body": "1", "lang": "js" }), 31263);
        assert_eq!(refused(doc! { "body": "1", "args": [] }), 31418);
        assert_eq!(refused(doc! { "body": "1", "args": [], "lang": "c" }), 31419);
        let without = Expression::parse(Value::Document(written.view()), &ParseContext::new(0)).unwrap_err();
        assert_eq!(without.code().number(), 31264);
    }

    #[test]
    fn u5_where_decides_by_javascript() {
        let parse = |filter: pando_doc::Doc| MatchExpression::parse(filter.view(), &context());
        let filter = parse(doc! { "a": { "$gt": 0 }, "$where": "this.a == this.b" }).unwrap().optimize();
        assert!(filter.try_matches(doc! { "a": 1, "b": 1.0 }.view()).unwrap());
        assert!(!filter.try_matches(doc! { "a": 1, "b": 2 }.view()).unwrap());
        let failing = parse(doc! { "$where": "this.a.b.c" }).unwrap();
        assert_eq!(failing.try_matches(doc! {}.view()).unwrap_err().code().number(), 139);
        for (wrong, code) in [
            (doc! { "$where": 5 }, 2),
            (doc! { "a": { "$elemMatch": { "$where": "true" } } }, 2),
            (doc! { "$where": "this is wrong" }, 139),
            (
                doc! { "$where": "true", "$expr": { "$function": { "body": "true", "args": [], "lang": "js" } } },
                4_649_200,
            ),
        ] {
            assert_eq!(parse(wrong.clone()).unwrap_err().code().number(), code, "{wrong}");
        }
    }
}
