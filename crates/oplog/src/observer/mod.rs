//! Who is told about every write: the one place from which the oplog, migrations, change-stream images, sessions and
//! blockers learn what happens.
//!
//! The write path calls the observers inside its unit of work, after the change and before the commit. What an observer
//! writes there commits or rolls back with the change; an error from one undoes the change. Observers are called in the
//! order of registration; the one that writes the oplog comes first, since the others want the entry's time.
//!
//! The context is whatever the write path passes through: this crate knows neither storage nor replication, so it is a
//! parameter of the trait. Every method does nothing unless it is overridden, so an observer says only what it is for.

mod arguments;
mod registry;

pub use arguments::*;
pub use registry::ObserverRegistry;

use crate::build::IndexCollMod;
use crate::op_time::OpTime;
use crate::operation::Operation;
use pando_base::{DatabaseName, Namespace, Result, Uuid};
use pando_doc::DocRef;

macro_rules! observer {
    ($($(#[$doc:meta])* fn $method:ident(&self, context: &mut C $(, $name:ident: $type:ty)*);)*) => {
        /// Is told about writes. See the module for when and in what order.
        #[allow(unused_variables)]
        pub trait OpObserver<C: ?Sized>: Send + Sync {
            $($(#[$doc])*
            fn $method(&self, context: &mut C $(, $name: $type)*) -> Result<()> {
                Ok(())
            })*
        }

        impl<C: ?Sized> OpObserver<C> for ObserverRegistry<C> {
            $(fn $method(&self, context: &mut C $(, $name: $type)*) -> Result<()> {
                for observer in self.observers() {
                    observer.$method(context $(, $name)*)?;
                }
                Ok(())
            })*
        }
    };
}

observer! {
    /// Documents are about to be inserted: the one that writes the oplog may give each its place.
    fn about_to_insert(&self, context: &mut C, inserts: &mut ComingInserts<'_>);
    /// Documents were inserted into a collection.
    fn on_inserts(&self, context: &mut C, inserts: &Inserts<'_>);
    /// A document was updated.
    fn on_update(&self, context: &mut C, update: &Update<'_>);
    /// A document is about to be deleted; the last chance to look at it.
    fn about_to_delete(&self, context: &mut C, collection: &Collection<'_>, document: DocRef<'_>);
    /// A document was deleted.
    fn on_delete(&self, context: &mut C, delete: &Delete<'_>);
    /// A mark is put into the oplog.
    fn on_internal_message(&self, context: &mut C, message: &InternalMessage<'_>);

    /// A collection was created.
    fn on_create_collection(&self, context: &mut C, create: &CreateCollection<'_>);
    /// A collection is dropped.
    fn on_drop_collection(&self, context: &mut C, drop: &DropCollection<'_>);
    /// A collection was renamed.
    fn on_rename_collection(&self, context: &mut C, rename: &RenameCollection<'_>);
    /// Options of a collection or of an index were changed.
    fn on_coll_mod(&self, context: &mut C, change: &CollMod<'_>);
    /// A capped collection was emptied.
    fn on_empty_capped(&self, context: &mut C, collection: &Collection<'_>);
    /// A database, empty by now, is dropped.
    fn on_drop_database(&self, context: &mut C, database: &DatabaseName);
    /// A collection's files were imported.
    fn on_import_collection(&self, context: &mut C, collection: &Collection<'_>, catalog_entry: DocRef<'_>);

    /// An index was created on an empty collection.
    fn on_create_index(&self, context: &mut C, index: &CreateIndex<'_>);
    /// An index build starts.
    fn on_start_index_build(&self, context: &mut C, build: &IndexBuildArguments<'_>);
    /// An index build is complete.
    fn on_commit_index_build(&self, context: &mut C, build: &IndexBuildArguments<'_>);
    /// An index build is given up.
    fn on_abort_index_build(&self, context: &mut C, build: &IndexBuildArguments<'_>, cause: &pando_base::Error);
    /// An index was dropped.
    fn on_drop_index(&self, context: &mut C, index: &DropIndex<'_>);

    /// An `applyOps` command was run by a user.
    fn on_apply_ops(&self, context: &mut C, database: &DatabaseName, command: DocRef<'_>);
    /// A transaction starts.
    fn on_transaction_start(&self, context: &mut C);
    /// A transaction that was not prepared commits.
    fn on_unprepared_transaction_commit(&self, context: &mut C, operations: &TransactionOperations<'_>);
    /// A transaction is prepared.
    fn on_transaction_prepare(&self, context: &mut C, prepare: &TransactionPrepare<'_>);
    /// A prepared transaction commits.
    fn on_prepared_transaction_commit(&self, context: &mut C, commit: &PreparedCommit<'_>);
    /// A transaction is aborted; the time is that of the entry, if one is written: only for prepared transactions.
    fn on_transaction_abort(&self, context: &mut C, abort_op_time: Option<OpTime>);
    /// A group of writes begins, which become one `applyOps`.
    fn on_batched_write_start(&self, context: &mut C);
    /// A group of writes commits.
    fn on_batched_write_commit(&self, context: &mut C, operations: &[Operation<'_>]);
    /// A group of writes is given up.
    fn on_batched_write_abort(&self, context: &mut C);

    /// A shard's copy of the index catalog was changed.
    fn on_modify_sharding_index_catalog(&self, context: &mut C, collection: &Collection<'_>, change: DocRef<'_>);
    /// Entries were rolled back.
    fn on_replication_rollback(&self, context: &mut C, rollback: &Rollback<'_>);
    /// The majority has entries up to here.
    fn on_majority_commit_point(&self, context: &mut C, commit_point: OpTime);
}
