//! Why a document does not fulfil a filter: the details of a failed validation.
//!
//! The filter is walked as it was written, not as it was parsed: details show the client's own clauses. Each clause is asked
//! again, by itself; this happens only after a document was refused, so speed does not matter. Under a negation the question is
//! why a clause *is* fulfilled, and reasons turn around.

use super::MatchExpression;
use super::parse::is_operator_document;
use super::schema::{Schema, fulfilled};
use crate::{Expression, ParseContext};
use bstr::{BStr, ByteSlice};
use pando_base::{Error, Result};
use pando_doc::{
    ArrayRef, Doc, DocBuilder, DocRef, Element, FieldPath, LeafArrays, OwnedValue, PathOptions, Value, ValueType, doc,
    visit_path,
};
use std::ops::ControlFlow;

/// How many values are shown as considered.
const CONSIDERED_MAX: usize = 10;

/// The most bytes that considered values may have together.
const CONSIDERED_BYTES_MAX: usize = 1024 * 1024;

/// The details of why the document does not match the filter. Empty if it does.
pub fn explain_failure(filter: DocRef<'_>, document: DocRef<'_>, context: &ParseContext) -> Result<Doc> {
    Ok(Why { document, context }.filter(filter, false)?.unwrap_or_default())
}

struct Why<'w> {
    document: DocRef<'w>,
    context: &'w ParseContext,
}

/// A part of a filter that is fulfilled or not by itself.
#[derive(Clone, Copy)]
enum Clause<'f> {
    /// An operator on the whole document.
    Document(Element<'f>),
    /// A path that has to be equal to a value, or to match a pattern.
    Equality(Element<'f>),
    /// An operator on what a path leads to; the document has all operators on it, for those that belong together.
    Path(&'f BStr, Element<'f>, DocRef<'f>),
}

impl Clause<'_> {
    /// The clause as a filter.
    fn to_doc(self) -> Doc {
        match self {
            Clause::Document(element) | Clause::Equality(element) => doc! { (element.name): element.value },
            Clause::Path(path, operator, all) if operator.name == "$regex" => {
                let mut operators = doc! { "$regex": operator.value };
                if let Some(options) = all.get("$options") {
                    operators = doc! { "$regex": operator.value, "$options": options };
                }
                doc! { (path): operators }
            }
            Clause::Path(path, operator, _) => doc! { (path): { (operator.name): operator.value } },
        }
    }
}

fn clauses(filter: DocRef<'_>) -> Vec<Clause<'_>> {
    let mut found = Vec::new();
    for element in filter.elements() {
        match element.value {
            _ if element.name == "$comment" => {}
            _ if element.name.starts_with(b"$") => found.push(Clause::Document(element)),
            Value::Document(operators) if is_operator_document(operators) => {
                let own = operators.elements().filter(|operator| operator.name != "$options");
                found.extend(own.map(|operator| Clause::Path(element.name, operator, operators)));
            }
            _ => found.push(Clause::Equality(element)),
        }
    }
    found
}

impl Why<'_> {
    /// Why a filter fails; inverted, why it does not. None if that is not so.
    fn filter(&self, filter: DocRef<'_>, inverted: bool) -> Result<Option<Doc>> {
        match clauses(filter).as_slice() {
            [only] => self.clause(*only, inverted),
            several => self.group("$and", several.len(), inverted, |index| match several.get(index) {
                Some(clause) => self.clause(*clause, inverted),
                None => Ok(None),
            }),
        }
    }

    fn clause(&self, clause: Clause<'_>, inverted: bool) -> Result<Option<Doc>> {
        if let Clause::Document(element) = clause {
            return self.on_document(element, inverted);
        }
        if self.is_silent(&clause.to_doc(), inverted)? {
            return Ok(None);
        }
        match clause {
            Clause::Path(path, operator, _) if operator.name == "$not" => {
                let details = self.filter(doc! { (path): operator.value }.view(), !inverted)?;
                Ok(details.map(|details| doc! { "operatorName": "$not", "details": details }))
            }
            Clause::Path(path, operator, _) => self.on_path(path, operator, clause, inverted).map(Some),
            Clause::Equality(element) => {
                let is_pattern = matches!(element.value, Value::Regex { .. });
                let name = BStr::new(if is_pattern { "$regex" } else { "$eq" });
                let operator = Element { name, value: element.value };
                self.on_path(element.name, operator, clause, inverted).map(Some)
            }
            Clause::Document(_) => Ok(None),
        }
    }

    /// True if a filter has nothing to tell: it is fulfilled, or, inverted, it is not. One that cannot be evaluated has.
    fn is_silent(&self, filter: &Doc, inverted: bool) -> Result<bool> {
        let expression = MatchExpression::parse(filter.view(), self.context)?;
        Ok(expression.try_matches(self.document).is_ok_and(|is_match| is_match != inverted))
    }

    fn on_document(&self, element: Element<'_>, inverted: bool) -> Result<Option<Doc>> {
        match (&**element.name, element.value) {
            (b"$and" | b"$or", Value::Array(filters)) => self.branches(element.name, filters, inverted, inverted),
            (b"$nor", Value::Array(filters)) => self.branches(element.name, filters, inverted, !inverted),
            (b"$expr", expression) => self.expression(expression, inverted),
            (b"$jsonSchema", Value::Document(schema)) => {
                let schema = Schema::parse(schema, self.context)?;
                match inverted {
                    true => Ok(schema.matches(self.document).then(|| fulfilled(&schema))),
                    false => Ok(schema.explain(self.document)),
                }
            }
            _ => {
                let filter = doc! { (element.name): element.value };
                if self.is_silent(&filter, inverted)? {
                    return Ok(None);
                }
                Ok(Some(doc! {
                    "operatorName": element.name,
                    "specifiedAs": filter,
                    "reason": if inverted { "expression did match" } else { "expression did not match" },
                }))
            }
        }
    }

    /// A list of filters: `asked` says whether each is asked why it is fulfilled.
    fn branches(&self, name: &BStr, filters: ArrayRef<'_>, inverted: bool, asked: bool) -> Result<Option<Doc>> {
        let whole = doc! { (name): filters };
        if self.is_silent(&whole, inverted)? {
            return Ok(None);
        }
        self.group(&name.to_str_lossy(), filters.len(), asked, |index| match filters.get(index) {
            Some(Value::Document(filter)) => self.filter(filter, asked),
            _ => Ok(None),
        })
    }

    /// The clauses of a list that have something to tell; none if nobody has.
    fn group(
        &self,
        name: &str,
        count: usize,
        asked: bool,
        details: impl Fn(usize) -> Result<Option<Doc>>,
    ) -> Result<Option<Doc>> {
        let mut told: Vec<Doc> = Vec::new();
        for index in 0..count {
            if let Some(details) = details(index)? {
                told.push(doc! { "index": i32::try_from(index).unwrap_or(i32::MAX), "details": details });
            }
        }
        if told.is_empty() {
            return Ok(None);
        }
        let list = if asked { "clausesSatisfied" } else { "clausesNotSatisfied" };
        let mut builder = DocBuilder::new();
        builder.append("operatorName", name);
        builder.array(list, |array| told.iter().for_each(|clause| array.push(clause)));
        Ok(Some(builder.finish()))
    }

    fn expression(&self, expression: Value<'_>, inverted: bool) -> Result<Option<Doc>> {
        let mut builder = DocBuilder::new();
        builder.append("operatorName", "$expr");
        builder.append("specifiedAs", doc! { "$expr": expression });
        match Expression::parse(expression, self.context)?.evaluate_document(self.document) {
            Ok(result) if result.is_true() != inverted => return Ok(None),
            Ok(result) => {
                builder.append("reason", if inverted { "expression did match" } else { "expression did not match" });
                builder.append_some("expressionResult", result.into_value());
            }
            Err(error) => {
                builder.append("reason", "failed to evaluate aggregation expression");
                builder.append("details", error_details(&error));
            }
        }
        Ok(Some(builder.finish()))
    }

    fn on_path(&self, path: &BStr, operator: Element<'_>, clause: Clause<'_>, inverted: bool) -> Result<Doc> {
        let considered = self.considered(path, operator.name)?;
        let mut builder = DocBuilder::new();
        builder.append("operatorName", operator.name);
        builder.append("specifiedAs", clause.to_doc());
        if operator.name == "$exists" {
            let is_there = considered.is_some();
            builder.append("reason", if is_there { "path does exist" } else { "path does not exist" });
            return Ok(builder.finish());
        }
        let Some(values) = considered else {
            builder.append("reason", "field was missing");
            return Ok(builder.finish());
        };
        let is_list = matches!(&**operator.name, b"$size" | b"$elemMatch" | b"$all");
        let expected = expected_types(operator.name);
        let has_expected = |value: &OwnedValue| expected.is_empty() || expected.contains(&value.value_type().name());
        let is_mismatch = !inverted && !values.is_empty() && !values.iter().any(has_expected);
        if is_mismatch {
            builder.append("reason", "type did not match");
            append_types(&values, &mut builder);
            builder.array("expectedTypes", |array| expected.iter().for_each(|name| array.push(*name)));
        } else {
            builder.append("reason", reason(operator.name, inverted));
        }
        append_considered(&values, is_list, &mut builder);
        if operator.name == "$type" {
            append_types(&values, &mut builder);
        }
        Ok(builder.finish())
    }

    /// The values that the operator looked at; none if the path leads nowhere.
    fn considered(&self, path: &BStr, operator: &BStr) -> Result<Option<Vec<OwnedValue>>> {
        let as_whole = matches!(&**operator, b"$size" | b"$elemMatch" | b"$all" | b"$exists");
        let leaf = if as_whole { LeafArrays::NoTraversal } else { LeafArrays::TraverseOmitArray };
        let options = PathOptions { leaf, ..PathOptions::default() };
        let mut values = Vec::new();
        let path = FieldPath::lenient(path)?;
        let _: ControlFlow<()> = visit_path(self.document, &path, options, &mut |visit| {
            values.extend(visit.value.map(|value| value.to_owned()));
            ControlFlow::Continue(())
        });
        let is_there = !values.is_empty() || leads_somewhere(self.document, &path);
        Ok(is_there.then_some(values))
    }
}

/// True if the path ends in an array, which may be empty.
fn leads_somewhere(document: DocRef<'_>, path: &FieldPath) -> bool {
    let options = PathOptions { leaf: LeafArrays::NoTraversal, ..PathOptions::default() };
    visit_path(document, path, options, &mut |visit| match visit.value {
        Some(_) => ControlFlow::Break(()),
        None => ControlFlow::Continue(()),
    })
    .is_break()
}

fn error_details(error: &Error) -> Doc {
    doc! { "code": error.code().number(), "codeName": &*error.code().name(), "errmsg": error.reason() }
}

/// The names of the types that an operator is for; empty if it is for all.
fn expected_types(operator: &BStr) -> &'static [&'static str] {
    match &**operator {
        b"$mod" => &["decimal", "double", "int", "long"],
        b"$regex" => &["regex", "string", "symbol"],
        b"$bitsAllSet" | b"$bitsAllClear" | b"$bitsAnySet" | b"$bitsAnyClear" => {
            &["binData", "decimal", "double", "int", "long"]
        }
        b"$size" | b"$elemMatch" | b"$all" => &["array"],
        _ => &[],
    }
}

/// Why an operator fails, or, inverted, why it does not.
fn reason(operator: &BStr, inverted: bool) -> &'static str {
    let (failed, succeeded) = match &**operator {
        // These are negations: they fail where their opposite does not.
        b"$ne" => ("comparison succeeded", "comparison failed"),
        b"$nin" => ("matching value found in array", "no matching value found in array"),
        b"$in" => ("no matching value found in array", "matching value found in array"),
        b"$type" => ("type did not match", "type did match"),
        b"$mod" => ("$mod did not evaluate to expected remainder", "$mod did evaluate to expected remainder"),
        b"$regex" => ("regular expression did not match", "regular expression did match"),
        b"$size" => ("array length was not equal to given size", "array length was equal to given size"),
        b"$elemMatch" => ("array did not satisfy the child predicate", "array did satisfy the child predicate"),
        b"$all" => ("array did not contain all specified values", "array did contain all specified values"),
        b"$bitsAllSet" | b"$bitsAllClear" | b"$bitsAnySet" | b"$bitsAnyClear" => {
            ("bitwise operator failed to match", "bitwise operator matched successfully")
        }
        _ => ("comparison failed", "comparison succeeded"),
    };
    if inverted { succeeded } else { failed }
}

/// The type that all values have, or their types.
fn append_types(values: &[OwnedValue], builder: &mut DocBuilder) {
    let mut types: Vec<&'static str> = values.iter().map(|value| ValueType::name(value.value_type())).collect();
    types.sort_unstable();
    types.dedup();
    match types.as_slice() {
        [] => {}
        [only] => builder.append("consideredType", *only),
        several => builder.array("consideredTypes", |array| several.iter().for_each(|name| array.push(*name))),
    }
}

fn append_considered(values: &[OwnedValue], is_whole: bool, builder: &mut DocBuilder) {
    let mut size_bytes = 0;
    let shown = values.iter().take(CONSIDERED_MAX).take_while(|value| {
        size_bytes += doc! { "": *value }.size_bytes();
        size_bytes <= CONSIDERED_BYTES_MAX
    });
    let shown: Vec<&OwnedValue> = shown.collect();
    let is_truncated = shown.len() < values.len();
    match shown.as_slice() {
        [only] if !is_truncated || is_whole => builder.append("consideredValue", *only),
        several => builder.array("consideredValues", |array| several.iter().for_each(|value| array.push(*value))),
    }
    if is_truncated {
        builder.append("consideredValuesTruncated", true);
    }
}
