//! `hostInfo`: the machine.

use crate::{Access, Action, CommandRow, Invocation, run_boxed};
use pando_base::Result;
use pando_doc::{DocBuilder, Value};

pub(super) const ROW: CommandRow = CommandRow {
    name: "hostInfo",
    help: "returns information about the daemon's host",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    privileges: Access::Cluster(&[Action::HostInfo]),
    ..CommandRow::DEFAULT
};

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let (node, facts) = (&invocation.node, invocation.node.machine.facts());
    reply.document("system", |system| {
        system.append("currentTime", Value::DateTime(node.now_ms()));
        system.append("hostname", &node.options.host);
        system.append("cpuAddrSize", usize::BITS as i32);
        system.append("memSizeMB", (facts.memory_bytes >> 20) as i64);
        system.append("memLimitMB", (facts.memory_limit_bytes >> 20) as i64);
        system.append("numCores", facts.processors as i32);
        system.append("numCoresAvailableToProcess", facts.processors as i32);
        system.append("numPhysicalCores", facts.cores as i32);
        system.append("numCpuSockets", facts.sockets as i32);
        system.append("cpuArch", &facts.architecture);
        system.append("numaEnabled", facts.memory_nodes > 1);
        system.append("numNumaNodes", facts.memory_nodes as i32);
    });
    reply.document("os", |os| {
        os.append("type", &facts.system_type);
        os.append("name", &facts.system_name);
        os.append("version", &facts.system_version);
    });
    reply.document("extra", |extra| {
        extra.append("versionString", &facts.kernel_text);
        extra.append("kernelVersion", facts.system_version.trim_start_matches("Kernel "));
        extra.append("cpuString", &facts.processor_name);
        extra.append("cpuFrequencyMHz", &facts.processor_mhz);
        extra.append("cpuFeatures", &facts.processor_features);
        extra.append("pageSize", facts.page_bytes as i64);
        extra.append("numPages", facts.pages.min(i32::MAX as u64) as i32);
        extra.append("maxOpenFiles", facts.open_files_max.min(i32::MAX as u64) as i32);
    });
    Ok(())
}
