//! The rules for a set's first configuration and for replacing one by another.

use super::{HostAndPort, ReplicaSetConfig};
use pando_base::{Error, ErrorCode, Result};
use std::collections::BTreeSet;

/// The place of this node among the members.
pub fn find_self(config: &ReplicaSetConfig, is_self: impl Fn(&HostAndPort) -> bool) -> Result<usize> {
    let found: Vec<usize> = (0..config.members.len())
        .filter(|place| config.members.get(*place).is_some_and(|member| is_self(&member.host)))
        .collect();
    match found.as_slice() {
        [place] => Ok(*place),
        [] => Err(Error::new(
            ErrorCode::NodeNotFound,
            format!(
                "No host described in new configuration with {} for replica set {} maps to this node",
                config.version_and_term(),
                config.name
            ),
        )),
        [first, second, ..] => {
            let host =
                |place: &usize| config.members.get(*place).map(|member| member.host.to_string()).unwrap_or_default();
            Err(Error::new(
                ErrorCode::InvalidReplicaSetConfig,
                format!(
                    "The hosts {} and {} all map to this node in new configuration with {} for replica set {}",
                    host(first),
                    host(second),
                    config.version_and_term(),
                    config.name
                ),
            ))
        }
    }
}

/// May a set begin with this? Gives this node's place in it.
pub fn check_initiate(config: &ReplicaSetConfig, is_self: impl Fn(&HostAndPort) -> bool) -> Result<usize> {
    if let Some(member) = config.members.iter().find(|member| member.is_newly_added) {
        let reason = format!(
            "Member {}, with _id {}, has a newlyAdded field, which is not valid for initial configuration of a replica \
             set.",
            member.host, member.id
        );
        return Err(Error::new(ErrorCode::InvalidReplicaSetConfig, reason));
    }
    config.validate()?;
    if config.version != 1 {
        let reason =
            format!("Configuration used to initiate a replica set must  have version 1, but found {}", config.version);
        return Err(Error::new(ErrorCode::NewReplicaSetConfigurationIncompatible, reason));
    }
    check_arbiters(config)?;
    let place = find_self(config, is_self)?;
    check_electable(config, place)?;
    Ok(place)
}

/// May the new configuration replace the old one? Gives this node's place in the new one.
pub fn check_reconfig(
    old: &ReplicaSetConfig,
    new: &ReplicaSetConfig,
    is_forced: bool,
    is_self: impl Fn(&HostAndPort) -> bool,
) -> Result<usize> {
    new.validate()?;
    check_compatible(old, new)?;
    check_arbiters(new)?;
    if !is_forced {
        check_single_change(old, new)?;
    }
    let place = find_self(new, is_self)?;
    if !is_forced {
        check_electable(new, place)?;
    }
    Ok(place)
}

fn incompatible(reason: String) -> Error {
    Error::new(ErrorCode::NewReplicaSetConfigurationIncompatible, reason)
}

fn check_compatible(old: &ReplicaSetConfig, new: &ReplicaSetConfig) -> Result<()> {
    let (before, after) = (old.version_and_term(), new.version_and_term());
    if before >= after {
        return Err(incompatible(format!(
            "New replica set configuration version and term must be greater than old, but {after} is not greater than \
             {before} for replica set {}",
            new.name
        )));
    }
    if old.name != new.name {
        return Err(incompatible(format!(
            "New and old configurations differ in replica set name; old was {}, and new is {}",
            old.name, new.name
        )));
    }
    let (before, after) = (old.settings.replica_set_id, new.settings.replica_set_id);
    if before != after {
        let text = |id: Option<pando_doc::ObjectId>| id.map(|id| id.to_string()).unwrap_or_default();
        return Err(incompatible(format!(
            "New and old configurations differ in replica set ID; old was {}, and new is {}",
            text(before),
            text(after)
        )));
    }
    if old.is_config_server && !new.is_config_server {
        return Err(incompatible("Cannot remove \"configsvr\" from replica set configuration on reconfig".into()));
    }
    check_members_stay(old, new)
}

fn check_members_stay(old: &ReplicaSetConfig, new: &ReplicaSetConfig) -> Result<()> {
    for (after, before) in new.members.iter().flat_map(|after| old.members.iter().map(move |before| (after, before))) {
        if after.host == before.host && after.id != before.id {
            return Err(incompatible(format!(
                "New and old configurations both have members with host of {} but in the new configuration the _id \
                 field is {} and in the old configuration it is {} for replica set {}",
                before.host, after.id, before.id, new.name
            )));
        }
        if after.id != before.id {
            continue;
        }
        let changed = [
            ("buildIndexes", before.builds_indexes != after.builds_indexes),
            ("arbiterOnly", before.is_arbiter != after.is_arbiter),
        ];
        if let Some((field, _)) = changed.into_iter().find(|(_, changed)| *changed) {
            return Err(incompatible(format!(
                "New and old configurations differ in the setting of the {field} field for member {}; to make this \
                 change, remove then re-add the member",
                before.host
            )));
        }
    }
    Ok(())
}

fn check_single_change(old: &ReplicaSetConfig, new: &ReplicaSetConfig) -> Result<()> {
    let ids = |config: &ReplicaSetConfig| config.voters().map(|member| member.id).collect::<BTreeSet<_>>();
    if ids(old).symmetric_difference(&ids(new)).count() > 1 {
        let reason = "Non force replica set reconfig can only add or remove at most 1 voting member.";
        return Err(Error::new(ErrorCode::InvalidReplicaSetConfig, reason));
    }
    Ok(())
}

fn check_arbiters(config: &ReplicaSetConfig) -> Result<()> {
    match config.members.iter().find(|member| member.is_arbiter && member.priority != 0.0) {
        Some(member) => Err(Error::new(
            ErrorCode::InvalidReplicaSetConfig,
            format!(
                "Member {} is an arbiter but has priority {}. Arbiter priority must be 0.",
                member.host, member.priority
            ),
        )),
        None => Ok(()),
    }
}

fn check_electable(config: &ReplicaSetConfig, place: usize) -> Result<()> {
    match config.members.get(place).filter(|member| !member.is_electable()) {
        Some(member) => Err(Error::new(
            ErrorCode::NodeNotElectable,
            format!(
                "This node, {}, with _id {} is not electable under the new configuration with {} for replica set {}",
                member.host,
                member.id,
                config.version_and_term(),
                config.name
            ),
        )),
        None => Ok(()),
    }
}
