//! `$bucketAuto`: documents in a given number of ranges of about the same size.

use super::granularity::Granularity;
use super::group::{GroupField, parse_field, paths_of};
use super::ordering;
use crate::memory::Held;
use crate::pipeline::source::pass_on_to_source;
use crate::pipeline::{
    DocumentSource, Needs, PipelineContext, PipelineParser, Pulled, ShardSplit, SharedStage, StageFacts, StageSpec,
};
use crate::spill::{KeyedDocument, StageResources, note_sorted};
use pando_base::{Error, Result};
use pando_doc::{Doc, DocBuilder, DocRef, Number, OwnedValue, Value, compare_with, doc};
use pando_expr::{Accumulator, Expression, ExpressionLimits, SharedCollator};
use pando_keystring::{KeyOrdering, StackBuilder, Version};
use pando_operation::Operation;
use pando_sorter::{Sorted, Sorter};
use std::sync::Arc;

struct BucketAuto {
    group_by: Expression,
    buckets: i32,
    fields: Vec<GroupField>,
    granularity: Option<Granularity>,
    specification: Doc,
    collator: Option<SharedCollator>,
    limits: ExpressionLimits,
    resources: StageResources,
}

#[derive(Clone)]
struct BucketAutoSpec(Arc<BucketAuto>);

impl std::fmt::Debug for BucketAutoSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.specification)
    }
}

/// Reads it.
pub(in crate::pipeline) fn parse(value: Value<'_>, parser: &PipelineParser) -> Result<SharedStage> {
    let Value::Document(options) = value else {
        let reason = format!("The argument to $bucketAuto must be an object, but found type: {}", value.value_type());
        return Err(Error::location(40240, reason));
    };
    let (mut group_by, mut buckets, mut granularity) = (None, None, None);
    let mut fields = Vec::new();
    for option in options.elements() {
        match (&**option.name, option.value) {
            (b"groupBy", value) => group_by = Some(parse_group_by(value, parser)?),
            (b"buckets", value) => buckets = Some(parse_buckets(value)?),
            (b"output", Value::Document(output)) => {
                fields = output.elements().map(|field| parse_field(field, parser)).collect::<Result<Vec<_>>>()?;
            }
            (b"output", other) => {
                let reason =
                    format!("The $bucketAuto 'output' field must be an object, but found type: {}", other.value_type());
                return Err(Error::location(40244, reason));
            }
            (b"granularity", Value::String(name)) => granularity = Some(Granularity::parse(&name.to_string())?),
            (b"granularity", other) => {
                let reason = format!(
                    "The $bucketAuto 'granularity' field must be a string, but found type: {}",
                    other.value_type()
                );
                return Err(Error::location(40261, reason));
            }
            _ => return Err(Error::location(40245, format!("Unrecognized option to $bucketAuto: {}", option.name))),
        }
    }
    let (Some(group_by), Some(buckets)) = (group_by, buckets) else {
        return Err(Error::location(40246, "$bucketAuto requires 'groupBy' and 'buckets' to be specified"));
    };
    if buckets <= 0 {
        let reason = format!("The $bucketAuto 'buckets' field must be greater than 0, but found: {buckets}");
        return Err(Error::location(40243, reason));
    }
    if fields.is_empty() {
        let count = doc! { "count": { "$sum": 1 } };
        fields = count.elements().map(|field| parse_field(field, parser)).collect::<Result<Vec<_>>>()?;
    }
    if fields.iter().any(|field| field.count.as_ref().is_some_and(|count| count.as_constant().is_none())) {
        return Err(Error::location(4544714, "Can't refer to the group key in $bucketAuto"));
    }
    Ok(Arc::new(BucketAutoSpec(Arc::new(BucketAuto {
        group_by,
        buckets,
        fields,
        granularity,
        specification: options.to_doc(),
        collator: parser.context.collator.clone(),
        limits: parser.context.limits,
        resources: parser.resources.clone(),
    }))))
}

fn parse_group_by(value: Value<'_>, parser: &PipelineParser) -> Result<Expression> {
    let is_expression = match value {
        Value::Document(doc) => doc.first().is_some_and(|first| first.name.starts_with(b"$")),
        Value::String(text) => text.starts_with(b"$"),
        _ => false,
    };
    if is_expression {
        return Expression::parse(value, &parser.context)?.optimize();
    }
    let reason = format!(
        "The $bucketAuto 'groupBy' field must be defined as a $-prefixed path or an expression object, but found: {value}"
    );
    Err(Error::location(40239, reason))
}

fn parse_buckets(value: Value<'_>) -> Result<i32> {
    let Some(number) = value.as_number() else {
        let reason =
            format!("The $bucketAuto 'buckets' field must be a numeric value, but found type: {}", value.value_type());
        return Err(Error::location(40241, reason));
    };
    number.to_i64_exact().and_then(|whole| i32::try_from(whole).ok()).ok_or_else(|| {
        let shown = number.to_double();
        let reason =
            format!("The $bucketAuto 'buckets' field must be representable as a 32-bit integer, but found {shown}");
        Error::location(40242, reason)
    })
}

struct BucketAutoSource {
    source: Box<dyn DocumentSource>,
    spec: Arc<BucketAuto>,
    sorter: Sorter<KeyedDocument>,
    held: Held,
    /// Keys and documents in order, once all are there; and the first of them.
    sorted: Option<Sorted<KeyedDocument>>,
    front: Option<KeyedDocument>,
    /// How many documents a bucket gets, once all are there.
    size: Option<u64>,
    made: i32,
    last_max: Option<OwnedValue>,
}

impl BucketAutoSource {
    fn take_in(&mut self, document: Doc) -> Result<()> {
        let key = self.spec.group_by.evaluate_document(document.view())?.into_value();
        if self.spec.granularity.is_some() {
            check_rounded(key.as_ref())?;
        }
        let key = key.unwrap_or(OwnedValue::Null);
        let mut bytes = StackBuilder::new(Version::V1, KeyOrdering::ASCENDING);
        match &self.spec.collator {
            Some(collator) => bytes.append_collated(key.view(), &**collator)?,
            None => bytes.append(key.view())?,
        }
        self.sorter.add(bytes.bytes(), KeyedDocument { key, document })?;
        self.held.set(self.sorter.memory_bytes())
    }

    fn is_equal(&self, left: &OwnedValue, right: &OwnedValue) -> bool {
        compare_with(left.view(), right.view(), &ordering::options(&self.spec.collator)).is_eq()
    }

    fn turn_around(&mut self, operation: &Operation) -> Result<()> {
        self.sorted = Some(self.sorter.finish()?);
        note_sorted(operation, &self.sorter.statistics());
        let size = (self.sorter.statistics().entries as f64 / f64::from(self.spec.buckets)).round() as u64;
        self.size = Some(size.max(1));
        self.step().map(|_| ())
    }

    /// Takes the first entry; the next one becomes the first.
    fn step(&mut self) -> Result<Option<KeyedDocument>> {
        let next = match &mut self.sorted {
            Some(sorted) => sorted.next_entry()?.map(|(_, entry)| entry),
            None => None,
        };
        Ok(std::mem::replace(&mut self.front, next))
    }

    /// The next bucket: so many documents, and those that cannot be parted from the last of them.
    fn next_bucket(&mut self, size: u64) -> Result<Option<Doc>> {
        let spec = Arc::clone(&self.spec);
        let Some(first) = &self.front else { return Ok(None) };
        let mut least = first.key.clone();
        if let Some(granularity) = &spec.granularity {
            least = match self.last_max.take() {
                Some(last) => last,
                None => rounded(&least, |number| granularity.round_down(number))?,
            };
        }
        self.made += 1;
        let is_last = self.made == spec.buckets;
        let mut accumulators = Vec::with_capacity(spec.fields.len());
        for field in &spec.fields {
            let count = field.count.as_ref().map(|count| count.evaluate_document(DocRef::EMPTY)).transpose()?;
            let accumulator = Accumulator::new(&field.kind, count.as_ref(), spec.collator.clone())?;
            accumulators.push(accumulator.within(spec.limits));
        }
        let mut most = least.clone();
        let mut taken = 0;
        while is_last || taken < size {
            let Some(KeyedDocument { key, document }) = self.step()? else { break };
            add(&spec, &mut accumulators, &document)?;
            most = key;
            taken += 1;
        }
        let most = self.upper_bound(&spec, most, &mut accumulators)?;
        self.last_max = Some(most.clone());
        let mut builder = DocBuilder::new();
        builder.document("_id", |id| {
            id.append("min", &least);
            id.append("max", &most);
        });
        for (field, accumulator) in spec.fields.iter().zip(accumulators) {
            builder.append(&field.name, accumulator.finish()?.unwrap_or(OwnedValue::Null));
        }
        Ok(Some(builder.finish()))
    }

    fn upper_bound(
        &mut self,
        spec: &BucketAuto,
        mut most: OwnedValue,
        accumulators: &mut [Accumulator],
    ) -> Result<OwnedValue> {
        let boundary = match &spec.granularity {
            Some(granularity) => Some(rounded(&most, |number| granularity.round_up(number))?),
            None => None,
        };
        let options = ordering::options(&spec.collator);
        while let Some(KeyedDocument { key, .. }) = &self.front {
            let is_below =
                boundary.as_ref().is_some_and(|boundary| compare_with(boundary.view(), key.view(), &options).is_gt());
            if !is_below && !self.is_equal(&most, key) {
                break;
            }
            let Some(KeyedDocument { key, document }) = self.step()? else { break };
            add(spec, accumulators, &document)?;
            most = key;
        }
        let next = self.front.as_ref().map(|entry| &entry.key);
        Ok(match (&spec.granularity, boundary, next) {
            // A first bucket of zeros ends where the next one begins.
            (Some(granularity), Some(boundary), Some(next)) if boundary.view().to_double() == Some(0.0) => {
                rounded(next, |number| granularity.round_down(number))?
            }
            (Some(_), Some(boundary), _) => boundary,
            (_, _, Some(next)) => next.clone(),
            _ => most,
        })
    }
}

fn add(spec: &BucketAuto, accumulators: &mut [Accumulator], document: &Doc) -> Result<()> {
    for (field, accumulator) in spec.fields.iter().zip(accumulators) {
        accumulator.add(field.input.evaluate_document(document.view())?)?;
    }
    Ok(())
}

fn rounded(value: &OwnedValue, round: impl FnOnce(Number) -> Result<Number>) -> Result<OwnedValue> {
    match value.view().as_number() {
        Some(number) => round(number).map(OwnedValue::from),
        None => Ok(value.clone()),
    }
}

fn check_rounded(key: Option<&OwnedValue>) -> Result<()> {
    let Some(number) = key.and_then(|key| key.view().as_number()) else {
        let found = key.map_or("missing", |key| key.view().value_type().name());
        let reason = format!(
            "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a value with type: {found}"
        );
        return Err(Error::location(40258, reason));
    };
    if number.is_nan() {
        let reason = "$bucketAuto can specify a 'granularity' with numeric boundaries only, but found a NaN";
        return Err(Error::location(40259, reason));
    }
    if number.to_double() < 0.0 {
        let reason =
            "$bucketAuto can specify a 'granularity' with non-negative numbers only, but found a negative number";
        return Err(Error::location(40260, reason));
    }
    Ok(())
}

impl DocumentSource for BucketAutoSource {
    fn next(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
        loop {
            if let Some(size) = self.size {
                if self.made >= self.spec.buckets {
                    return Ok(Pulled::Exhausted);
                }
                return Ok(self.next_bucket(size)?.map_or(Pulled::Exhausted, Pulled::Document));
            }
            match self.source.next(context)? {
                Pulled::Document(document) => self.take_in(document)?,
                Pulled::Exhausted => self.turn_around(context.operation)?,
                Pulled::Yield(cause) => return Ok(Pulled::Yield(cause)),
            }
        }
    }

    fn facts(&self) -> StageFacts {
        StageFacts { used_disk: self.sorter.statistics().spills > 0, details: Doc::new() }
    }

    pass_on_to_source!();
}

impl StageSpec for BucketAutoSpec {
    fn name(&self) -> &'static str {
        "$bucketAuto"
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        Ok(Box::new(BucketAutoSource {
            source,
            spec: Arc::clone(&self.0),
            sorter: self.0.resources.sorter(None),
            held: self.0.resources.account.held(),
            sorted: None,
            front: None,
            size: None,
            made: 0,
            last_max: None,
        }))
    }

    fn to_doc(&self) -> Doc {
        doc! { "$bucketAuto": &self.0.specification }
    }

    fn needs(&self) -> Needs {
        let inputs = self.0.fields.iter().map(|field| &field.input);
        Needs::only(paths_of(std::iter::once(&self.0.group_by).chain(inputs)))
    }

    fn split(&self) -> ShardSplit {
        ShardSplit::OnMerger
    }
}
