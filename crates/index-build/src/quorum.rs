//! The commit quorum: how many members must be ready before a build commits.
//!
//! Everything here is a function of the configuration and the votes: no clock, no storage. Who votes and where votes are kept is in
//! `entries`.

use pando_base::{Error, ErrorCode, Result, bail, ensure};
use pando_doc::{ToValue, Value};
use std::collections::{BTreeMap, BTreeSet};

/// The set cannot have more members.
const MEMBERS_MAX: i64 = 50;

/// A member, as far as votes on index builds go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// "host:port".
    pub host: String,
    /// It votes in elections.
    pub is_voter: bool,
    /// It has data, and builds indexes of it.
    pub builds_indexes: bool,
    /// Its tags and their values.
    pub tags: BTreeMap<String, String>,
}

/// The configuration of the set, as far as votes on index builds go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Membership {
    /// All members; one without a set.
    pub members: Vec<Member>,
    /// `getLastErrorModes`: for each name tags, and how many different values of each must be reached.
    pub modes: BTreeMap<String, BTreeMap<String, u64>>,
}

/// Who is in the set now.
pub trait Members: Send + Sync {
    /// The configuration now.
    fn membership(&self) -> Membership;
    /// This node.
    fn own_host(&self) -> String;
    /// May this node write, being the primary or no member of a set?
    fn may_write(&self) -> bool;
}

/// A commit quorum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CommitQuorum {
    /// So many members with data; zero: nobody is asked.
    Nodes(u32),
    /// A majority of the voters.
    Majority,
    /// All voters with data.
    #[default]
    VotingMembers,
    /// A mode that the configuration defines by tags.
    Mode(String),
}

impl CommitQuorum {
    /// Reads the argument `commitQuorum`.
    pub fn parse(value: Value<'_>) -> Result<CommitQuorum> {
        if value.is_number() {
            let nodes = value.to_i64_or_zero();
            ensure!(
                (0..=MEMBERS_MAX).contains(&nodes),
                ErrorCode::FailedToParse,
                "commitQuorum has to be a non-negative number and not greater than {MEMBERS_MAX}"
            );
            return Ok(CommitQuorum::Nodes(nodes as u32));
        }
        match value.as_str() {
            Some("majority") => Ok(CommitQuorum::Majority),
            Some("votingMembers") => Ok(CommitQuorum::VotingMembers),
            Some("") => bail!(ErrorCode::FailedToParse, "commitQuorum can't be an empty string"),
            Some(mode) => Ok(CommitQuorum::Mode(mode.to_owned())),
            None => bail!(ErrorCode::FailedToParse, "commitQuorum has to be a number or a string"),
        }
    }

    /// As it is stored and shown.
    pub fn value(&self) -> Value<'_> {
        match self {
            CommitQuorum::Nodes(nodes) => Value::Int32(i32::try_from(*nodes).unwrap_or(i32::MAX)),
            CommitQuorum::Majority => "majority".to_value(),
            CommitQuorum::VotingMembers => "votingMembers".to_value(),
            CommitQuorum::Mode(mode) => mode.to_value(),
        }
    }

    /// False if nobody is asked.
    pub fn is_enabled(&self) -> bool {
        *self != CommitQuorum::Nodes(0)
    }

    /// Fails if the set can never fulfil it.
    pub fn check_satisfiable(&self, membership: &Membership) -> Result<()> {
        let builders = || membership.members.iter().filter(|member| member.builds_indexes);
        let possible = match self {
            CommitQuorum::Nodes(nodes) => builders().count() >= *nodes as usize,
            CommitQuorum::Majority | CommitQuorum::VotingMembers => true,
            CommitQuorum::Mode(name) => {
                let unknown = || {
                    let reason = format!("No write concern mode named '{name}' found in replica set configuration");
                    Error::new(ErrorCode::UnknownReplWriteConcern, reason)
                };
                are_tags_reached(membership.modes.get(name).ok_or_else(unknown)?, builders())
            }
        };
        ensure!(
            possible,
            ErrorCode::UnsatisfiableCommitQuorum,
            "Commit quorum cannot be satisfied with the current replica set configuration"
        );
        Ok(())
    }

    /// Are these votes enough? A mode that the configuration does not have any more never has enough.
    pub fn is_satisfied(&self, membership: &Membership, votes: &BTreeSet<String>) -> bool {
        let members = &membership.members;
        let voters = || members.iter().filter(|member| member.is_voter && member.builds_indexes);
        let ready = |member: &&Member| votes.contains(&member.host);
        match self {
            CommitQuorum::Nodes(nodes) => votes.len() >= *nodes as usize,
            CommitQuorum::VotingMembers => voters().all(|member| ready(&member)),
            CommitQuorum::Majority => {
                let all = members.iter().filter(|member| member.is_voter).count();
                let needed = (all / 2 + 1).min(voters().count());
                voters().filter(ready).count() >= needed
            }
            CommitQuorum::Mode(name) => {
                let ready = members.iter().filter(|member| member.builds_indexes).filter(ready);
                membership.modes.get(name).is_some_and(|mode| are_tags_reached(mode, ready))
            }
        }
    }
}

/// Do the members have as many different values of each tag as the mode asks for?
fn are_tags_reached<'a>(mode: &BTreeMap<String, u64>, members: impl Iterator<Item = &'a Member> + Clone) -> bool {
    mode.iter().all(|(tag, wanted)| {
        let values: BTreeSet<&str> =
            members.clone().filter_map(|member| member.tags.get(tag).map(String::as_str)).collect();
        values.len() as u64 >= *wanted
    })
}
