//! Reading `$setWindowFields`, and the stages that it becomes.

use super::function::{FunctionParser, WindowFunction};
use super::source::{WindowField, WindowSpec, Windows};
use crate::pipeline::parse::parse_stage;
use crate::pipeline::stages::options;
use crate::pipeline::{PipelineParser, SharedStage};
use crate::request::{SortKey, SortPattern};
use pando_base::{Error, Result};
use pando_doc::{DocBuilder, DocRef, FieldPath, Value, doc};
use pando_expr::Expression;
use std::sync::Arc;

const STAGE: &str = "$setWindowFields";
/// Where the partition of a document is kept while it is sorted by it.
const PARTITION: &str = "__internal_setWindowFields_partition_key";

/// Reads it: what makes the partition a field, the sort, the stage itself.
pub(in crate::pipeline) fn parse(value: Value<'_>, parser: &PipelineParser) -> Result<Vec<SharedStage>> {
    parse_stages(value, parser, true)
}

/// Reads the stage for documents that are sorted already.
pub(in crate::pipeline) fn parse_internal(value: Value<'_>, parser: &PipelineParser) -> Result<Vec<SharedStage>> {
    parse_stages(value, parser, false)
}

fn parse_stages(value: Value<'_>, parser: &PipelineParser, sorts: bool) -> Result<Vec<SharedStage>> {
    let Value::Document(specification) = value else {
        let found = value.value_type();
        let reason = format!("the {STAGE} stage specification must be an object, found {found}");
        return Err(Error::failed_to_parse(reason));
    };
    let (mut partition_by, mut sort_by, mut output) = (None, None, None);
    for option in specification.elements() {
        match &**option.name {
            b"partitionBy" => partition_by = Some(option.value),
            b"sortBy" | b"output" if option.value.is_nullish() => {}
            b"sortBy" => sort_by = Some(options::document(STAGE, option)?),
            b"output" => output = Some(options::document(STAGE, option)?),
            _ => return Err(options::unknown(STAGE, option)),
        }
    }
    let output = output.ok_or_else(|| options::missing(STAGE, "output"))?;
    // An order by nothing is an order, too, for what asks whether there is one.
    let parsed = |sort| SortPattern::parse(sort).map(|sort| sort.unwrap_or_else(SortPattern::by_nothing));
    let sort = sort_by.map(parsed).transpose()?;
    let fields = parse_fields(output, sort.as_ref(), parser)?;
    let mut stages = Vec::new();
    let partition = partition_by.map(|value| parse_partition(value, parser)).transpose()?;
    let (path, is_complex) = match partition.as_ref() {
        None => (None, false),
        Some(expression) if expression.as_constant().is_some() => (None, false),
        Some(expression) => match expression.as_field() {
            Some(path) => (Some(path.clone()), false),
            None => (Some(FieldPath::parse(PARTITION)?), true),
        },
    };
    if let (true, Some(value)) = (is_complex, partition_by) {
        stages.extend(parse_stage(doc! { "$addFields": { (PARTITION): value } }.view(), parser)?);
    }
    let mut order = DocBuilder::new();
    if let Some(path) = &path {
        order.append(path.text(), 1);
    }
    if let Some(sort_by) = sort_by {
        order.append_all(sort_by);
    }
    let order = order.finish();
    if !order.is_empty() && sorts {
        stages.extend(parse_stage(doc! { "$sort": order }.view(), parser)?);
    }
    let key = match sort.as_ref().map(SortPattern::parts) {
        Some([part]) => match &part.key {
            SortKey::Path(path) => Some(Expression::field(path.clone())),
            SortKey::Meta(_) => None,
        },
        _ => None,
    };
    stages.push(Arc::new(WindowSpec(Arc::new(Windows {
        partition: path.map(Expression::field),
        key,
        sort: sort.map(|sort| sort.to_doc()),
        fields,
        output: output.to_doc(),
        collator: parser.context.collator.clone(),
        limits: parser.context.limits,
        resources: parser.resources.clone(),
    }))));
    if is_complex {
        stages.extend(parse_stage(doc! { "$unset": PARTITION }.view(), parser)?);
    }
    Ok(stages)
}

fn parse_partition(value: Value<'_>, parser: &PipelineParser) -> Result<Expression> {
    let expression = Expression::parse(value, &parser.context)?
        .optimize()
        .map_err(|error| error.context("Failed to optimize partitionBy expression"))?;
    if matches!(expression.as_constant(), Some(Some(Value::Array(_)))) {
        let reason = "An expression used to partition cannot evaluate to value of type array";
        return Err(Error::type_mismatch(reason));
    }
    Ok(expression)
}

fn parse_fields(output: DocRef<'_>, sort: Option<&SortPattern>, parser: &PipelineParser) -> Result<Vec<WindowField>> {
    let functions = FunctionParser { parser, sort };
    let mut fields: Vec<WindowField> = Vec::new();
    for field in output.elements() {
        let path = FieldPath::parse(field.name)?;
        let overlaps = |other: &WindowField| other.path.parts().zip(path.parts()).all(|(left, right)| left == right);
        if fields.iter().any(overlaps) {
            let reason = "$setWindowFields 'output' specification contains two conflicting paths";
            return Err(Error::location(6307900, reason));
        }
        let Value::Document(function) = field.value else {
            return Err(Error::failed_to_parse(format!("The field '{}' must be an object", field.name)));
        };
        let function: WindowFunction = functions.parse(function)?;
        fields.push(WindowField { path, function });
    }
    Ok(fields)
}
