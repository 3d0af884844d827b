//! What `$jsonSchema` comes down to in MongoDB, as operators that may be sent by themselves: `$_internalSchemaMinItems` and its kin on a
//! path, `$_internalSchemaCond` and its kin on the whole document. Each says at once which type it is for: a value of another does not
//! fulfil it.

use super::unordered::duplicate;
use crate::matcher::{MatchExpression, TypeSet};
use pando_base::{Error, Result, operation};
use pando_doc::{Element, OwnedValue, Value, compare, doc};

/// An operator on a path.
#[derive(Clone, Debug)]
pub struct SchemaOperator {
    name: String,
    /// As it was written.
    argument: OwnedValue,
    test: Test,
}

#[derive(Clone, Debug)]
enum Test {
    Items {
        is_least: bool,
        count: u64,
    },
    Length {
        is_least: bool,
        count: u64,
    },
    UniqueItems,
    /// The document fulfils the filter.
    Object(Box<MatchExpression>),
    /// What is at this place of the array fulfils the filter, under the name that stands for it.
    ItemAt(u64, Placeholder),
    /// So does all from this place on.
    ItemsFrom(u64, Placeholder),
    Type(TypeSet),
    Equal,
    Multiple {
        divisor: f64,
        remainder: f64,
    },
    Subtype(i64),
}

#[derive(Clone, Debug)]
struct Placeholder {
    name: String,
    filter: Box<MatchExpression>,
}

impl PartialEq for SchemaOperator {
    fn eq(&self, other: &SchemaOperator) -> bool {
        self.name == other.name && self.argument == other.argument
    }
}

fn count_of(element: Element<'_>) -> Result<u64> {
    let number = element.value.as_number().and_then(|number| number.to_i64_exact());
    let refused = || Error::failed_to_parse(format!("{} must be a non-negative integer", element.name));
    number.and_then(|number| u64::try_from(number).ok()).ok_or_else(refused)
}

/// The number of properties that an operator on the whole document is about.
pub(in crate::matcher) fn property_count(element: Element<'_>) -> Result<i64> {
    count_of(element).map(|count| i64::try_from(count).unwrap_or(i64::MAX))
}

impl SchemaOperator {
    /// Reads an operator; none for a name that is not one. `filter` reads what nested documents have to fulfil.
    pub(in crate::matcher) fn parse(
        element: Element<'_>,
        filter: &dyn Fn(pando_doc::DocRef<'_>) -> Result<MatchExpression>,
    ) -> Result<Option<SchemaOperator>> {
        let name = element.name.to_string();
        let test = match name.strip_prefix("$_internalSchema").unwrap_or_default() {
            "MinItems" => Test::Items { is_least: true, count: count_of(element)? },
            "MaxItems" => Test::Items { is_least: false, count: count_of(element)? },
            "MinLength" => Test::Length { is_least: true, count: count_of(element)? },
            "MaxLength" => Test::Length { is_least: false, count: count_of(element)? },
            "UniqueItems" if element.value.as_bool() == Some(true) => Test::UniqueItems,
            "UniqueItems" => return Err(Error::failed_to_parse(format!("{name} must be a boolean of value true"))),
            "ObjectMatch" => match element.value {
                Value::Document(inner) => Test::Object(Box::new(filter(inner)?)),
                _ => return Err(Error::failed_to_parse(format!("{name} must be an object"))),
            },
            "MatchArrayIndex" => item_at(element, filter)?,
            "AllElemMatchFromIndex" => items_from(element, filter)?,
            "Type" => Test::Type(TypeSet::parse(element.value)?),
            "Eq" => Test::Equal,
            "Fmod" => multiple(element)?,
            "BinDataSubType" => match element.value.as_number().and_then(|number| number.to_i64_exact()) {
                Some(subtype) => Test::Subtype(subtype),
                None => return Err(Error::failed_to_parse(format!("{name} must be represented as a number"))),
            },
            _ => return Ok(None),
        };
        Ok(Some(SchemaOperator { name, argument: element.value.to_owned(), test }))
    }

    /// As it is written.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What stands behind it.
    pub fn argument(&self) -> &OwnedValue {
        &self.argument
    }

    pub(in crate::matcher) fn matches(&self, value: Option<Value<'_>>) -> bool {
        operation::count(1);
        let limited = |count: usize, is_least: bool, limit: u64| match is_least {
            true => count as u64 >= limit,
            false => count as u64 <= limit,
        };
        match (&self.test, value) {
            (_, None) => false,
            (Test::Items { is_least, count }, Some(Value::Array(array))) => limited(array.len(), *is_least, *count),
            (Test::Length { is_least, count }, Some(Value::String(text))) => {
                limited(String::from_utf8_lossy(text).chars().count(), *is_least, *count)
            }
            (Test::UniqueItems, Some(Value::Array(array))) => duplicate(array).is_none(),
            (Test::Object(filter), Some(Value::Document(document))) => filter.matches(document),
            (Test::ItemAt(place, wanted), Some(Value::Array(array))) => {
                let item = usize::try_from(*place).ok().and_then(|place| array.values().nth(place));
                item.is_none_or(|item| wanted.matches(item))
            }
            (Test::ItemsFrom(place, wanted), Some(Value::Array(array))) => {
                array.values().skip(usize::try_from(*place).unwrap_or(usize::MAX)).all(|item| wanted.matches(item))
            }
            (Test::Type(types), Some(value)) => types.contains(value.value_type()),
            (Test::Equal, Some(value)) => compare(value, self.argument.view()).is_eq(),
            (Test::Multiple { divisor, remainder }, Some(value)) => {
                value.to_double().is_some_and(|number| (number % divisor - remainder).abs() == 0.0)
            }
            (Test::Subtype(wanted), Some(Value::Binary { subtype, .. })) => i64::from(subtype) == *wanted,
            _ => false,
        }
    }
}

impl Placeholder {
    fn matches(&self, item: Value<'_>) -> bool {
        let holder = doc! { (self.name.as_str()): item };
        operation::goes_on(1) && self.filter.matches(holder.view())
    }

    /// The one path of the filter is the name for the value.
    fn parse(
        name: &str,
        value: Option<Value<'_>>,
        filter: &dyn Fn(pando_doc::DocRef<'_>) -> Result<MatchExpression>,
    ) -> Result<Placeholder> {
        let Some(Value::Document(inner)) = value else {
            return Err(Error::failed_to_parse(format!("{name} requires a sub-expression that is an object")));
        };
        let filter = filter(inner)?;
        let root = filter.paths().unwrap_or_default();
        let root = root.first().map_or_else(|| "i".to_owned(), |path| path.part(0).to_string());
        Ok(Placeholder { name: root, filter: Box::new(filter) })
    }
}

fn item_at(element: Element<'_>, filter: &dyn Fn(pando_doc::DocRef<'_>) -> Result<MatchExpression>) -> Result<Test> {
    let name = element.name.to_string();
    let Value::Document(options) = element.value else {
        return Err(Error::type_mismatch(format!("{name} must be an object")));
    };
    let place = options.elements().find(|option| option.name == "index");
    let place = place.ok_or_else(|| Error::failed_to_parse(format!("{name} requires an 'index' parameter")))?;
    Ok(Test::ItemAt(count_of(place)?, Placeholder::parse(&name, options.get("expression"), filter)?))
}

fn items_from(element: Element<'_>, filter: &dyn Fn(pando_doc::DocRef<'_>) -> Result<MatchExpression>) -> Result<Test> {
    let name = element.name.to_string();
    let Value::Array(arguments) = element.value else {
        return Err(Error::failed_to_parse(format!("{name} must be an array")));
    };
    let mut arguments = arguments.values();
    let (Some(place), Some(expression), None) = (arguments.next(), arguments.next(), arguments.next()) else {
        return Err(Error::failed_to_parse(format!("{name} must be an array of size 2")));
    };
    let place = Element { name: element.name, value: place };
    Ok(Test::ItemsFrom(count_of(place)?, Placeholder::parse(&name, Some(expression), filter)?))
}

fn multiple(element: Element<'_>) -> Result<Test> {
    let refused =
        || Error::bad_value(format!("malformed {}, needs an array of a divisor and a remainder", element.name));
    let Value::Array(numbers) = element.value else { return Err(refused()) };
    let numbers: Vec<f64> = numbers.values().filter_map(|value| value.to_double()).collect();
    match numbers.as_slice() {
        [divisor, remainder] if *divisor != 0.0 => Ok(Test::Multiple { divisor: *divisor, remainder: *remainder }),
        [_, _] => Err(Error::bad_value("divisor cannot be 0")),
        _ => Err(refused()),
    }
}
