//! `$unwind`: a document for each value of an array.

use super::set_field::{append_with_parts, names, with_field};
use crate::executor::{YieldCause, YieldClock, YieldPolicy};
use crate::pipeline::source::{Fed, Look, feed_pulled, pass_on_to_source};
use crate::pipeline::{DocumentSource, Modified, Needs, PipelineContext, Pulled, SharedStage, StageSpec};
use pando_base::{Error, Result};
use pando_doc::{Doc, DocBuilder, DocRef, FieldPath, Value, doc, get_path};
use pando_expr::metadata::is_metadata;
use pando_operation::Operation;
use std::sync::Arc;

/// How long the values of arrays may come out before others run.
const RUN_NS: u64 = 10_000_000;

/// What an `$unwind` does.
#[derive(Clone, Debug)]
pub struct Unwinding {
    /// The array.
    pub(super) path: FieldPath,
    /// Where the place in it goes.
    pub(super) index_name: Option<FieldPath>,
    /// Documents without it stay.
    pub(super) keeps_empty: bool,
    /// In order, the fields that somebody looks at; none if that is not known.
    pub(super) kept: Option<Arc<[Box<[u8]>]>>,
}

impl Unwinding {
    /// What is needed of a document, if that is less than all of it.
    fn slim(&self, document: DocRef<'_>) -> Option<Doc> {
        let kept = self.kept.as_ref()?;
        let mut out = DocBuilder::new();
        for element in document.raw_elements() {
            let is_kept = kept.binary_search_by(|name| (**name).cmp(&**element.name)).is_ok();
            if is_kept || is_metadata(element.name) {
                out.append_raw(element);
            }
        }
        Some(out.finish())
    }
}

/// Reads it.
pub(in crate::pipeline) fn parse(value: Value<'_>) -> Result<SharedStage> {
    let (mut path, mut index_name, mut keeps_empty) = (None, None, false);
    match value {
        Value::String(_) => path = Some(value),
        Value::Document(options) => {
            for option in options.elements() {
                match &**option.name {
                    b"path" => path = Some(option.value),
                    b"preserveNullAndEmptyArrays" => match option.value {
                        Value::Bool(keeps) => keeps_empty = keeps,
                        _ => {
                            let reason =
                                "expected a boolean for the preserveNullAndEmptyArrays option to $unwind stage";
                            return Err(Error::location(28809, reason));
                        }
                    },
                    b"includeArrayIndex" => index_name = Some(parse_index_name(option.value)?),
                    _ => {
                        let reason = format!("unrecognized option to $unwind stage: {}", option.name);
                        return Err(Error::location(28811, reason));
                    }
                }
            }
        }
        other => {
            let reason = format!(
                "expected either a string or an object as specification for $unwind stage, got {}",
                other.value_type()
            );
            return Err(Error::location(15981, reason));
        }
    }
    let path = path.ok_or_else(|| Error::location(28812, "no path specified to $unwind stage"))?;
    let Value::String(text) = path else {
        let reason = format!("expected a string as the path for $unwind stage, got {}", path.value_type());
        return Err(Error::location(28808, reason));
    };
    let Some(name) = text.strip_prefix(b"$") else {
        let reason = format!("path option to $unwind stage should be prefixed with a '$': {text}");
        return Err(Error::location(28818, reason));
    };
    Ok(Arc::new(Unwinding { path: FieldPath::parse(name)?, index_name, keeps_empty, kept: None }))
}

fn parse_index_name(value: Value<'_>) -> Result<FieldPath> {
    match value.as_bytes().filter(|name| !name.is_empty()) {
        Some(name) if !name.starts_with(b"$") => FieldPath::parse(name),
        Some(name) => {
            let reason = format!("includeArrayIndex option to $unwind stage should not be prefixed with a '$': {name}");
            Err(Error::location(28822, reason))
        }
        None => Err(Error::location(
            28810,
            "expected a non-empty string for the includeArrayIndex  option to $unwind stage",
        )),
    }
}

/// Documents come out one by one: all those of a long array at once, each with the rest of its document, could be of any size.
struct UnwindSource {
    source: Box<dyn DocumentSource>,
    spec: Unwinding,
    open: Option<OpenArray>,
    /// A document alone can keep a worker busy.
    clock: YieldClock,
    /// What a document is written into that is only looked at.
    buffer: Vec<u8>,
}

/// An array on its way out.
struct OpenArray {
    /// What goes with each value.
    document: Doc,
    /// As a document, and where its next value is.
    array: Doc,
    offset: usize,
    index: i64,
}

impl OpenArray {
    fn new(document: Doc, array: Doc) -> OpenArray {
        /// The first value lies behind the length.
        const FIRST: usize = 4;
        OpenArray { document, array, offset: FIRST, index: 0 }
    }

    /// The next value and its place.
    fn next(&mut self) -> Option<(Value<'_>, i64)> {
        let element = self.array.view().element_at(self.offset)?;
        let index = self.index;
        self.offset += element.bytes.len();
        self.index += 1;
        Some((element.value()?, index))
    }
}

impl UnwindSource {
    /// Opens the array of a document; or gives the one document that it becomes.
    fn take_in(&mut self, document: Doc) -> Option<Doc> {
        let found = get_path(document.view(), &self.spec.path);
        match found {
            Some(Value::Array(array)) if !array.is_empty() => {
                let array = Doc::trusted(document.share(array.bytes()));
                let kept = self.spec.slim(document.view()).unwrap_or(document);
                self.open = Some(OpenArray::new(kept, array));
                None
            }
            Some(Value::Array(_)) if self.spec.keeps_empty => Some(self.spec.unwound(document.view(), None, None)),
            None | Some(Value::Null | Value::Undefined) if self.spec.keeps_empty => match self.spec.index_name {
                Some(_) => Some(self.spec.unwound(document.view(), found, None)),
                None => Some(document),
            },
            None | Some(Value::Array(_) | Value::Null | Value::Undefined) => None,
            Some(value) => Some(self.spec.unwound(document.view(), Some(value), None)),
        }
    }

    /// True if others are to run first.
    fn has_run_long(&mut self, operation: &Operation) -> Result<bool> {
        let is_time = self.clock.is_time(operation)?;
        if is_time {
            self.clock.restart(operation);
        }
        Ok(is_time)
    }

    /// Has a look at what is left of the open array; false if others are to run first.
    fn feed_open(&mut self, operation: &Operation, look: &mut Look<'_>) -> Result<bool> {
        let Some(mut open) = self.open.take() else { return Ok(true) };
        let (spec, document) = (self.spec.clone(), open.document.clone());
        let parts = names(&spec.path);
        while let Some((value, _)) = open.next() {
            let mut buffer = std::mem::take(&mut self.buffer);
            buffer.clear();
            let mut builder = DocBuilder::behind(buffer);
            append_with_parts(&mut builder, document.view(), &parts, Some(value));
            self.buffer = builder.finish_buffer();
            look(DocRef::trusted(&self.buffer))?;
            if self.has_run_long(operation)? {
                self.open = Some(open);
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Unwinding {
    fn unwound(&self, document: DocRef<'_>, value: Option<Value<'_>>, index: Option<i64>) -> Doc {
        let unwound = with_field(document, &self.path, value);
        let Some(name) = &self.index_name else { return unwound };
        with_field(unwound.view(), name, Some(index.map_or(Value::Null, Value::Int64)))
    }
}

impl DocumentSource for UnwindSource {
    fn next(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
        loop {
            if let Some(mut open) = self.open.take() {
                let document = open.document.clone();
                if let Some((value, index)) = open.next() {
                    let unwound = self.spec.unwound(document.view(), Some(value), Some(index));
                    self.open = Some(open);
                    return Ok(Pulled::Document(unwound));
                }
            }
            if self.has_run_long(context.operation)? {
                return Ok(Pulled::Yield(YieldCause::Time));
            }
            match self.source.next(context)? {
                Pulled::Document(document) => {
                    if let Some(document) = self.take_in(document) {
                        return Ok(Pulled::Document(document));
                    }
                }
                other => return Ok(other),
            }
        }
    }

    fn feed(&mut self, context: &mut PipelineContext<'_>, look: &mut Look<'_>) -> Result<Fed> {
        if self.spec.index_name.is_some() {
            return feed_pulled(self.next(context)?, look);
        }
        if self.open.is_none() {
            match self.source.next(context)? {
                Pulled::Document(document) => {
                    if let Some(document) = self.take_in(document) {
                        look(document.view())?;
                    }
                }
                other => return feed_pulled(other, look),
            }
        }
        Ok(if self.feed_open(context.operation, look)? { Fed::Some } else { Fed::Yield(YieldCause::Time) })
    }

    pass_on_to_source!();
}

impl StageSpec for Unwinding {
    fn name(&self) -> &'static str {
        "$unwind"
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        let clock = YieldClock::new(YieldPolicy { iterations: u32::MAX, period_ns: RUN_NS });
        Ok(Box::new(UnwindSource { source, spec: self.clone(), open: None, clock, buffer: Vec::new() }))
    }

    fn unwinding(&self) -> Option<Unwinding> {
        Some(self.clone())
    }

    fn keeping(&self, names: &[&[u8]]) -> Option<SharedStage> {
        let kept = names.iter().map(|name| Box::from(*name)).collect();
        Some(Arc::new(Unwinding { kept: Some(kept), ..self.clone() }))
    }

    fn needs(&self) -> Needs {
        Needs::These(vec![self.path.clone()])
    }

    fn modified(&self) -> Modified {
        Modified::Paths(std::iter::once(&self.path).chain(&self.index_name).cloned().collect())
    }

    fn to_doc(&self) -> Doc {
        let mut options = DocBuilder::new();
        options.append("path", format!("${}", self.path).as_str());
        if self.keeps_empty {
            options.append("preserveNullAndEmptyArrays", true);
        }
        if let Some(name) = &self.index_name {
            options.append("includeArrayIndex", name.text());
        }
        doc! { "$unwind": options.finish() }
    }
}
