//! `profile`: which operations on a database are written to its `system.profile`. A level outside of 0 to 2 asks what is set.

use crate::arguments::{SafeDouble, SafeLong};
use crate::watch::{ProfileSettings, ensure_profile_collection, parse_filter};
use crate::{Access, CommandRow, Invocation, SLOW_MS, SLOW_OP_SAMPLE_RATE, run_boxed};
use pando_base::{Component, Error, LogValue, Result, Severity};
use pando_doc::{Doc, DocBuilder, JsonFormat, Value, doc_to_json};
use std::sync::Arc;

const NOTE: &str =
    "When a filter expression is set, slowms and sampleRate are not used for profiling and slow-query log lines.";

pub(super) const ROW: CommandRow = CommandRow {
    name: "profile",
    help: "controls the behavior of the database profiler and slow operation logging; see \
           http://dochub.mongodb.org/core/profilecommand",
    run: |invocation, reply| run_boxed(run(invocation, reply)),
    privileges: Access::Checked(crate::access::may_profile),
    ..CommandRow::DEFAULT
};

crate::arguments! {
    struct ProfileArguments<'a> of "profile" {
        slow_ms: Option<SafeLong> = "slowms",
        sample_rate: Option<SafeDouble> = "sampleRate",
        filter: Option<Value<'a>> = "filter",
    }
}

async fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let (data, node) = (invocation.data()?, &invocation.node);
    let arguments = ProfileArguments::parse(&invocation.request)?;
    let level = match invocation.target().as_number() {
        Some(level) => level.truncated_i64(),
        // What is null is not given: a question.
        None if invocation.target().is_nullish() => -1,
        None => {
            return Err(Error::type_mismatch(format!(
                "BSON field 'profile.profile' is the wrong type '{}', expected types '[long, int, decimal, double]'",
                invocation.target().value_type().name()
            )));
        }
    };
    if arguments.sample_rate.is_some_and(|rate| !(0.0..=1.0).contains(&rate.0)) {
        return Err(Error::bad_value("'sampleRate' must be between 0.0 and 1.0 inclusive"));
    }
    let filter = arguments.filter.map(|filter| parse_filter(filter, node.now_ms())).transpose()?;
    let database = &invocation.database;
    let (before, global) = (data.profiler.settings(database), Global::of(invocation));
    let chosen = i32::try_from(level).ok().filter(|level| (0..=2).contains(level));
    if chosen.is_some() || filter.is_some() {
        let settings = ProfileSettings {
            level: chosen.unwrap_or(before.level),
            filter: filter.as_ref().map_or(before.filter.clone(), |filter| filter.clone().map(Arc::new)),
        };
        if settings.level > 0 {
            let mut operation = invocation.operation()?;
            ensure_profile_collection(data, &mut operation, database).await?;
        }
        data.profiler.set(database, settings);
    }
    append_settings("was", &before, global, reply);
    if before.filter.is_some() || filter.is_some() {
        reply.append("note", NOTE);
    }
    if let Some(slow_ms) = arguments.slow_ms {
        let slow_ms = slow_ms.0.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32;
        node.parameters.set(&SLOW_MS, slow_ms)?;
    }
    if let Some(rate) = arguments.sample_rate {
        node.parameters.set(&SLOW_OP_SAMPLE_RATE, rate.0)?;
    }
    let is_change = level != -1 || filter.is_some() || arguments.slow_ms.is_some() || arguments.sample_rate.is_some();
    if is_change {
        log_change(invocation, &before, global, &data.profiler.settings(database));
    }
    Ok(())
}

/// What holds for all databases.
#[derive(Clone, Copy)]
struct Global {
    slow_ms: i32,
    sample_rate: f64,
}

impl Global {
    fn of(invocation: &Invocation) -> Global {
        let parameters = &invocation.node.parameters;
        Global { slow_ms: parameters.get(&SLOW_MS), sample_rate: parameters.get(&SLOW_OP_SAMPLE_RATE) }
    }
}

fn append_settings(level_name: &str, settings: &ProfileSettings, global: Global, out: &mut DocBuilder) {
    out.append(level_name, settings.level);
    out.append("slowms", global.slow_ms);
    out.append("sampleRate", global.sample_rate);
    out.append_some("filter", settings.filter.as_ref().map(|filter| filter.to_document()));
}

fn log_change(invocation: &Invocation, before: &ProfileSettings, global: Global, after: &ProfileSettings) {
    let shown = |settings: &ProfileSettings, global: Global| -> Doc {
        let mut out = DocBuilder::new();
        append_settings("level", settings, global, &mut out);
        out.finish()
    };
    let json = |document: Doc| LogValue::Json(doc_to_json(document.view(), JsonFormat::Relaxed));
    let attributes = vec![
        ("from", json(shown(before, global))),
        ("to", json(shown(after, Global::of(invocation)))),
        ("db", invocation.database.as_str().into()),
    ];
    let log = invocation.node.log.with_context(invocation.connection.client.description());
    log.write(Severity::Info, Component::Command, 48742, "Profiler settings changed", attributes);
}
