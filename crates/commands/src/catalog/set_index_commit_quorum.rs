//! `setIndexCommitQuorum`: another quorum for a build under way.

use super::change::does_not_exist;
use crate::{Access, Action, Class, CommandRow, Invocation, NamespaceOf, SecondaryOk, arguments, run_boxed};
use pando_base::{ErrorCode, Result, ensure};
use pando_doc::{DocBuilder, Value};
use pando_index_build::CommitQuorum;

pub(super) const ROW: CommandRow = CommandRow {
    name: "setIndexCommitQuorum",
    help: "Resets the commitQuorum for the given index builds in a collection.",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    class: Class::Catalog,
    secondary_ok: SecondaryOk::Never,
    takes_write_concern: true,
    namespace: NamespaceOf::FirstField,
    privileges: Access::Collection(&[Action::CreateIndex]),
    ..CommandRow::DEFAULT
};

arguments! {
    struct SetIndexCommitQuorumArguments<'a> of "setIndexCommitQuorum" {
        index_names: Vec<&'a str> = "indexNames",
        commit_quorum: Value<'a> = "commitQuorum",
    }
}

async fn run(invocation: &Invocation, _reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = SetIndexCommitQuorumArguments::parse(&invocation.request)?;
    let namespace = invocation.collection()?;
    let quorum = CommitQuorum::parse(arguments.commit_quorum)?;
    ensure!(
        invocation.node.replication.is_replica_set(),
        ErrorCode::IllegalOperation,
        "setIndexCommitQuorum can only be run on a member of a replica set"
    );
    let latest = data.catalog.latest();
    let uuid = latest.collection(&namespace).ok_or_else(|| does_not_exist(&namespace))?.uuid;
    drop(latest);
    let names: Vec<String> = arguments.index_names.iter().map(|name| (*name).to_owned()).collect();
    data.index_builds.set_quorum(&namespace, uuid, &names, quorum).await
}
