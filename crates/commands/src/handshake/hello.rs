//! `hello`, and `isMaster` by its old name: who this node is, what it can do, and who is primary.
//!
//! A client that sends the topology version it knows, with a time that it will wait, gets its answer when the topology has
//! changed or the time is over. With exhaust the answers stream: each is followed by another without being asked for. That
//! is how drivers hear of a failover without polling.

use super::metadata::application_name;
use crate::arguments::{SafeBool, SafeInt, SafeLong, at_least};
use crate::security::{append_mechanisms_of, speculate, tell_of_no_attempt};
use crate::{
    Access, CommandRow, Invocation, MAX_WIRE_VERSION, MIN_WIRE_VERSION, NextInvocation, TopologyVersion, run_boxed,
};
use pando_base::{Component, ErrorCode, FailPoint, Gauge, Log, LogValue, Parameter, Result, ensure, log};
use pando_doc::{Doc, DocBuilder, DocRef, JsonFormat, ObjectId, Value, doc_to_json};
use pando_env::Place;
use pando_session::LOCAL_LOGICAL_SESSION_TIMEOUT_MINUTES;
use pando_wire::limits::{DOCUMENT_SIZE_BYTES_MAX, MESSAGE_SIZE_BYTES_MAX};
use std::time::Duration;

/// Makes hello wait until it is off.
pub static WAIT_IN_HELLO: FailPoint = FailPoint::new("waitInHello");

/// How long hello waits at least for those who have not logged in.
pub(crate) static STREAMING_WAIT_MS_MIN: Parameter<i64> = Parameter::new(
    "minWaitForStreamingHelloMillis",
    1000,
    "How long a hello that waits for a change waits at least before its client has logged in, in milliseconds.",
)
.at_least(0);

/// Whether shorter waits are refused.
pub(crate) static REFUSE_SHORT_STREAMING_WAITS: Parameter<bool> = Parameter::new(
    "abortStreamingHelloWithSmallTimeout",
    false,
    "Refuses hellos that would wait for less than minWaitForStreamingHelloMillis, rather than have them wait longer.",
);

/// How many statements a write command may have.
const WRITE_BATCH_SIZE_MAX: i32 = 100_000;

pub(super) const HELLO: CommandRow = CommandRow {
    name: "hello",
    help: "Check if this server is primary for a replica set\n{ hello : 1 }",
    run: |invocation, reply| run_boxed(run(invocation, reply, false)),
    is_allowed_before_authentication: true,
    is_in_api_version_1: true,
    is_stopped_when_abandoned: true,
    secret_fields: &["speculativeAuthenticate"],
    privileges: Access::Nothing,
    place: Place::Control,
    ..CommandRow::DEFAULT
};

pub(super) const IS_MASTER: CommandRow = CommandRow {
    name: "isMaster",
    aliases: &["ismaster"],
    help: "Check if this server is primary for a replica set\n{ isMaster : 1 }",
    run: |invocation, reply| run_boxed(run(invocation, reply, true)),
    is_in_api_version_1: false,
    ..HELLO
};

crate::arguments! {
    /// What hello takes. Unknown fields pass: clients of all ages say hello.
    struct HelloArguments<'a> of "hello" lenient {
        /// Who the client is.
        client: Option<Value<'a>> = "client",
        /// The compressors that the client offers.
        compression: Option<Vec<&'a str>> = "compression",
        /// The client is a server of ours.
        internal_client: Option<InternalClient<'a>> = "internalClient",
        /// Whose mechanisms are asked for: "database.user".
        mechanisms_of: Option<Value<'a>> = "saslSupportedMechs",
        /// The first message of an authentication.
        speculative: Option<DocRef<'a>> = "speculativeAuthenticate",
        /// The topology that the client knows.
        topology_version: Option<ClientTopologyVersion<'a>> = "topologyVersion",
        /// How long it will wait for another.
        wait_ms_max: Option<SafeLong> = "maxAwaitTimeMS",
        /// The client knows the words of hello.
        hello_ok: Option<SafeBool> = "helloOk",
    }
}

crate::arguments! {
    /// What a server of ours says of itself.
    struct InternalClient<'a> of "internalClient" {
        /// The oldest wire version it speaks.
        minimum: SafeInt = "minWireVersion" or SafeInt(0),
        /// The newest.
        maximum: SafeInt = "maxWireVersion",
    }
}

crate::arguments! {
    /// A topology version.
    struct ClientTopologyVersion<'a> of "topologyVersion" {
        /// Whose count it is.
        process_id: ObjectId = "processId",
        /// The count.
        counter: i64 = "counter",
    }
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder, is_legacy: bool) -> Result<()> {
    let arguments = HelloArguments::parse(&invocation.request)?;
    if WAIT_IN_HELLO.is_on() {
        invocation.context.interruptible(WAIT_IN_HELLO.pause_while_on()).await?;
    }
    let is_first = greet(invocation, &arguments)?;
    negotiate_compression(invocation, arguments.compression.as_deref(), reply);
    if let Some(SafeBool(is_ok)) = arguments.hello_ok {
        invocation.connection.set_supports_hello(is_ok);
        reply.append("helloOk", true);
    }
    let known = await_topology_change(invocation, &arguments, is_legacy).await?;
    let (node, connection) = (&invocation.node, &invocation.connection);
    let now_ms = node.now_ms();
    let current = node.replication.topology_version();
    node.replication.append_hello(connection, now_ms, is_legacy, reply);
    reply.append("maxBsonObjectSize", DOCUMENT_SIZE_BYTES_MAX as i32);
    reply.append("maxMessageSizeBytes", MESSAGE_SIZE_BYTES_MAX as i32);
    reply.append("maxWriteBatchSize", WRITE_BATCH_SIZE_MAX);
    reply.append("localTime", Value::DateTime(now_ms));
    let session_minutes = i64::from(node.parameters.get(&LOCAL_LOGICAL_SESSION_TIMEOUT_MINUTES));
    reply.append("logicalSessionTimeoutMinutes", i32::try_from(session_minutes).unwrap_or(i32::MAX));
    reply.append("connectionId", i32::try_from(connection.client.connection_id()).unwrap_or(i32::MAX));
    let minimum = match connection.is_internal() {
        true => crate::settings::oldest_wire_version(&node.parameters),
        false => MIN_WIRE_VERSION,
    };
    reply.append("minWireVersion", minimum);
    reply.append("maxWireVersion", MAX_WIRE_VERSION);
    reply.append("readOnly", node.options.is_read_only);
    let descriptor = node.parameters.get(&crate::AUTOMATION_SERVICE_DESCRIPTOR);
    if !descriptor.is_empty() {
        reply.append("automationServiceDescriptor", &*descriptor);
    }
    if let Some(user) = arguments.mechanisms_of {
        append_mechanisms_of(invocation, &user_of(user)?, reply).await?;
    } else if is_first {
        tell_of_no_attempt(invocation);
    }
    if let Some(request) = arguments.speculative {
        check_speculation(request)?;
        speculate(invocation, request, reply).await;
    }
    if invocation.is_exhaust() {
        ensure!(
            known.is_some(),
            ErrorCode::location(51756),
            "An isMaster or hello request with exhaust must specify 'maxAwaitTimeMS'"
        );
        invocation.set_next(NextInvocation::Again(next_request(invocation.body(), current)));
    }
    Ok(())
}

/// The first hello fixes who the client is; later ones may not say it again.
fn greet(invocation: &Invocation, arguments: &HelloArguments<'_>) -> Result<bool> {
    let connection = &invocation.connection;
    // Where somebody has to log in, only who has done so as a server is believed to be one.
    if arguments.internal_client.is_some() && !invocation.node.security.is_enabled {
        connection.set_internal();
    }
    if let Some(metadata) = arguments.client {
        ensure!(
            !connection.is_greeted(),
            ErrorCode::ClientMetadataCannotBeMutated,
            "The client metadata document may only be sent in the first hello"
        );
        let document = metadata.as_document();
        ensure!(document.is_some(), ErrorCode::TypeMismatch, "The client metadata document must be a document");
        let document = document.unwrap_or(DocRef::EMPTY);
        let is_router = invocation.node.options.process_name == "mongos";
        let application = application_name(document, is_router)?;
        connection.client.set_metadata(&application, document.to_doc().into_bytes());
        let log: Log = invocation.node.log.with_context(connection.client.description());
        log!(
            log,
            log.client_severity(),
            Component::Network,
            51800,
            "client metadata",
            "remote" = connection.client.remote(),
            "client" = connection.client.description(),
            "doc" = LogValue::Json(doc_to_json(document, JsonFormat::Relaxed))
        );
    }
    Ok(connection.greet())
}

/// A proof begins in one of two ways.
fn check_speculation(request: DocRef<'_>) -> Result<()> {
    let Some(first) = request.first() else {
        pando_base::bail!(ErrorCode::BadValue, "hello.speculativeAuthenticate must be a non-empty Object");
    };
    ensure!(
        first.name == "saslStart" || first.name == "authenticate",
        ErrorCode::location(51769),
        "hello.speculativeAuthenticate unknown command: {}",
        first.name
    );
    Ok(())
}

/// Agrees on compressors, or repeats what was agreed on.
fn negotiate_compression(invocation: &Invocation, offered: Option<&[&str]>, reply: &mut DocBuilder) {
    if let Some(offered) = offered {
        let agreed = invocation.node.options.compressors.negotiate(offered.iter().copied());
        invocation.connection.set_compressors(agreed);
    }
    let agreed = invocation.connection.compressors();
    if !agreed.is_empty() {
        reply.array("compression", |array| agreed.iter().for_each(|compressor| array.push(compressor.name())));
    }
}

/// Waits if the client wants that and knows the present topology. Gives back what the client knows.
async fn await_topology_change(
    invocation: &Invocation,
    arguments: &HelloArguments<'_>,
    is_legacy: bool,
) -> Result<Option<TopologyVersion>> {
    let (known, wait_ms) = match (&arguments.topology_version, arguments.wait_ms_max) {
        (None, None) => return Ok(None),
        (Some(known), Some(wait_ms)) => (known, patience(invocation, at_least("maxAwaitTimeMS", wait_ms.0, 0)?)?),
        (known, _) => {
            let code = ErrorCode::location(31368);
            ensure!(known.is_none(), code, "A request with a 'topologyVersion' must include 'maxAwaitTimeMS'");
            pando_base::bail!(code, "A request with 'maxAwaitTimeMS' must include a 'topologyVersion'");
        }
    };
    let known = TopologyVersion { process_id: known.process_id, counter: known.counter };
    let replication = &invocation.node.replication;
    let current = replication.topology_version();
    ensure!(known.counter >= 0, ErrorCode::location(31372), "topologyVersion must have a non-negative counter");
    if known.process_id != current.process_id {
        return Ok(Some(known));
    }
    ensure!(
        known.counter <= current.counter,
        ErrorCode::location(if replication.is_replica_set() { 31382 } else { 51764 }),
        "Received a topology version with counter: {} which is greater than the server topology version counter: {}",
        known.counter,
        current.counter
    );
    if known == current {
        wait(invocation, known.counter, wait_ms as u64, is_legacy).await?;
    }
    Ok(Some(known))
}

/// How long the client waits. One that has not logged in does not ask again and again.
fn patience(invocation: &Invocation, wait_ms: i64) -> Result<i64> {
    let least_ms = invocation.node.parameters.get(&STREAMING_WAIT_MS_MIN);
    if wait_ms >= least_ms || invocation.connection.identity().is_some() {
        return Ok(wait_ms);
    }
    let is_refused = invocation.node.parameters.get(&REFUSE_SHORT_STREAMING_WAITS);
    let code = ErrorCode::InvalidOptions;
    ensure!(!is_refused, code, "maxAwaitTimeMS of {wait_ms} ms is below the minimum of {least_ms} ms");
    Ok(least_ms)
}

async fn wait(invocation: &Invocation, counter: i64, wait_ms: u64, is_legacy: bool) -> Result<()> {
    let counters = &invocation.node.counters.hello;
    let streaming = if is_legacy { &counters.exhaust_is_master } else { &counters.exhaust_hello };
    let _awaiting = Raised::new(&counters.awaiting_topology_changes, true);
    let _streaming = Raised::new(streaming, invocation.is_exhaust());
    let changed = invocation.node.replication.topology_changed(counter);
    let over = invocation.node.env.clock().sleep(Duration::from_millis(wait_ms));
    let either = async {
        tokio::select! {
            biased;
            () = changed => {}
            () = over => {}
        }
    };
    invocation.context.interruptible(either).await
}

/// A gauge that is one higher while this lives.
struct Raised<'a>(Option<&'a Gauge>);

impl<'a> Raised<'a> {
    fn new(gauge: &'a Gauge, is_raised: bool) -> Raised<'a> {
        let gauge = is_raised.then_some(gauge);
        if let Some(gauge) = gauge {
            gauge.add(1);
        }
        Raised(gauge)
    }
}

impl Drop for Raised<'_> {
    fn drop(&mut self) {
        if let Some(gauge) = self.0 {
            gauge.add(-1);
        }
    }
}

/// The request as the client would send it after this answer.
fn next_request(body: DocRef<'_>, current: TopologyVersion) -> Doc {
    let mut next = DocBuilder::with_capacity(body.size_bytes());
    for element in body.raw_elements() {
        if element.name == "topologyVersion" {
            current.append_to(&mut next);
        } else {
            next.append_raw(element);
        }
    }
    next.finish()
}

/// The user whose mechanisms are asked for: `database.user`, or a document of both.
fn user_of(value: Value<'_>) -> Result<String> {
    let refused = |reason: &str| Err(pando_base::Error::bad_value(format!("UserName {reason}")));
    let document = match value {
        Value::String(name) => return Ok(name.to_string()),
        Value::Document(document) => document,
        other => {
            let reason = format!(
                "BSON field 'hello.saslSupportedMechs' is the wrong type '{}', expected types '[string, object]'",
                other.value_type().name()
            );
            return Err(pando_base::Error::type_mismatch(reason));
        }
    };
    for element in document.elements() {
        let is_known = element.name == "user" || element.name == "db";
        if !is_known {
            return refused(&format!("contains an unknown field named: '{}'", element.name));
        }
        if element.value.as_str().is_none() {
            return refused(&format!("must contain a string field named: {}", element.name));
        }
    }
    let text = |name: &str| document.get(name).and_then(|value| value.as_str());
    match (text("db"), text("user")) {
        (Some(database), Some(user)) => Ok(format!("{database}.{user}")),
        (_, None) => refused("must contain a field named: user"),
        (None, _) => refused("must contain a field named: db"),
    }
}
