//! `$backupCursor`: the files to copy for a backup, which stay as they are while the cursor is open. The first document tells
//! of the backup itself. When all are told the cursor stays, until the client closes it or forgets it for too long.
//!
//! `$backupCursorExtend`: the files to copy again so that the backup reaches to a later time.

use super::{Asked, Make};
use crate::arguments::Place;
use crate::backup::{BackupGuard, BackupRequest, extend, open};
use pando_base::{ErrorCode, Namespace, Result, Timestamp, Uuid, ensure};
use pando_doc::{Doc, DocRef, Value};
use pando_operation::Operation;
use pando_query::executor::Collections;
use pando_query::pipeline::{DocumentSource, PipelineContext, Pulled, StageSpec};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

pub(super) const NAME: &str = "$backupCursor";
pub(super) const EXTEND_NAME: &str = "$backupCursorExtend";

/// Of a block of an incremental backup, unless the client says otherwise.
const BLOCK_SIZE_MB_DEFAULT: i32 = 16;

crate::arguments! {
    struct BackupCursor<'a> of "$backupCursor" {
        disables_incremental: bool = "disableIncrementalBackup" or false,
        is_incremental: bool = "incrementalBackup" or false,
        this_name: Option<&'a str> = "thisBackupName",
        source_name: Option<&'a str> = "srcBackupName",
        block_size_mb: Option<i32> = "blockSize",
    }
}

crate::arguments! {
    struct BackupCursorExtend<'a> of "$backupCursorExtend" {
        id: Uuid = "backupId",
        timestamp: Value<'a> = "timestamp",
    }
}

fn check_place(name: &str, namespace: &Namespace) -> Result<()> {
    ensure!(
        namespace.is_collectionless_aggregate() && namespace.database() == "admin",
        ErrorCode::InvalidNamespace,
        "{name} must be run against the 'admin' database with {{aggregate: 1}}"
    );
    Ok(())
}

fn options<'a>(name: &str, value: Value<'a>) -> Result<DocRef<'a>> {
    let found = value.value_type().name();
    ensure!(
        value.as_document().is_some(),
        ErrorCode::FailedToParse,
        "{name} parameters must be specified in an object, but found: {found}"
    );
    Ok(value.as_document().unwrap_or(DocRef::EMPTY))
}

fn request(value: Value<'_>) -> Result<BackupRequest> {
    let arguments = BackupCursor::parse_fields(options(NAME, value)?, &Place::of_command(NAME), false)?;
    let is_plain =
        arguments.this_name.is_none() && arguments.source_name.is_none() && arguments.block_size_mb.is_none();
    ensure!(
        !arguments.disables_incremental || (is_plain && !arguments.is_incremental),
        ErrorCode::InvalidOptions,
        "Cannot specify disableIncrementalBackup with any other option"
    );
    ensure!(
        arguments.is_incremental || is_plain,
        ErrorCode::InvalidOptions,
        "Cannot specify thisBackupName, srcBackupName or blockSize when incrementalBackup is false"
    );
    ensure!(
        !arguments.is_incremental || arguments.this_name.is_some(),
        ErrorCode::InvalidOptions,
        "thisBackupName needs to be specified when incrementalBackup is true"
    );
    let block_size_mb = arguments.block_size_mb.unwrap_or(BLOCK_SIZE_MB_DEFAULT);
    ensure!(block_size_mb > 0, ErrorCode::BadValue, "blockSize must be greater than 0");
    Ok(BackupRequest {
        disables_incremental: arguments.disables_incremental,
        is_incremental: arguments.is_incremental,
        block_size_mb,
        this_name: arguments.this_name.map(str::to_owned),
        source_name: arguments.source_name.map(str::to_owned),
    })
}

/// The stage as it was read.
pub(super) struct BackupCursorStage {
    written: Doc,
    asked: Asked,
    request: BackupRequest,
}

impl BackupCursorStage {
    pub(super) fn parse(value: Value<'_>, namespace: &Namespace, written: Doc, asked: Asked) -> Result<Self> {
        check_place(NAME, namespace)?;
        Ok(BackupCursorStage { written, asked, request: request(value)? })
    }
}

impl fmt::Debug for BackupCursorStage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.written, f)
    }
}

impl StageSpec for BackupCursorStage {
    fn name(&self) -> &'static str {
        NAME
    }

    fn start(&self, _: Box<dyn DocumentSource>) -> Result<Box<dyn DocumentSource>> {
        Ok(Box::new(BackupFiles { asked: self.asked.clone(), request: self.request.clone(), opened: None }))
    }

    fn to_doc(&self) -> Doc {
        self.written.clone()
    }

    fn is_initial(&self) -> bool {
        true
    }
}

/// Tells the files, and keeps the backup as long as it lives.
struct BackupFiles {
    asked: Asked,
    request: BackupRequest,
    opened: Option<(BackupGuard, VecDeque<Doc>)>,
}

impl DocumentSource for BackupFiles {
    fn next(&mut self, _: &mut PipelineContext<'_>) -> Result<Pulled> {
        if self.opened.is_none() {
            let directory = self.asked.node.options.data_directory.as_deref();
            let (guard, documents) = open(self.asked.data()?, directory, &self.request)?;
            self.opened = Some((guard, documents.into()));
        }
        let next = self.opened.as_mut().and_then(|(_, documents)| documents.pop_front());
        Ok(next.map_or(Pulled::Exhausted, Pulled::Document))
    }

    fn save(&mut self) {}

    fn restore(&mut self, _: &mut Operation, _: &dyn Collections) -> Result<()> {
        Ok(())
    }
}

fn extend_arguments(value: Value<'_>) -> Result<(Uuid, Timestamp)> {
    let arguments =
        BackupCursorExtend::parse_fields(options(EXTEND_NAME, value)?, &Place::of_command(EXTEND_NAME), false)?;
    let timestamp = arguments.timestamp.as_timestamp();
    ensure!(
        timestamp.is_some(),
        ErrorCode::TypeMismatch,
        "BSON field '{EXTEND_NAME}.timestamp' is the wrong type '{}', expected type 'timestamp'",
        arguments.timestamp.value_type().name()
    );
    Ok((arguments.id, timestamp.unwrap_or_default()))
}

pub(super) fn parse_extend(value: Value<'_>, namespace: &Namespace) -> Result<Make> {
    check_place(EXTEND_NAME, namespace)?;
    let (id, timestamp) = extend_arguments(value)?;
    Ok(Arc::new(move |asked: &Asked, _: &mut Operation| extend(asked.data()?, id, timestamp)))
}

/// The time that a pipeline wants a backup to reach to, if it does.
pub(crate) fn time_to_wait_for(pipeline: &[Doc]) -> Option<(Uuid, Timestamp)> {
    let first = pipeline.first()?.view().first()?;
    if first.name != EXTEND_NAME {
        return None;
    }
    extend_arguments(first.value).ok()
}

/// Does the cursor of this pipeline stay when everything is told?
pub(crate) fn stays_open(pipeline: &[Doc]) -> bool {
    pipeline.first().and_then(|stage| stage.view().first()).is_some_and(|stage| stage.name == NAME)
}
