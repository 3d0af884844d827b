//! replSetSyncFrom: whom a member should follow.

use super::Topology;
use crate::config::HostAndPort;
use crate::member_state::MemberState;
use pando_base::{Error, ErrorCode, Result};

impl Topology {
    /// May this member follow that one? Until members talk to each other, none can be reached.
    pub fn sync_from(&mut self, target: &HostAndPort) -> Result<()> {
        let config = self.require_config()?;
        let own = self.place.and_then(|place| config.members.get(place));
        let not_secondary = |reason: &str| Err(Error::new(ErrorCode::NotSecondary, reason));
        let Some(own) = own else { return not_secondary("Removed and uninitialized nodes do not sync") };
        if own.is_arbiter {
            return not_secondary("arbiters don't sync");
        }
        if self.state == MemberState::Primary {
            return not_secondary("primaries don't sync");
        }
        let found = config.members.iter().enumerate().find(|(_, member)| member.host == *target);
        let Some((place, other)) = found else {
            let reason = format!("Could not find member \"{target}\" in replica set");
            return Err(Error::new(ErrorCode::NodeNotFound, reason));
        };
        let refusals = [
            (Some(place) == self.place, "I cannot sync from myself".to_owned()),
            (other.is_arbiter, format!("Cannot sync from \"{target}\" because it is an arbiter")),
            (
                !other.builds_indexes && own.builds_indexes,
                format!("Cannot sync from \"{target}\" because it does not build indexes"),
            ),
            (own.is_voter() && !other.is_voter(), format!("Cannot sync from \"{target}\" because it is not a voter")),
        ];
        if let Some((_, reason)) = refusals.into_iter().find(|(refused, _)| *refused) {
            return Err(Error::new(ErrorCode::InvalidOptions, reason));
        }
        let reason = format!("I cannot reach the requested member: {target}");
        Err(Error::new(ErrorCode::HostUnreachable, reason))
    }
}
