//! From a value to the tree of an expression.

use super::function::{Function, NamedFunction};
use super::registry;
use super::tree::{Node, Variable};
use super::variables::check_readable_variable;
use crate::ParseContext;
use crate::limits::check_string;
use bstr::{BStr, BString, ByteSlice};
use pando_base::{Error, ErrorCode, Result, operation};
use pando_doc::{DocRef, Element, FieldPath, OwnedValue, Value, check_field_name};
use std::collections::HashSet;

/// Reading a part of an expression is so many steps.
const PARSE_STEPS: u64 = 8;

/// The state of parsing one expression: which variables are bound where it stands.
pub(super) struct Parser<'c> {
    context: &'c ParseContext,
    /// Names and slots of bound variables, innermost last.
    bound: Vec<(BString, usize)>,
    slots: usize,
}

impl<'c> Parser<'c> {
    pub(super) fn new(context: &'c ParseContext) -> Parser<'c> {
        Parser { context, bound: Vec::new(), slots: 0 }
    }

    /// The surroundings.
    pub(super) fn context(&self) -> &ParseContext {
        self.context
    }

    pub(super) fn slots(&self) -> usize {
        self.slots
    }

    /// Binds a variable from here on.
    pub(super) fn bind(&mut self, name: impl AsRef<[u8]>) -> usize {
        let slot = self.slots;
        self.slots += 1;
        self.bound.push((BString::from(name.as_ref()), slot));
        slot
    }

    /// Parses with more variables bound.
    pub(super) fn within<T>(
        &mut self,
        names: &[&BStr],
        parse: impl FnOnce(&mut Self, &[usize]) -> Result<T>,
    ) -> Result<T> {
        let depth = self.bound.len();
        let slots: Vec<usize> = names.iter().map(|name| self.bind(name)).collect();
        let parsed = parse(self, &slots);
        self.bound.truncate(depth);
        parsed
    }

    /// Any expression.
    pub(super) fn operand(&mut self, value: Value<'_>) -> Result<Node> {
        operation::tick(PARSE_STEPS)?;
        match value {
            Value::String(text) if text.starts_with(b"$") => self.path(text),
            Value::Document(doc) => self.document(doc),
            Value::Array(array) => {
                Ok(Node::Array(array.values().map(|value| self.operand(value)).collect::<Result<_>>()?))
            }
            constant => {
                if let Value::String(text) = constant {
                    check_string(text.len())?;
                }
                Ok(Node::Constant(Some(constant.to_owned())))
            }
        }
    }

    /// A document: an operator, or fields.
    fn document(&mut self, doc: DocRef<'_>) -> Result<Node> {
        match doc.first() {
            Some(first) if first.name.starts_with(b"$") => {
                if doc.field_count() != 1 {
                    let reason = format!("an object representing an expression must have exactly one field: {doc}");
                    return Err(Error::location(15983, reason));
                }
                self.operator(first)
            }
            _ => self.object(doc),
        }
    }

    /// Fields that are expressions.
    pub(super) fn object(&mut self, doc: DocRef<'_>) -> Result<Node> {
        let mut fields: Vec<(BString, Node)> = Vec::new();
        let mut names = HashSet::new();
        for element in doc.elements() {
            check_field_name(element.name)?;
            if !names.insert(element.name) {
                let reason = format!("duplicate field name specified in object literal: {doc}");
                return Err(Error::location(16406, reason));
            }
            fields.push((element.name.to_owned(), self.operand(element.value)?));
        }
        Ok(Node::Object(fields))
    }

    fn operator(&mut self, element: Element<'_>) -> Result<Node> {
        let entry = std::str::from_utf8(element.name).ok().and_then(registry::find);
        match entry {
            Some(registry::Entry::Call(function)) => self.call(function, element.value),
            Some(registry::Entry::Named(function)) => self.named(function, element),
            Some(registry::Entry::Special(parse)) => parse(self, element),
            None => {
                let reason = format!("Unrecognized expression '{}'", element.name);
                Err(Error::new(ErrorCode::InvalidPipelineOperator, reason))
            }
        }
    }

    fn call(&mut self, function: Function, value: Value<'_>) -> Result<Node> {
        let operands = self.operands(value)?;
        function.arity.check(function.name, operands.len())?;
        Ok(Node::Call { function, operands })
    }

    /// The operands of an operator: an array of them, or the only one.
    pub(super) fn operands(&mut self, value: Value<'_>) -> Result<Vec<Node>> {
        match value {
            Value::Array(array) => array.values().map(|value| self.operand(value)).collect(),
            value => Ok(vec![self.operand(value)?]),
        }
    }

    pub(super) fn named(&mut self, function: NamedFunction, element: Element<'_>) -> Result<Node> {
        let NamedFunction { name, arguments, .. } = function;
        let Value::Document(doc) = element.value else {
            let reason =
                format!("{name} only supports an object as an argument, found: {}", element.value.value_type());
            return Err(Error::location(function.not_object, reason));
        };
        let mut operands: Vec<Option<Node>> = vec![None; arguments.len()];
        for field in doc.elements() {
            let place = arguments.iter().position(|argument| field.name == argument.name);
            let Some(place) = place.and_then(|place| operands.get_mut(place)) else {
                let reason = match name.starts_with("$date") {
                    true => format!("Unrecognized argument to {name}: {}", field.name),
                    false => format!("{name} found an unknown argument: {}", field.name),
                };
                return Err(Error::location(function.unknown, reason));
            };
            *place = Some(self.operand(field.value)?);
        }
        for (argument, operand) in arguments.iter().zip(&operands) {
            if let (Some(code), None) = (argument.required, operand) {
                let reason = match name.starts_with("$date") {
                    true => format!("Missing '{}' parameter to {name}", argument.name),
                    false => format!("{name} requires '{}' to be specified", argument.name),
                };
                return Err(Error::location(code, reason));
            }
        }
        Ok(Node::Named { function, operands })
    }

    /// `$a.b` or `$$variable.a.b`.
    fn path(&mut self, text: &BStr) -> Result<Node> {
        if text.len() == 1 {
            return Err(Error::location(16872, "'$' by itself is not a valid FieldPath"));
        }
        let Some(name) = text.strip_prefix(b"$$") else {
            let path = FieldPath::parse(text.get(1..).unwrap_or_default())?;
            return Ok(self.current(Some(path)));
        };
        let (name, rest) = match name.find_byte(b'.') {
            Some(dot) => (&name[..dot], name.get(dot + 1..)),
            None => (name, None),
        };
        check_readable_variable(name)?;
        if rest.is_some_and(<[u8]>::is_empty) {
            return Err(Error::location(40353, "FieldPath must not end with a '.'."));
        }
        let path = rest.map(FieldPath::parse).transpose()?;
        self.variable(BStr::new(name), path)
    }

    /// The path in what is current: the document, unless somebody has said otherwise.
    fn current(&self, path: Option<FieldPath>) -> Node {
        let is_bound = self.bound.iter().any(|(bound, _)| bound == "CURRENT");
        match self.context.variables.get("CURRENT").filter(|_| !is_bound) {
            Some(value) => constant(Some(value.to_shared(&self.context.variables)), path),
            None => self.within_variable(b"CURRENT", path),
        }
    }

    /// The path in a bound variable, or in the document if none of this name is bound.
    fn within_variable(&self, name: &[u8], path: Option<FieldPath>) -> Node {
        let slot = self.bound.iter().rev().find(|(bound, _)| bound == name).map(|(_, slot)| *slot);
        Node::Path { variable: slot.map_or(Variable::Root, Variable::Slot), path }
    }

    fn variable(&self, name: &BStr, path: Option<FieldPath>) -> Result<Node> {
        if name == "CURRENT" {
            return Ok(self.current(path));
        }
        if self.bound.iter().any(|(bound, _)| bound == name) {
            return Ok(self.within_variable(name, path));
        }
        let unavailable = || Ok(Node::Unavailable(name.to_owned()));
        let value = match &**name {
            b"ROOT" => return Ok(Node::Path { variable: Variable::Root, path }),
            b"REMOVE" => None,
            b"NOW" | b"CLUSTER_TIME" if !self.context.has_clocks => return unavailable(),
            b"NOW" => Some(OwnedValue::DateTime(self.context.now)),
            b"CLUSTER_TIME" => match self.context.cluster_time {
                Some(time) => Some(OwnedValue::Timestamp(time)),
                None => return unavailable(),
            },
            b"IS_MR" => match self.context.is_map_reduce {
                true => Some(OwnedValue::Bool(true)),
                false => return unavailable(),
            },
            b"JS_SCOPE" => match &self.context.javascript_scope {
                Some(scope) => Some(OwnedValue::Document(scope.clone())),
                None => return unavailable(),
            },
            b"SEARCH_META" => {
                let reason = "Must enable 'enableSearchMeta' to access '$$SEARCH_META'";
                return Err(Error::location(6347902, reason));
            }
            b"USER_ROLES" => match &self.context.user_roles {
                Some(roles) => Some(OwnedValue::Array(roles.clone())),
                None => return Err(Error::location(51144, "Builtin variable '$$USER_ROLES' is not available")),
            },
            _ => match self.context.variables.get(name) {
                Some(value) => Some(value.to_shared(&self.context.variables)),
                None if self.context.absent_variables.iter().any(|absent| absent == name) => None,
                None => return Err(undefined(name)),
            },
        };
        Ok(constant(value, path))
    }
}

/// A value that is known, or what a path leads to in it.
fn constant(value: Option<OwnedValue>, path: Option<FieldPath>) -> Node {
    match path {
        None => Node::Constant(value),
        Some(path) => {
            let operand = value.map_or(super::Operand::Missing, super::Operand::Owned);
            Node::Constant(super::path::in_operand(&operand, &path).into_value())
        }
    }
}

fn undefined(name: &BStr) -> Error {
    Error::location(17276, format!("Use of undefined variable: {name}"))
}

/// Operators whose operands are parsed in a way of their own.
pub(super) type ParseSpecial = fn(&mut Parser<'_>, Element<'_>) -> Result<Node>;
