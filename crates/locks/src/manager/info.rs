//! What `lockInfo` shows: each resource in use, who holds it and who waits.
//!
//! Who holds an intent is known to the lockers only (the manager counts), so all that are in use are asked.

use super::{Claim, Conversion, LockManager, LockerId};
use crate::mode::Mode;
use crate::resource::ResourceId;
use std::collections::BTreeMap;

/// A resource with its holders and waiters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockInfo {
    /// The resource.
    pub resource: ResourceId,
    /// Who holds it.
    pub granted: Vec<RequestInfo>,
    /// Who waits, front first.
    pub pending: Vec<RequestInfo>,
}

/// One holder or waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestInfo {
    /// Whose it is.
    pub locker: LockerId,
    /// The mode held, or waited for.
    pub mode: Mode,
    /// The mode that a holder waits for.
    pub convert_mode: Option<Mode>,
    /// Whether it went to the front of the queue.
    pub enqueue_at_front: bool,
    /// Whether it lets compatible requests overtake while it is granted.
    pub compatible_first: bool,
}

impl LockManager {
    /// The resources in use. Forgets the unused ones on the way.
    pub fn lock_info(&self) -> Vec<LockInfo> {
        self.clean_unused();
        let mut resources = BTreeMap::new();
        for (resource, request) in self.seats().iter().flat_map(|seat| seat.requests()) {
            entry(&mut resources, resource).granted.push(request);
        }
        for bucket in &self.buckets {
            for (resource, head) in bucket.lock().iter() {
                let info = entry(&mut resources, *resource);
                info.pending.extend(head.waiting().map(RequestInfo::from));
                head.converting().for_each(|conversion| mark(&mut info.granted, conversion));
            }
        }
        resources.into_values().collect()
    }
}

fn entry(resources: &mut BTreeMap<ResourceId, LockInfo>, resource: ResourceId) -> &mut LockInfo {
    resources.entry(resource).or_insert_with(|| LockInfo { resource, granted: Vec::new(), pending: Vec::new() })
}

fn mark(granted: &mut [RequestInfo], conversion: Conversion) {
    let holder = granted.iter_mut().find(|request| request.locker == conversion.locker);
    if let Some(holder) = holder {
        holder.convert_mode = Some(conversion.to);
    }
}

impl From<Claim> for RequestInfo {
    fn from(claim: Claim) -> RequestInfo {
        RequestInfo {
            locker: claim.locker,
            mode: claim.mode,
            convert_mode: None,
            enqueue_at_front: claim.enqueue_at_front,
            compatible_first: claim.compatible_first,
        }
    }
}
