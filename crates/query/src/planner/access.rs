//! From conditions to the bounds of one index.
//!
//! With single keys a document's key fulfils all conditions at once, so that their intervals intersect. With several keys each
//! condition may be fulfilled by another key; then one condition may bound a field, and two fields that share an array in
//! their paths may be bounded together only by conditions on the same element of it. Which condition comes first is a
//! choice; all choices for the first field are returned.

use super::condition::{Condition, ElementScope};
use super::places;
use super::predicate_bounds::{self, Target, Tightness};
use super::{FieldBounds, IndexBounds, IndexInfo, IntervalList, wildcard};
use pando_base::operation;
use pando_catalog::IndexKind;
use pando_doc::Collator;

/// How an index can be used for a conjunction.
#[derive(Clone, Debug)]
pub struct Access {
    /// What part of it is scanned.
    pub bounds: IndexBounds,
    /// Conjuncts that hold for every key inside the bounds, ascending.
    exact_conjuncts: Vec<usize>,
    /// How many fields are bounded.
    pub bounded_fields: usize,
    /// Fields that some condition is about, by their places.
    pub used_fields: Vec<usize>,
}

impl Access {
    /// True if the conjunct holds for every key inside the bounds.
    pub fn is_exact(&self, conjunct: usize) -> bool {
        self.exact_conjuncts.binary_search(&conjunct).is_ok()
    }
}

/// What the query's strings are compared by, in relation to an index.
#[derive(Clone, Copy)]
pub struct CollationMatch<'a> {
    /// The index compares as the query does.
    pub is_same: bool,
    /// The collation of both, if it is the same.
    pub collator: Option<&'a dyn Collator>,
}

/// A condition that bounds a field, and how.
struct Candidate {
    condition: usize,
    intervals: IntervalList,
    tightness: Tightness,
}

/// The ways to use the index, so many at most; none if its first field is not bounded.
pub fn accesses(
    info: &IndexInfo,
    conditions: &[Condition<'_>],
    collation: CollationMatch<'_>,
    count_max: usize,
) -> Vec<Access> {
    let planner = AccessPlanner { info, conditions, collation };
    let candidates = planner.candidates(0);
    if candidates.is_empty() {
        return Vec::new();
    }
    if !info.is_field_multikey(0) {
        return vec![planner.build(&candidates, None)];
    }
    // Conditions of one element count as one choice.
    let mut choices: Vec<usize> = Vec::new();
    for candidate in candidates.iter().map(|candidate| candidate.condition) {
        if choices.len() >= count_max || !operation::goes_on(choices.len() as u64) {
            break;
        }
        let is_known = choices.iter().any(|&chosen| planner.can_share_field(0, chosen, candidate));
        if !is_known {
            choices.push(candidate);
        }
    }
    choices.into_iter().map(|first| planner.build(&candidates, Some(first))).collect()
}

struct AccessPlanner<'p> {
    info: &'p IndexInfo,
    conditions: &'p [Condition<'p>],
    collation: CollationMatch<'p>,
}

impl AccessPlanner<'_> {
    fn target(&self, field: usize) -> Target<'_> {
        Target {
            is_hashed: self.info.fields.get(field).is_some_and(|field| field.is_hashed),
            is_sparse: self.info.is_sparse,
            is_single_field: self.info.fields.len() == 1,
            is_multikey: self.info.is_field_multikey(field),
            is_multikey_inside: self.info.is_field_multikey(field),
            collator: self.collation.collator,
        }
    }

    /// The conditions that can bound a field.
    fn candidates(&self, field: usize) -> Vec<Candidate> {
        let candidate = |condition| {
            let (intervals, tightness) = self.intervals(field, condition)?;
            operation::count(intervals.intervals().len() as u64);
            Some(Candidate { condition, intervals, tightness })
        };
        (0..self.conditions.len()).filter_map(candidate).collect()
    }

    fn intervals(&self, field: usize, condition: usize) -> Option<(IntervalList, Tightness)> {
        let (info, condition) = (self.info.fields.get(field)?, self.conditions.get(condition)?);
        if info.path != condition.path || self.lies_behind_all_paths(field) {
            return None;
        }
        if info.place.is_some() || self.info.index.descriptor.kind == IndexKind::TwoD {
            return places::intervals(info, condition);
        }
        if !self.collation.is_same && predicate_bounds::compares_strings(condition.predicate) {
            return None;
        }
        if self.info.is_sparse && self.is_lost_by_sparse(condition, field) {
            return None;
        }
        let is_multikey_inside = self.is_multikey_inside(condition, field);
        let target = Target { is_multikey_inside, ..self.target(field) };
        let found = predicate_bounds::intervals(condition.predicate, condition.negated, target);
        match self.info.wildcard.as_ref().filter(|wildcard| wildcard.place == field) {
            None => found,
            Some(_) if !wildcard::is_answerable(condition.predicate) => None,
            Some(wildcard) => found.map(|(list, tightness)| {
                let (list, is_widened) = wildcard::without_documents(list);
                let is_vague = is_widened || wildcard.needs_fetch();
                (list, if is_vague { Tightness::NeedsFetch } else { tightness })
            }),
        }
    }

    /// True for fields that cannot be bounded, since a wildcard before them stands for every path.
    fn lies_behind_all_paths(&self, field: usize) -> bool {
        let wildcard = self.info.wildcard.as_ref();
        wildcard.is_some_and(|wildcard| wildcard.is_for_all_paths && field >= wildcard.place)
    }

    /// True if documents without keys may fulfil the condition.
    fn is_lost_by_sparse(&self, condition: &Condition<'_>, field: usize) -> bool {
        let accepts = predicate_bounds::accepts_missing(condition.predicate);
        if condition.negated { !accepts || self.is_multikey_inside(condition, field) } else { accepts }
    }

    /// True if the field may have arrays inside of the one whose element the condition is about.
    fn is_multikey_inside(&self, condition: &Condition<'_>, field: usize) -> bool {
        let outside = condition.scope.map_or(0, |scope| scope.part_count);
        let parts = self.info.fields.get(field).map_or(0, |field| field.path.part_count());
        (outside..parts).any(|component| self.info.is_component_multikey(field, component))
    }

    fn build(&self, first_candidates: &[Candidate], first: Option<usize>) -> Access {
        let mut used_fields = Vec::new();
        // Of conditions on one field of one element one speaks for all.
        let mut restricting: Vec<(usize, usize)> = Vec::new();
        let mut fields = Vec::with_capacity(self.info.fields.len());
        let mut tightness: Vec<(usize, Tightness)> = Vec::new();
        for (field, info) in self.info.fields.iter().enumerate() {
            let found = if field == 0 { Vec::new() } else { self.candidates(field) };
            let candidates = if field == 0 { in_front(first_candidates, first) } else { found.iter().collect() };
            let mut list = IntervalList::everything();
            for candidate in candidates {
                if !operation::goes_on(1 + restricting.len() as u64) {
                    break;
                }
                if !self.fits(field, candidate.condition, &restricting) {
                    continue;
                }
                list = list.intersect(&candidate.intervals);
                used_fields.push(field);
                let scope = self.scope(candidate.condition);
                if !restricting.iter().any(|&(other_field, other)| other_field == field && self.scope(other) == scope) {
                    restricting.push((field, candidate.condition));
                }
                tightness.push((candidate.condition, candidate.tightness));
            }
            fields.push(FieldBounds { name: info.path.text().to_owned(), intervals: list });
        }
        let bounded_fields = fields.iter().filter(|field| !field.intervals.is_everything()).count();
        Access { bounds: IndexBounds { fields }, exact_conjuncts: self.exact(&tightness), bounded_fields, used_fields }
    }

    /// True if the condition may bound the field beside those that bound something already.
    fn fits(&self, field: usize, candidate: usize, used: &[(usize, usize)]) -> bool {
        used.iter().all(|&(other_field, other)| {
            if other_field == field {
                return !self.info.is_field_multikey(field) || self.can_share_field(field, other, candidate);
            }
            let shared = self.info.shared_multikey_prefix(field, other_field);
            shared == 0 || self.same_element(other, candidate, shared)
        })
    }

    /// Two conditions on one multikey field hold for one key only if they are about one element of its last array.
    fn can_share_field(&self, field: usize, one: usize, two: usize) -> bool {
        if one == two {
            return true;
        }
        let Some(info) = self.info.fields.get(field) else { return false };
        let last_array =
            (0..info.path.part_count()).rev().find(|component| self.info.is_component_multikey(field, *component));
        last_array.is_some_and(|component| self.same_element(one, two, component + 1))
    }

    /// True if both stand in one `$elemMatch` on the array whose path has so many components, and no array lies further in.
    fn same_element(&self, one: usize, two: usize, part_count: usize) -> bool {
        match (self.scope(one), self.scope(two)) {
            (Some(one), Some(two)) => one == two && one.part_count == part_count,
            _ => false,
        }
    }

    /// The `$elemMatch` that a condition stands in.
    fn scope(&self, condition: usize) -> Option<ElementScope> {
        self.conditions.get(condition).and_then(|condition| condition.scope)
    }

    /// Conjuncts whose only condition bounds exactly.
    fn exact(&self, tightness: &[(usize, Tightness)]) -> Vec<usize> {
        let exact = |&&(_, tight): &&(usize, Tightness)| tight == Tightness::Exact;
        let mut conjuncts: Vec<usize> = tightness
            .iter()
            .filter(exact)
            .filter_map(|(condition, _)| self.conditions.get(*condition))
            .filter(|condition| condition.scope.is_none())
            .map(|condition| condition.conjunct)
            .collect();
        conjuncts.sort_unstable();
        conjuncts
    }
}

fn in_front(candidates: &[Candidate], first: Option<usize>) -> Vec<&Candidate> {
    let (front, rest): (Vec<_>, Vec<_>) = candidates.iter().partition(|candidate| Some(candidate.condition) == first);
    front.into_iter().chain(rest).collect()
}
