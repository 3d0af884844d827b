//! `$lookup`: to each document the documents of another collection that belong to it.
//!
//! By equality of two fields, by a pipeline, or both. The pipeline sees the values of `let` as variables; since these are
//! different for each document, it is read anew each time, so that the planner sees constants.

use super::group::paths_of;
use super::set_field::with_field;
use crate::QueryEngine;
use crate::pipeline::source::pass_on_to_source;
use crate::pipeline::{
    DocumentSource, Modified, Needs, PipelineContext, PipelineParser, Pulled, SharedStage, StageSpec, parse_pipeline,
};
use bstr::BStr;
use pando_base::{Error, Namespace, Result};
use pando_doc::{ArrayBuilder, Doc, DocRef, FieldPath, LeafArrays, OwnedValue, PathOptions, Value, doc, visit_path};
use pando_expr::Expression;
use std::ops::ControlFlow;
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
struct LookupSpec(Arc<Lookup>);

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
    let nested = PipelineParser { is_nested: true, namespace: from.clone(), ..parser.clone() };
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
    Ok(Arc::new(LookupSpec(Arc::new(lookup))))
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

struct LookupSource {
    source: Box<dyn DocumentSource>,
    lookup: Arc<Lookup>,
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

    fn look_up(&self, context: &mut PipelineContext<'_>, document: &Doc) -> Result<Pulled> {
        let stages = self.stages(document.view())?;
        let engine: &QueryEngine = context.engine;
        let mut source = engine.patient().pipeline_source(
            context.operation,
            &self.lookup.from,
            &stages,
            &self.lookup.parser.context.collator,
        )?;
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

/// The filter for documents that have one of the values.
fn equality(document: DocRef<'_>, local: &FieldPath, foreign: &FieldPath) -> Doc {
    let options = PathOptions { leaf: LeafArrays::TraverseOmitArray, ..PathOptions::default() };
    let mut alternatives = ArrayBuilder::new();
    let _: ControlFlow<()> = visit_path(document, local, options, &mut |visit| {
        let value = match visit.value {
            None | Some(Value::Undefined) => Value::Null,
            Some(value) => value,
        };
        alternatives.document(|alternative| {
            alternative.document(foreign.text(), |condition| condition.append("$eq", value));
        });
        ControlFlow::Continue(())
    });
    if alternatives.is_empty() {
        return doc! { "$alwaysFalse": 1 };
    }
    doc! { "$or": alternatives.finish() }
}

impl DocumentSource for LookupSource {
    fn next(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
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

    pass_on_to_source!();
}

impl StageSpec for LookupSpec {
    fn name(&self) -> &'static str {
        "$lookup"
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        Ok(Box::new(LookupSource { source, lookup: Arc::clone(&self.0), pending: None }))
    }

    fn to_doc(&self) -> Doc {
        doc! { "$lookup": &self.0.specification }
    }

    fn needs(&self) -> Needs {
        let local = self.0.fields.iter().map(|(local, _)| local.clone());
        let variables = paths_of(self.0.variables.iter().map(|(_, expression)| expression));
        Needs::these(variables.map(|paths| local.chain(paths).collect()))
    }

    fn modified(&self) -> Modified {
        Modified::Paths(vec![self.0.into.clone()])
    }

    fn keeps_count(&self) -> bool {
        true
    }
}
