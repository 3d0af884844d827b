//! A member in the set's configuration.

use super::host::HostAndPort;
use super::range::in_range;
use pando_base::{Error, Result};
use pando_doc::{Doc, DocBuilder, DocRef, Number, Value};
use pando_session::fields::{Fields, document, safe_boolean, text, whole_number};

const PRIORITY_MAX: f64 = 1000.0;
const DELAY_SECONDS_MAX: i64 = 3600 * 24 * 366;
const ID_MAX: i64 = 255;

/// One member.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// `_id`: stays with the member through reconfigurations.
    pub id: i64,
    /// `host`.
    pub host: HostAndPort,
    /// `arbiterOnly`: votes, but has no data.
    pub is_arbiter: bool,
    /// `buildIndexes`.
    pub builds_indexes: bool,
    /// `hidden`: clients are not told of it.
    pub is_hidden: bool,
    /// `priority`: zero can never be primary.
    pub priority: f64,
    /// `tags`, in their order.
    pub tags: Doc,
    /// `horizons`: names under which clients elsewhere reach it.
    pub horizons: Option<Doc>,
    /// `secondaryDelaySecs`: how far behind it stays on purpose.
    pub delay_seconds: i64,
    /// `votes`: has it one?
    pub votes: bool,
    /// `newlyAdded`: it does not vote until it has caught up.
    pub is_newly_added: bool,
}

impl Member {
    /// A member with everything as usual.
    pub fn new(id: i64, host: HostAndPort) -> Member {
        Member {
            id,
            host,
            is_arbiter: false,
            builds_indexes: true,
            is_hidden: false,
            priority: 1.0,
            tags: Doc::new(),
            horizons: None,
            delay_seconds: 0,
            votes: true,
            is_newly_added: false,
        }
    }

    /// Reads a member and checks what can be said of it alone.
    pub fn parse(member: DocRef<'_>) -> Result<Member> {
        let fields = Fields::of("MemberConfig", member);
        fields.only(&[
            "_id",
            "host",
            "arbiterOnly",
            "buildIndexes",
            "hidden",
            "priority",
            "tags",
            "horizons",
            "secondaryDelaySecs",
            "votes",
            "newlyAdded",
        ])?;
        let flag =
            |name: &str, default: bool| -> Result<bool> { Ok(fields.optional(name, safe_boolean)?.unwrap_or(default)) };
        let number = |name: &str, default: i64, range| -> Result<i64> {
            in_range("MemberConfig", name, fields.optional(name, whole_number)?.unwrap_or(default), range)
        };
        let mut parsed = Member {
            id: in_range("MemberConfig", "_id", fields.required("_id", whole_number)?, 0..=ID_MAX)?,
            host: HostAndPort::parse(fields.required("host", text)?)?,
            is_arbiter: flag("arbiterOnly", false)?,
            builds_indexes: flag("buildIndexes", true)?,
            is_hidden: flag("hidden", false)?,
            priority: fields.optional("priority", real)?.unwrap_or(1.0),
            tags: tags(fields.optional("tags", document)?)?,
            horizons: fields.optional("horizons", document)?.map(DocRef::to_doc),
            delay_seconds: number("secondaryDelaySecs", 0, 0..=DELAY_SECONDS_MAX)?,
            votes: number("votes", 1, 0..=1)? == 1,
            is_newly_added: flag("newlyAdded", false)?,
        };
        // Arbiters have the usual priority only because nobody said otherwise.
        if parsed.is_arbiter && parsed.priority == 1.0 {
            parsed.priority = 0.0;
        }
        parsed.check()?;
        Ok(parsed)
    }

    fn check(&self) -> Result<()> {
        let priority_range = 0.0..=PRIORITY_MAX;
        let refusals = [
            (!priority_range.contains(&self.priority), "priority must be between 0 and 1000"),
            (self.is_arbiter && !self.votes, "Arbiter must vote (cannot have 0 votes)"),
            (self.is_arbiter && self.is_newly_added, "Arbiter cannot have newlyAdded field set"),
            (self.is_arbiter && !self.tags.is_empty(), "Cannot set tags on arbiters."),
        ];
        let when_electable = [
            (!self.votes, "priority must be 0 when non-voting (votes:0)"),
            (self.delay_seconds > 0, "priority must be 0 when secondaryDelaySecs is used"),
            (self.is_hidden, "priority must be 0 when hidden=true"),
            (!self.builds_indexes, "priority must be 0 when buildIndexes=false"),
        ];
        let when_electable = when_electable.into_iter().filter(|_| self.priority != 0.0);
        match refusals.into_iter().chain(when_electable).find(|(refused, _)| *refused) {
            Some((_, reason)) => Err(Error::bad_value(reason)),
            None => Ok(()),
        }
    }

    /// Can it become primary?
    pub fn is_electable(&self) -> bool {
        !self.is_arbiter && self.effective_priority() > 0.0
    }

    /// Does it vote now?
    pub fn is_voter(&self) -> bool {
        self.votes && !self.is_newly_added
    }

    /// The priority that counts now.
    pub fn effective_priority(&self) -> f64 {
        if self.is_newly_added { 0.0 } else { self.priority }
    }

    /// The member as a document.
    pub fn to_doc(&self) -> Doc {
        let mut builder = DocBuilder::new();
        append_small(&mut builder, "_id", self.id);
        builder.append("host", self.host.to_string());
        builder.append("arbiterOnly", self.is_arbiter);
        builder.append_some("newlyAdded", self.is_newly_added.then_some(true));
        builder.append("buildIndexes", self.builds_indexes);
        builder.append("hidden", self.is_hidden);
        builder.append("priority", self.priority);
        builder.append("tags", &self.tags);
        builder.append_some("horizons", self.horizons.as_ref());
        if !self.is_arbiter {
            builder.append("secondaryDelaySecs", self.delay_seconds);
        }
        builder.append("votes", i32::from(self.votes));
        builder.finish()
    }
}

/// An int if it fits, else a long.
pub(super) fn append_small(builder: &mut DocBuilder, name: &str, number: i64) {
    match i32::try_from(number) {
        Ok(number) => builder.append(name, number),
        Err(_) => builder.append(name, number),
    }
}

fn real(value: Value<'_>) -> std::result::Result<f64, &'static str> {
    match value.as_number().ok_or("double")? {
        Number::Int32(number) => Ok(f64::from(number)),
        Number::Int64(number) => Ok(number as f64),
        Number::Double(number) => Ok(number),
        Number::Decimal(_) => Err("double"),
    }
}

fn tags(tags: Option<DocRef<'_>>) -> Result<Doc> {
    let Some(tags) = tags else { return Ok(Doc::new()) };
    match tags.elements().find(|tag| tag.value.as_bytes().is_none()) {
        Some(tag) => {
            let (name, kind) = (tag.name, tag.value.value_type().name());
            Err(Error::type_mismatch(format!("tags.{name} field has non-string value of type {kind}")))
        }
        None => Ok(tags.to_doc()),
    }
}
