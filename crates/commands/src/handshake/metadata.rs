//! The document in which a client says who it is: sent once, kept, shown in the log and in currentOp.

use pando_base::{Error, ErrorCode, Result, bail, ensure};
use pando_doc::{DocRef, Value};

/// The largest document.
const SIZE_BYTES_MAX: usize = 1024;
/// The largest of a client of a router, which adds to it.
const ROUTER_SIZE_BYTES_MAX: usize = 512;
/// The longest name of an application.
const APPLICATION_BYTES_MAX: usize = 128;

/// Checks the document and gives the application's name, which may be empty.
pub fn application_name(metadata: DocRef<'_>, is_router: bool) -> Result<String> {
    let size_bytes_max = if is_router { ROUTER_SIZE_BYTES_MAX } else { SIZE_BYTES_MAX };
    ensure!(
        metadata.size_bytes() <= size_bytes_max,
        ErrorCode::ClientMetadataDocumentTooLarge,
        "The client metadata document must be less then or equal to {size_bytes_max} bytes"
    );
    let application = part(metadata, "application")?.map_or(Ok(String::new()), name_of_application)?;
    let driver = part(metadata, "driver")?.ok_or_else(|| missing_part("driver"))?;
    text(driver, "driver", "name")?;
    text(driver, "driver", "version")?;
    let system = part(metadata, "os")?.ok_or_else(|| missing_part("os"))?;
    text(system, "os", "type")?;
    Ok(application)
}

fn name_of_application(application: DocRef<'_>) -> Result<String> {
    let Some(name) = application.get("name") else { return Ok(String::new()) };
    let Value::String(name) = name else { return Err(no_string("application", "name")) };
    ensure!(
        name.len() <= APPLICATION_BYTES_MAX,
        ErrorCode::ClientMetadataAppNameTooLarge,
        "The 'application.name' field must be less then or equal to {APPLICATION_BYTES_MAX} bytes in the client \
         metadata document"
    );
    Ok(name.to_string())
}

fn part<'a>(metadata: DocRef<'a>, name: &str) -> Result<Option<DocRef<'a>>> {
    let Some(value) = metadata.get(name) else { return Ok(None) };
    let Some(part) = value.as_nested() else {
        bail!(
            ErrorCode::TypeMismatch,
            "The '{name}' field is required to be a BSON document in the client metadata document"
        );
    };
    Ok(Some(part))
}

fn text(part: DocRef<'_>, part_name: &str, name: &str) -> Result<()> {
    match part.get(name) {
        Some(Value::String(_)) => Ok(()),
        Some(_) => Err(no_string(part_name, name)),
        None => {
            let reason = format!("Missing required field '{part_name}.{name}' in the client metadata document");
            Err(Error::new(ErrorCode::ClientMetadataMissingField, reason))
        }
    }
}

fn no_string(part: &str, name: &str) -> Error {
    Error::type_mismatch(format!("The '{part}.{name}' field must be a string in the client metadata document"))
}

fn missing_part(name: &str) -> Error {
    let reason = format!("Missing required sub-document '{name}' in the client metadata document");
    Error::new(ErrorCode::ClientMetadataMissingField, reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::{Doc, doc};

    fn code(metadata: Doc) -> i32 {
        application_name(metadata.view(), false).unwrap_err().code().number()
    }

    #[test]
    fn u2_metadata_are_checked() {
        let (driver, os) = (doc! { "name": "d", "version": "1" }, doc! { "type": "Linux" });
        let good = doc! { "application": { "name": "shell" }, "driver": &driver, "os": &os, "platform": "x" };
        assert_eq!(application_name(good.view(), false).unwrap(), "shell");
        assert_eq!(application_name(doc! { "driver": &driver, "os": &os }.view(), true).unwrap(), "");
        assert_eq!(code(doc! { "driver": &driver, "os": &os, "pad": "x".repeat(1024) }), 185);
        assert_eq!(code(doc! { "application": { "name": "x".repeat(129) }, "driver": &driver, "os": &os }), 184);
        assert_eq!(code(doc! { "application": 1, "driver": &driver, "os": &os }), 14);
        assert_eq!(code(doc! { "application": { "name": 1 }, "driver": &driver, "os": &os }), 14);
        assert_eq!(code(doc! { "os": &os }), 183);
        assert_eq!(code(doc! { "driver": &driver }), 183);
        assert_eq!(code(doc! { "driver": { "name": "d" }, "os": &os }), 183);
        assert_eq!(code(doc! { "driver": { "name": "d", "version": 1 }, "os": &os }), 14);
        assert_eq!(code(doc! { "driver": &driver, "os": {} }), 183);
    }
}
