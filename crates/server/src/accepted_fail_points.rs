//! Fail points that shorten waits between members, by MongoDB's names: tests turn them on when they start a set. A set has one
//! member and none of these waits, so they change nothing. Neither does one
//! that slows JavaScript down.

use pando_base::{AnyFailPoint, FailPoint};

/// How long a new primary waits for entries that it has not applied.
static SKIP_BATCHER_WAIT: FailPoint = FailPoint::new("skipOplogBatcherWaitForData");
/// How long a new member waits before it looks for another to copy from.
static INITIAL_SYNC_RETRY: FailPoint = FailPoint::new("forceSyncSourceRetryWaitForInitialSync");
/// How often members ask each other how they are.
static HEARTBEAT_INTERVAL: FailPoint = FailPoint::new("forceHeartbeatIntervalMS");
/// How long a member waits before it looks for another to follow.
static SYNC_SOURCE_RETRY: FailPoint = FailPoint::new("forceBgSyncSyncSourceRetryWaitMS");
/// How long functions of `system.js` wait to be read while a test ends what they belong to.
static STORED_FUNCTIONS_WAIT: FailPoint = FailPoint::new("mr_killop_test_fp");

/// All of them.
pub(crate) const FAIL_POINTS: &[&dyn AnyFailPoint] =
    &[&SKIP_BATCHER_WAIT, &INITIAL_SYNC_RETRY, &HEARTBEAT_INTERVAL, &SYNC_SOURCE_RETRY, &STORED_FUNCTIONS_WAIT];
