//! `$lookup`: to each document the documents of another collection that belong to it.
//!
//! With an `$unwind` of them behind it the two become one: each found document goes out by itself, and no array of all of them is made.
//! A `$match` of what was found, behind that `$unwind`, is looked at where it is found.
//!
//! By equality of two fields, by a pipeline, or both. The pipeline sees the values of `let` as variables; since these are
//! different for each document, it is read anew each time, so that the planner sees constants. Where no index has the other
//! collection's field, and more than a few documents look for theirs, that collection is read once into a table (`hash_join`).

mod hash_join;
mod local_values;
mod source;

use super::group::paths_of;
use super::unwind::Unwinding;
use crate::pipeline::dependencies::without_places;
use crate::pipeline::{
    DocumentSource, Modified, Needs, Permits, PipelineParser, Pushdown, SharedStage, StageSpec, Within, parse_pipeline,
};
use bstr::BStr;
use pando_base::{Error, ErrorCode, Namespace, Result};
use pando_doc::{Doc, DocBuilder, DocRef, FieldPath, OwnedValue, Value, doc};
use pando_expr::expression::check_user_variable;
use pando_expr::matcher::Node;
use pando_expr::{Expression, MatchExpression};
use source::LookupSource;
use std::sync::Arc;

struct Lookup {
    from: Namespace,
    fields: Option<(FieldPath, FieldPath)>,
    variables: Vec<(String, Expression)>,
    pipeline: Option<Vec<Doc>>,
    into: FieldPath,
    specification: Doc,
    parser: PipelineParser,
    /// Where it may stand.
    permits: Permits,
}

#[derive(Clone)]
struct LookupSpec {
    lookup: Arc<Lookup>,
    /// The `$unwind` of what was found.
    unwinding: Option<Unwinding>,
    /// What found documents have to fulfil beside that.
    matching: Option<Arc<MatchExpression>>,
}

impl std::fmt::Debug for LookupSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.lookup.specification)
    }
}

/// The options as they are written.
pub(in crate::pipeline) struct Options<'a> {
    specification: DocRef<'a>,
    from: Option<&'a BStr>,
    into: Option<&'a BStr>,
    local: Option<&'a BStr>,
    foreign: Option<&'a BStr>,
    variables: DocRef<'a>,
    pub(in crate::pipeline) pipeline: Option<Vec<DocRef<'a>>>,
}

impl<'a> Options<'a> {
    pub(in crate::pipeline) fn read(value: Value<'a>) -> Result<Options<'a>> {
        let Value::Document(specification) = value else {
            let reason = format!("the $lookup stage specification must be an object, but found {}", value.value_type());
            return Err(Error::location(9, reason));
        };
        let (from, into, local, foreign) = (None, None, None, None);
        let (variables, pipeline) = (DocRef::EMPTY, None);
        let mut options = Options { specification, from, into, local, foreign, variables, pipeline };
        for option in specification.elements() {
            let text = || match option.value {
                Value::String(text) => Ok(text),
                other => Err(Error::failed_to_parse(format!(
                    "$lookup argument '{}' must be a string, found {}: {}",
                    option.name,
                    option,
                    other.value_type()
                ))),
            };
            match &**option.name {
                b"from" => options.from = Some(text()?),
                b"as" => options.into = Some(text()?),
                b"localField" => options.local = Some(text()?),
                b"foreignField" => options.foreign = Some(text()?),
                b"let" => options.variables = read_variables(option.value)?,
                b"pipeline" => options.pipeline = Some(read_stages(option.value)?),
                _ => return Err(Error::failed_to_parse(format!("unknown argument to $lookup: {}", option.name))),
            }
        }
        Ok(options)
    }

    /// The other collection, for a pipeline on this one.
    pub(in crate::pipeline) fn from(&self, namespace: &Namespace) -> Result<Namespace> {
        match self.from {
            Some(from) if from.is_empty() => {
                Err(Error::new(ErrorCode::InvalidNamespace, "$lookup 'from' field must name a collection"))
            }
            Some(from) => namespace.sibling(&from.to_string()),
            // Documents of the stage's own need no collection.
            None if super::documents::begin(self.pipeline.iter().flatten().next().copied()) => Ok(namespace.clone()),
            None => Err(missing("from")),
        }
    }

    /// Does it look for equality of fields? A name that is empty is none.
    pub(in crate::pipeline) fn has_fields(&self) -> bool {
        [self.local, self.foreign].into_iter().flatten().any(|name| !name.is_empty())
    }
}

fn missing(name: &str) -> Error {
    Error::failed_to_parse(format!("must specify '{name}' field for a $lookup"))
}

/// Reads it.
pub(in crate::pipeline) fn parse(value: Value<'_>, parser: &PipelineParser) -> Result<SharedStage> {
    let options = Options::read(value)?;
    let has_fields = options.has_fields();
    if options.pipeline.is_none() && options.specification.contains("let") {
        return Err(Error::failed_to_parse("$lookup with a 'let' argument must also specify 'pipeline'"));
    }
    let from = options.from(&parser.namespace)?;
    let fields = match (options.local, options.foreign) {
        (Some(local), Some(foreign)) if !local.is_empty() && !foreign.is_empty() => {
            Some((FieldPath::parse(local)?, FieldPath::parse(foreign)?))
        }
        _ if options.pipeline.is_some() && !has_fields => None,
        _ => {
            let reason = "$lookup requires both or neither of 'localField' and 'foreignField' to be specified";
            return Err(Error::failed_to_parse(reason));
        }
    };
    let nested = parser.nested(&from, Within::Lookup)?;
    let mut lookup = Lookup {
        from,
        fields,
        variables: parse_variables(options.variables, parser)?,
        pipeline: options.pipeline.map(|stages| stages.into_iter().map(DocRef::to_doc).collect()),
        into: FieldPath::parse(options.into.ok_or_else(|| missing("as"))?)?,
        specification: options.specification.to_doc(),
        parser: nested,
        permits: Permits::of_stages(&[]),
    };
    lookup.permits = check_pipeline(&lookup)?;
    Ok(Arc::new(LookupSpec { lookup: Arc::new(lookup), unwinding: None, matching: None }))
}

fn read_variables(value: Value<'_>) -> Result<DocRef<'_>> {
    value.as_document().ok_or_else(|| Error::failed_to_parse("$lookup argument 'let' must be an object"))
}

fn parse_variables(variables: DocRef<'_>, parser: &PipelineParser) -> Result<Vec<(String, Expression)>> {
    variables
        .elements()
        .map(|variable| {
            check_user_variable(variable.name)?;
            Ok((variable.name.to_string(), Expression::parse(variable.value, &parser.context)?))
        })
        .collect()
}

fn read_stages(value: Value<'_>) -> Result<Vec<DocRef<'_>>> {
    let refused = || Error::type_mismatch("'pipeline' option must be specified as an array");
    let Value::Array(stages) = value else { return Err(refused()) };
    stages.values().map(|stage| stage.as_document().ok_or_else(refused)).collect()
}

/// Errors of the pipeline are told when the lookup is read, not when it first runs. Where its stages may stand, the lookup may.
fn check_pipeline(lookup: &Lookup) -> Result<Permits> {
    let Some(pipeline) = &lookup.pipeline else { return Ok(lookup.permits) };
    let mut parser = lookup.parser.clone();
    for (name, _) in &lookup.variables {
        parser.context.set_variable(BStr::new(name), Some(OwnedValue::Null));
    }
    parse_pipeline(pipeline, &parser).map(|stages| Permits::of_stages(&stages))
}

impl StageSpec for LookupSpec {
    fn name(&self) -> &'static str {
        "$lookup"
    }

    fn permits(&self) -> Permits {
        self.lookup.permits
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        Ok(Box::new(LookupSource::new(source, self.clone())))
    }

    fn to_doc(&self) -> Doc {
        let mut shown = DocBuilder::new();
        shown.append_all(self.lookup.specification.view());
        if let Some(unwinding) = &self.unwinding {
            shown.document("unwinding", |options| {
                options.append("preserveNullAndEmptyArrays", unwinding.keeps_empty);
                options.append_some("includeArrayIndex", unwinding.index_name.as_ref().map(FieldPath::text));
            });
        }
        if let Some(matching) = &self.matching {
            shown.append("matching", matching.to_document());
        }
        doc! { "$lookup": shown.finish() }
    }

    fn with_next(&self, next: &dyn StageSpec) -> Option<SharedStage> {
        let Some(own) = &self.unwinding else {
            let unwinding = next.unwinding().filter(|unwinding| unwinding.path == self.lookup.into)?;
            return Some(Arc::new(LookupSpec { unwinding: Some(unwinding), ..self.clone() }));
        };
        // With the place in the array, or with nothing in place of what was found, documents go out that the filter did not see.
        let Pushdown::Match(filter) = next.pushdown() else { return None };
        if own.keeps_empty || own.index_name.is_some() || self.lookup.into.part_count() > 1 {
            return None;
        }
        let mut parts: Vec<Node> = self.matching.iter().map(|matching| matching.root().clone()).collect();
        parts.push(below(filter.root(), &self.lookup.into)?);
        let matching = MatchExpression::from_node(Node::And(parts), filter.collator().cloned()).optimize();
        Some(Arc::new(LookupSpec { matching: Some(Arc::new(matching)), ..self.clone() }))
    }

    fn needs(&self) -> Needs {
        let local = self.lookup.fields.iter().map(|(local, _)| without_places(local));
        let variables = paths_of(self.lookup.variables.iter().map(|(_, expression)| expression));
        Needs::these(variables.map(|paths| local.chain(paths).collect()))
    }

    fn modified(&self) -> Modified {
        let index_name = self.unwinding.as_ref().and_then(|unwinding| unwinding.index_name.clone());
        Modified::Paths(std::iter::once(self.lookup.into.clone()).chain(index_name).collect())
    }

    fn keeps_count(&self) -> bool {
        self.unwinding.is_none()
    }

    fn lets_sorts_pass(&self) -> bool {
        self.unwinding.is_none()
    }
}

/// The filter as the documents below a path see it; none if it looks at anything else.
fn below(node: &Node, prefix: &FieldPath) -> Option<Node> {
    let all = |children: &[Node]| children.iter().map(|child| below(child, prefix)).collect::<Option<Vec<Node>>>();
    Some(match node {
        Node::And(children) => Node::And(all(children)?),
        Node::Or(children) => Node::Or(all(children)?),
        Node::Nor(children) => Node::Nor(all(children)?),
        Node::Not(child) => Node::Not(Box::new(below(child, prefix)?)),
        Node::Leaf(leaf) => {
            let is_below = prefix.is_prefix_of(&leaf.path) && leaf.path.part_count() > prefix.part_count();
            let parts = leaf.path.parts().skip(prefix.part_count()).filter(|_| is_below);
            let text = parts.map(|part| part.to_vec()).collect::<Vec<_>>().join(&b'.');
            Node::leaf(FieldPath::lenient(text).ok().filter(|_| is_below)?, leaf.predicate.clone())
        }
        _ => return None,
    })
}
