//! What settings mean: where to listen, where the data lies, how much memory, where the log goes.

use super::ProgramName;
use super::catalog::{CLUSTER_PASSWORD, HIDDEN, PASSWORD};
use super::config_file::json_of_text;
use super::settings::Settings;
use super::unmeant;
use crate::error::{PandoError, Result};
use pando_doc::{Doc, doc_from_json};
use pando_engine::{EngineOptions, Mode};
use pando_net::{HANDSHAKE_TIMEOUT_DEFAULT, NetOptions, Password, TlsMode, TlsOptions};
use pando_security::{ClusterAuthMode, Networks};
use pando_server::{ReplicationMode, SecurityOptions, ServerOptions, syslog_facility};
use pando_wire::Compressors;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

const PORT: i64 = 27017;

/// The set that a node starts by itself.
const OWN_SET: &str = "rs0";

/// Everything that a node needs to know.
#[derive(Debug)]
pub struct Plan {
    pub server: ServerOptions,
    pub engine: EngineOptions,
    /// How much memory the user wants for data, if they said so.
    pub memory_bytes: Option<u64>,
    pub data_directory: PathBuf,
    /// Where the key of the deployment is.
    pub key_file: Option<PathBuf>,
    pub log: LogPlan,
    pub runs_in_background: bool,
    pub process_id_file: Option<PathBuf>,
    /// Started by its own name by a person: then three lines say what they need to know.
    pub is_friendly: bool,
    /// Repairs the data and ends.
    pub repairs: bool,
}

/// Where the log goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogPlan {
    Output,
    System { facility: u8 },
    File { path: PathBuf, append: bool, renames: bool },
}

/// The meaning of the settings.
pub fn plan(name: ProgramName, settings: &Settings, words: &[OsString]) -> Result<Plan> {
    refuse_what_is_not_done(name, settings)?;
    let ignored = unmeant::judge(settings)?;
    let settings = &settings.clone().in_one_form();
    let replication = replication(name, settings)?;
    for parameter in ["internalValidateFeaturesAsPrimary", "internalValidateFeaturesAsMaster"] {
        let is_set = settings.parameters.iter().any(|(name, _)| name == parameter);
        if is_set && settings.text("replication.replSet").is_some() {
            return Err(argument(format!("Cannot specify both {parameter} and replication.replSet")));
        }
    }
    let is_secured = has_authentication(settings)?;
    let is_member = matches!(replication, ReplicationMode::ReplicaSet(_));
    let proves = settings.text("security.keyFile").or(settings.text("security.clusterAuthMode")).is_some();
    if is_secured && is_member && !proves {
        return Err(argument("security.keyFile is required when authorization is enabled with replica sets"));
    }
    let addresses = addresses(settings)?;
    let mode = if replication == ReplicationMode::StandAlone { Mode::StandAlone } else { Mode::ReplicaSet };
    let compressors = settings.text("net.compression.compressors").map(Compressors::from_setting).transpose();
    let is_read_only = settings.is_on("storage.queryableBackupMode");
    let data_directory = PathBuf::from(settings.text("storage.dbPath").unwrap_or(default_directory(name)));
    let server = ServerOptions {
        data_directory: Some(data_directory.clone()),
        net: NetOptions {
            addresses: addresses.clone(),
            socket_directory: socket_directory(settings),
            socket_paths: socket_paths(settings),
            socket_permissions: socket_permissions(settings)?,
            connections_max: connections_max(settings)?,
            compressors: compressors.map_err(|error| argument(error.reason()))?.unwrap_or_default(),
            tls: tls(settings)?,
        },
        replication,
        parameters: parameters(settings)?
            .into_iter()
            .chain(cluster_auth_mode(settings)?)
            .chain(cluster_sources(settings)?)
            .collect(),
        arguments: shown_words(words),
        parsed: settings.parsed(),
        process_name: if name == ProgramName::Mongos { "mongos" } else { "mongod" }.to_owned(),
        security: SecurityOptions { is_enabled: is_secured, key_file: None },
        is_scripting: settings.switch("security.javascriptEnabled").unwrap_or(true)
            && !settings.is_on("security.noscripting"),
        profile_level: profile_level(settings)?,
        profile_filter: profile_filter(settings)?,
        is_read_only,
        metrics_addresses: metrics_addresses(settings, &addresses)?,
        runs_tasks: true,
        ignored: ignored.iter().map(|ignored| (ignored.option, ignored.instead)).collect(),
    };
    Ok(Plan {
        server,
        engine: engine(settings, mode, is_read_only)?,
        memory_bytes: memory_bytes(settings)?,
        data_directory,
        key_file: settings.text("security.keyFile").map(PathBuf::from),
        log: log(settings)?,
        runs_in_background: settings.is_on("processManagement.fork"),
        process_id_file: settings.text("processManagement.pidFilePath").map(PathBuf::from),
        is_friendly: name == ProgramName::Pando,
        repairs: settings.is_on("storage.repair"),
    })
}

/// Where `/metrics` is served: on the node's own hosts.
fn metrics_addresses(settings: &Settings, addresses: &[String]) -> Result<Vec<String>> {
    let Some(port) = settings.whole("net.metricsPort") else { return Ok(Vec::new()) };
    let Some(port) = u16::try_from(port).ok().filter(|port| *port > 0) else {
        return Err(argument(format!("metricsPort has to be from 1 to 65535, not {port}")));
    };
    let hosts = addresses.iter().filter_map(|address| address.rsplit_once(':'));
    Ok(hosts.map(|(host, _)| format!("{host}:{port}")).collect())
}

fn argument(reason: impl Into<String>) -> PandoError {
    PandoError::Argument(reason.into())
}

/// An option that is ignored although somebody relies on it would be worse than none.
fn refuse_what_is_not_done(name: ProgramName, settings: &Settings) -> Result<()> {
    if settings.is_on("storage.queryableBackupMode") {
        for (is_given, name) in [
            (settings.is_on("storage.repair"), "repair"),
            (settings.is_on("storage.upgrade"), "upgrade"),
            (settings.whole("operationProfiling.profile").is_some_and(|level| level != 0), "profile"),
        ] {
            if is_given {
                return Err(argument(format!("Cannot specify both queryable backup mode and {name}")));
            }
        }
    }
    if name == ProgramName::Mongos {
        return Err(argument("the router is not there yet; start a node with `pando` or `mongod`"));
    }
    match settings.text("storage.engine") {
        None | Some("wiredTiger") => Ok(()),
        Some(other) => Err(argument(format!("Cannot start server with an unknown storage engine: {other}"))),
    }
}

/// How members authenticate, as the parameter that shows it.
fn cluster_auth_mode(settings: &Settings) -> Result<Option<(String, String)>> {
    let Some(name) = settings.text("security.clusterAuthMode") else {
        let by_key = settings.text("security.keyFile").map(|_| ClusterAuthMode::KeyFile);
        return Ok(by_key.map(|mode| ("clusterAuthMode".to_owned(), mode.name().to_owned())));
    };
    let Some(mode) = ClusterAuthMode::parse(name).filter(|mode| *mode != ClusterAuthMode::Undefined) else {
        return Err(argument(format!("unsupported value for clusterAuthMode {name}")));
    };
    let has_tls =
        !matches!(settings.text("net.tls.mode").or(settings.text("net.tls.modeOldName")), None | Some("disabled"));
    if mode.allows_certificate() && !has_tls {
        return Err(argument("need to enable TLS via the tlsMode flag"));
    }
    if mode != ClusterAuthMode::X509 && mode != ClusterAuthMode::SendX509 && settings.text("security.keyFile").is_none()
    {
        return Err(argument(format!("clusterAuthMode {name} needs a keyFile")));
    }
    Ok(Some(("clusterAuthMode".to_owned(), mode.name().to_owned())))
}

/// From where members may log in, as the parameter that keeps it.
fn cluster_sources(settings: &Settings) -> Result<Option<(String, String)>> {
    let names = ["security.clusterIpSourceAllowlist", "security.clusterIpSourceWhitelist"];
    let Some(sources) = names.into_iter().find_map(|name| settings.text(name)) else { return Ok(None) };
    if sources.is_empty() || Networks::read(sources).is_none() {
        return Err(argument(format!("clusterIpSourceAllowlist has to list addresses or networks, not '{sources}'")));
    }
    Ok(Some(("clusterIpSourceAllowlist".to_owned(), sources.to_owned())))
}

/// The words of the command line, without passwords.
fn shown_words(words: &[OsString]) -> Vec<String> {
    const OPTIONS: [&str; 2] = ["tlsCertificateKeyFilePassword", "tlsClusterPassword"];
    let mut is_password = false;
    let shown = |word: &OsString| {
        let word = word.to_string_lossy();
        let bare = word.trim_start_matches('-');
        if std::mem::replace(&mut is_password, OPTIONS.contains(&bare)) {
            return HIDDEN.to_owned();
        }
        match bare.split_once('=') {
            Some((option, _)) if OPTIONS.contains(&option) => format!("--{option}={HIDDEN}"),
            _ => word.into_owned(),
        }
    };
    words.iter().map(shown).collect()
}

/// How connections are encrypted.
fn tls(settings: &Settings) -> Result<Option<TlsOptions>> {
    let mode = match settings.text("net.tls.mode").or(settings.text("net.tls.modeOldName")) {
        None | Some("disabled") => return Ok(None),
        Some("allowTLS" | "allowSSL") => TlsMode::Allow,
        Some("preferTLS" | "preferSSL") => TlsMode::Prefer,
        Some("requireTLS" | "requireSSL") => TlsMode::Require,
        Some(other) => return Err(argument(format!("unsupported value for tlsMode {other}"))),
    };
    let Some(file) = settings.text("net.tls.certificateKeyFile") else {
        return Err(argument("need tlsCertificateKeyFile when TLS is enabled"));
    };
    let disabled = settings.text("net.tls.disabledProtocols").unwrap_or_default();
    Ok(Some(TlsOptions {
        mode,
        certificate_key_file: file.into(),
        certificate_key_password: settings.text(PASSWORD).map(|password| Password(password.to_owned())),
        member_key_file: settings.text("net.tls.clusterFile").map(PathBuf::from),
        member_key_password: settings.text(CLUSTER_PASSWORD).map(|password| Password(password.to_owned())),
        authorities_file: settings.text("net.tls.clusterCAFile").or(settings.text("net.tls.CAFile")).map(PathBuf::from),
        revocations_file: settings.text("net.tls.CRLFile").map(PathBuf::from),
        allows_no_certificate: settings.is_on("net.tls.allowConnectionsWithoutCertificates"),
        allows_invalid_certificates: settings.is_on("net.tls.allowInvalidCertificates"),
        handshake_timeout: Some(HANDSHAKE_TIMEOUT_DEFAULT),
        disabled_protocols: disabled
            .split(',')
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect(),
    }))
}

/// Have clients to log in? A key that members share says so as well.
fn has_authentication(settings: &Settings) -> Result<bool> {
    let by_word = match settings.text("security.authorization") {
        None => None,
        Some("enabled") => Some(true),
        Some("disabled") => Some(false),
        Some(_) => return Err(argument("security.authorization expects enabled or disabled")),
    };
    let (on, off) = (settings.is_on("security.auth"), settings.is_on("security.noauth"));
    if off && (on || by_word == Some(true)) {
        return Err(argument("--auth and --noauth exclude each other"));
    }
    // Who says how members authenticate wants that clients do.
    let has_members = settings.text("security.keyFile").or(settings.text("security.clusterAuthMode")).is_some();
    Ok(on || by_word == Some(true) || (has_members && !off && by_word.is_none()))
}

fn replication(name: ProgramName, settings: &Settings) -> Result<ReplicationMode> {
    // What must not change cannot take part in a set.
    let is_read_only = settings.is_on("storage.queryableBackupMode");
    let stands_alone = settings.is_on("replication.standalone") || is_read_only;
    match settings.text("replication.replSet") {
        Some(_) if is_read_only => Err(argument("Cannot specify both queryable backup mode and replication.replSet")),
        Some(_) if stands_alone => Err(argument("--standalone and --replSet exclude each other")),
        // A seed list may follow the name.
        Some(set) => Ok(ReplicationMode::ReplicaSet(set.split('/').next().unwrap_or(set).to_owned())),
        None if stands_alone || name == ProgramName::Mongod => Ok(ReplicationMode::StandAlone),
        None => Ok(ReplicationMode::OneMember(OWN_SET.to_owned())),
    }
}

fn addresses(settings: &Settings) -> Result<Vec<String>> {
    let port = settings.whole("net.port").unwrap_or(PORT);
    let port = u16::try_from(port).map_err(|_| argument(format!("Bad value for option net.port: {port}")))?;
    let is_six_wanted = settings.is_on("net.ipv6");
    let hosts: Vec<&str> = match settings.text("net.bindIp") {
        _ if settings.is_on("net.bindIpAll") => vec!["*"],
        None if is_six_wanted => vec!["127.0.0.1", "::1"],
        None => vec!["127.0.0.1"],
        Some(list) => list.split(',').map(str::trim).filter(|host| !host.is_empty()).collect(),
    };
    let hosts = hosts.into_iter().filter(|host| !is_path(host));
    let mut addresses: Vec<String> = hosts.map(|host| address(host, port, is_six_wanted)).collect();
    addresses.dedup();
    Ok(addresses)
}

fn address(host: &str, port: u16, is_six_wanted: bool) -> String {
    match host {
        // One socket on the IPv6 wildcard serves both kinds.
        "*" if is_six_wanted => format!("[::]:{port}"),
        "*" => format!("0.0.0.0:{port}"),
        "localhost" => format!("127.0.0.1:{port}"),
        host if host.contains(':') => format!("[{host}]:{port}"),
        host => format!("{host}:{port}"),
    }
}

/// Among the addresses may be sockets in the file system.
fn is_path(host: &str) -> bool {
    host.starts_with('/')
}

fn socket_paths(settings: &Settings) -> Vec<PathBuf> {
    let hosts = settings.text("net.bindIp").unwrap_or_default().split(',').map(str::trim);
    hosts.filter(|host| is_path(host)).map(PathBuf::from).collect()
}

fn socket_directory(settings: &Settings) -> Option<PathBuf> {
    let is_off = settings.is_on("net.unixDomainSocket.disabled")
        || settings.switch("net.unixDomainSocket.enabled") == Some(false);
    let directory = settings.text("net.unixDomainSocket.pathPrefix").unwrap_or("/tmp");
    (!is_off).then(|| PathBuf::from(directory))
}

/// The digits are those of an octal number, however many zeros are in front of them.
fn socket_permissions(settings: &Settings) -> Result<u32> {
    let Some(digits) = settings.whole("net.unixDomainSocket.filePermissions") else {
        return Ok(NetOptions::default().socket_permissions);
    };
    let permissions = u32::from_str_radix(&digits.to_string(), 8).ok().filter(|number| (1..=0o777).contains(number));
    permissions.ok_or_else(|| argument("filePermissions has to be an octal number from 1 to 777"))
}

fn profile_level(settings: &Settings) -> Result<i32> {
    match settings.text("operationProfiling.mode") {
        None | Some("off") if settings.whole("operationProfiling.profile").is_none() => Ok(0),
        Some("slowOp") => Ok(1),
        Some("all") => Ok(2),
        _ => Err(argument("Bad value for the profiler: 0 or off, 1 or slowOp, 2 or all")),
    }
}

fn profile_filter(settings: &Settings) -> Result<Option<Doc>> {
    const NAME: &str = "operationProfiling.filter";
    let wrong = |reason: &str| argument(format!("Failed to parse option {NAME}: {reason}"));
    let Some(text) = settings.text(NAME) else { return Ok(None) };
    let json = json_of_text(text, NAME).map_err(|reason| wrong(&reason))?;
    doc_from_json(&json).map(Some).map_err(|error| wrong(error.reason()))
}

fn connections_max(settings: &Settings) -> Result<u64> {
    let Some(number) = settings.whole("net.maxIncomingConnections") else {
        return Ok(NetOptions::default().connections_max);
    };
    u64::try_from(number).ok().filter(|number| *number >= 5).ok_or_else(|| argument("maxConns has to be at least 5"))
}

fn parameters(settings: &Settings) -> Result<Vec<(String, String)>> {
    let mut parameters = settings.parameters.clone();
    if let Some(level) = settings.whole("systemLog.verbosity") {
        parameters.push(("logLevel".to_owned(), level.clamp(0, 5).to_string()));
    }
    if let Some(seconds) = settings.decimal("storage.syncPeriodSecs") {
        parameters.push(("syncdelay".to_owned(), seconds.to_string()));
    }
    let components = component_verbosity(settings);
    if !components.is_empty() {
        parameters.push(("logComponentVerbosity".to_owned(), components));
    }
    if settings.is_on("operationProfiling.notablescan") {
        parameters.push(("notablescan".to_owned(), "true".to_owned()));
    }
    if settings.is_on("systemLog.quiet") {
        parameters.push(("quiet".to_owned(), "true".to_owned()));
    }
    if settings.is_on("security.redactClientLogData") {
        parameters.push(("redactClientLogData".to_owned(), "true".to_owned()));
    }
    if let Some(rate) = settings.decimal("operationProfiling.slowOpSampleRate") {
        parameters.push(("slowOpSampleRate".to_owned(), rate.to_string()));
    }
    if let Some(slow_ms) = settings.whole("operationProfiling.slowOpThresholdMs") {
        parameters.push(("slowms".to_owned(), slow_ms.to_string()));
    }
    Ok(parameters)
}

/// The parts of the server that are to say more or less, as the parameter takes them; empty if there are none.
fn component_verbosity(settings: &Settings) -> String {
    let mut tree = Level::default();
    for (name, level) in settings.component_verbosities() {
        let below = name.split('.').fold(&mut tree, |place, part| place.below.entry(part).or_default());
        below.own = Some(level.clamp(-1, 5));
    }
    if tree.below.is_empty() { String::new() } else { tree.to_json() }
}

/// A part of the server with those below it.
#[derive(Default)]
struct Level<'a> {
    own: Option<i64>,
    below: BTreeMap<&'a str, Level<'a>>,
}

impl Level<'_> {
    fn to_json(&self) -> String {
        let own = self.own.map(|level| format!("\"verbosity\": {level}"));
        let below = self.below.iter().map(|(name, level)| format!("\"{name}\": {}", level.to_json()));
        format!("{{{}}}", own.into_iter().chain(below).collect::<Vec<_>>().join(", "))
    }
}

fn engine(settings: &Settings, mode: Mode, read_only: bool) -> Result<EngineOptions> {
    let mut options = EngineOptions { mode, read_only, ..EngineOptions::default() };
    let as_parameter = settings.parameters.iter().rev().find(|(name, _)| name == "syncdelay");
    // What is no number is refused where parameters are set.
    let as_parameter = as_parameter.and_then(|(_, value)| value.parse().ok());
    if let Some(seconds) = settings.decimal("storage.syncPeriodSecs").or(as_parameter) {
        let wrong = |_| argument(format!("Bad value for option storage.syncPeriodSecs: {seconds}"));
        options.checkpoint_interval = Duration::try_from_secs_f64(seconds).map_err(wrong)?;
    }
    if let Some(interval) = settings.whole("storage.journal.commitIntervalMs") {
        let fits = u64::try_from(interval).ok().filter(|interval| (1..=500).contains(interval));
        let interval = fits.ok_or_else(|| argument("--journalCommitInterval out of allowed range (1-500ms)"))?;
        options.commit_interval = Duration::from_millis(interval);
    }
    if let Some(megabytes) = settings.whole("replication.oplogSizeMB") {
        let fits = u64::try_from(megabytes).ok().filter(|megabytes| *megabytes > 0);
        options.oplog_bytes_max = fits.ok_or_else(|| argument("bad --oplogSize, arg must be greater than 0"))? << 20;
    }
    if let Some(hours) = settings.decimal("storage.oplogMinRetentionHours") {
        let is_sound = hours.is_finite() && hours >= 0.0;
        let wrong = || argument("bad --oplogMinRetentionHours, argument must be greater or equal to 0");
        options.oplog_retention_min_ms = is_sound.then_some((hours * 3_600_000.0) as u64).ok_or_else(wrong)?;
    }
    Ok(options)
}

fn memory_bytes(settings: &Settings) -> Result<Option<u64>> {
    let Some(gigabytes) = settings.decimal("storage.wiredTiger.engineConfig.cacheSizeGB") else { return Ok(None) };
    if !(0.25..=10_000.0).contains(&gigabytes) {
        return Err(argument("wiredTigerCacheSizeGB must be between 0.25 and 10000"));
    }
    Ok(Some((gigabytes * (1_u64 << 30) as f64) as u64))
}

fn log(settings: &Settings) -> Result<LogPlan> {
    let renames = match settings.text("systemLog.logRotate") {
        None | Some("rename") => true,
        Some("reopen") => false,
        Some(_) => return Err(argument("unknown value for logRotate")),
    };
    let append = settings.is_on("systemLog.logAppend");
    match settings.text("systemLog.destination") {
        Some("file") if settings.text("systemLog.path").is_none() => {
            return Err(argument("systemLog.path is required if systemLog.destination is file"));
        }
        None | Some("file" | "syslog") => {}
        Some(other) => return Err(argument(format!("unknown value for systemLog.destination: {other}"))),
    }
    match settings.text("systemLog.timeStampFormat") {
        None | Some("iso8601-utc" | "iso8601-local") => {}
        Some(_) => return Err(argument("timeStampFormat has to be iso8601-utc or iso8601-local")),
    }
    if settings.is_on("systemLog.syslog") || settings.text("systemLog.destination") == Some("syslog") {
        return system_log(settings);
    }
    match settings.text("systemLog.path") {
        Some(_) if !renames && !append => Err(argument("logAppend must equal true if logRotate is set to reopen")),
        Some(path) => Ok(LogPlan::File { path: path.into(), append, renames }),
        None if settings.is_on("processManagement.fork") => {
            Err(argument("--fork has to be used with --logpath or --syslog"))
        }
        None => Ok(LogPlan::Output),
    }
}

fn system_log(settings: &Settings) -> Result<LogPlan> {
    if settings.text("systemLog.path").is_some() {
        return Err(argument("Cant use both a logpath and syslog "));
    }
    let name = settings.text("systemLog.syslogFacility").unwrap_or("user");
    let facility = syslog_facility(name).ok_or_else(|| argument(format!("ERROR: syslogFacility must be set to a string representing one of the possible syslog facilities, not {name}")))?;
    Ok(LogPlan::System { facility })
}

fn default_directory(name: ProgramName) -> &'static str {
    if name == ProgramName::Pando { crate::DATA_DIRECTORY } else { "/data/db" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::command_line::{command, settings};
    use pando_env::simulated::Simulation;

    fn planned_settings(line: &str) -> Settings {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let matches = command(ProgramName::Mongod).try_get_matches_from(&words).unwrap();
        settings(&Simulation::new(1).env(), &matches).unwrap()
    }

    fn planned(line: &str) -> Result<Plan> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        let name = ProgramName::of(words.first());
        let matches = command(name).try_get_matches_from(&words).map_err(|error| argument(error.to_string()))?;
        plan(name, &settings(&Simulation::new(1).env(), &matches)?, &words)
    }

    #[test]
    fn u12_without_options_a_node_is_a_set_of_its_own() {
        let plan = planned("pando").unwrap();
        assert_eq!(plan.server.replication, ReplicationMode::OneMember("rs0".into()));
        assert_eq!(
            (plan.server.net.addresses.join(" "), plan.data_directory),
            ("127.0.0.1:27017".into(), "./pando-data".into())
        );
        assert_eq!((plan.log, plan.engine.mode, plan.is_friendly), (LogPlan::Output, Mode::ReplicaSet, true));
    }

    #[test]
    fn u12_under_the_name_of_mongod_it_stands_alone() {
        let plan = planned("/usr/bin/mongod --dbpath /x --port 1234 --bind_ip_all").unwrap();
        assert_eq!((plan.server.replication, plan.engine.mode), (ReplicationMode::StandAlone, Mode::StandAlone));
        assert_eq!((plan.server.net.addresses.join(" "), plan.data_directory), ("0.0.0.0:1234".into(), "/x".into()));
        assert_eq!(planned("mongod").unwrap().data_directory, PathBuf::from("/data/db"));
        assert_eq!(planned("pando --standalone").unwrap().server.replication, ReplicationMode::StandAlone);
        let reading = planned("pando --queryableBackupMode").unwrap();
        assert_eq!((reading.server.replication, reading.engine.read_only), (ReplicationMode::StandAlone, true));
        for other in ["--replSet x", "--repair", "--upgrade", "--profile 1"] {
            assert!(planned(&format!("mongod --queryableBackupMode {other}")).is_err(), "{other}");
        }
        assert!(planned("mongod --replSet x --setParameter internalValidateFeaturesAsPrimary=0").is_err());
        assert!(planned("mongod --setParameter internalValidateFeaturesAsPrimary=0").is_ok());
        for (word, name) in [("--quiet", "quiet"), ("--notablescan", "notablescan")] {
            let plan = planned(&format!("mongod {word}")).unwrap();
            assert!(plan.server.parameters.contains(&(name.to_owned(), "true".to_owned())), "{word}");
        }
        let still = planned("mongod --replSet x --setParameter syncdelay=0").unwrap();
        assert_eq!(still.engine.checkpoint_interval, Duration::ZERO);
        let set = planned("mongod --replSet x/a:1,b:2").unwrap();
        assert_eq!(set.server.replication, ReplicationMode::ReplicaSet("x".into()));
    }

    #[test]
    fn u12_usual_options_are_understood() {
        let line = "mongod --storageEngine wiredTiger --wiredTigerCacheSizeGB 0.5 --logpath /l --logappend -v \
                    --setParameter enableTestCommands=1 --setParameter a=b=c --slowms 5 --maxConns 10 --fork \
                    --bind_ip localhost,::1,example.org --nounixsocket --journal --oplogSize 3 --oplogMinRetentionHours 1.5 --pidfilepath /p \
                    --networkMessageCompressors zlib --timeStampFormat iso8601-utc --directoryperdb";
        let plan = planned(line).unwrap();
        assert_eq!(plan.memory_bytes, Some(1 << 29));
        assert_eq!(plan.server.net.addresses, ["127.0.0.1:27017", "[::1]:27017", "example.org:27017"]);
        assert_eq!(plan.log, LogPlan::File { path: "/l".into(), append: true, renames: true });
        let expected = [("enableTestCommands", "1"), ("a", "b=c"), ("logLevel", "1"), ("slowms", "5")];
        assert_eq!(plan.server.parameters, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        assert!(plan.server.test_commands_enabled() && plan.runs_in_background);
        assert_eq!((plan.server.net.connections_max, plan.engine.oplog_bytes_max), (10, 3 << 20));
        assert_eq!(plan.engine.oplog_retention_min_ms, 5_400_000);
        let shown = plan.server.parsed.get("setParameter").unwrap().as_document().unwrap();
        assert_eq!(shown.get("a").unwrap().as_str(), Some("b=c"));
        let parsed = planned("mongod --auth --enableMajorityReadConcern true --logpath /l").unwrap().server.parsed;
        let expected = pando_doc::doc! {
            "replication": { "enableMajorityReadConcern": true }, "security": { "authorization": "enabled" },
            "systemLog": { "destination": "file", "path": "/l" }
        };
        assert_eq!(parsed, expected);
    }

    #[test]
    fn u11_metrics_are_served_where_the_node_listens_if_a_port_is_given() {
        assert!(planned("pando").unwrap().server.metrics_addresses.is_empty());
        let plan = planned("pando --bind_ip localhost,example.org --metricsPort 9216").unwrap();
        assert_eq!(plan.server.metrics_addresses, ["127.0.0.1:9216", "example.org:9216"]);
        assert!(planned("pando --metricsPort 0").is_err() && planned("pando --metricsPort 70000").is_err());
    }

    #[test]
    fn u10_encryption_needs_a_certificate() {
        let line =
            "mongod --tlsMode preferTLS --tlsCertificateKeyFile /k --tlsCAFile /a --tlsDisabledProtocols TLS1_0,TLS1_2";
        let tls = planned(line).unwrap().server.net.tls.unwrap();
        assert_eq!((tls.mode, tls.disabled_protocols.len()), (TlsMode::Prefer, 2));
        assert!(!tls.allows_no_certificate && tls.authorities_file.is_some());
        assert!(planned("mongod --tlsMode disabled").unwrap().server.net.tls.is_none());
    }

    #[test]
    fn u10_who_wants_clients_to_log_in_says_so() {
        for (line, is_enabled) in [
            ("mongod", false),
            ("mongod --auth", true),
            ("mongod --noauth", false),
            ("mongod --keyFile k", true),
            ("mongod --keyFile k --noauth", false),
            ("pando --auth --bind_ip_all", true),
        ] {
            assert_eq!(planned(line).unwrap().server.security.is_enabled, is_enabled, "{line}");
        }
    }

    #[test]
    fn u12_sockets_in_the_file_system_are_there_unless_switched_off() {
        let plan = planned("mongod --port 5 --bind_ip localhost,/run/x.sock --filePermissions 0770").unwrap();
        let net = plan.server.net;
        assert_eq!((net.addresses, net.socket_directory), (vec!["127.0.0.1:5".to_owned()], Some("/tmp".into())));
        assert_eq!((net.socket_paths, net.socket_permissions), (vec!["/run/x.sock".into()], 0o770));
        let plan = planned("mongod --nounixsocket").unwrap();
        assert_eq!((plan.server.net.socket_directory, plan.server.net.socket_permissions), (None, 0o700));
        let plan = planned("mongod --unixSocketPrefix /run").unwrap();
        assert_eq!(plan.server.net.socket_directory, Some("/run".into()));
    }

    #[test]
    fn u12_the_log_and_the_profiler_are_set_at_start() {
        let plan = planned("mongod --syslog --syslogFacility local3 --profile 2 --slowOpSampleRate 0.5").unwrap();
        assert_eq!((plan.log, plan.server.profile_level), (LogPlan::System { facility: 19 }, 2));
        let profiling = plan.server.parsed.get("operationProfiling").unwrap().as_document().unwrap();
        assert_eq!(profiling.get("mode").unwrap().as_str(), Some("all"));
        assert!(plan.server.parameters.contains(&("slowOpSampleRate".to_owned(), "0.5".to_owned())));
        let mut settings = Settings::default();
        let filter = crate::serve::catalog::by_name("operationProfiling.filter").unwrap();
        settings.set(filter, "{$expr: {$lt: [{$rand: {}}, 0.01]}}").unwrap();
        let read = profile_filter(&settings).unwrap().unwrap();
        assert_eq!(read, pando_doc::doc! { "$expr": { "$lt": [{ "$rand": {} }, 0.01] } });
        settings.set(filter, "[1]").unwrap();
        assert!(profile_filter(&settings).is_err());
        let mut settings = Settings::default();
        for name in ["query", "replication.election"] {
            let choice = crate::serve::catalog::by_name(&format!("systemLog.component.{name}.verbosity")).unwrap();
            settings.set(choice, "2").unwrap();
        }
        assert_eq!(
            component_verbosity(&settings),
            "{\"query\": {\"verbosity\": 2}, \"replication\": {\"election\": {\"verbosity\": 2}}}"
        );
    }

    #[test]
    fn u12_passwords_of_keys_are_not_shown() {
        for line in [
            "mongod --tlsMode requireTLS --tlsCertificateKeyFile k --tlsCertificateKeyFilePassword secret",
            "mongod --tlsMode requireTLS --tlsCertificateKeyFile k --tlsCertificateKeyFilePassword=secret",
        ] {
            let plan = planned(line).unwrap();
            let told = format!("{:?} {} {:?}", plan.server.arguments, plan.server.parsed, plan.server.net.tls);
            assert!(!told.contains("secret") && told.contains("<password>"), "{told}");
            let password = plan.server.net.tls.unwrap().certificate_key_password;
            assert_eq!(password, Some(Password("secret".to_owned())));
        }
    }

    #[test]
    fn u12_what_is_not_done_is_refused() {
        for line in [
            "mongod --port 70000",
            "mongod --auth --noauth",
            "mongod --keyFile k --clusterAuthMode x509",
            "mongod --clusterAuthMode keyFile",
            "mongod --keyFile k --clusterAuthMode by-word",
            "mongod --tlsMode requireTLS",
            "mongod --storageEngine mmapv1",
            "mongos",
            "mongod --fork",
            "pando --standalone --replSet x",
            "mongod --nonsense",
            "mongod --setParameter x",
            "mongod --journalCommitInterval 0",
            "mongod --maxConns 1",
            "mongod --shardsvr",
            "mongod --nojournal",
            "mongod --replSet x --auth",
            "mongod --enableMajorityReadConcern false",
            "mongod --timeStampFormat ctime",
            "mongod --profile 3",
            "mongod --filePermissions 8",
            "mongod --syslog --logpath /x",
            "mongod --syslog --syslogFacility nonsense",
        ] {
            assert!(planned(line).is_err(), "{line}");
        }
    }

    #[test]
    fn u12_the_command_line_goes_before_the_file() {
        let env = Simulation::new(2).env();
        let path = std::path::Path::new("mongod.conf");
        let file = env.disk().open(path, pando_env::OpenMode::CreateNew).unwrap();
        file.write_at(b"net: { port: 1, bindIp: 10.0.0.1 }\nsetParameter: { a: 1, b: 2 }", 0).unwrap();
        let words: Vec<OsString> =
            "mongod -f mongod.conf --port 2 --setParameter a=3".split(' ').map(OsString::from).collect();
        let settings = settings(&env, &command(ProgramName::Mongod).try_get_matches_from(&words).unwrap()).unwrap();
        let plan = plan(ProgramName::Mongod, &settings, &words).unwrap();
        assert_eq!(plan.server.net.addresses, ["10.0.0.1:2"]);
        assert_eq!(
            plan.server.parameters,
            [("b", "2"), ("a", "3")].map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        let everywhere = settings.clone().overridden_by(planned_settings("mongod --bind_ip_all"));
        let plan = super::plan(ProgramName::Mongod, &everywhere, &words).unwrap();
        assert_eq!(plan.server.net.addresses, ["0.0.0.0:2"]);
        let here = everywhere.overridden_by(planned_settings("mongod --bind_ip 127.0.0.2"));
        let plan = super::plan(ProgramName::Mongod, &here, &words).unwrap();
        assert_eq!(plan.server.net.addresses, ["127.0.0.2:2"]);
    }
}
