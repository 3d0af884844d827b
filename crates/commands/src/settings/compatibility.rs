//! The version whose formats are written (featureCompatibilityVersion), its document, and between which versions one may go.
//!
//! A change goes over a document that names where it comes from and where it goes, so that one that was cut off is known and can be
//! finished.

use super::text_field;
use crate::{FEATURE_COMPATIBILITY_VERSION, Invocation, MAX_WIRE_VERSION};
use pando_base::{ErrorCode, Parameter, ParameterSet, Result, Settable, bail};
use pando_doc::{Doc, DocBuilder, DocRef};

/// The document's `_id`.
pub(super) const ID: &str = "featureCompatibilityVersion";

/// `setFeatureCompatibilityVersion` wants a `confirm: true`.
pub(crate) static REQUIRE_CONFIRM: Parameter<bool> = Parameter::new(
    "requireConfirmInSetFcv",
    true,
    "setFeatureCompatibilityVersion has to be confirmed with 'confirm: true'.",
)
.settable(Settable::AtStartup)
.for_tests();

/// The version before this one that is no long-term one is not gone back to.
pub(crate) static DISABLE_TRANSITION_TO_LAST_CONTINUOUS: Parameter<bool> = Parameter::new(
    "disableTransitionFromLatestToLastContinuous",
    true,
    "setFeatureCompatibilityVersion does not go from 7.0 to 6.3.",
)
.settable(Settable::AtStartup)
.for_tests();

/// A version that data can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Version {
    LastLongTerm,
    LastContinuous,
    Latest,
}

impl Version {
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Version::LastLongTerm => "6.0",
            Version::LastContinuous => "6.3",
            Version::Latest => "7.0",
        }
    }

    pub(super) fn parse(text: &str) -> Result<Version> {
        let all = [Version::LastLongTerm, Version::LastContinuous, Version::Latest];
        match all.into_iter().find(|version| version.as_str() == text) {
            Some(version) => Ok(version),
            None => bail!(
                ErrorCode::location(4926900),
                "Invalid feature compatibility version value '{text}'; expected '6.0' or '6.3' or '7.0'. See \
                 https://docs.mongodb.com/master/release-notes/6.0-compatibility/#feature-compatibility."
            ),
        }
    }
}

/// What the document says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// One version.
    At(Version),
    /// On the way between two, which are different.
    Between { from: Version, to: Version },
}

impl State {
    /// Reads a document of `admin.system.version`; none if it is about something else.
    pub(super) fn of_stored(document: DocRef<'_>) -> Result<Option<State>> {
        match document.get("_id").and_then(|id| id.as_str()) == Some(ID) {
            true => State::of_shown(document).map(Some),
            false => Ok(None),
        }
    }

    /// Reads it without its `_id`.
    pub(super) fn of_shown(document: DocRef<'_>) -> Result<State> {
        let version = |name| text_field(document, name)?.map(|text| Version::parse(&text)).transpose();
        let Some(at) = version("version")? else {
            bail!(ErrorCode::location(40414), "BSON field 'version' is missing but a required field: {document}");
        };
        Ok(match (version("targetVersion")?, version("previousVersion")?) {
            (Some(to), Some(from)) if from != to => State::Between { from, to },
            (Some(to), None) if to != at => State::Between { from: at, to },
            (None, None) => State::At(at),
            _ => bail!(ErrorCode::location(4926904), "Invalid featureCompatibilityVersion document: {document}"),
        })
    }

    /// As getParameter shows it: while it goes down the lower version is in force, while it goes up as well.
    pub(super) fn shown(self) -> Doc {
        let mut document = DocBuilder::new();
        match self {
            State::At(version) => document.append("version", version.as_str()),
            State::Between { from, to } => {
                document.append("version", from.min(to).as_str());
                document.append("targetVersion", to.as_str());
                if to < from {
                    document.append("previousVersion", from.as_str());
                }
            }
        }
        document.finish()
    }

    /// The document that is kept.
    pub(super) fn to_stored(self) -> Doc {
        let mut document = DocBuilder::new();
        document.append("_id", ID);
        document.append_all(self.shown().view());
        document.finish()
    }

    /// The version that a change begins from.
    pub(super) fn version(self) -> Version {
        match self {
            State::At(version) => version,
            State::Between { from, .. } => from,
        }
    }

    /// How messages call it.
    pub(super) fn describe(self) -> String {
        match self {
            State::At(version) => version.as_str().to_owned(),
            State::Between { from, to } if from < to => {
                format!("upgrading from {} to {}", from.as_str(), to.as_str())
            }
            State::Between { from, to } => format!("downgrading from {} to {}", from.as_str(), to.as_str()),
        }
    }

    /// May one go to this version? Between the older two there is no way.
    pub(super) fn permits(self, to: Version, goes_to_last_continuous: bool) -> bool {
        match self {
            State::At(Version::Latest) => to != Version::LastContinuous || goes_to_last_continuous,
            State::At(_) => to == Version::Latest,
            State::Between { from, to: target } => to == target || to == from,
        }
    }
}

/// The version in force as numbers, for serverStatus and those who draw it: which one, and whether the way goes up or down.
pub(crate) fn append_version_numbers(invocation: &Invocation, section: &mut DocBuilder) {
    let Some(state) = shown_state(&invocation.node.parameters) else { return };
    let (at, transitioning) = match state {
        State::At(version) => (version, 0),
        State::Between { from, to } => (from.min(to), if from < to { 1 } else { -1 }),
    };
    let mut numbers = at.as_str().split('.').map(|number| number.parse().unwrap_or(0_i32));
    section.append("major", numbers.next().unwrap_or(0));
    section.append("minor", numbers.next().unwrap_or(0));
    section.append("transitioning", transitioning);
}

/// The oldest wire version that another server may speak: older ones do not know what may be stored here.
pub(crate) fn oldest_wire_version(parameters: &ParameterSet) -> i32 {
    match shown_state(parameters) {
        Some(State::At(Version::LastContinuous)) => MAX_WIRE_VERSION - 1,
        Some(State::At(Version::LastLongTerm)) => MAX_WIRE_VERSION - LAST_LONG_TERM_BEFORE,
        _ => MAX_WIRE_VERSION,
    }
}

/// How many versions lie between this one and the last with long support.
const LAST_LONG_TERM_BEFORE: i32 = 4;

fn shown_state(parameters: &ParameterSet) -> Option<State> {
    State::of_shown(DocRef::trusted(&parameters.get(&FEATURE_COMPATIBILITY_VERSION))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pando_doc::doc;

    #[test]
    fn u17_the_document_says_where_a_change_comes_from_and_goes() {
        use Version::{LastContinuous, LastLongTerm, Latest};
        for (state, shown) in [
            (State::At(Latest), doc! { "version": "7.0" }),
            (
                State::Between { from: Latest, to: LastLongTerm },
                doc! { "version": "6.0", "targetVersion": "6.0", "previousVersion": "7.0" },
            ),
            (State::Between { from: LastContinuous, to: Latest }, doc! { "version": "6.3", "targetVersion": "7.0" }),
        ] {
            assert_eq!(state.shown(), shown);
            assert_eq!(State::of_stored(state.to_stored().view()).unwrap(), Some(state));
        }
        assert_eq!(State::of_stored(doc! { "_id": "authSchema", "currentVersion": 5 }.view()).unwrap(), None);
        for wrong in [doc! { "version": "5.0" }, doc! {}, doc! { "version": "6.0", "targetVersion": "6.0" }] {
            assert!(State::of_shown(wrong.view()).is_err(), "{wrong}");
        }
        assert!(!State::At(LastLongTerm).permits(LastContinuous, true));
        assert!(!State::At(Latest).permits(LastContinuous, false) && State::At(Latest).permits(LastLongTerm, false));
    }
}
