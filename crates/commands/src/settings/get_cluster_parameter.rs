//! `getClusterParameter`: one, several, or all ("*"), as this node knows them.

use super::cluster_parameters::{self, ClusterParameter};
use crate::{Access, Action, CommandRow, Data, Invocation, run_boxed};
use pando_base::{Error, ErrorCode, Result, Timestamp, ensure};
use pando_doc::{Doc, DocBuilder, Value};
use pando_repl::ReplGate;

pub(super) const ROW: CommandRow = CommandRow {
    name: "getClusterParameter",
    help: "Get cluster parameter value(s)",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    is_admin_only: true,
    privileges: Access::Cluster(&[Action::GetClusterParameter]),
    ..CommandRow::DEFAULT
};

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let data = invocation.data()?;
    let wanted = wanted(invocation)?;
    reply.array("clusterParameters", |array| wanted.iter().for_each(|parameter| array.push(shown(data, parameter))));
    Ok(())
}

fn wanted(invocation: &Invocation) -> Result<Vec<&'static ClusterParameter>> {
    let with_tests = invocation.node.options.test_commands_enabled;
    let find = |name: Value<'_>| match name.as_str() {
        Some(name) => cluster_parameters::find(name, with_tests),
        None => Err(wrong_type(name)),
    };
    match invocation.target() {
        Value::Array(names) => {
            ensure!(
                !names.is_empty(),
                ErrorCode::BadValue,
                "Must supply at least one cluster server parameter name to getClusterParameter"
            );
            names.values().map(find).collect()
        }
        name if name.as_str() == Some("*") => Ok(cluster_parameters::all(with_tests).collect()),
        name => Ok(vec![find(name)?]),
    }
}

fn wrong_type(value: Value<'_>) -> Error {
    Error::type_mismatch(format!(
        "BSON field 'getClusterParameter.getClusterParameter' is the wrong type '{}', expected types '[array, string]'",
        value.value_type().name()
    ))
}

/// Without a set there is no time to show.
fn shown(data: &Data, parameter: &ClusterParameter) -> Doc {
    let stored = data.settings.cluster_parameters.read().get(parameter.name).cloned();
    let has_time = data.replication.is_replicated();
    let time =
        stored.as_ref().and_then(|stored| stored.get("clusterParameterTime")).and_then(|time| time.as_timestamp());
    let mut out = DocBuilder::new();
    out.append("_id", parameter.name);
    if has_time {
        out.append("clusterParameterTime", time.unwrap_or(Timestamp::new(0, 0)));
    }
    match &stored {
        None => out.append_all(parameter.default_fields().view()),
        Some(stored) => {
            let fields = stored.view();
            let own = fields.elements().filter(|field| field.name != "_id" && field.name != "clusterParameterTime");
            own.for_each(|field| out.append_element(field));
        }
    }
    out.finish()
}
