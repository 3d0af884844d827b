//! Commands that tell with which API parameters they were called. They differ in the versions that have them: `testVersion2`,
//! `testVersions1And2`, `testDeprecation`, `testDeprecationInVersion2`, `testRemoval`.

use crate::{Access, CommandRow, Invocation, run_boxed};
use pando_base::Result;
use pando_doc::DocBuilder;

const ROW: CommandRow = CommandRow {
    help: "replies with the API parameters of the request",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    is_allowed_before_authentication: true,
    is_for_tests: true,
    privileges: Access::Nothing,
    ..CommandRow::DEFAULT
};

pub(super) const VERSION_2: CommandRow = CommandRow { name: "testVersion2", is_in_api_version_2: true, ..ROW };

pub(super) const VERSIONS_1_AND_2: CommandRow =
    CommandRow { name: "testVersions1And2", is_in_api_version_1: true, is_in_api_version_2: true, ..ROW };

pub(super) const DEPRECATION: CommandRow =
    CommandRow { name: "testDeprecation", is_in_api_version_1: true, api_versions_deprecated: &["1"], ..ROW };

pub(super) const DEPRECATION_IN_VERSION_2: CommandRow =
    CommandRow { name: "testDeprecationInVersion2", api_versions_deprecated: &["2"], ..VERSIONS_1_AND_2 };

pub(super) const REMOVAL: CommandRow = CommandRow { name: "testRemoval", is_in_api_version_1: true, ..ROW };

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let api = &invocation.generic.api;
    if let Some(version) = &api.version {
        reply.append("apiVersion", version.as_str());
    }
    for (name, flag) in [("apiStrict", api.strict), ("apiDeprecationErrors", api.deprecation_errors)] {
        if let Some(flag) = flag {
            reply.append(name, flag);
        }
    }
    Ok(())
}
