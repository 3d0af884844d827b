//! OP_QUERY, which old and new drivers use for the first hello of a connection.
//!
//! A query on `<database>.$cmd` is a command. A handful are served, all others are refused with 352; queries on
//! collections are gone and get a failure with the flag that old drivers look at.

use crate::header::{Header, OpCode};
use crate::limits::HEADER_SIZE_BYTES;
use crate::op_msg::limits;
use crate::reader::Reader;
use crate::refusal::{Decoded, Reaction, Refusal};
use bstr::{BStr, ByteSlice};
use pando_base::{Error, ErrorCode, Result};
use pando_doc::DocRef;
use std::ops::Range;

/// The commands that OP_QUERY may carry.
const SERVED: &[&str] = &[
    "hello",
    "isMaster",
    "ismaster",
    "_isSelf",
    "authenticate",
    "buildinfo",
    "buildInfo",
    "saslContinue",
    "saslStart",
];

const UPGRADE: &str = "The client driver may require an upgrade. For more details see \
                       https://dochub.mongodb.org/core/legacy-opcode-removal";

/// The flag that asks for a stream of replies; commands never had it.
const FLAG_EXHAUST: i32 = 1 << 6;
/// The flag that allows a secondary to answer.
const FLAG_SECONDARY_OK: i32 = 1 << 2;

const COMMAND_SUFFIX: &str = ".$cmd";

/// Where the parts of an OP_QUERY are in its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Query {
    pub(crate) database: Range<usize>,
    pub(crate) body: Range<usize>,
    pub(crate) secondary_ok: bool,
}

/// Finds the command in a whole message, header included.
pub(crate) fn decode(header: Header, message: &[u8]) -> Decoded<Query> {
    let legacy = |error| Refusal::new(error, Reaction::ReplyLegacy, header);
    let mut reader = Reader::new(message.get(HEADER_SIZE_BYTES..).unwrap_or_default());
    let flags = reader.int32().ok_or_else(not_enough).map_err(legacy)?;
    let namespace = reader.text().ok_or_else(|| Error::location(18633, "Failed to parse ns string")).map_err(legacy)?;
    let Some(database) = namespace.strip_suffix(COMMAND_SUFFIX.as_bytes()) else {
        return Err(gone(header, "OP_QUERY"));
    };
    let start = HEADER_SIZE_BYTES + size_of::<i32>();
    let database = start..start + database.len();
    let counts = (|| Some((reader.int32()?, reader.int32()?)))();
    let (_, to_return) = counts.ok_or_else(not_enough).map_err(legacy)?;
    let body_start = message.len() - reader.rest().len();
    let (body, _) = DocRef::parse_prefix(reader.rest(), &limits()).map_err(legacy)?;
    judge(flags, namespace, to_return, body).map_err(legacy)?;
    let body = body_start..body_start + body.size_bytes();
    Ok(Query { database, body, secondary_ok: flags & FLAG_SECONDARY_OK != 0 })
}

/// May this query be served?
fn judge(flags: i32, namespace: &BStr, to_return: i32, body: DocRef<'_>) -> Result<()> {
    if flags & FLAG_EXHAUST != 0 {
        let reason = format!("The 'exhaust' OP_QUERY flag is invalid for commands: {namespace}");
        return Err(Error::location(18527, reason));
    }
    if to_return != 1 && to_return != -1 {
        let reason = format!("Bad numberToReturn ({to_return}) for $cmd type ns - can only be 1 or -1");
        return Err(Error::location(16979, reason));
    }
    if body.contains("$db") {
        return Err(Error::location(40621, "$db is not allowed in OP_QUERY requests"));
    }
    let name = body.first().map_or(b"".as_bstr(), |element| element.name);
    if SERVED.iter().any(|served| name == served) {
        return Ok(());
    }
    let reason = format!("Unsupported OP_QUERY command: {name}. {UPGRADE}");
    Err(Error::new(ErrorCode::UnsupportedOpQueryCommand, reason))
}

/// What MongoDB does with kinds of message that it no longer serves, or never did.
pub(crate) fn refuse(header: Header) -> Refusal {
    let closing = |number, name: &str| {
        Refusal::new(Error::location(number, format!("{name} is no longer supported")), Reaction::Close, header)
    };
    match header.op_code {
        OpCode::Update => closing(5745701, "OP_UPDATE"),
        OpCode::Insert => closing(5745702, "OP_INSERT"),
        OpCode::Delete => closing(5745700, "OP_DELETE"),
        OpCode::KillCursors => closing(5745703, "OP_KILL_CURSORS"),
        OpCode::Query => gone(header, "OP_QUERY"),
        OpCode::GetMore => gone(header, "OP_GET_MORE"),
        OpCode::Reply | OpCode::Compressed | OpCode::Msg | OpCode::Unknown(_) => {
            let reason = format!("Operation is not supported: {}", header.op_code.number());
            Refusal::new(Error::new(ErrorCode::ProtocolError, reason), Reaction::Ignore, header)
        }
    }
}

/// A legacy read: the answer has the failure flag.
fn gone(header: Header, name: &str) -> Refusal {
    let reason = format!("{name} is no longer supported. {UPGRADE}");
    Refusal::new(Error::location(5739101, reason), Reaction::ReplyLegacyFailure, header)
}

fn not_enough() -> Error {
    Error::location(18634, "Not enough data to read")
}
