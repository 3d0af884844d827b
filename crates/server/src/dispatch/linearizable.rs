//! Linearizable reads: what was read counts only if this node was still the primary when the read was over. A majority shows
//! that by taking an entry of ours.

use super::stage::{Entered, Stage};
use pando_base::Result;
use pando_commands::Invocation;
use pando_doc::{DocBuilder, Value};
use pando_env::BoxedFuture;

/// Waits for the majority after a linearizable read.
pub(crate) struct ConfirmLinearizableRead;

impl Stage for ConfirmLinearizableRead {
    fn name(&self) -> &'static str {
        "linearizable read"
    }

    fn enter<'a>(&'a self, _: &'a Invocation) -> Entered<'a> {
        Entered::Pass
    }

    fn leave<'a>(&'a self, invocation: &'a Invocation, _: &'a mut DocBuilder) -> Option<BoxedFuture<'a, Result<()>>> {
        let concern = invocation.generic.read_concern.as_ref()?;
        let is_linearizable = concern.get("level") == Some(Value::String("linearizable".into()));
        is_linearizable.then(|| -> BoxedFuture<'a, Result<()>> { Box::pin(confirm(invocation)) })
    }
}

async fn confirm(invocation: &Invocation) -> Result<()> {
    let data = invocation.data()?;
    let mut operation = invocation.operation()?;
    data.replication.finish_linearizable_read(&mut operation, data.oplog_writer()).await
}
