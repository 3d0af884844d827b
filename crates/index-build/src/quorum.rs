//! The commit quorum: how many members must be ready before a build commits.
//!
//! Everything here is a function of the configuration and the votes: no clock, no storage. Who votes and where votes are kept is in
//! `entries`.

use pando_base::{Error, ErrorCode, Result, bail, ensure};
use pando_doc::{ToValue, Value};
use std::collections::BTreeSet;

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
}

/// Who is in the set now.
pub trait Members: Send + Sync {
    /// All members; one without a set.
    fn members(&self) -> Vec<Member>;
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
    pub fn check_satisfiable(&self, members: &[Member]) -> Result<()> {
        let possible = match self {
            CommitQuorum::Nodes(nodes) => {
                members.iter().filter(|member| member.builds_indexes).count() >= *nodes as usize
            }
            CommitQuorum::Majority | CommitQuorum::VotingMembers => true,
            CommitQuorum::Mode(mode) => {
                let reason = format!("No write concern mode named '{mode}' found in replica set configuration");
                return Err(Error::new(ErrorCode::UnknownReplWriteConcern, reason));
            }
        };
        ensure!(
            possible,
            ErrorCode::UnsatisfiableCommitQuorum,
            "Commit quorum cannot be satisfied with the current replica set configuration"
        );
        Ok(())
    }

    /// Are these votes enough?
    pub fn is_satisfied(&self, members: &[Member], votes: &BTreeSet<String>) -> bool {
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
            CommitQuorum::Mode(_) => false,
        }
    }
}
