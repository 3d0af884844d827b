//! `collStats`: how large a collection is. One that is not there has zeros.

use super::change::is_a_view;
use super::storage_stats::append_storage_stats;
use crate::arguments::{SafeBool, SafeInt};
use crate::locking::lock_for_read;
use crate::timeseries::{append_timeseries_stats, timeseries};
use crate::{Access, Action, Admission, CommandRow, Invocation, NamespaceOf, SecondaryOk, arguments, run_boxed};
use pando_base::{ErrorCode, Result, ensure};
use pando_doc::DocBuilder;
use pando_env::Place;

pub(super) const ROW: CommandRow = CommandRow {
    name: "collStats",
    aliases: &["collstats"],
    help: "{ collStats:\"blog.posts\" , scale : 1 } scale divides sizes e.g. for KB use 1024",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    secondary_ok: SecondaryOk::Always,
    is_stopped_when_abandoned: true,
    admission: Admission::Read,
    namespace: NamespaceOf::FirstField,
    privileges: Access::Collection(&[Action::CollStats]),
    place: Place::Lanes,
    ..CommandRow::DEFAULT
};

arguments! {
    struct CollStatsArguments<'a> of "collStats" {
        scale: SafeInt = "scale" or SafeInt(1),
        verbose: Option<SafeBool> = "verbose",
        wait_for_lock: Option<SafeBool> = "waitForLock",
        numeric_only: Option<SafeBool> = "numericOnly",
    }
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = CollStatsArguments::parse(&invocation.request)?;
    let namespace = invocation.collection()?;
    let scale = i64::from(arguments.scale.0);
    ensure!(scale >= 1, ErrorCode::location(51024), "BSON field 'scale' value must be >= 1, actual value '{scale}'");
    let mut operation = invocation.operation()?;
    lock_for_read(&mut operation).await?;
    let mut view = data.catalog.establish(&mut operation)?;
    let collection = view.collection(&data.catalog, &mut operation, &namespace)?;
    reply.append("ns", namespace.as_str());
    if let Some(found) = timeseries(data, &namespace)? {
        return append_timeseries_stats(data, &found, scale, reply);
    }
    if collection.is_none() && view.latest().view(&namespace)?.is_some() {
        return Err(is_a_view(&namespace));
    }
    append_storage_stats(collection.as_deref(), scale, reply)
}
