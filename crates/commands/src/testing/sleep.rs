//! `sleep`: keeps a lock for a while, so that tests see what waits for it.

use crate::arguments::SafeLong;
use crate::locking::{lock_collection, lock_database, unlock, wait_of};
use crate::{Access, CommandRow, Invocation, run_boxed};
use pando_base::ErrorCode;
use pando_base::{DatabaseName, Error, Namespace, Result, bail};
use pando_doc::{DocBuilder, Value};
use pando_locks::{GlobalLockOptions, Mode};
use std::time::Duration;

/// How long it sleeps if nothing is said.
const DEFAULT: Duration = Duration::from_secs(10);

pub(super) const ROW: CommandRow = CommandRow {
    name: "sleep",
    help: "internal testing command. Makes db block (in a read lock) for 100ms",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    is_admin_only: true,
    is_for_tests: true,
    is_stopped_when_abandoned: true,
    privileges: Access::Nothing,
    ..CommandRow::DEFAULT
};

crate::arguments! {
    /// What sleep takes.
    struct Arguments<'a> of "sleep" {
        /// Whether the lock is exclusive, as long as `lock` says nothing.
        exclusive: Option<Value<'a>> = "w",
        /// The mode.
        lock: Option<&'a str> = "lock",
        /// A database or a collection; all of them unless told.
        target: Option<&'a str> = "lockTarget",
        secs: Option<SafeLong> = "secs",
        seconds: Option<SafeLong> = "seconds",
        millis: Option<SafeLong> = "millis",
        _comment: Option<Value<'a>> = "$comment",
    }
}

impl Arguments<'_> {
    fn duration(&self) -> Duration {
        let of = |given: &Option<SafeLong>| given.as_ref().map(|given| u64::try_from(given.0).unwrap_or(0));
        let seconds = of(&self.secs).or(of(&self.seconds));
        match (seconds, of(&self.millis)) {
            (None, None) => DEFAULT,
            (seconds, millis) => Duration::from_secs(seconds.unwrap_or(0)) + Duration::from_millis(millis.unwrap_or(0)),
        }
    }

    fn mode(&self) -> Result<Option<Mode>> {
        Ok(match self.lock {
            None if self.exclusive.is_some_and(|exclusive| exclusive.is_true()) => Some(Mode::X),
            None => Some(Mode::S),
            Some("none") => None,
            Some("w") => Some(Mode::X),
            Some("iw") => Some(Mode::IX),
            Some("r") => Some(Mode::S),
            Some("ir") => Some(Mode::IS),
            Some(other) => bail!(ErrorCode::location(51123), "Unknown lock mode: {other}"),
        })
    }
}

async fn run(invocation: &Invocation, _: &mut DocBuilder) -> Result<()> {
    let arguments = Arguments::parse(&invocation.request)?;
    let mut operation = invocation.operation()?;
    let target = arguments.target.filter(|target| !target.is_empty());
    match (arguments.mode()?, target) {
        (None, None) => {}
        (None, Some(_)) => return Err(Error::bad_value("a target needs a lock")),
        (Some(mode), None) => {
            let wait = wait_of(&operation);
            operation.locker.hold_global(mode, GlobalLockOptions::default(), &wait).await?;
        }
        (Some(mode), Some(target)) => match target.contains('.') {
            true => lock_collection(&mut operation, &Namespace::parse(target)?, mode).await?,
            false => lock_database(&mut operation, &DatabaseName::new(target)?, mode).await?,
        },
    }
    let sleep = invocation.node.env.clock().sleep(arguments.duration());
    let outcome = invocation.context.interruptible(sleep).await;
    unlock(&operation);
    outcome
}
