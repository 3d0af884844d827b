//! Why a value does not have a schema's form: one document for each keyword that it fails.

use super::evaluate::{additional_holds, dependency_holds, failing_of_pattern, holds, matches};
use super::unordered::duplicate;
use super::{Additional, Dependency, Others, Rule, Schema};
use bstr::BStr;
use pando_doc::{ArrayRef, Doc, DocBuilder, DocRef, Value, doc};

impl Schema {
    /// The details of why the document fails; none if it does not.
    pub(in crate::matcher) fn explain(&self, document: DocRef<'_>) -> Option<Doc> {
        let failed = self.failed(Value::Document(document));
        if failed.is_empty() {
            return None;
        }
        let mut builder = DocBuilder::new();
        builder.append("operatorName", "$jsonSchema");
        self.annotate(&mut builder);
        append_list("schemaRulesNotSatisfied", &failed, &mut builder);
        Some(builder.finish())
    }

    /// The failures of the rules that a value breaks.
    fn failed(&self, value: Value<'_>) -> Vec<Doc> {
        self.rules.iter().filter(|rule| !holds(rule, value)).map(|rule| self.failure(rule, value)).collect()
    }

    /// What the author of a schema says of it is told to who breaks it.
    fn annotate(&self, builder: &mut DocBuilder) {
        for name in ["title", "description"] {
            builder.append_some(name, self.source.get(name));
        }
    }

    fn specified(&self, keywords: &[&str]) -> Doc {
        let mut builder = DocBuilder::new();
        for element in self.source.elements().filter(|element| keywords.iter().any(|keyword| element.name == *keyword))
        {
            builder.append(element.name, element.value);
        }
        builder.finish()
    }

    fn failure(&self, rule: &Rule, value: Value<'_>) -> Doc {
        let mut builder = DocBuilder::new();
        let document = value.as_document().unwrap_or(DocRef::EMPTY);
        let items = if let Value::Array(array) = value { array } else { ArrayRef::EMPTY };
        let mut simple = |keyword: &str, keywords: &[&str], reason: &str| {
            builder.append("operatorName", keyword);
            builder.append("specifiedAs", self.specified(keywords));
            builder.append("reason", reason);
        };
        match rule {
            Rule::Bound(bound) => {
                let keywords: &[&str] = match bound.keyword {
                    "exclusiveMaximum" => &["maximum", "exclusiveMaximum"],
                    "exclusiveMinimum" => &["minimum", "exclusiveMinimum"],
                    keyword => &[keyword],
                };
                simple(bound.keyword, keywords, "comparison failed");
                builder.append("consideredValue", value);
            }
            Rule::MultipleOf(_) => {
                simple("multipleOf", &["multipleOf"], "considered value is not a multiple of the specified value");
                builder.append("consideredValue", value);
            }
            Rule::Length(limit) => {
                simple(limit.keyword, &[limit.keyword], "specified string length was not satisfied");
                builder.append("consideredValue", value);
            }
            Rule::Pattern(_) => {
                simple("pattern", &["pattern"], "regular expression did not match");
                builder.append("consideredValue", value);
            }
            Rule::ItemCount(limit) => {
                simple(limit.keyword, &[limit.keyword], "array did not match specified length");
                builder.append("consideredValue", value);
            }
            Rule::UniqueItems => {
                simple("uniqueItems", &["uniqueItems"], "found a duplicate item");
                builder.append("consideredValue", value);
                builder.append_some("duplicatedValue", duplicate(items));
            }
            Rule::Encrypted(_) => {
                let is_binary = matches!(value, Value::Binary { .. });
                let reason = if is_binary { "value was encrypted as another type" } else { "value was not encrypted" };
                simple("encrypt", &["encrypt"], reason);
            }
            Rule::Enum(_) => {
                simple("enum", &["enum"], "value was not found in enum");
                builder.append("consideredValue", value);
            }
            Rule::Not(_) => simple("not", &["not"], "child expression matched"),
            Rule::Types(keyword, _) => {
                simple(keyword, &[keyword], "type did not match");
                builder.append("consideredValue", value);
                builder.append("consideredType", value.value_type().name());
            }
            Rule::PropertyCount(limit) => {
                simple(limit.keyword, &[limit.keyword], "specified number of properties was not satisfied");
                builder.append("numberOfProperties", document.field_count() as i64);
            }
            Rule::Required(names) => {
                builder.append("operatorName", "required");
                builder.append("specifiedAs", self.specified(&["required"]));
                let missing = names.iter().filter(|name| !document.contains(BStr::new(name)));
                builder.array("missingProperties", |array| missing.for_each(|name| array.push(BStr::new(name))));
            }
            Rule::Items(schema) => self.failing_item(schema, items, &mut builder),
            Rule::ItemsByPlace(schemas) => {
                builder.append("operatorName", "items");
                let failing = schemas.iter().zip(items.values()).enumerate();
                let failing = failing.filter(|(_, (schema, item))| !matches(schema, *item));
                let details: Vec<Doc> = failing
                    .map(|(place, (schema, item))| numbered("itemIndex", place, schema, &schema.failed(item)))
                    .collect();
                append_list("details", &details, &mut builder);
            }
            Rule::AdditionalItems(from, additional) => self.additional_items(*from, additional, items, &mut builder),
            Rule::Properties(properties) => {
                builder.append("operatorName", "properties");
                let mut failing = Vec::new();
                for (name, schema) in properties {
                    let Some(value) = document.get(BStr::new(name)).filter(|value| !matches(schema, *value)) else {
                        continue;
                    };
                    failing.push(named(BStr::new(name), None, schema, &schema.failed(value)));
                }
                append_list("propertiesNotSatisfied", &failing, &mut builder);
            }
            Rule::PatternProperties(patterns) => {
                builder.append("operatorName", "patternProperties");
                let mut failing = Vec::new();
                for (regex, schema) in patterns {
                    if let Some((name, value)) = failing_of_pattern(regex, schema, document) {
                        failing.push(named(name, Some(regex.pattern()), schema, &schema.failed(value)));
                    }
                }
                append_list("details", &failing, &mut builder);
            }
            Rule::AdditionalProperties(others) => self.additional_properties(others, document, &mut builder),
            Rule::Dependencies(dependencies) => {
                builder.append("operatorName", "dependencies");
                let failing = dependencies.iter().filter(|(name, dependency)| {
                    document.contains(BStr::new(name)) && !dependency_holds(dependency, document)
                });
                let failing: Vec<Doc> =
                    failing.map(|(name, dependency)| dependent(BStr::new(name), dependency, document)).collect();
                append_list("failingDependencies", &failing, &mut builder);
            }
            Rule::AllOf(schemas) => alternatives("allOf", schemas, value, &mut builder),
            Rule::AnyOf(schemas) => alternatives("anyOf", schemas, value, &mut builder),
            Rule::OneOf(schemas) => {
                let matching: Vec<usize> = (0..schemas.len())
                    .filter(|place| schemas.get(*place).is_some_and(|schema| matches(schema, value)))
                    .collect();
                if matching.is_empty() {
                    alternatives("oneOf", schemas, value, &mut builder);
                } else {
                    simple("oneOf", &["oneOf"], "more than one subschema matched");
                    builder.array("matchingSchemaIndexes", |array| {
                        matching.iter().for_each(|place| array.push(index(*place)));
                    });
                }
            }
        }
        builder.finish()
    }

    fn failing_item(&self, schema: &Schema, items: ArrayRef<'_>, builder: &mut DocBuilder) {
        builder.append("operatorName", "items");
        let failing = items.values().enumerate().find(|(_, item)| !matches(schema, *item));
        if let Some((place, item)) = failing {
            builder.append("reason", "At least one item did not match the sub-schema");
            builder.append("itemIndex", index(place));
            append_list("details", &schema.failed(item), builder);
        }
    }

    fn additional_items(&self, from: usize, rule: &Additional, items: ArrayRef<'_>, builder: &mut DocBuilder) {
        builder.append("operatorName", "additionalItems");
        match rule {
            Additional::Refused => {
                builder.append("specifiedAs", self.specified(&["additionalItems"]));
                builder.array("additionalItems", |array| items.values().skip(from).for_each(|item| array.push(item)));
            }
            Additional::Matching(schema) => {
                let failing = items.values().enumerate().skip(from).find(|(_, item)| !matches(schema, *item));
                if let Some((place, item)) = failing {
                    builder.append("reason", "At least one additional item did not match the sub-schema");
                    builder.append("itemIndex", index(place));
                    append_list("details", &schema.failed(item), builder);
                }
            }
        }
    }

    fn additional_properties(&self, others: &Others, document: DocRef<'_>, builder: &mut DocBuilder) {
        builder.append("operatorName", "additionalProperties");
        builder.append("specifiedAs", self.specified(&["additionalProperties"]));
        match &others.rule {
            Additional::Refused => {
                builder
                    .array("additionalProperties", |array| others.of(document).for_each(|(name, _)| array.push(name)));
            }
            Additional::Matching(schema) => {
                let failing = others.of(document).find(|(_, value)| !additional_holds(&others.rule, *value));
                if let Some((name, value)) = failing {
                    builder.append("reason", "at least one additional property did not match the subschema");
                    builder.append("failingProperty", name);
                    append_list("details", &schema.failed(value), builder);
                }
            }
        }
    }
}

fn index(place: usize) -> i32 {
    i32::try_from(place).unwrap_or(i32::MAX)
}

fn append_list(name: &str, documents: &[Doc], builder: &mut DocBuilder) {
    builder.array(name, |array| documents.iter().for_each(|document| array.push(document)));
}

fn numbered(name: &str, place: usize, schema: &Schema, details: &[Doc]) -> Doc {
    let mut builder = DocBuilder::new();
    builder.append(name, index(place));
    schema.annotate(&mut builder);
    append_list("details", details, &mut builder);
    builder.finish()
}

fn named(name: &BStr, pattern: Option<&BStr>, schema: &Schema, details: &[Doc]) -> Doc {
    let mut builder = DocBuilder::new();
    builder.append("propertyName", name);
    if let Some(pattern) = pattern {
        builder.append("regexMatched", pattern);
    }
    schema.annotate(&mut builder);
    append_list("details", details, &mut builder);
    builder.finish()
}

fn dependent(name: &BStr, dependency: &Dependency, document: DocRef<'_>) -> Doc {
    let mut builder = DocBuilder::new();
    builder.append("conditionalProperty", name);
    match dependency {
        Dependency::Fields(names) => builder.array("missingProperties", |array| {
            let missing = names.iter().filter(|name| !document.contains(BStr::new(name)));
            missing.for_each(|name| array.push(BStr::new(name)));
        }),
        Dependency::Schema(schema) => {
            append_list("details", &schema.failed(Value::Document(document)), &mut builder);
        }
    }
    builder.finish()
}

fn alternatives(keyword: &str, schemas: &[Schema], value: Value<'_>, builder: &mut DocBuilder) {
    builder.append("operatorName", keyword);
    let failing = schemas.iter().enumerate().filter(|(_, schema)| !matches(schema, value));
    let failing: Vec<Doc> =
        failing.map(|(place, schema)| numbered("index", place, schema, &schema.failed(value))).collect();
    append_list("schemasNotSatisfied", &failing, builder);
}

/// The whole of a schema that is fulfilled where it must not be.
pub(in crate::matcher) fn fulfilled(schema: &Schema) -> Doc {
    doc! {
        "operatorName": "$jsonSchema",
        "specifiedAs": { "$jsonSchema": schema.source() },
        "reason": "schema matched",
    }
}
