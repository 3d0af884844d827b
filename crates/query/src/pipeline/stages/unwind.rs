//! `$unwind`: a document for each value of an array.

use super::set_field::{append_with_parts, names, with_field};
use crate::executor::{YieldCause, YieldClock, YieldPolicy};
use crate::pipeline::source::{Fed, Look, feed_pulled, pass_on_to_source};
use crate::pipeline::{DocumentSource, Modified, Needs, PipelineContext, Pulled, SharedStage, StageSpec};
use pando_base::{Error, Result};
use pando_doc::{Doc, DocBuilder, DocRef, FieldPath, RawElement, Value, doc, get_path};
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
        self.kept.as_ref()?;
        let mut out = DocBuilder::new();
        document.raw_elements().filter(|element| self.keeps(element.name)).for_each(|element| out.append_raw(element));
        Some(out.finish())
    }

    /// True if somebody looks at the field of this name, as far as is known.
    fn keeps(&self, name: &[u8]) -> bool {
        let Some(kept) = &self.kept else { return true };
        is_metadata(name) || kept.binary_search_by(|kept| (**kept).cmp(name)).is_ok()
    }

    /// Where the array is, if that is a field of the document itself and nothing else changes.
    fn only_field(&self) -> Option<&[u8]> {
        (self.path.part_count() == 1 && self.index_name.is_none()).then(|| &**self.path.part(0))
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
    spec: Arc<Unwinding>,
    open: Option<OpenArray>,
    /// A document alone can keep a worker busy.
    clock: YieldClock,
    /// What a document is written into that is only looked at.
    buffer: Vec<u8>,
    /// What comes behind the values in each document of an array.
    tail: Vec<u8>,
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
        let index = self.index;
        Some((self.next_raw()?.value()?, index))
    }

    /// The next value as it is encoded.
    fn next_raw(&mut self) -> Option<RawElement<'_>> {
        let element = self.array.view().element_at(self.offset)?;
        self.offset += element.bytes.len();
        self.index += 1;
        Some(element)
    }
}

impl UnwindSource {
    /// Opens the array of a document; or gives the one document that it becomes. The document of an array is made `slim` if it is going
    /// to be copied for each value.
    fn take_in(&mut self, document: Doc, slim: bool) -> Option<Doc> {
        let found = get_path(document.view(), &self.spec.path);
        match found {
            Some(Value::Array(array)) if !array.is_empty() => {
                let array = Doc::trusted(document.share(array.bytes()));
                let kept = slim.then(|| self.spec.slim(document.view())).flatten().unwrap_or(document);
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
        let spec = Arc::clone(&self.spec);
        if let Some(name) = spec.only_field() {
            let has_ended = self.feed_field(&spec, name, &mut open, operation, look)?;
            self.open = (!has_ended).then_some(open);
            return Ok(has_ended);
        }
        let document = open.document.clone();
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

impl UnwindSource {
    /// The same where the array is a field of the document itself: what stands before and behind it is written once for all values.
    fn feed_field(
        &mut self,
        spec: &Unwinding,
        name: &[u8],
        open: &mut OpenArray,
        operation: &Operation,
        look: &mut Look<'_>,
    ) -> Result<bool> {
        let mut elements = open.document.view().raw_elements();
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        buffer.extend_from_slice(&[0; size_of::<i32>()]);
        for element in elements.by_ref().take_while(|element| **element.name != *name) {
            if spec.keeps(element.name) {
                buffer.extend_from_slice(element.bytes);
            }
        }
        self.tail.clear();
        for element in elements.filter(|element| spec.keeps(element.name)) {
            self.tail.extend_from_slice(element.bytes);
        }
        self.tail.push(0);
        let head_bytes = buffer.len();
        let mut has_ended = true;
        while let Some(value) = open.next_raw() {
            buffer.truncate(head_bytes);
            buffer.push(value.value_type as u8);
            buffer.extend_from_slice(name);
            buffer.push(0);
            buffer.extend_from_slice(value.value_bytes);
            buffer.extend_from_slice(&self.tail);
            let length = buffer.len() as i32;
            if let Some(front) = buffer.first_chunk_mut() {
                *front = length.to_le_bytes();
            }
            look(DocRef::trusted(&buffer))?;
            if self.has_run_long(operation)? {
                has_ended = false;
                break;
            }
        }
        self.buffer = buffer;
        Ok(has_ended)
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
                    if let Some(document) = self.take_in(document, true) {
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
                    let slim = self.spec.only_field().is_none();
                    if let Some(document) = self.take_in(document, slim) {
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
        let (spec, buffer, tail) = (Arc::new(self.clone()), Vec::new(), Vec::new());
        Ok(Box::new(UnwindSource { source, spec, open: None, clock, buffer, tail }))
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
