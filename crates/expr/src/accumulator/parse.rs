//! Accumulators as `$group` writes them: `{$sum: "$a"}`.

use super::AccumulatorKind;
use super::javascript::{parse_script_accumulator, parse_script_reduce};
use super::percentile::parse_percentile;
use crate::{Expression, ParseContext};
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{Array, Doc, DocRef, Element, OwnedValue, Value, doc};

/// Reads an accumulator of a group: what is reckoned, of what, and for some how many.
pub fn parse_accumulator(
    element: Element<'_>,
    context: &ParseContext,
) -> Result<(AccumulatorKind, Expression, Option<Expression>)> {
    if matches!(element.value, Value::Array(_)) {
        let reason = format!("The {} accumulator is a unary operator", element.name);
        return Err(Error::location(40237, reason));
    }
    if let Some(kind) = unary_accumulator(element.name) {
        return Ok((kind, Expression::parse(element.value, context)?.optimize()?, None));
    }
    match &**element.name {
        b"$count" => {
            if !matches!(element.value, Value::Document(doc) if doc.is_empty()) {
                let reason = "$count takes no arguments, i.e. $count:{}";
                return Err(Error::new(ErrorCode::TypeMismatch, reason));
            }
            Ok((AccumulatorKind::Count, Expression::constant(OwnedValue::Int32(1)), None))
        }
        b"$percentile" | b"$median" => {
            let is_median = element.name == "$median";
            let not_object = if is_median { 7436100 } else { 7429703 };
            let (shares, input) = parse_percentile(element, not_object, context)?;
            let input = Expression::parse(input, context)?.optimize()?;
            Ok((AccumulatorKind::Percentile { shares, is_median }, input, None))
        }
        b"$accumulator" => {
            let (functions, input, initial) = parse_script_accumulator(element, context)?;
            Ok((AccumulatorKind::Script(functions), input, initial))
        }
        b"$_internalJsReduce" => {
            let (functions, input, initial) = parse_script_reduce(element, context)?;
            Ok((AccumulatorKind::Script(functions), input, initial))
        }
        b"$firstN" => with_count(AccumulatorKind::FirstN, element, context),
        b"$lastN" => with_count(AccumulatorKind::LastN, element, context),
        b"$minN" => with_count(AccumulatorKind::MinN, element, context),
        b"$maxN" => with_count(AccumulatorKind::MaxN, element, context),
        b"$top" => by_pattern(element, false, true, context),
        b"$bottom" => by_pattern(element, true, true, context),
        b"$topN" => by_pattern(element, false, false, context),
        b"$bottomN" => by_pattern(element, true, false, context),
        _ => Err(Error::location(15952, format!("unknown group operator '{}'", element.name))),
    }
}

/// The accumulators that take one expression.
pub fn unary_accumulator(name: &[u8]) -> Option<AccumulatorKind> {
    Some(match name {
        b"$sum" => AccumulatorKind::Sum,
        b"$avg" => AccumulatorKind::Avg,
        b"$min" => AccumulatorKind::Min,
        b"$max" => AccumulatorKind::Max,
        b"$first" => AccumulatorKind::First,
        b"$last" => AccumulatorKind::Last,
        b"$push" => AccumulatorKind::Push,
        b"$addToSet" => AccumulatorKind::AddToSet,
        b"$mergeObjects" => AccumulatorKind::MergeObjects,
        b"$stdDevPop" => AccumulatorKind::StdDevPop,
        b"$stdDevSamp" => AccumulatorKind::StdDevSamp,
        _ => return None,
    })
}

fn operands<'a>(element: Element<'a>, code: i32) -> Result<DocRef<'a>> {
    match element.value {
        Value::Document(doc) => Ok(doc),
        _ => {
            let reason = format!("specification must be an object; found {element}");
            Err(Error::location(code, reason))
        }
    }
}

fn with_count(
    kind: AccumulatorKind,
    element: Element<'_>,
    context: &ParseContext,
) -> Result<(AccumulatorKind, Expression, Option<Expression>)> {
    let (mut count, mut input) = (None, None);
    let not_object = match kind {
        AccumulatorKind::FirstN | AccumulatorKind::LastN => 5787801,
        _ => 5787900,
    };
    for field in operands(element, not_object)?.elements() {
        match &**field.name {
            b"n" => count = Some(Expression::parse(field.value, context)?.folded()?),
            b"input" => input = Some(Expression::parse(field.value, context)?),
            _ => {
                let reason = format!("Unknown argument for '{}' operator: {}", element.name, field.name);
                return Err(Error::location(5787901, reason));
            }
        }
    }
    let count = count.ok_or_else(|| Error::location(5787906, "Missing value for 'n'"))?;
    let input = input.ok_or_else(|| Error::location(5787907, "Missing value for 'input'"))?;
    Ok((kind, input, Some(count)))
}

fn by_pattern(
    element: Element<'_>,
    from_end: bool,
    is_single: bool,
    context: &ParseContext,
) -> Result<(AccumulatorKind, Expression, Option<Expression>)> {
    let (mut count, mut pattern, mut output): (_, Option<Doc>, Option<OwnedValue>) = (None, None, None);
    for field in operands(element, 5788001)?.elements() {
        match (&**field.name, field.value) {
            (b"n", value) if !is_single => count = Some(Expression::parse(value, context)?),
            (b"sortBy", Value::Document(doc)) => {
                check_pattern(doc)?;
                pattern = Some(doc.to_doc());
            }
            (b"sortBy", value) => {
                return Err(Error::location(
                    10065,
                    format!("invalid parameter: expected an object (sortBy), not {value}"),
                ));
            }
            (b"output", value) => output = Some(value.to_owned()),
            _ => {
                let reason = format!("Unknown argument to {} '{}'", element.name, field.name);
                return Err(Error::location(5788002, reason));
            }
        }
    }
    if !is_single && count.is_none() {
        return Err(Error::location(5788003, "Missing value for 'n'"));
    }
    let output = output.ok_or_else(|| Error::location(5788004, "Missing value for 'output'"))?;
    let pattern = pattern.ok_or_else(|| Error::location(5788005, "Missing value for 'sortBy'"))?;
    let array = Array::from_iter([output]);
    // Missing output is null, which an array makes of it.
    let pair = doc! { "document": "$$ROOT", "output": { "$arrayElemAt": [array, 0] } };
    let input = Expression::parse(Value::Document(pair.view()), context)?;
    Ok((AccumulatorKind::Top { pattern, from_end, is_single }, input, count))
}

/// Refuses orders that are none, with the codes of `$sort`.
fn check_pattern(pattern: DocRef<'_>) -> Result<()> {
    for field in pattern.elements() {
        let order = match field.value {
            // The score of a text search, and the like.
            Value::Document(_) => continue,
            value => value.as_number(),
        };
        match order.map(|order| order.to_double()) {
            Some(1.0 | -1.0) => {}
            Some(_) => {
                let reason = "$sort key ordering must be 1 (for ascending) or -1 (for descending)";
                return Err(Error::location(15975, reason));
            }
            None => {
                let reason = format!("Illegal key in $sort specification: {field}");
                return Err(Error::location(15974, reason));
            }
        }
    }
    Ok(())
}
