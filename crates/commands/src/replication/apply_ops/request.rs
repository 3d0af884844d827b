//! What is looked at before any operation is carried out: that there are operations, and what they need of the client.

use crate::arguments::refuse_repeated_in_command;
use pando_base::{Error, ErrorCode, Result, bail, ensure};
use pando_doc::{ArrayRef, DocRef, Value, ValueType};
use pando_oplog::Operation;

/// Lists of operations lie so deep inside of each other at most.
const NESTING_MAX: usize = 10;

/// What the ids of collections in a request ask of the client's rights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UuidUse {
    /// There are none.
    None,
    /// Collections are named by their ids.
    Names,
    /// A collection is created with an id of the client's.
    Forces,
    /// The request is none that tools make: it is for the system alone.
    Unusual,
}

/// An operation as it will be carried out; none for a note, which does nothing.
pub(crate) fn read_operation(operation: DocRef<'_>) -> Result<Option<Operation<'_>>> {
    if operation.get("op") == Some(Value::String("n".into())) {
        return Ok(None);
    }
    let operation = Operation::parse(operation)?;
    // Nobody's collections have another meaning to tenants.
    ensure!(
        operation.tenant.is_none(),
        ErrorCode::location(6972102),
        "TenantId must not be set, but it is: {}",
        operation.tenant.unwrap_or_default()
    );
    Ok(Some(operation))
}

/// Fails if lists lie too deep inside of each other.
pub(super) fn check_nesting(body: DocRef<'_>) -> Result<()> {
    uuid_use(body).map(|_| ())
}

/// How the operations of a request, and of those inside of it, use ids.
pub(crate) fn uuid_use(body: DocRef<'_>) -> Result<UuidUse> {
    let mut found = UuidUse::None;
    let mut lists = vec![(0, body)];
    while let Some((depth, list)) = lists.pop() {
        let operations = operations_of(list)?;
        if operations.is_empty() {
            return Ok(UuidUse::Unusual);
        }
        let is_alone = operations.len() == 1;
        if !is_alone && operations.iter().any(|one| is_command(*one, "create") || is_command(*one, "renameCollection"))
        {
            return Ok(UuidUse::Unusual);
        }
        for operation in operations {
            let object = command_object(operation)?;
            // That the operations themselves have no field twice was seen with the command that
            // lists them.
            object.map_or(Ok(()), |object| refuse_repeated_in_command("o", object))?;
            let has_uuid = has_uuid(operation) || object.is_some_and(has_uuid);
            if has_uuid && found == UuidUse::None {
                found = UuidUse::Names;
            }
            if has_uuid && is_command(operation, "create") {
                found = UuidUse::Forces;
            }
            if is_command(operation, "applyOps") {
                ensure!(depth < NESTING_MAX, ErrorCode::FailedToParse, "Too many nested applyOps");
                lists.extend(object.map(|object| (depth + 1, object)));
            }
        }
    }
    Ok(found)
}

fn operations_of(list: DocRef<'_>) -> Result<Vec<DocRef<'_>>> {
    let first = list.first().map_or(Value::Undefined, |element| element.value);
    let Value::Array(operations) = first else { return Err(wrong_type(first, ValueType::Array)) };
    let document = |value: Value<'_>| wrong_type(value, ValueType::Document);
    operations.values().map(|value| value.as_document().ok_or_else(|| document(value))).collect()
}

fn has_uuid(document: DocRef<'_>) -> bool {
    document.elements().any(|element| matches!(element.value, Value::Binary { subtype: 4, .. }))
}

/// The object of an operation that is a command.
fn command_object(operation: DocRef<'_>) -> Result<Option<DocRef<'_>>> {
    let kind = field(operation, "op", ValueType::String)?;
    let Value::String(kind) = kind else { return Err(wrong_type(kind, ValueType::String)) };
    if kind != "c" {
        return Ok(None);
    }
    let object = field(operation, "o", ValueType::Document)?;
    object.as_document().map(Some).ok_or_else(|| wrong_type(object, ValueType::Document))
}

/// Is it the command of this name?
pub(super) fn is_command(operation: DocRef<'_>, name: &str) -> bool {
    let object = operation.get("o").and_then(|object| object.as_document());
    operation.get("op") == Some(Value::String("c".into()))
        && object.and_then(|object| object.first()).is_some_and(|first| first.name == name)
}

fn wrong_type(value: Value<'_>, expected: ValueType) -> Error {
    let reason =
        format!("Wrong type for value. Expected type '{}', found '{}'", expected.name(), value.value_type().name());
    Error::type_mismatch(reason)
}

/// A field of an operation, which has to be there.
fn field<'a>(operation: DocRef<'a>, name: &str, expected: ValueType) -> Result<Value<'a>> {
    let missing = || {
        let reason = format!("Wrong type for '{name}'. Expected a {}, got a missing.", expected.name());
        Error::new(ErrorCode::NoSuchKey, reason)
    };
    operation.get(name).ok_or_else(missing)
}

/// The operations, each of which says what it is and where.
pub(super) fn check_operations(target: Value<'_>) -> Result<ArrayRef<'_>> {
    let Value::Array(operations) = target else { bail!(ErrorCode::FailedToParse, "ops has to be an array") };
    for (place, operation) in operations.values().enumerate() {
        check_operation(place, operation)?;
    }
    Ok(operations)
}

fn check_operation(place: usize, operation: Value<'_>) -> Result<()> {
    let illegal = ErrorCode::IllegalOperation;
    let Value::Document(operation) = operation else {
        bail!(ErrorCode::FailedToParse, "op not an object: {place}");
    };
    let kind = match operation.get("op") {
        None => bail!(illegal, "op does not contain required \"op\" field: {place}"),
        Some(Value::String(kind)) => kind,
        Some(_) => bail!(illegal, "\"op\" field is not a string: {place}"),
    };
    ensure!(!kind.is_empty(), illegal, "\"op\" field value cannot be empty: {place}");
    let namespace = match operation.get("ns") {
        None => bail!(illegal, "op does not contain required \"ns\" field: {place}"),
        Some(Value::String(namespace)) => namespace,
        Some(_) => bail!(illegal, "\"ns\" field is not a string: {place}"),
    };
    ensure!(!namespace.contains(&0), illegal, "namespaces cannot have embedded null characters");
    ensure!(
        kind == "n" || !namespace.is_empty(),
        illegal,
        "\"ns\" field value cannot be empty when op type is not 'n': {place}"
    );
    Ok(())
}
