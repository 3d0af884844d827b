//! `setDefaultRWConcern`: the concerns of commands that give none. What is not given stays; `{}` unsets the read concern. A
//! write concern that was set once cannot be unset.

use super::Kept;
use super::defaults::{Defaults, read_default, write_default};
use super::get_default_rw_concern::{append_defaults, check_in_set};
use crate::{Access, Action, Class, CommandRow, Invocation, SecondaryOk, run_boxed};
use pando_base::{Component, ErrorCode, LogValue, Result, Severity, ensure};
use pando_doc::{DocBuilder, DocRef, JsonFormat, doc_to_json};
use pando_repl::write_concern::check_satisfiable;

pub(super) const ROW: CommandRow = CommandRow {
    name: "setDefaultRWConcern",
    help: "set the current read/write concern defaults (cluster-wide)",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    class: Class::Write,
    is_admin_only: true,
    secondary_ok: SecondaryOk::Never,
    takes_write_concern: true,
    privileges: Access::Cluster(&[Action::SetDefaultRWConcern]),
    ..CommandRow::DEFAULT
};

crate::arguments! {
    struct Arguments<'a> of "setDefaultRWConcern" {
        read: Option<DocRef<'a>> = "defaultReadConcern",
        write: Option<DocRef<'a>> = "defaultWriteConcern",
    }
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let arguments = Arguments::parse(&invocation.request)?;
    let data = invocation.data()?;
    check_in_set(invocation, data)?;
    let _alone = invocation.context.interruptible(data.settings.changing.lock()).await?;
    let before = Defaults::clone(&data.settings.defaults.read());
    let defaults = changed(&arguments, before, invocation)?;
    if let Some(concern) = &defaults.write {
        data.replication
            .with_topology(|topology| check_satisfiable(concern, topology.config().map(|config| &**config)))?;
    }
    let stored = defaults.to_stored();
    let mut operation = invocation.operation()?;
    crate::stored::save(data, &mut operation, Kept::Defaults.namespace(), &stored).await?;
    // The command is not done before its own concern is, which may be one that nobody can satisfy.
    if let Some(concern) = invocation.given_write_concern()? {
        data.replication
            .with_topology(|topology| check_satisfiable(concern, topology.config().map(|config| &**config)))?;
    }
    let value = LogValue::Json(doc_to_json(stored.view(), JsonFormat::Relaxed));
    let log = invocation.node.log.with_context(invocation.connection.client.description());
    log.write(Severity::Info, Component::Command, 20498, "Successfully set RWC defaults", vec![("value", value)]);
    append_defaults(data, false, reply);
    Ok(())
}

fn changed(arguments: &Arguments<'_>, before: Defaults, invocation: &Invocation) -> Result<Defaults> {
    ensure!(
        arguments.read.is_some() || arguments.write.is_some(),
        ErrorCode::BadValue,
        "At least one of the \"defaultReadConcern\" or \"defaultWriteConcern\" fields must be present"
    );
    let read = arguments.read.map(read_default).transpose()?;
    let write = arguments.write.map(write_default).transpose()?;
    ensure!(
        write != Some(None) || before.write.is_none(),
        ErrorCode::IllegalOperation,
        "The global default write concern cannot be unset once it is set."
    );
    let now_ms = invocation.node.now_ms();
    Ok(Defaults {
        read: read.unwrap_or(before.read),
        write: write.unwrap_or(before.write),
        set_at: Some((invocation.data()?.replication.clock().now(), now_ms)),
        taken_ms: now_ms,
    })
}
