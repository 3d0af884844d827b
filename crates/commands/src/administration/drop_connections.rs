//! `dropConnections`: connections that this node has opened to others, and keeps for the next time, are closed. A node that
//! is alone in its set opens none, so that there is nothing to close; that the addresses can be read is checked.

use crate::{Access, Action, CommandRow, Invocation, run_boxed};
use pando_base::Result;
use pando_doc::{ArrayRef, DocBuilder, Value, ValueType};
use pando_repl::config::HostAndPort;

pub(super) const ROW: CommandRow = CommandRow {
    name: "dropConnections",
    help: "Drop egress connections to specified host and port",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    is_admin_only: true,
    privileges: Access::Cluster(&[Action::DropConnections]),
    ..CommandRow::DEFAULT
};

crate::arguments! {
    struct Arguments<'a> of "dropConnections" {
        hosts: ArrayRef<'a> = "hostAndPort",
    }
}

fn run(invocation: &Invocation, _: &mut DocBuilder) -> Result<()> {
    let arguments = Arguments::parse(&invocation.request)?;
    for (place, host) in arguments.hosts.values().enumerate().filter(|(_, host)| !host.is_nullish()) {
        let outer = crate::arguments::Place::of_command("dropConnections");
        let list = outer.field("hostAndPort".into());
        let number = place.to_string();
        let Value::String(text) = host else {
            return Err(list.field(number.as_str().into()).wrong_type(host.value_type(), &[ValueType::String]));
        };
        HostAndPort::parse(&text.to_string())?;
    }
    Ok(())
}
