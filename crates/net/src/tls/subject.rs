//! The subject of a certificate as text, as RFC 2253 writes it: the most special part first.

use x509_parser::der_parser::asn1_rs::{Any, Tag};
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

/// The names of usual parts.
const NAMES: &[(&str, &str)] = &[
    ("2.5.4.3", "CN"),
    ("2.5.4.4", "SN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "street"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.12", "title"),
    ("2.5.4.42", "GN"),
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
];

/// The subject; none if the certificate cannot be read or has none.
pub fn subject_of(certificate: &[u8]) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    Some(written(certificate.subject())).filter(|subject| !subject.is_empty())
}

/// Until when the certificate is good, in milliseconds since 1970.
pub(super) fn expiry_of(certificate: &[u8]) -> Option<i64> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    certificate.validity().not_after.timestamp().checked_mul(1000)
}

fn written(name: &X509Name<'_>) -> String {
    let parts: Vec<String> =
        name.iter_rdn().map(|part| part.iter().map(attribute).collect::<Vec<_>>().join("+")).collect();
    parts.into_iter().rev().collect::<Vec<_>>().join(",")
}

fn attribute(attribute: &AttributeTypeAndValue<'_>) -> String {
    let kind = attribute.attr_type().to_id_string();
    let known = NAMES.iter().find(|(id, _)| *id == kind).map(|(_, name)| *name);
    match (known, text(attribute.attr_value())) {
        (Some(name), Some(value)) => format!("{name}={}", escaped(&value)),
        (name, _) => format!("{}=#{}", name.unwrap_or(&kind), hexadecimal(attribute.attr_value())),
    }
}

fn text(value: &Any<'_>) -> Option<String> {
    match value.tag() {
        Tag::Utf8String | Tag::PrintableString | Tag::Ia5String | Tag::NumericString => {
            std::str::from_utf8(value.data).ok().map(str::to_owned)
        }
        Tag::TeletexString => Some(value.data.iter().map(|byte| char::from(*byte)).collect()),
        Tag::BmpString => {
            let (pairs, _) = value.data.as_chunks::<2>();
            let units: Vec<u16> = pairs.iter().map(|pair| u16::from_be_bytes(*pair)).collect();
            String::from_utf16(&units).ok()
        }
        _ => None,
    }
}

/// Characters that mean something are marked.
fn escaped(value: &str) -> String {
    let last = value.chars().count().saturating_sub(1);
    let mut escaped = String::with_capacity(value.len());
    for (place, character) in value.chars().enumerate() {
        let is_special = matches!(character, ',' | '+' | '"' | '\\' | '<' | '>' | ';')
            || (place == 0 && matches!(character, ' ' | '#'))
            || (place == last && character == ' ');
        if is_special {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

fn hexadecimal(value: &Any<'_>) -> String {
    value.data.iter().map(|byte| format!("{byte:02X}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u10_characters_that_mean_something_are_marked() {
        assert_eq!(escaped("a,b+c\"d\\e<f>g;h"), "a\\,b\\+c\\\"d\\\\e\\<f\\>g\\;h");
        assert_eq!(escaped(" #x "), "\\ #x\\ ");
        assert_eq!(escaped("#"), "\\#");
        assert_eq!(subject_of(b"nonsense"), None);
    }
}
