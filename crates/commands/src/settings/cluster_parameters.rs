//! The cluster parameters that there are, with the values that hold until somebody sets others, and what they may be.

use pando_base::{Error, ErrorCode, Result, bail, ensure};
use pando_doc::{Doc, DocBuilder, DocRef, Value, doc};

/// What a field of a cluster parameter is.
#[derive(Clone, Copy, Debug)]
enum Field {
    Long(&'static str, i64),
    /// A whole number above zero, and at most this.
    Int(&'static str, i32, i32),
    /// A share: a number from 0 to 1.
    Share(&'static str, f64),
    Bool(&'static str, bool),
    Text(&'static str, &'static str),
    /// `changeStreamOptions`'s only one.
    PreAndPostImages,
}

/// A cluster parameter.
#[derive(Debug)]
pub(super) struct ClusterParameter {
    pub(super) name: &'static str,
    fields: &'static [Field],
    is_for_tests: bool,
    /// Why it cannot be set here, where it is only shown.
    refusal: Option<&'static str>,
}

const fn parameter(name: &'static str, fields: &'static [Field]) -> ClusterParameter {
    ClusterParameter { name, fields, is_for_tests: false, refusal: None }
}

const fn for_tests(name: &'static str, fields: &'static [Field]) -> ClusterParameter {
    ClusterParameter { is_for_tests: true, ..parameter(name, fields) }
}

/// The most entries that one clean-up of encrypted collections may delete, which a request has to hold.
const ENTRY_COUNT_MAX: i32 = 350_000;

/// All, by name.
static PARAMETERS: &[ClusterParameter] = &[
    parameter("changeStreamOptions", &[Field::PreAndPostImages]),
    ClusterParameter {
        refusal: Some("'changeStreams' is only supported in serverless, which this node does not offer"),
        ..parameter("changeStreams", &[Field::Long("expireAfterSeconds", 3600)])
    },
    parameter(
        "fleCompactionOptions",
        &[
            Field::Int("maxCompactionSize", 268_435_456, i32::MAX),
            Field::Int("maxESCEntriesPerCompactionDelete", ENTRY_COUNT_MAX, ENTRY_COUNT_MAX),
        ],
    ),
    parameter("internalQueryCutoffForSampleFromRandomCursor", &[Field::Share("sampleCutoff", 0.05)]),
    parameter("shardedClusterCardinalityForDirectConns", &[Field::Bool("hasTwoOrMoreShards", false)]),
    for_tests("testBoolClusterParameter", &[Field::Bool("boolData", false)]),
    for_tests("testIntClusterParameter", &[Field::Long("intData", 16)]),
    for_tests("testMinFcvClusterParameter", &[Field::Long("intData", 16)]),
    for_tests("testStrClusterParameter", &[Field::Text("strData", "off")]),
];

/// Those that are there.
pub(super) fn all(test_commands_enabled: bool) -> impl Iterator<Item = &'static ClusterParameter> {
    PARAMETERS.iter().filter(move |parameter| test_commands_enabled || !parameter.is_for_tests)
}

/// The one of this name.
pub(super) fn find(name: &str, test_commands_enabled: bool) -> Result<&'static ClusterParameter> {
    let Some(found) = PARAMETERS.iter().find(|parameter| parameter.name == name) else {
        bail!(ErrorCode::NoSuchKey, "Unknown server parameter: {name}");
    };
    let is_enabled = test_commands_enabled || !found.is_for_tests;
    ensure!(is_enabled, ErrorCode::BadValue, "Server parameter: '{name}' is disabled");
    Ok(found)
}

impl ClusterParameter {
    /// The value that holds until it is set.
    pub(super) fn default_fields(&self) -> Doc {
        let mut out = DocBuilder::new();
        self.fields.iter().for_each(|field| field.append_default(&mut out));
        out.finish()
    }

    /// The whole value that these fields make: what is not among them has its default.
    pub(super) fn read(&self, given: DocRef<'_>) -> Result<Doc> {
        if let Some(refusal) = self.refusal {
            return Err(Error::new(ErrorCode::CommandNotSupported, refusal));
        }
        for element in given.elements() {
            let is_known = self.fields.iter().any(|field| element.name == field.name());
            let name = element.name;
            // The one with a parser of its own has an error of its own.
            let has_parser = self.fields.iter().any(|field| field.is_required());
            let code = if has_parser { ErrorCode::BadValue } else { ErrorCode::IDLUnknownField };
            ensure!(
                is_known,
                code,
                "Failed parsing new {0} value: BSON field '{0}.{name}' is an unknown field.",
                self.name
            );
        }
        let mut out = DocBuilder::new();
        for field in self.fields {
            match given.get(field.name()) {
                Some(value) => field.append(self.name, value, &mut out)?,
                None if field.is_required() => bail!(
                    ErrorCode::BadValue,
                    "Failed parsing new {0} value: BSON field '{0}.{1}' is missing but a required field",
                    self.name,
                    field.name()
                ),
                None => field.append_default(&mut out),
            }
        }
        Ok(out.finish())
    }
}

impl Field {
    const fn name(self) -> &'static str {
        match self {
            Field::Long(name, _)
            | Field::Int(name, ..)
            | Field::Share(name, _)
            | Field::Bool(name, _)
            | Field::Text(name, _) => name,
            Field::PreAndPostImages => "preAndPostImages",
        }
    }

    const fn is_required(self) -> bool {
        matches!(self, Field::PreAndPostImages)
    }

    fn append_default(self, out: &mut DocBuilder) {
        match self {
            Field::Long(name, default) => out.append(name, default),
            Field::Int(name, default, _) => out.append(name, default),
            Field::Share(name, default) => out.append(name, default),
            Field::Bool(name, default) => out.append(name, default),
            Field::Text(name, default) => out.append(name, default),
            Field::PreAndPostImages => out.append("preAndPostImages", doc! { "expireAfterSeconds": "off" }),
        }
    }

    fn append(self, parameter: &str, value: Value<'_>, out: &mut DocBuilder) -> Result<()> {
        let wrong_type = || {
            let (name, found) = (self.name(), value.value_type().name());
            Error::type_mismatch(format!("BSON field '{parameter}.{name}' is the wrong type '{found}'"))
        };
        match self {
            Field::Long(name, _) => out.append(name, whole(value).ok_or_else(wrong_type)?),
            Field::Int(name, _, most) => {
                let number = whole(value).ok_or_else(wrong_type)?;
                let is_fit = (1..=i64::from(most)).contains(&number);
                ensure!(is_fit, ErrorCode::BadValue, "BSON field '{parameter}.{name}' must be from 1 to {most}");
                out.append(name, number as i32);
            }
            Field::Share(name, _) => {
                let number = value.to_double().filter(|_| value.is_number()).ok_or_else(wrong_type)?;
                let is_fit = (0.0..=1.0).contains(&number);
                ensure!(is_fit, ErrorCode::BadValue, "BSON field '{parameter}.{name}' must be from 0 to 1");
                out.append(name, number);
            }
            Field::Bool(name, _) => match value {
                Value::Bool(truth) => out.append(name, truth),
                _ => return Err(wrong_type()),
            },
            Field::Text(name, _) => match value.as_str() {
                Some(text) => out.append(name, text),
                None => return Err(wrong_type()),
            },
            Field::PreAndPostImages => {
                let images =
                    value.as_document().ok_or_else(|| Error::bad_value("preAndPostImages must be an object"))?;
                out.append("preAndPostImages", pre_and_post_images(images)?);
            }
        }
        Ok(())
    }
}

fn whole(value: Value<'_>) -> Option<i64> {
    value.as_number().map(|number| number.truncated_i64())
}

/// When pre-images expire: `{expireAfterSeconds: "off" or a number above zero}`.
fn pre_and_post_images(images: DocRef<'_>) -> Result<Doc> {
    let expiry = images.get("expireAfterSeconds");
    let is_alone = images.field_count() == usize::from(expiry.is_some());
    ensure!(is_alone, ErrorCode::BadValue, "Failed parsing new changeStreamOptions value: unknown field in {images}");
    let Some(expiry) = expiry else {
        bail!(
            ErrorCode::BadValue,
            "Failed parsing new changeStreamOptions value: BSON field 'changeStreamOptions.expireAfterSeconds' is missing \
             but a required field"
        );
    };
    if let Some(text) = expiry.as_str() {
        ensure!(text == "off", ErrorCode::BadValue, "Non-numeric value of 'expireAfterSeconds' should be 'off'");
        return Ok(doc! { "expireAfterSeconds": "off" });
    }
    let Some(seconds) = whole(expiry) else {
        let found = expiry.value_type().name();
        bail!(
            ErrorCode::BadValue,
            "Failed parsing new changeStreamOptions value: expireAfterSeconds is of type {found}"
        );
    };
    ensure!(seconds > 0, ErrorCode::BadValue, "Numeric value of 'expireAfterSeconds' should be positive");
    Ok(doc! { "expireAfterSeconds": seconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn u17_the_cluster_parameters_are_sorted_and_their_defaults_can_be_set() {
        assert!(PARAMETERS.is_sorted_by_key(|parameter| parameter.name));
        for parameter in PARAMETERS.iter().filter(|parameter| parameter.refusal.is_none()) {
            let defaults = parameter.default_fields();
            assert_eq!(parameter.read(defaults.view()).unwrap(), defaults, "{}", parameter.name);
            assert!(parameter.read(doc! { "nonsense": 1 }.view()).is_err());
        }
    }
}
