//! `$unwind`: a document for each value of an array.

use super::set_field::with_field;
use crate::pipeline::source::pass_on_to_source;
use crate::pipeline::{DocumentSource, Modified, Needs, PipelineContext, Pulled, SharedStage, StageSpec};
use pando_base::{Error, Result};
use pando_doc::{Doc, DocBuilder, DocRef, FieldPath, Value, doc, get_path};
use pando_expr::metadata::is_metadata;
use std::collections::VecDeque;
use std::sync::Arc;

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

struct UnwindSource {
    source: Box<dyn DocumentSource>,
    spec: Unwinding,
    ready: VecDeque<Doc>,
}

impl UnwindSource {
    fn unwind(&mut self, document: Doc) {
        let found = get_path(document.view(), &self.spec.path);
        match found {
            Some(Value::Array(array)) if !array.is_empty() => {
                let slim = self.spec.slim(document.view());
                let view = slim.as_ref().map_or(document.view(), Doc::view);
                for (index, value) in array.values().enumerate() {
                    self.ready.push_back(self.with(view, Some(value), Some(index as i64)));
                }
            }
            Some(Value::Array(_)) if self.spec.keeps_empty => {
                self.ready.push_back(self.with(document.view(), None, None));
            }
            None | Some(Value::Null | Value::Undefined) if self.spec.keeps_empty => {
                let document = match self.spec.index_name {
                    Some(_) => self.with(document.view(), found, None),
                    None => document,
                };
                self.ready.push_back(document);
            }
            None | Some(Value::Array(_) | Value::Null | Value::Undefined) => {}
            Some(value) => self.ready.push_back(self.with(document.view(), Some(value), None)),
        }
    }

    fn with(&self, document: DocRef<'_>, value: Option<Value<'_>>, index: Option<i64>) -> Doc {
        let unwound = with_field(document, &self.spec.path, value);
        let Some(name) = &self.spec.index_name else { return unwound };
        with_field(unwound.view(), name, Some(index.map_or(Value::Null, Value::Int64)))
    }
}

impl DocumentSource for UnwindSource {
    fn next(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
        loop {
            if let Some(document) = self.ready.pop_front() {
                return Ok(Pulled::Document(document));
            }
            match self.source.next(context)? {
                Pulled::Document(document) => self.unwind(document),
                other => return Ok(other),
            }
        }
    }

    pass_on_to_source!();
}

impl StageSpec for Unwinding {
    fn name(&self) -> &'static str {
        "$unwind"
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        Ok(Box::new(UnwindSource { source, spec: self.clone(), ready: VecDeque::new() }))
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
