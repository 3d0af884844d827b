//! `saslStart` and `saslContinue`, and the beginning of a proof that comes with `hello`.

use super::authenticate;
use super::conversation::{Payload, Start, go_on, start};
use crate::arguments::SafeInt;
use crate::{Access, CommandRow, Invocation, run_boxed};
use pando_base::Result;
use pando_doc::{DocBuilder, DocRef, Value};

pub(super) const START: CommandRow = CommandRow {
    name: "saslStart",
    help: "First step in a SASL authentication conversation.",
    run: |invocation, reply| run_boxed(run_start(invocation, reply)),
    is_allowed_before_authentication: true,
    is_in_api_version_1: true,
    is_stopped_when_abandoned: true,
    privileges: Access::Nothing,
    secret_fields: &["payload"],
    ..CommandRow::DEFAULT
};

pub(super) const CONTINUE: CommandRow = CommandRow {
    name: "saslContinue",
    help: "Subsequent steps in a SASL authentication conversation.",
    run: |invocation, reply| run_boxed(run_continue(invocation, reply)),
    ..START
};

crate::arguments! {
    /// What saslStart takes.
    struct StartArguments<'a> of "saslStart" lenient {
        /// How the client will prove who it is.
        mechanism: &'a str = "mechanism",
        /// Its first message.
        payload: Value<'a> = "payload",
        /// What it can do without.
        options: Option<DocRef<'a>> = "options",
        /// The database of the user, where it is not the request's.
        database: Option<&'a str> = "db",
    }
}

crate::arguments! {
    /// What saslContinue takes.
    struct ContinueArguments<'a> of "saslContinue" lenient {
        /// Which conversation.
        conversation: SafeInt = "conversationId",
        /// The next message.
        payload: Value<'a> = "payload",
    }
}

async fn run_start(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let arguments = StartArguments::parse(&invocation.request)?;
    let begun = Start {
        mechanism: arguments.mechanism,
        database: invocation.database.as_str(),
        payload: Payload::read(arguments.payload)?,
        options: arguments.options,
        is_speculative: false,
    };
    start(invocation, begun, reply).await
}

async fn run_continue(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let arguments = ContinueArguments::parse(&invocation.request)?;
    go_on(invocation, arguments.conversation.0, Payload::read(arguments.payload)?, reply).await
}

/// Begins the proof that came with hello. One that makes no sense is as if it had not come.
pub(crate) async fn speculate(invocation: &Invocation, request: DocRef<'_>, reply: &mut DocBuilder) {
    let mut answer = DocBuilder::new();
    let outcome = match request.first().map(|first| first.name.to_string()).as_deref() {
        Some("saslStart") => speculative_start(invocation, request, &mut answer).await,
        Some("authenticate") => authenticate::speculate(invocation, request, &mut answer).await,
        _ => return,
    };
    if matches!(outcome, Ok(true)) {
        reply.append("speculativeAuthenticate", answer.finish());
    }
}

async fn speculative_start(invocation: &Invocation, request: DocRef<'_>, answer: &mut DocBuilder) -> Result<bool> {
    let arguments = StartArguments::parse_document(request)?;
    let Some(database) = arguments.database else { return Ok(false) };
    let begun = Start {
        mechanism: arguments.mechanism,
        database,
        payload: Payload::read(arguments.payload)?,
        options: arguments.options,
        is_speculative: true,
    };
    start(invocation, begun, answer).await.map(|()| true)
}
