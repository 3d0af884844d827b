//! Whether a value has a schema's form.

use super::unordered::duplicate;
use super::{Additional, Bound, Dependency, Others, Rule, Schema};
use crate::matcher::TypeSet;
use bstr::{BStr, ByteSlice};
use pando_base::operation;
use pando_doc::{DocRef, Number, Value, ValueType};

/// So many characters are counted in a step.
const CHARACTERS_PER_STEP: usize = 8;
/// The kind of binary values that are encrypted fields.
const ENCRYPTED_SUBTYPE: u8 = 6;
/// Where an encrypted value says of which type it is.
const ORIGINAL_TYPE_OFFSET: usize = 17;

pub(super) fn matches(schema: &Schema, value: Value<'_>) -> bool {
    schema.rules.iter().all(|rule| operation::goes_on(1) && holds(rule, value))
}

pub(super) fn holds(rule: &Rule, value: Value<'_>) -> bool {
    match (rule, value) {
        (Rule::Bound(bound), value) => bound_holds(bound, value),
        (Rule::MultipleOf(divisor), value) => value.as_number().is_none_or(|number| is_multiple(number, *divisor)),
        (Rule::Length(limit), Value::String(text)) => {
            operation::count((text.len() / CHARACTERS_PER_STEP) as u64);
            limit.holds(text.chars().count())
        }
        (Rule::Pattern(regex), Value::String(text)) => regex.is_match(text),
        (Rule::ItemCount(limit), Value::Array(array)) => limit.holds(array.len()),
        (Rule::UniqueItems, Value::Array(array)) => duplicate(array).is_none(),
        (Rule::Items(schema), Value::Array(array)) => array.values().all(|item| matches(schema, item)),
        (Rule::ItemsByPlace(schemas), Value::Array(array)) => {
            schemas.iter().zip(array.values()).all(|(schema, item)| matches(schema, item))
        }
        (Rule::AdditionalItems(from, rule), Value::Array(array)) => {
            array.values().skip(*from).all(|item| additional_holds(rule, item))
        }
        (Rule::Encrypted(types), value) => is_encrypted(value, types.as_ref()),
        (Rule::Required(names), Value::Document(doc)) => names.iter().all(|name| property(doc, name).is_some()),
        (Rule::Properties(properties), Value::Document(doc)) => {
            properties.iter().all(|(name, schema)| property(doc, name).is_none_or(|value| matches(schema, value)))
        }
        (Rule::PatternProperties(patterns), Value::Document(doc)) => {
            patterns.iter().all(|(regex, schema)| failing_of_pattern(regex, schema, doc).is_none())
        }
        (Rule::AdditionalProperties(others), Value::Document(doc)) => {
            others.of(doc).all(|(_, value)| additional_holds(&others.rule, value))
        }
        (Rule::PropertyCount(limit), Value::Document(doc)) => limit.holds(doc.field_count()),
        (Rule::Dependencies(dependencies), Value::Document(doc)) => dependencies
            .iter()
            .all(|(name, dependency)| !doc.contains(BStr::new(name)) || dependency_holds(dependency, doc)),
        (Rule::Enum(values), value) => values.contains(value),
        (Rule::AllOf(schemas), value) => schemas.iter().all(|schema| matches(schema, value)),
        (Rule::AnyOf(schemas), value) => schemas.iter().any(|schema| matches(schema, value)),
        (Rule::OneOf(schemas), value) => schemas.iter().filter(|schema| matches(schema, value)).count() == 1,
        (Rule::Not(schema), value) => !matches(schema, value),
        (Rule::Types(_, types), value) => types.contains(value.value_type()),
        // Made for values of another type.
        _ => true,
    }
}

/// The field of this name; of a name with dots, what the path leads to through documents.
pub(super) fn property<'d>(doc: DocRef<'d>, name: &[u8]) -> Option<Value<'d>> {
    match name.split_once_str(b".") {
        None => doc.get(BStr::new(name)),
        Some((first, rest)) => match doc.get(BStr::new(first)) {
            Some(Value::Document(inside)) => property(inside, rest),
            _ => None,
        },
    }
}

fn bound_holds(bound: &Bound, value: Value<'_>) -> bool {
    !value.is_number() || bound.comparison.matches(Some(value), None)
}

/// Reckoned in decimals, as a user would: 0.3 is a multiple of 0.1.
fn is_multiple(number: Number, divisor: Number) -> bool {
    let remainder = Number::Decimal(number.to_decimal()).modulo(Number::Decimal(divisor.to_decimal()));
    remainder.is_some_and(|remainder| remainder.to_double() == 0.0)
}

pub(super) fn additional_holds(rule: &Additional, value: Value<'_>) -> bool {
    match rule {
        Additional::Refused => false,
        Additional::Matching(schema) => matches(schema, value),
    }
}

fn is_encrypted(value: Value<'_>, types: Option<&TypeSet>) -> bool {
    let Value::Binary { subtype: ENCRYPTED_SUBTYPE, bytes } = value else { return false };
    let Some(types) = types else { return true };
    let original = bytes.get(ORIGINAL_TYPE_OFFSET).and_then(|code| ValueType::from_number(i32::from(*code)));
    original.is_some_and(|original| types.contains(original))
}

/// The first field whose name the pattern fits and whose value the schema does not.
pub(super) fn failing_of_pattern<'d>(
    regex: &crate::Regex,
    schema: &Schema,
    doc: DocRef<'d>,
) -> Option<(&'d BStr, Value<'d>)> {
    let failing = |(name, value): &(&BStr, Value<'_>)| regex.is_match(name) && !matches(schema, *value);
    doc.elements().map(|element| (element.name, element.value)).find(failing)
}

pub(super) fn dependency_holds(dependency: &Dependency, doc: DocRef<'_>) -> bool {
    match dependency {
        Dependency::Fields(names) => names.iter().all(|name| doc.contains(BStr::new(name))),
        Dependency::Schema(schema) => matches(schema, Value::Document(doc)),
    }
}

impl Others {
    /// The fields that this is about.
    pub(super) fn of<'d>(&self, doc: DocRef<'d>) -> impl Iterator<Item = (&'d BStr, Value<'d>)> {
        let is_other =
            |name: &BStr| !self.named.contains(name) && !self.patterns.iter().any(|regex| regex.is_match(name));
        doc.elements().map(|element| (element.name, element.value)).filter(move |(name, _)| is_other(name))
    }
}
