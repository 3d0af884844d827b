//! Commands that the node runs itself, through the same stages as those of clients.

use super::{Dispatcher, finish};
use crate::lists;
use bytes::Bytes;
use pando_base::{Error, OperationContext, Result};
use pando_commands::transaction_api::LocalCommands;
use pando_commands::{ConnectionState, Node};
use pando_doc::{Doc, DocBuilder};
use pando_env::BoxedFuture;
use pando_wire::{Command, Compressors, MsgFlags, RequestBuilder};
use std::sync::{Arc, Weak};

/// Runs them. The node keeps it, so it does not keep the node.
pub(crate) struct Local(Weak<Node>);

impl Local {
    /// On this node.
    pub(crate) fn new(node: &Arc<Node>) -> Local {
        Local(Arc::downgrade(node))
    }
}

impl LocalCommands for Local {
    fn run<'a>(
        &'a self,
        connection: &'a Arc<ConnectionState>,
        context: OperationContext,
        body: Doc,
    ) -> BoxedFuture<'a, Result<Doc>> {
        Box::pin(async move {
            let node = self.0.upgrade().ok_or_else(|| Error::internal("the node has ended"))?;
            let message = RequestBuilder::new(MsgFlags::NONE, Vec::new()).body(body.view()).finish(0, None)?;
            let request = Command::decode(Bytes::from(message), &Compressors::default());
            let request = request.map_err(|refusal| refusal.error)?;
            Ok(Dispatcher::new(node, lists::stages()).answer(connection, &context, request).await)
        })
    }
}

impl Dispatcher {
    /// The reply to a command, without the message around it.
    async fn answer(&self, connection: &Arc<ConnectionState>, context: &OperationContext, request: Command) -> Doc {
        let mut reply = DocBuilder::new();
        match self.find(connection, context, request) {
            Ok(invocation) => drop(self.invoke(&invocation, &mut reply).await),
            Err(error) => finish::fail_early(&self.node, &error, &mut reply),
        }
        reply.finish()
    }
}
