//! The shape of a query: what it asks for, without the constants. Queries of one shape are planned alike.

use crate::CanonicalQuery;
use crate::planner::PlanNode;
use pando_expr::matcher::{Node, Predicate};
use std::fmt::Write as _;
use xxhash_rust::xxh3::xxh3_64;

/// The shape as text.
pub fn shape(query: &CanonicalQuery) -> String {
    let mut out = String::new();
    write_node(query.filter.root(), &mut out);
    if let Some(sort) = &query.sort {
        let _ = write!(out, "~{}", sort.to_doc());
    }
    if query.projection.is_some() {
        let _ = write!(out, "|{}", query.projection_document);
    }
    if let Some(collation) = query.collation() {
        let _ = write!(out, "#{collation}");
    }
    out
}

/// The hash that clients see: eight hexadecimal digits.
pub fn query_hash(shape: &str) -> String {
    hash_text(shape.as_bytes())
}

/// The hash of what a plan is remembered under, together with the collection's indexes.
pub fn plan_cache_key(cache_key: &str, indexes: u64) -> String {
    hash_text(format!("{cache_key}@{indexes:x}").as_bytes())
}

fn hash_text(bytes: &[u8]) -> String {
    format!("{:08X}", xxh3_64(bytes) as u32)
}

fn write_node(node: &Node, out: &mut String) {
    match node {
        Node::And(children) => write_list("an", children, out),
        Node::Or(children) => write_list("or", children, out),
        Node::Nor(children) => write_list("nr", children, out),
        Node::Not(child) => write_list("nt", std::slice::from_ref(child), out),
        Node::AlwaysTrue => out.push_str("at"),
        Node::AlwaysFalse => out.push_str("af"),
        Node::Expr(_) => out.push_str("xp"),
        Node::Schema(_) => out.push_str("js"),
        Node::BucketGeo(within) => {
            let _ = write!(out, "ig{}", within.field());
        }
        Node::Text(_) => out.push_str("te"),
        Node::Where(_) => out.push_str("wh"),
        Node::Leaf(leaf) => {
            let _ = write!(out, "{}:", leaf.path);
            write_predicate(&leaf.predicate, out);
        }
    }
}

fn write_list(name: &str, children: &[Node], out: &mut String) {
    let _ = write!(out, "{name}[");
    for child in children {
        write_node(child, out);
        out.push(',');
    }
    out.push(']');
}

fn write_predicate(predicate: &Predicate, out: &mut String) {
    match predicate {
        Predicate::Comparison(comparison) => out.push_str(comparison.operator.name()),
        Predicate::ExprComparison(comparison) => {
            let _ = write!(out, "xp{}", comparison.operator.name());
        }
        Predicate::In(_) => out.push_str("in"),
        Predicate::Exists => out.push_str("ex"),
        Predicate::Type(_) => out.push_str("ty"),
        Predicate::Size(_) => out.push_str("sz"),
        Predicate::Schema(operator) => out.push_str(operator.name()),
        Predicate::EqualHash(_) => out.push_str("eh"),
        Predicate::Mod(_) => out.push_str("mo"),
        Predicate::Regex(regex) => {
            let _ = write!(out, "re/{}", regex.options());
        }
        Predicate::Bits(bits) => out.push_str(bits.test().name()),
        Predicate::Geo(geo) => {
            let operator = if geo.relation() == pando_geo::Relation::Within { "gw" } else { "gi" };
            let _ = write!(out, "{operator}{}", u8::from(geo.geometry().is_flat()));
        }
        Predicate::Near(near) => {
            let _ = write!(out, "gn{}{}", u8::from(near.is_wrapping), u8::from(near.center.is_spherical));
        }
        Predicate::ElemMatchObject(child) => {
            out.push_str("eo");
            write_node(child, out);
        }
        Predicate::ElemMatchValue(child) | Predicate::Not(child) => {
            out.push_str("ev");
            write_predicate(child, out);
        }
        Predicate::And(children) => {
            for child in children {
                write_predicate(child, out);
            }
        }
        Predicate::Never => out.push_str("nv"),
    }
}

/// The indexes that plans use, each once.
pub fn indexes_of_plans(plans: &[PlanNode]) -> String {
    let scans = plans.iter().flat_map(PlanNode::index_scans);
    let mut names: Vec<&str> = scans.map(|scan| scan.info.name()).collect();
    names.sort_unstable();
    names.dedup();
    names.join(",")
}

/// A plan without its constants: which stages on which indexes, which fields of them bounded.
pub fn plan_signature(plan: &PlanNode) -> String {
    let mut out = String::new();
    write_plan(plan, &mut out);
    out
}

fn write_plan(plan: &PlanNode, out: &mut String) {
    let name = match plan {
        PlanNode::Eof => "eof",
        PlanNode::Text(_) => "text",
        PlanNode::Near(_) => "near",
        PlanNode::CollectionScan(_) => "coll",
        PlanNode::IndexScan(_) => "ix",
        PlanNode::Fetch { .. } => "fetch",
        PlanNode::IdHack { .. } => "id",
        PlanNode::Or { .. } => "or",
        PlanNode::And { .. } => "and",
        PlanNode::SortMerge { .. } => "merge",
        PlanNode::Sort { .. } => "sort",
        PlanNode::Skip { .. } => "skip",
        PlanNode::Limit { .. } => "limit",
        PlanNode::Projection { .. } => "proj",
        PlanNode::ReturnKey { .. } => "key",
        PlanNode::CountScan(_) => "count",
        PlanNode::DistinctScan { .. } => "distinct",
    };
    out.push_str(name);
    if let PlanNode::IndexScan(scan) = plan {
        let _ = write!(out, " {} {:?} ", scan.info.name(), scan.direction);
        if let Some(path) = scan.info.wildcard.as_ref().and_then(|wildcard| scan.info.fields.get(wildcard.place)) {
            let _ = write!(out, "{} ", path.path);
        }
        for field in &scan.bounds.fields {
            out.push(if field.intervals.is_everything() { '*' } else { 'b' });
        }
    }
    out.push('(');
    // What a list of points was split into depends on the constants.
    let children = plan.children();
    let shown =
        if matches!(plan, PlanNode::SortMerge { .. }) { children.get(..1).unwrap_or_default() } else { children };
    for child in shown {
        write_plan(child, out);
    }
    out.push(')');
}
