//! `voteCommitIndexBuild`: another member says that its part of an index build is ready to commit.

use crate::{Access, Action, CommandRow, Invocation, SecondaryOk, arguments, run_boxed};
use pando_base::{Result, Uuid};
use pando_doc::DocBuilder;

pub(super) const ROW: CommandRow = CommandRow {
    name: "voteCommitIndexBuild",
    help: "Internal intra replica set command",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    secondary_ok: SecondaryOk::Never,
    is_admin_only: true,
    takes_write_concern: true,
    privileges: Access::Cluster(&[Action::Internal]),
    ..CommandRow::DEFAULT
};

arguments! {
    struct VoteCommitIndexBuildArguments<'a> of "voteCommitIndexBuild" {
        host: &'a str = "hostAndPort",
    }
}

async fn run(invocation: &Invocation, _reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = VoteCommitIndexBuildArguments::parse(&invocation.request)?;
    let build_uuid = match invocation.target() {
        pando_doc::Value::Binary { bytes, .. } => Uuid::from_slice(bytes)?,
        _ => Uuid::from_slice(&[])?,
    };
    data.index_builds.take_vote(build_uuid, arguments.host).await
}
