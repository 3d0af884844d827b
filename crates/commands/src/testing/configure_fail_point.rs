//! `configureFailPoint`: turns a fail point on or off.

use crate::{Access, CommandRow, Invocation, run_boxed};
use bytes::Bytes;
use pando_base::{Component, Error, ErrorCode, FailPointMode, Result, Severity, bail, ensure, log};
use pando_doc::{DocBuilder, DocRef, Value};

pub(super) const ROW: CommandRow = CommandRow {
    name: "configureFailPoint",
    help: "modifies the settings of a fail point",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    is_admin_only: true,
    is_allowed_before_authentication: true,
    is_for_tests: true,
    privileges: Access::Nothing,
    ..CommandRow::DEFAULT
};

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let (node, body) = (&invocation.node, invocation.body());
    let name = match invocation.target() {
        Value::String(name) => name.to_string(),
        _ => String::new(),
    };
    let point = node.fail_points.find(&name)?;
    let mode = mode(body)?;
    let data = match body.get("data") {
        None => Bytes::new(),
        Some(value) => match value.as_nested() {
            Some(data) => data.to_doc().into_bytes(),
            None => bail!(ErrorCode::TypeMismatch, "the 'data' option must be a JSON object"),
        },
    };
    let entered = point.set(mode, data, node.env.random().next_u64())?;
    log!(
        node.log,
        Severity::Warning,
        Component::Control,
        23829,
        "Set failpoint",
        "failPointName" = name,
        "mode" = mode.number()
    );
    match i32::try_from(entered) {
        Ok(entered) => reply.append("count", entered),
        Err(_) => reply.append("count", entered as i64),
    }
    Ok(())
}

fn mode(body: DocRef<'_>) -> Result<FailPointMode> {
    match body.get("mode") {
        None => bail!(ErrorCode::IllegalOperation, "When setting a failpoint, you must supply a 'mode'"),
        Some(Value::String(name)) => FailPointMode::named(&name.to_string()),
        Some(Value::Document(mode)) => numbered_mode(mode),
        Some(_) => bail!(ErrorCode::TypeMismatch, "'mode' must be a string or JSON object"),
    }
}

fn numbered_mode(mode: DocRef<'_>) -> Result<FailPointMode> {
    if let Some(times) = mode.get("times") {
        return FailPointMode::times(whole("times", times)?);
    }
    if let Some(skip) = mode.get("skip") {
        return FailPointMode::skip(whole("skip", skip)?);
    }
    let Some(probability) = mode.get("activationProbability") else {
        bail!(
            ErrorCode::BadValue,
            "'mode' must be one of 'off', 'alwaysOn', '{{times:n}}', '{{skip:n}}' or '{{activationProbability:p}}'"
        );
    };
    ensure!(
        probability.is_number(),
        ErrorCode::TypeMismatch,
        "the 'activationProbability' option to 'mode' must be a double between 0 and 1"
    );
    FailPointMode::probability(probability.to_double().unwrap_or(0.0))
}

fn whole(name: &str, value: Value<'_>) -> Result<i64> {
    let found = value.value_type().name();
    let number = value
        .as_number()
        .ok_or_else(|| Error::type_mismatch(format!("Expected field \"{name}\" to be a number, but found {found}")))?;
    number.to_i64_exact().ok_or_else(|| Error::bad_value(format!("Expected field \"{name}\" to have a whole value")))
}
