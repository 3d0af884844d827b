//! The order of stages: what can be done earlier without another result is done earlier.
//!
//! A `$match` goes in front of a sort and of stages that do not make the fields it looks at, or only give them other names; of a conjunction
//! the part that can go does. A
//! `$limit` or `$skip` goes in front of stages that give one document for each. So the planner gets as much of the pipeline as
//! possible, and later stages see fewer documents. Neighbours of one kind become one. An `$unwind` gives only those fields of its documents that later
//! stages look at.

use super::stages::{limit, match_stage, skip};
use super::{Pushdown, SharedStage, dependencies};
use pando_base::operation;
use pando_doc::FieldPath;
use pando_expr::matcher::{Node, Predicate};
use pando_expr::{Expression, MatchExpression};
use std::sync::Arc;

/// How many changes a pipeline is worth, whatever its length, and for each stage.
const CHANGES_MIN: usize = 200;
const CHANGES_FOR_STAGE: usize = 20;
/// Trying one is so many steps.
const CHANGE_STEPS: u64 = 64;

/// Which fields a stage may change in the documents that it passes on.
#[derive(Clone, Debug, PartialEq)]
pub enum Modified {
    /// Any, or it looks at other documents too: nothing passes it.
    Everything,
    /// These and what is below them.
    Paths(Vec<FieldPath>),
    /// All but these and what is below them.
    AllBut(Vec<FieldPath>),
}

/// A field under another name.
#[derive(Clone, Debug, PartialEq)]
pub struct Rename {
    /// Its path behind the stage.
    pub new: FieldPath,
    /// Its name in front of it.
    pub old: FieldPath,
    /// What is missing in front of the stage is null behind it.
    pub is_null_if_missing: bool,
}

impl Rename {
    /// The renaming that an expression is, if it is one: a field of the document itself.
    pub(super) fn of(new: FieldPath, expression: &Expression) -> Option<Rename> {
        let value = expression.to_value();
        let text = value.view().as_str()?;
        let name = ["$$ROOT.", "$$CURRENT.", "$"].iter().find_map(|prefix| text.strip_prefix(prefix))?;
        let is_field = !name.is_empty() && !name.starts_with('$') && !name.contains('.');
        let old = FieldPath::parse(name).ok().filter(|_| is_field)?;
        Some(Rename { new, old, is_null_if_missing: false })
    }

    /// The path in front of the stage, if this is where it comes from.
    fn before(&self, path: &FieldPath) -> Option<FieldPath> {
        if !is_prefix(&self.new, path) || has_number(path) {
            return None;
        }
        let below = path.parts().skip(self.new.part_count()).map(|part| part.to_string());
        let parts: Vec<String> = std::iter::once(self.old.text().to_string()).chain(below).collect();
        FieldPath::lenient(parts.join(".")).ok()
    }
}

/// The filter as it is in front of a stage: paths that it leaves stay, renamed ones get their old names. None if that cannot be.
fn renamed(node: &Node, modified: &Modified, renames: &[Rename]) -> Option<Node> {
    let all = |children: &[Node]| {
        children.iter().map(|child| renamed(child, modified, renames)).collect::<Option<Vec<Node>>>()
    };
    Some(match node {
        Node::And(children) => Node::And(all(children)?),
        Node::Or(children) => Node::Or(all(children)?),
        Node::Nor(children) => Node::Nor(all(children)?),
        Node::Not(child) => Node::Not(Box::new(renamed(child, modified, renames)?)),
        Node::Leaf(leaf) if modified.leaves(&leaf.path) => node.clone(),
        Node::Leaf(leaf) => renames.iter().find_map(|rename| {
            let tells_missing = matches!(leaf.predicate, Predicate::Exists | Predicate::Type(_));
            let path = rename.before(&leaf.path).filter(|_| !(rename.is_null_if_missing && tells_missing))?;
            Some(Node::leaf(path, leaf.predicate.clone()))
        })?,
        _ => return None,
    })
}

impl Modified {
    /// True if a filter on this path decides the same before the stage.
    pub(super) fn leaves(&self, path: &FieldPath) -> bool {
        match self {
            Modified::Everything => false,
            // A number may be a place in an array, so that other paths lead to the same.
            Modified::Paths(paths) if has_number(path) || paths.iter().any(has_number) => {
                paths.iter().all(|other| other.parts().next() != path.parts().next())
            }
            Modified::Paths(paths) => !paths.iter().any(|other| is_prefix(other, path) || is_prefix(path, other)),
            Modified::AllBut(paths) => paths.iter().any(|other| !has_number(other) && is_prefix(other, path)),
        }
    }
}

fn has_number(path: &FieldPath) -> bool {
    path.parts().any(|part| part.iter().all(u8::is_ascii_digit))
}

fn is_prefix(short: &FieldPath, long: &FieldPath) -> bool {
    short.parts().count() <= long.parts().count() && short.parts().zip(long.parts()).all(|(left, right)| left == right)
}

/// Puts the stages into the best order that gives the same.
pub(super) fn optimize(mut stages: Vec<SharedStage>) -> Vec<SharedStage> {
    if pando_expr::DISABLE_PIPELINE_OPTIMIZATION.should_fail() {
        return stages;
    }
    let mut place = 0;
    // Each rule is meant to bring something forward; if two of them undo each other, the order that was reached has to do.
    let mut changes_left = CHANGES_MIN + stages.len() * CHANGES_FOR_STAGE;
    while place + 1 < stages.len() && changes_left > 0 && operation::goes_on(CHANGE_STEPS) {
        match swapped(&stages, place) {
            Some(better) => {
                changes_left -= 1;
                stages.splice(place..place + 2, better);
                // What moved may move on.
                place = place.saturating_sub(1);
            }
            None => place += 1,
        }
    }
    slimmed(stages)
}

/// Stages that copy documents copy only what the stages behind them look at.
fn slimmed(mut stages: Vec<SharedStage>) -> Vec<SharedStage> {
    for place in 0..stages.len() {
        // Few stages copy more than they must.
        if stages.get(place).is_none_or(|stage| stage.keeping(&[]).is_none()) {
            continue;
        }
        if !operation::goes_on(stages.len() as u64) {
            break;
        }
        let Some(needed) = dependencies::of_stages(stages.get(place..).unwrap_or_default()) else { continue };
        let mut names: Vec<&[u8]> = needed.iter().filter_map(|path| path.parts().next()).map(|name| &**name).collect();
        names.sort_unstable();
        names.dedup();
        let slim = stages.get(place).and_then(|stage| stage.keeping(&names));
        if let Some((stage, slim)) = stages.get_mut(place).zip(slim) {
            *stage = slim;
        }
    }
    stages
}

/// What two neighbours become, if that is better.
fn swapped(stages: &[SharedStage], place: usize) -> Option<Vec<SharedStage>> {
    let (first, second) = (stages.get(place)?, stages.get(place + 1)?);
    if let Some(both) = first.with_next(&**second) {
        return Some(vec![both]);
    }
    match (first.pushdown(), second.pushdown()) {
        (Pushdown::Match(left), Pushdown::Match(right)) => {
            let parts = vec![left.root().clone(), right.root().clone()];
            Some(vec![match_of(parts, left)])
        }
        (Pushdown::Limit(left), Pushdown::Limit(right)) => Some(vec![limit::of(left.min(right))]),
        (Pushdown::Skip(left), Pushdown::Skip(right)) => Some(vec![skip::of(left.checked_add(right)?)]),
        (Pushdown::Sort(_), Pushdown::Sort(_)) if !first.is_limited() => Some(vec![Arc::clone(second)]),
        (Pushdown::Sort(_), Pushdown::Match(filter)) if !filter.is_random() && !first.is_limited() => {
            Some(vec![Arc::clone(second), Arc::clone(first)])
        }
        (Pushdown::None | Pushdown::Project(_), Pushdown::Match(filter)) => parted(first, filter),
        (Pushdown::None | Pushdown::Project(_), Pushdown::Limit(_) | Pushdown::Skip(_)) if first.keeps_count() => {
            Some(vec![Arc::clone(second), Arc::clone(first)])
        }
        (Pushdown::None, Pushdown::Sort(pattern)) if first.lets_sorts_pass() => {
            let modified = first.modified();
            let is_same_before = !pattern.needs_metadata() && pattern.paths().all(|path| modified.leaves(path));
            is_same_before.then(|| vec![Arc::clone(second), Arc::clone(first)])
        }
        _ => None,
    }
}

/// The part of a filter that goes in front of a stage, the stage, and the rest of the filter.
fn parted(stage: &SharedStage, filter: &Arc<MatchExpression>) -> Option<Vec<SharedStage>> {
    let modified = stage.modified();
    if modified == Modified::Everything || filter.is_random() {
        return None;
    }
    let parts = match filter.root() {
        Node::And(parts) => parts.clone(),
        other => vec![other.clone()],
    };
    let goes = |part: &Node| {
        let paths = MatchExpression::from_node(part.clone(), filter.collator().cloned()).paths();
        paths.is_some_and(|paths| !paths.is_empty() && paths.iter().all(|path| modified.leaves(path)))
    };
    let renames = stage.renames();
    let (mut early, mut late) = (Vec::new(), Vec::new());
    for part in parts {
        match renamed(&part, &modified, &renames).filter(|_| !renames.is_empty()) {
            _ if goes(&part) => early.push(part),
            Some(part) => early.push(part),
            None => late.push(part),
        }
    }
    if early.is_empty() {
        return None;
    }
    let mut better = vec![match_of(early, filter), Arc::clone(stage)];
    if !late.is_empty() {
        better.push(match_of(late, filter));
    }
    Some(better)
}

fn match_of(parts: Vec<Node>, like: &MatchExpression) -> SharedStage {
    let expression = MatchExpression::from_node(Node::And(parts), like.collator().cloned());
    match_stage::of(Arc::new(expression.optimize()))
}
