//! Indexes as a collection knows them.

mod descriptor;
mod kind;
mod multikey;

pub use descriptor::{ID_INDEX_NAME, IndexDescriptor, is_id_key_pattern};
pub use kind::{IndexKind, is_wildcard_path};
pub use multikey::{MultikeyComponents, MultikeyPaths, MultikeyState};
pub(crate) use multikey::{append_paths, parse_paths};

use pando_base::{Counter, Uuid};
use pando_storage::{IndexFormat, RecordIdKind, SortedData};
use std::fmt;
use std::sync::Arc;

/// One version of an index. Cloning is cheap; versions share the entries and the multikey state.
#[derive(Clone)]
pub struct Index {
    /// What it is.
    pub descriptor: Arc<IndexDescriptor>,
    /// Its entries. As long as anybody holds this, the table is not dropped.
    pub data: Arc<SortedData>,
    /// Built: reads may use it. Writes keep it up either way.
    pub ready: bool,
    /// The build that is under way.
    pub build_uuid: Option<Uuid>,
    /// Whether documents had several keys, shared by all versions.
    pub multikey: Arc<MultikeyState>,
    /// How often queries used it, shared by all versions.
    pub usage: Arc<Counter>,
}

impl Index {
    /// The name of the engine's table.
    pub fn ident(&self) -> &str {
        self.data.table().ident()
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.descriptor.name
    }

    /// How the entries of such an index lie.
    pub fn format(descriptor: &IndexDescriptor) -> IndexFormat {
        if descriptor.is_id_index() {
            IndexFormat::Id
        } else if descriptor.unique {
            IndexFormat::Unique
        } else {
            IndexFormat::Standard
        }
    }

    /// How the table of such an index is to be created.
    pub fn table_options(
        descriptor: &IndexDescriptor,
        kind: RecordIdKind,
        replicated: bool,
    ) -> pando_storage::TableOptions {
        SortedData::table_options(Index::format(descriptor), kind, replicated)
    }
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Index({} in {}, ready: {})", self.name(), self.ident(), self.ready)
    }
}
