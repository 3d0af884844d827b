//! The options: one list for the command line, the configuration file and `getCmdLineOpts`.
//!
//! Names are mongod's. What becomes of an option that has no meaning here, `unmeant` says.

/// What an option takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing: it is there or not. In a file: a boolean.
    Switch,
    /// Text.
    Text,
    /// A whole number.
    Whole,
    /// A number.
    Decimal,
    /// `name=value`, several times. In a file: a map.
    Pairs,
}

/// One option.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The name on the command line; empty for those that only a file has.
    pub flag: &'static str,
    /// One letter for it.
    pub short: Option<char>,
    /// The name in a file, dotted.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// For people; empty for those that are only accepted.
    pub help: &'static str,
}

impl Choice {
    /// Does it say how much a part of the server logs?
    pub fn is_component(&self) -> bool {
        self.name.starts_with("systemLog.component.")
    }
}

const fn choice(flag: &'static str, name: &'static str, kind: Kind, help: &'static str) -> Choice {
    Choice { flag, short: None, name, kind, help }
}

/// Other names in files for the same setting.
pub const OTHER_NAMES: &[(&str, &str)] = &[
    ("replication.replSetName", "replication.replSet"),
    ("net.ssl.mode", "net.tls.mode"),
    ("net.http.enabled", "net.httpInterface"),
];

/// The option whose value nobody is shown.
pub const PASSWORD: &str = "net.tls.certificateKeyFilePassword";

/// The password of the key for other members.
pub const CLUSTER_PASSWORD: &str = "net.tls.clusterPassword";
/// What is shown instead.
pub const HIDDEN: &str = "<password>";

/// What is asked on the command line, and what an old file may say it does not ask.
pub static ASKED: [Choice; 3] = [
    choice("", "help", Kind::Switch, ""),
    choice("", "sysinfo", Kind::Switch, ""),
    choice("", "version", Kind::Switch, ""),
];

/// All options.
pub const CHOICES: &[Choice] = &[
    Choice { short: Some('f'), ..choice("config", "config", Kind::Text, "Configuration file (YAML)") },
    choice("configExpand", "configExpand", Kind::Text, "What the file may take values from: exec, rest (none)"),
    choice("configExpandTimeoutSecs", "configExpandTimeoutSecs", Kind::Whole, "How long each of those may take (30)"),
    choice("port", "net.port", Kind::Whole, "Port to listen on (27017)"),
    choice("bind_ip", "net.bindIp", Kind::Text, "Addresses to listen on, with commas between (127.0.0.1)"),
    choice("bind_ip_all", "net.bindIpAll", Kind::Switch, "Listen on all addresses"),
    choice("ipv6", "net.ipv6", Kind::Switch, "Listen on IPv6 as well"),
    choice("maxConns", "net.maxIncomingConnections", Kind::Whole, "How many connections there may be at once"),
    choice("metricsPort", "net.metricsPort", Kind::Whole, "Serve /metrics for Prometheus on this port (off)"),
    choice("listenBacklog", "net.listenBacklog", Kind::Whole, ""),
    choice(
        "filePermissions",
        "net.unixDomainSocket.filePermissions",
        Kind::Whole,
        "Permissions of the Unix domain socket (0700)",
    ),
    choice(
        "unixSocketPrefix",
        "net.unixDomainSocket.pathPrefix",
        Kind::Text,
        "Directory of the Unix domain socket (/tmp)",
    ),
    choice("nounixsocket", "net.unixDomainSocket.disabled", Kind::Switch, "Listen on no Unix domain socket"),
    choice("", "net.unixDomainSocket.enabled", Kind::Switch, "Listen on a Unix domain socket (true)"),
    choice("", "net.wireObjectCheck", Kind::Switch, ""),
    choice("", "net.httpInterface", Kind::Switch, ""),
    choice("objcheck", "net.objectCheck", Kind::Switch, ""),
    choice(
        "networkMessageCompressors",
        "net.compression.compressors",
        Kind::Text,
        "Compressors that clients may use (snappy,zstd,zlib), or 'disabled'",
    ),
    choice("tlsMode", "net.tls.mode", Kind::Text, "Encryption: disabled, allowTLS, preferTLS or requireTLS"),
    choice("sslMode", "net.tls.modeOldName", Kind::Text, "The old name of tlsMode"),
    choice("tlsCertificateKeyFile", "net.tls.certificateKeyFile", Kind::Text, "This node's certificate and key (PEM)"),
    choice(
        "tlsCertificateKeyFilePassword",
        PASSWORD,
        Kind::Text,
        "What the key in the file is encrypted with (PKCS #8)",
    ),
    choice(
        "tlsClusterFile",
        "net.tls.clusterFile",
        Kind::Text,
        "The certificate and key for other members (PEM), if not the same",
    ),
    choice("tlsClusterPassword", CLUSTER_PASSWORD, Kind::Text, "What the key in that is encrypted with (PKCS #8)"),
    choice(
        "tlsClusterCAFile",
        "net.tls.clusterCAFile",
        Kind::Text,
        "The authorities for those who connect here, if not those of tlsCAFile",
    ),
    choice("tlsCAFile", "net.tls.CAFile", Kind::Text, "The authorities that clients' certificates are checked against"),
    choice("tlsCRLFile", "net.tls.CRLFile", Kind::Text, "What these authorities have revoked"),
    choice(
        "tlsAllowConnectionsWithoutCertificates",
        "net.tls.allowConnectionsWithoutCertificates",
        Kind::Switch,
        "Clients may have no certificate",
    ),
    choice(
        "tlsAllowInvalidCertificates",
        "net.tls.allowInvalidCertificates",
        Kind::Switch,
        "Clients may have a certificate that is not good, and then log in otherwise",
    ),
    choice("tlsAllowInvalidHostnames", "net.tls.allowInvalidHostnames", Kind::Switch, ""),
    choice("tlsDisabledProtocols", "net.tls.disabledProtocols", Kind::Text, "Versions not to speak: TLS1_2, TLS1_3"),
    choice("tlsLogVersions", "net.tls.logVersions", Kind::Text, ""),
    choice("dbpath", "storage.dbPath", Kind::Text, "Where the data lies (./pando-data; for mongod /data/db)"),
    choice("directoryperdb", "storage.directoryPerDB", Kind::Switch, ""),
    choice("storageEngine", "storage.engine", Kind::Text, "Accepted: wiredTiger, which means our engine"),
    choice("syncdelay", "storage.syncPeriodSecs", Kind::Decimal, "Seconds between checkpoints (60)"),
    choice(
        "journalCommitInterval",
        "storage.journal.commitIntervalMs",
        Kind::Whole,
        "How often the log is flushed (100)",
    ),
    choice("journal", "storage.journal.enabled", Kind::Switch, ""),
    choice("nojournal", "storage.journal.disabled", Kind::Switch, ""),
    choice("queryableBackupMode", "storage.queryableBackupMode", Kind::Switch, "Open the data without changing it"),
    choice(
        "oplogMinRetentionHours",
        "storage.oplogMinRetentionHours",
        Kind::Decimal,
        "Hours that entries of the oplog are kept at least, whatever its size (0)",
    ),
    choice(
        "wiredTigerCacheSizeGB",
        "storage.wiredTiger.engineConfig.cacheSizeGB",
        Kind::Decimal,
        "Memory for data, in GB",
    ),
    choice("wiredTigerJournalCompressor", "storage.wiredTiger.engineConfig.journalCompressor", Kind::Text, ""),
    choice("wiredTigerDirectoryForIndexes", "storage.wiredTiger.engineConfig.directoryForIndexes", Kind::Switch, ""),
    choice(
        "wiredTigerMaxCacheOverflowFileSizeGB",
        "storage.wiredTiger.engineConfig.maxCacheOverflowFileSizeGB",
        Kind::Decimal,
        "",
    ),
    choice("wiredTigerEngineConfigString", "storage.wiredTiger.engineConfig.configString", Kind::Text, ""),
    choice("zstdDefaultCompressionLevel", "storage.wiredTiger.engineConfig.zstdCompressionLevel", Kind::Whole, ""),
    choice(
        "wiredTigerCollectionBlockCompressor",
        "storage.wiredTiger.collectionConfig.blockCompressor",
        Kind::Text,
        "",
    ),
    choice("wiredTigerCollectionConfigString", "storage.wiredTiger.collectionConfig.configString", Kind::Text, ""),
    choice("wiredTigerIndexConfigString", "storage.wiredTiger.indexConfig.configString", Kind::Text, ""),
    choice("wiredTigerIndexPrefixCompression", "storage.wiredTiger.indexConfig.prefixCompression", Kind::Text, ""),
    choice("standalone", "replication.standalone", Kind::Switch, "Be no member of a replica set: plain mode, no oplog"),
    choice("replSet", "replication.replSet", Kind::Text, "Be a member of this set, and wait for replSetInitiate"),
    choice("oplogSize", "replication.oplogSizeMB", Kind::Whole, "Size of the oplog, in MB"),
    choice("enableMajorityReadConcern", "replication.enableMajorityReadConcern", Kind::Text, ""),
    choice("configsvr", "sharding.configsvr", Kind::Switch, ""),
    choice("shardsvr", "sharding.shardsvr", Kind::Switch, ""),
    choice("", "sharding.clusterRole", Kind::Text, ""),
    choice("configdb", "sharding.configDB", Kind::Text, ""),
    Choice { short: Some('v'), ..choice("verbose", "systemLog.verbosity", Kind::Whole, "Say more, from 1 to 5") },
    choice("quiet", "systemLog.quiet", Kind::Switch, "Log nothing about connections that come and go"),
    choice("logpath", "systemLog.path", Kind::Text, "Log to this file"),
    choice("logappend", "systemLog.logAppend", Kind::Switch, "Continue the log file that is there"),
    choice("logRotate", "systemLog.logRotate", Kind::Text, "What rotation does: rename or reopen"),
    choice("syslog", "systemLog.syslog", Kind::Switch, "Log to the system's log"),
    choice("syslogFacility", "systemLog.syslogFacility", Kind::Text, "Facility of the system's log (user)"),
    choice("", "systemLog.destination", Kind::Text, "Where the log goes: file, which needs a path, or syslog"),
    choice("timeStampFormat", "systemLog.timeStampFormat", Kind::Text, ""),
    choice("", "systemLog.traceAllExceptions", Kind::Switch, ""),
    choice("fork", "processManagement.fork", Kind::Switch, "Run in the background; needs --logpath"),
    choice("pidfilepath", "processManagement.pidFilePath", Kind::Text, "Write the process's number to this file"),
    choice("timeZoneInfo", "processManagement.timeZoneInfo", Kind::Text, ""),
    choice("auth", "security.auth", Kind::Switch, "Clients have to log in"),
    choice("noauth", "security.noauth", Kind::Switch, "Clients need not log in"),
    choice("", "security.authorization", Kind::Text, "Whether clients have to log in: enabled or disabled"),
    choice("keyFile", "security.keyFile", Kind::Text, "The key that members share; clients have to log in"),
    choice(
        "clusterAuthMode",
        "security.clusterAuthMode",
        Kind::Text,
        "How members authenticate: keyFile, sendKeyFile, sendX509 or x509",
    ),
    choice(
        "clusterIpSourceAllowlist",
        "security.clusterIpSourceAllowlist",
        Kind::Text,
        "Addresses and networks that members may log in from, with commas between (any)",
    ),
    choice("clusterIpSourceWhitelist", "security.clusterIpSourceWhitelist", Kind::Text, ""),
    choice("noscripting", "security.noscripting", Kind::Switch, "Run no JavaScript of clients"),
    choice("", "security.javascriptEnabled", Kind::Switch, "Run JavaScript of clients (true)"),
    choice(
        "redactClientLogData",
        "security.redactClientLogData",
        Kind::Switch,
        "Log no values of clients' documents and requests",
    ),
    choice(
        "slowms",
        "operationProfiling.slowOpThresholdMs",
        Kind::Whole,
        "From how many milliseconds an operation is slow",
    ),
    choice(
        "slowOpSampleRate",
        "operationProfiling.slowOpSampleRate",
        Kind::Decimal,
        "Which part of the slow operations is logged (1.0)",
    ),
    choice("profile", "operationProfiling.profile", Kind::Whole, "0: no profiling, 1: of slow operations, 2: of all"),
    choice("", "operationProfiling.mode", Kind::Text, "What is profiled: off, slowOp or all"),
    choice(
        "",
        "operationProfiling.filter",
        Kind::Text,
        "Which operations are profiled and logged, in place of the slow ones",
    ),
    choice(
        "notablescan",
        "operationProfiling.notablescan",
        Kind::Switch,
        "Refuse queries that would look at every document",
    ),
    choice("setParameter", "setParameter", Kind::Pairs, "Set a parameter: name=value"),
    choice("repair", "storage.repair", Kind::Switch, "Repair the data, then end"),
    choice("upgrade", "storage.upgrade", Kind::Switch, ""),
];

/// How much a part of the server says; only files have these.
const fn component(name: &'static str) -> Choice {
    choice("", name, Kind::Whole, "")
}

/// The parts of the server whose lines in the log can be more or fewer.
pub const COMPONENTS: &[Choice] = &[
    component("systemLog.component.accessControl.verbosity"),
    component("systemLog.component.assert.verbosity"),
    component("systemLog.component.command.verbosity"),
    component("systemLog.component.control.verbosity"),
    component("systemLog.component.executor.verbosity"),
    component("systemLog.component.geo.verbosity"),
    component("systemLog.component.globalIndex.verbosity"),
    component("systemLog.component.index.verbosity"),
    component("systemLog.component.network.verbosity"),
    component("systemLog.component.processHealth.verbosity"),
    component("systemLog.component.query.verbosity"),
    component("systemLog.component.queryStats.verbosity"),
    component("systemLog.component.replication.verbosity"),
    component("systemLog.component.replication.election.verbosity"),
    component("systemLog.component.replication.heartbeats.verbosity"),
    component("systemLog.component.replication.initialSync.verbosity"),
    component("systemLog.component.replication.rollback.verbosity"),
    component("systemLog.component.sharding.verbosity"),
    component("systemLog.component.sharding.rangeDeleter.verbosity"),
    component("systemLog.component.sharding.shardingCatalogRefresh.verbosity"),
    component("systemLog.component.sharding.migration.verbosity"),
    component("systemLog.component.sharding.reshard.verbosity"),
    component("systemLog.component.sharding.migrationPerf.verbosity"),
    component("systemLog.component.storage.verbosity"),
    component("systemLog.component.storage.recovery.verbosity"),
    component("systemLog.component.storage.journal.verbosity"),
    component("systemLog.component.storage.wt.verbosity"),
    component("systemLog.component.storage.wt.wtBackup.verbosity"),
    component("systemLog.component.storage.wt.wtCheckpoint.verbosity"),
    component("systemLog.component.storage.wt.wtCompact.verbosity"),
    component("systemLog.component.storage.wt.wtEviction.verbosity"),
    component("systemLog.component.storage.wt.wtHS.verbosity"),
    component("systemLog.component.storage.wt.wtRecovery.verbosity"),
    component("systemLog.component.storage.wt.wtRTS.verbosity"),
    component("systemLog.component.storage.wt.wtSalvage.verbosity"),
    component("systemLog.component.storage.wt.wtTiered.verbosity"),
    component("systemLog.component.storage.wt.wtTimestamp.verbosity"),
    component("systemLog.component.storage.wt.wtTransaction.verbosity"),
    component("systemLog.component.storage.wt.wtVerify.verbosity"),
    component("systemLog.component.storage.wt.wtWriteLog.verbosity"),
    component("systemLog.component.write.verbosity"),
    component("systemLog.component.ftdc.verbosity"),
    component("systemLog.component.network.asio.verbosity"),
    component("systemLog.component.network.bridge.verbosity"),
    component("systemLog.component.tracking.verbosity"),
    component("systemLog.component.transaction.verbosity"),
    component("systemLog.component.tenantMigration.verbosity"),
    component("systemLog.component.network.connectionPool.verbosity"),
    component("systemLog.component.test.verbosity"),
    component("systemLog.component.resourceConsumption.verbosity"),
];

/// The option with this name in a file.
pub fn by_name(name: &str) -> Option<&'static Choice> {
    let name = OTHER_NAMES.iter().find(|(other, _)| *other == name).map_or(name, |(_, same)| same);
    CHOICES.iter().chain(COMPONENTS).find(|choice| choice.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_other_names_lead_somewhere() {
        for (place, choice) in CHOICES.iter().enumerate() {
            let later = CHOICES.iter().skip(place + 1);
            let same =
                |other: &Choice| other.name == choice.name || (!other.flag.is_empty() && other.flag == choice.flag);
            assert!(!later.clone().any(same), "{choice:?}");
        }
        for (other, name) in OTHER_NAMES {
            assert!(by_name(name).is_some() && by_name(other).is_some(), "{other}");
        }
    }
}
