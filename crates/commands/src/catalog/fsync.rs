//! `fsync`: everything that was committed is on disk when it answers. With `lock` it also keeps writers out, until as many
//! `fsyncUnlock` have come, for copies of the files by other means; see `backup`.

use crate::arguments::SafeLong;
use crate::backup::{COMMAND_MUTEX, FsyncLock, flush};
use crate::locking::{lock_for_read, wait_of};
use crate::{Access, Action, CommandRow, Invocation, arguments, run_boxed};
use pando_base::{Component, Error, Result, Severity, log};
use pando_doc::{DocBuilder, Value};
use pando_locks::{Mode, ResourceMutex};
use std::time::Duration;

pub(super) const ROW: CommandRow = CommandRow {
    name: "fsync",
    help: MORE,
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    is_admin_only: true,
    is_stopped_when_abandoned: true,
    privileges: Access::Cluster(&[Action::Fsync]),
    ..CommandRow::DEFAULT
};

pub(super) const UNLOCK_ROW: CommandRow = CommandRow {
    name: "fsyncUnlock",
    help: "let writers in again after fsync with lock",
    run: |invocation, reply| run_boxed(unlock(invocation, reply)),
    is_admin_only: true,
    privileges: Access::Cluster(&[Action::Unlock]),
    ..CommandRow::DEFAULT
};

/// Where there is more to read.
const MORE: &str = "http://dochub.mongodb.org/core/fsynccommand";

/// How long a lock for a backup is waited for unless the client says otherwise.
const BACKUP_WAIT_DEFAULT: Duration = Duration::from_secs(90);

arguments! {
    struct FsyncArguments<'a> of "fsync" lenient {
        lock: Option<Value<'a>> = "lock",
        for_backup: Option<Value<'a>> = "forBackup",
        allows_failure: Option<Value<'a>> = "allowFsyncFailure",
        timeout_ms: Option<SafeLong> = "fsyncLockAcquisitionTimeoutMillis",
    }
}

impl FsyncArguments<'_> {
    fn longest_wait(&self) -> Result<Option<Duration>> {
        if !is_on(self.for_backup) {
            return Ok(None);
        }
        let Some(timeout_ms) = self.timeout_ms else { return Ok(Some(BACKUP_WAIT_DEFAULT)) };
        let timeout_ms = u64::try_from(timeout_ms.0).ok().filter(|timeout_ms| i32::try_from(*timeout_ms).is_ok());
        let out_of_range = || Error::bad_value("fsyncLockAcquisitionTimeoutMillis is out of range");
        Ok(Some(Duration::from_millis(timeout_ms.ok_or_else(out_of_range)?)))
    }
}

fn is_on(value: Option<Value<'_>>) -> bool {
    value.is_some_and(|value| value.is_true())
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = FsyncArguments::parse(&invocation.request)?;
    let (locks, for_backup) = (is_on(arguments.lock), is_on(arguments.for_backup));
    let log = &invocation.node.log;
    log!(log, Severity::Info, Component::Command, 20461, "CMD fsync", "lock" = locks, "forBackup" = for_backup);
    if !locks {
        let mut operation = invocation.operation()?;
        lock_for_read(&mut operation).await?;
        flush(data)?;
        // Of no meaning any more, and expected by those who have always found it.
        reply.append("numFiles", 1);
        return Ok(());
    }
    let longest = arguments.longest_wait()?;
    let allows_failure = invocation.node.options.test_commands_enabled && is_on(arguments.allows_failure);
    let operation = invocation.operation()?;
    let one_at_a_time =
        ResourceMutex::new(COMMAND_MUTEX).lock(&operation.locker, Mode::X, &wait_of(&operation)).await?;
    let count = match data.backups.lock_again() {
        Some(count) => count,
        None => {
            data.backups.check_may_lock()?;
            let held = FsyncLock::acquire(data, &invocation.context, longest, allows_failure).await;
            let locked = held.and_then(|held| data.backups.locked(held));
            if let Err(error) = locked {
                let message = "fsyncLock failed. Lock count reset to 0";
                log!(log, Severity::Warning, Component::Command, 20468, message, "error" = &error);
                return Err(error);
            }
            1
        }
    };
    drop(one_at_a_time);
    let message = "mongod is locked and no writes are allowed";
    log!(log, Severity::Info, Component::Command, 20462, message, "lockCount" = count, "seeAlso" = MORE);
    reply.append("info", "now locked against writes, use db.fsyncUnlock() to unlock");
    reply.append("lockCount", count);
    reply.append("seeAlso", MORE);
    Ok(())
}

async fn unlock(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let log = &invocation.node.log;
    log!(log, Severity::Info, Component::Command, 20465, "command: unlock requested");
    let operation = invocation.operation()?;
    let one_at_a_time =
        ResourceMutex::new(COMMAND_MUTEX).lock(&operation.locker, Mode::X, &wait_of(&operation)).await?;
    let count = data.backups.unlock()?;
    drop(one_at_a_time);
    log!(log, Severity::Info, Component::Command, 20466, "fsyncUnlock complete", "lockCount" = count);
    reply.append("info", "fsyncUnlock completed");
    reply.append("lockCount", count);
    Ok(())
}
