//! `lockInfo`: every resource that is locked, who holds it and who waits for it.

use crate::{Access, Action, CommandRow, Invocation, Node, run_boxed};
use pando_base::{OperationContext, Result};
use pando_catalog::CollectionCatalog;
use pando_doc::{ArrayBuilder, DocBuilder};
use pando_locks::{LockerReport, RequestInfo, ResourceId};
use std::collections::HashMap;

pub(super) const ROW: CommandRow = CommandRow {
    name: "lockInfo",
    help: "show all lock info on the server",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    is_admin_only: true,
    privileges: Access::Cluster(&[Action::ServerStatus]),
    ..CommandRow::DEFAULT
};

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let holders = Holders::of(&invocation.node);
    reply.array("lockInfo", |array| {
        let Some(data) = &invocation.node.data else { return };
        let names = names(&data.catalog.latest());
        for info in data.services.locks.lock_info().iter().filter(|info| !info.granted.is_empty()) {
            array.document(|out| {
                out.append("resourceId", shown(info.resource, &names));
                out.array("granted", |requests| holders.append_all(&info.granted, requests));
                out.array("pending", |requests| holders.append_all(&info.pending, requests));
            });
        }
    });
    Ok(())
}

/// The names of databases and collections by what is locked for them.
pub(super) fn names(catalog: &CollectionCatalog) -> HashMap<u64, String> {
    let databases = catalog.databases().map(|database| (ResourceId::from(database), database.as_str().to_owned()));
    let collections = catalog.all_collections().map(|collection| {
        let namespace = &collection.namespace;
        (ResourceId::from(namespace), namespace.as_str().to_owned())
    });
    databases.chain(collections).map(|(resource, name)| (resource.number(), name)).collect()
}

pub(super) fn shown(resource: ResourceId, names: &HashMap<u64, String>) -> String {
    let bare = resource.to_string();
    match names.get(&resource.number()) {
        Some(name) => format!("{}, {name}}}", bare.trim_end_matches('}')),
        None => bare,
    }
}

/// The operations behind the lockers.
struct Holders(HashMap<u64, OperationContext>);

impl Holders {
    fn of(node: &Node) -> Holders {
        let operations: HashMap<u32, OperationContext> =
            node.operations.list().into_iter().map(|context| (context.id(), context)).collect();
        let known = |report: LockerReport| {
            operations.get(&report.operation).map(|context| (report.locker.number(), context.clone()))
        };
        let lockers = node.data.as_ref().map(|data| data.services.locks.lockers()).unwrap_or_default();
        Holders(lockers.into_iter().filter_map(known).collect())
    }

    fn append_all(&self, requests: &[RequestInfo], out: &mut ArrayBuilder) {
        requests.iter().for_each(|request| out.document(|out| self.append(request, out)));
    }

    fn append(&self, request: &RequestInfo, out: &mut DocBuilder) {
        out.append("mode", request.mode.name());
        out.append("convertMode", request.convert_mode.map_or("NONE", |mode| mode.name()));
        out.append("enqueueAtFront", request.enqueue_at_front);
        out.append("compatibleFirst", request.compatible_first);
        out.append("debugInfo", "");
        if let Some(context) = self.0.get(&request.locker.number()) {
            out.document("clientInfo", |info| {
                let client = context.client();
                info.append("desc", client.description());
                if !client.is_internal() {
                    info.append("connectionId", client.connection_id() as i32);
                    info.append("client", client.remote());
                }
                info.append("opid", context.id() as i32);
            });
        }
    }
}
