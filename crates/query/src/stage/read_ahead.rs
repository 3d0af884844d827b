//! Records that an index found and whose documents are got together.
//!
//! An index often finds records that lie beside each other, in another order: those of one day, of one import. Where everything that is found is
//! wanted, a fetch takes many records from its child at once, and documents that are neighbours are read by one walk over the
//! collection. What has no neighbours is got by one call that shares the waits for memory, in the order of the collection too: the
//! more records there are, the more of what leads to them they have in common. Where a limit may end the query early everything
//! is got one by one.

use super::Member;
use pando_base::{RecordId, Result};
use pando_catalog::Collection;
use pando_doc::Doc;
use pando_operation::Operation;
use pando_storage::{Direction, RecordCursor, SnapshotId};
use std::collections::VecDeque;

/// Records that are taken from the child at once.
pub(super) const RECORDS_AHEAD: usize = 512;
/// Records this close are walked to; over what lies further away the cursor would seek.
const NEIGHBOURS_DISTANCE_MAX: u64 = 4;
/// A walk begins with a seek: it has to be this long to pay.
const WALK_RECORDS_MIN: usize = 4;
/// Documents that are held at most.
const AHEAD_BYTES_MAX: usize = 4 * 1024 * 1024;

/// A record that was taken.
pub(super) enum Taken {
    /// Its document was not looked for.
    Unread(Member),
    /// Its document, or none if it is gone.
    Read(Member, Option<Doc>),
}

impl Taken {
    /// Its document was looked for.
    fn read(&mut self, document: Option<Doc>) {
        if let Taken::Unread(member) = self {
            *self = Taken::Read(std::mem::take(member), document);
        }
    }
}

/// Records that were taken from the child, in its order.
#[derive(Default)]
pub(super) struct ReadAhead {
    taken: VecDeque<Taken>,
    /// Record ids and places in `taken`, in the order of the collection.
    order: Vec<(i64, usize)>,
    /// What documents were read under.
    snapshot: Option<SnapshotId>,
}

impl ReadAhead {
    pub(super) fn is_empty(&self) -> bool {
        self.taken.is_empty()
    }

    /// What documents were read under.
    pub(super) fn snapshot(&self) -> Option<SnapshotId> {
        self.snapshot
    }

    pub(super) fn len(&self) -> usize {
        self.taken.len()
    }

    pub(super) fn push(&mut self, member: Member) {
        self.taken.push_back(Taken::Unread(member));
    }

    /// Puts a record back that could not be got.
    pub(super) fn put_back(&mut self, member: Member) {
        self.taken.push_front(Taken::Unread(member));
    }

    pub(super) fn pop(&mut self) -> Option<Taken> {
        self.taken.pop_front()
    }

    /// Reads the documents, as many as there is room for. After an error some are unread, and none is lost.
    pub(super) fn read(&mut self, operation: &mut Operation, collection: &Collection) -> Result<()> {
        let mut order = std::mem::take(&mut self.order);
        order.clear();
        order.extend(self.taken.iter().enumerate().filter_map(|(place, taken)| match taken {
            Taken::Unread(member) if member.document.is_none() => Some((member.record_id.as_ref()?.as_long()?, place)),
            _ => None,
        }));
        order.sort_unstable();
        self.snapshot = operation.recovery_unit.snapshot_id();
        let mut room_bytes = AHEAD_BYTES_MAX;
        let are_neighbours = |one: &(i64, usize), two: &(i64, usize)| two.0.abs_diff(one.0) <= NEIGHBOURS_DISTANCE_MAX;
        let outcome = order
            .chunk_by(are_neighbours)
            .filter(|neighbours| neighbours.len() >= WALK_RECORDS_MIN)
            .try_for_each(|neighbours| self.walk(operation, collection, neighbours, &mut room_bytes));
        let outcome = outcome.and_then(|()| self.read_scattered(operation, collection, &order, room_bytes));
        self.order = order;
        outcome
    }

    /// Reads what has no neighbours.
    fn read_scattered(
        &mut self,
        operation: &mut Operation,
        collection: &Collection,
        order: &[(i64, usize)],
        room_bytes: usize,
    ) -> Result<()> {
        let is_unread = |place: &usize| matches!(self.taken.get(*place), Some(Taken::Unread(_)));
        let unread = order.iter().filter(|(_, place)| is_unread(place));
        let (ids, places): (Vec<RecordId>, Vec<usize>) =
            unread.map(|(id, place)| (RecordId::Long(*id), *place)).unzip();
        if ids.len() < 2 {
            return Ok(());
        }
        let documents = collection.records.get_each(&mut operation.recovery_unit, &ids, room_bytes)?;
        for (place, document) in places.into_iter().zip(documents) {
            if let Some(taken) = self.taken.get_mut(place) {
                taken.read(document.map(Doc::trusted));
            }
        }
        Ok(())
    }

    fn walk(
        &mut self,
        operation: &mut Operation,
        collection: &Collection,
        neighbours: &[(i64, usize)],
        room_bytes: &mut usize,
    ) -> Result<()> {
        let Some((first, _)) = neighbours.first().filter(|_| *room_bytes > 0) else { return Ok(()) };
        let unit = &mut operation.recovery_unit;
        let mut cursor: RecordCursor = collection.records.cursor(Direction::Forward);
        let mut at = cursor.seek(unit, &RecordId::Long(*first))?.and_then(|record| record.id.as_long());
        for (id, place) in neighbours {
            while at.is_some_and(|at| at < *id) {
                at = cursor.next(unit)?.and_then(|record| record.id.as_long());
            }
            let document = if at == Some(*id) { cursor.value_bytes().map(Doc::trusted) } else { None };
            *room_bytes = room_bytes.saturating_sub(document.as_ref().map_or(0, Doc::size_bytes));
            if let Some(taken) = self.taken.get_mut(*place) {
                taken.read(document);
            }
            if *room_bytes == 0 {
                break;
            }
        }
        Ok(())
    }
}
