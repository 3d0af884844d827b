//! Sorting: everything goes in before anything comes out. With a limit only so many are kept. What does not fit into memory goes to
//! disk, if that is allowed.

use super::{
    GeoNearMetadata, IndexKey, KeyLayout, Member, Metadata, SortKeyGenerator, Stage, StageNode, Step, one_child,
};
use crate::memory::Held;
use crate::request::SortPattern;
use crate::spill::{StageResources, read_record_id, take, write_record_id};
use pando_base::{RecordId, Result};
use pando_doc::{Doc, DocBuilder, doc};
use pando_operation::Operation;
use pando_sorter::{Sorted, Sorter, Spilled};
use pando_storage::SnapshotId;
use std::sync::Arc;

/// A member on its way through the sorter. Of its index key only the bytes go along: how they are read is known to the stage.
struct SortedMember {
    record_id: Option<RecordId>,
    document: Option<Doc>,
    /// Lost on disk; so what has to be as it was when it was found is read again.
    snapshot: Option<SnapshotId>,
    /// The number of the layout, the length of the key, the bytes.
    key: Option<(u32, u32, Box<[u8]>)>,
    metadata: Metadata,
}

impl Spilled for SortedMember {
    fn memory_bytes(&self) -> usize {
        let document = self.document.as_ref().map_or(0, Doc::size_bytes);
        document + self.key.as_ref().map_or(0, |key| key.2.len()) + size_of::<SortedMember>()
    }

    fn write(&self, out: &mut Vec<u8>) {
        write_record_id(self.record_id.as_ref(), out);
        out.push(u8::from(self.metadata.text_score.is_some()));
        out.extend_from_slice(&self.metadata.text_score.unwrap_or(0.0).to_le_bytes());
        let near = self.metadata.geo_near.as_ref();
        let near = near.map(|near| doc! { "distance": (near.distance), "point": (near.point.view()) });
        out.extend_from_slice(&(near.as_ref().map_or(0, Doc::size_bytes) as u32).to_le_bytes());
        out.extend_from_slice(near.as_ref().map_or(&[], |near| near.bytes()));
        match &self.key {
            None => out.push(0),
            Some((layout, key_length, bytes)) => {
                out.push(1);
                for number in [*layout, *key_length, bytes.len() as u32] {
                    out.extend_from_slice(&number.to_le_bytes());
                }
                out.extend_from_slice(bytes);
            }
        }
        if let Some(document) = &self.document {
            out.extend_from_slice(document.bytes());
        }
    }

    fn read(mut bytes: &[u8]) -> Option<SortedMember> {
        let rest = &mut bytes;
        let record_id = read_record_id(rest)?;
        let [has_score] = take(rest)?;
        let score = f64::from_le_bytes(take(rest)?);
        let near_length = u32::from_le_bytes(take(rest)?) as usize;
        let (near, behind) = rest.split_at_checked(near_length)?;
        *rest = behind;
        let metadata = Metadata { text_score: (has_score == 1).then_some(score), geo_near: read_near(near) };
        let [has_key] = take(rest)?;
        let key = if has_key == 1 {
            let mut number = || take(rest).map(u32::from_le_bytes);
            let (layout, key_length, length) = (number()?, number()?, number()?);
            let (bytes, behind) = rest.split_at_checked(length as usize)?;
            *rest = behind;
            Some((layout, key_length, Box::from(bytes)))
        } else {
            None
        };
        let document = (!rest.is_empty()).then(|| Doc::trusted(rest.to_vec()));
        Some(SortedMember { record_id, document, snapshot: None, key, metadata })
    }
}

/// What a search by distance knew, if it was one.
fn read_near(bytes: &[u8]) -> Option<Arc<GeoNearMetadata>> {
    let near = (!bytes.is_empty()).then(|| Doc::trusted(bytes.to_vec()))?;
    let (distance, point) = (near.get("distance")?.to_double()?, near.get("point")?.to_owned());
    Some(Arc::new(GeoNearMetadata { distance, point }))
}

/// Sorts.
pub struct SortStage {
    child: StageNode,
    pattern: SortPattern,
    generator: SortKeyGenerator,
    limit: Option<u64>,
    /// Documents are sorted, without keys or what else is known of them: MongoDB has an algorithm of its own for that.
    is_of_documents: bool,
    resources: StageResources,
    sorter: Sorter<SortedMember>,
    /// How the index keys of members are read; mostly there is one.
    layouts: Vec<Arc<KeyLayout>>,
    held: Held,
    outgoing: Option<Sorted<SortedMember>>,
}

impl SortStage {
    /// What the child finds, in order.
    pub fn new(
        child: StageNode,
        pattern: SortPattern,
        generator: SortKeyGenerator,
        limit: Option<u64>,
        resources: StageResources,
    ) -> SortStage {
        let (sorter, held) = (resources.sorter(limit), resources.account.held());
        let (layouts, outgoing) = (Vec::new(), None);
        SortStage {
            child,
            pattern,
            generator,
            limit,
            is_of_documents: true,
            resources,
            sorter,
            layouts,
            held,
            outgoing,
        }
    }

    /// The same, but not of documents alone.
    pub fn of_more_than_documents(mut self) -> SortStage {
        self.is_of_documents = false;
        self
    }

    fn take_in(&mut self, member: Member) -> Result<()> {
        let sort_key = self.generator.of_member(&member)?;
        let Member { record_id, document, snapshot, key, metadata } = member;
        let key = key.map(|key| {
            let (layout, key_length, bytes) = key.into_parts();
            (self.number_of(layout), key_length as u32, bytes)
        });
        self.sorter.add(&sort_key, SortedMember { record_id, document, snapshot, key, metadata })?;
        self.held.set(self.sorter.memory_bytes())
    }

    fn number_of(&mut self, layout: Arc<KeyLayout>) -> u32 {
        let place = self.layouts.iter().position(|known| Arc::ptr_eq(known, &layout)).unwrap_or_else(|| {
            self.layouts.push(layout);
            self.layouts.len() - 1
        });
        place as u32
    }

    fn member_of(&self, sorted: SortedMember) -> Member {
        let SortedMember { record_id, document, snapshot, key, metadata } = sorted;
        let key = key.and_then(|(layout, key_length, bytes)| {
            let layout = self.layouts.get(layout as usize)?;
            Some(IndexKey::of_parts(layout, key_length as usize, bytes))
        });
        Member { record_id, document, snapshot, key, metadata }
    }

    fn turn_around(&mut self, operation: &Operation) -> Result<()> {
        self.outgoing = Some(self.sorter.finish()?);
        self.resources.counters.sorted(operation, &self.sorter.statistics());
        Ok(())
    }
}

impl Stage for SortStage {
    fn work(&mut self, operation: &mut Operation) -> Result<Step> {
        if let Some(outgoing) = &mut self.outgoing {
            let next = outgoing.next_entry()?.map(|(_, sorted)| sorted);
            return Ok(next.map_or(Step::Finished, |sorted| Step::Advanced(self.member_of(sorted))));
        }
        match self.child.work(operation)? {
            Step::Advanced(member) => self.take_in(member)?,
            Step::NeedTime => {}
            Step::Finished => self.turn_around(operation)?,
        }
        Ok(Step::NeedTime)
    }

    fn name(&self) -> &'static str {
        "SORT"
    }

    one_child!();

    fn describe(&self, out: &mut DocBuilder) {
        out.append("sortPattern", self.pattern.to_doc());
        out.append("memLimit", i64::try_from(self.resources.sort_memory_bytes_max).unwrap_or(i64::MAX) as i32);
        if let Some(limit) = self.limit {
            out.append("limitAmount", i64::try_from(limit).unwrap_or(i64::MAX));
        }
        out.append("type", if self.is_of_documents { "simple" } else { "default" });
    }

    fn describe_run(&self, out: &mut DocBuilder) {
        let statistics = self.sorter.statistics();
        out.append("totalDataSizeSorted", statistics.data_bytes as i64);
        out.append("usedDisk", statistics.spills > 0);
        out.append("spills", statistics.spills as i64);
        out.append("spilledDataStorageSize", statistics.spilled_storage_bytes as i64);
    }

    fn used_disk(&self) -> bool {
        self.sorter.statistics().spills > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x14_members_come_back_from_disk_as_they_were() {
        let ids = [None, Some(RecordId::Long(-7)), Some(RecordId::Bytes(Box::from([1, 2, 3])))];
        let documents = [None, Some(doc! { "a": 1 })];
        let keys = [None, Some((2, 1, Box::from([9_u8, 8])))];
        for (record_id, document, key) in ids.iter().flat_map(|id| {
            documents.iter().flat_map(|document| keys.clone().map(|key| (id.clone(), document.clone(), key)))
        }) {
            let near = GeoNearMetadata { distance: 2.5, point: pando_doc::OwnedValue::Int32(1) };
            let metadata = Metadata { text_score: Some(1.5), geo_near: key.as_ref().map(|_| Arc::new(near)) };
            let member = SortedMember { record_id, document, snapshot: None, key, metadata };
            let mut bytes = Vec::new();
            member.write(&mut bytes);
            let read = SortedMember::read(&bytes).unwrap();
            assert_eq!(
                (&read.record_id, &read.document, &read.key, read.metadata),
                (&member.record_id, &member.document, &member.key, member.metadata)
            );
        }
        assert!(SortedMember::read(&[1, 2]).is_none());
    }
}
