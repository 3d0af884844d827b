//! What the reading commands ask for.

use super::Hint;
use pando_base::{Error, ErrorCode, Namespace, RecordId, Result};
use pando_doc::{Doc, DocRef, Value};
use pando_storage::Direction;

/// `find`.
#[derive(Clone, Debug)]
pub struct FindRequest {
    /// Where.
    pub namespace: Namespace,
    /// Which documents.
    pub filter: Doc,
    /// Which of their fields.
    pub projection: Doc,
    /// In which order.
    pub sort: Doc,
    /// How many are left out first.
    pub skip: Option<i64>,
    /// How many there may be; zero for all.
    pub limit: Option<i64>,
    /// How many the first batch may have.
    pub batch_size: Option<i64>,
    /// No cursor is kept after the first batch.
    pub single_batch: bool,
    /// Which index.
    pub hint: Hint,
    /// From which key of the hinted index on.
    pub min: Doc,
    /// Up to which key of the hinted index, itself left out.
    pub max: Doc,
    /// Index keys in place of documents.
    pub return_key: bool,
    /// Adds `$recordId`.
    pub show_record_id: bool,
    /// The cursor stays open at the end of a capped collection.
    pub tailable: bool,
    /// A tailable cursor waits for new documents.
    pub await_data: bool,
    /// The cursor does not time out by itself.
    pub no_cursor_timeout: bool,
    /// Results of the shards that answer will do.
    pub allow_partial_results: bool,
    /// Large sorts may use the disk.
    pub allow_disk_use: Option<bool>,
    /// How strings are compared; empty for the collection's way.
    pub collation: Doc,
    /// Variables for expressions.
    pub variables: Doc,
    /// Where a scan of the records goes on.
    pub resume: Option<ResumePoint>,
    /// Each batch says where it could be gone on with.
    pub wants_resume_token: bool,
}

/// Where a scan of the records goes on.
#[derive(Clone, Debug, PartialEq)]
pub struct ResumePoint {
    /// Behind this record; none for the start.
    pub record_id: Option<RecordId>,
    /// The record may have gone: then the next one is the first.
    pub may_be_gone: bool,
}

impl ResumePoint {
    /// Reads a token, which the field of this name has.
    pub fn parse(field: &str, token: DocRef<'_>, may_be_gone: bool) -> Result<ResumePoint> {
        let record_id = match token.get("$recordId") {
            Some(Value::Int64(number)) => Some(RecordId::Long(number)),
            Some(Value::Binary { bytes, .. }) => Some(RecordId::Bytes(bytes.into())),
            Some(Value::Null) if token.field_count() == 1 => None,
            _ => return Err(malformed(field)),
        };
        if token.field_count() != 1 {
            return Err(malformed(field));
        }
        Ok(ResumePoint { record_id, may_be_gone })
    }

    /// Records of clustered collections have other ids than those of others.
    pub(crate) fn check(&self, is_clustered: bool) -> Result<()> {
        let fits = match &self.record_id {
            None => true,
            Some(RecordId::Long(_)) => !is_clustered,
            Some(RecordId::Bytes(_)) => is_clustered,
        };
        if fits {
            return Ok(());
        }
        let field = if self.may_be_gone { "$_startAt" } else { "$_resumeAfter" };
        let reason = format!(
            "The '{field}' parameter must match collection type. Clustered collections only have BinData recordIds, and all other collectionshave Long recordId."
        );
        Err(Error::location(7738600, reason))
    }
}

fn malformed(field: &str) -> Error {
    Error::bad_value(format!(
        "Malformed resume token: the '{field}' object must contain exactly one field named '$recordId', of type NumberLong, BinData or jstNULL."
    ))
}

impl FindRequest {
    /// The direction of a scan of the records, where the client asks for one.
    pub fn natural(&self) -> Result<Option<Direction>> {
        match self.sort.get("$natural") {
            Some(direction) => super::hint::natural_direction(direction).map(Some),
            None => Ok(self.hint.natural()),
        }
    }

    /// All documents of a collection.
    pub fn new(namespace: Namespace) -> FindRequest {
        FindRequest {
            namespace,
            filter: Doc::new(),
            projection: Doc::new(),
            sort: Doc::new(),
            skip: None,
            limit: None,
            batch_size: None,
            single_batch: false,
            hint: Hint::None,
            min: Doc::new(),
            max: Doc::new(),
            return_key: false,
            show_record_id: false,
            tailable: false,
            await_data: false,
            no_cursor_timeout: false,
            allow_partial_results: false,
            allow_disk_use: None,
            collation: Doc::new(),
            variables: Doc::new(),
            resume: None,
            wants_resume_token: false,
        }
    }

    /// True if documents are wanted in any order, all that match, compared in the collection's way.
    pub(crate) fn is_plain(&self) -> bool {
        self.sort.is_empty()
            && self.hint.is_none()
            && self.skip.unwrap_or(0) == 0
            && self.min.is_empty()
            && self.max.is_empty()
            && !(self.return_key || self.tailable || self.wants_resume_token)
            && self.collation.is_empty()
    }

    /// True if, with a filter on `_id`, the document is wanted as it is and nothing could be wrong about the request.
    pub(crate) fn is_id_only(&self) -> bool {
        let is_positive = |number: Option<i64>| number.is_none_or(|number| number > 0);
        self.is_plain()
            && self.projection.is_empty()
            && !(self.show_record_id || self.await_data)
            && is_positive(self.limit)
            && is_positive(self.batch_size)
    }

    /// The same with a filter.
    #[must_use]
    pub fn with_filter(mut self, filter: Doc) -> FindRequest {
        self.filter = filter;
        self
    }

    /// Checks what can be checked without the collection.
    pub fn validate(&self) -> Result<()> {
        check_not_negative("skip", self.skip)?;
        check_not_negative("limit", self.limit)?;
        check_not_negative("batchSize", self.batch_size)?;
        self.validate_min_max()?;
        self.validate_natural()?;
        self.validate_resume()?;
        self.validate_tailable()
    }

    fn validate_resume(&self) -> Result<()> {
        if !self.wants_resume_token {
            return match &self.resume {
                None => Ok(()),
                Some(point) => {
                    let field = if point.may_be_gone { "startAt" } else { "resumeAfter" };
                    Err(Error::bad_value(format!("'requestResumeToken' must be true if '{field}' is specified")))
                }
            };
        }
        if self.hint != Hint::Natural(Direction::Forward) {
            return Err(Error::bad_value("hint must be {$natural:1} if 'requestResumeToken' is enabled"));
        }
        let is_forward = self.sort.get("$natural").is_some_and(|direction| direction.to_double() == Some(1.0));
        if !self.sort.is_empty() && !is_forward {
            let reason = "sort must be unset or {$natural:1} if 'requestResumeToken' is enabled";
            return Err(Error::bad_value(reason));
        }
        Ok(())
    }

    fn validate_min_max(&self) -> Result<()> {
        if self.min.is_empty() && self.max.is_empty() {
            return Ok(());
        }
        if self.hint.is_none() {
            let reason = "When using min()/max() a hint of which index to use must be provided";
            return Err(Error::location(51173, reason));
        }
        if !self.min.is_empty() && !self.max.is_empty() && !same_names(self.min.view(), self.max.view()) {
            return Err(Error::location(51176, "min and max must have the same field names"));
        }
        Ok(())
    }

    fn validate_natural(&self) -> Result<()> {
        let Some(natural) = self.sort.get("$natural") else { return Ok(()) };
        if self.sort.view().field_count() > 1 {
            let reason = format!("Cannot include '$natural' in compound sort: {}", self.sort);
            return Err(Error::bad_value(reason));
        }
        super::hint::natural_direction(natural)?;
        match &self.hint {
            Hint::None | Hint::Natural(_) => Ok(()),
            _ => Err(Error::bad_value("Illegal hint with '$natural' sort")),
        }
    }

    fn validate_tailable(&self) -> Result<()> {
        if self.await_data && !self.tailable {
            return Err(Error::failed_to_parse("Cannot set 'awaitData' without also setting 'tailable'"));
        }
        if !self.tailable {
            return Ok(());
        }
        let is_natural = self.sort.get("$natural").is_some_and(|value| value.to_double() == Some(1.0));
        if !self.sort.is_empty() && !is_natural {
            let reason = "cannot use tailable option with a sort other than {$natural: 1}";
            return Err(Error::bad_value(reason));
        }
        if self.single_batch {
            return Err(Error::bad_value("cannot use tailable option with the 'singleBatch' option"));
        }
        Ok(())
    }
}

/// `count`.
#[derive(Clone, Debug)]
pub struct CountRequest {
    /// Where.
    pub namespace: Namespace,
    /// Which documents.
    pub filter: Doc,
    /// How many are left out first.
    pub skip: Option<i64>,
    /// How many are counted at most; zero for all, negative for as many as its absolute value.
    pub limit: Option<i64>,
    /// Which index.
    pub hint: Hint,
    /// How strings are compared.
    pub collation: Doc,
}

impl CountRequest {
    /// Checks what can be checked without the collection.
    pub fn validate(&self) -> Result<()> {
        check_not_negative("skip", self.skip)
    }

    /// How many are counted at most.
    pub fn limit_count(&self) -> Option<u64> {
        self.limit.filter(|limit| *limit != 0).map(i64::unsigned_abs)
    }
}

/// `distinct`.
#[derive(Clone, Debug)]
pub struct DistinctRequest {
    /// Where.
    pub namespace: Namespace,
    /// The values of which path.
    pub key: String,
    /// Of which documents.
    pub filter: Doc,
    /// Which index.
    pub hint: Hint,
    /// How strings are compared.
    pub collation: Doc,
}

impl DistinctRequest {
    /// Checks what can be checked without the collection.
    pub fn validate(&self) -> Result<()> {
        if self.key.contains('\0') {
            return Err(Error::location(31032, "Key field cannot contain an embedded null byte"));
        }
        Ok(())
    }
}

/// `aggregate`.
#[derive(Clone, Debug)]
pub struct AggregateRequest {
    /// Where; a database's own namespace for collectionless pipelines.
    pub namespace: Namespace,
    /// The stages, one document each.
    pub pipeline: Vec<Doc>,
    /// How many the first batch may have.
    pub batch_size: Option<i64>,
    /// Which index.
    pub hint: Hint,
    /// How strings are compared.
    pub collation: Doc,
    /// Variables for expressions.
    pub variables: Doc,
    /// Large stages may use the disk.
    pub allow_disk_use: Option<bool>,
    /// `$out` and `$merge` do not validate.
    pub bypass_document_validation: bool,
    /// It is a mapReduce, written as a pipeline.
    pub is_map_reduce: bool,
    /// What a mapReduce gives its functions, as `$$JS_SCOPE`.
    pub javascript_scope: Option<Doc>,
    /// The collections that it may name, where somebody was asked about them; none if everything.
    pub seen: Option<super::Seen>,
}

impl AggregateRequest {
    /// This pipeline on a collection.
    pub fn new(namespace: Namespace, pipeline: Vec<Doc>) -> AggregateRequest {
        AggregateRequest {
            namespace,
            pipeline,
            batch_size: None,
            hint: Hint::None,
            collation: Doc::new(),
            variables: Doc::new(),
            allow_disk_use: None,
            bypass_document_validation: false,
            is_map_reduce: false,
            javascript_scope: None,
            seen: None,
        }
    }
}

/// Refuses a negative number, as the commands' parsers do.
pub(crate) fn check_not_negative(field: &str, value: Option<i64>) -> Result<()> {
    match value {
        Some(value) if value < 0 => Err(Error::new(
            ErrorCode::location(51024),
            format!("BSON field '{field}' value must be >= 0, actual value '{value}'"),
        )),
        _ => Ok(()),
    }
}

fn same_names(left: DocRef<'_>, right: DocRef<'_>) -> bool {
    left.raw_elements().map(|element| element.name).eq(right.raw_elements().map(|element| element.name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    fn code(change: impl FnOnce(&mut FindRequest)) -> i32 {
        let mut request = FindRequest::new(Namespace::of("d", "c").unwrap());
        change(&mut request);
        request.validate().map_or_else(|error| error.code().number(), |()| 0)
    }

    #[test]
    fn u3_find_requests_are_validated() {
        assert_eq!(code(|_| {}), 0);
        assert_eq!(code(|request| request.skip = Some(-1)), 51024);
        assert_eq!(code(|request| request.limit = Some(-1)), 51024);
        assert_eq!(code(|request| request.min = doc! { "a": 1 }), 51173);
        assert_eq!(code(|request| request.await_data = true), 9);
        assert_eq!(code(|request| (request.tailable, request.sort) = (true, doc! { "a": 1 })), 2);
        assert_eq!(code(|request| request.sort = doc! { "$natural": 1, "a": 1 }), 2);
        assert_eq!(code(|request| request.sort = doc! { "$natural": -1 }), 0);
        let differ = |request: &mut FindRequest| {
            request.hint = Hint::Name("x".into());
            (request.min, request.max) = (doc! { "a": 1 }, doc! { "b": 1 });
        };
        assert_eq!(code(differ), 51176);
    }
}
