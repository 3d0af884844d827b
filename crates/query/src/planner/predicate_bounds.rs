//! From a condition on a path to the intervals of an index's field.
//!
//! Every document that fulfils the condition has a key inside the intervals, provided that it has keys at all (see
//! `accepts_missing` for sparse indexes). `Tightness::Exact` says that the reverse holds too: a key inside belongs to a document
//! that fulfils the condition, which then need not be looked at again. Where anything is doubtful the answer is
//! `NeedsFetch`; where an interval would not help there is none.
//!
//! Keys differ from values in three ways: what is missing is null, an empty array is undefined, and an array has a key for
//! each of its values.

use super::type_range;
use super::{Interval, IntervalList};
use bytes::Bytes;
use pando_doc::{Collator, OwnedValue, Value, ValueType};
use pando_expr::Regex;
use pando_expr::matcher::{Comparison, ComparisonOperator, InList, Predicate, TypeSet};
use pando_keystring::{Discriminator, KeyOrdering, StackBuilder, Version};
use std::cmp::Ordering;

/// Whether the keys inside the intervals say everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Tightness {
    /// Documents with a key inside fulfil the condition.
    Exact,
    /// They have to be looked at.
    NeedsFetch,
}

/// What the intervals are for.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    /// Keys are hashes.
    pub is_hashed: bool,
    /// Documents without the field have no keys.
    pub is_sparse: bool,
    /// The key has this field only.
    pub is_single_field: bool,
    /// Some component of the path may be an array.
    pub is_multikey: bool,
    /// Such a component is behind the array whose element the condition is about.
    pub is_multikey_inside: bool,
    /// The collation of the index, which is that of the query.
    pub collator: Option<&'a dyn Collator>,
}

/// The intervals of a condition, or of its negation.
pub fn intervals(predicate: &Predicate, negated: bool, target: Target<'_>) -> Option<(IntervalList, Tightness)> {
    let (list, tightness) = match (target.is_hashed, negated) {
        // Where nothing is there is the hash of null.
        (true, true) if matches!(predicate, Predicate::Exists) => {
            (IntervalList::point(OwnedValue::Int64(hash_of(&OwnedValue::Null)?)), Tightness::NeedsFetch)
        }
        (true, true) => return None,
        (true, false) => (hashed(predicate, target)?, Tightness::NeedsFetch),
        (false, true) => complement(predicate, target)?,
        (false, false) => plain(predicate, target)?,
    };
    Some((list, tightness))
}

/// True if a document without the field fulfils the condition; then a sparse index does not have all that do.
pub fn accepts_missing(predicate: &Predicate) -> bool {
    match predicate {
        Predicate::Comparison(comparison) => comparison.matches(None, None),
        Predicate::ExprComparison(comparison) => comparison.operator.accepts(Ordering::Less),
        Predicate::In(list) => list.has_null(),
        Predicate::EqualHash(hash) => hash_of(&OwnedValue::Null) == Some(*hash),
        Predicate::Not(child) => !accepts_missing(child),
        Predicate::And(children) => children.iter().all(accepts_missing),
        _ => false,
    }
}

/// True if strings are compared, so that the collations of query and index have to agree.
pub fn compares_strings(predicate: &Predicate) -> bool {
    match predicate {
        Predicate::Comparison(comparison) | Predicate::ExprComparison(comparison) => {
            may_hold_strings(comparison.value.view())
        }
        Predicate::In(list) => {
            list.values().iter().any(|value| may_hold_strings(value.view())) || !list.regexes().is_empty()
        }
        Predicate::Regex(_) | Predicate::ElemMatchObject(_) | Predicate::Schema(_) => true,
        Predicate::ElemMatchValue(child) | Predicate::Not(child) => compares_strings(child),
        Predicate::And(children) => children.iter().any(compares_strings),
        Predicate::Exists
        | Predicate::Type(_)
        | Predicate::Size(_)
        | Predicate::EqualHash(_)
        | Predicate::Mod(_)
        | Predicate::Bits(_)
        | Predicate::Geo(_)
        | Predicate::Near(_)
        | Predicate::Never => false,
    }
}

/// True for strings, and for what may have them inside.
pub fn may_hold_strings(value: Value<'_>) -> bool {
    matches!(value, Value::String(_) | Value::Symbol(_) | Value::Document(_) | Value::Array(_))
}

fn plain(predicate: &Predicate, target: Target<'_>) -> Option<(IntervalList, Tightness)> {
    match predicate {
        Predicate::Comparison(comparison) => comparison_intervals(comparison, target),
        Predicate::ExprComparison(comparison) => expr_intervals(comparison, target),
        Predicate::In(list) => in_intervals(list, target),
        Predicate::Exists => Some(exists_intervals(target)),
        Predicate::Type(types) => Some((type_intervals(types), Tightness::NeedsFetch)),
        Predicate::Mod(_) => Some((IntervalList::of([type_range::of_type(ValueType::Double)]), Tightness::NeedsFetch)),
        Predicate::Regex(regex) => Some(regex_intervals(regex, target)),
        Predicate::ElemMatchValue(child) => Some((element_intervals(child, target)?, Tightness::NeedsFetch)),
        Predicate::Size(_)
        | Predicate::Schema(_)
        | Predicate::EqualHash(_)
        | Predicate::Bits(_)
        | Predicate::Geo(_)
        | Predicate::Near(_)
        | Predicate::ElemMatchObject(_)
        | Predicate::Not(_)
        | Predicate::And(_)
        | Predicate::Never => None,
    }
}

// ---- Comparisons.

fn comparison_intervals(comparison: &Comparison, target: Target<'_>) -> Option<(IntervalList, Tightness)> {
    let value = &comparison.value;
    if comparison.operator == ComparisonOperator::Equal {
        return equality(value, target);
    }
    match value {
        OwnedValue::Null | OwnedValue::Undefined => match comparison.operator {
            ComparisonOperator::LessOrEqual | ComparisonOperator::GreaterOrEqual => equality(&OwnedValue::Null, target),
            _ => Some((IntervalList::nothing(), Tightness::Exact)),
        },
        // An array is compared as a whole, but its keys are its values.
        OwnedValue::Array(_) => Some((IntervalList::everything(), Tightness::NeedsFetch)),
        // An array lies between the ends as a whole, but only its values have keys.
        OwnedValue::MinKey | OwnedValue::MaxKey if target.is_multikey => {
            Some((IntervalList::everything(), Tightness::NeedsFetch))
        }
        end @ (OwnedValue::MinKey | OwnedValue::MaxKey) => {
            let tightness = if target.collator.is_some() { Tightness::NeedsFetch } else { Tightness::Exact };
            Some((beside_end(comparison.operator, end), tightness))
        }
        value if is_nan(value.view()) => match comparison.operator {
            ComparisonOperator::LessOrEqual | ComparisonOperator::GreaterOrEqual => equality(value, target),
            _ => Some((IntervalList::nothing(), Tightness::Exact)),
        },
        value => Some((bracketed(comparison.operator, value, target)?, Tightness::Exact)),
    }
}

/// In expressions the order goes through all types; what is missing, a null among the keys, is the least.
fn expr_intervals(comparison: &Comparison, target: Target<'_>) -> Option<(IntervalList, Tightness)> {
    if target.is_multikey {
        return None;
    }
    let key = collated(&comparison.value, target)?;
    let (min, max) = (OwnedValue::MinKey, OwnedValue::MaxKey);
    let interval = match comparison.operator {
        ComparisonOperator::Equal => Interval::point(key),
        ComparisonOperator::Less => Interval::new(min, true, key, false),
        ComparisonOperator::LessOrEqual => Interval::new(min, true, key, true),
        ComparisonOperator::Greater => Interval::new(key, false, max, true),
        ComparisonOperator::GreaterOrEqual => Interval::new(key, true, max, true),
    };
    let is_null = matches!(comparison.value, OwnedValue::Null);
    let tightness = if is_null || target.collator.is_some() { Tightness::NeedsFetch } else { Tightness::Exact };
    Some((IntervalList::of([interval]), tightness))
}

/// The two ends are beyond everything and compare with values of every type.
fn beside_end(operator: ComparisonOperator, end: &OwnedValue) -> IntervalList {
    use ComparisonOperator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
    let all_but = |has_least: bool| Interval::new(OwnedValue::MinKey, has_least, OwnedValue::MaxKey, !has_least);
    match (operator, matches!(end, OwnedValue::MinKey)) {
        (Less, true) | (Greater, false) => IntervalList::nothing(),
        (Greater, true) => IntervalList::of([all_but(false)]),
        (Less, false) => IntervalList::of([all_but(true)]),
        (GreaterOrEqual, true) | (LessOrEqual, false) => IntervalList::everything(),
        (Equal, _) | (LessOrEqual, true) | (GreaterOrEqual, false) => IntervalList::point(end.clone()),
    }
}

fn is_nan(value: Value<'_>) -> bool {
    value.as_number().is_some_and(|number| number.is_nan())
}

/// From the end of the type's range to the value.
fn bracketed(operator: ComparisonOperator, value: &OwnedValue, target: Target<'_>) -> Option<IntervalList> {
    let value_type = value.value_type();
    let key = collated(value, target)?;
    let interval = match operator {
        ComparisonOperator::Less | ComparisonOperator::LessOrEqual => {
            // NaN is the least number, but less than none.
            let start = match value_type.is_number() {
                true => OwnedValue::Double(f64::NEG_INFINITY),
                false => type_range::least(value_type),
            };
            Interval::new(start, true, key, operator == ComparisonOperator::LessOrEqual)
        }
        _ => {
            let (end, end_inclusive) = type_range::greatest(value_type);
            Interval::new(key, operator == ComparisonOperator::GreaterOrEqual, end, end_inclusive)
        }
    };
    Some(IntervalList::of([interval]))
}

fn equality(value: &OwnedValue, target: Target<'_>) -> Option<(IntervalList, Tightness)> {
    match value {
        OwnedValue::Null | OwnedValue::Undefined => {
            let points = [OwnedValue::Undefined, OwnedValue::Null].map(Interval::point);
            Some((IntervalList::of(points), Tightness::NeedsFetch))
        }
        OwnedValue::Array(array) => {
            let first = array.values().next().map_or(OwnedValue::Undefined, Value::to_owned);
            let points = [collated(&first, target)?, collated(value, target)?].map(Interval::point);
            Some((IntervalList::of(points), Tightness::NeedsFetch))
        }
        value => Some((IntervalList::point(collated(value, target)?), Tightness::Exact)),
    }
}

fn in_intervals(list: &InList, target: Target<'_>) -> Option<(IntervalList, Tightness)> {
    let mut all = Vec::with_capacity(list.values().len());
    let mut tightness = Tightness::Exact;
    let equalities = list.values().iter().map(|value| equality(value, target));
    let patterns = list.regexes().iter().map(|regex| Some(regex_intervals(regex, target)));
    for part in equalities.chain(patterns) {
        let (intervals, part_tightness) = part?;
        all.extend(intervals.intervals().iter().cloned());
        tightness = tightness.max(part_tightness);
    }
    Some((IntervalList::of(all), tightness))
}

/// The value with its strings as the index has them.
fn collated(value: &OwnedValue, target: Target<'_>) -> Option<OwnedValue> {
    collated_value(value, target.collator)
}

/// The value with its strings as an index with this collation has them.
pub fn collated_value(value: &OwnedValue, collator: Option<&dyn Collator>) -> Option<OwnedValue> {
    let Some(collator) = collator.filter(|_| may_hold_strings(value.view())) else { return Some(value.clone()) };
    let mut builder = StackBuilder::new(Version::V1, KeyOrdering::ASCENDING);
    builder.append_collated(value.view(), collator).ok()?;
    builder.finish(Discriminator::Inclusive);
    let type_bits = builder.encoded_type_bits();
    let values = pando_keystring::to_values(builder.bytes(), KeyOrdering::ASCENDING, &type_bits, Version::V1).ok()?;
    values.into_iter().next()
}

// ---- Elements.

fn exists_intervals(target: Target<'_>) -> (IntervalList, Tightness) {
    let is_exact = target.is_sparse && target.is_single_field && !target.is_multikey;
    (IntervalList::everything(), if is_exact { Tightness::Exact } else { Tightness::NeedsFetch })
}

fn type_intervals(types: &TypeSet) -> IntervalList {
    // An array's keys are of the types of its values.
    if types.contains(ValueType::Array) {
        return IntervalList::everything();
    }
    IntervalList::of(types.types().map(type_range::of_type))
}

fn regex_intervals(regex: &Regex, target: Target<'_>) -> (IntervalList, Tightness) {
    let (pattern, options) = (regex.pattern(), regex.options());
    let itself = Interval::point(Value::Regex { pattern, options }.to_owned());
    let prefix = regex.literal_prefix().filter(|_| target.collator.is_none());
    let Some(prefix) = prefix else {
        return (IntervalList::of([type_range::of_type(ValueType::String), itself]), Tightness::NeedsFetch);
    };
    let text = Bytes::copy_from_slice(&prefix.text);
    let (end, end_inclusive) = match successor(&text) {
        Some(end) => (OwnedValue::String(end), false),
        None => type_range::greatest(ValueType::String),
    };
    let strings = Interval::new(OwnedValue::String(text), true, end, end_inclusive);
    // A pattern does not match text that is not UTF-8, which only the text itself can tell.
    (IntervalList::of([strings, itself]), Tightness::NeedsFetch)
}

/// The least string beyond all that begin with this one.
fn successor(text: &[u8]) -> Option<Bytes> {
    pando_storage::prefix_successor(text).map(Bytes::from)
}

/// One value of an array fulfils all of these; its key is in all of their intervals.
fn element_intervals(predicate: &Predicate, target: Target<'_>) -> Option<IntervalList> {
    match predicate {
        Predicate::And(children) => {
            let lists: Vec<IntervalList> =
                children.iter().filter_map(|child| element_intervals(child, target)).collect();
            let (first, rest) = lists.split_first()?;
            Some(rest.iter().fold(first.clone(), |common, list| common.intersect(list)))
        }
        Predicate::Never => Some(IntervalList::nothing()),
        // The array inside an array is a key as a whole.
        Predicate::Comparison(comparison) if matches!(comparison.value, OwnedValue::Array(_)) => {
            match comparison.operator {
                ComparisonOperator::Equal => collated(&comparison.value, target).map(IntervalList::point),
                _ => None,
            }
        }
        Predicate::Exists => Some(IntervalList::everything()),
        Predicate::Not(child) if is_null(child) => plain(child, target).map(|(list, _)| list.complement()),
        // So is the one that a second `$elemMatch` looks into.
        Predicate::Not(_) | Predicate::Type(_) | Predicate::ElemMatchValue(_) => None,
        other => plain(other, target).map(|(list, _)| list),
    }
}

fn is_null(predicate: &Predicate) -> bool {
    matches!(predicate, Predicate::Comparison(comparison)
        if comparison.operator == ComparisonOperator::Equal && matches!(comparison.value, OwnedValue::Null))
}

// ---- Negations.

fn complement(predicate: &Predicate, target: Target<'_>) -> Option<(IntervalList, Tightness)> {
    let is_negatable = matches!(predicate, Predicate::Comparison(_) | Predicate::In(_) | Predicate::Exists);
    if !is_negatable || has_array(predicate) || has_regex(predicate) {
        return None;
    }
    if matches!(predicate, Predicate::Exists) {
        return Some((IntervalList::point(OwnedValue::Null), Tightness::NeedsFetch));
    }
    let (list, tightness) = plain(predicate, target)?;
    if accepts_missing(predicate) {
        // An empty array is undefined in the index but is not null.
        return (!target.is_multikey_inside).then(|| (list.complement(), Tightness::NeedsFetch));
    }
    if tightness != Tightness::Exact {
        return None;
    }
    let tightness = if target.is_multikey { Tightness::NeedsFetch } else { Tightness::Exact };
    Some((list.complement(), tightness))
}

fn has_array(predicate: &Predicate) -> bool {
    match predicate {
        Predicate::Comparison(comparison) => matches!(comparison.value, OwnedValue::Array(_)),
        Predicate::In(list) => list.values().iter().any(|value| matches!(value, OwnedValue::Array(_))),
        _ => false,
    }
}

fn has_regex(predicate: &Predicate) -> bool {
    matches!(predicate, Predicate::In(list) if !list.regexes().is_empty())
}

// ---- Hashes.

/// Only equality survives hashing.
fn hashed(predicate: &Predicate, target: Target<'_>) -> Option<IntervalList> {
    let hash = |value: &OwnedValue| Some(Interval::point(OwnedValue::Int64(hash_of(&collated(value, target)?)?)));
    match predicate {
        Predicate::Comparison(comparison) | Predicate::ExprComparison(comparison)
            if comparison.operator == ComparisonOperator::Equal =>
        {
            Some(IntervalList::of([hash(&comparison.value)?]).union(undefined_beside_null(&comparison.value)))
        }
        Predicate::In(list) if list.regexes().is_empty() => {
            let points: Option<Vec<Interval>> = list.values().iter().map(hash).collect();
            let extra =
                if list.has_null() { undefined_beside_null(&OwnedValue::Null) } else { IntervalList::nothing() };
            Some(IntervalList::of(points?).union(extra))
        }
        Predicate::Exists => Some(IntervalList::everything()),
        Predicate::EqualHash(hash) => Some(IntervalList::point(OwnedValue::Int64(*hash))),
        _ => None,
    }
}

fn undefined_beside_null(value: &OwnedValue) -> IntervalList {
    match (value, hash_of(&OwnedValue::Undefined)) {
        (OwnedValue::Null, Some(hash)) => IntervalList::point(OwnedValue::Int64(hash)),
        _ => IntervalList::nothing(),
    }
}

fn hash_of(value: &OwnedValue) -> Option<i64> {
    if matches!(value, OwnedValue::Array(_)) {
        return None;
    }
    let holder = pando_doc::doc! { "": value };
    holder.view().raw_elements().next().map(|element| pando_doc::hash_element(element, pando_doc::HASH_SEED))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::{Doc, doc};
    use pando_expr::matcher::Node;
    use pando_expr::{MatchExpression, ParseContext};

    fn shown(filter: Doc) -> Option<(String, Tightness)> {
        let target = Target {
            is_hashed: false,
            is_sparse: false,
            is_single_field: true,
            is_multikey: false,
            is_multikey_inside: false,
            collator: None,
        };
        let parsed = MatchExpression::parse(filter.view(), &ParseContext::default()).unwrap().optimize();
        let (leaf, negated) = match parsed.root() {
            Node::Leaf(leaf) => (leaf, false),
            Node::Not(child) => match &**child {
                Node::Leaf(leaf) => (leaf, true),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        };
        intervals(&leaf.predicate, negated, target).map(|(list, tightness)| (list.to_string(), tightness))
    }

    #[test]
    fn x12_conditions_become_intervals() {
        use Tightness::{Exact, NeedsFetch};
        let check = |filter: Doc, expected: &str, tightness: Tightness| {
            assert_eq!(shown(filter.clone()), Some((expected.to_owned(), tightness)), "{filter}");
        };
        check(doc! { "a": 5 }, "[5, 5]", Exact);
        check(doc! { "a": { "$lt": 5 } }, "[-inf.0, 5)", Exact);
        check(doc! { "a": { "$gte": "x" } }, "[\"x\", {})", Exact);
        check(doc! { "a": null }, "[undefined, undefined], [null, null]", NeedsFetch);
        check(doc! { "a": { "$in": [3, 1] } }, "[1, 1], [3, 3]", Exact);
        check(doc! { "a": { "$ne": 5 } }, "[MinKey, 5), (5, MaxKey]", Exact);
        check(doc! { "a": { "$exists": true } }, "[MinKey, MaxKey]", NeedsFetch);
        check(doc! { "a": { "$exists": false } }, "[null, null]", NeedsFetch);
        check(doc! { "a": [1, 2] }, "[1, 1], [[ 1, 2 ], [ 1, 2 ]]", NeedsFetch);
        check(doc! { "a": { "$regex": "^ab" } }, "[\"ab\", \"ac\"), [/^ab/, /^ab/]", NeedsFetch);
        check(doc! { "a": { "$elemMatch": { "$gt": 1, "$lt": 9 } } }, "(1, 9)", NeedsFetch);
        check(doc! { "a": { "$gt": true } }, "", Exact);
        check(doc! { "a": { "$gt": OwnedValue::MinKey } }, "(MinKey, MaxKey]", Exact);
        check(doc! { "a": { "$lte": OwnedValue::MinKey } }, "[MinKey, MinKey]", Exact);
        check(doc! { "a": { "$lt": OwnedValue::MaxKey } }, "[MinKey, MaxKey)", Exact);
        check(doc! { "a": { "$gt": OwnedValue::MaxKey } }, "", Exact);
        assert_eq!(shown(doc! { "a": { "$size": 1 } }), None);
        assert_eq!(shown(doc! { "a": { "$ne": [1] } }), None);
    }
}
