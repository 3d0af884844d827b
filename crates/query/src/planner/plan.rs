//! All plans worth trying for a query.
//!
//! First the ways to find the documents: each index that the filter bounds, alternatives with an index each, or no index at
//! all. Then what every plan needs beyond that: documents, order, skip, limit, projection.

use super::cluster_range::{ClusterCollation, ClusterRange, cluster_range, narrow_to_keys};
use super::condition::{conditions, conjuncts};
use super::effort::{self, Effort};
use super::oplog_range::oplog_range;
use super::places;
use super::predicate_bounds::{collated_value, may_hold_strings};
use super::sort_order::has_strings;
use super::{
    Access, CollationMatch, CollectionScanPlan, FieldBounds, IndexBounds, IndexInfo, IndexScanPlan, IntervalList,
    KeyRange, PlanNode, ProjectionKind, SharedFilter, accesses, implies, in_order, wildcard,
};
use crate::limits::PlannerLimits;
use crate::request::Hint;
use crate::stage::{distance_missing, text_score_missing};
use crate::{CanonicalQuery, IndexFilter};
use pando_base::{Error, ErrorCode, Result, operation};
use pando_catalog::Collection;
use pando_doc::{Collator, Doc, DocBuilder, DocRef, FieldPath};
use pando_expr::matcher::Node;
use pando_expr::metadata::Meta;
use pando_expr::{MatchExpression, Projection};
use pando_keystring::{KeyOrdering, Version};
use pando_storage::Direction;
use std::sync::Arc;

/// Every plan worth trying; at least one.
pub fn plans(
    query: &CanonicalQuery,
    collection: &Collection,
    filter: Option<&IndexFilter>,
    limits: PlannerLimits,
) -> Result<Vec<PlanNode>> {
    let planner = Planner::new(query, collection, filter, limits)?;
    let found = planner.plans()?;
    debug_assert!(!found.is_empty(), "there is always a plan");
    Ok(found)
}

/// A part of a filter is so many steps, for each time it is looked at.
const PART_STEPS: u64 = 64;

pub(super) struct Planner<'p> {
    pub(super) query: &'p CanonicalQuery,
    pub(super) collection: &'p Collection,
    /// The indexes that may be used.
    indexes: Vec<IndexInfo>,
    /// Those of places.
    pub(super) places: Vec<IndexInfo>,
    /// Those that stand for an index on each path.
    wildcards: Vec<IndexInfo>,
    /// That of words, if a hint names it: all of it can be gone through.
    words: Option<IndexInfo>,
    pub(super) is_hinted: bool,
    pub(super) limits: PlannerLimits,
    effort: Effort,
}

impl<'p> Planner<'p> {
    pub(super) fn new(
        query: &'p CanonicalQuery,
        collection: &'p Collection,
        filter: Option<&IndexFilter>,
        limits: PlannerLimits,
    ) -> Result<Planner<'p>> {
        let mut indexes = Vec::with_capacity(collection.indexes.len());
        for index in collection.ready_indexes().filter(|index| index.descriptor.is_visible()) {
            if filter.is_none_or(|filter| filter.allows(index)) {
                indexes.extend(IndexInfo::of(index)?);
            }
        }
        // Where it was said which indexes may be used, a hint says nothing more.
        let is_hinted = filter.is_none() && matches!(query.hint, Hint::Name(_) | Hint::KeyPattern(_));
        let mut words = None;
        if is_hinted {
            indexes.retain(|info| is_named(info, &query.hint));
            for index in collection.ready_indexes().filter(|index| index.descriptor.is_visible()) {
                words = words.or(IndexInfo::of_words(index)?.filter(|info| is_named(info, &query.hint)));
            }
            if indexes.is_empty() && words.is_none() && !is_clustered_hint(collection, &query.hint) {
                return Err(query.refused("hint provided does not correspond to an existing index"));
            }
            if let [one, two, ..] = indexes.as_slice() {
                return Err(ambiguous_hint(query, one, two));
            }
        }
        let (wildcards, indexes): (Vec<IndexInfo>, Vec<IndexInfo>) =
            indexes.into_iter().partition(|info| info.wildcard.is_some());
        let (places, indexes) = indexes.into_iter().partition(IndexInfo::is_for_places);
        let effort = Effort::for_filter(query.filter.root());
        Ok(Planner { query, collection, indexes, places, wildcards, words, is_hinted, limits, effort })
    }

    pub(super) fn plans(&self) -> Result<Vec<PlanNode>> {
        let query = self.query;
        if query.tailable && !self.collection.is_capped() {
            return Err(Error::bad_value(format!(
                "error processing query: ns={} tailable cursor requested on non capped collection",
                query.namespace
            )));
        }
        if let Some(text) = self.text_plan()? {
            return Ok(vec![self.finished(PlanNode::Text(Box::new(text)))]);
        }
        if query.filter.has_text() {
            return self.plans_of_alternatives();
        }
        if let Some(near) = self.near_plans()? {
            return Ok(near);
        }
        let by_distance = [Meta::GeoNearDistance, Meta::GeoNearPoint];
        if by_distance.into_iter().any(|kind| query.metadata.contains(kind)) {
            return Err(distance_missing());
        }
        let sorts_by_score =
            query.sort.as_ref().is_some_and(|pattern| pattern.metadata().any(|kind| kind == Meta::TextScore));
        if sorts_by_score || query.metadata.contains(Meta::TextScore) {
            return Err(text_score_missing());
        }
        if query.natural.is_some() || query.tailable {
            return Ok(vec![self.finished(self.collection_scan())]);
        }
        if *query.filter.root() == Node::AlwaysFalse {
            return Ok(vec![PlanNode::Eof]);
        }
        if !query.min.is_empty() || !query.max.is_empty() {
            return Ok(vec![self.finished(self.key_range_scan()?)]);
        }
        let mut found: Vec<PlanNode> = self.find_plans(query.filter.root(), self.limits.plans_max)?;
        if !self.is_hinted {
            // A part of the records is worth a try beside indexes.
            let cluster = self.cluster_range();
            if cluster.is_bounded() {
                found.push(self.bounded_scan(cluster));
            }
        }
        found.truncate(self.limits.plans_max);
        let mut finished: Vec<PlanNode> = Vec::with_capacity(found.len());
        for node in found {
            operation::tick(node.count())?;
            finished.push(self.finished(node));
        }
        self.add_sorted_scans(&mut finished);
        if finished.is_empty() && self.is_hinted && !self.wildcards.is_empty() {
            let reason = "$hint: refusing to build whole-index solution, because it's a wildcard index";
            return Err(self.query.refused(reason).with_code(ErrorCode::NoQueryExecutionPlans));
        }
        if finished.is_empty() && self.is_hinted {
            let named = self.indexes.iter().chain(&self.places).chain(&self.words);
            finished.extend(named.map(|info| self.finished(self.whole_index(info))));
        }
        // No index is chosen for covering alone: without a filter and an order, documents come as they lie.
        if finished.is_empty() {
            finished.push(self.finished(self.collection_scan()));
        }
        // Nothing was left out because there was no time.
        operation::ended()?;
        Ok(finished)
    }

    // ---- Finding.

    fn collection_scan(&self) -> PlanNode {
        self.bounded_scan(self.cluster_range())
    }

    /// The part of a clustered collection that the filter can match.
    fn cluster_range(&self) -> ClusterRange {
        // What goes on from a place has its bound already.
        match self.collection.cluster_field().filter(|_| self.query.resume.is_none()) {
            Some(field) => cluster_range(self.query.filter.root(), field, self.cluster_collation()),
            None => ClusterRange::default(),
        }
    }

    fn cluster_collation(&self) -> ClusterCollation<'_> {
        let is_same = self.query.collation() == self.collection.options.collation.as_ref();
        let collator = self.query.collator.as_deref().map(|collator| collator as &dyn Collator);
        ClusterCollation { is_same, collator }
    }

    fn bounded_scan(&self, cluster: ClusterRange) -> PlanNode {
        let is_trivial = self.query.filter.root().is_trivially_true();
        let (min, max) = match self.collection.records.oplog() {
            Some(_) => oplog_range(self.query.filter.root()),
            None => {
                let id = |edge: &super::ClusterEdge| edge.id.clone();
                (cluster.min.as_ref().map(id), cluster.max.as_ref().map(id))
            }
        };
        let is_whole = !self.query.tailable && self.query.resume.is_none();
        let is_same = self.cluster_collation().is_same || cluster.leaves_out_strings();
        let key_order = self.collection.cluster_field().filter(|_| is_whole && is_same);
        PlanNode::CollectionScan(CollectionScanPlan {
            direction: self.query.natural.unwrap_or_default(),
            filter: (!is_trivial).then(|| Arc::clone(&self.query.filter)),
            min,
            max,
            tailable: self.query.tailable,
            resume: self.query.resume.clone().filter(|point| point.record_id.is_some()),
            keeps_place: self.query.wants_resume_token,
            cluster: Box::new(cluster),
            key_order: key_order.map(Box::from),
            is_direction_given: self.query.natural.is_some(),
        })
    }

    /// The ways to find what a filter matches by indexes, as many as are wanted at most; each result has the whole filter checked.
    pub(super) fn find_plans(&self, root: &Node, count_max: usize) -> Result<Vec<PlanNode>> {
        if let Node::Or(children) = root {
            return self.or_plans(children);
        }
        let parts = conjuncts(root);
        operation::tick(PART_STEPS * parts.len() as u64)?;
        if !self.effort.spend(parts.len()) {
            return Ok(Vec::new());
        }
        if let Some(text) = self.text_part(&parts)? {
            return Ok(vec![text]);
        }
        let conditions = conditions(&parts);
        let mut found = Vec::new();
        // A search that is one of several alternatives is found by its index or not at all.
        let has_text = root.has_text();
        for info in self.indexes.iter().filter(|info| !has_text && self.may_serve(info, root)) {
            for access in accesses(info, &conditions, self.collation(info), count_max) {
                found.push(self.accessed(info, access, &parts));
            }
            operation::ended()?;
        }
        for info in self.wildcards.iter().filter(|info| !has_text && self.may_serve(info, root)) {
            for info in wildcard::expansions(info, &conditions) {
                let accesses = accesses(&info, &conditions, self.collation(&info), count_max);
                let finished = accesses.into_iter().filter_map(|access| wildcard::finished(&info, access));
                found.extend(finished.map(|(info, access)| self.accessed(&info, access, &parts)));
            }
        }
        for info in self.places.iter().filter(|info| !has_text && self.may_serve(info, root)) {
            let accesses = accesses(info, &conditions, self.collation(info), count_max);
            for access in accesses.into_iter().filter(|access| places::is_bounded(info, &access.bounds)) {
                let rest = parts.iter().enumerate().filter(|(part, _)| !access.is_exact(*part));
                let rest: Vec<&Node> = rest.map(|(_, node)| *node).collect();
                found.push(self.filtered(self.scan(info, access.bounds), &rest));
            }
        }
        for (place, part) in parts.iter().enumerate() {
            if found.len() >= count_max {
                break;
            }
            if let Node::Or(children) = part
                && (!has_text || part.has_text())
            {
                found.extend(self.contained_or_plans(children, &parts, place)?);
            }
        }
        found.truncate(count_max);
        Ok(found)
    }

    /// A scan of an index, behind which the rest of the filter is looked at.
    fn accessed(&self, info: &IndexInfo, access: Access, parts: &[&Node]) -> PlanNode {
        let rest = parts.iter().enumerate().filter(|(part, _)| !access.is_exact(*part));
        let rest = rest.map(|(_, node)| *node).filter(|node| !self.is_promised(info, node));
        let rest: Vec<&Node> = rest.collect();
        self.filtered(self.scan(info, access.bounds), &rest)
    }

    /// Alternatives beside other conjuncts: served by themselves, or each together with the others.
    fn contained_or_plans(&self, children: &[Node], parts: &[&Node], place: usize) -> Result<Vec<PlanNode>> {
        let rest = || parts.iter().enumerate().filter(|(part, _)| *part != place).map(|(_, node)| *node);
        let alone = self.or_plans(children)?;
        if !alone.is_empty() {
            let rest: Vec<&Node> = rest().collect();
            return Ok(alone.into_iter().map(|node| self.filtered(node, &rest)).collect());
        }
        // Each alternative gets a copy of the others.
        let copied = rest().map(effort::weight).sum::<usize>().saturating_mul(children.len());
        if !self.effort.spend(copied) {
            return Ok(Vec::new());
        }
        operation::tick(copied as u64)?;
        let together: Vec<Node> = children
            .iter()
            .map(|child| Node::And(conjuncts(child).into_iter().chain(rest()).cloned().collect()))
            .collect();
        self.or_plans(&together)
    }

    /// Every alternative has to have an index.
    fn or_plans(&self, children: &[Node]) -> Result<Vec<PlanNode>> {
        if !children.iter().all(|child| self.is_about_an_index(child)) {
            return Ok(Vec::new());
        }
        let count_max = self.limits.or_plans_max.max(1);
        let mut options: Vec<Vec<PlanNode>> = Vec::with_capacity(children.len());
        for child in children {
            let found = self.find_plans(child, count_max)?;
            if found.is_empty() {
                return Ok(Vec::new());
            }
            options.push(found);
        }
        if options.is_empty() {
            return Ok(Vec::new());
        }
        let count = options.iter().map(Vec::len).try_fold(1_usize, |product, count| product.checked_mul(count));
        let mut plans = Vec::new();
        for number in 0..count.unwrap_or(usize::MAX).min(count_max) {
            operation::tick(PART_STEPS * options.len() as u64)?;
            // The first always has its place; the others only as far as they are cheap.
            if number > 0 && !self.effort.spend(options.len()) {
                break;
            }
            plans.push(PlanNode::Or { children: combination(&options, number), keeps_duplicates: false });
        }
        Ok(plans)
    }

    /// False if no index can bound what stands here, wherever in it.
    fn is_about_an_index(&self, node: &Node) -> bool {
        if !operation::goes_on(1) {
            return false;
        }
        match node {
            Node::Leaf(leaf) => {
                let begins = |info: &IndexInfo| {
                    info.fields.first().is_some_and(|field| field.path.text().starts_with(leaf.path.text()))
                };
                !self.wildcards.is_empty() || self.indexes.iter().chain(&self.places).any(begins)
            }
            Node::BucketGeo(_) | Node::Text(_) => true,
            node => node.children().iter().any(|child| self.is_about_an_index(child)),
        }
    }

    /// True if the index has all documents that the filter matches and may be used at all.
    pub(super) fn may_serve(&self, info: &IndexInfo, root: &Node) -> bool {
        match &info.partial_filter {
            None => true,
            Some(partial) => implies(root, partial.root(), self.collation(info)),
        }
    }

    /// True if the index has no document that does not fulfil the condition: its own filter says the same.
    fn is_promised(&self, info: &IndexInfo, part: &Node) -> bool {
        let Some(partial) = info.partial_filter.as_ref().filter(|_| self.has_same_collation(info)) else {
            return false;
        };
        conjuncts(partial.root()).contains(&part)
    }

    pub(super) fn has_same_collation(&self, info: &IndexInfo) -> bool {
        info.index.descriptor.collation.as_ref() == self.query.collation()
    }

    pub(super) fn collation<'c>(&'c self, info: &IndexInfo) -> CollationMatch<'c> {
        let is_same = self.has_same_collation(info);
        let collator = self.query.collator.as_deref().filter(|_| is_same).map(|collator| collator as &dyn Collator);
        CollationMatch { is_same, collator }
    }

    /// The node, behind a look at what the indexes did not decide.
    fn filtered(&self, node: PlanNode, rest: &[&Node]) -> PlanNode {
        if rest.is_empty() {
            return node;
        }
        PlanNode::Fetch { child: Box::new(node), filter: Some(self.filter_of(rest)) }
    }

    pub(super) fn filter_of(&self, parts: &[&Node]) -> SharedFilter {
        let node = match parts {
            [only] => (*only).clone(),
            parts => Node::And(parts.iter().map(|node| (*node).clone()).collect()),
        };
        Arc::new(MatchExpression::from_node(node, self.query.collator.clone()))
    }

    fn whole_index(&self, info: &IndexInfo) -> PlanNode {
        let rest = conjuncts(self.query.filter.root());
        self.filtered(self.scan(info, everything(info)), &rest)
    }

    /// A scan of part of an index.
    fn scan(&self, info: &IndexInfo, bounds: IndexBounds) -> PlanNode {
        let (direction, is_same_collation) = (Direction::Forward, self.has_same_collation(info));
        let plan = IndexScanPlan { info: info.clone(), bounds, direction, is_same_collation, key_range: None };
        PlanNode::IndexScan(Box::new(plan))
    }

    // ---- Order without bounds.

    /// If no plan has the order by itself, indexes that have it are worth a try although nothing bounds them.
    fn add_sorted_scans(&self, finished: &mut Vec<PlanNode>) {
        let Some(pattern) = &self.query.sort else { return };
        if finished.iter().any(|node| !node.has_blocking_sort()) {
            return;
        }
        for info in &self.indexes {
            let is_complete = !info.index.descriptor.sparse && self.may_serve(info, self.query.filter.root());
            if !(is_complete || self.is_hinted) || !self.has_same_collation(info) {
                continue;
            }
            if let Ok(node) = in_order(self.whole_index(info), pattern, self.limits.exploded_scans_max) {
                finished.push(self.finished(node));
            }
        }
        // So are the records themselves, if they lie in that order.
        if !finished.is_empty()
            && !self.is_hinted
            && let Ok(node) = in_order(self.collection_scan(), pattern, self.limits.exploded_scans_max)
        {
            finished.push(self.finished(node));
        }
        finished.truncate(self.limits.plans_max);
    }

    /// True if the projection needs nothing but the keys of this scan.
    fn covers(&self, node: &PlanNode) -> bool {
        let Some(projection) = &self.query.projection else { return false };
        let paths = projection.paths().filter(|_| projection.is_simple_inclusion());
        paths.is_some_and(|paths| self.has_in_keys(node, &paths))
    }

    /// True if the order needs nothing but the keys of this scan.
    fn covers_order(&self, node: &PlanNode) -> bool {
        let Some(pattern) = self.query.sort.as_ref().filter(|pattern| !pattern.needs_metadata()) else { return false };
        self.query.collator.is_none() && self.has_in_keys(node, &pattern.paths().cloned().collect::<Vec<_>>())
    }

    /// True if the values at these paths can be read from the keys of this scan.
    fn has_in_keys(&self, node: &PlanNode, paths: &[FieldPath]) -> bool {
        let PlanNode::IndexScan(scan) = node else { return false };
        let info = &scan.info;
        // Such a scan finds values that lie below the path, too.
        if info.repeats {
            return false;
        }
        // A collated key does not tell which string it was made of.
        let is_readable = |place: usize| match (&info.index.descriptor.collation, scan.bounds.fields.get(place)) {
            (None, _) => true,
            (Some(_), Some(field)) => scan.key_range.is_none() && !has_strings(&field.intervals),
            (Some(_), None) => false,
        };
        paths.iter().all(|path| {
            let place = info.fields.iter().position(|field| field.path == *path && !field.is_hashed);
            place.is_some_and(|place| !info.is_field_multikey(place) && is_readable(place))
        })
    }

    // ---- What every plan needs.

    pub(super) fn finished(&self, node: PlanNode) -> PlanNode {
        let query = self.query;
        let mut node = node;
        let mut is_sorted = true;
        if let Some(pattern) = &query.sort {
            (node, is_sorted) = match in_order(node, pattern, self.limits.exploded_scans_max) {
                Ok(node) => (node, true),
                Err(node) => (node, false),
            };
        }
        if query.is_count {
            return self.limited(counted(node));
        }
        if query.return_key {
            let node = if is_sorted { node } else { node.fetched() };
            return self.limited(PlanNode::ReturnKey { child: Box::new(self.sorted(node, is_sorted)) });
        }
        if self.covers(&node) && (is_sorted || self.covers_order(&node)) {
            let limited = self.limited(self.sorted(node, is_sorted));
            return self.projected(limited, ProjectionKind::Covered);
        }
        let limited = self.limited(self.sorted(node.fetched(), is_sorted));
        self.projected(limited, ProjectionKind::Default)
    }

    fn sorted(&self, node: PlanNode, is_sorted: bool) -> PlanNode {
        let Some(pattern) = self.query.sort.as_ref().filter(|_| !is_sorted) else { return node };
        let limit = self.query.limit.map(|limit| limit.saturating_add(self.query.skip));
        PlanNode::Sort { child: Box::new(node), pattern: pattern.clone(), limit }
    }

    fn limited(&self, node: PlanNode) -> PlanNode {
        let mut node = node;
        if self.query.skip > 0 {
            node = PlanNode::Skip { child: Box::new(node), count: self.query.skip };
        }
        match self.query.limit {
            Some(count) => PlanNode::Limit { child: Box::new(node), count },
            None => node,
        }
    }

    fn projected(&self, node: PlanNode, kind: ProjectionKind) -> PlanNode {
        let Some(projection) = &self.query.projection else { return node };
        let kind = match kind {
            ProjectionKind::Default if is_simple(projection) => ProjectionKind::Simple,
            kind => kind,
        };
        PlanNode::Projection {
            child: Box::new(node),
            projection: Arc::clone(projection),
            kind,
            specification: self.query.projection_document.clone(),
            is_advice: self.query.is_projection_advice,
        }
    }

    // ---- Keys given by the client.

    fn key_range_scan(&self) -> Result<PlanNode> {
        if !self.wildcards.is_empty() {
            return Err(incompatible_range());
        }
        if let Some(field) = self.collection.cluster_field()
            && self.is_hinted
            && is_clustered_hint(self.collection, &self.query.hint)
        {
            let mut range = self.cluster_range();
            narrow_to_keys(&mut range, field, &self.query.min, &self.query.max, self.cluster_collation())?;
            return Ok(self.bounded_scan(range));
        }
        let info = self.indexes.first().ok_or_else(|| self.query.refused("min and max need an index"))?;
        let (min, max) = (&self.query.min, &self.query.max);
        for keys in [min, max].into_iter().filter(|keys| !keys.is_empty()) {
            if !has_names_of(keys.view(), info) || !self.may_compare(keys.view(), info) {
                return Err(incompatible_range());
            }
        }
        let given = |keys: &Doc| (!keys.is_empty()).then(|| self.collated_keys(keys.view(), info));
        let range = KeyRange { min: given(min), max: given(max), ..KeyRange::default() };
        if let (Some(min), Some(max)) = (&range.min, &range.max) {
            check_range_order(min.view(), max.view(), info)?;
        }
        let plan = IndexScanPlan {
            info: info.clone(),
            bounds: everything(info),
            direction: Direction::Forward,
            is_same_collation: self.has_same_collation(info),
            key_range: Some(range),
        };
        let rest = conjuncts(self.query.filter.root());
        Ok(self.filtered(PlanNode::IndexScan(Box::new(plan)), &rest))
    }
}

impl Planner<'_> {
    /// Keys with strings mean something in an index only if it compares as the query does.
    fn may_compare(&self, keys: DocRef<'_>, info: &IndexInfo) -> bool {
        self.has_same_collation(info) || !keys.elements().any(|element| may_hold_strings(element.value))
    }

    /// The keys as the index has them.
    fn collated_keys(&self, keys: DocRef<'_>, info: &IndexInfo) -> Doc {
        let collator = self.collation(info).collator;
        let mut out = DocBuilder::with_capacity(keys.size_bytes());
        for element in keys.elements() {
            let value = element.value.to_owned();
            out.append(element.name, collated_value(&value, collator).unwrap_or(value).view());
        }
        out.finish()
    }
}

/// Scans of whole indexes that begin with this field and have every document.
pub(super) fn everything_of<'p>(planner: &'p Planner<'_>, path: &'p FieldPath) -> impl Iterator<Item = PlanNode> + 'p {
    let begins = |info: &&IndexInfo| {
        let is_complete = !info.index.descriptor.sparse && info.partial_filter.is_none();
        is_complete && info.fields.first().is_some_and(|field| field.path == *path)
    };
    planner.indexes.iter().filter(begins).map(|info| planner.finished(planner.whole_index(info)))
}

/// True if the keys between the first and the last are all wanted.
fn is_one_range(scan: &IndexScanPlan) -> bool {
    scan.key_range.is_none() && scan.bounds.is_contiguous()
}

/// A scan that says everything need not be more than counted.
fn counted(node: PlanNode) -> PlanNode {
    match node {
        PlanNode::IndexScan(scan) if !scan.info.repeats && is_one_range(&scan) => PlanNode::CountScan(scan),
        other => other,
    }
}

/// True if the projection keeps whole fields of the document itself.
fn is_simple(projection: &Projection) -> bool {
    let is_top = |paths: Vec<FieldPath>| paths.iter().all(|path| path.part_count() == 1);
    projection.is_simple_inclusion() && projection.paths().is_some_and(is_top)
}

/// The bounds that leave nothing out.
pub(crate) fn everything(info: &IndexInfo) -> IndexBounds {
    let field = |field: &super::IndexField| FieldBounds {
        name: field.path.text().to_owned(),
        intervals: IntervalList::everything(),
    };
    IndexBounds { fields: info.fields.iter().map(field).collect() }
}

/// One choice from each list, counted through like the digits of a number.
fn combination(options: &[Vec<PlanNode>], mut number: usize) -> Vec<PlanNode> {
    let mut chosen = Vec::with_capacity(options.len());
    for list in options {
        chosen.extend(list.get(number % list.len().max(1)).cloned());
        number /= list.len().max(1);
    }
    chosen
}

fn ambiguous_hint(query: &CanonicalQuery, one: &IndexInfo, two: &IndexInfo) -> Error {
    let shown = |info: &IndexInfo| format!("kp: {} name: '({})'", info.index.descriptor.key_pattern, info.name());
    let reason = format!(
        "error processing query: ns={} Hint matched multiple indexes, must hint by index name. Matched: {} and {}",
        query.namespace,
        shown(one),
        shown(two)
    );
    Error::new(ErrorCode::IndexNotFound, reason)
}

fn is_named(info: &IndexInfo, hint: &Hint) -> bool {
    match hint {
        Hint::Name(name) => info.name() == name,
        Hint::KeyPattern(pattern) => {
            pando_doc::compare_docs(pattern.view(), info.index.descriptor.key_pattern.view()).is_eq()
        }
        Hint::None | Hint::Natural(_) => false,
    }
}

fn is_clustered_hint(collection: &Collection, hint: &Hint) -> bool {
    let Some(clustered) = &collection.options.clustered_index else { return false };
    match hint {
        Hint::KeyPattern(pattern) => clustered.has_key(pattern.view()),
        Hint::Name(name) => clustered.name() == name,
        Hint::None | Hint::Natural(_) => false,
    }
}

fn has_names_of(keys: DocRef<'_>, info: &IndexInfo) -> bool {
    let pattern = info.index.descriptor.key_pattern.view();
    keys.raw_elements().map(|element| element.name).eq(pattern.raw_elements().map(|element| element.name))
}

fn incompatible_range() -> Error {
    Error::new(ErrorCode::location(51174), "The index chosen is not compatible with min/max")
}

fn check_range_order(min: DocRef<'_>, max: DocRef<'_>, info: &IndexInfo) -> Result<()> {
    let (min, max) = (key_of(min, info.ordering)?, key_of(max, info.ordering)?);
    if min < max {
        return Ok(());
    }
    Err(Error::new(
        ErrorCode::location(51175),
        "The value provided for min() does not come before the value provided for max()",
    ))
}

fn key_of(values: DocRef<'_>, ordering: KeyOrdering) -> Result<Vec<u8>> {
    let mut builder = pando_keystring::HeapBuilder::new(Version::V1, ordering);
    let done = builder.reset_to_key(values, ordering, pando_keystring::Discriminator::Inclusive);
    done.map_err(|error| Error::bad_value(error.to_string()))?;
    Ok(builder.bytes().to_vec())
}
