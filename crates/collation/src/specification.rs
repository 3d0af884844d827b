//! The specification of a collation: as clients write it, with every field decided, and as it is kept.

use crate::locale::{self, Unknown};
use bstr::BStr;
use pando_base::{Error, ErrorCode, Result, bail, ensure};
use pando_doc::{Doc, DocRef, Value, ValueType, doc};

/// The version of the data that a specification is made for. Clients compare it; it is MongoDB's.
const VERSION: &str = "57.1";

macro_rules! named {
    ($(#[$about:meta])* $name:ident { $($(#[$meaning:meta])* $value:ident = $text:literal,)+ }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$meaning])* $value,)+
        }

        impl $name {
            fn from_name(name: &str) -> Option<$name> {
                match name {
                    $($text => Some($name::$value),)+
                    _ => None,
                }
            }

            /// As specifications say it.
            pub fn name(self) -> &'static str {
                match self {
                    $($name::$value => $text,)+
                }
            }
        }
    };
}

named! {
    /// Which of two letters that differ in case comes first.
    CaseFirst {
        /// `A`.
        Upper = "upper",
        /// `a`.
        Lower = "lower",
        /// `a`, but weaker than other differences of the third level.
        Off = "off",
    }
}

named! {
    /// Whether spaces and punctuation count.
    Alternate {
        /// As letters do.
        NonIgnorable = "non-ignorable",
        /// On the fourth level only.
        Shifted = "shifted",
    }
}

named! {
    /// What `shifted` is about.
    MaxVariable {
        /// Spaces and punctuation.
        Punct = "punct",
        /// Spaces.
        Space = "space",
    }
}

/// A collation, every field decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collation {
    locale: String,
    pub(crate) case_level: bool,
    pub(crate) case_first: CaseFirst,
    pub(crate) strength: u8,
    pub(crate) numeric_ordering: bool,
    pub(crate) alternate: Alternate,
    pub(crate) max_variable: MaxVariable,
    pub(crate) normalization: bool,
    pub(crate) backwards: bool,
}

/// What was written, before the locale's defaults.
#[derive(Default)]
struct Given<'a> {
    locale: Option<&'a str>,
    case_level: Option<bool>,
    case_first: Option<CaseFirst>,
    strength: Option<i32>,
    numeric_ordering: Option<bool>,
    alternate: Option<Alternate>,
    max_variable: Option<MaxVariable>,
    normalization: Option<bool>,
    backwards: Option<bool>,
    version: Option<&'a str>,
}

impl Collation {
    /// Reads a specification; none for the plain order of bytes.
    pub fn parse(specification: DocRef<'_>) -> Result<Option<Collation>> {
        let given = Given::read(specification)?;
        let locale = given.locale.unwrap_or_default();
        ensure!(
            !locale.contains('\0'),
            ErrorCode::BadValue,
            "Field 'locale' cannot contain null byte. Collation spec: {specification}"
        );
        if locale == "simple" {
            return Ok(None);
        }
        let defaults = locale::defaults(locale).map_err(|unknown| refused(locale, &unknown, specification))?;
        let strength = given.strength.unwrap_or(3);
        let collation = Collation {
            locale: locale.to_owned(),
            case_level: given.case_level.unwrap_or(false),
            case_first: given.case_first.unwrap_or(defaults.case_first),
            strength: u8::try_from(strength).ok().filter(|level| (1..=5).contains(level)).ok_or_else(|| {
                Error::bad_value(format!(
                    "Enumeration value '{strength}' for field 'collation.strength' is not a valid value."
                ))
            })?,
            numeric_ordering: given.numeric_ordering.unwrap_or(false),
            alternate: given.alternate.unwrap_or(defaults.alternate),
            max_variable: given.max_variable.unwrap_or(MaxVariable::Punct),
            normalization: given.normalization.unwrap_or(defaults.normalization),
            backwards: given.backwards.unwrap_or(defaults.backwards),
        };
        if let Some(version) = given.version.filter(|version| *version != VERSION) {
            bail!(
                ErrorCode::IncompatibleCollationVersion,
                "Requested collation version {version} but the only available collator version was {VERSION}. Requested \
                 collation spec: {specification}"
            );
        }
        collation.validate(specification)?;
        Ok(Some(collation))
    }

    /// Options that would mean nothing together.
    fn validate(&self, specification: DocRef<'_>) -> Result<()> {
        ensure!(
            !self.backwards || self.strength != 1,
            ErrorCode::BadValue,
            "'backwards' is invalid with 'strength' of 1 in: {specification}"
        );
        ensure!(
            self.case_first == CaseFirst::Off || self.case_level || self.strength > 2,
            ErrorCode::BadValue,
            "'caseFirst' is invalid unless 'caseLevel' is on or 'strength' is greater than 2 in: {specification}"
        );
        Ok(())
    }

    /// The locale's name.
    pub fn locale(&self) -> &str {
        &self.locale
    }

    /// The whole specification, as it is kept and shown.
    pub fn to_doc(&self) -> Doc {
        doc! {
            "locale": self.locale.as_str(),
            "caseLevel": self.case_level,
            "caseFirst": self.case_first.name(),
            "strength": i32::from(self.strength),
            "numericOrdering": self.numeric_ordering,
            "alternate": self.alternate.name(),
            "maxVariable": self.max_variable.name(),
            "normalization": self.normalization,
            "backwards": self.backwards,
            "version": VERSION,
        }
    }
}

impl<'a> Given<'a> {
    fn read(specification: DocRef<'a>) -> Result<Given<'a>> {
        let mut given = Given::default();
        let mut seen: Vec<&BStr> = Vec::new();
        for element in specification.elements() {
            let name = element.name;
            if seen.contains(&name) {
                bail!(ErrorCode::location(40413), "BSON field 'collation.{name}' is a duplicate field");
            }
            seen.push(name);
            given.set(name, element.value)?;
        }
        if given.locale.is_none() {
            bail!(ErrorCode::location(40414), "BSON field 'collation.locale' is missing but a required field");
        }
        Ok(given)
    }

    fn set(&mut self, name: &'a BStr, value: Value<'a>) -> Result<()> {
        let is_nothing = matches!(value, Value::Null | Value::Undefined);
        let field: &[u8] = name;
        match field {
            b"backwards" => self.backwards = Some(strict_flag("backwards", value)?),
            b"locale" | b"caseLevel" | b"caseFirst" | b"strength" | b"numericOrdering" | b"alternate"
            | b"maxVariable" | b"normalization" | b"version"
                if is_nothing => {}
            b"locale" => self.locale = Some(text("locale", value)?),
            b"caseLevel" => self.case_level = Some(flag("caseLevel", value)?),
            b"caseFirst" => self.case_first = Some(one_of("caseFirst", value, CaseFirst::from_name)?),
            b"strength" => self.strength = Some(level(value)?),
            b"numericOrdering" => self.numeric_ordering = Some(flag("numericOrdering", value)?),
            b"alternate" => self.alternate = Some(one_of("alternate", value, Alternate::from_name)?),
            b"maxVariable" => self.max_variable = Some(one_of("maxVariable", value, MaxVariable::from_name)?),
            b"normalization" => self.normalization = Some(flag("normalization", value)?),
            b"version" => self.version = Some(text("version", value)?),
            _ => bail!(ErrorCode::IDLUnknownField, "BSON field 'collation.{name}' is an unknown field."),
        }
        Ok(())
    }
}

fn refused(locale: &str, unknown: &Unknown, specification: DocRef<'_>) -> Error {
    Error::bad_value(match unknown {
        Unknown::Malformed => format!("Field 'locale' is not valid in: {specification}"),
        Unknown::NotFound(_) if locale.is_empty() => {
            format!("Field 'locale' cannot be the empty string in: {specification}")
        }
        Unknown::NotFound(None) => format!("Field 'locale' is invalid in: {specification}"),
        Unknown::NotFound(Some(meant)) => {
            format!("Field 'locale' is invalid in: {specification}. Did you mean '{meant}'?")
        }
    })
}

fn text<'a>(name: &str, value: Value<'a>) -> Result<&'a str> {
    match value {
        Value::String(_) => {
            value.as_str().ok_or_else(|| Error::bad_value(format!("BSON field 'collation.{name}' is not valid UTF-8")))
        }
        other => Err(wrong_type(name, other, "type 'string'")),
    }
}

fn flag(name: &str, value: Value<'_>) -> Result<bool> {
    match value {
        Value::Bool(flag) => Ok(flag),
        other => Err(wrong_type(name, other, "type 'bool'")),
    }
}

/// Null is no truth value here, unlike in the other fields.
fn strict_flag(name: &str, value: Value<'_>) -> Result<bool> {
    match value {
        Value::Bool(flag) => Ok(flag),
        other => {
            let found = other.value_type().name();
            Err(Error::type_mismatch(format!("Field '{name}' should be a boolean value, but found: {found}")))
        }
    }
}

fn one_of<T>(name: &str, value: Value<'_>, read: fn(&str) -> Option<T>) -> Result<T> {
    let chosen = text(name, value)?;
    read(chosen).ok_or_else(|| {
        Error::bad_value(format!("Enumeration value '{chosen}' for field 'collation.{name}' is not a valid value."))
    })
}

fn level(value: Value<'_>) -> Result<i32> {
    let Some(number) = value.as_number() else {
        return Err(wrong_type("strength", value, "types '[long, int, decimal, double']"));
    };
    let level = number.truncated_i64();
    let bound = match level {
        ..0 => ">= 0",
        6.. => "<= 5",
        _ => return Ok(level as i32),
    };
    let level = level.clamp(i64::from(i32::MIN), i64::from(i32::MAX));
    Err(Error::new(
        ErrorCode::location(51024),
        format!("BSON field 'strength' value must be {bound}, actual value '{level}'"),
    ))
}

fn wrong_type(name: &str, found: Value<'_>, expected: &str) -> Error {
    let found = ValueType::name(found.value_type());
    Error::type_mismatch(format!("BSON field 'collation.{name}' is the wrong type '{found}', expected {expected}"))
}
