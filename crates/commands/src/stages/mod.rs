//! Stages whose documents come from the node itself: its catalog, its sizes, its operations.
//!
//! The query engine does not know them. [`NodeStages`] reads them for it; each is a file here that checks where it may stand
//! and gives a function that makes the documents. They are made when the pipeline is first pulled, not when it is read, so
//! that `explain` makes none.

mod backup_cursor;
mod coll_stats;
mod current_op;
mod index_stats;
mod inner_sessions;
mod list_catalog;
mod list_sampled_queries;
mod operation_metrics;
mod plan_cache_stats;

use crate::{Data, Invocation, Node};
use backup_cursor::BackupCursorStage;
use pando_base::{Client, ClientUser, Error, ErrorCode, Namespace, Result};
use pando_doc::{Doc, DocBuilder, Element, Value};
use pando_operation::Operation;
use pando_query::executor::Collections;
use pando_query::pipeline::{
    DocumentSource, PipelineContext, Pulled, SharedStage, StageProvider, StageSpec, StreamBeginning,
};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

pub(crate) use backup_cursor::{stays_open, time_to_wait_for};
pub(crate) use current_op::wants_operations_of_all;

/// Makes the documents of a stage.
type Make = Arc<dyn Fn(&Asked, &mut Operation) -> Result<Vec<Doc>> + Send + Sync>;

/// Whom a stage asks.
#[derive(Clone)]
pub(crate) struct Asked {
    node: Arc<Node>,
    /// Who asks.
    client: Arc<Client>,
}

impl Asked {
    fn data(&self) -> Result<&Arc<Data>> {
        self.node.data.as_ref().ok_or_else(|| Error::internal("a pipeline ran on a node without storage"))
    }

    /// The user who asks, where users matter.
    fn user(&self) -> Option<Arc<ClientUser>> {
        self.client.user().filter(|_| self.node.security.is_enabled)
    }
}

/// Reads the stages of this module for a command.
pub(crate) struct NodeStages {
    asked: Asked,
    /// The client wants the tokens of change streams as they were before.
    wants_old_tokens: bool,
}

impl NodeStages {
    /// For the pipelines of this command.
    pub(crate) fn of(invocation: &Invocation) -> Arc<dyn StageProvider> {
        let node = Arc::clone(&invocation.node);
        let asked = Asked { node, client: Arc::clone(&invocation.connection.client) };
        let wants_old_tokens = invocation.body().contains("$_generateV2ResumeTokens");
        Arc::new(NodeStages { asked, wants_old_tokens })
    }
}

impl StageProvider for NodeStages {
    fn parse(&self, stage: Element<'_>, namespace: &Namespace) -> Option<Result<SharedStage>> {
        let written = |name: &str| {
            let mut document = DocBuilder::new();
            document.append(name, stage.value);
            document.finish()
        };
        if stage.name == backup_cursor::NAME {
            let written = written(backup_cursor::NAME);
            let parsed = BackupCursorStage::parse(stage.value, namespace, written, self.asked.clone());
            return Some(parsed.map(|stage| Arc::new(stage) as SharedStage));
        }
        let (name, make) = match &**stage.name {
            b"$backupCursorExtend" => (backup_cursor::EXTEND_NAME, backup_cursor::parse_extend(stage.value, namespace)),
            b"$collStats" => ("$collStats", coll_stats::parse(stage.value, namespace)),
            b"$currentOp" => ("$currentOp", current_op::parse(stage.value, namespace)),
            b"$indexStats" => ("$indexStats", index_stats::parse(stage.value, namespace)),
            b"$listCatalog" => ("$listCatalog", list_catalog::parse(stage.value, namespace)),
            b"$listLocalSessions" => {
                ("$listLocalSessions", inner_sessions::parse_local_sessions(stage.value, namespace))
            }
            b"$listSampledQueries" => ("$listSampledQueries", list_sampled_queries::parse(stage.value, namespace)),
            b"$listSessions" => ("$listSessions", inner_sessions::parse_stored_sessions(stage.value, namespace)),
            b"$operationMetrics" => {
                let parameters = &self.asked.node.parameters;
                ("$operationMetrics", operation_metrics::parse(stage.value, namespace, parameters))
            }
            b"$planCacheStats" => ("$planCacheStats", plan_cache_stats::parse(stage.value, namespace)),
            _ => return None,
        };
        Some(make.map(|make| {
            Arc::new(NodeStage { name, written: written(name), asked: self.asked.clone(), make }) as SharedStage
        }))
    }

    fn stream_beginning(&self) -> Option<StreamBeginning> {
        let replication = &self.asked.data().ok()?.replication;
        if !replication.with_topology(|topology| topology.mode().is_replicated()) {
            return None;
        }
        let beginning = StreamBeginning::behind(replication.points().applied.0.timestamp);
        Some(match self.wants_old_tokens {
            true => StreamBeginning { token_version: 1, ..beginning },
            false => beginning,
        })
    }
}

/// A stage as it was read.
struct NodeStage {
    name: &'static str,
    written: Doc,
    asked: Asked,
    make: Make,
}

impl fmt::Debug for NodeStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.written, f)
    }
}

impl StageSpec for NodeStage {
    fn name(&self) -> &'static str {
        self.name
    }

    fn start(&self, _: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        Ok(Box::new(Made { asked: self.asked.clone(), make: Arc::clone(&self.make), documents: None }))
    }

    fn to_doc(&self) -> Doc {
        self.written.clone()
    }

    fn is_initial(&self) -> bool {
        true
    }
}

/// Documents that are made at the first pull.
struct Made {
    asked: Asked,
    make: Make,
    documents: Option<VecDeque<Doc>>,
}

impl DocumentSource for Made {
    fn next(&mut self, context: &mut PipelineContext<'_>) -> Result<Pulled> {
        if self.documents.is_none() {
            self.documents = Some((self.make)(&self.asked, context.operation)?.into());
        }
        Ok(self.documents.as_mut().and_then(VecDeque::pop_front).map_or(Pulled::Exhausted, Pulled::Document))
    }

    fn save(&mut self) {}

    fn restore(&mut self, _: &mut Operation, _: &dyn Collections) -> Result<()> {
        Ok(())
    }
}

/// The options of a stage, which must be a document.
fn options<'a>(stage: &str, value: Value<'a>, code: ErrorCode) -> Result<pando_doc::DocRef<'a>> {
    let found = value.value_type().name();
    let refused = || Error::new(code, format!("{stage} must take a nested object but found a {found}"));
    value.as_document().ok_or_else(refused)
}
