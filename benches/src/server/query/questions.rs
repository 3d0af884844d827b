//! The questions, each as a command and as the SQL that asks the same.
//!
//! Answers are small, so that it is the server that is measured and not the way of the answer; both must have as many rows.

use super::data::{AMOUNT_LIMIT, Collection, word};
use pando_doc::{ArrayBuilder, Doc, doc};

/// Whatever is asked, with the number of sales to choose constants by.
pub struct Question {
    /// In the figures.
    pub name: &'static str,
    /// In the table.
    pub label: &'static str,
    /// To Pando.
    pub command: fn(u64) -> Doc,
    /// To PostgreSQL.
    pub sql: fn(u64) -> String,
}

/// The amount below which a hundredth and a tenth of all sales lie.
const HUNDREDTH: u64 = AMOUNT_LIMIT / 100;
const TENTH: u64 = AMOUNT_LIMIT / 10;

/// Where the range of a twentieth of all numbers begins, and where it ends.
fn range(sales: u64) -> (u64, u64) {
    (sales / 3, sales / 3 + sales / 20)
}

fn aggregate(stages: Vec<Doc>) -> Doc {
    let mut pipeline = ArrayBuilder::new();
    stages.iter().for_each(|stage| pipeline.push(stage));
    let pipeline = pipeline.finish();
    doc! { "aggregate": (Collection::Sales.name()), "pipeline": pipeline, "cursor": { "batchSize": 10_000 } }
}

/// All of them.
pub const QUESTIONS: &[Question] = &[
    Question {
        name: "filter_scan",
        label: "filter, no index: 1 % of all",
        command: |_| {
            aggregate(vec![doc! { "$match": { "amount": { "$lt": (HUNDREDTH as i64) } } }, doc! { "$count": "count" }])
        },
        sql: |_| format!("SELECT count(*) FROM sales WHERE (doc->'amount')::bigint < {HUNDREDTH}"),
    },
    Question {
        name: "indexed_range",
        label: "indexed range: 5 % of all, summed",
        command: |sales| {
            let (from, to) = range(sales);
            aggregate(vec![
                doc! { "$match": { "number": { "$gte": (from as i64), "$lt": (to as i64) } } },
                doc! { "$group": { "_id": null, "total": { "$sum": "$amount" } } },
            ])
        },
        sql: |sales| {
            let (from, to) = range(sales);
            format!(
                "SELECT sum((doc->'amount')::bigint) FROM sales \
                 WHERE (doc->'number')::bigint >= {from} AND (doc->'number')::bigint < {to}"
            )
        },
    },
    Question {
        name: "group",
        label: "group by category, count and sum",
        command: |_| {
            aggregate(vec![doc! { "$group": {
                "_id": "$category", "count": { "$sum": 1 }, "total": { "$sum": "$amount" },
            } }])
        },
        sql: |_| "SELECT doc->>'category', count(*), sum((doc->'amount')::bigint) FROM sales GROUP BY 1".to_owned(),
    },
    Question {
        name: "sort_limit",
        label: "sort by amount, the first 100",
        command: |_| {
            doc! { "find": (Collection::Sales.name()), "sort": { "amount": -1, "_id": 1 }, "limit": 100,
            "singleBatch": true, "batchSize": 100 }
        },
        sql: |_| "SELECT id, doc FROM sales ORDER BY (doc->'amount')::bigint DESC, id LIMIT 100".to_owned(),
    },
    Question {
        name: "lookup",
        label: "join of a tenth with customers, grouped",
        command: |_| {
            aggregate(vec![
                doc! { "$match": { "amount": { "$lt": (TENTH as i64) } } },
                doc! { "$lookup": { "from": (Collection::Customers.name()), "localField": "customer",
                "foreignField": "code", "as": "buyer" } },
                doc! { "$unwind": "$buyer" },
                doc! { "$group": { "_id": "$buyer.region", "count": { "$sum": 1 }, "total": { "$sum": "$amount" } } },
            ])
        },
        sql: |_| {
            format!(
                "SELECT c.doc->>'region', count(*), sum((s.doc->'amount')::bigint) FROM sales s \
                 JOIN customers c ON (c.doc->'code')::bigint = (s.doc->'customer')::bigint \
                 WHERE (s.doc->'amount')::bigint < {TENTH} GROUP BY 1"
            )
        },
    },
    Question {
        name: "unwind_group",
        label: "unwind of tags, grouped",
        command: |_| {
            aggregate(vec![doc! { "$unwind": "$tags" }, doc! { "$group": { "_id": "$tags", "count": { "$sum": 1 } } }])
        },
        sql: |_| "SELECT tag, count(*) FROM sales, jsonb_array_elements_text(doc->'tags') AS tag GROUP BY 1".to_owned(),
    },
    Question {
        name: "text",
        label: "text search: two words, counted",
        command: |_| {
            let search = format!("{} {}", word(17), word(4711));
            aggregate(vec![doc! { "$match": { "$text": { "$search": search } } }, doc! { "$count": "count" }])
        },
        sql: |_| {
            format!(
                "SELECT count(*) FROM sales WHERE to_tsvector('simple', doc->>'words') @@ to_tsquery('simple', '{} | {}')",
                word(17),
                word(4711)
            )
        },
    },
];
