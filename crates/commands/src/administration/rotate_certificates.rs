//! `rotateCertificates`: connections to come use the certificates that the files have now.

use crate::{Access, Action, CommandRow, Invocation, run_boxed};
use pando_base::{Component, Result, Severity, log};
use pando_doc::DocBuilder;

pub(super) const ROW: CommandRow = CommandRow {
    name: "rotateCertificates",
    help: "Rotate server certificates, CRLs, and CA files",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    is_admin_only: true,
    privileges: Access::Cluster(&[Action::RotateCertificates]),
    ..CommandRow::DEFAULT
};

crate::arguments! {
    /// What rotateCertificates takes.
    struct Arguments<'a> of "rotateCertificates" {
        /// What the log is to say about it.
        message: Option<&'a str> = "message",
    }
}

fn run(invocation: &Invocation, _: &mut DocBuilder) -> Result<()> {
    let arguments = Arguments::parse(&invocation.request)?;
    let node = &invocation.node;
    let mut outcome = Ok(());
    // It reads files.
    node.env.tasks().blocking(&mut || outcome = node.control.rotate_certificates());
    outcome?;
    let message = arguments.message.unwrap_or_default().to_owned();
    log!(
        node.log,
        Severity::Info,
        Component::Network,
        4913400,
        "Successfully rotated certificates",
        "message" = message
    );
    Ok(())
}
