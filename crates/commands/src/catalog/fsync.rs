//! `fsync`: everything that was committed is on disk when it answers. Keeping writers out until `fsyncUnlock`, which is for
//! copies of the files by other means, is refused until backups are built.

use crate::arguments::SafeBool;
use crate::{Access, Action, CommandRow, Invocation, arguments, run_boxed};
use pando_base::{Error, ErrorCode, Result, ensure};
use pando_doc::DocBuilder;
use pando_storage::CheckpointKind;

pub(super) const ROW: CommandRow = CommandRow {
    name: "fsync",
    help: "flush everything to disk",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    is_admin_only: true,
    privileges: Access::Cluster(&[Action::Fsync]),
    ..CommandRow::DEFAULT
};

pub(super) const UNLOCK_ROW: CommandRow = CommandRow {
    name: "fsyncUnlock",
    help: "let writers in again after fsync with lock",
    run: |invocation, _| run_boxed(std::future::ready(unlock(invocation))),
    is_admin_only: true,
    privileges: Access::Cluster(&[Action::Unlock]),
    ..CommandRow::DEFAULT
};

arguments! {
    struct FsyncArguments<'a> of "fsync" lenient {
        lock: SafeBool = "lock" or SafeBool(false),
    }
}

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = FsyncArguments::parse(&invocation.request)?;
    ensure!(!arguments.lock.0, ErrorCode::NotImplemented, "fsync with lock is not built yet");
    let engine = &data.services.engine;
    let mut outcome = Ok(());
    invocation.node.env.tasks().blocking(&mut || {
        let flushed = engine.flush_log().and_then(|_| engine.checkpoint(CheckpointKind::Automatic));
        outcome = flushed.map(|_| ()).map_err(Error::from);
    });
    outcome?;
    reply.append("numFiles", 1);
    Ok(())
}

fn unlock(_invocation: &Invocation) -> Result<()> {
    Err(Error::new(ErrorCode::IllegalOperation, "fsyncUnlock called when not locked"))
}
