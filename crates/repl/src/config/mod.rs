//! The configuration of a replica set: who its members are and what may become of it. All of it is pure: documents in,
//! documents or errors out.
//!
//! A configuration is ordered by its term and version. Parsing checks fields; [`ReplicaSetConfig::validate`] checks that
//! they fit together; `reconfig` has the rules for replacing one by another.

mod host;
mod member;
mod range;
mod reconfig;
mod settings;
#[cfg(test)]
mod tests;
mod validate;

pub use host::{DEFAULT_PORT, HostAndPort};
pub use member::Member;
pub use reconfig::{check_initiate, check_reconfig, find_self};
pub use settings::Settings;

use member::append_small;
use pando_base::{Error, ErrorCode, Result};
use pando_doc::{Doc, DocBuilder, DocRef, ObjectId, Value};
use pando_session::fields::{Fields, array, document, safe_boolean, text, whole_number};
use range::in_range;
use std::cmp::Ordering;

/// The set cannot have more members.
pub const MEMBERS_MAX: usize = 50;
/// No more of them can vote.
pub const VOTERS_MAX: usize = 7;
/// A configuration that was forced has no term.
pub const NO_TERM: i64 = -1;
/// The term before the first election.
pub const INITIAL_TERM: i64 = 0;

const VERSION_MAX: i64 = 2_147_483_647;

/// The configuration of a replica set.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplicaSetConfig {
    /// `_id`: the set's name.
    pub name: String,
    /// `version`: grows with every change.
    pub version: i64,
    /// `term`: of the primary that made it.
    pub term: i64,
    /// `members`.
    pub members: Vec<Member>,
    /// `configsvr`: the set of a cluster's config servers.
    pub is_config_server: bool,
    /// `writeConcernMajorityJournalDefault`: does a majority mean journals?
    pub majority_means_journal: bool,
    /// `settings`.
    pub settings: Settings,
}

/// What orders configurations. Without a term on either side, versions decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConfigVersionAndTerm {
    /// The version.
    pub version: i64,
    /// The term, or `NO_TERM`.
    pub term: i64,
}

impl PartialOrd for ConfigVersionAndTerm {
    fn partial_cmp(&self, other: &ConfigVersionAndTerm) -> Option<Ordering> {
        if self.term == NO_TERM || other.term == NO_TERM {
            return Some(self.version.cmp(&other.version));
        }
        Some((self.term, self.version).cmp(&(other.term, other.version)))
    }
}

impl std::fmt::Display for ConfigVersionAndTerm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{{version: {}, term: {}}}", self.version, self.term)
    }
}

impl ReplicaSetConfig {
    /// The configuration of a set of one.
    pub fn of_one(name: &str, host: HostAndPort, replica_set_id: ObjectId) -> ReplicaSetConfig {
        ReplicaSetConfig {
            name: name.to_owned(),
            version: 1,
            term: INITIAL_TERM,
            members: vec![Member::new(0, host)],
            is_config_server: false,
            majority_means_journal: true,
            settings: Settings { replica_set_id: Some(replica_set_id), ..Settings::default() },
        }
    }

    /// Reads a configuration.
    pub fn parse(config: DocRef<'_>) -> Result<ReplicaSetConfig> {
        let fields = Fields::of("ReplSetConfig", config);
        fields.only(&[
            "_id",
            "version",
            "term",
            "members",
            "configsvr",
            "protocolVersion",
            "writeConcernMajorityJournalDefault",
            "settings",
            "repaired",
            "recipientConfig",
        ])?;
        if fields.optional("repaired", safe_boolean)? == Some(true) {
            return Err(Error::new(ErrorCode::RepairedReplicaSetNode, "Replicated data has been repaired"));
        }
        let number = |name: &str, given: i64, range| in_range("ReplSetConfig", name, given, range);
        number("protocolVersion", fields.optional("protocolVersion", whole_number)?.unwrap_or(1), 1..=1)?;
        Ok(ReplicaSetConfig {
            name: fields.required("_id", text)?.to_owned(),
            version: number("version", fields.required("version", whole_number)?, 1..=VERSION_MAX)?,
            term: number("term", fields.optional("term", whole_number)?.unwrap_or(NO_TERM), NO_TERM..=VERSION_MAX)?,
            members: members(fields.required("members", array)?.values())?,
            is_config_server: fields.optional("configsvr", safe_boolean)?.unwrap_or(false),
            majority_means_journal: fields
                .optional("writeConcernMajorityJournalDefault", safe_boolean)?
                .unwrap_or(true),
            settings: match fields.optional("settings", document)? {
                Some(settings) => Settings::parse(settings)?,
                None => Settings::default(),
            },
        })
    }

    /// Reads what replSetInitiate was given: the set gets its id and its first term.
    pub fn parse_for_initiate(config: DocRef<'_>, replica_set_id: ObjectId) -> Result<ReplicaSetConfig> {
        let mut parsed = ReplicaSetConfig::parse(config)?;
        if parsed.settings.replica_set_id.is_some() {
            let reason = format!(
                "replica set configuration cannot contain 'replicaSetId' field when called from replSetInitiate: {}",
                pando_doc::doc_to_json(config, pando_doc::JsonFormat::Relaxed)
            );
            return Err(Error::new(ErrorCode::InvalidReplicaSetConfig, reason));
        }
        parsed.settings.replica_set_id = Some(replica_set_id);
        parsed.term = INITIAL_TERM;
        Ok(parsed)
    }

    /// The configuration as a document.
    pub fn to_doc(&self) -> Doc {
        let mut builder = DocBuilder::new();
        builder.append("_id", &self.name);
        append_small(&mut builder, "version", self.version);
        if self.term != NO_TERM {
            append_small(&mut builder, "term", self.term);
        }
        builder.array("members", |array| self.members.iter().for_each(|member| array.push(member.to_doc())));
        builder.append_some("configsvr", self.is_config_server.then_some(true));
        builder.append("protocolVersion", 1_i64);
        builder.append("writeConcernMajorityJournalDefault", self.majority_means_journal);
        builder.append("settings", self.settings.to_doc());
        builder.finish()
    }

    /// What orders it among others.
    pub fn version_and_term(&self) -> ConfigVersionAndTerm {
        ConfigVersionAndTerm { version: self.version, term: self.term }
    }

    /// Members that vote.
    pub fn voters(&self) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(|member| member.is_voter())
    }

    /// Votes that win an election.
    pub fn majority_vote_count(&self) -> usize {
        self.voters().count() / 2 + 1
    }

    /// Voters with data.
    pub fn writable_voter_count(&self) -> usize {
        self.voters().filter(|member| !member.is_arbiter).count()
    }

    /// Members that must have a write before a majority has it.
    pub fn write_majority_count(&self) -> usize {
        self.majority_vote_count().min(self.writable_voter_count())
    }

    /// Members with data, whether they vote or not.
    pub fn data_member_count(&self) -> usize {
        self.members.iter().filter(|member| !member.is_arbiter).count()
    }

    /// The write concern that applies where nobody says one: a majority, unless arbiters make that a trap.
    pub fn implicit_default_is_majority(&self) -> bool {
        let arbiters = self.members.iter().filter(|member| member.is_arbiter).count();
        arbiters == 0 || self.writable_voter_count() > self.majority_vote_count()
    }

    /// The tag and count constraints of a named write concern.
    pub fn mode(&self, name: &str) -> Option<DocRef<'_>> {
        self.settings.modes.view().get(name).and_then(|mode| mode.as_document())
    }
}

fn members<'a>(values: impl Iterator<Item = Value<'a>>) -> Result<Vec<Member>> {
    let parse = |(place, value): (usize, Value<'a>)| match value {
        Value::Document(member) => Member::parse(member).map_err(|error| {
            error.context(format!("member: {}", pando_doc::doc_to_json(member, pando_doc::JsonFormat::Relaxed)))
        }),
        value => {
            let kind = value.value_type().name();
            let reason = format!(
                "BSON field 'ReplSetConfig.members.{place}' is the wrong type '{kind}', expected type 'object'"
            );
            Err(Error::type_mismatch(reason))
        }
    };
    values.enumerate().map(parse).collect()
}
