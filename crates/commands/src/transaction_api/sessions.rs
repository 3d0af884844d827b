//! The sessions that transactions of the server's own run in.
//!
//! For a client without a session one of the server's own; for a client with one a child of it, which is told apart by a UUID.
//! Both are kept and used again, each time with the next number, so that there are no more of them than run at once. A
//! retryable write has a child that belongs to that one write, and is used for nothing else.

use crate::Invocation;
use pando_base::Uuid;
use pando_doc::{Doc, DocBuilder, DocRef, Value};
use parking_lot::Mutex;
use std::collections::HashMap;

/// So many idle sessions are kept for each client session, and for all that have none.
const IDLE_MAX: usize = 64;
/// For so many client sessions.
const PARENTS_MAX: usize = 1024;
const UUID_SUBTYPE: u8 = 4;

/// Sessions that nobody uses just now, by the session of the client.
#[derive(Default)]
pub(super) struct InternalSessions {
    idle: Mutex<HashMap<Option<Uuid>, Vec<InternalSession>>>,
}

/// A session for one transaction after the other.
#[derive(Clone, Debug)]
pub(super) struct InternalSession {
    /// As requests have it.
    pub(super) document: Doc,
    /// The number of the newest transaction.
    pub(super) number: i64,
    parent: Option<Uuid>,
    /// It belongs to one retryable write.
    is_for_retryable_write: bool,
}

impl InternalSessions {
    /// A session for a transaction of this command.
    pub(super) fn take(&self, invocation: &Invocation) -> InternalSession {
        let generic = &invocation.generic;
        let parent = generic.session.as_ref().map(|session| session.id);
        let retryable = generic.transaction_number;
        let idle = match retryable {
            None => self.idle.lock().get_mut(&parent).and_then(Vec::pop),
            Some(_) => None,
        };
        if let Some(mut session) = idle {
            session.number += 1;
            return session;
        }
        let fresh = Uuid::from_random(invocation.node.env.random().id_bytes());
        let document = match &generic.session {
            Some(session) => child(session.document.view(), retryable, &fresh),
            None => own(&fresh),
        };
        InternalSession { document, number: 0, parent, is_for_retryable_write: retryable.is_some() }
    }

    /// Keeps a session for the next.
    pub(super) fn give_back(&self, session: InternalSession) {
        if session.is_for_retryable_write {
            return;
        }
        let mut idle = self.idle.lock();
        if idle.len() >= PARENTS_MAX && !idle.contains_key(&session.parent) {
            idle.clear();
        }
        let sessions = idle.entry(session.parent).or_default();
        if sessions.len() < IDLE_MAX {
            sessions.push(session);
        }
    }
}

fn own(id: &Uuid) -> Doc {
    let mut document = DocBuilder::new();
    document.append("id", Value::Binary { subtype: UUID_SUBTYPE, bytes: id.as_bytes() });
    document.finish()
}

fn child(parent: DocRef<'_>, retryable: Option<i64>, id: &Uuid) -> Doc {
    let mut document = DocBuilder::new();
    document.append_all(parent);
    document.append_some("txnNumber", retryable);
    document.append("txnUUID", Value::Binary { subtype: UUID_SUBTYPE, bytes: id.as_bytes() });
    document.finish()
}
