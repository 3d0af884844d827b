//! Does a configuration fit together?

use super::{MEMBERS_MAX, Member, ReplicaSetConfig, VOTERS_MAX};
use pando_base::{Error, Result};

impl ReplicaSetConfig {
    /// Checks what no single field can tell.
    pub fn validate(&self) -> Result<()> {
        let count = self.members.len();
        if count == 0 || count > MEMBERS_MAX {
            return refuse(format!(
                "Replica set configuration contains {count} members, but must have at least 1 and no more than  \
                 {MEMBERS_MAX}"
            ));
        }
        self.check_twins()?;
        self.check_localhost()?;
        let voters = self.members.iter().filter(|member| member.votes).count();
        if voters == 0 || voters > VOTERS_MAX {
            return refuse(format!(
                "Replica set configuration contains {voters} voting members, but must be at least 1 and no more than \
                 {VOTERS_MAX}"
            ));
        }
        if !self.members.iter().any(|member| !member.is_arbiter && member.priority > 0.0) {
            let reason = "Replica set configuration must contain at least one non-arbiter member with priority > 0";
            return refuse(reason.into());
        }
        self.check_config_server()
    }

    fn check_twins(&self) -> Result<()> {
        let twins = |same: fn(&Member, &Member) -> bool| {
            let later = |first: usize| self.members.iter().enumerate().skip(first + 1);
            self.members
                .iter()
                .enumerate()
                .find_map(|(i, one)| later(i).find(|(_, other)| same(one, other)).map(|(j, _)| (i, j, one)))
        };
        if let Some((i, j, member)) = twins(|one, other| one.id == other.id) {
            return refuse(format!(
                "Found two member configurations with same _id field, members.{i}._id == members.{j}._id == {}",
                member.id
            ));
        }
        if let Some((i, j, member)) = twins(|one, other| one.host == other.host) {
            return refuse(format!(
                "Found two member configurations with same host field, members.{i}.host == members.{j}.host == {}",
                member.host
            ));
        }
        Ok(())
    }

    fn check_localhost(&self) -> Result<()> {
        let (local, all) =
            (self.members.iter().filter(|member| member.host.is_localhost()).count(), self.members.len());
        if local == 0 || local == all {
            return Ok(());
        }
        refuse(format!(
            "Either all host names in a replica set configuration must be localhost references, or none must be; found \
             {local} out of {all}"
        ))
    }

    fn check_config_server(&self) -> Result<()> {
        if !self.is_config_server {
            return Ok(());
        }
        let refusals: [Refusal; 3] = [
            (
                |member| member.is_arbiter,
                "Arbiters are not allowed in replica set configurations being used for config servers",
            ),
            (
                |member| !member.builds_indexes,
                "Members in replica set configurations being used for config servers must build indexes",
            ),
            (
                |member| member.delay_seconds != 0,
                "Members in replica set configurations being used for config servers cannot have a non-zero \
                 secondaryDelaySecs",
            ),
        ];
        match refusals.into_iter().find(|(refused, _)| self.members.iter().any(refused)) {
            Some((_, reason)) => refuse(reason.into()),
            None => Ok(()),
        }
    }
}

/// What is refused, and what is said then.
type Refusal = (fn(&Member) -> bool, &'static str);

fn refuse(reason: String) -> Result<()> {
    Err(Error::bad_value(reason))
}
