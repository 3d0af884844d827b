//! A query that was read and checked, ready to be planned.
//!
//! The filter is in its smallest form with its children in canonical order, so that queries of one shape plan alike.

use crate::planner::{BucketOrder, NearOutput};
use crate::request::{FindRequest, Hint, ResumePoint, SortPattern};
use pando_base::{Error, Namespace, Result};
use pando_doc::{Doc, DocBuilder, DocRef, OwnedValue, Value};
use pando_expr::matcher::{ComparisonOperator, Node, Predicate};
use pando_expr::metadata::{Meta, MetaSet};
use pando_expr::{MatchExpression, ParseContext, Projection, ProjectionPolicies, SharedCollator};
use pando_script::SharedScript;
use pando_storage::Direction;
use std::sync::Arc;

/// A query that was read and checked.
#[derive(Clone)]
pub struct CanonicalQuery {
    /// Where.
    pub namespace: Namespace,
    /// Which documents.
    pub filter: Arc<MatchExpression>,
    /// The same as it was written, where that is known.
    pub filter_document: Option<Doc>,
    /// In which order.
    pub sort: Option<SortPattern>,
    /// In which order measurements are sorted that come out of what is found, if it is buckets.
    pub bucket_order: Option<Arc<BucketOrder>>,
    /// In the order of the records, this way.
    pub natural: Option<Direction>,
    /// Which fields.
    pub projection: Option<Arc<Projection>>,
    /// The projection only says what is looked at: documents may come whole.
    pub is_projection_advice: bool,
    /// The projection as it was written.
    pub projection_document: Doc,
    /// How many are left out first.
    pub skip: u64,
    /// How many there may be.
    pub limit: Option<u64>,
    /// Which index.
    pub hint: Hint,
    /// From which key on.
    pub min: Doc,
    /// Up to which key.
    pub max: Doc,
    /// Where the results of a search by distance get their distances.
    pub near_output: Option<NearOutput>,
    /// Keys in place of documents.
    pub return_key: bool,
    /// Adds `$recordId`.
    pub show_record_id: bool,
    /// Stays open at the end.
    pub tailable: bool,
    /// Where a scan of the records goes on.
    pub resume: Option<ResumePoint>,
    /// Each batch says where it could be gone on with.
    pub wants_resume_token: bool,
    /// Only how many there are matters: documents need not be read.
    pub is_count: bool,
    /// Everything that is found is wanted: nobody stops before the end.
    pub wants_all: bool,
    /// What the client said about the disk.
    pub allow_disk_use: Option<bool>,
    /// Where its JavaScript runs, if it has any.
    pub script: Option<SharedScript>,
    /// What is asked for that is not in documents.
    pub metadata: MetaSet,
    /// The collation, if it is not the plain order of bytes.
    pub collator: Option<SharedCollator>,
}

impl CanonicalQuery {
    /// Reads a find. The context has the collation at work and the variables.
    pub fn of_find(request: &FindRequest, context: &ParseContext) -> Result<CanonicalQuery> {
        request.validate()?;
        let natural = request.natural()?;
        let sort = match request.sort.get("$natural") {
            Some(_) => None,
            None => SortPattern::parse(request.sort.view())?,
        };
        let mut query = CanonicalQuery::of_filter(&request.namespace, request.filter.view(), context)?;
        query.filter_document = Some(request.filter.clone());
        query.sort = sort;
        query.natural = natural;
        query.projection = parse_projection(&request.projection, context)?;
        query.projection_document = request.projection.clone();
        query.metadata = context.metadata.get();
        if query.metadata.contains(Meta::SortKey) && query.sort.is_none() {
            return Err(Error::bad_value("cannot use sortKey $meta projection without a sort"));
        }
        query.skip = request.skip.map_or(0, |skip| skip.unsigned_abs());
        query.limit = request.limit.filter(|limit| *limit != 0).map(i64::unsigned_abs);
        query.hint = request.hint.clone();
        (query.min, query.max) = (request.min.clone(), request.max.clone());
        (query.return_key, query.show_record_id) = (request.return_key, request.show_record_id);
        query.tailable = request.tailable;
        (query.resume, query.wants_resume_token) = (request.resume.clone(), request.wants_resume_token);
        query.check_searches_alone()?;
        query.allow_disk_use = request.allow_disk_use;
        Ok(query)
    }

    /// All documents that a filter matches.
    pub fn of_filter(namespace: &Namespace, filter: DocRef<'_>, context: &ParseContext) -> Result<CanonicalQuery> {
        let filter = MatchExpression::parse(filter, context)?.optimize();
        debug_assert_eq!(filter.collator().is_some(), context.collator.is_some(), "a filter keeps its collation");
        check_searches(filter.root())?;
        let mut query = CanonicalQuery::of_expression(namespace, Arc::new(filter));
        query.script.clone_from(&context.script);
        Ok(query)
    }

    /// All documents that an expression matches.
    pub fn of_expression(namespace: &Namespace, filter: Arc<MatchExpression>) -> CanonicalQuery {
        CanonicalQuery {
            namespace: namespace.clone(),
            collator: filter.collator().cloned(),
            filter,
            filter_document: None,
            sort: None,
            bucket_order: None,
            natural: None,
            projection: None,
            is_projection_advice: false,
            projection_document: Doc::new(),
            skip: 0,
            limit: None,
            hint: Hint::None,
            min: Doc::new(),
            max: Doc::new(),
            near_output: None,
            return_key: false,
            show_record_id: false,
            tailable: false,
            resume: None,
            wants_resume_token: false,
            is_count: false,
            wants_all: false,
            allow_disk_use: None,
            script: None,
            metadata: MetaSet::default(),
        }
    }

    /// Searches by distance and by text have an order and an index of their own.
    fn check_searches_alone(&self) -> Result<()> {
        let is_by_records = matches!(self.hint, Hint::Natural(_));
        let is_hinted = !matches!(self.hint, Hint::None);
        let is_near = self.filter.root().near_count() > 0;
        let is_text = self.filter.has_text();
        let refused = |reason: &str| Err(Error::bad_value(reason));
        match () {
            () if is_near && self.natural.is_some() => {
                refused("geoNear expression not allowed with $natural sort order")
            }
            () if is_near && is_by_records => refused("geoNear expression not allowed with $natural hint"),
            () if is_text && self.natural.is_some() => refused("text expression not allowed with $natural sort order"),
            () if is_text && is_hinted => refused("text and hint not allowed in same query"),
            () if is_text && self.tailable => refused("text and tailable cursor not allowed in same query"),
            () if is_near && self.tailable => refused("Tailable cursors and geo $near cannot be used together"),
            () => Ok(()),
        }
    }

    /// True if documents are wanted as they are, all of those that match.
    pub fn is_plain(&self) -> bool {
        self.sort.is_none()
            && self.natural.is_none()
            && self.hint.is_none()
            && self.min.is_empty()
            && self.max.is_empty()
            && !self.return_key
            && !self.tailable
    }

    /// What it asks for, as people are shown it: `query`, `sort`, `projection`, and `collation` if there is one.
    pub fn shown(&self) -> Doc {
        let mut shown = DocBuilder::new();
        match &self.filter_document {
            Some(written) => shown.append("query", written),
            None => shown.append("query", self.filter.to_document()),
        }
        shown.append("sort", self.sort.as_ref().map_or_else(Doc::new, SortPattern::to_doc));
        shown.append("projection", &self.projection_document);
        shown.append_some("collation", self.collation());
        shown.finish()
    }

    /// The collation's specification, as it is compared with those of indexes.
    pub fn collation(&self) -> Option<&Doc> {
        self.collator.as_ref().map(|collator| collator.specification())
    }

    /// As an error of the planner names it.
    pub fn refused(&self, reason: &str) -> Error {
        let text = format!(
            "error processing query: ns={} Tree: {}Sort: {}\nProj: {}\n planner returned error :: caused by :: {reason}",
            self.namespace,
            self.filter.to_document(),
            self.sort.as_ref().map_or_else(Doc::new, SortPattern::to_doc),
            self.projection_document,
        );
        Error::bad_value(text)
    }
}

/// There is one search at most, by text or by distance; one by distance is a conjunct of the whole filter.
fn check_searches(root: &Node) -> Result<()> {
    let (texts, nears) = (root.text_count(), root.near_count());
    let is_near = |node: &Node| matches!(node, Node::Leaf(leaf) if matches!(leaf.predicate, Predicate::Near(_)));
    let is_top = match root {
        Node::And(children) => children.iter().any(is_near),
        other => is_near(other),
    };
    let refused = |reason: &str| Err(Error::bad_value(reason));
    match () {
        () if texts > 1 => refused("Too many text expressions"),
        () if nears > 1 => refused("Too many geoNear expressions"),
        () if texts > 0 && nears > 0 => refused("text and geoNear not allowed in same query"),
        () if nears > 0 && !is_top => refused("geo $near must be top-level expr"),
        () => Ok(()),
    }
}

fn parse_projection(projection: &Doc, context: &ParseContext) -> Result<Option<Arc<Projection>>> {
    if projection.is_empty() {
        return Ok(None);
    }
    Projection::parse(projection.view(), ProjectionPolicies::FIND, context).map(|parsed| Some(Arc::new(parsed)))
}

/// The `_id` that a filter asks for and nothing else, of a filter that was read.
pub(crate) fn id_of_root(root: &Node) -> Option<&OwnedValue> {
    let Node::Leaf(leaf) = root else { return None };
    let Predicate::Comparison(comparison) = &leaf.predicate else { return None };
    if leaf.path.text() != "_id" || comparison.operator != ComparisonOperator::Equal {
        return None;
    }
    is_exact(comparison.value.view()).then_some(&comparison.value)
}

fn is_exact(id: Value<'_>) -> bool {
    !matches!(id, Value::Regex { .. } | Value::Array(_) | Value::Undefined | Value::Null)
}

/// The `_id` that a filter asks for and nothing else, if it can be looked up at once. Operators, patterns and arrays, which
/// mean more than they say, cannot.
pub fn id_of(filter: DocRef<'_>) -> Option<Value<'_>> {
    let mut elements = filter.elements();
    let only = elements.next().filter(|element| element.name == "_id")?;
    if elements.next().is_some() {
        return None;
    }
    let value = match only.value {
        Value::Document(doc) => match doc.first() {
            Some(first) if first.name == "$eq" && doc.field_count() == 1 => first.value,
            Some(first) if first.name.starts_with(b"$") => return None,
            _ => only.value,
        },
        value => value,
    };
    is_exact(value).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn an_id_is_looked_up_at_once_where_it_means_what_it_says() {
        assert_eq!(id_of(doc! { "_id": 5 }.view()), Some(Value::Int32(5)));
        assert_eq!(id_of(doc! { "_id": { "$eq": 5 } }.view()), Some(Value::Int32(5)));
        assert!(id_of(doc! { "_id": { "a": 1 } }.view()).is_some());
        for filter in [
            doc! {},
            doc! { "_id": { "$gt": 5 } },
            doc! { "_id": [1] },
            doc! { "_id": null },
            doc! { "_id": 1, "a": 1 },
            doc! { "a": 1 },
        ] {
            assert_eq!(id_of(filter.view()), None, "{filter}");
        }
    }
}
