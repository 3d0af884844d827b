//! The options of a time-series collection, and what of them may change.
//!
//! Either a granularity stands for the span of a bucket and for the time to which its start is rounded, or both are given in seconds
//! and are equal. A change never makes the span smaller: a query trusts that no bucket is longer than the span.

use pando_base::{Error, ErrorCode, Result, bail, ensure};
use pando_doc::{Doc, DocBuilder, DocRef, Value, doc};

/// The longest span, in seconds.
const SPAN_SECONDS_MAX: i64 = 31_536_000;

/// How far apart measurements are, roughly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Granularity {
    Seconds,
    Minutes,
    Hours,
}

impl Granularity {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Granularity::Seconds => "seconds",
            Granularity::Minutes => "minutes",
            Granularity::Hours => "hours",
        }
    }

    /// The span of a bucket.
    pub const fn span_seconds(self) -> i32 {
        match self {
            Granularity::Seconds => 3600,
            Granularity::Minutes => 86_400,
            Granularity::Hours => 2_592_000,
        }
    }

    /// What the start of a bucket is a multiple of.
    pub const fn rounding_seconds(self) -> i32 {
        match self {
            Granularity::Seconds => 60,
            Granularity::Minutes => 3600,
            Granularity::Hours => 86_400,
        }
    }

    fn parse(value: Value<'_>, field: &str) -> Result<Granularity> {
        let Value::String(name) = value else { return Err(wrong_type(field, value, "string")) };
        [Granularity::Seconds, Granularity::Minutes, Granularity::Hours]
            .into_iter()
            .find(|granularity| name == granularity.name())
            .ok_or_else(|| {
                let reason = format!("Enumeration value '{name}' for field '{field}' is not a valid value.");
                Error::new(ErrorCode::BadValue, reason)
            })
    }
}

fn wrong_type(field: &str, value: Value<'_>, expected: &str) -> Error {
    Error::type_mismatch(format!(
        "BSON field '{field}' is the wrong type '{}', expected type '{expected}'",
        value.value_type().name()
    ))
}

fn unknown(field: &str) -> Error {
    Error::location(40415, format!("BSON field '{field}' is an unknown field."))
}

/// A number of seconds within its bounds.
fn seconds(value: Value<'_>, field: &str) -> Result<i32> {
    if !value.is_number() {
        let types = "[long, int, decimal, double']";
        let name = value.value_type().name();
        let reason = format!("BSON field '{field}' is the wrong type '{name}', expected types '{types}");
        return Err(Error::type_mismatch(reason));
    }
    let number = value.to_i64_or_zero();
    ensure!(
        number >= 1,
        ErrorCode::location(51024),
        "BSON field '{field}' value must be >= 1, actual value '{number}'"
    );
    ensure!(
        number <= SPAN_SECONDS_MAX,
        ErrorCode::location(51024),
        "BSON field '{field}' value must be <= {SPAN_SECONDS_MAX}, actual value '{number}'"
    );
    Ok(i32::try_from(number).unwrap_or(i32::MAX))
}

/// What a time-series collection is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimeseriesOptions {
    /// The field with the time.
    pub time_field: String,
    /// The field that tells the source.
    pub meta_field: Option<String>,
    /// How far apart measurements are.
    pub granularity: Option<Granularity>,
    /// What the start of a bucket is a multiple of.
    pub bucket_rounding_seconds: Option<i32>,
    /// How much later than its start a measurement of a bucket may be.
    pub bucket_max_span_seconds: Option<i32>,
}

impl TimeseriesOptions {
    /// Reads them as they are written in `create` or stored.
    pub fn parse(options: DocRef<'_>) -> Result<TimeseriesOptions> {
        let mut parsed = TimeseriesOptions {
            time_field: String::new(),
            meta_field: None,
            granularity: None,
            bucket_rounding_seconds: None,
            bucket_max_span_seconds: None,
        };
        let mut has_time_field = false;
        for element in options.elements().filter(|element| !element.value.is_nullish()) {
            let name = format!("timeseries.{}", element.name);
            match &**element.name {
                b"timeField" => {
                    parsed.time_field = field_name(element.value, &name)?;
                    has_time_field = true;
                }
                b"metaField" => parsed.meta_field = Some(field_name(element.value, &name)?),
                b"granularity" => parsed.granularity = Some(Granularity::parse(element.value, &name)?),
                b"bucketRoundingSeconds" => parsed.bucket_rounding_seconds = Some(seconds(element.value, &name)?),
                b"bucketMaxSpanSeconds" => parsed.bucket_max_span_seconds = Some(seconds(element.value, &name)?),
                _ => return Err(unknown(&name)),
            }
        }
        if !has_time_field {
            let reason = "BSON field 'timeseries.timeField' is missing but a required field";
            return Err(Error::location(40414, reason));
        }
        Ok(parsed)
    }

    /// What `create` wants of the names of the fields.
    pub fn check_fields(&self, namespace: &str) -> Result<()> {
        let top_level = |name: &str, field: &str| -> Result<()> {
            ensure!(
                !field.contains('.'),
                ErrorCode::InvalidOptions,
                "{namespace}: '{name}' must be a top-level field and not contain a '.'"
            );
            Ok(())
        };
        top_level("timeField", &self.time_field)?;
        let Some(meta) = &self.meta_field else { return Ok(()) };
        ensure!(meta != "_id", ErrorCode::InvalidOptions, "'metaField' cannot be \"_id\"");
        ensure!(*meta != self.time_field, ErrorCode::InvalidOptions, "'metaField' cannot be the same as 'timeField'");
        top_level("metaField", meta)
    }

    /// The options with what was left out.
    pub fn completed(mut self) -> Result<TimeseriesOptions> {
        if let Some(granularity) = self.granularity {
            let span = granularity.span_seconds();
            ensure!(
                self.bucket_max_span_seconds.is_none_or(|given| given == span),
                ErrorCode::InvalidOptions,
                "Time-series 'bucketMaxSpanSeconds' cannot be set to a value other than the default of {span} for the \
                 provided granularity"
            );
            ensure!(
                self.bucket_rounding_seconds.is_none(),
                ErrorCode::InvalidOptions,
                "Time-series 'bucketRoundingSeconds' cannot be set alongside the granularity parameter"
            );
            self.bucket_max_span_seconds = Some(span);
        } else if self.bucket_max_span_seconds.is_some() || self.bucket_rounding_seconds.is_some() {
            ensure!(
                self.bucket_rounding_seconds == self.bucket_max_span_seconds,
                ErrorCode::InvalidOptions,
                "Time-series 'bucketRoundingSeconds' must be equal to 'bucketMaxSpanSeconds'"
            );
        } else {
            self.granularity = Some(Granularity::Seconds);
            self.bucket_max_span_seconds = Some(Granularity::Seconds.span_seconds());
        }
        Ok(self)
    }

    /// The span of a bucket.
    pub fn span_seconds(&self) -> i32 {
        let default = || self.granularity.unwrap_or(Granularity::Seconds).span_seconds();
        self.bucket_max_span_seconds.unwrap_or_else(default)
    }

    /// What the start of a bucket is a multiple of.
    pub fn rounding_seconds(&self) -> i32 {
        match self.granularity {
            Some(granularity) => granularity.rounding_seconds(),
            None => self.bucket_rounding_seconds.unwrap_or(Granularity::Seconds.rounding_seconds()),
        }
    }

    /// The start of the bucket that a measurement of this time opens: rounded down, before 1970 too.
    pub fn rounded_time(&self, time_ms: i64) -> i64 {
        let rounding_ms = i64::from(self.rounding_seconds()) * 1000;
        time_ms.checked_sub(time_ms.rem_euclid(rounding_ms)).unwrap_or(i64::MIN)
    }

    /// True if a bucket that starts here takes a measurement of this time.
    pub fn covers(&self, start_ms: i64, time_ms: i64) -> bool {
        start_ms <= time_ms && time_ms.saturating_sub(start_ms) < i64::from(self.span_seconds()) * 1000
    }

    /// As they are stored and shown.
    pub fn to_doc(&self) -> Doc {
        let mut out = DocBuilder::new();
        out.append("timeField", self.time_field.as_str());
        out.append_some("metaField", self.meta_field.as_deref());
        out.append_some("granularity", self.granularity.map(Granularity::name));
        out.append_some("bucketRoundingSeconds", self.bucket_rounding_seconds);
        out.append_some("bucketMaxSpanSeconds", self.bucket_max_span_seconds);
        out.finish()
    }

    /// The stage that the view consists of.
    pub fn view_stage(&self) -> Doc {
        let mut unpack = DocBuilder::new();
        unpack.append("timeField", self.time_field.as_str());
        unpack.append_some("metaField", self.meta_field.as_deref());
        unpack.append("bucketMaxSpanSeconds", self.span_seconds());
        doc! { "$_internalUnpackBucket": unpack.finish() }
    }

    /// The options after a `collMod`; none if it changes nothing.
    pub fn modified(&self, change: &CollModTimeseries) -> Result<Option<TimeseriesOptions>> {
        const DIRECTION: &str = "Invalid transition for timeseries.granularity. Can only transition from 'seconds' to \
                                 'minutes' or 'minutes' to 'hours'.";
        let (span, rounding) = match (change.granularity, change.span_seconds, change.rounding_seconds) {
            (None, None, None) => return Ok(None),
            (Some(granularity), span, rounding) => {
                ensure!(
                    span.is_none_or(|span| span == granularity.span_seconds()),
                    ErrorCode::InvalidOptions,
                    "Timeseries 'bucketMaxSpanSeconds' is not configurable to a value other than the default for the \
                     provided granularity"
                );
                ensure!(
                    rounding.is_none(),
                    ErrorCode::InvalidOptions,
                    "Timeseries 'bucketRoundingSeconds' is not configurable alongside the granularity parameter"
                );
                if let Some(current) = self.granularity {
                    if current == granularity {
                        return Ok(None);
                    }
                    ensure!(
                        current.span_seconds() < granularity.span_seconds(),
                        ErrorCode::InvalidOptions,
                        "{DIRECTION}"
                    );
                }
                (granularity.span_seconds(), granularity.rounding_seconds())
            }
            (None, Some(span), Some(rounding)) => {
                ensure!(
                    span == rounding,
                    ErrorCode::InvalidOptions,
                    "Timeseries 'bucketRoundingSeconds' needs to be equal to 'bucketMaxSpanSeconds'"
                );
                (span, rounding)
            }
            _ => bail!(
                ErrorCode::InvalidOptions,
                "Timeseries 'bucketMaxSpanSeconds' and 'bucketRoundingSeconds' need to be set alongside each other"
            ),
        };
        if self.span_seconds() == span && self.rounding_seconds() == rounding {
            return Ok(None);
        }
        ensure!(
            self.span_seconds() <= span,
            ErrorCode::InvalidOptions,
            "Timeseries 'bucketMaxSpanSeconds' needs to be equal or greater to transition"
        );
        ensure!(
            self.rounding_seconds() <= rounding,
            ErrorCode::InvalidOptions,
            "Timeseries 'bucketRoundingSeconds' needs to be equal or greater to transition"
        );
        Ok(Some(TimeseriesOptions {
            granularity: change.granularity,
            bucket_max_span_seconds: Some(span),
            bucket_rounding_seconds: change.granularity.is_none().then_some(rounding),
            ..self.clone()
        }))
    }
}

fn field_name(value: Value<'_>, field: &str) -> Result<String> {
    let Value::String(name) = value else { return Err(wrong_type(field, value, "string")) };
    let name = name.to_string();
    ensure!(
        !name.contains('\0'),
        ErrorCode::BadValue,
        "The 'timeField' or the 'metaField' cannot contain embedded null bytes"
    );
    Ok(name)
}

/// What a `collMod` says of a time-series collection.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CollModTimeseries {
    /// The new granularity.
    pub granularity: Option<Granularity>,
    /// The new span.
    pub span_seconds: Option<i32>,
    /// The new rounding.
    pub rounding_seconds: Option<i32>,
}

impl CollModTimeseries {
    /// Reads it.
    pub fn parse(options: DocRef<'_>) -> Result<CollModTimeseries> {
        let mut parsed = CollModTimeseries::default();
        for element in options.elements().filter(|element| !element.value.is_nullish()) {
            let name = format!("collMod.timeseries.{}", element.name);
            match &**element.name {
                b"granularity" => parsed.granularity = Some(Granularity::parse(element.value, &name)?),
                b"bucketMaxSpanSeconds" => parsed.span_seconds = Some(seconds(element.value, &name)?),
                b"bucketRoundingSeconds" => parsed.rounding_seconds = Some(seconds(element.value, &name)?),
                _ => return Err(unknown(&name)),
            }
        }
        Ok(parsed)
    }
}

/// The validator of the collection of buckets.
pub fn bucket_validator(time_field: &str) -> Doc {
    let extreme = || doc! { "bsonType": "object", "required": [time_field], "properties": { (time_field): { "bsonType": "date" } } };
    doc! {
        "$jsonSchema": {
            "bsonType": "object",
            "required": ["_id", "control", "data"],
            "properties": {
                "_id": { "bsonType": "objectId" },
                "control": {
                    "bsonType": "object",
                    "required": ["version", "min", "max"],
                    "properties": {
                        "version": { "bsonType": "number" },
                        "min": (extreme()),
                        "max": (extreme()),
                        "closed": { "bsonType": "bool" },
                        "count": { "bsonType": "number", "minimum": 1 }
                    },
                    "additionalProperties": false
                },
                "data": { "bsonType": "object" },
                "meta": {}
            },
            "additionalProperties": false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(doc: &Doc) -> TimeseriesOptions {
        TimeseriesOptions::parse(doc.view()).unwrap()
    }

    #[test]
    fn x29_granularity_stands_for_span_and_rounding() {
        let seconds = options(&doc! { "timeField": "t" }).completed().unwrap();
        assert_eq!(seconds.to_doc(), doc! { "timeField": "t", "granularity": "seconds", "bucketMaxSpanSeconds": 3600 });
        assert_eq!(seconds.rounded_time(123_456), 120_000);
        assert_eq!(seconds.rounded_time(-1), -60_000);
        assert_eq!(seconds.rounded_time(i64::MIN), i64::MIN);
        let custom = doc! { "timeField": "t", "bucketMaxSpanSeconds": 100, "bucketRoundingSeconds": 100 };
        assert_eq!(options(&custom).completed().unwrap().rounding_seconds(), 100);
        let uneven = doc! { "timeField": "t", "bucketMaxSpanSeconds": 100, "bucketRoundingSeconds": 50 };
        assert_eq!(options(&uneven).completed().unwrap_err().code(), ErrorCode::InvalidOptions);
    }

    #[test]
    fn x29_options_that_are_refused() {
        for (bad, code) in [
            (doc! { "timeField": 1 }, ErrorCode::TypeMismatch),
            (doc! { "metaField": "m" }, ErrorCode::location(40414)),
            (doc! { "timeField": "t", "x": 1 }, ErrorCode::location(40415)),
            (doc! { "timeField": "t", "granularity": "days" }, ErrorCode::BadValue),
            (doc! { "timeField": "t", "bucketMaxSpanSeconds": 0 }, ErrorCode::location(51024)),
        ] {
            assert_eq!(TimeseriesOptions::parse(bad.view()).unwrap_err().code(), code, "{bad:?}");
        }
        for bad in [doc! { "timeField": "a.b" }, doc! { "timeField": "t", "metaField": "_id" }] {
            assert_eq!(options(&bad).check_fields("a.b").unwrap_err().code(), ErrorCode::InvalidOptions);
        }
    }

    #[test]
    fn x29_a_span_only_grows() {
        let change = |doc: Doc| CollModTimeseries::parse(doc.view()).unwrap();
        let minutes = options(&doc! { "timeField": "t", "granularity": "minutes" }).completed().unwrap();
        let hours = minutes.modified(&change(doc! { "granularity": "hours" })).unwrap().unwrap();
        assert_eq!(hours.span_seconds(), 2_592_000);
        assert!(minutes.modified(&change(doc! { "granularity": "seconds" })).is_err());
        assert_eq!(minutes.modified(&change(doc! { "granularity": "minutes" })).unwrap(), None);
        let wide = doc! { "bucketMaxSpanSeconds": 90_000, "bucketRoundingSeconds": 90_000 };
        let custom = minutes.modified(&change(wide)).unwrap().unwrap();
        assert_eq!((custom.granularity, custom.bucket_rounding_seconds), (None, Some(90_000)));
    }
}
