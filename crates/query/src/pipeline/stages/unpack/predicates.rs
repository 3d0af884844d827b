//! Filters on measurements as filters on buckets.
//!
//! A condition on the meta value is the same condition on the bucket. Of a condition on anything else the bucket's extremes tell whether
//! *some* measurement may fulfil it: `x > 5` needs `control.max.x > 5`. That holds because all values at a path have one kind within a
//! bucket; where that is not known, nothing is said. Numbers that are none (NaN) are the least of all but are not less than anything, so
//! they are let through.
//!
//! A bucket starts less than its span before each of its measurements, so that a bound on one end of its times bounds the other too.

use pando_doc::{FieldPath, ObjectId, OwnedValue, Value};
use pando_expr::matcher::{BucketGeoWithin, Comparison, ComparisonOperator, Node, Predicate};
use pando_timeseries::{TimeseriesOptions, index_keys};
use std::sync::Arc;

/// An `$in` with more values than this says nothing of buckets.
const IN_COUNT_MAX: usize = 64;

/// What is known of the buckets.
pub(crate) struct Facts<'a> {
    pub(crate) options: &'a TimeseriesOptions,
    /// Strings are compared in the filter as they were for the extremes.
    pub(crate) is_same_collation: bool,
    /// All values at a path have one kind within a bucket.
    pub(crate) has_one_schema: bool,
    /// The ids of buckets are in the order of their starts.
    pub(crate) are_ids_in_order: bool,
}

impl Facts<'_> {
    /// The same condition on the bucket, if it is on the meta value alone.
    pub(crate) fn on_meta(&self, node: &Node) -> Option<Node> {
        let all = |children: &[Node]| children.iter().map(|child| self.on_meta(child)).collect::<Option<Vec<_>>>();
        Some(match node {
            Node::And(children) if !children.is_empty() => Node::And(all(children)?),
            Node::Or(children) => Node::Or(all(children)?),
            Node::Nor(children) => Node::Nor(all(children)?),
            Node::Not(child) => Node::Not(Box::new(self.on_meta(child)?)),
            Node::Leaf(leaf) => Node::leaf(self.meta_path(&leaf.path)?, leaf.predicate.clone()),
            _ => return None,
        })
    }

    fn meta_path(&self, path: &FieldPath) -> Option<FieldPath> {
        let path = index_keys::meta_path(&path.text().to_string(), self.options)?;
        FieldPath::lenient(path).ok()
    }

    /// What every bucket fulfils that has a measurement that fulfils the condition; none if that is any bucket.
    pub(crate) fn on_bucket(&self, node: &Node) -> Option<Node> {
        if let Some(exact) = self.on_meta(node) {
            return Some(exact);
        }
        match node {
            Node::And(children) => {
                let parts: Vec<Node> = children.iter().filter_map(|child| self.on_bucket(child)).collect();
                (!parts.is_empty()).then_some(Node::And(parts))
            }
            Node::Or(children) => {
                children.iter().map(|child| self.on_bucket(child)).collect::<Option<Vec<_>>>().map(Node::Or)
            }
            Node::Leaf(leaf) => self.on_extremes(&leaf.path.text().to_string(), &leaf.predicate),
            _ => None,
        }
    }

    /// What a bucket fulfils only if all of its measurements fulfil the condition, if its times tell that.
    pub(crate) fn on_whole_bucket(&self, node: &Node) -> Option<Node> {
        let all =
            |children: &[Node]| children.iter().map(|child| self.on_whole_bucket(child)).collect::<Option<Vec<_>>>();
        match node {
            Node::And(children) if !children.is_empty() => all(children).map(Node::And),
            Node::Or(children) => all(children).map(Node::Or),
            Node::Leaf(leaf) if leaf.path.text() == self.options.time_field.as_str() => {
                let Predicate::Comparison(Comparison { operator, value: OwnedValue::DateTime(time_ms) }) =
                    &leaf.predicate
                else {
                    return None;
                };
                let end = |end: &str| comparison(end, &self.options.time_field, *operator, Value::DateTime(*time_ms));
                match operator {
                    ComparisonOperator::Greater | ComparisonOperator::GreaterOrEqual => end("min"),
                    ComparisonOperator::Less | ComparisonOperator::LessOrEqual => end("max"),
                    ComparisonOperator::Equal => Some(Node::And(vec![end("min")?, end("max")?])),
                }
            }
            _ => None,
        }
    }

    fn on_extremes(&self, path: &str, predicate: &Predicate) -> Option<Node> {
        if self.meta_is_above(path) {
            return None;
        }
        match predicate {
            Predicate::Comparison(comparison) if path == self.options.time_field => {
                let OwnedValue::DateTime(time_ms) = comparison.value else { return None };
                Some(self.on_time(comparison.operator, time_ms))
            }
            Predicate::Comparison(comparison) => self.on_value(path, comparison.operator, comparison.value.view()),
            Predicate::In(list) if list.regexes().is_empty() && list.values().len() <= IN_COUNT_MAX => {
                let equal = |value: &OwnedValue| {
                    let operator = ComparisonOperator::Equal;
                    let comparison = Comparison { operator, value: value.clone() };
                    self.on_extremes(path, &Predicate::Comparison(comparison))
                };
                list.values().iter().map(equal).collect::<Option<Vec<_>>>().map(Node::Or)
            }
            Predicate::Geo(geo) => {
                let within = BucketGeoWithin::of(FieldPath::lenient(path).ok()?, geo)?;
                Some(Node::BucketGeo(Arc::new(within)))
            }
            Predicate::Exists if self.has_one_schema => {
                let min = control("min", path)?;
                Some(Node::leaf(min, Predicate::Exists))
            }
            _ => None,
        }
    }

    /// The path leads to or through the meta value.
    fn meta_is_above(&self, path: &str) -> bool {
        index_keys::meta_path(path, self.options).is_some()
    }

    fn on_time(&self, operator: ComparisonOperator, time_ms: i64) -> Node {
        let span_ms = i64::from(self.options.span_seconds()) * 1000;
        let end = |end: &str, operator, time_ms| {
            comparison(end, &self.options.time_field, operator, Value::DateTime(time_ms))
        };
        let not_before = |operator| {
            [end("max", operator, time_ms), end("min", ComparisonOperator::Greater, time_ms.saturating_sub(span_ms))]
        };
        let not_behind = |operator| {
            [end("min", operator, time_ms), end("max", ComparisonOperator::Less, time_ms.saturating_add(span_ms))]
        };
        let first = || self.id_bound(ComparisonOperator::GreaterOrEqual, time_ms.saturating_sub(span_ms), 0);
        let last = || self.id_bound(ComparisonOperator::LessOrEqual, time_ms, u8::MAX);
        let mut parts: Vec<Option<Node>> = Vec::with_capacity(6);
        match operator {
            ComparisonOperator::Greater | ComparisonOperator::GreaterOrEqual => {
                parts.extend(not_before(operator));
                parts.push(first());
            }
            ComparisonOperator::Less | ComparisonOperator::LessOrEqual => {
                parts.extend(not_behind(operator));
                parts.push(last());
            }
            ComparisonOperator::Equal => {
                parts.extend(not_before(ComparisonOperator::GreaterOrEqual));
                parts.extend(not_behind(ComparisonOperator::LessOrEqual));
                parts.extend([first(), last()]);
            }
        }
        Node::And(parts.into_iter().flatten().collect())
    }

    /// A bound of the ids of buckets that start at a time; none if ids do not tell it.
    fn id_bound(&self, operator: ComparisonOperator, time_ms: i64, filling: u8) -> Option<Node> {
        let seconds = i32::try_from(time_ms.div_euclid(1000)).ok().and_then(|seconds| u32::try_from(seconds).ok());
        let seconds = seconds.filter(|_| self.are_ids_in_order)?;
        let mut bytes = [filling; ObjectId::LENGTH_BYTES];
        for (to, from) in bytes.iter_mut().zip(seconds.to_be_bytes()) {
            *to = from;
        }
        let comparison = Comparison { operator, value: OwnedValue::ObjectId(ObjectId::from_bytes(bytes)) };
        Some(Node::leaf(FieldPath::lenient("_id").ok()?, Predicate::Comparison(comparison)))
    }

    fn on_value(&self, path: &str, operator: ComparisonOperator, value: Value<'_>) -> Option<Node> {
        let is_ordered = match value {
            Value::Double(number) => !number.is_nan(),
            Value::Decimal(number) => !number.is_nan(),
            Value::String(_) | Value::Symbol(_) => self.is_same_collation,
            Value::Int32(_) | Value::Int64(_) | Value::Bool(_) | Value::DateTime(_) | Value::ObjectId(_) => true,
            Value::Timestamp(_) | Value::Binary { .. } => true,
            _ => false,
        };
        if !is_ordered || !self.has_one_schema {
            return None;
        }
        let least = |operator| {
            let fulfils = comparison("min", path, operator, value)?;
            if !value.is_number() {
                return Some(fulfils);
            }
            let is_none = comparison("min", path, ComparisonOperator::Equal, Value::Double(f64::NAN))?;
            Some(Node::Or(vec![fulfils, is_none]))
        };
        match operator {
            ComparisonOperator::Greater | ComparisonOperator::GreaterOrEqual => {
                comparison("max", path, operator, value)
            }
            ComparisonOperator::Less | ComparisonOperator::LessOrEqual => least(operator),
            ComparisonOperator::Equal => {
                let greatest = comparison("max", path, ComparisonOperator::GreaterOrEqual, value)?;
                Some(Node::And(vec![least(ComparisonOperator::LessOrEqual)?, greatest]))
            }
        }
    }
}

fn control(end: &str, path: &str) -> Option<FieldPath> {
    FieldPath::lenient(format!("control.{end}.{path}")).ok()
}

fn comparison(end: &str, path: &str, operator: ComparisonOperator, value: Value<'_>) -> Option<Node> {
    let comparison = Comparison { operator, value: value.to_owned() };
    Some(Node::leaf(control(end, path)?, Predicate::Comparison(comparison)))
}
