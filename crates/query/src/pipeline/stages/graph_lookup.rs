//! `$graphLookup`: to each document all documents of another collection that can be reached from it, step by step.

use super::set_field::with_field;
use crate::pipeline::source::pass_on_to_source;
use crate::pipeline::{
    DocumentSource, Modified, Needs, PipelineContext, PipelineParser, Pulled, SharedStage, StageSpec, Within,
    parse_pipeline,
};
use pando_base::{Error, ErrorCode, Namespace, Result, operation};
use pando_doc::{ArrayBuilder, Doc, DocRef, FieldPath, LeafArrays, OwnedValue, PathOptions, Value, doc, visit_path};
use pando_expr::{Expression, MatchExpression, Operand, SharedCollator, check_value};
use pando_keystring::{KeyOrdering, StackBuilder, Version};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

struct GraphLookup {
    from: Namespace,
    into: FieldPath,
    start_with: Expression,
    connect_from: FieldPath,
    connect_to: FieldPath,
    depth_field: Option<FieldPath>,
    depth_max: Option<i64>,
    filter: Option<Doc>,
    specification: Doc,
    parser: PipelineParser,
}

#[derive(Clone)]
struct GraphLookupSpec(Arc<GraphLookup>);

impl std::fmt::Debug for GraphLookupSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.specification)
    }
}

/// Reads it.
pub(in crate::pipeline) fn parse(value: Value<'_>, parser: &PipelineParser) -> Result<SharedStage> {
    let from = read_from(value, &parser.namespace)?;
    let specification = value.as_document().unwrap_or(DocRef::EMPTY);
    let (mut into, mut start_with, mut connect_from, mut connect_to) = (None, None, None, None);
    let (mut depth_field, mut depth_max, mut filter) = (None, None, None);
    for option in specification.elements() {
        let path = || match option.value {
            Value::String(text) => FieldPath::parse(text),
            other => {
                let reason = format!("expected string as argument for {}, found: {}", option.name, other.value_type());
                Err(Error::location(40103, reason))
            }
        };
        match &**option.name {
            b"from" => {}
            b"as" => into = Some(path()?),
            b"connectFromField" => connect_from = Some(path()?),
            b"connectToField" => connect_to = Some(path()?),
            b"depthField" => depth_field = Some(path()?),
            b"startWith" => start_with = Some(Expression::parse(option.value, &parser.context)?.optimize()?),
            b"maxDepth" => depth_max = Some(parse_depth(option.value)?),
            b"restrictSearchWithMatch" => filter = Some(parse_filter(option.value, parser)?),
            _ => return Err(Error::location(40104, format!("Unknown argument to $graphLookup: {}", option.name))),
        }
    }
    let (Some(into), Some(start_with), Some(connect_from), Some(connect_to)) =
        (into, start_with, connect_from, connect_to)
    else {
        let reason = "$graphLookup requires 'from', 'as', 'startWith', 'connectFromField', and 'connectToField' to be specified.";
        return Err(Error::location(40105, reason));
    };
    parser.seen.as_ref().map_or(Ok(()), |seen| seen.check(&from))?;
    let parser = PipelineParser { within: Within::Server, namespace: from.clone(), ..parser.clone() };
    let specification = specification.to_doc();
    Ok(Arc::new(GraphLookupSpec(Arc::new(GraphLookup {
        from,
        into,
        start_with,
        connect_from,
        connect_to,
        depth_field,
        depth_max,
        filter,
        specification,
        parser,
    }))))
}

/// The other collection, for a pipeline on this one.
pub(in crate::pipeline) fn read_from(value: Value<'_>, namespace: &Namespace) -> Result<Namespace> {
    let Value::Document(specification) = value else {
        let found = value.value_type();
        let reason = format!("the $graphLookup stage specification must be an object, but found {found}");
        return Err(Error::failed_to_parse(reason));
    };
    let missing = || {
        let reason = format!("missing 'from' option to $graphLookup stage specification: {specification}");
        Error::failed_to_parse(reason)
    };
    match specification.get("from").ok_or_else(missing)? {
        Value::String(name) if name.is_empty() => {
            Err(Error::new(ErrorCode::InvalidNamespace, "$graphLookup 'from' field must name a collection"))
        }
        Value::String(name) => namespace.sibling(&name.to_string()),
        other => {
            let reason = format!("$graphLookup 'from' field must be a string, but found {}", other.value_type());
            Err(Error::failed_to_parse(reason))
        }
    }
}

fn parse_depth(value: Value<'_>) -> Result<i64> {
    let Some(number) = value.as_number() else {
        let reason = format!("maxDepth must be numeric, found type: {}", value.value_type());
        return Err(Error::location(40100, reason));
    };
    let whole = number.truncated_i64();
    if whole < 0 {
        return Err(Error::location(40101, format!("maxDepth requires a nonnegative argument, found: {whole}")));
    }
    number
        .to_i64_exact()
        .ok_or_else(|| Error::location(40102, format!("maxDepth could not be represented as a long long: {whole}")))
}

fn parse_filter(value: Value<'_>, parser: &PipelineParser) -> Result<Doc> {
    let Value::Document(filter) = value else {
        let reason = format!("restrictSearchWithMatch must be an object, found {}", value.value_type());
        return Err(Error::location(40185, reason));
    };
    MatchExpression::parse(filter, &parser.context)
        .map_err(|error| error.context("Failed to parse 'restrictSearchWithMatch' option to $graphLookup"))?;
    Ok(filter.to_doc())
}

/// A value that leads on is so many steps.
const VALUE_STEPS: u64 = 32;

/// The values that are searched for next, by their keys.
type Frontier = BTreeMap<Vec<u8>, OwnedValue>;

struct GraphLookupSource {
    source: Box<dyn DocumentSource>,
    lookup: Arc<GraphLookup>,
    /// A document whose search has to be repeated.
    pending: Option<Doc>,
}

fn key_of(value: Value<'_>, collator: Option<&SharedCollator>) -> Result<Vec<u8>> {
    let mut key = StackBuilder::new(Version::V1, KeyOrdering::ASCENDING);
    match collator {
        Some(collator) => key.append_collated(value, &**collator)?,
        None => key.append(value)?,
    }
    Ok(key.bytes().to_vec())
}

impl GraphLookup {
    /// Bytes that are the same for equal values, and in their order.
    fn key(&self, value: Value<'_>) -> Result<Vec<u8>> {
        key_of(value, self.parser.context.collator.as_ref())
    }

    fn add(&self, frontier: &mut Frontier, value: OwnedValue) -> Result<()> {
        operation::tick(VALUE_STEPS)?;
        frontier.insert(self.key(value.view())?, value);
        Ok(())
    }

    /// All values at a path, those of arrays one by one.
    fn values_at(&self, document: DocRef<'_>, path: &FieldPath) -> Vec<OwnedValue> {
        let mut values = Vec::new();
        let options = PathOptions { leaf: LeafArrays::TraverseOmitArray, ..PathOptions::default() };
        let _: ControlFlow<()> = visit_path(document, path, options, &mut |visit| {
            operation::count(1);
            values.extend(visit.value.map(|value| value.to_owned()));
            ControlFlow::Continue(())
        });
        values
    }

    /// The stages that find the documents next to the frontier.
    fn stages(&self, frontier: &Frontier) -> Result<Vec<SharedStage>> {
        let mut wanted = ArrayBuilder::new();
        let has_null = frontier.values().any(|value| matches!(value, OwnedValue::Null));
        frontier.values().filter(|value| !value.view().is_nullish()).for_each(|value| wanted.push(value));
        let mut reached = doc! { (self.connect_to.text()): { "$in": wanted.finish() } };
        if has_null {
            // Null leads to null, not to where there is nothing.
            reached = doc! { "$or": [reached, { (self.connect_to.text()): { "$type": 10 } }] };
        }
        let mut conditions = ArrayBuilder::new();
        if let Some(filter) = &self.filter {
            conditions.push(filter);
        }
        conditions.push(reached);
        parse_pipeline(&[doc! { "$match": { "$and": conditions.finish() } }], &self.parser)
    }

    /// Everything that can be reached, by its `_id`; none if others are to run first.
    fn search(
        &self,
        context: &mut PipelineContext<'_>,
        document: &Doc,
    ) -> Result<std::result::Result<Vec<Doc>, Pulled>> {
        let mut visited: BTreeMap<Vec<u8>, Doc> = BTreeMap::new();
        let mut frontier = Frontier::new();
        let mut memory_bytes = 0_u64;
        let mut held = self.parser.resources.account.held();
        let start = self.start_with.evaluate_document(document.view())?;
        let starts = start.array_operands()?.unwrap_or_else(|| vec![start]);
        starts.into_iter().filter_map(Operand::into_value).try_for_each(|value| self.add(&mut frontier, value))?;
        let mut depth = 0_i64;
        while !frontier.is_empty() && self.depth_max.is_none_or(|most| depth <= most) {
            let stages = self.stages(&frontier)?;
            frontier.clear();
            let collator = &self.parser.context.collator;
            let mut source =
                context.engine.patient().pipeline_source(context.operation, &self.from, &stages, collator)?;
            loop {
                let found = match source.next(context)? {
                    Pulled::Document(found) => found,
                    Pulled::Exhausted => break,
                    Pulled::Yield(cause) => return Ok(Err(Pulled::Yield(cause))),
                };
                let Some(id) = found.get("_id") else {
                    let reason = format!(
                        "Documents in the '{}' namespace must contain an _id for de-duplication in $graphLookup",
                        self.from
                    );
                    return Err(Error::location(40271, reason));
                };
                // Ids are different, whatever the collation says.
                let id = key_of(id, None)?;
                if visited.contains_key(&id) {
                    continue;
                }
                memory_bytes += found.size_bytes() as u64;
                if memory_bytes > self.parser.resources.group_memory_bytes_max {
                    return Err(Error::location(40099, "$graphLookup reached maximum memory consumption"));
                }
                held.set(memory_bytes)?;
                for value in self.values_at(found.view(), &self.connect_from) {
                    self.add(&mut frontier, value)?;
                }
                visited.insert(id, self.with_depth(found, depth));
            }
            depth += 1;
        }
        Ok(Ok(visited.into_values().collect()))
    }

    fn with_depth(&self, found: Doc, depth: i64) -> Doc {
        let Some(field) = &self.depth_field else { return found };
        with_field(found.view(), field, Some(Value::Int64(depth)))
    }
}

impl DocumentSource for GraphLookupSource {
    fn next(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
        let document = match self.pending.take() {
            Some(document) => document,
            None => match self.source.next(context)? {
                Pulled::Document(document) => document,
                other => return Ok(other),
            },
        };
        let found = match self.lookup.search(context, &document)? {
            Ok(found) => found,
            Err(pulled) => {
                self.pending = Some(document);
                return Ok(pulled);
            }
        };
        let mut all = ArrayBuilder::new();
        for found in &found {
            all.push(found);
            check_value(all.size_bytes())?;
        }
        let all = all.finish();
        Ok(Pulled::Document(with_field(document.view(), &self.lookup.into, Some(Value::Array(all.view())))))
    }

    pass_on_to_source!();
}

impl StageSpec for GraphLookupSpec {
    fn name(&self) -> &'static str {
        "$graphLookup"
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        Ok(Box::new(GraphLookupSource { source, lookup: Arc::clone(&self.0), pending: None }))
    }

    fn needs(&self) -> Needs {
        Needs::these(self.0.start_with.paths())
    }

    fn modified(&self) -> Modified {
        Modified::Paths(vec![self.0.into.clone()])
    }

    fn keeps_count(&self) -> bool {
        true
    }

    fn lets_sorts_pass(&self) -> bool {
        true
    }

    fn to_doc(&self) -> Doc {
        doc! { "$graphLookup": &self.0.specification }
    }
}
