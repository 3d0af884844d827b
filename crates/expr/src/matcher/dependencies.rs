//! Which paths a filter looks at.

use super::{Node, Predicate};
use pando_doc::FieldPath;

/// Each path once, in the order of their first occurrence; none if the whole document may be looked at.
pub(super) fn paths(node: &Node) -> Option<Vec<FieldPath>> {
    let mut found = Vec::new();
    collect(node, None, &mut found).then_some(found)
}

/// False if the whole document may be looked at.
fn collect(node: &Node, prefix: Option<&FieldPath>, found: &mut Vec<FieldPath>) -> bool {
    match node {
        Node::Leaf(leaf) => {
            let path = match prefix.map(|prefix| prefix.join(&leaf.path)) {
                None => leaf.path.clone(),
                Some(Ok(path)) => path,
                Some(Err(_)) => return false,
            };
            if let Predicate::ElemMatchObject(child) = &leaf.predicate {
                let is_known = collect(child, Some(&path), found);
                add(path, found);
                return is_known;
            }
            add(path, found);
            true
        }
        Node::Expr(expression) => match expression.paths() {
            Some(paths) => {
                paths.into_iter().for_each(|path| add(path, found));
                true
            }
            None => false,
        },
        Node::Schema(_) | Node::Where(_) | Node::Text(_) | Node::BucketGeo(_) => false,
        other => other.children().iter().all(|child| collect(child, prefix, found)),
    }
}

fn add(path: FieldPath, found: &mut Vec<FieldPath>) {
    if !found.contains(&path) {
        found.push(path);
    }
}
