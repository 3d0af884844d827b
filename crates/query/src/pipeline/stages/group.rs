//! `$group`: one document for each value of an expression, with what accumulators make of its documents.

use crate::pipeline::source::pass_on_to_source;
use crate::pipeline::{DocumentSource, PipelineContext, PipelineParser, Pulled, ShardSplit, SharedStage, StageSpec};
use foldhash::fast::RandomState;
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{ArrayBuilder, Doc, DocBuilder, DocRef, OwnedValue, Value, doc};
use pando_expr::accumulator::parse_accumulator;
use pando_expr::{Accumulator, AccumulatorKind, Expression, SharedCollator};
use pando_keystring::{KeyOrdering, StackBuilder, Version};
use std::collections::HashMap;
use std::sync::Arc;

/// One field of the result.
#[derive(Debug)]
pub(super) struct GroupField {
    pub(super) name: String,
    pub(super) kind: AccumulatorKind,
    pub(super) input: Expression,
    pub(super) count: Option<Expression>,
}

struct Group {
    id: Expression,
    fields: Vec<GroupField>,
    specification: Doc,
    collator: Option<SharedCollator>,
    memory_bytes_max: u64,
}

#[derive(Clone)]
struct GroupSpec(Arc<Group>);

impl std::fmt::Debug for GroupSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.specification)
    }
}

/// Reads it.
pub(in crate::pipeline) fn parse(value: Value<'_>, parser: &PipelineParser) -> Result<SharedStage> {
    let Value::Document(specification) = value else {
        return Err(Error::location(15947, "a group's fields must be specified in an object"));
    };
    let (mut id, mut fields) = (None, Vec::new());
    for element in specification.elements() {
        if element.name == "_id" {
            id = Some(parse_id(element.value, parser)?);
        } else {
            fields.push(parse_field(element, parser)?);
        }
    }
    let id = id.ok_or_else(|| Error::location(15955, "a group specification must include an _id"))?;
    Ok(Arc::new(GroupSpec(Arc::new(Group {
        id,
        fields,
        specification: specification.to_doc(),
        collator: parser.context.collator.clone(),
        memory_bytes_max: parser.memory_bytes_max,
    }))))
}

/// A document of one field has null in place of what is missing, as a value alone has; of several it has nothing there.
fn parse_id(value: Value<'_>, parser: &PipelineParser) -> Result<Expression> {
    if let Value::Document(fields) = value
        && let (Some(only), 1) = (fields.first(), fields.field_count())
        && !only.name.starts_with(b"$")
    {
        let mut operands = ArrayBuilder::new();
        operands.push(only.value);
        operands.push(Value::Null);
        let whole = doc! { (&**only.name): { "$ifNull": operands.finish() } };
        return Expression::parse(Value::Document(whole.view()), &parser.context)?.optimize();
    }
    Expression::parse(value, &parser.context)?.optimize()
}

/// Reads `name: {$accumulator: input}`.
pub(super) fn parse_field(element: pando_doc::Element<'_>, parser: &PipelineParser) -> Result<GroupField> {
    let name = element.name.to_string();
    if name.contains('.') {
        return Err(Error::location(40235, format!("The field name '{name}' cannot contain '.'")));
    }
    if name.starts_with('$') {
        return Err(Error::location(40236, format!("The field name '{name}' cannot be an operator name")));
    }
    let Value::Document(operators) = element.value else {
        return Err(Error::location(40234, format!("The field '{name}' must be an accumulator object")));
    };
    let only = operators.first().filter(|_| operators.field_count() == 1);
    let operator =
        only.ok_or_else(|| Error::location(40238, format!("The field '{name}' must specify one accumulator")))?;
    let (kind, input, count) = parse_accumulator(operator, &parser.context)?;
    Ok(GroupField { name, kind, input, count })
}

struct GroupSource {
    source: Box<dyn DocumentSource>,
    group: Arc<Group>,
    /// By the bytes of the id, which are the same for equal values.
    /// Its hash is seeded by chance, so that no client can choose keys that collide.
    places: HashMap<Vec<u8>, usize, RandomState>,
    groups: Vec<(OwnedValue, Vec<Accumulator>)>,
    memory_bytes: u64,
    /// What goes out, last first.
    outgoing: Option<Vec<Doc>>,
}

impl GroupSource {
    fn take_in(&mut self, document: &Doc) -> Result<()> {
        let group = Arc::clone(&self.group);
        let view = document.view();
        let id = group.id.evaluate_document(view)?;
        let place = self.place(&group, id.or_null())?;
        let Some((_, accumulators)) = self.groups.get_mut(place) else { return Ok(()) };
        let mut grown = 0_i64;
        for (field, accumulator) in group.fields.iter().zip(accumulators) {
            let before = accumulator.memory_bytes() as i64;
            accumulator.add(field.input.evaluate_document(view)?)?;
            grown += accumulator.memory_bytes() as i64 - before;
        }
        self.memory_bytes = self.memory_bytes.saturating_add_signed(grown);
        if self.memory_bytes > group.memory_bytes_max {
            let reason =
                "Exceeded memory limit for $group, but didn't allow external sort. Pass allowDiskUse:true to opt in.";
            return Err(Error::new(ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed, reason));
        }
        Ok(())
    }

    fn place(&mut self, group: &Group, id: Value<'_>) -> Result<usize> {
        let mut key = StackBuilder::new(Version::V1, KeyOrdering::ASCENDING);
        match &group.collator {
            Some(collator) => key.append_collated(id, &**collator)?,
            None => key.append(id)?,
        }
        if let Some(place) = self.places.get(key.bytes()) {
            return Ok(*place);
        }
        let root = id.as_document().unwrap_or(DocRef::EMPTY);
        let mut accumulators = Vec::with_capacity(group.fields.len());
        for field in &group.fields {
            // How many are kept may depend on the group, not on its documents.
            let count = field.count.as_ref().map(|count| count.evaluate_document(root)).transpose()?;
            accumulators.push(Accumulator::new(&field.kind, count.as_ref(), group.collator.clone())?);
        }
        self.memory_bytes += (key.bytes().len() * 2 + accumulators.len() * size_of::<Accumulator>()) as u64;
        let place = self.groups.len();
        self.places.insert(key.bytes().to_vec(), place);
        self.groups.push((id.to_owned(), accumulators));
        Ok(place)
    }

    fn turn_around(&mut self) {
        self.places = HashMap::default();
        let groups = std::mem::take(&mut self.groups);
        let make = |(id, accumulators): (OwnedValue, Vec<Accumulator>)| {
            let mut builder = DocBuilder::new();
            builder.append("_id", id);
            for (field, accumulator) in self.group.fields.iter().zip(accumulators) {
                // What is missing is null here.
                builder.append(&field.name, accumulator.result().unwrap_or(OwnedValue::Null));
            }
            builder.finish()
        };
        self.outgoing = Some(groups.into_iter().rev().map(make).collect());
    }
}

impl DocumentSource for GroupSource {
    fn next(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
        loop {
            if let Some(outgoing) = &mut self.outgoing {
                return Ok(outgoing.pop().map_or(Pulled::Exhausted, Pulled::Document));
            }
            match self.source.next(context)? {
                Pulled::Document(document) => self.take_in(&document)?,
                Pulled::Exhausted => self.turn_around(),
                Pulled::Yield(cause) => return Ok(Pulled::Yield(cause)),
            }
        }
    }

    pass_on_to_source!();
}

impl StageSpec for GroupSpec {
    fn name(&self) -> &'static str {
        "$group"
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        Ok(Box::new(GroupSource {
            source,
            group: Arc::clone(&self.0),
            places: HashMap::default(),
            groups: Vec::new(),
            memory_bytes: 0,
            outgoing: None,
        }))
    }

    fn to_doc(&self) -> Doc {
        doc! { "$group": &self.0.specification }
    }

    fn split(&self) -> ShardSplit {
        ShardSplit::Both
    }
}
