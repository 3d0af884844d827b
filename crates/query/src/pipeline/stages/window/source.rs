//! The stage behind the sort: one partition at a time.

use super::function::WindowFunction;
use super::reckon::Partition;
use crate::pipeline::source::pass_on_to_source;
use crate::pipeline::stages::ordering;
use crate::pipeline::{DocumentSource, PipelineContext, Pulled, ShardSplit, StageSpec};
use pando_base::{Error, Result};
use pando_doc::{ArrayBuilder, Doc, DocBuilder, DocRef, FieldPath, OwnedValue, Value, compare_with, doc};
use pando_expr::{Expression, SharedCollator};
use std::collections::VecDeque;
use std::sync::Arc;

/// A field of the results.
#[derive(Debug)]
pub(super) struct WindowField {
    pub(super) path: FieldPath,
    pub(super) function: WindowFunction,
}

pub(super) struct Windows {
    /// What documents of a partition have in common.
    pub(super) partition: Option<Expression>,
    /// What they are sorted by, if it is one field.
    pub(super) key: Option<Expression>,
    pub(super) sort: Option<Doc>,
    pub(super) fields: Vec<WindowField>,
    pub(super) output: Doc,
    pub(super) collator: Option<SharedCollator>,
    pub(super) memory_bytes_max: u64,
}

#[derive(Clone)]
pub(super) struct WindowSpec(pub(super) Arc<Windows>);

impl std::fmt::Debug for WindowSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.to_doc())
    }
}

struct WindowSource {
    source: Box<dyn DocumentSource>,
    windows: Arc<Windows>,
    /// The partition that is being read, and what its documents have in common.
    partition: Vec<Doc>,
    common: OwnedValue,
    size_bytes: u64,
    ready: VecDeque<Doc>,
    is_over: bool,
}

impl WindowSource {
    /// Takes a document in; a full partition is reckoned when the first one of the next comes.
    fn take_in(&mut self, document: Doc) -> Result<()> {
        let common = match &self.windows.partition {
            Some(expression) => expression.evaluate_document(document.view())?.into_value().unwrap_or(OwnedValue::Null),
            None => OwnedValue::Null,
        };
        if matches!(common.view(), Value::Array(_)) {
            let reason = "An expression used to partition cannot evaluate to value of type array";
            return Err(Error::type_mismatch(reason));
        }
        let options = ordering::options(&self.windows.collator);
        if !self.partition.is_empty() && compare_with(self.common.view(), common.view(), &options).is_ne() {
            self.finish()?;
        }
        self.common = common;
        self.size_bytes += document.size_bytes() as u64;
        if self.size_bytes > self.windows.memory_bytes_max {
            let reason = format!(
                "Exceeded memory limit in DocumentSourceSetWindowFields, used {} bytes but max allowed is {}",
                self.size_bytes, self.windows.memory_bytes_max
            );
            return Err(Error::location(5414201, reason));
        }
        self.partition.push(document);
        Ok(())
    }

    /// Reckons the fields of the partition.
    fn finish(&mut self) -> Result<()> {
        let documents = std::mem::take(&mut self.partition);
        self.size_bytes = 0;
        let keys = match &self.windows.key {
            Some(key) => documents
                .iter()
                .map(|document| Ok(key.evaluate_document(document.view())?.into_value().unwrap_or(OwnedValue::Null)))
                .collect::<Result<Vec<_>>>()?,
            None => Vec::new(),
        };
        let partition = Partition { documents: &documents, keys: &keys, collator: &self.windows.collator };
        let mut columns = Vec::with_capacity(self.windows.fields.len());
        for field in &self.windows.fields {
            columns.push((&field.path, partition.reckon(&field.function)?.into_iter()));
        }
        for document in &documents {
            let mut result = document.clone();
            for (path, column) in &mut columns {
                let value = column.next().flatten();
                let parts: Vec<&[u8]> = path.parts().map(|part| &**part).collect();
                let mut builder = DocBuilder::with_capacity(result.size_bytes() + 32);
                add_field(&mut builder, result.view(), &parts, value.as_ref().map(OwnedValue::view));
                result = builder.finish();
            }
            self.ready.push_back(result);
        }
        Ok(())
    }
}

/// Sets a field as `$addFields` does: in every document of arrays on the way; without a value the field is left out.
fn add_field(builder: &mut DocBuilder, document: DocRef<'_>, parts: &[&[u8]], value: Option<Value<'_>>) {
    let Some((name, below)) = parts.split_first() else { return };
    let mut is_set = false;
    for element in document.elements() {
        if is_set || **element.name != **name {
            builder.append_element(element);
            continue;
        }
        is_set = true;
        add_below(builder, name, below, Some(element.value), value);
    }
    if !is_set {
        add_below(builder, name, below, None, value);
    }
}

fn add_below(
    builder: &mut DocBuilder,
    name: &[u8],
    below: &[&[u8]],
    existing: Option<Value<'_>>,
    value: Option<Value<'_>>,
) {
    match (below.is_empty(), existing) {
        (true, _) => {
            if let Some(value) = value {
                builder.append(name, value);
            }
        }
        (false, Some(Value::Array(array))) => {
            builder.append(name, in_array(array, below, value));
        }
        (false, Some(Value::Document(inside))) => {
            builder.document(name, |nested| add_field(nested, inside, below, value))
        }
        (false, _) => builder.document(name, |nested| add_field(nested, DocRef::EMPTY, below, value)),
    }
}

fn in_array(array: pando_doc::ArrayRef<'_>, below: &[&[u8]], value: Option<Value<'_>>) -> pando_doc::Array {
    let mut builder = ArrayBuilder::new();
    for item in array.values() {
        match item {
            Value::Array(nested) => builder.push(in_array(nested, below, value)),
            Value::Document(inside) => builder.document(|nested| add_field(nested, inside, below, value)),
            _ => builder.document(|nested| add_field(nested, DocRef::EMPTY, below, value)),
        }
    }
    builder.finish()
}

impl DocumentSource for WindowSource {
    fn next(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
        loop {
            if let Some(document) = self.ready.pop_front() {
                return Ok(Pulled::Document(document));
            }
            if self.is_over {
                return Ok(Pulled::Exhausted);
            }
            match self.source.next(context)? {
                Pulled::Document(document) => self.take_in(document)?,
                Pulled::Exhausted => {
                    self.is_over = true;
                    self.finish()?;
                }
                Pulled::Yield(cause) => return Ok(Pulled::Yield(cause)),
            }
        }
    }

    pass_on_to_source!();
}

impl StageSpec for WindowSpec {
    fn name(&self) -> &'static str {
        "$_internalSetWindowFields"
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        Ok(Box::new(WindowSource {
            source,
            windows: Arc::clone(&self.0),
            partition: Vec::new(),
            common: OwnedValue::Null,
            size_bytes: 0,
            ready: VecDeque::new(),
            is_over: false,
        }))
    }

    fn to_doc(&self) -> Doc {
        let mut specification = DocBuilder::new();
        specification.append_some("partitionBy", self.0.partition.as_ref().map(Expression::to_value));
        specification.append_some("sortBy", self.0.sort.as_ref());
        specification.append("output", &self.0.output);
        doc! { "$_internalSetWindowFields": specification.finish() }
    }

    fn split(&self) -> ShardSplit {
        ShardSplit::OnMerger
    }
}
