//! `authenticate`: proving who one is with the certificate of the connection (x.509).
//!
//! The certificate was checked when the connection began. Its subject is the user's name, in the database `$external`.

use super::attempt;
use super::conversation::{count, fail, succeed};
use super::identity::log_in;
use super::parameters::ENFORCE_USER_CLUSTER_SEPARATION;
use super::state::{X509, cluster_auth_mode, is_mechanism_enabled};
use super::storage::load_user;
use crate::{Access, CommandRow, Invocation, run_boxed};
use pando_base::{Error, ErrorCode, Result, ensure};
use pando_doc::{DocBuilder, DocRef};
use pando_security::{EXTERNAL_DATABASE, UserName};
use std::sync::Arc;

pub(super) const ROW: CommandRow = CommandRow {
    name: "authenticate",
    help: "internal",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    is_allowed_before_authentication: true,
    is_in_api_version_1: true,
    privileges: Access::Nothing,
    ..CommandRow::DEFAULT
};

crate::arguments! {
    /// What authenticate takes.
    struct Arguments<'a> of "authenticate" lenient {
        /// How; only by certificate.
        mechanism: Option<&'a str> = "mechanism",
        /// The certificate's subject, which may be left out.
        user: Option<&'a str> = "user",
        /// The database, in hello.
        database: Option<&'a str> = "db",
    }
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let arguments = Arguments::parse(&invocation.request)?;
    let database = invocation.database.as_str();
    let user = by_certificate(invocation, &arguments, database, false).await?;
    reply.append("dbname", database);
    reply.append("user", &user);
    Ok(())
}

/// The same, sent along with hello.
pub(super) async fn speculate(invocation: &Invocation, request: DocRef<'_>, answer: &mut DocBuilder) -> Result<bool> {
    let arguments = Arguments::parse_document(request)?;
    if arguments.mechanism != Some(X509) {
        return Ok(false);
    }
    let database = arguments.database.unwrap_or(EXTERNAL_DATABASE);
    let user = by_certificate(invocation, &arguments, database, true).await?;
    answer.append("dbname", database);
    answer.append("user", &user);
    Ok(true)
}

async fn by_certificate(
    invocation: &Invocation,
    arguments: &Arguments<'_>,
    database: &str,
    is_speculative: bool,
) -> Result<String> {
    let mechanism = arguments.mechanism.unwrap_or("MONGODB-CR");
    ensure!(mechanism == X509, ErrorCode::BadValue, "Unsupported authentication mechanism: {mechanism}");
    attempt::begin(invocation, X509, database, is_speculative);
    if let Some(counters) = invocation.node.security.counters_of(X509) {
        count(counters, is_speculative, false, false);
    }
    let subject = invocation.connection.certificate_subject().unwrap_or_default();
    let name = UserName::new(arguments.user.unwrap_or(subject), database);
    match prove(invocation, &name, subject).await {
        Ok(()) => {
            succeed(invocation, X509, &name, is_speculative);
            Ok(name.user)
        }
        Err(error) => Err(fail(invocation, X509, &name, error).await),
    }
}

async fn prove(invocation: &Invocation, name: &UserName, subject: &str) -> Result<()> {
    let node = &invocation.node;
    ensure!(is_mechanism_enabled(&node.parameters, X509), ErrorCode::BadValue, "{X509} authentication is disabled");
    ensure!(
        name.database == EXTERNAL_DATABASE,
        ErrorCode::ProtocolError,
        "X.509 authentication must always use the $external database."
    );
    ensure!(
        !subject.is_empty(),
        ErrorCode::AuthenticationFailed,
        "No verified subject name available from client; x.509 needs TLS with a client certificate"
    );
    ensure!(
        name.user == subject,
        ErrorCode::AuthenticationFailed,
        "There is no x.509 client certificate matching the user."
    );
    let generation = node.security.cache.generation();
    if node.security.is_member(subject) {
        let is_strict = invocation.generic.api.strict == Some(true);
        if cluster_auth_mode(&node.parameters).allows_certificate() {
            return log_in(node, &invocation.connection, Arc::clone(&node.security.internal), generation, is_strict);
        }
        ensure!(
            !node.parameters.get(&ENFORCE_USER_CLUSTER_SEPARATION),
            ErrorCode::AuthenticationFailed,
            "The provided certificate can only be used for cluster authentication, not client authentication. The current \
             configuration does not allow x.509 cluster authentication, check the --clusterAuthMode flag"
        );
    }
    let user = load_user(node, name).await?;
    let is_strict = invocation.generic.api.strict == Some(true);
    match user.document.is_external {
        true => log_in(node, &invocation.connection, user, generation, is_strict),
        false => Err(Error::new(ErrorCode::AuthenticationFailed, "the user is not an external one")),
    }
}
