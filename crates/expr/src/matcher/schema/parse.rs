//! From the keywords of a schema to its rules.
//!
//! The order of the rules is that in which failures are told: single values, arrays, encryption, documents, alternatives, types.

use super::unordered::{UnorderedSet, duplicate};
use super::{Additional, Bound, Dependency, Limit, Others, Rule, Schema};
use crate::matcher::{Comparison, ComparisonOperator, TypeSet};
use crate::{ParseContext, Regex};
use bstr::{BStr, BString};
use pando_base::{Error, ErrorCode, Result, bail, ensure};
use pando_doc::{ArrayBuilder, ArrayRef, DocRef, Element, Number, Value};
use std::collections::BTreeSet;

const KEYWORDS: &[&str] = &[
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "bsonType",
    "dependencies",
    "description",
    "encrypt",
    "encryptMetadata",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "not",
    "oneOf",
    "pattern",
    "patternProperties",
    "properties",
    "required",
    "title",
    "type",
    "uniqueItems",
];
/// Part of JSON Schema, but not of this language.
const UNSUPPORTED: &[&str] = &["$ref", "$schema", "default", "definitions", "format", "id"];

/// What `type` calls the types.
const TYPES: &[(&str, &str)] = &[
    ("array", "array"),
    ("boolean", "bool"),
    ("null", "null"),
    ("number", "number"),
    ("object", "object"),
    ("string", "string"),
];

impl Schema {
    /// Reads a schema.
    pub(in crate::matcher) fn parse(source: DocRef<'_>, context: &ParseContext) -> Result<Schema> {
        check_keywords(source, context)?;
        let mut reader = Reader { source, context, rules: Vec::new() };
        reader.scalars()?;
        reader.arrays()?;
        reader.encryption()?;
        reader.objects()?;
        reader.logical()?;
        reader.types()?;
        Ok(Schema { rules: reader.rules, source: source.to_doc() })
    }
}

fn check_keywords(source: DocRef<'_>, context: &ParseContext) -> Result<()> {
    let mut seen: Vec<&BStr> = Vec::new();
    for element in source.elements() {
        let name = element.name;
        if UNSUPPORTED.iter().any(|keyword| name == *keyword) {
            return Err(Error::failed_to_parse(format!("$jsonSchema keyword '{name}' is not currently supported")));
        }
        let is_known = KEYWORDS.iter().any(|keyword| name == *keyword);
        ensure!(
            is_known || context.ignores_unknown_keywords,
            ErrorCode::FailedToParse,
            "Unknown $jsonSchema keyword: {name}"
        );
        ensure!(!seen.contains(&name), ErrorCode::FailedToParse, "Duplicate $jsonSchema keyword: {name}");
        seen.push(name);
        let is_text = matches!(element.value, Value::String(_));
        if (name == "title" || name == "description") && !is_text {
            return Err(Error::type_mismatch(format!("$jsonSchema keyword '{name}' must be of type string")));
        }
    }
    Ok(())
}

fn mismatch(keyword: &str, what: impl std::fmt::Display) -> Error {
    Error::type_mismatch(format!("$jsonSchema keyword '{keyword}' {what}"))
}

fn malformed(keyword: &str, what: impl std::fmt::Display) -> Error {
    Error::failed_to_parse(format!("$jsonSchema keyword '{keyword}' {what}"))
}

struct Reader<'s, 'c> {
    source: DocRef<'s>,
    context: &'c ParseContext,
    rules: Vec<Rule>,
}

impl<'s> Reader<'s, '_> {
    fn get(&self, keyword: &str) -> Option<Element<'s>> {
        self.source.elements().find(|element| element.name == keyword)
    }

    fn nested(&self, schema: DocRef<'_>) -> Result<Schema> {
        Schema::parse(schema, self.context)
    }

    fn scalars(&mut self) -> Result<()> {
        if let Some(element) = self.get("pattern") {
            self.rules.push(Rule::Pattern(self.pattern(element)?));
        }
        for (keyword, is_least) in [("maxLength", false), ("minLength", true)] {
            if let Some(limit) = self.limit(keyword, is_least)? {
                self.rules.push(Rule::Length(limit));
            }
        }
        if let Some(element) = self.get("multipleOf") {
            let number = element.value.as_number().ok_or_else(|| mismatch("multipleOf", "must be a number"))?;
            let is_positive = !number.is_nan() && Number::Decimal(number.to_decimal()).to_double() > 0.0;
            let refusal = || malformed("multipleOf", "must have a positive value");
            self.rules.push(Rule::MultipleOf(Some(number).filter(|_| is_positive).ok_or_else(refusal)?));
        }
        let (greatest, least) = (ComparisonOperator::LessOrEqual, ComparisonOperator::GreaterOrEqual);
        self.bound("maximum", "exclusiveMaximum", greatest, ComparisonOperator::Less)?;
        self.bound("minimum", "exclusiveMinimum", least, ComparisonOperator::Greater)
    }

    fn pattern(&self, element: Element<'_>) -> Result<Regex> {
        match element.value {
            Value::String(pattern) => Regex::new(pattern, BStr::new(""), "$regex"),
            _ => Err(mismatch("pattern", "must be a string")),
        }
    }

    fn limit(&self, keyword: &'static str, is_least: bool) -> Result<Option<Limit>> {
        let Some(element) = self.get(keyword) else { return Ok(None) };
        let count = u64::try_from(element.parse_non_negative_i64()?).unwrap_or(0);
        Ok(Some(Limit { keyword, is_least, count }))
    }

    fn bound(
        &mut self,
        keyword: &'static str,
        exclusive: &'static str,
        inclusively: ComparisonOperator,
        exclusively: ComparisonOperator,
    ) -> Result<()> {
        let is_exclusive = match self.get(exclusive).map(|element| element.value) {
            None => false,
            Some(_) if self.get(keyword).is_none() => {
                return Err(malformed(keyword, format!("must be a present if {exclusive} is present")));
            }
            Some(Value::Bool(is_exclusive)) => is_exclusive,
            Some(_) => return Err(mismatch(exclusive, "must be a boolean")),
        };
        let Some(element) = self.get(keyword) else { return Ok(()) };
        if !element.value.is_number() {
            return Err(mismatch(keyword, "must be a number"));
        }
        let operator = if is_exclusive { exclusively } else { inclusively };
        let comparison = Comparison { operator, value: element.value.to_owned() };
        self.rules.push(Rule::Bound(Bound { keyword: if is_exclusive { exclusive } else { keyword }, comparison }));
        Ok(())
    }

    fn arrays(&mut self) -> Result<()> {
        for (keyword, is_least) in [("minItems", true), ("maxItems", false)] {
            if let Some(limit) = self.limit(keyword, is_least)? {
                self.rules.push(Rule::ItemCount(limit));
            }
        }
        match self.get("uniqueItems").map(|element| element.value) {
            None | Some(Value::Bool(false)) => {}
            Some(Value::Bool(true)) => self.rules.push(Rule::UniqueItems),
            Some(_) => return Err(mismatch("uniqueItems", "must be a boolean")),
        }
        let mut places = None;
        match self.get("items").map(|element| element.value) {
            None => {}
            Some(Value::Document(schema)) => {
                let schema = Box::new(self.nested(schema)?);
                self.rules.push(Rule::Items(schema));
            }
            Some(Value::Array(schemas)) => {
                let refusal = |found: Value<'_>| {
                    let found = found.value_type().name();
                    mismatch(
                        "items",
                        format!("requires that each element of the array is an object, but found a {found}"),
                    )
                };
                let schemas = self.schemas(schemas, refusal)?;
                places = Some(schemas.len());
                self.rules.push(Rule::ItemsByPlace(schemas));
            }
            Some(other) => {
                let found = other.value_type().name();
                return Err(mismatch("items", format!("must be an array or an object, not {found}")));
            }
        }
        let additional = match self.get("additionalItems") {
            Some(element) => self.additional(element, |found| {
                mismatch("additionalItems", format!("must be either an object or a boolean, but got a {found}"))
            })?,
            None => None,
        };
        // It adds to a list of places only.
        if let (Some(from), Some(rule)) = (places, additional) {
            self.rules.push(Rule::AdditionalItems(from, rule));
        }
        Ok(())
    }

    fn schemas(&self, array: ArrayRef<'_>, refusal: impl Fn(Value<'_>) -> Error) -> Result<Vec<Schema>> {
        let parse = |value: Value<'_>| match value {
            Value::Document(schema) => self.nested(schema),
            other => Err(refusal(other)),
        };
        array.values().map(parse).collect()
    }

    fn additional(&self, element: Element<'_>, refusal: impl Fn(&str) -> Error) -> Result<Option<Additional>> {
        match element.value {
            Value::Bool(true) => Ok(None),
            Value::Bool(false) => Ok(Some(Additional::Refused)),
            Value::Document(schema) => Ok(Some(Additional::Matching(Box::new(self.nested(schema)?)))),
            other => Err(refusal(other.value_type().name())),
        }
    }

    /// Who encrypts and how is the client's business; here an encrypted field is a value of its own kind.
    fn encryption(&mut self) -> Result<()> {
        let (encrypt, metadata) = (self.get("encrypt"), self.get("encryptMetadata"));
        ensure!(
            self.context.features.encryption || (encrypt.is_none() && metadata.is_none()),
            ErrorCode::QueryFeatureNotAllowed,
            "Encryption-related validator keywords are not allowed in this context"
        );
        if encrypt.is_some() && metadata.is_some() {
            bail!(ErrorCode::FailedToParse, "Cannot specify both $jsonSchema keywords 'encrypt' and 'encryptMetadata'");
        }
        match metadata.map(|element| element.value) {
            None => {}
            Some(Value::Document(content)) if content.is_empty() => {
                return Err(malformed("encryptMetadata", "cannot be an empty object "));
            }
            Some(Value::Document(_)) => {}
            Some(_) => return Err(mismatch("encryptMetadata", "must be an object ")),
        }
        let Some(element) = encrypt else { return Ok(()) };
        for other in ["type", "bsonType"] {
            if self.get(other).is_some() {
                let what =
                    format!("cannot be used in conjunction with '{other}', 'encrypt' implies type 'bsonType::BinData'");
                return Err(malformed("encrypt", what));
            }
        }
        let Value::Document(content) = element.value else { return Err(mismatch("encrypt", "must be an object ")) };
        let types = content.get("bsonType").map(|types| TypeSet::parse(types)).transpose()?;
        self.rules.push(Rule::Encrypted(types));
        Ok(())
    }

    fn objects(&mut self) -> Result<()> {
        if let Some(element) = self.get("required") {
            let names = required(element)?;
            self.rules.push(Rule::Required(names));
        }
        let mut others = (BTreeSet::new(), Vec::new());
        if let Some(element) = self.get("properties") {
            let Value::Document(properties) = element.value else {
                return Err(mismatch("properties", "must be an object"));
            };
            let mut parsed = Vec::new();
            for property in properties.elements() {
                let Value::Document(schema) = property.value else {
                    let name = property.name;
                    let reason = format!("Nested schema for $jsonSchema property '{name}' must be an object");
                    return Err(Error::type_mismatch(reason));
                };
                parsed.push((property.name.to_owned(), self.nested(schema)?));
            }
            others.0 = parsed.iter().map(|(name, _)| name.clone()).collect();
            self.rules.push(Rule::Properties(parsed));
        }
        if let Some(element) = self.get("patternProperties") {
            let parsed = self.pattern_properties(element)?;
            others.1 = parsed.iter().map(|(regex, _)| regex.clone()).collect();
            self.rules.push(Rule::PatternProperties(parsed));
        }
        if let Some(element) = self.get("additionalProperties") {
            let refusal = |_: &str| mismatch("additionalProperties", "must be an object or a boolean");
            if let Some(rule) = self.additional(element, refusal)? {
                self.rules.push(Rule::AdditionalProperties(Others { named: others.0, patterns: others.1, rule }));
            }
        }
        for (keyword, is_least) in [("minProperties", true), ("maxProperties", false)] {
            if let Some(limit) = self.limit(keyword, is_least)? {
                self.rules.push(Rule::PropertyCount(limit));
            }
        }
        if let Some(element) = self.get("dependencies") {
            let parsed = self.dependencies(element)?;
            self.rules.push(Rule::Dependencies(parsed));
        }
        Ok(())
    }

    fn pattern_properties(&self, element: Element<'_>) -> Result<Vec<(Regex, Schema)>> {
        let Value::Document(patterns) = element.value else {
            return Err(mismatch("patternProperties", "must be an object"));
        };
        let mut parsed = Vec::new();
        for pattern in patterns.elements() {
            let Value::Document(schema) = pattern.value else {
                let what = format!("has property '{}' which is not an object", pattern.name);
                return Err(mismatch("patternProperties", what));
            };
            let regex = Regex::new(pattern.name, BStr::new(""), "$regex")
                .map_err(|error| Error::bad_value(format!("Invalid regular expression: {}", error.reason())))?;
            parsed.push((regex, self.nested(schema)?));
        }
        Ok(parsed)
    }

    fn dependencies(&self, element: Element<'_>) -> Result<Vec<(BString, Dependency)>> {
        let Value::Document(dependencies) = element.value else {
            return Err(mismatch("dependencies", "must be an object"));
        };
        let mut parsed = Vec::new();
        for dependency in dependencies.elements() {
            let name = dependency.name;
            let rule = match dependency.value {
                Value::Document(schema) => Dependency::Schema(self.nested(schema)?),
                Value::Array(names) => Dependency::Fields(dependent_fields(name, names)?),
                Value::String(_) if name == "title" || name == "description" => continue,
                _ => {
                    let reason = format!(
                        "property '{name}' in $jsonSchema keyword 'dependencies' must be either an object or an array"
                    );
                    return Err(Error::type_mismatch(reason));
                }
            };
            parsed.push((name.to_owned(), rule));
        }
        Ok(parsed)
    }

    fn logical(&mut self) -> Result<()> {
        type Make = fn(Vec<Schema>) -> Rule;
        let lists: [(&str, Make); 3] = [("allOf", Rule::AllOf), ("anyOf", Rule::AnyOf), ("oneOf", Rule::OneOf)];
        for (keyword, make) in lists {
            let Some(element) = self.get(keyword) else { continue };
            let Value::Array(array) = element.value else { return Err(mismatch(keyword, "must be an array")) };
            ensure!(
                !array.is_empty(),
                ErrorCode::BadValue,
                "$jsonSchema keyword '{keyword}' must be a non-empty array"
            );
            let schemas = self.schemas(array, |found| {
                let found = found.value_type().name();
                mismatch(keyword, format!("must be an array of objects, but found an element of type {found}"))
            })?;
            self.rules.push(make(schemas));
        }
        match self.get("not").map(|element| element.value) {
            None => {}
            Some(Value::Document(schema)) => {
                let schema = Box::new(self.nested(schema)?);
                self.rules.push(Rule::Not(schema));
            }
            Some(other) => {
                let found = other.value_type().name();
                return Err(mismatch("not", format!("must be an object, but found an element of type {found}")));
            }
        }
        if let Some(element) = self.get("enum") {
            let values = enumerated(element)?;
            self.rules.push(Rule::Enum(values));
        }
        Ok(())
    }

    fn types(&mut self) -> Result<()> {
        let (by_schema, by_bson) = (self.get("type"), self.get("bsonType"));
        if by_schema.is_some() && by_bson.is_some() {
            bail!(ErrorCode::FailedToParse, "Cannot specify both $jsonSchema keywords 'type' and 'bsonType'");
        }
        if let Some(element) = by_schema {
            self.rules.push(Rule::Types("type", types("type", element, &schema_type)?));
        }
        if let Some(element) = by_bson {
            let known = |name: &BStr| refuse_integer(name).map(|()| name.to_string());
            self.rules.push(Rule::Types("bsonType", types("bsonType", element, &known)?));
        }
        Ok(())
    }
}

/// JSON Schema's name for whole numbers is none here, by neither of the two keywords.
fn refuse_integer(name: &BStr) -> Result<()> {
    ensure!(name != "integer", ErrorCode::FailedToParse, "$jsonSchema type 'integer' is not currently supported.");
    Ok(())
}

/// What a name of `type` is called elsewhere.
fn schema_type(name: &BStr) -> Result<String> {
    refuse_integer(name)?;
    match TYPES.iter().find(|(known, _)| name == *known) {
        Some((_, alias)) => Ok((*alias).to_owned()),
        None => Err(Error::bad_value(format!("Unknown type name alias: {name}"))),
    }
}

fn types(keyword: &str, element: Element<'_>, known: &dyn Fn(&BStr) -> Result<String>) -> Result<TypeSet> {
    let names = match element.value {
        Value::String(name) => vec![name],
        Value::Array(array) => {
            let mut names: Vec<&BStr> = Vec::new();
            for value in array.values() {
                let Value::String(name) = value else {
                    return Err(mismatch(keyword, "array elements must be strings"));
                };
                if names.contains(&name) {
                    return Err(malformed(keyword, format!("has duplicate value: {name}")));
                }
                names.push(name);
            }
            names
        }
        _ => return Err(mismatch(keyword, "must be either a string or an array of strings")),
    };
    let names = names.into_iter().map(known).collect::<Result<Vec<String>>>()?;
    if names.is_empty() {
        return Err(malformed(keyword, "must name at least one type"));
    }
    let mut list = ArrayBuilder::new();
    names.iter().for_each(|name| list.push(name.as_str()));
    TypeSet::parse(Value::Array(list.finish().view()))
}

fn required(element: Element<'_>) -> Result<Vec<BString>> {
    let found = |value: Value<'_>| value.value_type().name();
    let Value::Array(array) = element.value else {
        let what = format!("must be an array, but found an element of type {}", found(element.value));
        return Err(mismatch("required", what));
    };
    let mut names: Vec<BString> = Vec::new();
    for value in array.values() {
        let Value::String(name) = value else {
            let what = format!("must be an array of strings, but found an element of type: {}", found(value));
            return Err(mismatch("required", what));
        };
        ensure!(
            !name.contains(&0),
            ErrorCode::location(9867600),
            "$jsonSchema keyword 'required' cannot name fields with embedded null bytes"
        );
        if names.iter().any(|known| BStr::new(known) == name) {
            return Err(malformed("required", "array cannot contain duplicate values"));
        }
        names.push(name.to_owned());
    }
    if names.is_empty() {
        return Err(malformed("required", "cannot be an empty array"));
    }
    Ok(names)
}

fn dependent_fields(property: &BStr, array: ArrayRef<'_>) -> Result<Vec<BString>> {
    let keyword = "$jsonSchema keyword 'dependencies'";
    ensure!(!array.is_empty(), ErrorCode::FailedToParse, "property '{property}' in {keyword} cannot be an empty array");
    let mut names: Vec<BString> = Vec::new();
    for value in array.values() {
        let Value::String(name) = value else {
            let found = value.value_type().name();
            let reason =
                format!("array '{property}' in {keyword} can only contain strings, but found element of type: {found}");
            return Err(Error::type_mismatch(reason));
        };
        ensure!(
            !names.iter().any(|known| BStr::new(known) == name),
            ErrorCode::FailedToParse,
            "array '{property}' in {keyword} contains duplicate element: {name}"
        );
        names.push(name.to_owned());
    }
    Ok(names)
}

fn enumerated(element: Element<'_>) -> Result<UnorderedSet> {
    let Value::Array(array) = element.value else {
        let found = element.value.value_type().name();
        return Err(mismatch("enum", format!("must be an array, but found an element of type {found}")));
    };
    if array.is_empty() {
        return Err(malformed("enum", "cannot be an empty array"));
    }
    if duplicate(array).is_some() {
        return Err(malformed("enum", "array cannot contain duplicate values."));
    }
    Ok(UnorderedSet::new(array))
}
