//! `$group` over the measurements of whole buckets.
//!
//! The meta value is the same in a whole bucket, and a time cut to its hour is the same for all measurements between two that have it, for
//! buckets give them in the order of time. So a group by these finds its place once for a run of measurements, and accumulators are given
//! the values of columns one after the other, without documents.

use pando_base::Result;
use pando_doc::{Doc, Value};
use pando_expr::{Expression, Operand};
use pando_timeseries::{Rows, TimeseriesOptions, index_keys};

/// Where an accumulator's values come from.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// A field of the measurements.
    Field(String),
    /// What is the same for a run: a constant, or part of the meta value.
    Head,
}

/// How a group takes measurements.
#[derive(Debug)]
pub(super) struct RowPlan {
    pub(super) inputs: Vec<Input>,
    depends_on_time: bool,
}

/// Accumulators whose argument is one expression.
const ACCUMULATORS: &[&str] =
    &["$sum", "$avg", "$min", "$max", "$first", "$last", "$push", "$addToSet", "$stdDevPop", "$stdDevSamp", "$count"];

impl RowPlan {
    /// The plan for a group that is written so, if it is by nothing but the meta value and times that are cut.
    pub(super) fn of(specification: &Doc, options: &TimeseriesOptions) -> Option<RowPlan> {
        let mut plan = RowPlan { inputs: Vec::new(), depends_on_time: false };
        for element in specification.elements() {
            if element.name == "_id" {
                plan.take_id(element.value, options)?;
                continue;
            }
            let operator = element.value.as_document()?.first()?;
            let is_known = ACCUMULATORS.iter().any(|name| operator.name == *name);
            plan.inputs.push(input(operator.value, options).filter(|_| is_known)?);
        }
        Some(plan)
    }

    /// Looks at a part of what is grouped by; none if it may differ from one measurement to the next.
    fn take_id(&mut self, value: Value<'_>, options: &TimeseriesOptions) -> Option<()> {
        match value {
            Value::String(_) => {
                let text = value.as_str()?;
                let Some(path) = text.strip_prefix('$') else { return Some(()) };
                index_keys::meta_path(path, options).map(|_| ())
            }
            Value::Document(parts) => match parts.first() {
                Some(operator) if operator.name == "$dateTrunc" => {
                    self.depends_on_time = true;
                    is_cut_time(operator.value, options).then_some(())
                }
                Some(operator) if operator.name.starts_with(b"$") => None,
                _ => parts.elements().try_for_each(|part| self.take_id(part.value, options)),
            },
            Value::Array(_) => None,
            _ => Some(()),
        }
    }

    /// Where the run ends whose first measurement belongs to this group.
    pub(super) fn end(&self, rows: &Rows, start: usize, id: &Operand<'_>, by: &Expression) -> Result<usize> {
        let belongs = |row: usize| -> Result<bool> {
            let head = rows.head(row);
            Ok(by.evaluate_document(head.view())?.or_null() == id.or_null())
        };
        let last = rows.len().saturating_sub(1);
        if !self.depends_on_time || last <= start || belongs(last)? {
            return Ok(rows.len());
        }
        let (mut inside, mut outside) = (start, last);
        while outside - inside > 1 {
            let middle = inside + (outside - inside) / 2;
            match belongs(middle)? {
                true => inside = middle,
                false => outside = middle,
            }
        }
        Ok(outside)
    }
}

/// A time that is cut in the same way for each measurement; in UTC, where a later time is never cut to an earlier one.
fn is_cut_time(arguments: Value<'_>, options: &TimeseriesOptions) -> bool {
    let Value::Document(arguments) = arguments else { return false };
    arguments.elements().all(|argument| match (&**argument.name, argument.value) {
        (b"date", Value::String(_)) => {
            argument.value.as_str().and_then(|text| text.strip_prefix('$')) == Some(options.time_field.as_str())
        }
        (b"unit" | b"startOfWeek", Value::String(_)) => {
            argument.value.as_str().is_some_and(|text| !text.starts_with('$'))
        }
        (b"binSize", value) => value.is_number(),
        (b"timezone", Value::String(_)) => matches!(argument.value.as_str(), Some("UTC" | "GMT")),
        _ => false,
    })
}

fn input(value: Value<'_>, options: &TimeseriesOptions) -> Option<Input> {
    match value {
        Value::String(_) => {
            let Some(path) = value.as_str()?.strip_prefix('$') else { return Some(Input::Head) };
            if index_keys::meta_path(path, options).is_some() {
                return Some(Input::Head);
            }
            let is_field = !path.is_empty() && !path.contains(['$', '.']);
            is_field.then(|| Input::Field(path.to_owned()))
        }
        Value::Document(arguments) => arguments.is_empty().then_some(Input::Head),
        Value::Array(_) => None,
        _ => Some(Input::Head),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn x29_groups_by_meta_and_cut_time_take_rows() {
        let options = TimeseriesOptions::parse(doc! { "timeField": "t", "metaField": "m" }.view()).unwrap();
        let hour = doc! { "$dateTrunc": { "date": "$t", "unit": "hour", "binSize": 2 } };
        let plan = RowPlan::of(
            &doc! { "_id": { "m": "$m.a", "h": hour.view() }, "a": { "$avg": "$x" }, "n": { "$sum": 1 }, "s": { "$max": "$m" } },
            &options,
        );
        let plan = plan.unwrap();
        assert_eq!(plan.inputs, [Input::Field("x".to_owned()), Input::Head, Input::Head]);
        assert!(plan.depends_on_time);
        for refused in [
            doc! { "_id": "$t" },
            doc! { "_id": "$x", "n": { "$sum": 1 } },
            doc! { "_id": "$m", "n": { "$sum": "$x.y" } },
            doc! { "_id": "$m", "n": { "$push": "$$ROOT" } },
            doc! { "_id": "$m", "n": { "$sum": { "$add": ["$x", 1] } } },
            doc! { "_id": "$m", "n": { "$firstN": { "input": "$x", "n": 2 } } },
            doc! { "_id": { "$dateTrunc": { "date": "$t", "unit": "$m" } } },
            doc! { "_id": { "$dateTrunc": { "date": "$t", "unit": "day", "timezone": "Europe/Berlin" } } },
            doc! { "_id": { "$hour": "$t" } },
        ] {
            assert!(RowPlan::of(&refused, &options).is_none(), "{refused}");
        }
    }
}
