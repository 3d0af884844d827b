//! The sessions that may have carried out statements of one retryable write: the client's own, and children of it that run
//! transactions for that write.
//!
//! Whichever of them has carried a statement out, none of the others does it again. While one of them is in the middle of it, the
//! others wait for its end.

use super::{ActiveSession, SessionCatalog};
use crate::history::History;
use crate::id::LogicalSessionId;
use crate::table::SessionTable;
use pando_base::Result;
use pando_operation::Operation;
use std::sync::Arc;

/// The others who may have carried out statements of a write.
pub enum Family {
    /// They, in a state that is known.
    Settled(Vec<Arc<ActiveSession>>),
    /// This one is in the middle of it.
    Busy(Arc<ActiveSession>),
}

impl SessionCatalog {
    /// The others who may have carried out statements of this write. The session is checked out by the caller, and so are its
    /// relatives. An error if the write is an old one.
    pub fn family(
        &self,
        operation: &mut Operation,
        table: &dyn SessionTable,
        history: &History,
        session: LogicalSessionId,
        write_number: i64,
    ) -> Result<Family> {
        let entry = self.entry(session.parent());
        if !entry.knows_children() {
            let children = table.load_children(operation, &session.parent())?;
            // What they did is read when it matters.
            children.into_iter().filter(|child| child.txn_number.is_some()).for_each(|child| drop(entry.active(child)));
            entry.set_knows_children();
        }
        if !session.is_child() && !entry.has_children() {
            return Ok(Family::Settled(Vec::new()));
        }
        let members = entry.members();
        let parent = entry.active(session.parent());
        self.advance(operation, table, history, &parent, &members, write_number)?;
        let mut relatives: Vec<Arc<ActiveSession>> = vec![parent];
        relatives.extend(members.into_iter().filter(|active| active.session.txn_number == Some(write_number)));
        relatives.retain(|active| active.session != session);
        for active in &relatives {
            refresh(operation, table, history, active)?;
        }
        let is_busy = |active: &&Arc<ActiveSession>| active.session.is_child() && is_open(active);
        let busy = relatives.iter().find(is_busy).cloned();
        Ok(busy.map_or(Family::Settled(relatives), Family::Busy))
    }

    /// The newest write that the client has sent is that of its session and of all children: older ones are refused. Children of
    /// older writes are not asked for again.
    fn advance(
        &self,
        operation: &mut Operation,
        table: &dyn SessionTable,
        history: &History,
        parent: &Arc<ActiveSession>,
        members: &[Arc<ActiveSession>],
        write_number: i64,
    ) -> Result<()> {
        refresh(operation, table, history, parent)?;
        let newest = members.iter().filter_map(|active| active.session.txn_number).max();
        let mut participant = parent.participant();
        let number = newest.map_or(write_number, |newest| newest.max(write_number));
        if number > participant.txn_number() {
            // A transaction of the client's own is left behind.
            drop(participant);
            parent.abort_open();
            participant = parent.participant();
            participant.begin_or_continue(number)?;
        }
        participant.begin_or_continue(write_number)?;
        drop(participant);
        let is_past = |active: &ActiveSession| active.session.txn_number.is_some_and(|number| number < write_number);
        self.entry(parent.session).forget(|active| is_past(active) && !is_open(active));
        Ok(())
    }
}

fn is_open(active: &ActiveSession) -> bool {
    active.participant().transaction().is_open()
}

fn refresh(
    operation: &mut Operation,
    table: &dyn SessionTable,
    history: &History,
    active: &ActiveSession,
) -> Result<()> {
    if !active.participant().is_valid() {
        let record = table.load(operation, &active.session)?;
        active.participant().refresh(record, history)?;
    }
    Ok(())
}
