//! The id of a logical session.
//!
//! A client makes up a UUID; the server adds whose session it is. Internal transactions of a session run in sessions of
//! their own, its children: the same id with `txnUUID`, and with `txnNumber` too if they carry out a retryable write.

use crate::fields::{Fields, long, uuid, uuid_value};
use base64::prelude::{BASE64_STANDARD, Engine};
use pando_base::{Error, ErrorCode, Result, Uuid};
use pando_doc::{Doc, DocBuilder, DocRef, Value};
use sha2::{Digest, Sha256};
use std::fmt;
use std::hash::{Hash, Hasher};

/// SHA-256 of the user's name and database.
pub type UserDigest = [u8; 32];

/// SHA-256 of nothing: the user where nobody logs in.
pub const NO_USER: UserDigest = [
    0xe3, 0xb0, 0xc4, 0x42, 0x98, 0xfc, 0x1c, 0x14, 0x9a, 0xfb, 0xf4, 0xc8, 0x99, 0x6f, 0xb9, 0x24, 0x27, 0xae, 0x41,
    0xe4, 0x64, 0x9b, 0x93, 0x4c, 0xa4, 0x95, 0x99, 0x1b, 0x78, 0x52, 0xb8, 0x55,
];

/// The digest of a user, by name and database; no name at all is nobody.
///
/// It is MongoDB's, except for names with the very sign that stands between the two: `a@b` of `c`
/// is not `a` of `b@c`.
pub fn user_digest(user: &str, database: &str) -> UserDigest {
    match (user.is_empty() && database.is_empty(), user.contains('@') || database.contains('@')) {
        (true, _) => NO_USER,
        (false, false) => Sha256::digest(format!("{user}@{database}")).into(),
        (false, true) => Sha256::digest(format!("{}@{user}@{database}", user.len())).into(),
    }
}

/// Which session.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LogicalSessionId {
    /// The client's own choice.
    pub id: Uuid,
    /// Whose it is.
    pub user: UserDigest,
    /// The retryable write of the parent that this session works for.
    pub txn_number: Option<i64>,
    /// Tells the children of a session apart.
    pub txn_uuid: Option<Uuid>,
}

/// The hasher of maps of sessions, which every statement with a session asks. Clients choose the ids, so it has a secret.
pub(crate) type SessionHasher = foldhash::quality::RandomState;

impl Hash for LogicalSessionId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        // All that clients choose: whoever could vary something else would have sessions of one hash. The user is given.
        state.write_u128(u128::from_ne_bytes(*self.id.as_bytes()));
        if let Some(child) = &self.txn_uuid {
            state.write_u128(u128::from_ne_bytes(*child.as_bytes()));
            state.write_i64(self.txn_number.unwrap_or(-1));
        }
    }
}

impl LogicalSessionId {
    /// A session of a client.
    pub const fn new(id: Uuid, user: UserDigest) -> LogicalSessionId {
        LogicalSessionId { id, user, txn_number: None, txn_uuid: None }
    }

    /// Reads what a client sent. It is the session of this user; a client that says otherwise is refused.
    pub fn from_client(document: DocRef<'_>, user: UserDigest) -> Result<LogicalSessionId> {
        if let Some(id) = only_id(document) {
            return Ok(LogicalSessionId::new(id, user));
        }
        let fields = Fields::of("OperationSessionInfo.lsid", document);
        let [id, uid, txn_number, txn_uuid] = fields.all(&["id", "uid", "txnNumber", "txnUUID"])?;
        let session = LogicalSessionId {
            id: fields.read("id", id, uuid)?.ok_or_else(|| fields.missing("id"))?,
            user: fields.read("uid", uid, digest_in)?.unwrap_or(user),
            txn_number: fields.read("txnNumber", txn_number, long)?,
            txn_uuid: fields.read("txnUUID", txn_uuid, uuid)?,
        };
        if session.user != user {
            return Err(Error::new(ErrorCode::Unauthorized, "Unauthorized to set user digest in LogicalSessionId"));
        }
        if session.txn_number.is_some() && session.txn_uuid.is_none() {
            return Err(Error::new(
                ErrorCode::InvalidOptions,
                "The txnNumber field in lsid requires the txnUUID field to also be specified",
            ));
        }
        Ok(session)
    }

    /// Reads what the server has written: in the oplog, in `config.transactions`.
    pub fn parse(document: DocRef<'_>) -> Result<LogicalSessionId> {
        let fields = Fields::of("LogicalSessionId", document);
        Ok(LogicalSessionId {
            id: fields.required("id", uuid)?,
            user: fields.required("uid", digest_in)?,
            txn_number: fields.optional("txnNumber", long)?,
            txn_uuid: fields.optional("txnUUID", uuid)?,
        })
    }

    /// As documents hold it.
    pub fn to_doc(self) -> Doc {
        let mut builder = DocBuilder::with_capacity(96);
        self.append_to(&mut builder);
        builder.finish()
    }

    /// Writes its fields.
    pub fn append_to(self, builder: &mut DocBuilder) {
        builder.append("id", uuid_value(&self.id));
        builder.append("uid", Value::Binary { subtype: 0, bytes: &self.user });
        builder.append_some("txnNumber", self.txn_number);
        builder.append_some("txnUUID", self.txn_uuid.as_ref().map(uuid_value));
    }

    /// Is it a session of the server's own, for an internal transaction of another?
    pub const fn is_child(self) -> bool {
        self.txn_uuid.is_some()
    }

    /// The session that the client knows: of a child its parent, else itself.
    pub const fn parent(self) -> LogicalSessionId {
        LogicalSessionId::new(self.id, self.user)
    }
}

/// The id, if it is all that the document has: drivers send nothing else.
fn only_id(document: DocRef<'_>) -> Option<Uuid> {
    /// Around the bytes of the UUID: the lengths, the type, the name, the subtype, the zero.
    const AROUND_BYTES: usize = 14;
    if document.size_bytes() != AROUND_BYTES + size_of::<Uuid>() {
        return None;
    }
    let first = document.first().filter(|first| first.name == "id")?;
    uuid(first.value).ok()
}

fn digest_in(value: Value<'_>) -> std::result::Result<UserDigest, &'static str> {
    match value {
        Value::Binary { bytes, .. } => bytes.try_into().map_err(|_| "binData"),
        _ => Err("binData"),
    }
}

impl fmt::Display for LogicalSessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} - {} - ", self.id, BASE64_STANDARD.encode(self.user))?;
        self.txn_number.map_or(Ok(()), |number| write!(f, "{number}"))?;
        f.write_str(" - ")?;
        self.txn_uuid.map_or(Ok(()), |uuid| write!(f, "{uuid}"))
    }
}

impl fmt::Debug for LogicalSessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LogicalSessionId({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    fn uuid_of(byte: u8) -> Uuid {
        Uuid::from_random([byte; 16])
    }

    #[test]
    fn s16_ids_round_trip_and_children_know_their_parent() {
        let parent = LogicalSessionId::new(uuid_of(7), NO_USER);
        let child = LogicalSessionId { txn_number: Some(5), txn_uuid: Some(uuid_of(9)), ..parent };
        for session in [parent, child] {
            assert_eq!(LogicalSessionId::parse(session.to_doc().view()), Ok(session));
            assert_eq!(LogicalSessionId::from_client(session.to_doc().view(), NO_USER), Ok(session));
            assert_eq!(session.parent(), parent);
        }
        assert!(child.is_child() && !parent.is_child());
        let names: Vec<String> = child.to_doc().elements().map(|element| element.name.to_string()).collect();
        assert_eq!(names, ["id", "uid", "txnNumber", "txnUUID"]);
    }

    #[test]
    fn s16_users_are_known_by_their_digests() {
        assert_eq!(user_digest("", ""), NO_USER);
        assert_eq!(Sha256::digest(b"").as_slice(), NO_USER);
        assert_ne!(user_digest("a@b", "c"), user_digest("a", "b@c"));
        assert_ne!(user_digest("a", "b@c"), user_digest("1", "a@b@c"));
        assert_eq!(user_digest("a", "b"), <[u8; 32]>::from(Sha256::digest(b"a@b")));
    }

    #[test]
    fn s16_what_clients_send_is_checked() {
        let id = uuid_of(1);
        let id = uuid_value(&id);
        let cases = [
            (doc! {}, 40414),
            (doc! { "id": "text" }, 14),
            (doc! { "id": id, "more": 1 }, 40415),
            (doc! { "id": id, "uid": Value::Binary { subtype: 0, bytes: &[1; 32] } }, 13),
            (doc! { "id": id, "txnNumber": 4_i64 }, 72),
        ];
        for (document, code) in cases {
            let error = LogicalSessionId::from_client(document.view(), NO_USER).unwrap_err();
            assert_eq!(error.code().number(), code, "{error}");
        }
        assert!(LogicalSessionId::from_client(doc! { "id": id }.view(), NO_USER).is_ok());
    }
}
