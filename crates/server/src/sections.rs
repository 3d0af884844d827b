//! The sections of serverStatus that are about connections and bytes.

use pando_commands::{Invocation, StatusSection};
use pando_doc::{DocBuilder, Value};
use pando_net::{ConnectionCounters, NetworkCounters};
use std::sync::Arc;

/// `connections`.
pub(crate) struct Connections(pub(crate) Arc<ConnectionCounters>);

impl StatusSection for Connections {
    fn name(&self) -> &'static str {
        "connections"
    }

    fn fill(&self, invocation: &Invocation, _: Option<Value<'_>>, section: &mut DocBuilder) {
        let (counters, hello) = (&self.0, &invocation.node.counters.hello);
        let current = counters.current.get();
        section.append("current", current as i32);
        section.append("available", counters.max.get().saturating_sub(current).clamp(0, i64::from(i32::MAX)) as i32);
        section.append("totalCreated", counters.created.get() as i64);
        section.append("rejected", counters.rejected.get() as i64);
        section.append("active", counters.active.get() as i32);
        section.append("threaded", current as i32);
        section.append("exhaustIsMaster", hello.exhaust_is_master.get());
        section.append("exhaustHello", hello.exhaust_hello.get());
        section.append("awaitingTopologyChanges", hello.awaiting_topology_changes.get());
    }
}

/// `network`.
pub(crate) struct Network(pub(crate) Arc<NetworkCounters>);

impl StatusSection for Network {
    fn name(&self) -> &'static str {
        "network"
    }

    fn fill(&self, _: &Invocation, _: Option<Value<'_>>, section: &mut DocBuilder) {
        let counters = &self.0;
        section.append("bytesIn", counters.bytes_in.get() as i64);
        section.append("bytesOut", counters.bytes_out.get() as i64);
        section.append("physicalBytesIn", counters.physical_bytes_in.get() as i64);
        section.append("physicalBytesOut", counters.physical_bytes_out.get() as i64);
        section.append("numSlowDNSOperations", 0_i64);
        section.append("numSlowSSLOperations", 0_i64);
        section.append("numRequests", counters.requests.get() as i64);
        section.document("compression", |compression| {
            for (compressor, counted) in NetworkCounters::COMPRESSORS.iter().zip(&counters.compression) {
                compression.document(compressor.name(), |document| {
                    document.document("compressor", |side| {
                        side.append("bytesIn", counted.compressor_in.get() as i64);
                        side.append("bytesOut", counted.compressor_out.get() as i64);
                    });
                    document.document("decompressor", |side| {
                        side.append("bytesIn", counted.decompressor_in.get() as i64);
                        side.append("bytesOut", counted.decompressor_out.get() as i64);
                    });
                });
            }
        });
    }
}
