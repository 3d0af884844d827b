//! `listCommands`: the table, as clients see it.

use crate::{Access, CommandRow, Invocation, SecondaryOk, run_boxed};
use pando_base::Result;
use pando_doc::DocBuilder;

pub(super) const ROW: CommandRow = CommandRow {
    name: "listCommands",
    help: "get a list of all db commands",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    is_allowed_before_authentication: true,
    privileges: Access::Nothing,
    ..CommandRow::DEFAULT
};

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let mut rows: Vec<&CommandRow> = invocation.node.table.entries().iter().map(|entry| entry.row).collect();
    rows.sort_by_key(|row| row.name);
    reply.document("commands", |commands| rows.iter().for_each(|row| commands.append(row.name, described(row))));
    Ok(())
}

fn described(row: &CommandRow) -> pando_doc::Doc {
    let mut command = DocBuilder::new();
    command.append("help", row.help);
    command.append("requiresAuth", !row.is_allowed_before_authentication);
    command.append("secondaryOk", row.secondary_ok == SecondaryOk::Always);
    command.append("adminOnly", row.is_admin_only);
    command.array("apiVersions", |versions| {
        if row.is_in_api_version_1 {
            versions.push("1");
        }
        if row.is_in_api_version_2 {
            versions.push("2");
        }
    });
    command.array("deprecatedApiVersions", |versions| {
        row.api_versions_deprecated.iter().for_each(|version| versions.push(*version));
    });
    if row.secondary_ok == SecondaryOk::OptIn {
        command.append("secondaryOverrideOk", true);
    }
    command.finish()
}
