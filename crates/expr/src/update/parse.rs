//! From a document of operators to the tree by path.

use super::node::Object;
use super::operation::Operation;
use super::path::{self, Part};
use super::pull::Pull;
use super::push::{AddToSet, Push};
use super::{Operators, array_filter, bit};
use crate::ParseContext;
use bstr::{BStr, BString};
use pando_base::{Error, Result};
use pando_doc::{DocRef, Element, FieldPath, Number, Value};

pub(super) fn parse(spec: DocRef<'_>, array_filters: &[DocRef<'_>], context: &ParseContext) -> Result<Operators> {
    let filters = array_filter::parse(array_filters, context)?;
    let mut parser = Parser { root: Object::default(), context, used: Vec::new(), has_matched: false };
    for element in spec.elements() {
        parser.operator(element)?;
    }
    let is_known =
        |identifier: &BString| identifier.is_empty() || filters.iter().any(|filter| filter.identifier == *identifier);
    if let Some(unknown) = parser.used.iter().find(|identifier| !is_known(identifier)) {
        let path = path_of_identifier(spec, unknown);
        let reason = format!("No array filter found for identifier '{unknown}' in path '{path}'");
        return Err(Error::bad_value(reason));
    }
    for filter in &filters {
        if !parser.used.contains(&filter.identifier) {
            let reason =
                format!("The array filter for identifier '{}' was not used in the update {spec}", filter.identifier);
            return Err(Error::failed_to_parse(reason));
        }
    }
    Ok(Operators {
        root: parser.root,
        filters,
        collator: context.collator.clone(),
        needs_match_details: parser.has_matched,
    })
}

fn path_of_identifier(spec: DocRef<'_>, identifier: &BString) -> BString {
    let sought = format!("$[{identifier}]");
    let paths = spec.elements().filter_map(|element| element.value.as_document()).flat_map(|doc| doc.elements());
    let mut paths = paths.map(|field| field.name);
    paths
        .find(|path| path.split(|byte| *byte == b'.').any(|part| part == sought.as_bytes()))
        .unwrap_or_default()
        .to_owned()
}

struct Parser<'c> {
    root: Object,
    context: &'c ParseContext,
    /// The identifiers of `$[identifier]`.
    used: Vec<BString>,
    has_matched: bool,
}

impl Parser<'_> {
    fn operator(&mut self, element: Element<'_>) -> Result<()> {
        if !is_known(element.name) {
            let reason = format!(
                "Unknown modifier: {}. Expected a valid update modifier or pipeline-style update specified as an array",
                element.name
            );
            return Err(Error::failed_to_parse(reason));
        }
        let Value::Document(fields) = element.value else {
            let reason = format!(
                "Modifiers operate on fields but we found type {} instead. For example: {{$mod: {{<field>: ...}}}} not {{{element}}}",
                element.value.value_type()
            );
            return Err(Error::failed_to_parse(reason));
        };
        for field in fields.elements() {
            if element.name == "$rename" {
                self.rename(field)?;
            } else {
                let operation = operation(element.name, field, self.context)?;
                self.insert(field.name, operation)?;
            }
        }
        Ok(())
    }

    fn insert(&mut self, path: &BStr, operation: Operation) -> Result<()> {
        if path::is_plain_name(path) {
            return self.root.insert_named(path, operation);
        }
        let parts = path::parse(path)?;
        for part in &parts {
            match part {
                Part::Filtered(identifier) => self.used.push(identifier.clone()),
                Part::Matched => self.has_matched = true,
                Part::Name(_) => {}
            }
        }
        self.root.insert(path, &parts, operation)
    }

    fn rename(&mut self, field: Element<'_>) -> Result<()> {
        let Value::String(target) = field.value else {
            return Err(Error::bad_value(format!("The 'to' field for $rename must be a string: {field}")));
        };
        if target.contains(&0) {
            let reason = "The 'to' field for $rename cannot contain an embedded null byte";
            return Err(Error::bad_value(reason));
        }
        if field.name == target {
            let reason = format!("The source and target field for $rename must differ: {field}");
            return Err(Error::bad_value(reason));
        }
        let is_dynamic =
            |path: &BStr| path::parse(path).map(|parts| parts.iter().any(|part| !matches!(part, Part::Name(_))));
        if is_dynamic(field.name)? {
            let reason = format!("The source field for $rename may not be dynamic: {}", field.name);
            return Err(Error::bad_value(reason));
        }
        if is_dynamic(target)? {
            let reason = format!("The destination field for $rename may not be dynamic: {target}");
            return Err(Error::bad_value(reason));
        }
        let (from, to) = (FieldPath::lenient(field.name)?, FieldPath::lenient(target)?);
        if from.is_prefix_of(&to) || to.is_prefix_of(&from) {
            let reason = format!("The source and target field for $rename must not be on the same path: {field}");
            return Err(Error::bad_value(reason));
        }
        self.insert(field.name, Operation::RenameFrom)?;
        self.insert(target, Operation::RenameTo(from))
    }
}

fn is_known(name: &BStr) -> bool {
    const NAMES: &[&str] = &[
        "$set",
        "$unset",
        "$inc",
        "$mul",
        "$min",
        "$max",
        "$rename",
        "$currentDate",
        "$setOnInsert",
        "$push",
        "$addToSet",
        "$pop",
        "$pull",
        "$pullAll",
        "$bit",
    ];
    NAMES.iter().any(|known| name == *known)
}

fn operation(name: &BStr, field: Element<'_>, context: &ParseContext) -> Result<Operation> {
    let value = field.value;
    Ok(match &**name {
        b"$set" => Operation::Set(value.to_owned()),
        b"$setOnInsert" => Operation::SetOnInsert(value.to_owned()),
        b"$unset" => Operation::Unset,
        b"$inc" => Operation::Increment(number(field, "increment")?),
        b"$mul" => Operation::Multiply(number(field, "multiply")?),
        b"$min" => Operation::Extreme(value.to_owned(), false),
        b"$max" => Operation::Extreme(value.to_owned(), true),
        b"$currentDate" => Operation::CurrentDate(is_timestamp(field)?),
        b"$push" => Operation::Push(Box::new(Push::parse(value)?)),
        b"$addToSet" => Operation::AddToSet(AddToSet::parse(value)?),
        b"$pop" => Operation::Pop(pops_front(field)?),
        b"$pull" => Operation::Pull(Box::new(Pull::parse(value, context)?)),
        b"$pullAll" => Operation::Pull(Box::new(Pull::parse_all(value)?)),
        b"$bit" => Operation::Bit(bit::parse(field)?),
        _ => return Err(Error::internal(format!("unknown operator {name}"))),
    })
}

fn number(field: Element<'_>, what: &str) -> Result<Number> {
    field
        .value
        .as_number()
        .ok_or_else(|| Error::type_mismatch(format!("Cannot {what} with non-numeric argument: {{{field}}}")))
}

fn pops_front(field: Element<'_>) -> Result<bool> {
    match field.parse_i64()? {
        1 => Ok(false),
        -1 => Ok(true),
        other => Err(Error::failed_to_parse(format!("$pop expects 1 or -1, found: {other}"))),
    }
}

/// True for a timestamp, false for a date.
fn is_timestamp(field: Element<'_>) -> Result<bool> {
    const KINDS: &str =
        "The '$type' string field is required to be 'date' or 'timestamp': {$currentDate: {field : {$type: 'date'}}}";
    match field.value {
        Value::Bool(_) => Ok(false),
        Value::Document(doc) => {
            let mut kind = None;
            for option in doc.elements() {
                match (&**option.name, option.value) {
                    (b"$type", Value::String(name)) if name == "date" => kind = Some(false),
                    (b"$type", Value::String(name)) if name == "timestamp" => kind = Some(true),
                    (b"$type", _) => return Err(Error::bad_value(KINDS)),
                    _ => {
                        let reason = format!("Unrecognized $currentDate option: {}", option.name);
                        return Err(Error::bad_value(reason));
                    }
                }
            }
            kind.ok_or_else(|| Error::bad_value(KINDS))
        }
        value => {
            let reason = format!(
                "{} is not valid type for $currentDate. Please use a boolean ('true') or a $type expression ({{$type: 'timestamp/date'}}).",
                value.value_type()
            );
            Err(Error::bad_value(reason))
        }
    }
}
