//! PostgreSQL's protocol, version 3, with the documents as JSONB.
//!
//! What a careful user would do: the key is a column of its own under collation "C", the document a `jsonb` beside it; room
//! for updates in place (`fillfactor`) where there are updates; an expression index for the range, a GIN index for the list.
//! Every statement is prepared when the connection is made and travels as Bind, Execute and Sync in one write, so the server
//! parses and, after five executions, plans nothing. A bulk insert is one INSERT of many rows, which come as two arrays in
//! binary form. Loading, and the workload for it, is COPY in binary form, its fastest way in, one transaction for each batch, in
//! one write with the query before it: the server ignores stray copy data if it refused the query.

use super::{Answer, Chore, Dialect};
use crate::Error;
use crate::server::data::{Collection, Json, tag_name, user_key, write_fields, write_update};
use crate::server::operation::Operation;

/// The role and the database.
pub const USER: &str = "bench";
pub const DATABASE: &str = "postgres";

const PROTOCOL_VERSION: i32 = 3 << 16;
const TEXT: i32 = 25;
/// The type of whole numbers.
pub const INT8: i32 = 20;
const JSONB: i32 = 3802;
const TEXT_ARRAY: i32 = 1009;
const INT8_ARRAY: i32 = 1016;
const JSONB_ARRAY: i32 = 3807;
/// In front of a `jsonb` in binary form.
const JSONB_VERSION: u8 = 1;
const COPY_SIGNATURE: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// Name, text and types of the parameters.
const STATEMENTS: &[(&str, &str, &[i32])] = &[
    ("find", "SELECT id, doc FROM usertable WHERE id = $1", &[TEXT]),
    ("scan", "SELECT id, doc FROM usertable WHERE id >= $1 ORDER BY id LIMIT $2", &[TEXT, INT8]),
    ("update", "UPDATE usertable SET doc = doc || $2 WHERE id = $1", &[TEXT, JSONB]),
    ("insert_usertable", "INSERT INTO usertable VALUES ($1, $2)", &[TEXT, JSONB]),
    ("insert_inserts", "INSERT INTO inserts VALUES ($1, $2)", &[TEXT, JSONB]),
    ("insert_orders", "INSERT INTO orders VALUES ($1, $2)", &[INT8, JSONB]),
    (
        "insert_many_usertable",
        "INSERT INTO usertable SELECT * FROM unnest($1::text[], $2::jsonb[])",
        &[TEXT_ARRAY, JSONB_ARRAY],
    ),
    (
        "insert_many_inserts",
        "INSERT INTO inserts SELECT * FROM unnest($1::text[], $2::jsonb[])",
        &[TEXT_ARRAY, JSONB_ARRAY],
    ),
    (
        "insert_many_orders",
        "INSERT INTO orders SELECT * FROM unnest($1::bigint[], $2::jsonb[])",
        &[INT8_ARRAY, JSONB_ARRAY],
    ),
    (
        "range",
        "SELECT id, doc FROM orders WHERE (doc->'number')::bigint >= $1 AND (doc->'number')::bigint < $2",
        &[INT8, INT8],
    ),
    ("tag", "SELECT id, doc FROM orders WHERE doc->'tags' @> $1", &[JSONB]),
    (
        "aggregate",
        "SELECT doc->>'category', count(*), sum((doc->'amount')::bigint) FROM orders \
         WHERE (doc->'number')::bigint >= $1 AND (doc->'number')::bigint < $2 GROUP BY 1",
        &[INT8, INT8],
    ),
    (
        "aggregate_scan",
        "SELECT doc->>'category', count(*), sum((doc->'amount')::bigint) FROM orders \
         WHERE (doc->'amount')::bigint >= $1 GROUP BY 1",
        &[INT8],
    ),
];

/// The client's side of one connection.
pub struct Postgres {
    orders: u64,
    progress: Progress,
    scratch: Vec<u8>,
}

/// How far a reply was read.
#[derive(Default)]
struct Progress {
    scanned_bytes: usize,
    documents: u64,
    error: Option<String>,
}

/// A parameter of a statement.
pub enum Parameter<'a> {
    /// As text.
    Text(&'a [u8]),
    /// A whole number, in binary form.
    Whole(u64),
    /// In binary form.
    Array(&'a [u8]),
}

impl Postgres {
    /// Told how many orders there are, which decides what is in them.
    pub fn new(orders: u64) -> Postgres {
        Postgres { orders, progress: Progress::default(), scratch: Vec::new() }
    }

    fn insert(&mut self, out: &mut Vec<u8>, collection: Collection, number: u64) {
        self.write_document(collection, number);
        let document = Parameter::Text(&self.scratch);
        match collection {
            Collection::Users => execute(out, "insert_usertable", &[text(&user_key(number)), document]),
            Collection::Inserts => execute(out, "insert_inserts", &[text(&user_key(number)), document]),
            Collection::Orders => execute(out, "insert_orders", &[Parameter::Whole(number), document]),
        }
    }

    fn insert_many(&mut self, out: &mut Vec<u8>, collection: Collection, numbers: std::ops::Range<u64>) {
        let count = numbers.end - numbers.start;
        let (statement, key_type) = match collection {
            Collection::Users => ("insert_many_usertable", TEXT),
            Collection::Inserts => ("insert_many_inserts", TEXT),
            Collection::Orders => ("insert_many_orders", INT8),
        };
        let (mut keys, mut documents) = (array(key_type, count), array(JSONB, count));
        for number in numbers {
            match collection {
                Collection::Orders => sized(&mut keys, &number.to_be_bytes()),
                Collection::Users | Collection::Inserts => sized(&mut keys, user_key(number).as_bytes()),
            }
            self.write_document(collection, number);
            sized_jsonb(&mut documents, &self.scratch);
        }
        execute(out, statement, &[Parameter::Array(&keys), Parameter::Array(&documents)]);
    }

    fn copy(&mut self, out: &mut Vec<u8>, collection: Collection, numbers: std::ops::Range<u64>) {
        query(out, &format!("COPY {} FROM STDIN (FORMAT binary)", collection.name()));
        frame(out, b'd', |out| out.extend_from_slice(COPY_SIGNATURE));
        for number in numbers {
            self.write_document(collection, number);
            frame(out, b'd', |out| {
                out.extend_from_slice(&2_i16.to_be_bytes());
                match collection {
                    Collection::Orders => sized(out, &number.to_be_bytes()),
                    Collection::Users | Collection::Inserts => sized(out, user_key(number).as_bytes()),
                }
                sized_jsonb(out, &self.scratch);
            });
        }
        frame(out, b'd', |out| out.extend_from_slice(&(-1_i16).to_be_bytes()));
        frame(out, b'c', |_| ());
    }

    fn write_document(&mut self, collection: Collection, number: u64) {
        self.scratch.clear();
        Json::object(&mut self.scratch, |sink| write_fields(collection, number, self.orders, sink));
    }

    /// Takes one message into account; true when it ends the reply.
    fn take(&mut self, kind: u8, content: &[u8]) -> Result<bool, Error> {
        match kind {
            b'Z' => return Ok(true),
            b'C' => self.progress.documents += affected(content),
            b'E' => {
                self.progress.error.get_or_insert_with(|| error_text(content));
            }
            b'R' if content != 0_i32.to_be_bytes() => return Err("the server asks for a password".into()),
            _ => {}
        }
        Ok(false)
    }
}

impl Dialect for Postgres {
    fn greeting(&mut self) -> Vec<Chore> {
        let mut startup = vec![0; 4];
        startup.extend_from_slice(&PROTOCOL_VERSION.to_be_bytes());
        for word in ["user", USER, "database", DATABASE, ""] {
            string(&mut startup, word);
        }
        let size = startup.len() as i32;
        startup[..4].copy_from_slice(&size.to_be_bytes());
        vec![Chore::new(startup)]
    }

    fn first_words(&mut self) -> Vec<Chore> {
        let mut chores = self.reset(Collection::Inserts);
        chores.extend(prepared(|name| name == "insert_inserts"));
        chores
    }

    fn preparation(&mut self) -> Vec<Chore> {
        prepared(|_| true)
    }

    fn request(&mut self, operation: &Operation, out: &mut Vec<u8>) {
        match *operation {
            Operation::Find { number } => execute(out, "find", &[text(&user_key(number))]),
            Operation::Scan { number, length } => {
                execute(out, "scan", &[text(&user_key(number)), Parameter::Whole(length)]);
            }
            Operation::Update { number, field, version } => {
                self.scratch.clear();
                Json::object(&mut self.scratch, |sink| write_update(field, version, sink));
                execute(out, "update", &[text(&user_key(number)), Parameter::Text(&self.scratch)]);
            }
            Operation::Insert { collection, number } => self.insert(out, collection, number),
            Operation::InsertMany { collection, from, count } => self.insert_many(out, collection, from..from + count),
            Operation::Load { collection, from, count } => self.copy(out, collection, from..from + count),
            Operation::Range { from, length } => execute(out, "range", &range(from, length)),
            Operation::Tag { tag } => execute(out, "tag", &[text(&format!("[\"{}\"]", tag_name(tag)))]),
            Operation::Aggregate { from, length } => execute(out, "aggregate", &range(from, length)),
            Operation::AggregateScan { amount } => execute(out, "aggregate_scan", &[Parameter::Whole(amount)]),
        }
    }

    fn reply(&mut self, arrived: &[u8]) -> Result<Option<Answer>, Error> {
        loop {
            let start = self.progress.scanned_bytes;
            let Some(&[kind, a, b, c, d]) = arrived.get(start..start + 5) else { return Ok(None) };
            let length = usize::try_from(i32::from_be_bytes([a, b, c, d]))?;
            let end = start + 1 + length;
            if length < 4 {
                return Err(format!("a message of {length} bytes").into());
            }
            let Some(content) = arrived.get(start + 5..end) else { return Ok(None) };
            self.progress.scanned_bytes = end;
            if self.take(kind, content)? {
                let Progress { scanned_bytes, documents, error } = std::mem::take(&mut self.progress);
                let outcome = error.map_or(Ok(documents), Err);
                return Ok(Some(Answer { size_bytes: scanned_bytes, outcome }));
            }
        }
    }

    fn reset(&mut self, collection: Collection) -> Vec<Chore> {
        let name = collection.name();
        let mut texts = vec![format!("DROP TABLE IF EXISTS {name}")];
        match collection {
            Collection::Users => texts.push(table(name, "text COLLATE \"C\"", " WITH (fillfactor = 85)")),
            Collection::Inserts => texts.push(table(name, "text COLLATE \"C\"", "")),
            Collection::Orders => {
                texts.push(table(name, "bigint", ""));
                texts.push(format!("CREATE INDEX ON {name} (((doc->'number')::bigint))"));
                texts.push(format!("CREATE INDEX ON {name} USING gin ((doc->'tags') jsonb_path_ops)"));
            }
        }
        texts.iter().map(|text| chore(text)).collect()
    }

    fn settle(&mut self) -> Vec<Chore> {
        vec![chore("VACUUM ANALYZE"), chore("CHECKPOINT")]
    }
}

/// The bytes of one statement.
pub fn statement(text: &str) -> Vec<u8> {
    let mut request = Vec::new();
    query(&mut request, text);
    request
}

/// The bytes that copy rows, in text form, into a table.
pub fn copy_text(table: &str, rows: &str) -> Vec<u8> {
    let mut request = statement(&format!("COPY {table} FROM STDIN"));
    frame(&mut request, b'd', |out| out.extend_from_slice(rows.as_bytes()));
    frame(&mut request, b'c', |_| ());
    request
}

/// Prepares the statements that are wanted.
fn prepared(is_wanted: impl Fn(&str) -> bool) -> Vec<Chore> {
    prepare(STATEMENTS.iter().filter(|(name, ..)| is_wanted(name)))
}

/// Prepares statements: name, text and types of the parameters.
pub fn prepare<'a>(statements: impl Iterator<Item = &'a (&'a str, &'a str, &'a [i32])>) -> Vec<Chore> {
    let mut request = Vec::new();
    for (name, statement, types) in statements {
        frame(&mut request, b'P', |out| {
            string(out, name);
            string(out, statement);
            out.extend_from_slice(&(types.len() as i16).to_be_bytes());
            types.iter().for_each(|oid| out.extend_from_slice(&oid.to_be_bytes()));
        });
    }
    frame(&mut request, b'S', |_| ());
    vec![Chore::new(request)]
}

fn table(name: &str, key: &str, options: &str) -> String {
    format!("CREATE TABLE {name} (id {key} PRIMARY KEY, doc jsonb NOT NULL){options}")
}

fn chore(text: &str) -> Chore {
    Chore::new(statement(text))
}

fn text(text: &str) -> Parameter<'_> {
    Parameter::Text(text.as_bytes())
}

fn range(from: u64, length: u64) -> [Parameter<'static>; 2] {
    [Parameter::Whole(from), Parameter::Whole(from + length)]
}

/// A message: its kind, its length, and what `fill` puts behind them.
fn frame(out: &mut Vec<u8>, kind: u8, fill: impl FnOnce(&mut Vec<u8>)) {
    out.push(kind);
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    fill(out);
    let length = (out.len() - start) as i32;
    if let Some(place) = out.get_mut(start..start + 4) {
        place.copy_from_slice(&length.to_be_bytes());
    }
}

fn string(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

fn sized(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as i32).to_be_bytes());
    out.extend_from_slice(bytes);
}

fn sized_jsonb(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(&(text.len() as i32 + 1).to_be_bytes());
    out.push(JSONB_VERSION);
    out.extend_from_slice(text);
}

/// The beginning of an array in binary form: one dimension, no nulls, numbered from one. Its elements follow, sized.
fn array(element_type: i32, count: u64) -> Vec<u8> {
    let mut out = Vec::new();
    for number in [1, 0, element_type, count as i32, 1] {
        out.extend_from_slice(&number.to_be_bytes());
    }
    out
}

/// A simple query.
fn query(out: &mut Vec<u8>, text: &str) {
    frame(out, b'Q', |out| string(out, text));
}

/// Bind, Execute, Sync.
pub fn execute(out: &mut Vec<u8>, statement: &str, parameters: &[Parameter<'_>]) {
    bind(out, statement, parameters);
    frame(out, b'S', |_| ());
}

/// Bind, Execute: an answer comes when something with a Sync follows. Numbers and arrays travel in binary form, all else and the
/// results as text.
pub fn bind(out: &mut Vec<u8>, statement: &str, parameters: &[Parameter<'_>]) {
    frame(out, b'B', |out| {
        string(out, "");
        string(out, statement);
        out.extend_from_slice(&(parameters.len() as i16).to_be_bytes());
        for parameter in parameters {
            let is_binary = !matches!(parameter, Parameter::Text(_));
            out.extend_from_slice(&i16::from(is_binary).to_be_bytes());
        }
        out.extend_from_slice(&(parameters.len() as i16).to_be_bytes());
        for parameter in parameters {
            match parameter {
                Parameter::Text(bytes) | Parameter::Array(bytes) => sized(out, bytes),
                Parameter::Whole(number) => sized(out, &number.to_be_bytes()),
            }
        }
        out.extend_from_slice(&0_i16.to_be_bytes());
    });
    frame(out, b'E', |out| out.extend_from_slice(&[0; 5]));
}

/// The number at the end of a tag such as `INSERT 0 1`; a tag without one counts nothing.
fn affected(tag: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(tag);
    text.trim_end_matches('\0').rsplit(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// The message and the code of an ErrorResponse.
fn error_text(content: &[u8]) -> String {
    let fields = content.split(|byte| *byte == 0);
    let field = |kind: u8| {
        let found = fields.clone().find_map(|field| field.strip_prefix(&[kind]));
        String::from_utf8_lossy(found.unwrap_or_default()).into_owned()
    };
    format!("{} ({})", field(b'M'), field(b'C'))
}
