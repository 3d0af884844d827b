//! The parameters of authentication.

use pando_base::{AnyParameter, ErrorCode, Parameter, Result, Settable, ensure};
use pando_security::Networks;
use pando_security::scram::Mechanism;

/// The first user can be made from this machine without authentication.
pub static ENABLE_LOCALHOST_AUTH_BYPASS: Parameter<bool> = Parameter::new(
    "enableLocalhostAuthBypass",
    true,
    "Lets clients on this machine create the first user without authentication.",
)
.settable(Settable::AtStartup);

/// How clients may prove who they are.
pub static AUTHENTICATION_MECHANISMS: Parameter<str> = Parameter::new(
    "authenticationMechanisms",
    "MONGODB-X509,SCRAM-SHA-1,SCRAM-SHA-256",
    "The mechanisms by which clients may prove who they are, with commas between.",
)
.settable(Settable::AtStartup);

/// How often new passwords are hashed for SCRAM-SHA-1.
pub static SCRAM_ITERATION_COUNT: Parameter<i32> =
    Parameter::new("scramIterationCount", 10_000, "How often new passwords are hashed for SCRAM-SHA-1.").at_least(5000);

/// How often new passwords are hashed for SCRAM-SHA-256.
pub static SCRAM_SHA_256_ITERATION_COUNT: Parameter<i32> =
    Parameter::new("scramSHA256IterationCount", 15_000, "How often new passwords are hashed for SCRAM-SHA-256.")
        .at_least(5000);

/// How long a client waits for the answer to a failed attempt.
pub static AUTH_FAILED_DELAY_MS: Parameter<i32> =
    Parameter::new("authFailedDelayMs", 0, "Milliseconds before a failed authentication is answered.")
        .at_least(0)
        .at_most(5000)
        .settable(Settable::AtStartup);

/// From where the deployment's servers may come. It is the option of the same name.
pub static CLUSTER_SOURCES: Parameter<str> = Parameter::new(
    "clusterIpSourceAllowlist",
    "",
    "Addresses and CIDR ranges from which members may log in; null for any. A running node takes an array.",
)
.aliases(&["clusterIpSourceWhitelist"])
.validator(check_sources);

fn check_sources(text: &str) -> Result<()> {
    let is_right = text.is_empty() || Networks::read(text).is_some();
    ensure!(is_right, ErrorCode::BadValue, "clusterIpSourceAllowlist must be addresses or CIDR ranges, not '{text}'");
    Ok(())
}

/// How much is told of connections and logins.
pub(super) static DETAILED_CONNECTION_LINES: Parameter<bool> = Parameter::new(
    "enableDetailedConnectionHealthMetricLogLines",
    true,
    "Writes a line to the log for each attempt to log in, and for each client that makes none.",
);

/// How members authenticate to each other. It is the option of the same name; a running node may go on a step.
pub static CLUSTER_AUTH_MODE: Parameter<str> = Parameter::new(
    "clusterAuthMode",
    "undefined",
    "How members authenticate to each other: keyFile, sendKeyFile, sendX509 or x509. A running node goes from one to the next.",
);

/// Certificates of members are no users'.
pub static ENFORCE_USER_CLUSTER_SEPARATION: Parameter<bool> = Parameter::new(
    "enforceUserClusterSeparation",
    true,
    "Refuses users whose certificates could be taken for those of members.",
)
.settable(Settable::AtStartup);

/// The form of the documents of users and roles: the one that MongoDB has had since 3.0, and the only one here.
static AUTH_SCHEMA_VERSION: Parameter<i32> =
    Parameter::new("authSchemaVersion", 5, "The form of the documents of users and roles.").settable(Settable::Never);

/// The parameters of this area.
pub static PARAMETERS: &[&dyn AnyParameter] = &[
    &super::KEYS_ROTATION_INTERVAL_SECONDS,
    &AUTHENTICATION_MECHANISMS,
    &AUTH_FAILED_DELAY_MS,
    &AUTH_SCHEMA_VERSION,
    &CLUSTER_AUTH_MODE,
    &CLUSTER_SOURCES,
    &DETAILED_CONNECTION_LINES,
    &ENFORCE_USER_CLUSTER_SEPARATION,
    &ENABLE_LOCALHOST_AUTH_BYPASS,
    &SCRAM_ITERATION_COUNT,
    &SCRAM_SHA_256_ITERATION_COUNT,
];

/// Which parameter counts a mechanism's iterations.
pub(super) fn iterations(parameters: &pando_base::ParameterSet, mechanism: Mechanism) -> u32 {
    let count = match mechanism {
        Mechanism::ScramSha1 => parameters.get(&SCRAM_ITERATION_COUNT),
        Mechanism::ScramSha256 => parameters.get(&SCRAM_SHA_256_ITERATION_COUNT),
    };
    u32::try_from(count).unwrap_or(u32::MAX)
}
