//! The large requests: each as a command and, where PostgreSQL does something of the kind, as SQL.
//!
//! They keep a server busy in different ways: reading, writing, sorting; values that grow within
//! one expression; pipelines within pipelines; what a few bytes of a request can cost a planner, a
//! parser, a decompressor.

use pando_doc::{ArrayBuilder, Doc, DocBuilder, Value, doc};
use pando_wire::{Compressor, MsgFlags, RequestBuilder};

/// Documents of the collection `small`.
pub(super) const SMALL_DOCUMENTS: u64 = 300;
/// Documents of the collection `graph`, each of which leads to the next.
pub(super) const GRAPH_DOCUMENTS: u64 = 5000;

/// A large request.
pub(super) struct Load {
    /// In the table and the figures.
    pub(super) name: &'static str,
    /// Told how many documents there are and which of the connections it is for.
    pub(super) command: fn(u64, u64) -> Doc,
    /// A whole message in its place.
    pub(super) raw: Option<fn() -> Vec<u8>>,
    /// Its like.
    pub(super) sql: Option<fn(u64, u64) -> String>,
}

const fn load(name: &'static str, command: fn(u64, u64) -> Doc) -> Load {
    Load { name, command, raw: None, sql: None }
}

const fn both(name: &'static str, command: fn(u64, u64) -> Doc, sql: fn(u64, u64) -> String) -> Load {
    Load { name, command, raw: None, sql: Some(sql) }
}

/// All of them.
pub(super) const LOADS: &[Load] = &[
    Load { name: "nothing", command: |_, _| doc! { "ping": 1 }, raw: None, sql: Some(|_, _| "SELECT 1".into()) },
    both("scan", |_, _| counted(vec![never()]), |_, _| "SELECT count(*) FROM numbers WHERE s = 'none'".into()),
    both(
        "group",
        |_, _| counted(vec![doc! { "$group": { "_id": "$b", "n": { "$sum": 1 } } }]),
        |_, _| "SELECT count(*) FROM (SELECT b, count(*) FROM numbers GROUP BY b) AS g".into(),
    ),
    both(
        "sort",
        |documents, _| numbers(vec![doc! { "$sort": { "b": 1, "s": -1 } }, doc! { "$skip": (documents as i64 - 1) }]),
        |documents, _| format!("SELECT * FROM numbers ORDER BY b, s DESC OFFSET {}", documents - 1),
    ),
    both(
        "update_all",
        |_, _| doc! { "update": "numbers", "updates": [{ "q": {}, "u": { "$inc": { "z": 1 } }, "multi": true }] },
        |_, _| "UPDATE numbers SET z = z + 1".into(),
    ),
    both(
        "insert_many",
        |_, number| {
            let mut documents = ArrayBuilder::new();
            (0..20_000).for_each(|a: i32| documents.push(&doc! { "a": a, "s": "some words that take a little room" }));
            doc! { "insert": (format!("inserted{number}")), "documents": (documents.finish()) }
        },
        |_, _| {
            "INSERT INTO inserted SELECT a, 'some words that take a little room' FROM generate_series(1, 20000) a"
                .into()
        },
    ),
    both(
        "delete_many",
        |_, number| doc! { "delete": (format!("inserted{number}")), "deletes": [{ "q": { "a": { "$gte": 0 } }, "limit": 0 }] },
        |_, _| "DELETE FROM inserted WHERE a >= 0".into(),
    ),
    both(
        "index_build",
        |_, number| doc! { "createIndexes": "numbers", "indexes": [{ "key": { "s": 1, (format!("n{number}")): 1 }, "name": (format!("n{number}")) }] },
        |_, number| format!("DROP INDEX IF EXISTS n{number}; CREATE INDEX n{number} ON numbers (s, b)"),
    ),
    load("validate", |_, _| doc! { "validate": "numbers", "full": true }),
    load("database_hash", |_, _| doc! { "dbHash": 1 }),
    both(
        "distinct",
        |_, _| doc! { "distinct": "numbers", "key": "b" },
        |_, _| "SELECT count(DISTINCT b) FROM numbers".into(),
    ),
    both(
        "window",
        |_, _| {
            counted(vec![
                doc! { "$setWindowFields": { "sortBy": { "b": 1 }, "output": { "m": { "$sum": "$a", "window": { "documents": [-50, 0] } } } } },
            ])
        },
        |_, _| "SELECT max(m) FROM (SELECT sum(a) OVER (ORDER BY b ROWS 50 PRECEDING) AS m FROM numbers) AS w".into(),
    ),
    load("facet", |_, _| {
        numbers(vec![
            doc! { "$facet": { "x": [{ "$sortByCount": "$a" }], "y": [{ "$group": { "_id": "$b" } }, { "$count": "n" }] } },
        ])
    }),
    load("bucket_auto", |_, _| numbers(vec![doc! { "$bucketAuto": { "groupBy": "$b", "buckets": 50 } }])),
    both(
        "new_fields",
        |_, _| {
            counted(vec![
                doc! { "$set": { "q": { "$concat": ["$s", "-", { "$toString": "$b" }] } } },
                doc! { "$match": { "q": "none" } },
            ])
        },
        |_, _| "SELECT count(*) FROM numbers WHERE s || '-' || b::text = 'none'".into(),
    ),
    both(
        "regular_expression",
        |_, _| doc! { "find": "numbers", "filter": { "s": { "$regex": "^x.*9.*8.*7.*none" } } },
        |_, _| "SELECT * FROM numbers WHERE s ~ '^x.*9.*8.*7.*none'".into(),
    ),
    both(
        "lookup_nested",
        |_, _| {
            small(vec![
                doc! { "$lookup": { "from": "small", "let": { "v": "$_id" }, "pipeline": [
                    { "$match": { "$expr": { "$gt": ["$_id", "$$v"] } } },
                    { "$lookup": { "from": "small", "let": { "w": "$_id" }, "pipeline": [{ "$match": { "$expr": { "$lt": ["$_id", "$$w"] } } }], "as": "o" } },
                    { "$project": { "n": { "$size": "$o" } } },
                ], "as": "o" } },
                doc! { "$count": "n" },
            ])
        },
        |_, _| "SELECT count(*) FROM small a, small b, small c WHERE b.id > a.id AND c.id < b.id".into(),
    ),
    both(
        "graph_lookup",
        |_, _| {
            graph(vec![
                doc! { "$match": { "_id": { "$lt": 10 } } },
                doc! { "$graphLookup": { "from": "graph", "startWith": "$next", "connectFromField": "next", "connectToField": "_id", "as": "o" } },
                doc! { "$project": { "n": { "$size": "$o" } } },
            ])
        },
        |_, _| {
            "WITH RECURSIVE reached(start, id) AS (SELECT id, next FROM graph WHERE id < 10 UNION SELECT r.start, g.next FROM reached r JOIN graph g ON g.id = r.id) SELECT count(*) FROM reached".into()
        },
    ),
    both(
        "unwind_endless",
        |_, _| {
            one(vec![
                doc! { "$set": { "x": { "$range": [0, 100_000] } } },
                doc! { "$unwind": "$x" },
                doc! { "$set": { "y": { "$range": [0, 100_000] } } },
                doc! { "$unwind": "$y" },
                never(),
                doc! { "$count": "n" },
            ])
        },
        |_, _| "SELECT count(*) FROM generate_series(1, 100000) x, generate_series(1, 100000) y WHERE x + y = 0".into(),
    ),
    both(
        "reduce",
        |_, _| {
            expression(
                doc! { "$reduce": { "input": { "$range": [0, 2_000_000] }, "initialValue": 0, "in": { "$add": ["$$value", "$$this"] } } },
            )
        },
        |_, _| "SELECT sum(x) FROM generate_series(1, 2000000) x".into(),
    ),
    load("map", |_, _| {
        sized(doc! { "$map": { "input": { "$range": [0, 1_000_000] }, "as": "x", "in": { "$multiply": ["$$x", 2] } } })
    }),
    load("filter", |_, _| {
        sized(doc! { "$filter": { "input": { "$range": [0, 1_000_000] }, "as": "x", "cond": { "$gt": ["$$x", 5] } } })
    }),
    load("reduce_in_map", |_, _| {
        sized(doc! { "$map": { "input": { "$range": [0, 3000] }, "as": "x", "in": {
            "$reduce": { "input": { "$range": [0, 3000] }, "initialValue": 0, "in": { "$add": ["$$value", "$$x"] } },
        } } })
    }),
    load("sort_array", |_, _| {
        sized(
            doc! { "$sortArray": { "input": { "$map": { "input": { "$range": [0, 500_000] }, "as": "x", "in": { "$mod": [{ "$multiply": ["$$x", 7919] }, 500_009] } } }, "sortBy": 1 } },
        )
    }),
    load("set_union", |_, _| {
        sized(doc! { "$setUnion": [{ "$range": [0, 500_000] }, { "$range": [100_000, 400_000] }] })
    }),
    load("zip", |_, _| sized(doc! { "$zip": { "inputs": [{ "$range": [0, 300_000] }, { "$range": [0, 300_000] }] } })),
    load("split", |_, _| text_expression(doc! { "$size": { "$split": ["$words", " "] } })),
    both(
        "find_all",
        |_, _| text_expression(doc! { "$size": { "$regexFindAll": { "input": "$letters", "regex": "a" } } }),
        |_, _| "SELECT count(*) FROM regexp_matches(repeat('a', 100000), 'a', 'g')".into(),
    ),
    load("find_all_slow", |_, _| {
        text_expression(doc! { "$size": { "$regexFindAll": { "input": "$letters", "regex": "(a+)+$" } } })
    }),
    load("replace_all", |_, _| {
        text_expression(
            doc! { "$strLenCP": { "$replaceAll": { "input": "$letters", "find": "a", "replacement": "bc" } } },
        )
    }),
    load("index_of", |_, _| text_expression(doc! { "$indexOfCP": ["$letters", "aaaaaaaaaaaaaaaaaaaaaab"] })),
    load("script_loop", |_, _| {
        expression(
            doc! { "$function": { "body": "function() { let s = 0; for (let i = 0; i < 3e8; i++) s += i; return s; }", "args": [], "lang": "js" } },
        )
    }),
    load("script_each", |_, _| {
        counted(vec![
            doc! { "$match": { "$expr": { "$function": { "body": "function(a) { return a == 1; }", "args": ["$a"], "lang": "js" } } } },
        ])
    }),
    load("where", |_, _| doc! { "count": "numbers", "query": { "$where": "this.a == this.b" } }),
    load("nested_or", |_, _| doc! { "find": "numbers", "filter": (nested_or(40)), "limit": 1 }),
    load("wide_or", |_, _| {
        let mut branches = ArrayBuilder::new();
        (0..10_000).for_each(|b: i32| branches.push(&doc! { "b": b, "a": (b % 7) }));
        doc! { "find": "numbers", "filter": { "$or": (branches.finish()) } }
    }),
    both(
        "in_many",
        |_, _| {
            let mut values = ArrayBuilder::new();
            (0..1_000_000).for_each(|value: i32| values.push(value));
            doc! { "count": "numbers", "query": { "b": { "$in": (values.finish()) } } }
        },
        |_, _| "SELECT count(*) FROM numbers WHERE b = ANY (ARRAY(SELECT generate_series(0, 1000000)))".into(),
    ),
    load("in_expressions", |_, _| {
        let mut values = ArrayBuilder::new();
        (0..100_000).for_each(|value: i32| {
            let pattern = format!("^n{value}");
            values.push(Value::Regex { pattern: pattern.as_str().into(), options: "".into() });
        });
        doc! { "count": "small", "query": { "s": { "$in": (values.finish()) } } }
    }),
    load("doubled_fields", |_, _| {
        let stages = std::iter::repeat_n(doc! { "$addFields": { "x": { "a": "$x", "b": "$x" } } }, 40);
        one(stages.chain([doc! { "$count": "n" }]).collect())
    }),
    load("doubled_text", |_, _| {
        let stages = std::iter::repeat_n(doc! { "$addFields": { "s": { "$concat": ["$s", "$s"] } } }, 40);
        one(stages.chain([doc! { "$project": { "n": { "$strLenBytes": "$s" } } }]).collect())
    }),
    load("doubled_array", |_, _| {
        let first = doc! { "$addFields": { "x": [1, 2, 3, 4] } };
        let stages = std::iter::repeat_n(doc! { "$addFields": { "x": { "$concatArrays": ["$x", "$x"] } } }, 40);
        one(std::iter::once(first).chain(stages).chain([doc! { "$project": { "n": { "$size": "$x" } } }]).collect())
    }),
    Load { name: "compressed", command: |_, _| doc! { "ping": 1 }, raw: Some(compressed), sql: None },
    load("collections", |_, _| doc! { "listCollections": 1 }),
    load("explain", |_, _| {
        let mut branches = ArrayBuilder::new();
        (0..2000).for_each(|b: i32| branches.push(&doc! { "b": b, "$or": [{ "a": 1 }, { "a": b }] }));
        doc! { "explain": { "find": "numbers", "filter": { "$or": (branches.finish()) } }, "verbosity": "queryPlanner" }
    }),
];

fn never() -> Doc {
    doc! { "$match": { "s": "none" } }
}

fn aggregate(collection: &str, stages: Vec<Doc>) -> Doc {
    let mut pipeline = ArrayBuilder::new();
    stages.iter().for_each(|stage| pipeline.push(stage));
    doc! { "aggregate": collection, "pipeline": (pipeline.finish()), "cursor": {}, "allowDiskUse": true }
}

fn numbers(stages: Vec<Doc>) -> Doc {
    aggregate("numbers", stages)
}

fn small(stages: Vec<Doc>) -> Doc {
    aggregate("small", stages)
}

fn graph(stages: Vec<Doc>) -> Doc {
    aggregate("graph", stages)
}

/// The stages over the large collection; how many documents come out.
fn counted(mut stages: Vec<Doc>) -> Doc {
    stages.push(doc! { "$count": "n" });
    numbers(stages)
}

/// The stages over one document.
fn one(stages: Vec<Doc>) -> Doc {
    small(std::iter::once(doc! { "$limit": 1 }).chain(stages).collect())
}

fn expression(expression: Doc) -> Doc {
    one(vec![doc! { "$project": { "r": expression } }])
}

fn sized(array: Doc) -> Doc {
    expression(doc! { "$size": array })
}

fn text_expression(expression: Doc) -> Doc {
    aggregate("texts", vec![doc! { "$project": { "r": expression } }])
}

/// Alternatives of conjunctions of alternatives, without an index for any.
fn nested_or(depth: u32) -> Doc {
    (0..depth).fold(doc! { "q": 1 }, |inner, level| {
        let (left, right) = (format!("l{level}"), format!("r{level}"));
        doc! { "$or": [{ "$and": [{ (left.as_str()): 1 }, inner] }, { (right.as_str()): 1 }] }
    })
}

/// Sixteen megabytes of nothing in some kilobytes.
fn compressed() -> Vec<u8> {
    let nothing = "0".repeat(16 << 20);
    let body = doc! { "ping": 1, "comment": nothing, "$db": "admin" };
    let request = RequestBuilder::new(MsgFlags::NONE, Vec::new()).body(body.view());
    request.finish(1, Some(Compressor::Zlib)).unwrap_or_default()
}

/// The fields of a document.
pub(super) fn write_document(number: u64, documents: u64, document: &mut DocBuilder) {
    document.append("_id", number as i64);
    document.append("a", (number % 1000) as i64);
    document.append("b", (number * 7919 % documents) as i64);
    document.append("s", format!("x{number}"));
    document.append("next", number as i64 + 1);
    document.append("z", 0_i64);
}

/// The document of the collection `texts`.
pub(super) fn texts() -> Doc {
    let (letters, words) = ("a".repeat(100_000), "ab ".repeat(30_000));
    doc! { "insert": "texts", "documents": [{ "_id": 1, "letters": letters, "words": words }] }
}

/// The indexes of the large collection.
pub(super) fn indexes() -> Doc {
    doc! { "createIndexes": "numbers", "indexes": [
        { "key": { "a": 1 }, "name": "a" },
        { "key": { "b": 1 }, "name": "b" },
        { "key": { "a": 1, "b": 1 }, "name": "ab" },
    ] }
}

/// The statements that make PostgreSQL's tables.
pub(super) fn tables(documents: u64) -> Vec<String> {
    vec![
        "CREATE TABLE numbers (id bigint PRIMARY KEY, a bigint, b bigint, s text, next bigint, z bigint)".into(),
        format!(
            "INSERT INTO numbers SELECT i, i % 1000, i * 7919 % {documents}, 'x' || i, i + 1, 0 FROM generate_series(0, {}) i",
            documents - 1
        ),
        format!("CREATE TABLE small AS SELECT * FROM numbers WHERE id < {SMALL_DOCUMENTS}"),
        format!("CREATE TABLE graph AS SELECT * FROM numbers WHERE id < {GRAPH_DOCUMENTS}"),
        "CREATE INDEX ON graph (id)".into(),
        "CREATE TABLE inserted (a bigint, s text)".into(),
        "CREATE INDEX ON numbers (a)".into(),
        "CREATE INDEX ON numbers (b)".into(),
        "CREATE INDEX ON numbers (a, b)".into(),
        "VACUUM ANALYZE".into(),
        "CHECKPOINT".into(),
    ]
}
