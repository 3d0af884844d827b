//! The three lines that greet a person who started a node.

use super::meaning::Plan;
use pando_server::ReplicationMode;

/// Where it listens, where the data lies, how to connect.
pub fn text(plan: &Plan) -> String {
    let addresses = plan.server.net.addresses.join(", ");
    let role = match &plan.server.replication {
        ReplicationMode::StandAlone => "standing alone".to_owned(),
        ReplicationMode::OneMember(name) => format!("replica set {name}"),
        ReplicationMode::ReplicaSet(name) => format!("replica set {name}, waiting for rs.initiate()"),
    };
    let first =
        plan.server.net.addresses.first().map_or("127.0.0.1:27017", String::as_str).replace("0.0.0.0", "127.0.0.1");
    format!(
        "Pando {} is listening on {addresses} ({role}).\n\
         Its data lies in {}. Press Ctrl-C to stop.\n\
         To connect: mongosh mongodb://{first}/?directConnection=true",
        env!("CARGO_PKG_VERSION"),
        plan.data_directory.display(),
    )
}
