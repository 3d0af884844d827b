//! The way of a request, from a decoded message to the bytes of its reply.
//!
//! 1. *Find*: the command's row, the database, what every command takes.
//! 2. *Enter* the stages, in order. Each lets the request pass, refuses it, has it wait, or holds something for it.
//! 3. *Run* the command, which writes its fields into the reply. Its deadline is watched.
//! 4. *Leave* the stages in reverse: here the write concern is waited for, also if the command failed. What was held is
//!    given back.
//! 5. *Finish*: `ok` or the error with its labels, the times, counters, the log of slow operations.
//!
//! A failure at any step becomes an error reply; only a connection that cannot go on is closed. A request without reply is
//! run all the same.

mod after_command;
mod deadline;
mod finish;
mod linearizable;
mod local;
mod measured;
mod stage;
pub(crate) mod stages;
mod transaction;
mod write_concern;

use crate::before_login;
use pando_base::operation::follow;
use pando_base::{Error, ErrorCode, OperationContext, Result, bail};
use pando_commands::arguments::refuse_repeated;
use pando_commands::watch;
use pando_commands::{ConnectionState, GenericArguments, Invocation, NamespaceOf, NextInvocation, Node, OpCounter};
use pando_doc::DocBuilder;
use pando_env::{BoxedFuture, Place};
use pando_net::{Next, Peer, Request, RequestHandler, RequestKind, Response};
use pando_wire::{Command, Protocol, Reaction, Refusal, ReplyBuilder, ReplyTo};
use std::sync::Arc;

pub(crate) use after_command::FAIL_POINTS;
pub(crate) use linearizable::ConfirmLinearizableRead;
pub(crate) use local::Local;
pub use stage::{Entered, Hold, Stage};
pub(crate) use transaction::Transactions;
pub(crate) use write_concern::AwaitWriteConcern;

/// The length of a document without fields.
const EMPTY_BYTES: usize = 5;

/// Takes requests from connections and answers them. Clones are of the same one.
#[derive(Clone)]
pub struct Dispatcher {
    node: Arc<Node>,
    stages: Arc<[Box<dyn Stage>]>,
}

/// What dispatch keeps of a connection. Each has its own way to the node, so that answers, which may be worked on away from their
/// connection, do not all count the users of the same one.
pub struct Attached {
    dispatcher: Dispatcher,
    connection: Arc<ConnectionState>,
}

impl Dispatcher {
    /// Dispatches to this node's commands, through these stages.
    pub fn new(node: Arc<Node>, stages: Vec<Box<dyn Stage>>) -> Dispatcher {
        Dispatcher { node, stages: stages.into() }
    }

    /// The node.
    pub fn node(&self) -> &Arc<Node> {
        &self.node
    }

    async fn dispatch(&self, connection: &Arc<ConnectionState>, request: Request) -> Response {
        let Request { command, buffer, reply_id } = request;
        let context = self.node.operations.start(&connection.client);
        let (to, is_silent) = (command.reply_to(), command.is_fire_and_forget());
        let mut reply = ReplyBuilder::new(to, buffer);
        let next = follow(&context, self.run(connection, &context, command, reply.body())).await;
        context.statistics().response_bytes.add(reply.body().size_bytes() as u64);
        self.respond(reply, to, reply_id, is_silent, next)
    }

    async fn run(
        &self,
        connection: &Arc<ConnectionState>,
        context: &OperationContext,
        command: Command,
        reply: &mut DocBuilder,
    ) -> Option<NextInvocation> {
        match self.find(connection, context, command) {
            Ok(invocation) => self.invoke(&invocation, reply).await,
            Err(error) => {
                finish::fail_early(&self.node, &error, reply);
                None
            }
        }
    }

    /// What a request asks for. Everything that is wrong before the command is known is found here.
    fn find(
        &self,
        connection: &Arc<ConnectionState>,
        context: &OperationContext,
        request: Command,
    ) -> Result<Invocation> {
        let name = request.name();
        let Some(entry) = self.node.table.find(name) else {
            self.node.table.unknown.increment();
            bail!(ErrorCode::CommandNotFound, "no such command: '{name}'");
        };
        entry.counters.total.increment();
        match entry.row.op_counter {
            OpCounter::Command => self.node.counters.operations.command.increment(),
            OpCounter::Query => self.node.counters.operations.query.increment(),
            OpCounter::GetMore => self.node.counters.operations.get_more.increment(),
            OpCounter::Own => {}
        }
        let count_failure = |error: Error| {
            entry.counters.failed.increment();
            error
        };
        refuse_repeated(entry.row.name, &request).map_err(count_failure)?;
        let mut generic = GenericArguments::default();
        let parsed = generic.read(&request, connection.is_internal());
        let named = parsed.as_ref().ok().copied().flatten();
        let as_before = stages::namespace_as_before(connection, entry.row, &request, named);
        let database = match &as_before {
            Some(namespace) => namespace.database_name(),
            None => stages::database_name(&request, named).map_err(count_failure)?,
        };
        parsed.map_err(count_failure)?;
        if self.node.security.is_enabled
            && let Some(identity) = connection.identity()
        {
            generic.set_session_user(identity.digest);
        }
        if generic.read_concern.is_none() && stages::takes_default_read_concern(entry.row, connection, &generic) {
            let member = self.node.data.as_ref().filter(|_| self.node.replication.is_replica_set());
            generic.read_concern = member.and_then(|data| data.settings.default_read_concern());
        }
        let (node, client, context, row) = (Arc::clone(&self.node), Arc::clone(connection), context.clone(), entry.row);
        if let Some(namespace) = as_before {
            return Ok(Invocation::of_namespace(node, client, context, row, request, namespace, database, generic));
        }
        let invocation = Invocation::new(node, client, context, row, request, database, generic);
        if row.namespace == NamespaceOf::FirstField {
            connection.remember_namespace(&invocation.namespace);
        }
        Ok(invocation)
    }

    /// Runs a command between its stages and completes the reply's body.
    async fn invoke(&self, invocation: &Invocation, reply: &mut DocBuilder) -> Option<NextInvocation> {
        finish::describe(invocation);
        watch::begin(invocation);
        let row = invocation.row;
        if row.is_stopped_when_abandoned {
            invocation.connection.set_stopped_when_abandoned(Some(invocation.context.clone()));
        }
        let mut beside = None;
        let mut has_run = false;
        let outcome = self.staged(invocation, reply, &mut beside, &mut has_run).await;
        if row.is_stopped_when_abandoned {
            invocation.connection.set_stopped_when_abandoned(None);
        }
        let next = invocation.take_next();
        finish::complete(invocation, &outcome, beside, reply);
        if let Some(document) = watch::end(invocation, outcome.as_ref().err(), has_run, reply.size_bytes()) {
            Box::pin(watch::write_profile(invocation, &invocation.database, document)).await;
        }
        match next {
            _ if invocation.connection.client.is_ending() => Some(NextInvocation::Close),
            // An error ends a stream; a connection that is to close closes.
            Some(NextInvocation::Again(_)) if outcome.is_err() => None,
            next => next,
        }
    }

    async fn staged(
        &self,
        invocation: &Invocation,
        reply: &mut DocBuilder,
        beside: &mut Option<DocBuilder>,
        has_run: &mut bool,
    ) -> Result<()> {
        let mut holds: Vec<Hold> = Vec::new();
        let outcome = self.enter_and_run(invocation, &mut holds, reply, beside, has_run).await;
        // What was taken last is given back first.
        while holds.pop().is_some() {}
        outcome
    }

    async fn enter_and_run(
        &self,
        invocation: &Invocation,
        holds: &mut Vec<Hold>,
        reply: &mut DocBuilder,
        beside: &mut Option<DocBuilder>,
        has_run: &mut bool,
    ) -> Result<()> {
        for stage in self.stages.iter() {
            match stage.enter(invocation) {
                Entered::Pass => {}
                Entered::Refuse(error) => return Err(error),
                Entered::Hold(hold) => holds.push(hold),
                Entered::Wait(waiting) => holds.extend(waiting.await?),
            }
        }
        if invocation.generic.wants_help {
            reply.append("help", format!("help for: {} {}", invocation.row.name, invocation.row.help));
            return Ok(());
        }
        *has_run = true;
        if let Err(error) = measured::run(invocation, deadline::run(invocation, reply)).await {
            for stage in self.stages.iter().rev() {
                if let Some(failing) = stage.fail(invocation, &error, beside.get_or_insert_default()) {
                    failing.await;
                }
            }
            return Err(error);
        }
        after_command::rest(invocation).await?;
        for stage in self.stages.iter().rev() {
            if let Some(leaving) = stage.leave(invocation, reply) {
                leaving.await?;
            }
        }
        Ok(())
    }

    /// The message, and what the connection does then.
    fn respond(
        &self,
        reply: ReplyBuilder,
        to: ReplyTo,
        reply_id: i32,
        is_silent: bool,
        next: Option<NextInvocation>,
    ) -> Response {
        let (is_stream, next) = match next {
            Some(NextInvocation::Close) => return Response { message: None, logical_bytes: 0, next: Next::Close },
            Some(NextInvocation::Again(body)) if !is_silent => (true, Next::Again(body)),
            _ => (false, Next::Read),
        };
        if is_silent {
            return Response { message: None, logical_bytes: 0, next };
        }
        self.encoded(reply, to, reply_id, is_stream, next)
    }

    fn encoded(&self, mut reply: ReplyBuilder, to: ReplyTo, id: i32, is_stream: bool, next: Next) -> Response {
        let logical_bytes = reply.body().size_bytes();
        match reply.finish(id, is_stream) {
            Ok(message) => Response { message: Some(message), logical_bytes, next },
            // A reply that is too large becomes an error that says so.
            Err(error) => {
                let mut reply = ReplyBuilder::new(to, Vec::new());
                finish::fail_early(&self.node, &error, reply.body());
                let logical_bytes = reply.body().size_bytes();
                Response { message: reply.finish(id, false).ok(), logical_bytes, next: Next::Read }
            }
        }
    }
}

impl RequestHandler for Dispatcher {
    type Connection = Arc<Attached>;

    fn connected(&self, peer: Peer) -> Arc<Attached> {
        let connection = ConnectionState::new(peer.connection_id, peer.remote, peer.local);
        let connection = Arc::new(connection.with_certificate(peer.certificate_subject));
        self.node.operations.note_connection(&connection.client);
        Arc::new(Attached { dispatcher: self.clone(), connection })
    }

    fn message_size_bytes_max(&self, attached: &Arc<Attached>) -> usize {
        before_login::message_size_bytes_max(&self.node, &attached.connection)
    }

    fn kind(&self, command: &Command) -> RequestKind {
        let row = self.node.table.find(command.name()).map(|entry| entry.row);
        // A row stands where it stands for as long as the process runs.
        let number = row.map_or(0, |row| std::ptr::from_ref(row).addr());
        RequestKind { number, place: row.map_or(Place::Requests, |row| row.place) }
    }

    fn handle(&self, attached: &Arc<Attached>, request: Request) -> BoxedFuture<'static, Response> {
        let attached = Arc::clone(attached);
        Box::pin(async move { attached.dispatcher.dispatch(&attached.connection, request).await })
    }

    fn refused(&self, _: &Arc<Attached>, refusal: &Refusal, buffer: Vec<u8>, reply_id: i32) -> Response {
        let protocol = if refusal.reaction == Reaction::ReplyLegacy { Protocol::Query } else { Protocol::Msg };
        let request_id = refusal.header.map_or(0, |header| header.request_id);
        let to = ReplyTo { request_id, protocol, checksum: false, compressor: None };
        let mut reply = ReplyBuilder::new(to, buffer);
        finish::fail_early(&self.node, &refusal.error, reply.body());
        self.encoded(reply, to, reply_id, false, Next::Read)
    }

    fn abandoned(&self, attached: &Arc<Attached>) {
        attached.connection.abandon();
    }

    fn closed(&self, attached: &Arc<Attached>) {
        attached.connection.abandon();
        pando_commands::security::give_up_attempt(&self.node, &attached.connection);
    }
}
