//! `local.startup_log`: a document for each start of the node, with what it was started with.

use crate::options::ServerOptions;
use pando_base::{Namespace, Result};
use pando_commands::{Data, diagnostic};
use pando_doc::{DateParts, Doc, DocBuilder, Value};
use pando_env::{Env, MachineFacts};

/// Older starts give way to newer ones.
const SIZE_BYTES: u64 = 10 * 1024 * 1024;

/// Notes this start.
pub(crate) fn add(env: &Env, data: &Data, facts: &MachineFacts, options: &ServerOptions) -> Result<()> {
    let document = document(env, facts, options);
    let local = &data.replication_parts.local;
    let mut outcome = Ok(());
    env.tasks().blocking(&mut || {
        let mut operation = data.services.internal_operation("startup_log");
        outcome = local
            .ensure_capped(&mut operation, Namespace::startup_log(), SIZE_BYTES)
            .and_then(|_| local.add(&mut operation, Namespace::startup_log(), document.view()));
    });
    outcome
}

fn document(env: &Env, facts: &MachineFacts, options: &ServerOptions) -> Doc {
    let now_ms = i64::try_from(env.clock().wall_ms()).unwrap_or(i64::MAX);
    let mut document = DocBuilder::new();
    document.append("_id", format!("{}-{now_ms}", facts.hostname));
    document.append("hostname", &facts.hostname);
    document.append("startTime", Value::DateTime(now_ms));
    document.append("startTimeLocal", date_text(now_ms));
    document.append("cmdLine", &options.parsed);
    document.append("pid", i64::from(facts.process_id));
    document.document("buildinfo", diagnostic::append_build_info);
    document.finish()
}

/// The date as old programs write it, by the universal time: "Thu Jan  1 00:00:00.000".
fn date_text(date_ms: i64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let DateParts { month, day, hour, minute, second, millisecond, .. } = DateParts::from_milliseconds(date_ms);
    let weekday = usize::try_from(date_ms.div_euclid(86_400_000).rem_euclid(7)).unwrap_or(0);
    let month = usize::try_from(month).unwrap_or(1).saturating_sub(1);
    let name = |names: &[&'static str], place: usize| names.get(place).copied().unwrap_or_default();
    let (weekday, month) = (name(&DAYS, weekday), name(&MONTHS, month));
    format!("{weekday} {month} {day:>2} {hour:02}:{minute:02}:{second:02}.{millisecond:03}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_written_as_old_programs_write_them() {
        assert_eq!(date_text(0), "Thu Jan  1 00:00:00.000");
        assert_eq!(date_text(1_136_214_245_678), "Mon Jan  2 15:04:05.678");
    }
}
