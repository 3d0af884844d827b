//! Can a set ever satisfy a write concern?

use super::{Acknowledgement, WriteConcern};
use crate::config::{Member, ReplicaSetConfig};
use pando_base::{Error, ErrorCode, Result};
use pando_doc::DocRef;
use pando_session::fields::whole_number;
use std::collections::HashSet;

/// Checks a write concern against the set, or against a node without one. What fails here was asked for in vain: the write
/// is done and the reply says so.
pub fn check_satisfiable(concern: &WriteConcern, config: Option<&ReplicaSetConfig>) -> Result<()> {
    match config {
        Some(config) => check_members(concern, config),
        None => check_alone(concern),
    }
}

fn check_alone(concern: &WriteConcern) -> Result<()> {
    match &concern.acknowledgement {
        Acknowledgement::Members(0 | 1) | Acknowledgement::Majority => Ok(()),
        Acknowledgement::Members(_) => Err(Error::bad_value("cannot use 'w' > 1 when a host is not replicated")),
        Acknowledgement::Mode(name) => Err(Error::bad_value(format!(
            "cannot use non-majority 'w' mode {name} when a host is not a member of a replica set"
        ))),
        Acknowledgement::Tags(_) => {
            Err(Error::bad_value("cannot use tags in 'w' when a host is not a member of a replica set"))
        }
    }
}

fn check_members(concern: &WriteConcern, config: &ReplicaSetConfig) -> Result<()> {
    match &concern.acknowledgement {
        Acknowledgement::Majority => Ok(()),
        Acknowledgement::Members(count) if *count as usize > config.data_member_count() => {
            Err(Error::new(ErrorCode::UnsatisfiableWriteConcern, "Not enough data-bearing nodes"))
        }
        Acknowledgement::Members(_) => Ok(()),
        Acknowledgement::Mode(name) => {
            let constraints = config.mode(name).ok_or_else(|| {
                let reason = format!("No write concern mode named '{name}' found in replica set configuration");
                Error::new(ErrorCode::UnknownReplWriteConcern, reason)
            })?;
            check_tags(constraints, config)
        }
        Acknowledgement::Tags(tags) => check_tags(tags.view(), config),
    }
}

/// Are there as many values of each tag among the members as are asked for?
fn check_tags(constraints: DocRef<'_>, config: &ReplicaSetConfig) -> Result<()> {
    for constraint in constraints.elements() {
        let wanted = whole_number(constraint.value).unwrap_or(i64::MAX);
        let value = |member: &'_ Member| -> Option<Vec<u8>> {
            let value = member.tags.get(constraint.name)?;
            value.as_bytes().map(|text| text.to_vec())
        };
        let found: HashSet<Vec<u8>> =
            config.members.iter().filter(|member| !member.is_arbiter).filter_map(value).collect();
        if (found.len() as i64) < wanted {
            let reason = format!("Not enough nodes match write concern tag \"{}\"", constraint.name);
            return Err(Error::new(ErrorCode::UnsatisfiableWriteConcern, reason));
        }
    }
    Ok(())
}
