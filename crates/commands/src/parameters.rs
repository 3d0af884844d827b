//! The parameters of dispatch and of the commands themselves.

use crate::settings::{DISABLE_TRANSITION_TO_LAST_CONTINUOUS, REQUIRE_CONFIRM};
use pando_base::{AnyParameter, Document, ErrorCode, Parameter, Result, Settable, ensure};

/// `{}`.
const EMPTY: &[u8] = b"\x05\x00\x00\x00\x00";

/// `{version: "7.0"}`.
const COMPATIBILITY: &[u8] = b"\x16\x00\x00\x00\x02version\x00\x04\x00\x00\x007.0\x00\x00";

/// The second API version, of which there are only test commands.
pub static ACCEPT_API_VERSION_2: Parameter<bool> = Parameter::new(
    "acceptApiVersion2",
    false,
    "Takes requests that declare API version 2, which has only test commands.",
)
.settable(Settable::AtStartup);

/// What an automation tells clients through hello.
pub static AUTOMATION_SERVICE_DESCRIPTOR: Parameter<str> = Parameter::new(
    "automationServiceDescriptor",
    "",
    "A text of an automation that hello shows to clients, 64 bytes at most.",
)
.validator(check_descriptor);

fn check_descriptor(text: &str) -> Result<()> {
    let limit = AUTOMATION_DESCRIPTOR_BYTES_MAX;
    ensure!(
        text.len() <= limit,
        ErrorCode::Overflow,
        "Value for parameter automationServiceDescriptor must be no more than {limit} bytes"
    );
    Ok(())
}

const AUTOMATION_DESCRIPTOR_BYTES_MAX: usize = 64;

/// Where a defect is written down.
pub static BACKTRACE_LOG_FILE: Parameter<str> = Parameter::new(
    "backtraceLogFile",
    "",
    "A file that gets the backtrace of a defect that ends a thread of the server.",
)
.settable(Settable::AtStartup);

/// Test commands are there.
pub static ENABLE_TEST_COMMANDS: Parameter<bool> =
    Parameter::new("enableTestCommands", false, "Offers commands and fail points that only tests should use.")
        .settable(Settable::AtStartup);

/// How long a node that a signal ends waits for those who are connected.
pub static SIGNALED_SHUTDOWN_MS: Parameter<i32> = Parameter::new(
    "shutdownTimeoutMillisForSignaledShutdown",
    15_000,
    "How long a node that a signal ends waits for those who are connected, in milliseconds.",
)
.at_least(0);

/// How deep documents may be nested.
pub static BSON_DEPTH_MAX: Parameter<i32> = Parameter::new(
    "maxBSONDepth",
    pando_doc::DEPTH_MAX as i32,
    "How many levels documents of messages may be nested; those that are stored have twenty less.",
)
.at_least(21)
.at_most(pando_doc::DEPTH_MOST as i32)
.settable(Settable::AtStartup);

/// How often there are checkpoints.
pub static SYNC_DELAY_SECONDS: Parameter<f64> =
    Parameter::new("syncdelay", 60.0, "Seconds between checkpoints; 0 for none but those that are asked for.")
        .at_least(0.0)
        .at_most(9_000_000.0)
        .settable(Settable::AtStartup);

/// How much the log says.
pub static LOG_LEVEL: Parameter<i32> =
    Parameter::new("logLevel", 0, "How much the log says, from 0 to 5.").at_least(0).at_most(5);

/// How much each part of the log says.
pub static LOG_COMPONENT_VERBOSITY: Parameter<Document> = Parameter::new(
    "logComponentVerbosity",
    EMPTY,
    "How much each part of the server says in the log: a document, nested like the parts.",
)
.validator(crate::administration::check_verbosity)
.text_parser(crate::administration::verbosity_from_text);

/// How much of an attribute is logged.
pub static MAX_LOG_SIZE_KB: Parameter<i32> =
    Parameter::new("maxLogSizeKB", 10, "How many kilobytes of an attribute are logged.").at_least(0);

/// Requests must declare their API version.
pub static REQUIRE_API_VERSION: Parameter<bool> =
    Parameter::new("requireApiVersion", false, "Refuses requests that do not declare an API version.").for_tests();

/// From when an operation is slow. MongoDB sets it with `profile` and `--slowms`; it is a parameter here as well.
pub static SLOW_MS: Parameter<i32> =
    Parameter::new("slowms", 100, "Operations that take longer than this many milliseconds are logged.");

/// How many of the slow operations are logged and profiled.
pub static SLOW_OP_SAMPLE_RATE: Parameter<f64> =
    Parameter::new("slowOpSampleRate", 1.0, "Which part of the slow operations is logged and profiled, from 0 to 1.")
        .at_least(0.0)
        .at_most(1.0);

/// Values of clients stay out of the log.
pub static REDACT_CLIENT_LOG_DATA: Parameter<bool> =
    Parameter::new("redactClientLogData", false, "Puts \"###\" in place of clients' values in the log.");

/// One filter for the profiler of every database may be set.
pub static QUERY_GLOBAL_PROFILE_FILTER: Parameter<bool> =
    Parameter::new("internalQueryGlobalProfilingFilter", false, "Allows setProfilingFilterGlobally.")
        .settable(Settable::AtStartup);

/// The version whose formats are written; follows the document in `admin.system.version`.
pub static FEATURE_COMPATIBILITY_VERSION: Parameter<Document> =
    Parameter::new("featureCompatibilityVersion", COMPATIBILITY, "The version whose data formats are written.")
        .settable(Settable::Never);

/// Collections that are not replicated may be clustered by any field.
pub static ARBITRARY_CLUSTER_KEY: Parameter<bool> = Parameter::new(
    "supportArbitraryClusterKeyIndex",
    false,
    "Clustered collections that are not replicated may have another key than _id.",
)
.settable(Settable::AtStartup)
.for_tests();

/// Clients come and go without a word.
pub static QUIET: Parameter<bool> = Parameter::new("quiet", false, "Logs nothing about connections that come and go.");

/// The one engine that runs queries, by the name that clients know.
pub const QUERY_FRAMEWORK_ONLY: &str = "forceClassicEngine";

/// Which of MongoDB's two engines clients want queries to be run by.
pub static QUERY_FRAMEWORK: Parameter<str> = Parameter::new(
    "internalQueryFrameworkControl",
    QUERY_FRAMEWORK_ONLY,
    "Names the engine that runs queries for clients that look there. There is one; a node that is started with another is warned.",
)
.validator(check_framework);

fn check_framework(name: &str) -> Result<()> {
    let known = [QUERY_FRAMEWORK_ONLY, "trySbeRestricted", "trySbeEngine"];
    ensure!(known.contains(&name), ErrorCode::BadValue, "Invalid value for internalQueryFrameworkControl: {name}");
    Ok(())
}

/// Defects show at the end.
pub static TESTING_DIAGNOSTICS: Parameter<bool> =
    Parameter::new("testingDiagnosticsEnabled", false, "A node in which a thread has failed ends with an error.")
        .settable(Settable::AtStartup);

/// The parameters of this crate.
pub static PARAMETERS: &[&dyn AnyParameter] = &[
    &ACCEPT_API_VERSION_2,
    &crate::handshake::REFUSE_SHORT_STREAMING_WAITS,
    &crate::handshake::STREAMING_WAIT_MS_MIN,
    &crate::settings::GATES_NEW_FEATURES,
    &ARBITRARY_CLUSTER_KEY,
    &AUTOMATION_SERVICE_DESCRIPTOR,
    &BACKTRACE_LOG_FILE,
    &BSON_DEPTH_MAX,
    &DISABLE_TRANSITION_TO_LAST_CONTINUOUS,
    &ENABLE_TEST_COMMANDS,
    &FEATURE_COMPATIBILITY_VERSION,
    &LOG_COMPONENT_VERBOSITY,
    &LOG_LEVEL,
    &SIGNALED_SHUTDOWN_MS,
    &SYNC_DELAY_SECONDS,
    &MAX_LOG_SIZE_KB,
    &QUERY_GLOBAL_PROFILE_FILTER,
    &QUERY_FRAMEWORK,
    &QUIET,
    &REDACT_CLIENT_LOG_DATA,
    &REQUIRE_API_VERSION,
    &REQUIRE_CONFIRM,
    &SLOW_MS,
    &SLOW_OP_SAMPLE_RATE,
    &TESTING_DIAGNOSTICS,
];
