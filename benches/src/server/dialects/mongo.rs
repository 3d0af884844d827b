//! MongoDB's wire protocol: OP_MSG, as a driver sends it for the same call.
//!
//! Inserts travel as a document sequence, `findOne` as a find with `limit` and `singleBatch`. Every write asks for
//! `{w: "majority", j: true}`. There are no sessions: the client is compared with one that has none either.

use super::{Answer, Chore, Dialect};
use crate::Error;
use crate::server::data::{self, Collection, FieldSink, tag_name, user_key, write_fields, write_update};
use crate::server::operation::Operation;
use pando_doc::{DocBuilder, DocRef, Value};
use pando_wire::{Header, OpCode, limits};

/// Where everything lies.
pub const DATABASE: &str = "bench";
const FLAGS_BYTES: usize = 4;
const KIND_BODY: u8 = 0;
const KIND_SEQUENCE: u8 = 1;
/// Where the body of a reply begins: behind header, flags and the section's kind.
const BODY_START: usize = limits::HEADER_SIZE_BYTES + FLAGS_BYTES + 1;

/// The client's side of one connection.
pub struct Mongo {
    request_id: i32,
    orders: u64,
}

impl Mongo {
    /// Told how many orders there are, which decides what is in them.
    pub fn new(orders: u64) -> Mongo {
        Mongo { request_id: 0, orders }
    }

    /// The bytes of one command.
    pub fn command(&mut self, database: &str, fill: impl FnOnce(&mut DocBuilder)) -> Vec<u8> {
        let mut out = Vec::new();
        self.message(&mut out, |body| {
            fill(body);
            body.append("$db", database);
        });
        out
    }

    /// The bytes that insert documents with numbers for keys; `fill` writes their other fields.
    pub fn insert_batch(
        &mut self,
        collection: &str,
        numbers: std::ops::Range<u64>,
        fill: impl Fn(u64, &mut Fields<'_>),
    ) -> Vec<u8> {
        let mut out = Vec::new();
        self.insert_into(&mut out, collection, numbers, |number, document| {
            document.append("_id", number as i64);
            fill(number, &mut Fields(document));
        });
        out
    }

    /// The bytes that insert documents that `write` makes of their numbers.
    pub fn insert_documents(
        &mut self,
        collection: &str,
        numbers: std::ops::Range<u64>,
        write: impl Fn(u64, &mut DocBuilder),
    ) -> Vec<u8> {
        let mut out = Vec::new();
        self.insert_into(&mut out, collection, numbers, write);
        out
    }

    /// The document in a whole reply.
    pub fn body(reply: &[u8]) -> Option<DocRef<'_>> {
        reply.get(BODY_START..).map(DocRef::trusted)
    }

    /// Appends a message with a body alone.
    pub fn message(&mut self, out: &mut Vec<u8>, fill: impl FnOnce(&mut DocBuilder)) {
        let start = begin(out);
        build(out, fill);
        self.end(out, start);
    }

    fn end(&mut self, out: &mut [u8], start: usize) {
        self.request_id = self.request_id.wrapping_add(1);
        let length_bytes = (out.len() - start) as i32;
        let header = Header { length_bytes, request_id: self.request_id, response_to: 0, op_code: OpCode::Msg };
        if let Some(place) = out.get_mut(start..start + limits::HEADER_SIZE_BYTES) {
            place.copy_from_slice(&header.to_bytes());
        }
    }

    fn find(&mut self, out: &mut Vec<u8>, collection: Collection, limit: u64, filter: impl FnOnce(&mut DocBuilder)) {
        self.message(out, |body| {
            body.append("find", collection.name());
            body.document("filter", filter);
            body.append("limit", limit as i32);
            body.append("singleBatch", true);
            body.append("$db", DATABASE);
        });
    }

    fn scan(&mut self, out: &mut Vec<u8>, number: u64, length: u64) {
        self.message(out, |body| {
            body.append("find", Collection::Users.name());
            body.document("filter", |filter| {
                filter.document("_id", |bounds| bounds.append("$gte", user_key(number).as_str()));
            });
            body.document("sort", |sort| sort.append("_id", 1));
            body.append("limit", length as i32);
            body.append("singleBatch", true);
            body.append("$db", DATABASE);
        });
    }

    fn update(&mut self, out: &mut Vec<u8>, number: u64, field: usize, version: u64) {
        self.message(out, |body| {
            body.append("update", Collection::Users.name());
            body.array("updates", |updates| {
                updates.document(|update| {
                    update.document("q", |query| query.append("_id", user_key(number).as_str()));
                    update.document("u", |change| {
                        change.document("$set", |fields| write_update(field, version, &mut Fields(fields)));
                    });
                });
            });
            durably(body);
        });
    }

    fn insert(&mut self, out: &mut Vec<u8>, collection: Collection, numbers: std::ops::Range<u64>) {
        let orders = self.orders;
        self.insert_into(out, collection.name(), numbers, |number, document| {
            match collection {
                Collection::Orders => document.append("_id", number as i64),
                Collection::Users | Collection::Inserts => document.append("_id", user_key(number).as_str()),
            }
            write_fields(collection, number, orders, &mut Fields(document));
        });
    }

    /// Appends the same.
    pub fn insert_into(
        &mut self,
        out: &mut Vec<u8>,
        collection: &str,
        numbers: std::ops::Range<u64>,
        write: impl Fn(u64, &mut DocBuilder),
    ) {
        let start = begin(out);
        build(out, |body| {
            body.append("insert", collection);
            body.append("ordered", true);
            durably(body);
        });
        out.push(KIND_SEQUENCE);
        let size_at = out.len();
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(b"documents\0");
        for number in numbers {
            build(out, |document| write(number, document));
        }
        let size = (out.len() - size_at) as i32;
        if let Some(place) = out.get_mut(size_at..size_at + 4) {
            place.copy_from_slice(&size.to_le_bytes());
        }
        self.end(out, start);
    }

    fn aggregate(&mut self, out: &mut Vec<u8>, matching: impl FnOnce(&mut DocBuilder)) {
        self.message(out, |body| {
            body.append("aggregate", Collection::Orders.name());
            body.array("pipeline", |stages| {
                stages.document(|stage| stage.document("$match", matching));
                stages.document(|stage| {
                    stage.document("$group", |group| {
                        group.append("_id", "$category");
                        group.document("count", |count| count.append("$sum", 1));
                        group.document("total", |total| total.append("$sum", "$amount"));
                    });
                });
            });
            body.document("cursor", |_| ());
            body.append("$db", DATABASE);
        });
    }
}

impl Dialect for Mongo {
    fn greeting(&mut self) -> Vec<Chore> {
        vec![Chore::new(self.command("admin", |body| body.append("hello", 1)))]
    }

    fn first_words(&mut self) -> Vec<Chore> {
        vec![Chore::new(self.command("admin", |body| body.append("ping", 1)))]
    }

    fn request(&mut self, operation: &Operation, out: &mut Vec<u8>) {
        match *operation {
            Operation::Find { number } => {
                let key = user_key(number);
                self.find(out, Collection::Users, 1, |filter| filter.append("_id", key.as_str()));
            }
            Operation::Scan { number, length } => self.scan(out, number, length),
            Operation::Update { number, field, version } => self.update(out, number, field, version),
            Operation::Insert { collection, number } => self.insert(out, collection, number..number + 1),
            Operation::InsertMany { collection, from, count } | Operation::Load { collection, from, count } => {
                self.insert(out, collection, from..from + count);
            }
            Operation::Range { from, length } => {
                self.find(out, Collection::Orders, length, |filter| bounds(filter, from, length));
            }
            Operation::Tag { tag } => {
                let limit = 2 * data::orders_per_tag();
                self.find(out, Collection::Orders, limit, |filter| filter.append("tags", tag_name(tag).as_str()));
            }
            Operation::Aggregate { from, length } => self.aggregate(out, |filter| bounds(filter, from, length)),
            Operation::AggregateScan { amount } => self.aggregate(out, |filter| {
                filter.document("amount", |bounds| bounds.append("$gte", amount as i64));
            }),
        }
    }

    fn reply(&mut self, arrived: &[u8]) -> Result<Option<Answer>, Error> {
        let Some(header) = Header::read(arrived) else { return Ok(None) };
        let size_bytes = usize::try_from(header.length_bytes)?;
        if size_bytes <= BODY_START || size_bytes > limits::MESSAGE_SIZE_BYTES_MAX {
            return Err(format!("a reply of {size_bytes} bytes").into());
        }
        let Some(message) = arrived.get(..size_bytes) else { return Ok(None) };
        if header.op_code != OpCode::Msg || message.get(BODY_START - 1) != Some(&KIND_BODY) {
            return Err("a reply that is no plain OP_MSG".into());
        }
        let body = DocRef::trusted(message.get(BODY_START..).unwrap_or_default());
        Ok(Some(Answer { size_bytes, outcome: outcome(body) }))
    }

    fn reset(&mut self, collection: Collection) -> Vec<Chore> {
        let name = collection.name();
        let drop = self.command(DATABASE, |body| body.append("drop", name));
        let mut chores = vec![Chore { request: drop, may_fail: true }];
        chores.push(Chore::new(self.command(DATABASE, |body| body.append("create", name))));
        if collection == Collection::Orders {
            chores.push(Chore::new(self.command(DATABASE, |body| {
                body.append("createIndexes", name);
                body.array("indexes", |indexes| {
                    for field in ["number", "tags"] {
                        indexes.document(|index| {
                            index.document("key", |key| key.append(field, 1));
                            index.append("name", format!("{field}_1").as_str());
                        });
                    }
                });
            })));
        }
        chores
    }

    fn settle(&mut self) -> Vec<Chore> {
        let request = self.command("admin", |body| body.append("fsync", 1));
        vec![Chore { request, may_fail: true }]
    }
}

/// Room for header and flags, and the kind of the section that follows; returns where the message starts.
fn begin(out: &mut Vec<u8>) -> usize {
    let start = out.len();
    out.resize(start + BODY_START, 0);
    start
}

/// Builds a document at the end of the buffer.
fn build(out: &mut Vec<u8>, fill: impl FnOnce(&mut DocBuilder)) {
    let mut builder = DocBuilder::behind(std::mem::take(out));
    fill(&mut builder);
    *out = builder.finish_buffer();
}

/// Asks for a write to be durable.
pub fn write_concern(body: &mut DocBuilder) {
    body.document("writeConcern", |concern| {
        concern.append("w", "majority");
        concern.append("j", true);
    });
}

fn durably(body: &mut DocBuilder) {
    write_concern(body);
    body.append("$db", DATABASE);
}

fn bounds(filter: &mut DocBuilder, from: u64, length: u64) {
    filter.document("number", |bounds| {
        bounds.append("$gte", from as i64);
        bounds.append("$lt", (from + length) as i64);
    });
}

/// Documents found (in a batch of a cursor) or changed (`n`); for other commands zero.
fn outcome(body: DocRef<'_>) -> Result<u64, String> {
    if !body.get("ok").is_some_and(|ok| ok.is_true()) {
        return Err(error_text(body));
    }
    if let Some(Value::Array(errors)) = body.get("writeErrors") {
        let first = errors.get(0);
        return Err(if let Some(Value::Document(error)) = first { error_text(error) } else { "a write error".into() });
    }
    if let Some(Value::Document(error)) = body.get("writeConcernError") {
        return Err(error_text(error));
    }
    if let Some(Value::Document(cursor)) = body.get("cursor") {
        let batch = cursor.get("firstBatch").or_else(|| cursor.get("nextBatch"));
        let Some(Value::Array(batch)) = batch else { return Err("a cursor without a batch".to_owned()) };
        return Ok(batch.len() as u64);
    }
    match body.get("n") {
        Some(Value::Int32(changed)) => Ok(u64::try_from(changed).unwrap_or_default()),
        _ => Ok(0),
    }
}

fn error_text(error: DocRef<'_>) -> String {
    let text = |name: &str| error.get(name).and_then(|value| value.as_str().map(str::to_owned));
    let code = match error.get("code") {
        Some(Value::Int32(code)) => code,
        _ => 0,
    };
    let name = text("codeName").map_or(String::new(), |name| format!(" {name}"));
    format!("{} ({code}{name})", text("errmsg").unwrap_or_else(|| "no errmsg".to_owned()))
}

/// Fields of a document under construction.
pub struct Fields<'a>(&'a mut DocBuilder);

impl FieldSink for Fields<'_> {
    fn text(&mut self, name: &str, value: &str) {
        self.0.append(name, value);
    }

    fn whole(&mut self, name: &str, value: i64) {
        self.0.append(name, value);
    }

    fn list(&mut self, name: &str, values: &[String]) {
        self.0.array(name, |list| values.iter().for_each(|value| list.push(value.as_str())));
    }
}
