//! What can be locked: a resource is named by 64 bits, its type above a hash of its name.
//!
//! The numeric order of ids is the order in which locks are taken: the global resources first (the barrier of batches, the
//! feature compatibility version, the replication state, then Global itself), then tenants, databases and collections.
//! Two names of one type may share an id; they then share a lock, which is slower and never wrong. Mutexes stand outside
//! the order.

use pando_base::{DatabaseName, Namespace, TenantId};
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// The kinds of resources, top of the hierarchy first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum ResourceType {
    /// One of the few of [`GlobalResource`].
    Global = 1,
    /// A tenant.
    Tenant = 2,
    /// A database.
    Database = 3,
    /// A collection.
    Collection = 4,
    /// Outside the hierarchy: a mutex that has a fair queue and several modes.
    Mutex = 5,
}

/// The global resources, in the order in which they are locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum GlobalResource {
    /// Held in X while a secondary applies a batch, in IS by whoever must not see half of one; also the barrier of
    /// multi-document transactions.
    ParallelBatchWriterMode = 0,
    /// Held in X while the feature compatibility version changes.
    FeatureCompatibilityVersion = 1,
    /// The replication state transition lock: X to change state, IX to keep the state from changing.
    ReplicationStateTransition = 2,
    /// Everything: X to shut down.
    Global = 3,
}

/// How many global resources there are.
pub(crate) const GLOBAL_COUNT: usize = 4;

/// A resource: the type in the top bits, a hash of the name below.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ResourceId(u64);

const TYPE_BITS: u32 = 3;
const HASH_MASK: u64 = u64::MAX >> TYPE_BITS;

impl ResourceType {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            ResourceType::Global => "Global",
            ResourceType::Tenant => "Tenant",
            ResourceType::Database => "Database",
            ResourceType::Collection => "Collection",
            ResourceType::Mutex => "Mutex",
        }
    }
}

impl GlobalResource {
    /// All of them, in the order in which they are locked.
    pub const ALL: [GlobalResource; GLOBAL_COUNT] = [
        GlobalResource::ParallelBatchWriterMode,
        GlobalResource::FeatureCompatibilityVersion,
        GlobalResource::ReplicationStateTransition,
        GlobalResource::Global,
    ];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            GlobalResource::ParallelBatchWriterMode => "ParallelBatchWriterMode",
            GlobalResource::FeatureCompatibilityVersion => "FeatureCompatibilityVersion",
            GlobalResource::ReplicationStateTransition => "ReplicationStateTransition",
            GlobalResource::Global => "Global",
        }
    }
}

impl ResourceId {
    /// The lock of everything.
    pub const GLOBAL: ResourceId = ResourceId::global(GlobalResource::Global);
    /// The replication state transition lock.
    pub const REPLICATION_STATE_TRANSITION: ResourceId = ResourceId::global(GlobalResource::ReplicationStateTransition);
    /// The barrier of batches and multi-document transactions.
    pub const PARALLEL_BATCH_WRITER_MODE: ResourceId = ResourceId::global(GlobalResource::ParallelBatchWriterMode);
    /// The barrier of changes of the feature compatibility version.
    pub const FEATURE_COMPATIBILITY_VERSION: ResourceId =
        ResourceId::global(GlobalResource::FeatureCompatibilityVersion);

    /// A global resource.
    pub const fn global(resource: GlobalResource) -> ResourceId {
        ResourceId::of(ResourceType::Global, resource as u64)
    }

    /// A tenant, by the bytes of its id.
    pub fn tenant(id: &[u8]) -> ResourceId {
        ResourceId::of(ResourceType::Tenant, xxh3_64(id))
    }

    /// A database, by tenant and name.
    pub fn database(tenant: Option<&[u8]>, name: &[u8]) -> ResourceId {
        ResourceId::of(ResourceType::Database, hash(tenant, name))
    }

    /// A collection, by tenant and full name ("database.collection").
    pub fn collection(tenant: Option<&[u8]>, namespace: &[u8]) -> ResourceId {
        ResourceId::of(ResourceType::Collection, hash(tenant, namespace))
    }

    /// A mutex, by its label.
    pub fn mutex(label: &str) -> ResourceId {
        ResourceId::of(ResourceType::Mutex, xxh3_64(label.as_bytes()))
    }

    const fn of(kind: ResourceType, hash: u64) -> ResourceId {
        ResourceId((kind as u64) << (64 - TYPE_BITS) | hash & HASH_MASK)
    }

    /// Its type.
    pub fn resource_type(self) -> ResourceType {
        match self.0 >> (64 - TYPE_BITS) {
            1 => ResourceType::Global,
            2 => ResourceType::Tenant,
            3 => ResourceType::Database,
            4 => ResourceType::Collection,
            _ => ResourceType::Mutex,
        }
    }

    /// Which global resource this is, if it is one.
    pub fn as_global(self) -> Option<GlobalResource> {
        if self.resource_type() != ResourceType::Global {
            return None;
        }
        GlobalResource::ALL.get(self.hash() as usize).copied()
    }

    /// The hash of the name.
    pub fn hash(self) -> u64 {
        self.0 & HASH_MASK
    }

    /// All 64 bits.
    pub fn number(self) -> u64 {
        self.0
    }
}

impl From<TenantId> for ResourceId {
    fn from(tenant: TenantId) -> ResourceId {
        ResourceId::tenant(&tenant.0)
    }
}

impl From<&DatabaseName> for ResourceId {
    fn from(name: &DatabaseName) -> ResourceId {
        ResourceId::database(name.tenant().as_ref().map(|tenant| &tenant.0[..]), name.as_str().as_bytes())
    }
}

impl From<&Namespace> for ResourceId {
    fn from(namespace: &Namespace) -> ResourceId {
        ResourceId::collection(namespace.tenant().as_ref().map(|tenant| &tenant.0[..]), namespace.as_str().as_bytes())
    }
}

fn hash(tenant: Option<&[u8]>, name: &[u8]) -> u64 {
    let Some(tenant) = tenant else { return xxh3_64(name) };
    let mut hasher = Xxh3::new();
    hasher.update(tenant);
    hasher.update(b"_");
    hasher.update(name);
    hasher.digest()
}

impl std::hash::Hash for ResourceId {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0);
    }
}

impl fmt::Display for ResourceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{{{}: {}, {}}}", self.0, self.resource_type().name(), self.hash())
    }
}

impl fmt::Debug for ResourceId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// The hash of an id in a map: it is a hash already, but maps look at the top bits too, where the type is.
#[derive(Default)]
pub(crate) struct IdHasher(u64);

pub(crate) type IdHash = BuildHasherDefault<IdHasher>;

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = xxh3_64(bytes);
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = number.rotate_left(TYPE_BITS + 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x9_order_of_ids_is_the_order_of_locking() {
        let ordered = [
            ResourceId::PARALLEL_BATCH_WRITER_MODE,
            ResourceId::FEATURE_COMPATIBILITY_VERSION,
            ResourceId::REPLICATION_STATE_TRANSITION,
            ResourceId::GLOBAL,
            ResourceId::tenant(b"some tenant"),
            ResourceId::database(None, b"test"),
            ResourceId::collection(None, b"test.a"),
            ResourceId::mutex("one"),
        ];
        assert!(ordered.is_sorted());
        for (id, kind) in ordered.into_iter().zip([1, 1, 1, 1, 2, 3, 4, 5]) {
            assert_eq!(id.resource_type() as u8, kind);
        }
    }

    #[test]
    fn x9_ids_differ_by_type_name_and_tenant() {
        let ids = [
            ResourceId::database(None, b"a"),
            ResourceId::database(None, b"b"),
            ResourceId::database(Some(b"t"), b"a"),
            ResourceId::collection(None, b"a"),
            ResourceId::tenant(b"a"),
            ResourceId::mutex("a"),
        ];
        for (place, id) in ids.iter().enumerate() {
            assert!(!ids[..place].contains(id));
        }
        assert_eq!(ResourceId::database(Some(b"t"), b"a"), ResourceId::database(Some(b"t"), b"a"));
    }

    #[test]
    fn x9_ids_of_names() {
        let (tenant, namespace) = (TenantId([7; 12]), Namespace::of("test", "people").unwrap());
        assert_eq!(ResourceId::from(&namespace), ResourceId::collection(None, b"test.people"));
        assert_eq!(ResourceId::from(&namespace.database_name()), ResourceId::database(None, b"test"));
        assert_eq!(ResourceId::from(tenant), ResourceId::tenant(&[7; 12]));
        let owned = Namespace::parse_with_tenant(Some(tenant), "test.people").unwrap();
        assert_eq!(ResourceId::from(&owned), ResourceId::collection(Some(&[7; 12]), b"test.people"));
        assert_eq!(ResourceId::from(&owned.database_name()), ResourceId::database(Some(&[7; 12]), b"test"));
    }

    #[test]
    fn x9_global_resources_are_recognised() {
        for resource in GlobalResource::ALL {
            assert_eq!(ResourceId::global(resource).as_global(), Some(resource));
        }
        assert_eq!(ResourceId::database(None, b"a").as_global(), None);
        let text = ResourceId::GLOBAL.to_string();
        assert_eq!(text, "{2305843009213693955: Global, 3}");
    }
}
