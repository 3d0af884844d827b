//! `$_internalApplyOplogUpdate`: changes each document as an entry of the oplog says.

use super::transform::transformed;
use crate::pipeline::{DocumentSource, SharedStage, StageSpec};
use pando_base::Result;
use pando_doc::{Doc, DocRef, Element, doc};
use pando_expr::update::OplogUpdates;
use pando_oplog::UpdateChange;
use std::sync::Arc;

/// How updates by pipeline read and apply such changes.
pub(crate) const OPLOG_UPDATES: OplogUpdates = OplogUpdates { check, apply };

fn check(update: DocRef<'_>) -> Result<()> {
    UpdateChange::parse(update).map(|_| ())
}

fn apply(document: DocRef<'_>, update: DocRef<'_>) -> Result<Doc> {
    UpdateChange::parse(update)?.apply(document)
}

#[derive(Debug)]
struct ApplyOplogUpdateSpec {
    update: Arc<Doc>,
}

/// Reads it.
pub(in crate::pipeline) fn parse(element: Element<'_>) -> Result<SharedStage> {
    let update = pando_expr::update::parse_oplog_update(element)?;
    check(update)?;
    Ok(Arc::new(ApplyOplogUpdateSpec { update: Arc::new(update.to_doc()) }))
}

impl StageSpec for ApplyOplogUpdateSpec {
    fn name(&self) -> &'static str {
        "$_internalApplyOplogUpdate"
    }

    fn start(&self, source: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        let update = Arc::clone(&self.update);
        Ok(transformed(source, move |document| apply(document.view(), update.view()).map(Some)))
    }

    fn to_doc(&self) -> Doc {
        doc! { "$_internalApplyOplogUpdate": { "oplogUpdate": &*self.update } }
    }

    fn keeps_count(&self) -> bool {
        true
    }
}
