//! A client's proof, step by step: what `saslStart`, `saslContinue` and the speculative beginning in `hello` share.
//!
//! A connection has one conversation at a time, so that attempts that are given up cost nothing. Every failure is answered
//! with the same words; what really was wrong is in the log. A name that nobody has gets an exchange like everybody else's,
//! which then fails.

use super::attempt;
use super::identity::{failed, log_in};
use super::parameters::{AUTH_FAILED_DELAY_MS, iterations};
use super::state::{MechanismCounters, X509, cluster_auth_mode, is_mechanism_enabled};
use super::storage::load_user;
use crate::{Invocation, Node};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pando_base::{Error, ErrorCode, Result, bail, ensure};
use pando_doc::{DocBuilder, DocRef, Value};
use pando_security::scram::{ClientFirst, Mechanism, ScramCredentials, ScramServer};
use pando_security::{EXTERNAL_DATABASE, User, UserName};
use std::sync::Arc;
use std::time::Duration;

/// The only conversation that a connection has.
const CONVERSATION_ID: i32 = 1;
/// Longer payloads are refused unread.
const PAYLOAD_BYTES_MAX: usize = 8192;

/// A proof that has begun.
#[derive(Debug)]
pub struct Conversation {
    mechanism: Mechanism,
    user: UserName,
    /// The client does not need the empty exchange at the end.
    skips_empty_exchange: bool,
    is_speculative: bool,
    /// Which state of users and roles the user was read in.
    generation: u64,
    step: Step,
}

#[derive(Debug)]
enum Step {
    /// The proof comes next. Without a user it fails.
    Proof(Box<ScramServer>, Option<Arc<User>>),
    /// The proof held; an empty message comes next.
    Closing(Arc<User>),
}

/// What a client sent.
pub(super) struct Payload {
    bytes: Vec<u8>,
    /// It came as text, and the answer goes as text.
    is_text: bool,
}

impl Payload {
    pub(super) fn read(value: Value<'_>) -> Result<Payload> {
        let payload = match value {
            Value::Binary { bytes, .. } if bytes.len() <= PAYLOAD_BYTES_MAX => {
                Payload { bytes: bytes.to_vec(), is_text: false }
            }
            Value::String(text) if text.len() <= PAYLOAD_BYTES_MAX => {
                let bytes = STANDARD.decode(&**text).map_err(|_| Error::bad_value("the payload is not base64"))?;
                Payload { bytes, is_text: true }
            }
            Value::Binary { .. } | Value::String(_) => return Err(Error::bad_value("the payload is too long")),
            other => bail!(
                ErrorCode::TypeMismatch,
                "BSON field 'payload' is the wrong type '{}', expected types '[string, binData]'",
                other.value_type().name()
            ),
        };
        Ok(payload)
    }
}

/// What saslStart asks for.
pub(super) struct Start<'a> {
    pub(super) mechanism: &'a str,
    pub(super) database: &'a str,
    pub(super) payload: Payload,
    pub(super) options: Option<DocRef<'a>>,
    pub(super) is_speculative: bool,
}

/// Begins a proof. Answers with the server's first message.
pub(super) async fn start(invocation: &Invocation, start: Start<'_>, reply: &mut DocBuilder) -> Result<()> {
    invocation.connection.take_conversation();
    attempt::begin(invocation, start.mechanism, start.database, start.is_speculative);
    let mechanism = Mechanism::named(start.mechanism).filter(|_| start.database != EXTERNAL_DATABASE);
    let unknown = || {
        let (name, database) = (start.mechanism, start.database);
        let reason = format!("Unsupported mechanism '{name}' on authentication database '{database}'");
        Error::new(ErrorCode::MechanismUnavailable, reason)
    };
    let Some(mechanism) = mechanism else {
        let error = unknown();
        attempt::fail(invocation, &error);
        return Err(error);
    };
    let begun_ns = invocation.node.env.clock().monotonic_ns();
    let is_text = start.payload.is_text;
    let outcome = first_step(invocation, mechanism, &start).await;
    let skips = skips_empty_exchange(&start);
    attempt::add_step(invocation, 1, steps_of(skips), begun_ns);
    match outcome {
        Ok((conversation, answer)) => {
            invocation.connection.begin_conversation(conversation);
            append_step(reply, false, answer.as_bytes(), is_text);
            Ok(())
        }
        Err(error) => {
            let name = ClientFirst::parse(&start.payload.bytes).map(|first| first.user).unwrap_or_default();
            let user = UserName::new(name, start.database);
            Err(fail(invocation, mechanism.name(), &user, error).await)
        }
    }
}

async fn first_step(
    invocation: &Invocation,
    mechanism: Mechanism,
    start: &Start<'_>,
) -> Result<(Conversation, String)> {
    let node = &invocation.node;
    let first = ClientFirst::parse(&start.payload.bytes)?;
    let name = internal_name(node, UserName::new(first.user.as_str(), start.database));
    attempt::set_user(invocation, &name);
    let is_internal = name == UserName::internal();
    if let Some(counters) = node.security.counters_of(mechanism.name()) {
        count(counters, start.is_speculative, is_internal, false);
    }
    ensure!(
        is_internal || is_mechanism_enabled(&node.parameters, mechanism.name()),
        ErrorCode::BadValue,
        "{} authentication is disabled",
        mechanism.name()
    );
    let generation = node.security.cache.generation();
    let (user, credentials) = credentials(node, mechanism, &name).await?;
    let mut nonce = [0; 24];
    node.env.random().fill(&mut nonce);
    let (server, answer) = ScramServer::begin(first, credentials, &STANDARD.encode(nonce))?;
    let conversation = Conversation {
        mechanism,
        user: name,
        skips_empty_exchange: skips_empty_exchange(start),
        is_speculative: start.is_speculative,
        generation,
        step: Step::Proof(Box::new(server), user),
    };
    Ok((conversation, answer))
}

fn skips_empty_exchange(start: &Start<'_>) -> bool {
    start.options.and_then(|options| options.get("skipEmptyExchange")).is_some_and(|skips| skips.is_true())
}

/// How many messages a client sends.
fn steps_of(skips_empty_exchange: bool) -> i32 {
    if skips_empty_exchange { 2 } else { 3 }
}

/// Tests let the deployment's servers log in on the database "admin" as well.
fn internal_name(node: &Node, name: UserName) -> UserName {
    let is_internal = name.user == UserName::internal().user;
    if is_internal && name.database == "admin" && node.options.test_commands_enabled {
        UserName::internal()
    } else {
        name
    }
}

/// The user with what is stored of their password; something that looks like it if there is nobody of this name.
async fn credentials(
    node: &Node,
    mechanism: Mechanism,
    name: &UserName,
) -> Result<(Option<Arc<User>>, Vec<ScramCredentials>)> {
    if *name == UserName::internal() {
        let credentials = node.security.internal_credentials(mechanism);
        ensure!(
            cluster_auth_mode(&node.parameters).allows_key(),
            ErrorCode::AuthenticationFailed,
            "The __system user may not log in with a key where clusterAuthMode is x509"
        );
        ensure!(
            !credentials.is_empty(),
            ErrorCode::AuthenticationFailed,
            "It is not possible to authenticate as the __system user on servers started without a --keyFile parameter"
        );
        return Ok((Some(Arc::clone(&node.security.internal)), credentials));
    }
    match load_user(node, name).await {
        Ok(user) => {
            let stored = user.document.credentials_for(mechanism).cloned();
            ensure!(
                stored.is_some(),
                ErrorCode::MechanismUnavailable,
                "Unable to use {0} based authentication for user without any {0} credentials registered",
                mechanism.name()
            );
            Ok((Some(user), stored.into_iter().collect()))
        }
        Err(error) if error.code() == ErrorCode::UserNotFound => {
            let count = iterations(&node.parameters, mechanism);
            let nobody = ScramCredentials::of_nobody(mechanism, &name.id(), &node.security.secret, count);
            Ok((None, vec![nobody]))
        }
        Err(error) => Err(error),
    }
}

/// Goes on with a proof.
pub(super) async fn go_on(invocation: &Invocation, id: i32, payload: Payload, reply: &mut DocBuilder) -> Result<()> {
    let Some(conversation) = invocation.connection.take_conversation() else {
        bail!(ErrorCode::ProtocolError, "No SASL session state found");
    };
    if id != CONVERSATION_ID {
        let error = Error::new(ErrorCode::ProtocolError, "sasl: Mismatched conversation id");
        attempt::fail(invocation, &error);
        return Err(error);
    }
    let begun_ns = invocation.node.env.clock().monotonic_ns();
    let Conversation { mechanism, user: name, skips_empty_exchange, is_speculative, generation, step } = conversation;
    let total = steps_of(skips_empty_exchange);
    let took_step = |number| attempt::add_step(invocation, number, total, begun_ns);
    let (user, answer, is_done) = match step {
        Step::Closing(user) if payload.bytes.is_empty() => {
            took_step(3);
            (user, String::new(), true)
        }
        Step::Closing(_) => {
            let error = Error::bad_value("the last message is not empty");
            return Err(fail(invocation, mechanism.name(), &name, error).await);
        }
        Step::Proof(server, user) => {
            let proven = server.finish(&payload.bytes);
            took_step(2);
            match (proven, user) {
                (Ok(answer), Some(user)) => (user, answer, skips_empty_exchange),
                (Ok(_), None) => return Err(fail(invocation, mechanism.name(), &name, failed()).await),
                (Err(error), user) => {
                    let error = if user.is_none() { super::storage::not_found(&name) } else { error };
                    return Err(fail(invocation, mechanism.name(), &name, error).await);
                }
            }
        }
    };
    if is_done {
        let is_strict = invocation.generic.api.strict == Some(true);
        if let Err(error) = log_in(&invocation.node, &invocation.connection, user, generation, is_strict) {
            return Err(fail(invocation, mechanism.name(), &name, error).await);
        }
        succeed(invocation, mechanism.name(), &name, is_speculative);
    } else {
        let step = Step::Closing(user);
        let rest = Conversation { mechanism, user: name, skips_empty_exchange, is_speculative, generation, step };
        invocation.connection.begin_conversation(rest);
    }
    append_step(reply, is_done, answer.as_bytes(), payload.is_text);
    Ok(())
}

fn append_step(reply: &mut DocBuilder, is_done: bool, answer: &[u8], is_text: bool) {
    reply.append("conversationId", CONVERSATION_ID);
    reply.append("done", is_done);
    match is_text {
        true => reply.append("payload", STANDARD.encode(answer)),
        false => reply.append("payload", Value::Binary { subtype: 0, bytes: answer }),
    }
}

/// The client is who it says.
pub(super) fn succeed(invocation: &Invocation, mechanism: &str, user: &UserName, is_speculative: bool) {
    if let Some(counters) = invocation.node.security.counters_of(mechanism) {
        count(counters, is_speculative, *user == UserName::internal(), true);
    }
    attempt::set_user(invocation, user);
    attempt::succeed(invocation);
}

/// The proof did not hold. Gives what the client is told.
pub(super) async fn fail(invocation: &Invocation, mechanism: &str, user: &UserName, error: Error) -> Error {
    let node = &invocation.node;
    attempt::set_user(invocation, user);
    attempt::fail(invocation, &error);
    let delay_ms = u64::try_from(node.parameters.get(&AUTH_FAILED_DELAY_MS)).unwrap_or(0);
    if delay_ms > 0 {
        let pause = node.env.clock().sleep(Duration::from_millis(delay_ms));
        // Whoever goes away meanwhile does not get an answer anyway.
        let _ = invocation.context.interruptible(pause).await;
    }
    match error.code() {
        ErrorCode::MechanismUnavailable | ErrorCode::ProtocolError => error,
        // Whoever has a certificate has proven who it is: that there is no such user is no secret.
        ErrorCode::UserNotFound if mechanism == X509 => error,
        _ => failed(),
    }
}

pub(super) fn count(counters: &MechanismCounters, is_speculative: bool, is_internal: bool, is_success: bool) {
    let pick = |received, successful| if is_success { successful } else { received };
    let MechanismCounters { received, successful, .. } = counters;
    let all: &pando_base::Counter = pick(received, successful);
    all.increment();
    if is_speculative {
        pick(&counters.speculative_received, &counters.speculative_successful).increment();
    }
    if is_internal {
        pick(&counters.cluster_received, &counters.cluster_successful).increment();
    }
}

/// Answers hello's question how a user may log in. For one who is not there, nothing is said.
pub(crate) async fn append_mechanisms_of(invocation: &Invocation, user: &str, reply: &mut DocBuilder) -> Result<()> {
    let node = &invocation.node;
    let (database, user) = user
        .split_once('.')
        .ok_or_else(|| Error::bad_value("UserName must contain a '.' separated database.user pair"))?;
    let name = internal_name(node, UserName::new(user, database));
    attempt::ask(invocation, &name);
    if name == UserName::internal() {
        let has_key = |mechanism: &Mechanism| !node.security.internal_credentials(*mechanism).is_empty();
        let names = Mechanism::ALL.into_iter().filter(has_key);
        reply.array("saslSupportedMechs", |array| names.for_each(|mechanism| array.push(mechanism.name())));
        return Ok(());
    }
    let Ok(user) = load_user(node, &name).await else { return Ok(()) };
    let is_enabled = |mechanism: &&'static str| is_mechanism_enabled(&node.parameters, mechanism);
    let names = match user.document.is_external {
        true => vec![X509],
        false => user.document.mechanisms(),
    };
    reply.array("saslSupportedMechs", |array| names.into_iter().filter(is_enabled).for_each(|name| array.push(name)));
    Ok(())
}
