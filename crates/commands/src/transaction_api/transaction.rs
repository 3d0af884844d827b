//! One transaction of the server's own: its statements, its end.

use super::Patience;
use super::sessions::InternalSession;
use super::verdict::{self, CommitVerdict, Verdict};
use crate::{ConnectionState, Invocation};
use pando_base::{Error, ErrorCode, Result, ensure};
use pando_doc::{Doc, DocBuilder, DocRef, doc};
use std::sync::Arc;

/// A transaction that a command runs.
pub struct InternalTransaction<'a> {
    invocation: &'a Invocation,
    connection: Arc<ConnectionState>,
    session: InternalSession,
    /// A statement was sent.
    has_begun: bool,
    /// The last statement that failed says that it may go well the next time.
    is_transient: bool,
}

impl<'a> InternalTransaction<'a> {
    pub(super) fn new(invocation: &'a Invocation) -> Result<InternalTransaction<'a>> {
        ensure!(
            !invocation.generic.is_in_transaction(),
            ErrorCode::OperationNotSupportedInTransaction,
            "Command {} runs a transaction of its own and cannot be part of another",
            invocation.row.name
        );
        let session = invocation.node.transaction_api.sessions.take(invocation);
        let connection = Arc::new(invocation.connection.of_server_itself());
        Ok(InternalTransaction { invocation, connection, session, has_begun: false, is_transient: false })
    }

    /// Runs a statement; its reply, or the error that it or its first write failed with.
    pub async fn run(&mut self, database: &str, command: DocRef<'_>) -> Result<Doc> {
        let reply = self.run_unchecked(database, command).await?;
        match verdict::error_of(reply.view()) {
            None => Ok(reply),
            Some(error) => {
                self.is_transient = verdict::is_transient(reply.view());
                Err(error)
            }
        }
    }

    /// Runs a statement; its reply, whatever it says. One that says that the transaction is over ends the body with an error.
    pub async fn run_unchecked(&mut self, database: &str, command: DocRef<'_>) -> Result<Doc> {
        let mut body = DocBuilder::with_capacity(command.size_bytes() + 256);
        body.append_all(command);
        self.append_transaction(&mut body);
        if !self.has_begun {
            body.append("startTransaction", true);
            body.append_some("readConcern", self.invocation.generic.read_concern.as_ref());
        }
        body.append("$db", database);
        self.has_begun = true;
        let reply = self.ask(body.finish()).await?;
        if verdict::is_transient(reply.view()) {
            self.is_transient = true;
            return Err(verdict::error_of(reply.view()).unwrap_or_else(|| Error::internal("a label without an error")));
        }
        Ok(reply)
    }

    fn append_transaction(&self, body: &mut DocBuilder) {
        body.append("lsid", &self.session.document);
        body.append("txnNumber", self.session.number);
        body.append("autocommit", false);
    }

    /// Runs a command as a part of the client's: it stops with it.
    async fn ask(&self, body: Doc) -> Result<Doc> {
        let local = self.invocation.node.transaction_api.local()?;
        local.run(&self.connection, self.invocation.context.child(), body).await
    }

    /// What an error of the body means.
    pub(super) fn judge(&self, error: Error) -> Verdict {
        match self.is_transient {
            true => Verdict::BeginAgain(error),
            false => Verdict::Fail(error),
        }
    }

    /// Commits, as durably as the client wants it; sent again for certain, it has to be on a majority.
    pub(super) async fn commit(&self) -> Result<Verdict> {
        if !self.has_begun {
            return Ok(Verdict::Done);
        }
        let majority = doc! { "w": "majority" };
        let mut concern = self.invocation.generic.write_concern.clone();
        let mut patience = Patience::new(self.invocation);
        loop {
            let reply = self.ask(self.ending("commitTransaction", concern.as_ref())).await?;
            match verdict::of_commit(reply.view()) {
                CommitVerdict::Over(verdict) => return Ok(verdict),
                CommitVerdict::SendAgain(error) => patience.rest(error).await?,
            }
            concern = Some(majority.clone());
        }
    }

    /// Gives the transaction up, also when the client's command has to stop. Most have ended with their error: that is no news.
    pub(super) async fn abort(&self) {
        if !self.has_begun {
            return;
        }
        let node = &self.invocation.node;
        let context = node.operations.start(&self.connection.client);
        if let Ok(local) = node.transaction_api.local() {
            let _ = local.run(&self.connection, context, self.ending("abortTransaction", None)).await;
        }
    }

    fn ending(&self, name: &str, concern: Option<&Doc>) -> Doc {
        let mut body = DocBuilder::new();
        body.append(name, 1);
        self.append_transaction(&mut body);
        body.append_some("writeConcern", concern);
        body.append("$db", "admin");
        body.finish()
    }

    /// The next statement is the first of a new attempt.
    pub(super) fn begin_again(&mut self) {
        self.session.number += 1;
        (self.has_begun, self.is_transient) = (false, false);
    }
}

impl Drop for InternalTransaction<'_> {
    fn drop(&mut self) {
        self.invocation.node.transaction_api.sessions.give_back(self.session.clone());
    }
}
