//! The documents before the changes of a group of writes, until the group has its entry.

use super::OplogWriter;
use super::batch::Batch;
use pando_base::{Result, Uuid};
use pando_doc::{Doc, DocRef};
use pando_operation::Operation;
use pando_oplog::OpTime;
use pando_oplog::observer::Collection;
use pando_session::PreImage;
use std::ops::Range;

/// They, each with the place of its operation in the group and its collection.
#[derive(Default)]
pub(super) struct GatheredImages(Vec<(usize, Uuid, Doc)>);

impl GatheredImages {
    /// Adds the document before the group's newest operation, if the collection's are kept.
    pub(super) fn add(operation: &mut Operation, collection: &Collection<'_>, before: Option<DocRef<'_>>) {
        let Some(before) = before else { return };
        let Some(place) = operation.extensions.get::<Batch>().and_then(|batch| batch.0.len().checked_sub(1)) else {
            return;
        };
        let gathered = operation.extensions.get_or_default::<GatheredImages>();
        gathered.0.push((place, collection.uuid, before.to_doc()));
    }

    /// Takes them from the operation.
    pub(super) fn take(operation: &mut Operation) -> GatheredImages {
        operation.extensions.remove::<GatheredImages>().unwrap_or_default()
    }
}

impl OplogWriter {
    /// Keeps those of the operations that one entry has.
    pub(super) fn keep_gathered(
        &self,
        operation: &mut Operation,
        gathered: &GatheredImages,
        places: Range<usize>,
        slot: OpTime,
        wall_ms: i64,
    ) -> Result<()> {
        let own = gathered.0.iter().filter(|(place, ..)| places.contains(place));
        for (place, collection, document) in own {
            let image = PreImage {
                collection: *collection,
                time: slot.timestamp,
                apply_ops_index: i64::try_from(place.saturating_sub(places.start)).unwrap_or(i64::MAX),
                wall_ms,
                document: document.view(),
            };
            self.table.store_pre_image(operation, &image)?;
        }
        Ok(())
    }
}
