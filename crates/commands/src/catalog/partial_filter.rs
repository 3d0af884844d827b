//! Which filters a partial index may have: those of which the planner can tell whether a query implies them.

use pando_base::{ErrorCode, Result, bail, ensure};
use pando_doc::DocRef;
use pando_expr::matcher::{Node, Predicate};
use pando_expr::{Features, MatchExpression, ParseContext};

/// How deep a filter may be nested.
const DEPTH_MAX: usize = 4;

/// Refuses what a partial index cannot have.
pub(super) fn check_partial_filter(filter: DocRef<'_>) -> Result<()> {
    let context = ParseContext::default().with_features(Features::NONE);
    let parsed = MatchExpression::parse(filter, &context)?;
    check(parsed.root(), 0, filter)
}

fn check(node: &Node, level: usize, filter: DocRef<'_>) -> Result<()> {
    ensure!(
        level < DEPTH_MAX,
        ErrorCode::CannotCreateIndex,
        "partialFilterExpression depth may not exceed {DEPTH_MAX}"
    );
    let is_allowed = match node {
        Node::And(children) | Node::Or(children) => {
            return children.iter().try_for_each(|child| check(child, level + 1, filter));
        }
        Node::Leaf(leaf) => matches!(
            leaf.predicate,
            Predicate::Comparison(_) | Predicate::In(_) | Predicate::Exists | Predicate::Type(_) | Predicate::Geo(_)
        ),
        Node::BucketGeo(_) => true,
        Node::Nor(_)
        | Node::Not(_)
        | Node::AlwaysTrue
        | Node::AlwaysFalse
        | Node::Expr(_)
        | Node::Schema(_)
        | Node::Text(_)
        | Node::Where(_) => false,
    };
    if !is_allowed {
        bail!(ErrorCode::CannotCreateIndex, "Expression not supported in partial index: {filter}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn u7_partial_filters_are_those_that_can_be_implied() {
        for allowed in [
            doc! { "a": 1 },
            doc! { "a": { "$gt": 1, "$lt": 5 }, "b": { "$exists": true } },
            doc! { "$or": [{ "a": 1 }, { "b": { "$in": [1, 2] } }] },
            doc! { "a": { "$type": "string" } },
        ] {
            assert!(check_partial_filter(allowed.view()).is_ok(), "{allowed}");
        }
        for refused in [
            doc! { "a": { "$ne": 1 } },
            doc! { "a": { "$exists": false } },
            doc! { "$nor": [{ "a": 1 }] },
            doc! { "a": { "$mod": [2, 0] } },
            doc! { "$and": [{ "$and": [{ "$and": [{ "$and": [{ "a": 1 }] }] }] }] },
        ] {
            let error = check_partial_filter(refused.view()).unwrap_err();
            assert_eq!(error.code(), ErrorCode::CannotCreateIndex, "{refused}");
        }
    }
}
