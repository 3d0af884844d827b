//! The stages that need nothing but the node. Those of later layers (sessions, tickets, tenants, shard versions, write
//! concern) join the list in `lists`.

use super::stage::{Entered, Stage};
use pando_base::{
    Component, DatabaseName, Error, ErrorCode, Namespace, Result, Severity, Timestamp, bail, ensure, log,
};
use pando_commands::{
    ACCEPT_API_VERSION_2, Class, CommandRow, ConnectionState, FAIL_COMMAND, FailCommand, GenericArguments, Invocation,
    NamespaceOf, NextInvocation, OpCounter, REQUIRE_API_VERSION, SecondaryOk, reply as replies, security,
    settings::check_user_write, stable_api, write_concern_labels,
};
use pando_doc::{DocBuilder, RawElement};
use pando_env::BoxedFuture;
use pando_repl::read_concern::ReadConcern;
use pando_security::{Action, Target};
use pando_session::{LogicalSessionId, MAX_SESSIONS};
use pando_wire::{Command, Protocol};
use std::time::Duration;

/// The database that a request is for; `found` is the field of its body that names it, if that was seen already.
pub(super) fn database_name(request: &Command, found: Option<RawElement<'_>>) -> Result<DatabaseName> {
    let found = found.filter(|_| request.protocol() == Protocol::Msg).and_then(|element| element.value()?.as_bytes());
    let name = match (found.or_else(|| request.database()), request.protocol()) {
        (Some(name), _) => std::str::from_utf8(name).map_err(|_| invalid(&name.to_string()))?,
        (None, Protocol::Query) => "",
        (None, Protocol::Msg) => match request.body().get("$db") {
            None => bail!(ErrorCode::location(40571), "OP_MSG requests require a $db argument"),
            Some(other) => bail!(
                ErrorCode::TypeMismatch,
                "BSON field '{}.$db' is the wrong type '{}', expected type 'string'",
                request.name(),
                other.value_type().name()
            ),
        },
    };
    DatabaseName::new(name).map_err(|_| invalid(name))
}

/// The collection that a request is about, if the command before it on this connection named the same.
pub(super) fn namespace_as_before(
    connection: &ConnectionState,
    row: &CommandRow,
    request: &Command,
    database: Option<RawElement<'_>>,
) -> Option<Namespace> {
    if row.namespace != NamespaceOf::FirstField || request.protocol() != Protocol::Msg {
        return None;
    }
    let first = request.body().raw_elements().next()?;
    connection.namespace_as_before(database?.value()?.as_bytes()?, first.value()?.as_bytes()?)
}

fn invalid(name: &str) -> Error {
    Error::new(ErrorCode::InvalidNamespace, format!("Invalid database name: '{name}'"))
}

/// Is it a name that a database can have?
pub(crate) struct Database;

impl Stage for Database {
    fn name(&self) -> &'static str {
        "database"
    }

    fn enter<'a>(&'a self, invocation: &'a Invocation) -> Entered<'a> {
        invocation.database.validate().into()
    }
}

/// Is the command part of the API that the client declared?
pub(crate) struct ApiVersion;

impl Stage for ApiVersion {
    fn name(&self) -> &'static str {
        "API version"
    }

    fn enter<'a>(&'a self, invocation: &'a Invocation) -> Entered<'a> {
        check_api(invocation).into()
    }
}

fn check_api(invocation: &Invocation) -> Result<()> {
    let (row, api) = (invocation.row, &invocation.generic.api);
    if row.skips_api_version_check {
        return Ok(());
    }
    let Some(version) = &api.version else {
        ensure!(
            api.strict.is_none() && api.deprecation_errors.is_none(),
            ErrorCode::location(4886600),
            "Provided apiStrict and/or apiDeprecationErrors without passing apiVersion"
        );
        let is_required = invocation.node.parameters.get(&REQUIRE_API_VERSION) && !invocation.connection.is_internal();
        ensure!(
            !is_required || invocation.generic.is_in_transaction(),
            ErrorCode::location(498870),
            "The apiVersion parameter is required, please configure your MongoClient's API version"
        );
        return Ok(());
    };
    let is_second = version == "2";
    let takes_second = invocation.node.parameters.get(&ACCEPT_API_VERSION_2);
    ensure!(!is_second || takes_second, ErrorCode::APIVersionError, "Cannot accept API version 2");
    ensure!(is_second || version == "1", ErrorCode::APIVersionError, "API version must be \"1\"");
    let is_deprecated = row.api_versions_deprecated.contains(&version.as_str());
    ensure!(
        api.deprecation_errors != Some(true) || !is_deprecated,
        ErrorCode::APIDeprecationError,
        "Provided apiDeprecationErrors:true, but the command {} is deprecated in API Version {version}",
        row.name
    );
    if api.deprecation_errors == Some(true) {
        stable_api::check_deprecated(invocation)?;
    }
    if api.strict != Some(true) {
        return Ok(());
    }
    stable_api::check_strict(invocation)?;
    let writes_scripts = row.class == Class::Write && invocation.namespace.collection() == "system.js";
    ensure!(
        !writes_scripts,
        ErrorCode::APIStrictError,
        "Provided apiStrict:true, but the command {} attempts to write to system.js",
        row.name
    );
    Ok(())
}

/// May the client do this? Without authentication: where, not who.
pub(crate) struct Authorization;

impl Stage for Authorization {
    fn name(&self) -> &'static str {
        "authorization"
    }

    fn enter<'a>(&'a self, invocation: &'a Invocation) -> Entered<'a> {
        if let Err(error) = check_admin_only(invocation) {
            return Entered::Refuse(error);
        }
        let (node, connection) = (&invocation.node, &invocation.connection);
        if !node.security.is_enabled {
            return check_local_only(invocation).into();
        }
        // Users or roles have changed since the client's was read.
        if security::is_outdated(node, connection) {
            return Entered::Wait(Box::pin(async move {
                security::refresh(node, connection).await;
                security::authorize(invocation).map(|()| None)
            }));
        }
        security::authorize(invocation).into()
    }
}

fn check_admin_only(invocation: &Invocation) -> Result<()> {
    ensure!(
        !invocation.row.is_admin_only || invocation.database.is_admin(),
        ErrorCode::Unauthorized,
        "{} may only be run against the admin database.",
        invocation.row.name
    );
    Ok(())
}

fn check_local_only(invocation: &Invocation) -> Result<()> {
    let row = invocation.row;
    ensure!(
        !row.is_local_without_authentication || invocation.connection.is_local(),
        ErrorCode::Unauthorized,
        "{} must run from localhost when running db without auth",
        row.name
    );
    Ok(())
}

/// The fail point `failCommand`.
pub(crate) struct FailCommandPoint;

impl Stage for FailCommandPoint {
    fn name(&self) -> &'static str {
        "fail point"
    }

    fn enter<'a>(&'a self, invocation: &'a Invocation) -> Entered<'a> {
        let acts = |data: &FailCommand| is_for(data, invocation) && data.acts_before();
        match FAIL_COMMAND.hit_if(acts) {
            None => Entered::Pass,
            Some(hit) => Entered::Wait(Box::pin(async move { fail(invocation, &hit).await.map(|()| None) })),
        }
    }

    fn leave<'a>(
        &'a self,
        invocation: &'a Invocation,
        reply: &'a mut DocBuilder,
    ) -> Option<BoxedFuture<'a, Result<()>>> {
        if !invocation.row.takes_write_concern {
            return None;
        }
        let hit = FAIL_COMMAND.hit_if(|data| is_for(data, invocation) && data.write_concern_error.is_some())?;
        if let Some(error) = &hit.write_concern_error {
            reply.append("writeConcernError", error);
            let code = hit.write_concern_code().filter(|code| *code != ErrorCode::OK);
            let labels = code.map(|code| write_concern_labels(code, invocation.row, &invocation.generic));
            replies::append_labels(&labels.unwrap_or_default(), hit.labels.as_ref(), reply);
        }
        None
    }
}

fn is_for(data: &FailCommand, invocation: &Invocation) -> bool {
    // The first hello tells who the client is, and may itself be what is to fail.
    let told = (!invocation.connection.is_greeted()).then(|| invocation.body().get("client")?.as_document()).flatten();
    let told = told.and_then(|client| client.get("application")?.as_document()?.get("name")?.as_str());
    let application = told.unwrap_or_else(|| invocation.connection.client.application());
    data.is_for(invocation.row, &invocation.connection, application, &invocation.namespace)
}

async fn fail(invocation: &Invocation, data: &FailCommand) -> Result<()> {
    let (node, name) = (&invocation.node, invocation.row.name);
    log!(
        node.log,
        Severity::Info,
        Component::Command,
        4898500,
        "Activating 'failCommand' failpoint",
        "command" = name,
        "appName" = invocation.connection.client.application(),
        "threadName" = invocation.connection.client.description()
    );
    if let Some(labels) = &data.labels {
        invocation.set_labels_in_place(labels.clone());
    }
    if let Some(block_ms) = data.block_time_ms()? {
        // The operation's time runs on meanwhile, and may be over first.
        let context = &invocation.context;
        let left_ns = context.deadline_ns().map_or(u64::MAX, |deadline| deadline.saturating_sub(context.now_ns()));
        let pause_ns = block_ms.saturating_mul(1_000_000).min(left_ns);
        context.interruptible(node.env.clock().sleep(Duration::from_nanos(pause_ns))).await?;
        context.check()?;
    }
    if data.closes_connection {
        invocation.set_next(NextInvocation::Close);
        bail!(ErrorCode::location(50985), "Failing command via 'failCommand' failpoint");
    }
    data.error().map_or(Ok(()), Err)
}

/// Do the session's fields fit together, and can they be served? A transaction number is never accepted and ignored.
pub(crate) struct SessionOptions;

impl Stage for SessionOptions {
    fn name(&self) -> &'static str {
        "session options"
    }

    fn enter<'a>(&'a self, invocation: &'a Invocation) -> Entered<'a> {
        check_session(invocation).and_then(|()| note_session(invocation)).into()
    }
}

/// A session that is named is in use.
fn note_session(invocation: &Invocation) -> Result<()> {
    // The sessions of nobody are not kept where everybody is somebody.
    if invocation.node.security.is_enabled && invocation.connection.identity().is_none() {
        return Ok(());
    }
    let (Some(session), Some(data)) = (&invocation.generic.session, &invocation.node.data) else { return Ok(()) };
    let count_max = usize::try_from(invocation.node.parameters.get(&MAX_SESSIONS)).unwrap_or(usize::MAX);
    let is_own = session.user.is_none_or(|user| user == invocation.user_digest());
    ensure!(
        is_own || invocation.acts_for_others(),
        ErrorCode::Unauthorized,
        "Unauthorized to set user digest in LogicalSessionId"
    );
    let session = LogicalSessionId::new(session.id, session.user.unwrap_or_else(|| invocation.user_digest()));
    data.session_cache.vivify(session, invocation.begun_ms(), count_max)
}

fn check_session(invocation: &Invocation) -> Result<()> {
    let (generic, row) = (&invocation.generic, invocation.row);
    let (number, refused) = (generic.transaction_number, ErrorCode::InvalidOptions);
    ensure!(
        number.is_none() || generic.session.is_some(),
        refused,
        "Transaction number requires a session ID to also be specified"
    );
    ensure!(number.is_none_or(|number| number >= 0), refused, "Transaction number cannot be negative");
    ensure!(
        generic.autocommit.is_none() || number.is_some(),
        refused,
        "'autocommit' field requires a transaction number to also be specified"
    );
    ensure!(generic.autocommit != Some(true), refused, "Specifying autocommit=true is not allowed.");
    ensure!(
        generic.autocommit.is_some() || generic.start_transaction.is_none(),
        refused,
        "'startTransaction' field requires 'autocommit' field to also be specified"
    );
    ensure!(generic.start_transaction != Some(false), refused, "Specifying startTransaction=false is not allowed.");
    // Only routers count the attempts of a transaction.
    ensure!(
        generic.transaction_retry_counter.is_none(),
        refused,
        "txnRetryCounter is only supported in sharded clusters"
    );
    if number.is_none() {
        return Ok(());
    }
    ensure!(
        invocation.node.replication.is_replica_set(),
        ErrorCode::IllegalOperation,
        "Transaction numbers are only allowed on a replica set member or mongos"
    );
    // Shards coordinate commits, and this is none.
    ensure!(
        generic.coordinator != Some(true) || generic.start_transaction != Some(true),
        ErrorCode::NotWritablePrimary,
        "Transaction coordinator is not a primary"
    );
    if generic.is_in_transaction() {
        ensure!(
            row.is_allowed_in_transaction,
            ErrorCode::OperationNotSupportedInTransaction,
            "Cannot run '{}' in a multi-document transaction.",
            row.name
        );
        return Ok(());
    }
    ensure!(
        row.is_retryable_write,
        ErrorCode::location(50768),
        "txnNumber may only be provided for multi-document transactions and retryable write commands. autocommit:false \
         was not provided, and {} is not a retryable write command.",
        row.name
    );
    Ok(())
}

/// Does the command take the concerns it was given?
pub(crate) struct Concerns;

impl Stage for Concerns {
    fn name(&self) -> &'static str {
        "concerns"
    }

    fn enter<'a>(&'a self, invocation: &'a Invocation) -> Entered<'a> {
        let (row, generic) = (invocation.row, &invocation.generic);
        if row.takes_read_concern && row.op_counter != OpCounter::GetMore {
            let concern = generic.read_concern.as_ref().map(|concern| concern.view());
            invocation.node.counters.read_concerns.count(concern, generic.is_in_transaction());
        }
        check_concerns(invocation).into()
    }
}

/// Commands whose answers belong to no time.
const BEYOND_TIMES: [&str; 5] = ["ping", "serverStatus", "currentOp", "validate", "mapReduce"];

fn check_concerns(invocation: &Invocation) -> Result<()> {
    let (generic, row) = (&invocation.generic, invocation.row);
    ensure!(
        row.takes_write_concern || generic.write_concern.is_none(),
        ErrorCode::InvalidOptions,
        "Command does not support writeConcern"
    );
    let Some(concern) = generic.read_concern.as_ref().filter(|_| !generic.is_in_transaction()) else { return Ok(()) };
    let concern = ReadConcern::parse(concern.view())?;
    let (level, is_after) = (concern.level.as_str(), concern.after_cluster_time.is_some());
    ensure!(
        !is_after || !BEYOND_TIMES.contains(&row.name),
        ErrorCode::InvalidOptions,
        "Command {} does not support afterClusterTime",
        row.name
    );
    let cause = match level {
        "local" => return Ok(()),
        _ if !row.takes_read_concern => "read concern not supported",
        "snapshot" if row.refuses_snapshot => "read concern snapshot not supported",
        _ => return Ok(()),
    };
    bail!(
        ErrorCode::InvalidOptions,
        "Command {} does not support {{ readConcern: {{ level: \"{level}\", provenance: \"clientSupplied\" }} }} :: caused \
         by :: {cause}",
        row.name
    )
}

/// Does the default read concern of the deployment apply, where a client gives none? Cursors have that of the command that made
/// them, and servers among themselves say what they want.
pub(super) fn takes_default_read_concern(
    row: &CommandRow,
    connection: &ConnectionState,
    generic: &GenericArguments,
) -> bool {
    row.takes_read_concern
        && row.op_counter != OpCounter::GetMore
        && !generic.is_in_transaction()
        && !connection.is_internal()
}

/// May this node serve it now?
pub(crate) struct Replication;

impl Stage for Replication {
    fn name(&self) -> &'static str {
        "replication"
    }

    fn enter<'a>(&'a self, invocation: &'a Invocation) -> Entered<'a> {
        check_replication(invocation).into()
    }
}

fn check_replication(invocation: &Invocation) -> Result<()> {
    let replication = &invocation.node.replication;
    let allows = invocation.generic.allows_secondary()? || invocation.request.secondary_ok();
    replication.check_can_run(invocation.row, &invocation.connection, allows)?;
    check_placement(invocation)?;
    match invocation.generic.cluster_time {
        // Monitors of drivers do not log in, and pass on what other connections heard: nobody listens to them.
        Some(_) if is_stranger(invocation) => Ok(()),
        Some(time) => {
            check_time_proof(invocation, time)?;
            replication.advance_cluster_time(time)
        }
        None => Ok(()),
    }
}

/// A router that knows a placement of the database takes this node for a shard.
fn check_placement(invocation: &Invocation) -> Result<()> {
    let database = invocation.database.as_str();
    let names_collection =
        matches!(invocation.row.namespace, NamespaceOf::FirstField | NamespaceOf::FirstFieldOrPipeline);
    let is_placed = names_collection && !matches!(database, "admin" | "config");
    ensure!(
        !invocation.generic.has_database_version || !is_placed,
        ErrorCode::StaleDbVersion,
        "No cached info for the database {database}"
    );
    Ok(())
}

/// Has the client not said who it is, where it could?
fn is_stranger(invocation: &Invocation) -> bool {
    invocation.node.security.is_enabled
        && invocation.row.is_allowed_before_authentication
        && invocation.connection.identity().is_none()
}

/// Whoever may not move the clock brings a proof that a server has given the time out.
fn check_time_proof(invocation: &Invocation, time: Timestamp) -> Result<()> {
    let is_believed =
        !invocation.node.replication.is_replica_set() || invocation.may(Target::Cluster, Action::AdvanceClusterTime);
    match is_believed {
        true => Ok(()),
        false => invocation.node.security.times.verify(time, invocation.generic.cluster_time_proof.as_ref()),
    }
}

/// May clients change collections and indexes now? Documents are asked for where they are written.
pub(crate) struct UserWrites;

impl Stage for UserWrites {
    fn name(&self) -> &'static str {
        "user writes"
    }

    fn enter<'a>(&'a self, invocation: &'a Invocation) -> Entered<'a> {
        let row = invocation.row;
        match row.class == Class::Catalog && row.secondary_ok == SecondaryOk::Never {
            true => check_user_write(invocation, &invocation.namespace).into(),
            false => Entered::Pass,
        }
    }
}

/// Sets the deadline of maxTimeMS. Whatever waits comes behind it.
pub(crate) struct Deadline;

impl Stage for Deadline {
    fn name(&self) -> &'static str {
        "deadline"
    }

    fn enter<'a>(&'a self, invocation: &'a Invocation) -> Entered<'a> {
        let max_time_ms = invocation.generic.max_time_ms;
        // To getMore it says how long to wait for documents.
        if max_time_ms > 0 && invocation.row.op_counter != OpCounter::GetMore {
            invocation.context.set_deadline_after(max_time_ms.saturating_mul(1_000_000));
        }
        Entered::Pass
    }
}
