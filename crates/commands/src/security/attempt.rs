//! One attempt to log in, from the question for the mechanisms to its end: what the log and serverStatus tell of it.
//!
//! A connection has one attempt at a time. It begins with hello's question, with a speculative beginning or with the command; each goes
//! on with the one before where that makes sense and puts an end to it otherwise. Whoever goes away in the middle has abandoned it.
//! Lines are written where `enableDetailedConnectionHealthMetricLogLines` says so; times are counted in any case.

use super::parameters::DETAILED_CONNECTION_LINES;
use crate::{ConnectionState, Invocation, Node};
use pando_base::{Component, Error, ErrorCode, LogValue, Severity, log};
use pando_doc::{DocRef, JsonFormat, doc_to_json};
use pando_security::{EXTERNAL_DATABASE, UserName};
use std::borrow::Cow;

/// More steps than any mechanism has.
const STEPS_MAX: usize = 8;

/// How far an attempt is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Stage {
    /// The client asked how a user may log in.
    Asked,
    /// It sent the beginning along with hello.
    Speculative,
    /// It sent a command.
    Commanded,
}

/// An attempt that has begun.
#[derive(Debug)]
pub struct Attempt {
    stage: Stage,
    begun_ns: u64,
    /// For whom hello was asked.
    asked_for: Option<UserName>,
    mechanism: String,
    user: UserName,
    is_speculative: bool,
    steps: Vec<StepTime>,
}

/// How long the server took for a step.
#[derive(Clone, Copy, Debug)]
struct StepTime {
    number: i32,
    total: i32,
    duration_ns: u64,
}

impl Attempt {
    fn new(stage: Stage, begun_ns: u64) -> Attempt {
        let user = UserName::new("", "");
        let mechanism = String::new();
        Attempt { stage, begun_ns, asked_for: None, mechanism, user, is_speculative: false, steps: Vec::new() }
    }

    /// Did hello ask for somebody else? Members may go on as anybody by their certificate.
    fn differs(&self, user: &UserName) -> Option<Error> {
        let asked = self.asked_for.as_ref()?;
        let is_internal = asked.user == UserName::internal().user;
        if is_internal && user.database == EXTERNAL_DATABASE && self.mechanism == super::state::X509 {
            return None;
        }
        let what = match (asked.database == user.database, asked.user == user.user || user.user.is_empty()) {
            (true, true) => return None,
            (false, _) => "database target",
            (true, false) => "user",
        };
        let reason = format!("Attempt to switch {what} during SASL authentication from {asked} to {user}");
        Some(Error::new(ErrorCode::ProtocolError, reason))
    }

    fn metrics(&self, duration_micros: u64) -> LogValue {
        let step = |step: &StepTime| {
            map(vec![
                ("step", step.number.into()),
                ("step_total", step.total.into()),
                ("duration_micros", (step.duration_ns / 1000).into()),
            ])
        };
        let summary = LogValue::List(self.steps.iter().map(step).collect());
        map(vec![("conversation_duration", map(vec![("micros", duration_micros.into()), ("summary", summary)]))])
    }
}

fn map(fields: Vec<(&'static str, LogValue)>) -> LogValue {
    LogValue::Map(fields.into_iter().map(|(name, value)| (Cow::Borrowed(name), value)).collect())
}

/// Hello asks how a user may log in.
pub(super) fn ask(invocation: &Invocation, user: &UserName) {
    let (node, connection) = (&invocation.node, &invocation.connection);
    overridden(node, connection);
    node.security.mechanisms_asked.increment();
    let mut attempt = Attempt::new(Stage::Asked, node.env.clock().monotonic_ns());
    attempt.asked_for = Some(user.clone());
    connection.set_attempt(attempt);
}

/// A proof begins.
pub(super) fn begin(invocation: &Invocation, mechanism: &str, database: &str, is_speculative: bool) {
    let (node, connection) = (&invocation.node, &invocation.connection);
    let now_ns = node.env.clock().monotonic_ns();
    let may_follow: &[Stage] = if is_speculative { &[Stage::Asked] } else { &[Stage::Asked, Stage::Speculative] };
    let before = connection.take_attempt();
    let stage = if is_speculative { Stage::Speculative } else { Stage::Commanded };
    let mut attempt = match before {
        Some(before) if may_follow.contains(&before.stage) => before,
        before => {
            before.into_iter().for_each(|before| fail_attempt(node, connection, &before, &abandoned(OVERRIDDEN)));
            Attempt::new(stage, now_ns)
        }
    };
    (attempt.stage, attempt.begun_ns, attempt.is_speculative) = (stage, now_ns, is_speculative);
    attempt.mechanism = mechanism.to_owned();
    connection.set_attempt(attempt);
    set_user(invocation, &UserName::new("", database));
}

/// It is known who the client says it is.
pub(super) fn set_user(invocation: &Invocation, user: &UserName) {
    let (node, connection) = (&invocation.node, &invocation.connection);
    let Some(mut attempt) = connection.take_attempt() else { return };
    if let Some(error) = attempt.differs(user) {
        attempt.asked_for = None;
        let log = node.log.with_context(connection.client.description());
        let message = "Different user name was supplied to saslSupportedMechs";
        log!(log, Severity::Info, Component::AccessControl, 5286202, message, "error" = &error);
    }
    attempt.user = user.clone();
    connection.set_attempt(attempt);
}

/// A step was taken that began at this time.
pub(super) fn add_step(invocation: &Invocation, number: i32, total: i32, begun_ns: u64) {
    let Some(mut attempt) = invocation.connection.take_attempt() else { return };
    let duration_ns = invocation.node.env.clock().monotonic_ns().saturating_sub(begun_ns);
    if attempt.steps.len() < STEPS_MAX {
        attempt.steps.push(StepTime { number, total, duration_ns });
    }
    invocation.connection.set_attempt(attempt);
}

/// The client is who it says.
pub(super) fn succeed(invocation: &Invocation) {
    let (node, connection) = (&invocation.node, &invocation.connection);
    let Some(attempt) = connection.take_attempt() else { return };
    tell(node, connection, &attempt, None);
}

/// The proof did not hold. A beginning that came with hello and did not hold may be followed by another.
pub(super) fn fail(invocation: &Invocation, error: &Error) {
    let (node, connection) = (&invocation.node, &invocation.connection);
    let Some(attempt) = connection.take_attempt() else { return };
    if attempt.stage == Stage::Speculative && attempt.steps.len() < 2 && error.code() == ErrorCode::AuthenticationFailed
    {
        connection.set_attempt(attempt);
        return;
    }
    fail_attempt(node, connection, &attempt, error);
}

/// The connection is at its end, and with it an attempt that has begun.
pub fn give_up_attempt(node: &Node, connection: &ConnectionState) {
    if let Some(attempt) = connection.take_attempt() {
        let error = abandoned("Authentication session abandoned, client has likely disconnected");
        fail_attempt(node, connection, &attempt, &error);
    }
}

const OVERRIDDEN: &str = "Overridden by new authentication session";

fn abandoned(reason: &str) -> Error {
    Error::new(ErrorCode::AuthenticationAbandoned, reason.to_owned())
}

fn overridden(node: &Node, connection: &ConnectionState) {
    if let Some(before) = connection.take_attempt() {
        fail_attempt(node, connection, &before, &abandoned(OVERRIDDEN));
    }
}

fn fail_attempt(node: &Node, connection: &ConnectionState, attempt: &Attempt, error: &Error) {
    tell(node, connection, attempt, Some(error));
}

fn tell(node: &Node, connection: &ConnectionState, attempt: &Attempt, error: Option<&Error>) {
    let duration_micros = node.env.clock().monotonic_ns().saturating_sub(attempt.begun_ns) / 1000;
    node.security.authentication_micros.add(duration_micros);
    if !node.parameters.get(&DETAILED_CONNECTION_LINES) {
        return;
    }
    let client = &connection.client;
    let log = node.log.with_context(client.description());
    let (id, message) = match error {
        None => (5286306, "Successfully authenticated"),
        Some(_) => (5286307, "Failed to authenticate"),
    };
    let metrics = attempt.metrics(duration_micros);
    let (is_internal, mechanism) = (attempt.user == UserName::internal(), attempt.mechanism.clone());
    let (user, database) = (attempt.user.user.clone(), attempt.user.database.clone());
    let (is_speculative, doc, nothing) = (attempt.is_speculative, metadata(connection), LogValue::Map(Vec::new()));
    match error {
        None => log!(
            log,
            Severity::Info,
            Component::AccessControl,
            id,
            message,
            "client" = client.remote(),
            "isSpeculative" = is_speculative,
            "isClusterMember" = is_internal,
            "mechanism" = mechanism,
            "user" = user,
            "db" = database,
            "result" = 0,
            "metrics" = metrics,
            "doc" = doc,
            "extraInfo" = nothing
        ),
        Some(error) => log!(
            log,
            Severity::Info,
            Component::AccessControl,
            id,
            message,
            "client" = client.remote(),
            "isSpeculative" = is_speculative,
            "isClusterMember" = is_internal,
            "mechanism" = mechanism,
            "user" = user,
            "db" = database,
            "error" = error,
            "result" = error.code().number(),
            "metrics" = metrics,
            "doc" = doc,
            "extraInfo" = nothing
        ),
    }
}

/// A first hello that asks for nobody: the client may never log in.
pub(crate) fn tell_of_no_attempt(invocation: &Invocation) {
    if !invocation.node.parameters.get(&DETAILED_CONNECTION_LINES) {
        return;
    }
    let (connection, client) = (&invocation.connection, &invocation.connection.client);
    let log = invocation.node.log.with_context(client.description());
    let (message, doc) = ("Connection not authenticating", metadata(connection));
    log!(
        log,
        log.client_severity(),
        Component::AccessControl,
        10483900,
        message,
        "client" = client.remote(),
        "doc" = doc
    );
}

/// What the client has said of itself.
fn metadata(connection: &ConnectionState) -> LogValue {
    let bytes = connection.client.metadata();
    let document = bytes.and_then(|bytes| DocRef::parse(bytes).ok()).unwrap_or(DocRef::EMPTY);
    LogValue::Json(doc_to_json(document, JsonFormat::Relaxed))
}
