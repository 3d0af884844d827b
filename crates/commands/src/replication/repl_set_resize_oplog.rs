//! `replSetResizeOplog`: how large the oplog may be, and how long entries stay at least.

use super::SET_COMMAND;
use crate::arguments::SafeDouble;
use crate::locking::lock_collection;
use crate::{Access, Action, CommandRow, Invocation, arguments, run_boxed};
use pando_base::{Component, Error, ErrorCode, Namespace, Result, Severity, log};
use pando_catalog::CollModChange;
use pando_doc::DocRef;
use pando_locks::Mode;
use pando_operation::write_conflict_retry;
use pando_oplog::ObserverRegistry;

const SIZE_MEGABYTES_MIN: f64 = 990.0;
const SIZE_MEGABYTES_MAX: f64 = 1_073_741_824.0;
const HOUR_MS: f64 = 3_600_000.0;

pub(super) const ROW: CommandRow = CommandRow {
    name: "replSetResizeOplog",
    help: "Resize oplog using size (in MBs) and optionally, retention (in terms of hours)",
    run: |invocation, _| run_boxed(run(invocation)),
    privileges: Access::Cluster(&[Action::ReplSetResizeOplog]),
    ..SET_COMMAND
};

arguments! {
    struct ResizeArguments<'a> of "replSetResizeOplog" {
        size_megabytes: Option<SafeDouble> = "size",
        retention_hours: Option<SafeDouble> = "minRetentionHours",
    }
}

async fn run(invocation: &Invocation) -> Result<()> {
    let data = invocation.data()?;
    let namespace = Namespace::oplog();
    let missing = || Error::new(ErrorCode::NamespaceNotFound, "oplog does not exist");
    let oplog = data.services.engine.oplog().ok_or_else(missing)?;
    data.catalog.latest().collection(namespace).ok_or_else(missing)?;
    let arguments = ResizeArguments::parse(&invocation.request)?;
    let size = arguments.size_megabytes.map(|size| size.0);
    let hours = arguments.retention_hours.map(|hours| hours.0);
    check("size", size, SIZE_MEGABYTES_MIN, SIZE_MEGABYTES_MAX)?;
    check("minRetentionHours", hours, 0.0, f64::INFINITY)?;
    if let Some(megabytes) = size {
        let bytes = (megabytes * f64::from(1 << 20)) as u64;
        let mut operation = invocation.operation()?;
        lock_collection(&mut operation, namespace, Mode::X).await?;
        let change = CollModChange {
            oplog_size_bytes: Some(i64::try_from(bytes).unwrap_or(i64::MAX)),
            ..CollModChange::default()
        };
        write_conflict_retry(&mut operation, "replSetResizeOplog", namespace, |operation| {
            operation.in_unit_of_work(|operation| {
                // It is this node's own affair.
                let nobody = ObserverRegistry::new();
                let collection = data.catalog.collection_for_ddl(operation, namespace)?;
                data.catalog.coll_mod(operation, &nobody, &collection, &change, DocRef::EMPTY).map(|_| ())
            })
        })
        .await?;
        oplog.set_size_max(bytes)?;
    }
    if let Some(hours) = hours {
        oplog.set_retention_min((hours * HOUR_MS) as u64)?;
    }
    log!(
        invocation.node.log,
        Severity::Info,
        Component::Storage,
        20497,
        "replSetResizeOplog success",
        "size" = oplog.size_max()
    );
    Ok(())
}

fn check(name: &str, given: Option<f64>, least: f64, greatest: f64) -> Result<()> {
    let Some(number) = given else { return Ok(()) };
    let wrong = |relation: &str, bound: f64| {
        let reason = format!("BSON field '{name}' value must be {relation} {bound}, actual value '{number}'");
        Err(Error::location(51024, reason))
    };
    if number.is_nan() || number < least {
        return wrong(">=", least);
    }
    if number > greatest {
        return wrong("<=", greatest);
    }
    Ok(())
}
