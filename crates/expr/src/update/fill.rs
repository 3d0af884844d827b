//! `$fill` in an update by pipeline: with values alone it is an `$addFields`; what looks at other documents no update can have.

use pando_base::{Error, ErrorCode, Result};
use pando_doc::{ArrayBuilder, Doc, DocBuilder, DocRef, Element, Value};

/// The fields that it adds, as `$addFields` has them.
pub(super) fn added(stage: Element<'_>) -> Result<Doc> {
    let refused = |code, reason: &str| Err(Error::location(code, reason));
    let Value::Document(options) = stage.value else {
        let reason = format!("The {} stage specification must be an object", stage.name);
        return Err(Error::failed_to_parse(reason));
    };
    let Some(Value::Document(output)) = options.get("output") else {
        return refused(40414, "BSON field '$fill.output' is missing but a required field");
    };
    if output.is_empty() {
        return refused(6050203, "The output field in '$fill' must contain an object with at least one element");
    }
    let mut added = DocBuilder::new();
    for field in output.elements() {
        let (Some(value), None) = one_of(field)? else {
            let reason = "$_internalSetWindowFields is not allowed to be used within an update";
            return Err(Error::new(ErrorCode::InvalidOptions, reason));
        };
        let path = format!("${}", field.name);
        let mut operands = ArrayBuilder::new();
        operands.push(path.as_str());
        operands.push(value);
        added.document(field.name, |out| out.append("$ifNull", operands.finish()));
    }
    Ok(added.finish())
}

/// The value and the method of a field.
fn one_of(field: Element<'_>) -> Result<(Option<Value<'_>>, Option<Value<'_>>)> {
    let refused = |code, reason: &str| Err(Error::location(code, reason));
    let Value::Document(how) = field.value else {
        return refused(6050200, "Each fill output specification must be an object with exactly one field");
    };
    let unknown = |how: DocRef<'_>| how.elements().find(|it| it.name != "value" && it.name != "method").is_some();
    match (how.get("value"), how.get("method").filter(|method| !method.is_nullish())) {
        _ if unknown(how) => refused(40415, "an option of a field of '$fill' is unknown"),
        (Some(_), Some(_)) => refused(
            6050201,
            "Each fill output specification must have exactly one of 'method' or 'value' fields, not both",
        ),
        found => Ok(found),
    }
}
