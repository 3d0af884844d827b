//! `dbStats`: how large a database is.

use super::storage_stats::Sizes;
use crate::arguments::{SafeBool, SafeLong};
use crate::locking::lock_for_read;
use crate::{Access, Action, Admission, CommandRow, Invocation, SecondaryOk, arguments, run_boxed};
use pando_base::{ErrorCode, Result, ensure};
use pando_doc::DocBuilder;
use pando_env::Place;

pub(super) const ROW: CommandRow = CommandRow {
    name: "dbStats",
    aliases: &["dbstats"],
    help: "Get stats on a database. Example: { dbStats:1, scale:1 }",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    secondary_ok: SecondaryOk::Always,
    is_stopped_when_abandoned: true,
    admission: Admission::Read,
    privileges: Access::Database(&[Action::DbStats]),
    place: Place::Lanes,
    ..CommandRow::DEFAULT
};

arguments! {
    struct DbStatsArguments<'a> of "dbStats" {
        scale: SafeLong = "scale" or SafeLong(1),
        free_storage: SafeBool = "freeStorage" or SafeBool(false),
    }
}

/// The sums of a database.
#[derive(Default)]
struct Totals {
    collections: i64,
    views: i64,
    documents: i64,
    data_bytes: i64,
    disk_bytes: i64,
    free_bytes: i64,
    indexes_free_bytes: i64,
    indexes: i64,
    index_bytes: i64,
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let arguments = DbStatsArguments::parse(&invocation.request)?;
    let scale = arguments.scale.0;
    ensure!(scale > 0, ErrorCode::BadValue, "Scale factor must be greater than zero");
    let mut operation = invocation.operation()?;
    lock_for_read(&mut operation).await?;
    let mut view = data.catalog.establish(&mut operation)?;
    let mut totals = Totals::default();
    for collection in view.collections(&data.catalog, &mut operation, &invocation.database)? {
        operation.context.check()?;
        totals.add(&Sizes::of(&collection)?);
    }
    totals.views = view.latest().views(&invocation.database).map_or(0, |views| views.iter().count() as i64);
    totals.append_to(invocation, scale, arguments.free_storage.0, reply);
    Ok(())
}

impl Totals {
    fn add(&mut self, sizes: &Sizes) {
        self.collections += 1;
        self.documents += sizes.documents;
        self.data_bytes += sizes.data_bytes;
        self.disk_bytes += sizes.disk_bytes;
        self.free_bytes += sizes.free_bytes;
        self.indexes_free_bytes += sizes.indexes_free_bytes;
        self.indexes += sizes.index_disk_bytes.len() as i64;
        self.index_bytes += sizes.indexes_bytes();
    }

    fn append_to(&self, invocation: &Invocation, scale: i64, free_storage: bool, reply: &mut DocBuilder) {
        let scaled = |bytes: i64| bytes as f64 / scale as f64;
        let average = if self.documents > 0 { self.data_bytes as f64 / self.documents as f64 } else { 0.0 };
        reply.append("db", invocation.database.as_str());
        reply.append("collections", self.collections);
        reply.append("views", self.views);
        reply.append("objects", self.documents);
        reply.append("avgObjSize", average);
        reply.append("dataSize", scaled(self.data_bytes));
        reply.append("storageSize", scaled(self.disk_bytes));
        if free_storage {
            reply.append("freeStorageSize", scaled(self.free_bytes));
        }
        reply.append("indexes", self.indexes);
        reply.append("indexSize", scaled(self.index_bytes));
        if free_storage {
            reply.append("indexFreeStorageSize", scaled(self.indexes_free_bytes));
        }
        reply.append("totalSize", scaled(self.disk_bytes + self.index_bytes));
        if free_storage {
            reply.append("totalFreeStorageSize", scaled(self.free_bytes + self.indexes_free_bytes));
        }
        reply.append("scaleFactor", scale);
        append_volume(invocation, scaled, reply);
    }
}

/// How full the disk is. One that cannot be asked is left out.
fn append_volume(invocation: &Invocation, scaled: impl Fn(i64) -> f64, reply: &mut DocBuilder) {
    let (node, disk) = (&invocation.node, invocation.node.env.disk());
    let Some(directory) = &node.options.data_directory else { return };
    let mut found = None;
    node.env.tasks().blocking(&mut || {
        found = disk.total_bytes(directory).ok().zip(disk.free_bytes(directory).ok());
    });
    if let Some((total, free)) = found {
        let whole = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        reply.append("fsUsedSize", scaled(whole(total.saturating_sub(free))));
        reply.append("fsTotalSize", scaled(whole(total)));
    }
}
