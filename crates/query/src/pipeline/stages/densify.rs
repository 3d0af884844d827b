//! `$densify`: documents for the gaps in a sequence of numbers or dates.
//!
//! The documents come sorted. For each partition the last value of the sequence is remembered; a document further away than a step
//! has the missing ones made before it, and bounds that are given are filled up at the end.

use super::fill::nested;
use super::options;
use super::set_field::with_field;
use crate::memory::Held;
use crate::pipeline::parse::parse_stage;
use crate::pipeline::source::pass_on_to_source;
use crate::pipeline::{DocumentSource, PipelineContext, PipelineParser, Pulled, ShardSplit, SharedStage, StageSpec};
use crate::spill::StageResources;
use pando_base::{Error, Result, operation};
use pando_doc::{Doc, DocBuilder, FieldPath, Number, OwnedValue, Value, compare, doc, get_path, hash_value};
use pando_expr::Expression;
use pando_expr::expression::{TimeUnit, add_to_date};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

const STAGE: &str = "$densify";
/// So much is a step from a date to another by the calendar.
const STEPS_OF_DATE: u64 = 4;

#[derive(Clone, Debug, PartialEq)]
enum Bounds {
    Full,
    Partition,
    /// Without the second.
    Explicit(OwnedValue, OwnedValue),
}

struct Densify {
    field: FieldPath,
    partition_fields: Vec<String>,
    /// The partition of a document.
    partition: Option<Expression>,
    step: Number,
    unit: Option<TimeUnit>,
    bounds: Bounds,
    resources: StageResources,
    specification: Doc,
}

#[derive(Clone)]
struct DensifySpec(Arc<Densify>);

impl std::fmt::Debug for DensifySpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.specification)
    }
}

/// Reads it: a sort and the stage itself.
pub(in crate::pipeline) fn parse(value: Value<'_>, parser: &PipelineParser) -> Result<Vec<SharedStage>> {
    let densify = parse_densify(value, parser)?;
    let mut order = DocBuilder::new();
    if densify.bounds != Bounds::Full {
        densify.partition_fields.iter().for_each(|field| order.append(field, 1));
    }
    order.append(densify.field.text(), 1);
    let mut stages = parse_stage(doc! { "$sort": order.finish() }.view(), parser)?;
    stages.push(Arc::new(DensifySpec(Arc::new(densify))));
    Ok(stages)
}

/// Reads the stage without its sort.
pub(in crate::pipeline) fn parse_internal(value: Value<'_>, parser: &PipelineParser) -> Result<Vec<SharedStage>> {
    Ok(vec![Arc::new(DensifySpec(Arc::new(parse_densify(value, parser)?)))])
}

fn parse_densify(value: Value<'_>, parser: &PipelineParser) -> Result<Densify> {
    let Value::Document(specification) = value else {
        let reason = format!("The {STAGE} stage specification must be an object, found {}", value.value_type());
        return Err(Error::failed_to_parse(reason));
    };
    let (mut field, mut partition_fields, mut range) = (None, Vec::new(), None);
    for option in specification.elements() {
        match &**option.name {
            b"field" | b"partitionByFields" | b"range" if option.value.is_nullish() => {}
            b"field" => field = Some(options::string(STAGE, option)?),
            b"partitionByFields" => partition_fields = options::strings(STAGE, option)?,
            b"range" => range = Some(parse_range(options::document(STAGE, option)?)?),
            _ => return Err(options::unknown(STAGE, option)),
        }
    }
    let field = field.ok_or_else(|| options::missing(STAGE, "field"))?;
    let (step, unit, bounds) = range.ok_or_else(|| options::missing(STAGE, "range"))?;
    if partition_fields.contains(&field) {
        let reason = "partitionByFields cannot include field that is being densified";
        return Err(Error::location(8993000, reason));
    }
    let paths = partition_fields.iter().map(FieldPath::parse).collect::<Result<Vec<_>>>()?;
    let field = FieldPath::parse(field)?;
    if bounds == Bounds::Partition && paths.is_empty() {
        let reason = "One cannot specify the bounds as 'partition' without specifying a non-empty array of partitionByFields. \
                      You may have meant to specify 'full' bounds.";
        return Err(Error::location(5733408, reason));
    }
    let partition = match partition_fields.is_empty() {
        true => None,
        false => Some(Expression::parse(Value::Document(nested(&partition_fields).view()), &parser.context)?),
    };
    let specification = specification.to_doc();
    let resources = parser.resources.clone();
    Ok(Densify { field, partition_fields, partition, step, unit, bounds, resources, specification })
}

fn parse_range(range: pando_doc::DocRef<'_>) -> Result<(Number, Option<TimeUnit>, Bounds)> {
    const RANGE: &str = "$densify.range";
    let (mut step, mut unit, mut bounds) = (None, None, None);
    for option in range.elements() {
        match &**option.name {
            b"step" | b"unit" if option.value.is_nullish() => {}
            b"step" if !option.value.is_number() => {
                let reason = format!(
                    "BSON field '{RANGE}.step' is the wrong type '{}', expected types '[int, decimal, double, long]'",
                    option.value.value_type()
                );
                return Err(Error::type_mismatch(reason));
            }
            b"step" => step = Some(option.value),
            b"unit" => unit = Some(TimeUnit::parse(options::string(RANGE, option)?.as_bytes())?),
            b"bounds" => bounds = Some(option.value),
            _ => return Err(options::unknown(RANGE, option)),
        }
    }
    let step = step.ok_or_else(|| options::missing(RANGE, "step"))?;
    let bounds = bounds.ok_or_else(|| options::missing(RANGE, "bounds"))?;
    let number = step.as_number().filter(|_| compare(step, Value::Int32(0)).is_gt()).ok_or_else(|| {
        let reason = "The step parameter in a range statement must be a strictly positive numeric value";
        Error::location(5733401, reason)
    })?;
    if unit.is_some() && number.to_i64_exact().is_none() {
        let reason = "The step parameter in a range statement must be a whole number when densifying a date range";
        return Err(Error::location(6586400, reason));
    }
    let bounds = parse_bounds(bounds, step, unit)?;
    Ok((number, unit, bounds))
}

fn parse_bounds(bounds: Value<'_>, step: Value<'_>, unit: Option<TimeUnit>) -> Result<Bounds> {
    let refused = |code, reason: &str| Err(Error::location(code, reason));
    let array = match bounds {
        Value::String(text) if text == "full" => return Ok(Bounds::Full),
        Value::String(text) if text == "partition" => return Ok(Bounds::Partition),
        Value::String(_) => return refused(5946802, "Bounds string must either be 'full' or 'partition'"),
        Value::Array(array) => array,
        _ => {
            return refused(
                5733404,
                "The bounds in a range statement must be the string 'full', 'partition', or an ascending array of two numbers or two dates",
            );
        }
    };
    let ends: Vec<Value<'_>> = array.values().collect();
    let [lower, upper] = ends[..] else {
        return refused(5733403, "A bounding array in a range statement must have exactly two elements");
    };
    if compare(lower, upper).is_gt() {
        return refused(5733402, "A bounding array must be an ascending array of either two dates or two numbers");
    }
    const MIXED: &str = "A bounding array must contain either both dates or both numeric types";
    match (lower, upper) {
        (lower, _) if lower.is_number() && unit.is_some() => {
            refused(5733409, "Numeric bounds may not have unit parameter")
        }
        (lower, upper) if lower.is_number() && !upper.is_number() => refused(5733406, MIXED),
        (lower, upper) if lower.is_number() => {
            let kinds = [lower.value_type(), upper.value_type(), step.value_type()];
            if kinds.iter().any(|kind| *kind != kinds[0]) {
                return refused(5876900, "Upper bound, lower bound, and step must all have the same type");
            }
            Ok(Bounds::Explicit(lower.to_owned(), upper.to_owned()))
        }
        (Value::DateTime(_), Value::DateTime(_)) if unit.is_none() => {
            refused(5733410, "A bounding array of dates must specify a unit")
        }
        (Value::DateTime(_), Value::DateTime(_)) => Ok(Bounds::Explicit(lower.to_owned(), upper.to_owned())),
        (Value::DateTime(_), _) => refused(5733405, MIXED),
        _ => refused(5946800, "Explicit bounds must be numeric or dates"),
    }
}

impl Densify {
    /// Refuses dates if the step is a number, and numbers if it is a time.
    fn check_kind(&self, value: &OwnedValue) -> Result<()> {
        let reason = match (value, self.unit) {
            (OwnedValue::DateTime(_), None) => {
                "$densify: Encountered date value for field in collection when step does not have a date unit."
            }
            (OwnedValue::DateTime(_), Some(_)) | (_, None) => return Ok(()),
            _ => "$densify: Encountered numeric value for field in collection when step has a date unit.",
        };
        Err(Error::location(6053600, reason))
    }

    /// The value that many steps further.
    fn step_from(&self, value: &OwnedValue, count: i64) -> Result<OwnedValue> {
        self.check_kind(value)?;
        if let (OwnedValue::DateTime(date), Some(unit)) = (value, self.unit) {
            let amount = self.step.truncated_i64().saturating_mul(count);
            return add_to_date(*date, unit, amount).map(OwnedValue::DateTime);
        }
        let number = value.view().as_number().unwrap_or(Number::Int32(0));
        Ok(OwnedValue::from(if count < 0 { number.minus(self.step) } else { number.plus(self.step) }))
    }

    /// True if whole steps lead from one value to the other.
    fn is_on_step(&self, value: &OwnedValue, base: &OwnedValue) -> Result<bool> {
        if let (OwnedValue::DateTime(to), OwnedValue::DateTime(from)) = (value, base) {
            let length = self.unit.and_then(TimeUnit::milliseconds);
            if let Some(length) = length.and_then(|length| length.checked_mul(self.step.truncated_i64())) {
                return Ok(to.wrapping_sub(*from) % length.max(1) == 0);
            }
            let mut reached = base.clone();
            while compare(reached.view(), value.view()).is_lt() {
                operation::tick(STEPS_OF_DATE)?;
                reached = self.step_from(&reached, 1)?;
            }
            return Ok(compare(reached.view(), value.view()).is_eq());
        }
        let (Some(value), Some(base)) = (value.view().as_number(), base.view().as_number()) else { return Ok(false) };
        Ok(value.minus(base).modulo(self.step).is_some_and(|rest| rest.to_double() == 0.0))
    }
}

/// Documents that are being made: from a value on, up to and without an end.
struct Making {
    next: OwnedValue,
    end: OwnedValue,
    partition: Doc,
}

/// What a partition takes beside the document that says which one it is.
const KNOWN_BYTES: usize = size_of::<Known>() + 32;

fn hash_of(partition: &Doc) -> u64 {
    let mut hasher = DefaultHasher::new();
    hash_value(Value::Document(partition.view()), &mut hasher);
    hasher.finish()
}

/// What is known of a partition.
struct Known {
    partition: Doc,
    current: OwnedValue,
}

struct DensifySource {
    source: Box<dyn DocumentSource>,
    densify: Arc<Densify>,
    partitions: Vec<Known>,
    /// Where partitions of this hash are among them.
    places: HashMap<u64, Vec<usize>>,
    known: Held,
    least: Option<OwnedValue>,
    greatest: Option<OwnedValue>,
    /// The value that was reached last, in any partition.
    latest: Option<OwnedValue>,
    making: Option<Making>,
    /// Goes out behind what is being made.
    held: Option<Doc>,
    made: u64,
    /// The partition that is filled up next, once there are no more documents.
    finishing: Option<usize>,
}

fn order(left: &OwnedValue, right: &OwnedValue) -> Ordering {
    compare(left.view(), right.view())
}

impl DensifySource {
    fn partition_of(&self, document: &Doc) -> Result<Doc> {
        match &self.densify.partition {
            None => Ok(Doc::new()),
            Some(expression) => match expression.evaluate_document(document.view())?.into_value() {
                Some(OwnedValue::Document(partition)) => Ok(partition),
                _ => Ok(Doc::new()),
            },
        }
    }

    fn place_of(&self, partition: &Doc) -> Option<usize> {
        let wanted = Value::Document(partition.view());
        let is_same =
            |known: &Known| operation::goes_on(1) && compare(Value::Document(known.partition.view()), wanted).is_eq();
        let places = self.places.get(&hash_of(partition))?;
        places.iter().copied().find(|&place| self.partitions.get(place).is_some_and(is_same))
    }

    fn remember(&mut self, partition: &Doc, value: &OwnedValue) -> Result<()> {
        self.latest = Some(value.clone());
        if let Some(known) = self.place_of(partition).and_then(|place| self.partitions.get_mut(place)) {
            known.current = value.clone();
            return Ok(());
        }
        operation::ended()?;
        self.places.entry(hash_of(partition)).or_default().push(self.partitions.len());
        self.partitions.push(Known { partition: partition.clone(), current: value.clone() });
        let known_bytes = self.known.bytes() + (partition.size_bytes() + KNOWN_BYTES) as u64;
        let most_bytes = self.densify.resources.densify_memory_bytes_max;
        if known_bytes > most_bytes {
            return Err(Error::location(6007200, format!("$densify exceeded memory limit of {most_bytes}")));
        }
        self.known.set(known_bytes)
    }

    /// Makes what belongs before the document, then lets it through.
    fn take_in(&mut self, document: Doc) -> Result<Option<Doc>> {
        let densify = Arc::clone(&self.densify);
        let value = match get_path(document.view(), &densify.field) {
            None | Some(Value::Null | Value::Undefined) => return Ok(Some(document)),
            Some(value) if value.is_number() || matches!(value, Value::DateTime(_)) => value.to_owned(),
            Some(_) => return Err(Error::location(5733201, "Densify field type must be numeric or a date")),
        };
        densify.check_kind(&value)?;
        let partition = self.partition_of(&document)?;
        let known = self.place_of(&partition).and_then(|place| self.partitions.get(place)).map(|it| it.current.clone());
        let end = match &densify.bounds {
            Bounds::Explicit(lower, upper) => {
                if order(&value, lower).is_lt() {
                    if densify.partition.is_some() {
                        self.remember(&partition, &value)?;
                    }
                    return Ok(Some(document));
                }
                if order(&value, lower).is_eq() {
                    self.remember(&partition, &value)?;
                    return Ok(Some(document));
                }
                std::cmp::min_by(value.clone(), upper.clone(), order)
            }
            _ => value.clone(),
        };
        let current = match (known, &densify.bounds) {
            // What lies below the bounds is no place to go on from.
            (Some(current), Bounds::Explicit(lower, _)) if order(&current, lower).is_lt() => {
                densify.step_from(lower, -1)?
            }
            (Some(current), _) => current,
            (None, Bounds::Explicit(lower, _)) => densify.step_from(lower, -1)?,
            (None, Bounds::Full) if self.least.is_some() => {
                let least = self.least.clone().unwrap_or(OwnedValue::Null);
                densify.step_from(&least, -1)?
            }
            (None, _) => {
                // The very first step shows whether the types fit.
                densify.step_from(&value, 1)?;
                self.least.get_or_insert_with(|| value.clone());
                self.greatest = Some(value.clone());
                self.remember(&partition, &value)?;
                return Ok(Some(document));
            }
        };
        self.greatest = Some(value.clone());
        let next = densify.step_from(&current, 1)?;
        if order(&end, &next).is_le() {
            if order(&value, &next).is_eq() || order(&value, &end).is_gt() {
                self.remember(&partition, &next)?;
            } else if self.place_of(&partition).is_none() {
                self.remember(&partition, &value)?;
            }
            return Ok(Some(document));
        }
        self.remember(&partition, &current)?;
        self.making = Some(Making { next, end, partition });
        self.held = Some(document);
        Ok(None)
    }

    fn make_one(&mut self) -> Result<Option<Doc>> {
        let Some(making) = self.making.take() else { return Ok(None) };
        let densify = Arc::clone(&self.densify);
        if order(&making.next, &making.end).is_ge() {
            // A document that stands where the next would have been made goes on with the sequence.
            let held = self.held.as_ref().and_then(|held| get_path(held.view(), &densify.field));
            if held.is_some_and(|held| compare(held, making.next.view()).is_eq()) {
                self.remember(&making.partition, &making.next)?;
            }
            return Ok(None);
        }
        self.made += 1;
        let made_max = densify.resources.densified_documents_max;
        if self.made > made_max {
            let reason = format!(
                "Generated {} documents in $densify, which is over the limit of {}. Increase the \
                 'internalQueryMaxAllowedDensifyDocs' parameter to allow more generated documents",
                self.made, made_max
            );
            return Err(Error::location(5897900, reason));
        }
        check_place(&making.partition, &densify.field)?;
        let made = with_field(making.partition.view(), &densify.field, Some(making.next.view()));
        self.remember(&making.partition, &making.next)?;
        let next = densify.step_from(&making.next, 1)?;
        self.making = Some(Making { next, ..making });
        Ok(Some(made))
    }

    /// Fills a partition up once there are no more documents; false if none is left.
    fn finish_one(&mut self) -> Result<bool> {
        let densify = Arc::clone(&self.densify);
        let place = self.finishing.unwrap_or(0);
        self.finishing = Some(place + 1);
        let end = match (&densify.bounds, &densify.partition) {
            (Bounds::Explicit(_, upper), _) => upper.clone(),
            (Bounds::Full, Some(_)) => {
                let (Some(greatest), Some(latest)) = (self.greatest.clone(), self.latest.clone()) else {
                    return Ok(false);
                };
                match place == 0 && densify.is_on_step(&greatest, &latest)? {
                    true => densify.step_from(&greatest, 1)?,
                    false => greatest,
                }
            }
            _ => return Ok(false),
        };
        if place == 0 {
            self.greatest = Some(end.clone());
        }
        let known = self.partitions.get(place);
        let next = match (&densify.bounds, known) {
            (_, Some(known)) => densify.step_from(&known.current, 1)?,
            (Bounds::Explicit(lower, _), None) if place == 0 && densify.partition.is_none() => lower.clone(),
            (_, None) => return Ok(false),
        };
        let next = match &densify.bounds {
            Bounds::Explicit(lower, _) if order(&next, lower).is_lt() => lower.clone(),
            _ => next,
        };
        let partition = known.map_or_else(Doc::new, |known| known.partition.clone());
        self.making = Some(Making { next, end, partition });
        Ok(true)
    }
}

/// The field that is made must not go through values that are no documents.
fn check_place(partition: &Doc, field: &FieldPath) -> Result<()> {
    let mut inside = partition.view();
    let count = field.parts().count();
    for (place, part) in field.parts().enumerate() {
        match inside.get(part) {
            Some(Value::Array(_)) => {
                return Err(Error::location(5733307, "$densify cannot generate fields nested inside arrays"));
            }
            Some(Value::Document(nested)) => inside = nested,
            Some(_) if place + 1 < count => {
                return Err(Error::location(5733308, "$densify cannot overwrite non-object values with objects"));
            }
            _ => break,
        }
    }
    Ok(())
}

impl DocumentSource for DensifySource {
    fn next(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
        loop {
            if let Some(document) = self.make_one()? {
                return Ok(Pulled::Document(document));
            }
            if let Some(document) = self.held.take() {
                return Ok(Pulled::Document(document));
            }
            if self.finishing.is_some() {
                if !self.finish_one()? {
                    return Ok(Pulled::Exhausted);
                }
                continue;
            }
            match self.source.next(context)? {
                Pulled::Document(document) => {
                    if let Some(document) = self.take_in(document)? {
                        return Ok(Pulled::Document(document));
                    }
                }
                Pulled::Exhausted => self.finishing = Some(0),
                Pulled::Yield(cause) => return Ok(Pulled::Yield(cause)),
            }
        }
    }

    pass_on_to_source!();
}

impl StageSpec for DensifySpec {
    fn name(&self) -> &'static str {
        "$_internalDensify"
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        Ok(Box::new(DensifySource {
            source,
            densify: Arc::clone(&self.0),
            partitions: Vec::new(),
            places: HashMap::new(),
            known: self.0.resources.account.held(),
            least: None,
            greatest: None,
            latest: None,
            making: None,
            held: None,
            made: 0,
            finishing: None,
        }))
    }

    fn to_doc(&self) -> Doc {
        let fields = self.0.partition_fields.iter().map(|field| OwnedValue::from(field.as_str()));
        let fields = pando_doc::Array::from_iter(fields);
        let range = self.0.specification.get("range").unwrap_or(Value::Null);
        doc! { "$_internalDensify": { "field": self.0.field.text(), "partitionByFields": fields, "range": range } }
    }

    fn split(&self) -> ShardSplit {
        ShardSplit::OnMerger
    }
}
