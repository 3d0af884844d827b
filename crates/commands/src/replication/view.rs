//! A node's place in its set, as commands and dispatch see it. Replication implements it; here are a node that stands alone
//! and a set of one member that is always primary.

use crate::{CommandRow, ConnectionState, SecondaryOk};
use pando_base::{Error, ErrorCode, Result, Timestamp};
use pando_doc::{DocBuilder, ObjectId, Value, doc};
use pando_env::BoxedFuture;
use pando_security::{TIME_KEY_BYTES, TimeProof, TimeSigner};

/// A state of the set as this node sees it. Counters of different processes cannot be compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopologyVersion {
    /// The process that counts.
    pub process_id: ObjectId,
    /// The count, which goes up with every change.
    pub counter: i64,
}

impl TopologyVersion {
    /// Appends it as a field.
    pub fn append_to(self, reply: &mut DocBuilder) {
        reply.append("topologyVersion", doc! { "processId": self.process_id, "counter": self.counter });
    }
}

/// What replication tells the layers above it.
pub trait ReplicationView: Send + Sync {
    /// Is the node a member of a set?
    fn is_replica_set(&self) -> bool;

    /// The state of the set.
    fn topology_version(&self) -> TopologyVersion;

    /// Ends when the count is above this one.
    fn topology_changed(&self, counter: i64) -> BoxedFuture<'_, ()>;

    /// Appends what hello says of the set: its members, who is primary, and the topology version. `is_legacy` asks for the
    /// field names of isMaster.
    fn append_hello(&self, connection: &ConnectionState, now_ms: i64, is_legacy: bool, reply: &mut DocBuilder);

    /// May the command run here now? `secondary_ok` is what the client allows.
    fn check_can_run(&self, row: &CommandRow, connection: &ConnectionState, secondary_ok: bool) -> Result<()>;

    /// Appends `$clusterTime` and `operationTime` to a reply, whether it succeeded or failed. The time is signed for a client who
    /// has to bring a proof.
    fn append_times(&self, reply: &mut DocBuilder, signer: Option<&TimeSigner>);

    /// The time of the cluster; a node without a set has none.
    fn cluster_time(&self) -> Option<Timestamp> {
        None
    }

    /// Hears of a cluster time that a client sent.
    fn advance_cluster_time(&self, _cluster_time: Timestamp) -> Result<()> {
        Ok(())
    }

    /// Is the node about to end, and tells clients so?
    fn is_in_quiesce_mode(&self) -> bool {
        false
    }
}

/// A node that is no member of any set.
pub struct StandAlone {
    process_id: ObjectId,
}

impl StandAlone {
    /// A node of this process.
    pub fn new(process_id: ObjectId) -> StandAlone {
        StandAlone { process_id }
    }
}

impl ReplicationView for StandAlone {
    fn is_replica_set(&self) -> bool {
        false
    }

    fn topology_version(&self) -> TopologyVersion {
        TopologyVersion { process_id: self.process_id, counter: 0 }
    }

    fn topology_changed(&self, _: i64) -> BoxedFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn append_hello(&self, _: &ConnectionState, _: i64, is_legacy: bool, reply: &mut DocBuilder) {
        reply.append(if is_legacy { "ismaster" } else { "isWritablePrimary" }, true);
        self.topology_version().append_to(reply);
    }

    fn check_can_run(&self, _: &CommandRow, _: &ConnectionState, _: bool) -> Result<()> {
        Ok(())
    }

    fn append_times(&self, _: &mut DocBuilder, _: Option<&TimeSigner>) {}
}

/// A member of a set that nobody has initiated.
pub struct NotInitiated {
    process_id: ObjectId,
}

impl NotInitiated {
    /// A node of this process.
    pub fn new(process_id: ObjectId) -> NotInitiated {
        NotInitiated { process_id }
    }
}

impl ReplicationView for NotInitiated {
    fn is_replica_set(&self) -> bool {
        true
    }

    fn topology_version(&self) -> TopologyVersion {
        TopologyVersion { process_id: self.process_id, counter: 0 }
    }

    fn topology_changed(&self, _: i64) -> BoxedFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn append_hello(&self, _: &ConnectionState, _: i64, is_legacy: bool, reply: &mut DocBuilder) {
        self.topology_version().append_to(reply);
        reply.append(if is_legacy { "ismaster" } else { "isWritablePrimary" }, false);
        reply.append("secondary", false);
        reply.append("info", "Does not have a valid replica set config");
        reply.append("isreplicaset", true);
    }

    fn check_can_run(&self, row: &CommandRow, connection: &ConnectionState, secondary_ok: bool) -> Result<()> {
        check_as_secondary(row, connection, secondary_ok)
    }

    fn append_times(&self, _: &mut DocBuilder, _: Option<&TimeSigner>) {}
}

/// What a node answers that is not primary: the words depend on which the client knows.
pub fn check_as_secondary(row: &CommandRow, connection: &ConnectionState, secondary_ok: bool) -> Result<()> {
    let knows_hello = connection.supports_hello();
    match row.secondary_ok {
        SecondaryOk::Always => Ok(()),
        SecondaryOk::OptIn if secondary_ok => Ok(()),
        SecondaryOk::OptIn => Err(Error::new(
            ErrorCode::NotPrimaryNoSecondaryOk,
            if knows_hello { "not primary and secondaryOk=false" } else { "not master and slaveOk=false" },
        )),
        SecondaryOk::Never => {
            Err(Error::new(ErrorCode::NotWritablePrimary, if knows_hello { "not primary" } else { "not master" }))
        }
    }
}

/// A set whose only member is this node, always primary, and without an oplog: it stands in until replication is there.
pub struct OneMember {
    process_id: ObjectId,
    set_name: String,
    election_id: ObjectId,
    started: Timestamp,
}

impl OneMember {
    /// A set of this name, whose last write was at this time.
    pub fn new(process_id: ObjectId, set_name: &str, started: Timestamp) -> OneMember {
        // Election ids begin with the largest timestamp and end with the term.
        let election_id = ObjectId::from_bytes([0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1]);
        OneMember { process_id, set_name: set_name.to_owned(), election_id, started }
    }
}

impl ReplicationView for OneMember {
    fn is_replica_set(&self) -> bool {
        true
    }

    fn topology_version(&self) -> TopologyVersion {
        TopologyVersion { process_id: self.process_id, counter: 6 }
    }

    fn topology_changed(&self, _: i64) -> BoxedFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn append_hello(&self, connection: &ConnectionState, _: i64, is_legacy: bool, reply: &mut DocBuilder) {
        let here = connection.local.to_string();
        self.topology_version().append_to(reply);
        reply.array("hosts", |hosts| hosts.push(&here));
        reply.append("setName", &self.set_name);
        reply.append("setVersion", 1);
        reply.append(if is_legacy { "ismaster" } else { "isWritablePrimary" }, true);
        reply.append("secondary", false);
        reply.append("primary", &here);
        reply.append("me", &here);
        reply.append("electionId", self.election_id);
        let (op_time, date) = (doc! { "ts": self.started, "t": 1_i64 }, i64::from(self.started.seconds()) * 1000);
        reply.document("lastWrite", |last| {
            last.append("opTime", &op_time);
            last.append("lastWriteDate", Value::DateTime(date));
            last.append("majorityOpTime", &op_time);
            last.append("majorityWriteDate", Value::DateTime(date));
        });
    }

    fn check_can_run(&self, _: &CommandRow, _: &ConnectionState, _: bool) -> Result<()> {
        Ok(())
    }

    fn append_times(&self, reply: &mut DocBuilder, signer: Option<&TimeSigner>) {
        append_cluster_time(reply, self.started, signer);
        reply.append("operationTime", self.started);
    }
}

/// `$clusterTime` as replies have it, with zeros where the time and its proof go.
const CLUSTER_TIME: &[u8; 102] =
    b"\x03$clusterTime\0\x58\0\0\0\x11clusterTime\0\0\0\0\0\0\0\0\0\x03signature\0\x33\0\0\0\
    \x05hash\0\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x12keyId\0\0\0\0\0\0\0\0\0\0\0";
const TIME_PLACE: usize = 31;
const HASH_PLACE: usize = 65;
const KEY_PLACE: usize = 92;

/// Appends `$clusterTime`, signed if there is somebody to sign it. Without a key there is nothing that a client could bring back.
/// Every reply has it: its form is written down, and only what differs is filled in.
pub fn append_cluster_time(reply: &mut DocBuilder, cluster_time: Timestamp, signer: Option<&TimeSigner>) {
    let unsigned = TimeProof { hash: [0; TIME_KEY_BYTES], key_id: 0 };
    let Some(proof) = signer.map_or(Some(unsigned), |signer| signer.sign(cluster_time)) else { return };
    let mut element = *CLUSTER_TIME;
    element[TIME_PLACE..TIME_PLACE + 8].copy_from_slice(&cluster_time.0.to_le_bytes());
    element[HASH_PLACE..HASH_PLACE + TIME_KEY_BYTES].copy_from_slice(&proof.hash);
    element[KEY_PLACE..KEY_PLACE + 8].copy_from_slice(&proof.key_id.to_le_bytes());
    reply.append_element_bytes(&element);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_of_the_cluster_time_is_that_of_a_document() {
        let mut reply = DocBuilder::new();
        append_cluster_time(&mut reply, Timestamp::new(7, 9), None);
        let hash = Value::Binary { subtype: 0, bytes: &[0; TIME_KEY_BYTES] };
        let signature = doc! { "hash": hash, "keyId": 0_i64 };
        let time = doc! { "clusterTime": (Timestamp::new(7, 9)), "signature": signature };
        assert_eq!(reply.finish(), doc! { "$clusterTime": time });
        let places = [(TIME_PLACE, "clusterTime", 0), (HASH_PLACE, "hash", 5), (KEY_PLACE, "keyId", 0)];
        for (place, name, between) in places {
            let start = place - between - name.len() - 1;
            assert_eq!(&CLUSTER_TIME[start..start + name.len()], name.as_bytes(), "{name}");
        }
    }
}
