//! Which filters a partial index may have: those of which the planner can tell whether a query implies them. And which projections a
//! wildcard index: names that are taken in or left out.

use pando_base::{ErrorCode, Result, bail, ensure};
use pando_doc::DocRef;
use pando_expr::matcher::{Node, Predicate};
use pando_expr::projection::{Projection, ProjectionPolicies};
use pando_expr::{Features, MatchExpression, ParseContext};

/// How deep a filter may be nested.
const DEPTH_MAX: usize = 4;

/// Refuses what a partial index cannot have.
pub(super) fn check_partial_filter(filter: DocRef<'_>) -> Result<()> {
    let context = ParseContext::default().with_features(Features::NONE);
    let parsed = MatchExpression::parse(filter, &context)?;
    check(parsed.root(), 0, filter)
}

/// Refuses a projection that cannot be read.
pub(super) fn check_wildcard_projection(projection: DocRef<'_>) -> Result<()> {
    let parsed = Projection::parse(projection, ProjectionPolicies::WILDCARD, &ParseContext::default());
    parsed.map(|_| ()).map_err(|error| error.context("Failed to parse projection: wildcardProjection"))
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
    fn u7_projections_of_wildcard_indexes_are_names() {
        for allowed in [doc! { "a": 1 }, doc! { "a": 0, "_id": 1 }, doc! { "a": { "b": 1, "c": true } }] {
            assert!(check_wildcard_projection(allowed.view()).is_ok(), "{allowed}");
        }
        for (refused, code) in [
            (doc! { "a": 1, "b": 0 }, 31254),
            (doc! { "a": 0, "b": 1 }, 31253),
            (doc! { "a": { "b": 1, "c": 0 } }, 31254),
            (doc! { "a": 1, "a.b": 1 }, 31249),
            (doc! { "a.b": 1, "a": 1 }, 31250),
            (doc! { "a": "$b" }, 51271),
        ] {
            let error = check_wildcard_projection(refused.view()).unwrap_err();
            assert_eq!(error.code(), ErrorCode::location(code), "{refused}");
        }
    }

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
