//! `setParameter`: one or several. All are checked for being settable before the first is set.

use super::{append_parameter, is_list_of_sources, present_value};
use crate::{Access, Action, CommandRow, Invocation, foreign_parameter, run_boxed};
use pando_base::{Component, Error, ErrorCode, ParameterValue, Result, Severity, bail, ensure, log};
use pando_doc::{DocBuilder, Element, Number, Value};
use std::collections::BTreeMap;

pub(super) const ROW: CommandRow = CommandRow {
    name: "setParameter",
    help: "set administrative option(s)\n{ setParameter:1, <param>:<value> }",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    is_admin_only: true,
    privileges: Access::Cluster(&[Action::SetParameter]),
    ..CommandRow::DEFAULT
};

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let parameters = &invocation.node.parameters;
    let mut wanted: BTreeMap<String, Element<'_>> = BTreeMap::new();
    for element in invocation.body().elements().skip(1) {
        if crate::arguments::is_generic(element.name) {
            continue;
        }
        let name = element.name.to_string();
        if foreign_parameter(&name).is_none() {
            parameters.check_settable(&name)?;
        }
        if let Some(before) = wanted.insert(name, element) {
            bail!(
                ErrorCode::InvalidOptions,
                "attempted to set parameter [{}] twice in the same setParameter command, once to value: [{}], and once \
                 to value: [{}]",
                element.name,
                before.value,
                element.value
            );
        }
    }
    ensure!(!wanted.is_empty(), ErrorCode::InvalidOptions, "no option found to set, use help:true to see options ");
    for (name, element) in &wanted {
        if let Some(instead) = foreign_parameter(name) {
            let (log, message) = (&invocation.node.log, "A parameter that was set has no effect");
            log!(
                log,
                Severity::Warning,
                Component::Command,
                9_700_132,
                message,
                "parameter" = name,
                "because" = instead
            );
            continue;
        }
        if let ("clusterAuthMode", Some(mode)) = (name.as_str(), element.value.as_str()) {
            crate::security::check_cluster_auth_mode(parameters, mode)?;
        }
        let shown = parameters.show(name).map(|shown| present_value(&invocation.node, name, shown));
        check_type(name, element.value)?;
        let before = parameters.set_from_value(name, value(name, element.value)?)?;
        let before = shown.unwrap_or(before);
        if is_list_of_sources(name) {
            // Members that are logged in may no longer come from where they are.
            invocation.node.security.cache.invalidate();
        }
        if reply.is_empty() {
            append_parameter("was", &before, reply);
        }
        log!(
            invocation.node.log,
            Severity::Info,
            Component::Command,
            23435,
            "Successfully set parameter to new value",
            "parameterName" = name,
            "newValue" = element.value.to_string()
        );
    }
    Ok(())
}

/// Two parameters that say which type they are of, where others tell that a value cannot be made one of theirs.
fn check_type(name: &str, value: Value<'_>) -> Result<()> {
    let (is_fit, expected) = match name {
        "automationServiceDescriptor" => (value.as_str().is_some(), "string"),
        "logComponentVerbosity" => (matches!(value, Value::Document(_) | Value::Array(_)), "object"),
        _ => return Ok(()),
    };
    ensure!(is_fit, ErrorCode::TypeMismatch, "Value for parameter {name} must be of type '{expected}'");
    Ok(())
}

fn value(name: &str, value: Value<'_>) -> Result<ParameterValue> {
    if is_list_of_sources(name) {
        return sources(value);
    }
    Ok(match value {
        Value::Bool(truth) => ParameterValue::Bool(truth),
        Value::Int32(number) => ParameterValue::Int(number),
        Value::Int64(number) => ParameterValue::Long(number),
        Value::Double(number) => ParameterValue::Double(number),
        Value::Decimal(number) => ParameterValue::Double(Number::Decimal(number).to_double()),
        Value::String(text) => ParameterValue::String(text.to_string()),
        Value::Document(document) => ParameterValue::Document(document.bytes().to_vec()),
        Value::Array(array) => ParameterValue::Document(array.as_doc().bytes().to_vec()),
        other => {
            let reason = format!("a parameter cannot be of the type {}", other.value_type());
            return Err(Error::bad_value(reason));
        }
    })
}

/// An array of addresses, or null for none.
fn sources(value: Value<'_>) -> Result<ParameterValue> {
    let wrong = || Error::bad_value("clusterIpSourceAllowlist must be null or an array of addresses");
    let sources: Vec<&str> = match value {
        Value::Null => Vec::new(),
        Value::Array(array) => array
            .values()
            .map(|source| source.as_str().filter(|source| !source.is_empty()).ok_or_else(wrong))
            .collect::<Result<_>>()?,
        _ => return Err(wrong()),
    };
    Ok(ParameterValue::String(sources.join(",")))
}
