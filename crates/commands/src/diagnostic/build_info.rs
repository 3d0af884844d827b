//! `buildInfo`: which version this is, and how it was built.

use crate::{Access, CommandRow, GIT_VERSION, Invocation, VERSION, VERSION_PARTS, run_boxed};
use pando_base::Result;
use pando_doc::DocBuilder;
use pando_env::Place;
use pando_wire::limits::DOCUMENT_SIZE_BYTES_MAX;

pub(super) const ROW: CommandRow = CommandRow {
    name: "buildInfo",
    aliases: &["buildinfo"],
    help: "get version #, etc.\n{ buildinfo:1 }",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    is_allowed_before_authentication: true,
    privileges: Access::Nothing,
    place: Place::Control,
    ..CommandRow::DEFAULT
};

fn run(_: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    append_build_info(reply);
    Ok(())
}

/// Appends what there is to say of the build.
pub fn append_build_info(reply: &mut DocBuilder) {
    reply.append("version", VERSION);
    reply.append("gitVersion", GIT_VERSION);
    reply.array("modules", |_| {});
    reply.append("allocator", "system");
    reply.append("javascriptEngine", "quickjs");
    reply.append("sysInfo", "deprecated");
    reply.array("versionArray", |parts| VERSION_PARTS.iter().for_each(|part| parts.push(*part)));
    reply.document("openssl", |openssl| openssl.append("running", "disabled"));
    reply.document("buildEnvironment", |build| {
        build.append("target_arch", std::env::consts::ARCH);
        build.append("target_os", std::env::consts::OS);
    });
    reply.append("bits", usize::BITS as i32);
    reply.append("debug", cfg!(debug_assertions));
    reply.append("maxBsonObjectSize", DOCUMENT_SIZE_BYTES_MAX as i32);
    reply.array("storageEngines", |engines| engines.push("wiredTiger"));
    reply.document("pando", |pando| pando.append("version", env!("CARGO_PKG_VERSION")));
}
