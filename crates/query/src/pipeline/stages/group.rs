//! `$group`: one document for each value of an expression, with what accumulators make of its documents.
//!
//! Groups that do not fit into memory go to disk as partial results, in the order of their ids, if that is allowed; at the end the
//! parts of each group are merged.

use super::group_by_distinct_scan;
use super::group_rows::{Input, RowPlan};
use crate::memory::Held;
use crate::pipeline::dependencies::without_places;
use crate::pipeline::source::{Fed, feed_pulled, pass_on_to_source};
use crate::pipeline::{
    DistinctGroup, DocumentSource, Modified, Needs, PipelineContext, PipelineParser, Pulled, PulledRows, Rename,
    ShardSplit, SharedStage, StageFacts, StageSpec,
};
use crate::spill::{SpilledDocument, StageResources};
use foldhash::fast::RandomState;
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{ArrayBuilder, Doc, DocBuilder, DocRef, FieldPath, OwnedValue, Value, doc};
use pando_expr::accumulator::parse_accumulator;
use pando_expr::{Accumulator, AccumulatorKind, Expression, ExpressionLimits, Operand, ParseContext, SharedCollator};
use pando_keystring::{KeyOrdering, StackBuilder, Version};
use pando_operation::Operation;
use pando_sorter::{Merged, SpillStatistics, SpilledRanges};
use pando_timeseries::{Rows, TimeseriesOptions};
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
    /// What is grouped by, as it is shown.
    shown_id: OwnedValue,
    specification: Doc,
    collator: Option<SharedCollator>,
    limits: ExpressionLimits,
    resources: StageResources,
}

#[derive(Clone)]
struct GroupSpec(Arc<Group>, Option<Arc<RowPlan>>);

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
    group_of(specification, &parser.context, parser.resources.clone())
}

fn group_of(specification: DocRef<'_>, context: &ParseContext, resources: StageResources) -> Result<SharedStage> {
    let (mut id, mut shown_id, mut fields) = (None, OwnedValue::Null, Vec::new());
    for element in specification.elements() {
        if element.name == "_id" {
            if id.is_some() {
                return Err(Error::location(15948, "a group's _id may only be specified once"));
            }
            check_id(element.value)?;
            id = Some(parse_id(element.value, context)?);
            shown_id = Expression::parse(element.value, context)?.optimize()?.to_value();
        } else {
            fields.push(parse_field_in(element, context)?);
        }
    }
    let id = id.ok_or_else(|| Error::location(15955, "a group specification must include an _id"))?;
    let (specification, collator) = (specification.to_doc(), context.collator.clone());
    let limits = context.limits;
    let group = Group { id, fields, shown_id, specification, collator, limits, resources };
    Ok(Arc::new(GroupSpec(Arc::new(group), None)))
}

/// The fields of a document that is grouped by are expressions: to include one by a number or a boolean means nothing.
fn check_id(value: Value<'_>) -> Result<()> {
    let fields = value.as_document().filter(|fields| fields.first().is_some_and(|it| !it.name.starts_with(b"$")));
    let is_inclusion = |value: Value<'_>| value.is_number() || matches!(value, Value::Bool(_));
    if fields.is_some_and(|fields| fields.elements().any(|field| is_inclusion(field.value))) {
        return Err(Error::location(17390, "$group does not support inclusion-style expressions"));
    }
    Ok(())
}

/// A document of one field has null in place of what is missing, as a value alone has; of several it has nothing there.
fn parse_id(value: Value<'_>, context: &ParseContext) -> Result<Expression> {
    if let Value::Document(fields) = value
        && let (Some(only), 1) = (fields.first(), fields.field_count())
        && !only.name.starts_with(b"$")
    {
        let mut operands = ArrayBuilder::new();
        operands.push(only.value);
        operands.push(Value::Null);
        let whole = doc! { (&**only.name): { "$ifNull": operands.finish() } };
        return Expression::parse(Value::Document(whole.view()), context)?.optimize();
    }
    Expression::parse(value, context)?.optimize()
}

/// Reads `name: {$accumulator: input}`.
pub(super) fn parse_field(element: pando_doc::Element<'_>, parser: &PipelineParser) -> Result<GroupField> {
    parse_field_in(element, &parser.context)
}

fn parse_field_in(element: pando_doc::Element<'_>, context: &ParseContext) -> Result<GroupField> {
    let name = element.name.to_string();
    let Some(operators) =
        element.value.as_document().filter(|it| it.first().is_some_and(|it| it.name.starts_with(b"$")))
    else {
        return Err(Error::location(40234, format!("The field '{name}' must be an accumulator object")));
    };
    if name.contains('.') {
        return Err(Error::location(40235, format!("The field name '{name}' cannot contain '.'")));
    }
    if name.starts_with('$') {
        return Err(Error::location(40236, format!("The field name '{name}' cannot be an operator name")));
    }
    let only = operators.first().filter(|_| operators.field_count() == 1);
    let operator =
        only.ok_or_else(|| Error::location(40238, format!("The field '{name}' must specify one accumulator")))?;
    let (kind, input, count) = parse_accumulator(operator, context)?;
    Ok(GroupField { name, kind, input, count })
}

/// What expressions look at together; none if that is the whole document.
pub(super) fn paths_of<'e>(expressions: impl Iterator<Item = &'e Expression>) -> Option<Vec<FieldPath>> {
    let mut all = Vec::new();
    for expression in expressions {
        all.extend(expression.paths()?);
    }
    Some(all)
}

/// One group: its id and its accumulators.
type OneGroup = (OwnedValue, Vec<Accumulator>);

struct GroupSource {
    source: Box<dyn DocumentSource>,
    group: Arc<Group>,
    gathered: Gathered,
    output_bytes: u64,
    outgoing: Option<Outgoing>,
}

/// The groups so far.
struct Gathered {
    /// How it takes many measurements at once.
    rows: Option<Arc<RowPlan>>,
    /// By the bytes of the id, which are the same for equal values.
    /// Its hash is seeded by chance, so that no client can choose keys that collide.
    places: HashMap<Vec<u8>, usize, RandomState>,
    /// That of the last document: often the next one is of the same group.
    last: Option<(Vec<u8>, usize)>,
    groups: Vec<OneGroup>,
    memory_bytes: u64,
    held: Held,
    /// How much each accumulated field takes, and took at most.
    field_bytes: Vec<u64>,
    field_bytes_max: Vec<u64>,
    /// Groups on disk; none if that is not allowed.
    ranges: Option<SpilledRanges<SpilledDocument>>,
}

/// What goes out.
enum Outgoing {
    Memory(std::vec::IntoIter<OneGroup>),
    /// The parts of groups, those of one beside each other; and the first that was not taken yet.
    Disk(Merged<SpilledDocument>, Option<(Box<[u8]>, SpilledDocument)>),
}

impl Gathered {
    fn take_in(&mut self, group: &Group, view: DocRef<'_>) -> Result<()> {
        let id = group.id.evaluate_document(view)?;
        self.accumulate(group, id.or_null(), |field, _, accumulator| {
            accumulator.add(field.input.evaluate_document(view)?)
        })
    }

    /// Takes the measurements of a bucket, run by run.
    fn take_in_rows(&mut self, group: &Group, rows: &Rows, plan: &RowPlan) -> Result<()> {
        let mut start = 0;
        while start < rows.len() {
            let head = rows.head(start);
            let id = group.id.evaluate_document(head.view())?;
            let end = plan.end(rows, start, &id, &group.id)?;
            self.accumulate(group, id.or_null(), |field, place, accumulator| {
                match plan.inputs.get(place) {
                    Some(Input::Field(name)) => {
                        let values = rows.values(name);
                        for row in start..end {
                            let value = values.and_then(|values| values.get(row));
                            accumulator.add(value.map_or(Operand::Missing, Operand::Borrowed))?;
                        }
                    }
                    Some(Input::Head) | None => {
                        let value = field.input.evaluate_document(head.view())?;
                        (start..end).try_for_each(|_| accumulator.add(value.clone()))?;
                    }
                }
                Ok(())
            })?;
            start = end;
        }
        Ok(())
    }

    /// Gives the accumulators of a group what `add` gives to each, told its place.
    fn accumulate(
        &mut self,
        group: &Group,
        id: Value<'_>,
        mut add: impl FnMut(&GroupField, usize, &mut Accumulator) -> Result<()>,
    ) -> Result<()> {
        let place = self.place(group, id)?;
        let Some((_, accumulators)) = self.groups.get_mut(place) else { return Ok(()) };
        let mut grown = 0_i64;
        for (place, (field, accumulator)) in group.fields.iter().zip(accumulators).enumerate() {
            let before = accumulator.memory_bytes() as i64;
            add(field, place, accumulator)?;
            let change = accumulator.memory_bytes() as i64 - before;
            grown += change;
            if let Some(bytes) = self.field_bytes.get_mut(place) {
                *bytes = bytes.saturating_add_signed(change);
            }
        }
        self.memory_bytes = self.memory_bytes.saturating_add_signed(grown);
        if self.memory_bytes > group.resources.group_memory_bytes_max {
            self.spill()?;
        }
        self.held.set(self.memory_bytes)
    }

    /// The groups that are in memory go: what their fields took is remembered.
    fn note_field_bytes(&mut self) {
        for (bytes, most) in self.field_bytes.iter_mut().zip(&mut self.field_bytes_max) {
            *most = (*most).max(std::mem::take(bytes));
        }
    }

    /// Writes all groups to disk, in the order of their ids.
    fn spill(&mut self) -> Result<()> {
        self.note_field_bytes();
        let Some(ranges) = &mut self.ranges else {
            let reason =
                "Exceeded memory limit for $group, but didn't allow external sort. Pass allowDiskUse:true to opt in.";
            return Err(Error::new(ErrorCode::QueryExceededMemoryLimitNoDiskUseAllowed, reason));
        };
        let mut keys: Vec<(Vec<u8>, usize)> = std::mem::take(&mut self.places).into_iter().collect();
        keys.sort_unstable();
        let groups = std::mem::take(&mut self.groups);
        self.last = None;
        self.memory_bytes = 0;
        let parts = keys.into_iter().filter_map(|(key, place)| {
            let (id, accumulators) = groups.get(place)?;
            let mut part = DocBuilder::new();
            part.append("_id", id);
            accumulators.iter().for_each(|accumulator| part.append("p", accumulator.partial()));
            Some((key, SpilledDocument(part.finish())))
        });
        Ok(ranges.write(parts)?)
    }

    fn place(&mut self, group: &Group, id: Value<'_>) -> Result<usize> {
        let mut key = StackBuilder::new(Version::V1, KeyOrdering::ASCENDING);
        match &group.collator {
            Some(collator) => key.append_collated(id, &**collator)?,
            None => key.append(id)?,
        }
        if let Some((last, place)) = &self.last
            && last == key.bytes()
        {
            return Ok(*place);
        }
        if let Some(place) = self.places.get(key.bytes()).copied() {
            let (last, last_place) = self.last.get_or_insert_default();
            last.clear();
            last.extend_from_slice(key.bytes());
            *last_place = place;
            return Ok(place);
        }
        let accumulators = group.accumulators(id)?;
        for (bytes, accumulator) in self.field_bytes.iter_mut().zip(&accumulators) {
            *bytes += accumulator.memory_bytes() as u64;
        }
        self.memory_bytes += (key.bytes().len() * 2 + accumulators.len() * size_of::<Accumulator>()) as u64;
        let place = self.groups.len();
        self.places.insert(key.bytes().to_vec(), place);
        self.groups.push((id.to_owned(), accumulators));
        Ok(place)
    }

    /// All documents are in: what goes out.
    fn turn_around(&mut self, group: &Group, operation: &Operation) -> Result<Outgoing> {
        self.note_field_bytes();
        let has_spilled = self.ranges.as_ref().is_some_and(|ranges| !ranges.is_empty());
        if has_spilled && !self.groups.is_empty() {
            self.spill()?;
        }
        let Some(ranges) = self.ranges.as_mut().filter(|_| has_spilled) else {
            self.places = HashMap::default();
            return Ok(Outgoing::Memory(std::mem::take(&mut self.groups).into_iter()));
        };
        let mut merged = ranges.merge(group.resources.group_memory_bytes_max, None)?;
        let first = merged.next_entry()?.map(owned);
        group.resources.counters.grouped(operation, &self.statistics());
        Ok(Outgoing::Disk(merged, first))
    }

    fn statistics(&self) -> SpillStatistics {
        self.ranges.as_ref().map(SpilledRanges::statistics).unwrap_or_default()
    }
}

/// The first part of a group that is still to be merged is kept beyond the next look at the ranges.
fn owned((key, part): (&[u8], SpilledDocument)) -> (Box<[u8]>, SpilledDocument) {
    (Box::from(key), part)
}

impl GroupSource {
    /// The next group of those on disk: all its parts, merged.
    fn next_merged(&mut self) -> Result<Option<Doc>> {
        let Some(Outgoing::Disk(merged, first)) = &mut self.outgoing else { return Ok(None) };
        let Some((key, part)) = first.take() else { return Ok(None) };
        let id = part.0.get("_id").unwrap_or(Value::Null);
        let mut accumulators = self.group.accumulators(id)?;
        merge_part(&mut accumulators, &part.0)?;
        *first = loop {
            match merged.next_entry()? {
                Some((next, more)) if *next == *key => merge_part(&mut accumulators, &more.0)?,
                other => break other.map(owned),
            }
        };
        self.group.result((id.to_owned(), accumulators)).map(Some)
    }

    fn next_group(&mut self) -> Result<Option<Doc>> {
        let next = match &mut self.outgoing {
            Some(Outgoing::Memory(groups)) => groups.next().map(|group| self.group.result(group)).transpose()?,
            _ => self.next_merged()?,
        };
        self.output_bytes += next.as_ref().map_or(0, |document| document.size_bytes() as u64);
        Ok(next)
    }
}

/// Goes on with the partial results of one part of a group.
fn merge_part(accumulators: &mut [Accumulator], part: &Doc) -> Result<()> {
    let partials = part.elements().skip(1);
    accumulators.iter_mut().zip(partials).try_for_each(|(accumulator, partial)| match partial.value {
        Value::Array(partial) => accumulator.merge(partial),
        _ => Err(Error::internal("a part of a group has another form")),
    })
}

impl Group {
    /// The accumulators of a new group.
    fn accumulators(&self, id: Value<'_>) -> Result<Vec<Accumulator>> {
        let root = id.as_document().unwrap_or(DocRef::EMPTY);
        let mut accumulators = Vec::with_capacity(self.fields.len());
        for field in &self.fields {
            // How many are kept may depend on the group, not on its documents.
            let count = field.count.as_ref().map(|count| count.evaluate_document(root)).transpose()?;
            let accumulator = Accumulator::new(&field.kind, count.as_ref(), self.collator.clone())?;
            accumulators.push(accumulator.within(self.limits));
        }
        Ok(accumulators)
    }

    /// The document of a group.
    fn result(&self, (id, accumulators): OneGroup) -> Result<Doc> {
        let mut builder = DocBuilder::new();
        builder.append("_id", id);
        for (field, accumulator) in self.fields.iter().zip(accumulators) {
            // What is missing is null here.
            builder.append(&field.name, accumulator.finish()?.unwrap_or(OwnedValue::Null));
        }
        Ok(builder.finish())
    }
}

impl DocumentSource for GroupSource {
    fn next(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
        loop {
            if self.outgoing.is_some() {
                return Ok(self.next_group()?.map_or(Pulled::Exhausted, Pulled::Document));
            }
            let (group, gathered) = (&self.group, &mut self.gathered);
            let fed = match gathered.rows.clone() {
                None => self.source.feed(context, &mut |document| gathered.take_in(group, document))?,
                Some(plan) => match self.source.next_rows(context)? {
                    PulledRows::Rows(rows) => gathered.take_in_rows(group, &rows, &plan).map(|()| Fed::Some)?,
                    PulledRows::Other(pulled) => {
                        feed_pulled(pulled, &mut |document| gathered.take_in(group, document))?
                    }
                },
            };
            match fed {
                Fed::Some => {}
                Fed::Exhausted => self.outgoing = Some(gathered.turn_around(group, context.operation)?),
                Fed::Yield(cause) => return Ok(Pulled::Yield(cause)),
            }
        }
    }

    fn facts(&self) -> StageFacts {
        let statistics = self.gathered.statistics();
        let used_disk = statistics.spills > 0;
        let mut details = DocBuilder::new();
        details.document("maxAccumulatorMemoryUsageBytes", |fields| {
            for (field, bytes) in self.group.fields.iter().zip(&self.gathered.field_bytes_max) {
                fields.append(&field.name, *bytes as i64);
            }
        });
        details.append("totalOutputDataSizeBytes", self.output_bytes as i64);
        details.append("usedDisk", used_disk);
        details.append("spills", statistics.spills as i64);
        details.append("spilledDataStorageSize", statistics.spilled_storage_bytes as i64);
        details.append("numBytesSpilledEstimate", statistics.spilled_memory_bytes as i64);
        details.append("spilledRecords", statistics.spilled_entries as i64);
        StageFacts { used_disk, details: details.finish() }
    }

    pass_on_to_source!();
}

impl StageSpec for GroupSpec {
    fn name(&self) -> &'static str {
        "$group"
    }

    fn grouping(&self) -> Option<&Doc> {
        Some(&self.0.specification)
    }

    fn has_collation(&self, collation: Option<&Doc>) -> bool {
        self.0.collator.as_ref().map(|collator| collator.specification()) == collation
    }

    fn regrouped(&self, specification: &Doc) -> Option<SharedStage> {
        let context = ParseContext::default().with_collator(self.0.collator.clone());
        group_of(specification.view(), &context, self.0.resources.clone()).ok()
    }

    fn over_rows(&self, options: &TimeseriesOptions) -> Option<SharedStage> {
        let plan = RowPlan::of(&self.0.specification, options)?;
        Some(Arc::new(GroupSpec(Arc::clone(&self.0), Some(Arc::new(plan)))))
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        let gathered = Gathered {
            rows: self.1.clone(),
            places: HashMap::default(),
            last: None,
            groups: Vec::new(),
            memory_bytes: 0,
            held: self.0.resources.account.held(),
            field_bytes: vec![0; self.0.fields.len()],
            field_bytes_max: vec![0; self.0.fields.len()],
            ranges: self.0.resources.ranges(),
        };
        Ok(Box::new(GroupSource { source, group: Arc::clone(&self.0), gathered, output_bytes: 0, outgoing: None }))
    }

    fn to_doc(&self) -> Doc {
        let mut shown = DocBuilder::new();
        shown.append("_id", &self.0.shown_id);
        let fields = self.0.specification.elements().filter(|field| field.name != "_id");
        fields.for_each(|field| shown.append_element(field));
        doc! { "$group": shown.finish() }
    }

    /// A filter on what is grouped by leaves whole groups out; it may as well leave their documents out.
    fn modified(&self) -> Modified {
        Modified::AllBut(Vec::new())
    }

    fn renames(&self) -> Vec<Rename> {
        let id = FieldPath::parse("_id").ok().and_then(|id| Rename::of(id, &self.0.id));
        id.map(|rename| Rename { is_null_if_missing: true, ..rename }).into_iter().collect()
    }

    fn needs(&self) -> Needs {
        let inputs = self.0.fields.iter().map(|field| &field.input);
        Needs::only(paths_of(std::iter::once(&self.0.id).chain(inputs)))
    }

    fn distinct_group(&self) -> Option<DistinctGroup> {
        let path = self.0.id.as_field().filter(|path| *path == &without_places(path))?.clone();
        let is_all = |wanted: fn(&AccumulatorKind) -> bool| self.0.fields.iter().all(|field| wanted(&field.kind));
        let is_first = is_all(|kind| matches!(kind, AccumulatorKind::First));
        let is_last = !is_first && is_all(|kind| matches!(kind, AccumulatorKind::Last));
        let stage = || group_by_distinct_scan::of(&self.0.id, self.0.fields.iter());
        (is_first || is_last).then(|| DistinctGroup { path, is_last, stage: stage() })
    }

    fn split(&self) -> ShardSplit {
        ShardSplit::Both
    }
}
