//! Options of mongod that the program does nothing with: what each of them asks for, and what is said to somebody who asks.
//!
//! Nobody is to believe what is not so. What an option asks for may be so in any case (`harmless`); anything else is either refused, or
//! the node starts and warns. The list in docs/from-mongod.md is made from this one.

use super::catalog::{Choice, by_name};
use super::settings::Settings;
use crate::error::{PandoError, Result};

/// What happens to somebody who asks for what is not so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Otherwise {
    /// The node does not start.
    Refused,
    /// It starts, and the log has a warning that shells show.
    Warned,
}

/// An option without a meaning of its own.
#[derive(Clone, Copy, Debug)]
pub struct Unmeant {
    /// Its name in a file.
    pub name: &'static str,
    /// Values that ask for what is so in any case.
    pub harmless: &'static [&'static str],
    /// What follows from any other.
    pub otherwise: Otherwise,
    /// What is so instead.
    pub instead: &'static str,
}

const fn warned(name: &'static str, harmless: &'static [&'static str], instead: &'static str) -> Unmeant {
    Unmeant { name, harmless, otherwise: Otherwise::Warned, instead }
}

const fn refused(name: &'static str, harmless: &'static [&'static str], instead: &'static str) -> Unmeant {
    Unmeant { name, harmless, otherwise: Otherwise::Refused, instead }
}

const OWN_COMPRESSION: &str = "the storage engine chooses itself how it compresses";
const OWN_ENGINE: &str = "these are words for another storage engine";
const TOGETHER: &str = "all databases lie in the same files";
const CHECKED: &str = "documents of clients are always checked";
const JOURNAL: &str = "there is always a journal";
const NO_SHARDS: &str = "sharding is not there yet";

/// All of them.
pub const UNMEANT: &[Unmeant] = &[
    warned(
        "security.clusterIpSourceWhitelist",
        &[],
        "it is the old name of clusterIpSourceAllowlist and means the same",
    ),
    warned("net.listenBacklog", &[], "the system's limit holds"),
    warned("net.wireObjectCheck", &["true"], CHECKED),
    warned("net.objectCheck", &["true"], CHECKED),
    refused("net.httpInterface", &["false"], "there is no HTTP interface"),
    warned("net.tls.allowInvalidHostnames", &["false"], "this node calls no others whose names it could check"),
    warned("net.tls.logVersions", &["none"], "versions of TLS are not logged"),
    warned("storage.directoryPerDB", &["false"], TOGETHER),
    refused("storage.journal.enabled", &["true"], JOURNAL),
    refused("storage.journal.disabled", &["false"], JOURNAL),
    warned("storage.wiredTiger.engineConfig.journalCompressor", &["none"], "the journal is not compressed"),
    warned(
        "storage.wiredTiger.engineConfig.directoryForIndexes",
        &["false"],
        "indexes lie in the same files as documents",
    ),
    warned(
        "storage.wiredTiger.engineConfig.maxCacheOverflowFileSizeGB",
        &["0"],
        "the cache has no file to overflow into",
    ),
    warned("storage.wiredTiger.engineConfig.configString", &[""], OWN_ENGINE),
    warned("storage.wiredTiger.engineConfig.zstdCompressionLevel", &[], OWN_COMPRESSION),
    warned("storage.wiredTiger.collectionConfig.blockCompressor", &[], OWN_COMPRESSION),
    warned("storage.wiredTiger.collectionConfig.configString", &[""], OWN_ENGINE),
    warned("storage.wiredTiger.indexConfig.configString", &[""], OWN_ENGINE),
    warned("storage.wiredTiger.indexConfig.prefixCompression", &["true"], OWN_COMPRESSION),
    refused("replication.enableMajorityReadConcern", &["true", "1"], "read concern \"majority\" is always there"),
    refused("sharding.configsvr", &["false"], NO_SHARDS),
    refused("sharding.shardsvr", &["false"], NO_SHARDS),
    refused("sharding.clusterRole", &[], NO_SHARDS),
    refused("sharding.configDB", &[], NO_SHARDS),
    warned("systemLog.timeStampFormat", &["iso8601-utc"], "times in the log are universal time"),
    warned(
        "systemLog.traceAllExceptions",
        &["false"],
        "errors are not logged where they arise, but where they are handled",
    ),
    warned("processManagement.timeZoneInfo", &[], "the time zones are part of the program"),
    warned("storage.upgrade", &["false"], "there is nothing to upgrade"),
];

/// An option that has no effect, to be told at start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ignored {
    /// Its name in a file.
    pub option: &'static str,
    /// What is so instead.
    pub instead: &'static str,
}

/// Refuses what would promise something that is not so; gives the options that are to be warned of.
pub fn judge(settings: &Settings) -> Result<Vec<Ignored>> {
    let mut ignored = Vec::new();
    for unmeant in UNMEANT {
        let Some(value) = settings.shown(unmeant.name) else { continue };
        if unmeant.harmless.contains(&value.as_str()) {
            continue;
        }
        let Unmeant { name, instead, .. } = *unmeant;
        match unmeant.otherwise {
            Otherwise::Refused => {
                return Err(PandoError::Argument(format!("{name}: {value} cannot be had: {instead}")));
            }
            Otherwise::Warned => ignored.push(Ignored { option: name, instead }),
        }
    }
    Ok(ignored)
}

/// The list as a page shows it.
pub fn table() -> String {
    let mut page = "| option | asks for what is so | anything else | because |\n| --- | --- | --- | --- |\n".to_owned();
    for Unmeant { name, harmless, otherwise, instead } in UNMEANT {
        let flag = by_name(name).map_or("", |choice: &Choice| choice.flag);
        let flag = if flag.is_empty() { String::new() } else { format!("`--{flag}`, ") };
        let harmless: Vec<String> =
            harmless.iter().filter(|value| !value.is_empty()).map(|value| format!("`{value}`")).collect();
        let otherwise = match otherwise {
            Otherwise::Refused => "refused",
            Otherwise::Warned => "warning",
        };
        page.push_str(&format!("| {flag}`{name}` | {} | {otherwise} | {instead} |\n", harmless.join(", ")));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::catalog::CHOICES;

    #[test]
    fn u12_each_option_has_a_meaning_or_a_row_here() {
        for choice in CHOICES {
            let has_row = UNMEANT.iter().any(|unmeant| unmeant.name == choice.name);
            assert_ne!(has_row, !choice.help.is_empty(), "{}", choice.name);
        }
        for unmeant in UNMEANT {
            assert!(by_name(unmeant.name).is_some(), "{}", unmeant.name);
        }
    }

    /// `pando reference --form from-mongod` makes the list.
    #[test]
    fn u12_the_page_for_those_who_come_from_mongod_has_the_list() {
        let page = include_str!("../../../../docs/from-mongod.md");
        assert!(page.contains(&table()), "docs/from-mongod.md is out of date; it should have:\n{}", table());
    }

    #[test]
    fn u12_what_is_asked_for_is_so_or_it_is_told() {
        for unmeant in UNMEANT {
            let choice = by_name(unmeant.name).unwrap();
            let judged = |value: &str| {
                let mut settings = Settings::default();
                settings.set(choice, value).unwrap();
                judge(&settings)
            };
            for value in unmeant.harmless {
                assert_eq!(judged(value).unwrap(), [], "{}: {value}", unmeant.name);
            }
            let other = match choice.kind {
                crate::serve::catalog::Kind::Switch => {
                    if unmeant.harmless.contains(&"true") {
                        "false"
                    } else {
                        "true"
                    }
                }
                crate::serve::catalog::Kind::Text => "else",
                _ => "7",
            };
            match (judged(other), unmeant.otherwise) {
                (Err(PandoError::Argument(told)), Otherwise::Refused) => {
                    assert!(told.contains(unmeant.name) && told.contains(unmeant.instead), "{told}");
                }
                (Ok(ignored), Otherwise::Warned) => {
                    assert_eq!(ignored, [Ignored { option: unmeant.name, instead: unmeant.instead }]);
                }
                (judged, _) => panic!("{}: {judged:?}", unmeant.name),
            }
        }
    }
}
