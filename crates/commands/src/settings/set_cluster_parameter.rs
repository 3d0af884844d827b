//! `setClusterParameter`: one cluster parameter, for all nodes. It waits for a majority.

use super::{Kept, cluster_parameters, wait_for_majority};
use crate::{Access, Action, Class, CommandRow, Invocation, SecondaryOk, run_boxed};
use pando_base::{Component, Error, ErrorCode, Result, Severity, bail, ensure, log};
use pando_doc::{DocBuilder, DocRef, Value};
use pando_repl::ReplGate;

pub(super) const ROW: CommandRow = CommandRow {
    name: "setClusterParameter",
    help: "Set cluster parameter on replica set or node",
    run: |invocation, _| run_boxed(run(invocation)),
    class: Class::Write,
    is_admin_only: true,
    secondary_ok: SecondaryOk::Never,
    privileges: Access::Cluster(&[Action::SetClusterParameter]),
    ..CommandRow::DEFAULT
};

async fn run(invocation: &Invocation) -> Result<()> {
    let data = invocation.data()?;
    ensure!(
        data.replication.is_replicated(),
        ErrorCode::IllegalOperation,
        "setClusterParameter cannot be run on standalones"
    );
    let target = invocation.target();
    // What is null is not given: a parameter without a name.
    let target = if target.is_nullish() { Value::Document(DocRef::EMPTY) } else { target };
    let Value::Document(given) = target else {
        return Err(Error::type_mismatch(format!(
            "BSON field 'setClusterParameter.setClusterParameter' is the wrong type '{}', expected type 'object'",
            invocation.target().value_type().name()
        )));
    };
    let (name, value) = match given.first() {
        Some(first) => (first.name.to_string(), first.value),
        None => (String::new(), Value::Null),
    };
    let parameter = cluster_parameters::find(&name, invocation.node.options.test_commands_enabled)?;
    let Value::Document(fields) = value else {
        bail!(ErrorCode::BadValue, "Cluster parameter value must be an object");
    };
    let fields = parameter.read(fields)?;
    let _alone = invocation.context.interruptible(data.settings.changing.lock()).await?;
    let mut document = DocBuilder::new();
    document.append("_id", parameter.name);
    document.append("clusterParameterTime", data.replication.clock().now());
    document.append_all(fields.view());
    let mut operation = invocation.operation()?;
    let log = &invocation.node.log;
    let message = "Updating cluster parameter on-disk";
    log!(log, Severity::Debug(2), Component::Command, 6432603, message, "clusterParameter" = parameter.name);
    crate::stored::save(data, &mut operation, Kept::ClusterParameters.namespace(), &document.finish()).await?;
    drop(operation);
    wait_for_majority(invocation, data).await
}
