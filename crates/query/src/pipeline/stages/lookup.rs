//! `$lookup`: to each document the documents of another collection that belong to it.
//!
//! With an `$unwind` of them behind it the two become one: each found document goes out by itself, and no array of all of them is made.
//! By equality of two fields, by a pipeline, or both. The pipeline sees the values of `let` as variables; since these are
//! different for each document, it is read anew each time, so that the planner sees constants.

use super::group::paths_of;
use super::set_field::with_field;
use super::unwind::Unwinding;
use crate::QueryEngine;
use crate::executor::Collections;
use crate::pipeline::dependencies::without_places;
use crate::pipeline::{
    DocumentSource, Modified, Needs, PipelineContext, PipelineParser, Pulled, SharedStage, StageSpec, parse_pipeline,
};
use bstr::BStr;
use pando_base::{Error, Namespace, Result};
use pando_doc::{ArrayBuilder, Doc, DocBuilder, DocRef, FieldPath, OwnedValue, Value, doc};
use pando_expr::Expression;
use pando_operation::Operation;
use std::sync::Arc;

struct Lookup {
    from: Namespace,
    fields: Option<(FieldPath, FieldPath)>,
    variables: Vec<(String, Expression)>,
    pipeline: Option<Vec<Doc>>,
    into: FieldPath,
    specification: Doc,
    parser: PipelineParser,
}

#[derive(Clone)]
struct LookupSpec(Arc<Lookup>, Option<Unwinding>);

impl std::fmt::Debug for LookupSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0.specification)
    }
}

/// Reads it.
pub(in crate::pipeline) fn parse(value: Value<'_>, parser: &PipelineParser) -> Result<SharedStage> {
    let Value::Document(specification) = value else {
        let reason = format!("the $lookup stage specification must be an object, but found {}", value.value_type());
        return Err(Error::location(9, reason));
    };
    let (mut from, mut into, mut local, mut foreign) = (None, None, None, None);
    let (mut variables, mut pipeline) = (Vec::new(), None);
    for option in specification.elements() {
        let text = || match option.value {
            Value::String(text) => Ok(text.to_string()),
            other => Err(Error::failed_to_parse(format!(
                "$lookup argument '{}' must be a string, found {}: {}",
                option.name,
                option,
                other.value_type()
            ))),
        };
        match &**option.name {
            b"from" => from = Some(text()?),
            b"as" => into = Some(text()?),
            b"localField" => local = Some(text()?),
            b"foreignField" => foreign = Some(text()?),
            b"let" => variables = parse_variables(option.value, parser)?,
            b"pipeline" => pipeline = Some(parse_stages(option.value)?),
            _ => return Err(Error::failed_to_parse(format!("unknown argument to $lookup: {}", option.name))),
        }
    }
    let missing = |name: &str| Error::failed_to_parse(format!("must specify '{name}' field for a $lookup"));
    let fields = match (local, foreign) {
        (Some(local), Some(foreign)) => Some((FieldPath::parse(local)?, FieldPath::parse(foreign)?)),
        (None, None) if pipeline.is_some() => None,
        _ => {
            let reason = "$lookup requires both or neither of 'localField' and 'foreignField' to be specified";
            return Err(Error::failed_to_parse(reason));
        }
    };
    let from = match from {
        Some(from) => parser.namespace.sibling(&from)?,
        // Documents of the stage's own need no collection.
        None if pipeline.as_deref().is_some_and(super::documents::begin) => parser.namespace.clone(),
        None => return Err(missing("from")),
    };
    let nested = parser.nested(&from)?;
    let lookup = Lookup {
        from,
        fields,
        variables,
        pipeline,
        into: FieldPath::parse(into.ok_or_else(|| missing("as"))?)?,
        specification: specification.to_doc(),
        parser: nested,
    };
    check_pipeline(&lookup)?;
    Ok(Arc::new(LookupSpec(Arc::new(lookup), None)))
}

fn parse_variables(value: Value<'_>, parser: &PipelineParser) -> Result<Vec<(String, Expression)>> {
    let Value::Document(variables) = value else {
        return Err(Error::failed_to_parse("$lookup argument 'let' must be an object"));
    };
    variables
        .elements()
        .map(|variable| Ok((variable.name.to_string(), Expression::parse(variable.value, &parser.context)?)))
        .collect()
}

fn parse_stages(value: Value<'_>) -> Result<Vec<Doc>> {
    let refused = || Error::type_mismatch("'pipeline' option must be specified as an array");
    let Value::Array(stages) = value else { return Err(refused()) };
    stages.values().map(|stage| stage.as_document().map(DocRef::to_doc).ok_or_else(refused)).collect()
}

/// Errors of the pipeline are told when the lookup is read, not when it first runs.
fn check_pipeline(lookup: &Lookup) -> Result<()> {
    let Some(pipeline) = &lookup.pipeline else { return Ok(()) };
    let mut parser = lookup.parser.clone();
    for (name, _) in &lookup.variables {
        parser.context.set_variable(BStr::new(name), Some(OwnedValue::Null));
    }
    parse_pipeline(pipeline, &parser).map(|_| ())
}

/// A look-up whose documents go out one by one.
struct Open {
    document: Doc,
    source: Box<dyn DocumentSource>,
    found: i64,
}

struct LookupSource {
    source: Box<dyn DocumentSource>,
    lookup: Arc<Lookup>,
    unwinding: Option<Unwinding>,
    open: Option<Open>,
    /// A document whose look-up has to be repeated.
    pending: Option<Doc>,
}

impl LookupSource {
    /// The stages that find what belongs to a document.
    fn stages(&self, document: DocRef<'_>) -> Result<Vec<SharedStage>> {
        let lookup = &self.lookup;
        let mut parser = lookup.parser.clone();
        for (name, expression) in &lookup.variables {
            let value = expression.evaluate_document(document)?.into_value();
            parser.context.set_variable(BStr::new(name), value);
        }
        let mut stages = Vec::new();
        if let Some((local, foreign)) = &lookup.fields {
            stages.push(doc! { "$match": equality(document, local, foreign) });
        }
        stages.extend(lookup.pipeline.iter().flatten().cloned());
        parse_pipeline(&stages, &parser)
    }

    /// What belongs to a document.
    fn found(&self, context: &mut PipelineContext<'_>, document: &Doc) -> Result<Box<dyn DocumentSource>> {
        let stages = self.stages(document.view())?;
        let engine: &QueryEngine = context.engine;
        let collator = &self.lookup.parser.context.collator;
        engine.patient().pipeline_source(context.operation, &self.lookup.from, &stages, collator)
    }

    /// The next found document in its place.
    fn next_unwound(&mut self, context: &mut PipelineContext<'_>, unwinding: &Unwinding) -> Result<Pulled> {
        loop {
            let Some(open) = &mut self.open else {
                let document = match self.source.next(context)? {
                    Pulled::Document(document) => document,
                    other => return Ok(other),
                };
                let source = self.found(context, &document)?;
                self.open = Some(Open { document, source, found: 0 });
                continue;
            };
            let (value, index) = match open.source.next(context)? {
                Pulled::Document(found) => {
                    open.found += 1;
                    (Some(found), Value::Int64(open.found - 1))
                }
                Pulled::Yield(cause) => return Ok(Pulled::Yield(cause)),
                Pulled::Exhausted if open.found == 0 && unwinding.keeps_empty => (None, Value::Null),
                Pulled::Exhausted => {
                    self.open = None;
                    continue;
                }
            };
            let placed = value.as_ref().map(|found| Value::Document(found.view()));
            let mut result = with_field(open.document.view(), &self.lookup.into, placed);
            if let Some(name) = &unwinding.index_name {
                result = with_field(result.view(), name, Some(index));
            }
            if value.is_none() {
                self.open = None;
            }
            return Ok(Pulled::Document(result));
        }
    }

    fn look_up(&self, context: &mut PipelineContext<'_>, document: &Doc) -> Result<Pulled> {
        let mut source = self.found(context, document)?;
        let mut found = ArrayBuilder::new();
        loop {
            match source.next(context)? {
                Pulled::Document(document) => found.push(document),
                Pulled::Exhausted => break,
                Pulled::Yield(cause) => return Ok(Pulled::Yield(cause)),
            }
        }
        let found = found.finish();
        Ok(Pulled::Document(with_field(document.view(), &self.lookup.into, Some(Value::Array(found.view())))))
    }
}

/// The filter for documents that have one of the values. What is not there is null.
fn equality(document: DocRef<'_>, local: &FieldPath, foreign: &FieldPath) -> Doc {
    let parts: Vec<&BStr> = local.parts().collect();
    let mut values = Vec::new();
    visit(document, &parts, &mut |value| values.push(value));
    if values.is_empty() {
        values.push(Value::Null);
    }
    let has_pattern = values.iter().any(|value| matches!(value, Value::Regex { .. }));
    match values.as_slice() {
        [only] => doc! { (foreign.text()): { "$eq": *only } },
        // A pattern in a list would be matched, not compared.
        several if has_pattern => {
            let mut alternatives = ArrayBuilder::new();
            for value in several {
                alternatives.push(doc! { (foreign.text()): { "$eq": *value } });
            }
            doc! { "$or": alternatives.finish() }
        }
        several => {
            let mut list = ArrayBuilder::new();
            several.iter().for_each(|value| list.push(*value));
            doc! { (foreign.text()): { "$in": list.finish() } }
        }
    }
}

/// All values at a path: numbers are places in arrays, an array at the end stands for what is in it, and in others documents are looked into.
fn visit<'d>(document: DocRef<'d>, parts: &[&BStr], found: &mut dyn FnMut(Value<'d>)) {
    let Some((name, mut below)) = parts.split_first() else { return };
    let mut value = document.get(name);
    while let (Some(Value::Array(array)), Some((next, behind))) = (value, below.split_first()) {
        let Some(place) = std::str::from_utf8(next).ok().and_then(|text| text.parse::<usize>().ok()) else { break };
        (value, below) = (array.values().nth(place), behind);
    }
    match value {
        Some(Value::Array(array)) if below.is_empty() => array.values().for_each(found),
        Some(value) if below.is_empty() => found(value),
        Some(Value::Array(array)) => {
            for inside in array.values().filter_map(|value| value.as_document()) {
                visit(inside, below, found);
            }
        }
        Some(Value::Document(inside)) => visit(inside, below, found),
        _ => {}
    }
}

impl DocumentSource for LookupSource {
    fn next(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
        if let Some(unwinding) = self.unwinding.clone() {
            return self.next_unwound(context, &unwinding);
        }
        let document = match self.pending.take() {
            Some(document) => document,
            None => match self.source.next(context)? {
                Pulled::Document(document) => document,
                other => return Ok(other),
            },
        };
        let pulled = self.look_up(context, &document)?;
        if matches!(pulled, Pulled::Yield(_)) {
            self.pending = Some(document);
        }
        Ok(pulled)
    }

    fn save(&mut self) {
        self.source.save();
        if let Some(open) = &mut self.open {
            open.source.save();
        }
    }

    fn restore(&mut self, operation: &mut Operation, collections: &dyn Collections) -> Result<()> {
        self.source.restore(operation, collections)?;
        self.open.as_mut().map_or(Ok(()), |open| open.source.restore(operation, collections))
    }

    fn before(&self) -> Option<&dyn DocumentSource> {
        Some(&*self.source)
    }

    fn before_mut(&mut self) -> Option<&mut dyn DocumentSource> {
        Some(&mut *self.source)
    }
}

impl StageSpec for LookupSpec {
    fn name(&self) -> &'static str {
        "$lookup"
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        let (lookup, unwinding) = (Arc::clone(&self.0), self.1.clone());
        Ok(Box::new(LookupSource { source, lookup, unwinding, open: None, pending: None }))
    }

    fn to_doc(&self) -> Doc {
        let mut shown = DocBuilder::new();
        shown.append_all(self.0.specification.view());
        if let Some(unwinding) = &self.1 {
            shown.document("unwinding", |options| {
                options.append("preserveNullAndEmptyArrays", unwinding.keeps_empty);
                options.append_some("includeArrayIndex", unwinding.index_name.as_ref().map(FieldPath::text));
            });
        }
        doc! { "$lookup": shown.finish() }
    }

    fn with_next(&self, next: &dyn StageSpec) -> Option<SharedStage> {
        let unwinding = next.unwinding().filter(|unwinding| unwinding.path == self.0.into && self.1.is_none())?;
        Some(Arc::new(LookupSpec(Arc::clone(&self.0), Some(unwinding))))
    }

    fn needs(&self) -> Needs {
        let local = self.0.fields.iter().map(|(local, _)| without_places(local));
        let variables = paths_of(self.0.variables.iter().map(|(_, expression)| expression));
        Needs::these(variables.map(|paths| local.chain(paths).collect()))
    }

    fn modified(&self) -> Modified {
        let index_name = self.1.as_ref().and_then(|unwinding| unwinding.index_name.clone());
        Modified::Paths(std::iter::once(self.0.into.clone()).chain(index_name).collect())
    }

    fn keeps_count(&self) -> bool {
        self.1.is_none()
    }
}
