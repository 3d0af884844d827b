//! `$unwind`: a document for each value of an array.

use super::set_field::{append_with_parts, names, with_field};
use crate::executor::{YieldCause, YieldClock, YieldPolicy};
use crate::pipeline::source::{Fed, Look, feed_pulled, pass_on_to_source};
use crate::pipeline::{DocumentSource, Modified, Needs, PipelineContext, Pulled, SharedStage, StageSpec};
use pando_base::{Error, Result};
use pando_doc::{Doc, DocBuilder, DocRef, FieldPath, RawElement, Value, ValueType, doc, get_path};
use pando_expr::metadata::is_metadata;
use pando_operation::Operation;
use std::collections::VecDeque;
use std::sync::Arc;

/// The values of arrays up to this length are looked at without a look at the time.
const SHORT_BYTES: usize = 16 * 1024;
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
    if name.contains(&0) {
        return Err(Error::location(16419, "field path must not contain embedded null characters"));
    }
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
    /// Documents that wait for a long array before them.
    waiting: VecDeque<Doc>,
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
            Some(Value::Array(_)) if self.spec.keeps_empty => Some(self.spec.without_array(document.view())),
            None | Some(Value::Array(_) | Value::Null | Value::Undefined) if !self.spec.keeps_empty => None,
            // There is no array: nothing is put in its place, not even where the way to it leads through arrays.
            _ => Some(self.spec.untouched(document)),
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
    /// The same where the array is a field of the document itself.
    fn feed_field(
        &mut self,
        spec: &Unwinding,
        name: &[u8],
        open: &mut OpenArray,
        operation: &Operation,
        look: &mut Look<'_>,
    ) -> Result<bool> {
        let mut around = Around::new(&mut self.buffer, &mut self.tail);
        around.take_from(open.document.view(), spec, name);
        while let Some(value) = open.next_raw() {
            look(around.document(name, value))?;
            if self.clock.is_time(operation)? {
                self.clock.restart(operation);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Has the next documents looked at where the array is a field of theirs. Those with short arrays are never made; behind one
    /// with a long array all wait.
    fn feed_short(&mut self, context: &mut PipelineContext<'_>, name: &[u8], look: &mut Look<'_>) -> Result<Fed> {
        let (spec, waiting) = (&*self.spec, &mut self.waiting);
        let mut around = Around::new(&mut self.buffer, &mut self.tail);
        let fed = self.source.feed(context, &mut |document| {
            let field = document.get_raw(name);
            match field {
                _ if !waiting.is_empty() => {
                    waiting.push_back(Doc::from(document));
                    Ok(())
                }
                Some(array) if array.value_type == ValueType::Array => {
                    if array.value_bytes.len() > SHORT_BYTES {
                        waiting.push_back(Doc::from(document));
                        return Ok(());
                    }
                    around.take_from(document, spec, name);
                    let mut values = DocRef::trusted(array.value_bytes).raw_elements().peekable();
                    if values.peek().is_none() && spec.keeps_empty {
                        return look(spec.without_array(document).view());
                    }
                    values.try_for_each(|value| look(around.document(name, value)))
                }
                None if !spec.keeps_empty => Ok(()),
                Some(nothing)
                    if matches!(nothing.value_type, ValueType::Null | ValueType::Undefined) && !spec.keeps_empty =>
                {
                    Ok(())
                }
                _ => look(document),
            }
        })?;
        // What waits comes first.
        Ok(if matches!(fed, Fed::Exhausted) && !self.waiting.is_empty() { Fed::Some } else { fed })
    }
}

/// What stands around the values of an array in the documents that are looked at: written once for all of them.
struct Around<'b> {
    /// The document; in front what is before the array.
    buffer: &'b mut Vec<u8>,
    head_bytes: usize,
    /// What is behind the array.
    tail: &'b mut Vec<u8>,
}

impl<'b> Around<'b> {
    fn new(buffer: &'b mut Vec<u8>, tail: &'b mut Vec<u8>) -> Around<'b> {
        Around { buffer, head_bytes: 0, tail }
    }

    fn take_from(&mut self, document: DocRef<'_>, spec: &Unwinding, name: &[u8]) {
        let mut elements = document.raw_elements();
        self.buffer.clear();
        self.buffer.extend_from_slice(&[0; size_of::<i32>()]);
        for element in elements.by_ref().take_while(|element| **element.name != *name) {
            if spec.keeps(element.name) {
                self.buffer.extend_from_slice(element.bytes);
            }
        }
        self.head_bytes = self.buffer.len();
        self.tail.clear();
        for element in elements.filter(|element| spec.keeps(element.name)) {
            self.tail.extend_from_slice(element.bytes);
        }
        self.tail.push(0);
    }

    /// The document with this value in the array's place.
    fn document(&mut self, name: &[u8], value: RawElement<'_>) -> DocRef<'_> {
        let buffer = &mut *self.buffer;
        buffer.truncate(self.head_bytes);
        buffer.push(value.value_type as u8);
        buffer.extend_from_slice(name);
        buffer.push(0);
        buffer.extend_from_slice(value.value_bytes);
        buffer.extend_from_slice(self.tail);
        let length = buffer.len() as i32;
        if let Some(front) = buffer.first_chunk_mut() {
            *front = length.to_le_bytes();
        }
        DocRef::trusted(buffer)
    }
}

impl Unwinding {
    /// The document with one value in the array's place.
    fn unwound(&self, document: DocRef<'_>, value: Value<'_>, index: i64) -> Doc {
        self.numbered(with_field(document, &self.path, Some(value)), Value::Int64(index))
    }

    /// The document of an array without values.
    fn without_array(&self, document: DocRef<'_>) -> Doc {
        self.numbered(with_field(document, &self.path, None), Value::Null)
    }

    /// The document that has no array there.
    fn untouched(&self, document: Doc) -> Doc {
        self.numbered(document, Value::Null)
    }

    fn numbered(&self, document: Doc, index: Value<'_>) -> Doc {
        match &self.index_name {
            Some(name) => with_field(document.view(), name, Some(index)),
            None => document,
        }
    }
}

impl DocumentSource for UnwindSource {
    fn next(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
        loop {
            if let Some(mut open) = self.open.take() {
                let document = open.document.clone();
                if let Some((value, index)) = open.next() {
                    let unwound = self.spec.unwound(document.view(), value, index);
                    self.open = Some(open);
                    return Ok(Pulled::Document(unwound));
                }
            }
            if self.has_run_long(context.operation)? {
                return Ok(Pulled::Yield(YieldCause::Time));
            }
            let pulled = match self.waiting.pop_front() {
                Some(document) => Pulled::Document(document),
                None => self.source.next(context)?,
            };
            match pulled {
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
            let spec = Arc::clone(&self.spec);
            let pulled = match (self.waiting.pop_front(), spec.only_field()) {
                (Some(document), _) => Pulled::Document(document),
                (None, Some(name)) => return self.feed_short(context, name, look),
                (None, None) => self.source.next(context)?,
            };
            match pulled {
                Pulled::Document(document) => {
                    let slim = spec.only_field().is_none();
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
        let (spec, waiting) = (Arc::new(self.clone()), VecDeque::new());
        Ok(Box::new(UnwindSource { source, spec, open: None, clock, buffer: Vec::new(), tail: Vec::new(), waiting }))
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
