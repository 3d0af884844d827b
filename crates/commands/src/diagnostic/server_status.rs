//! `serverStatus`: everything that is counted, in sections.
//!
//! A client takes a section out with `name: 0` and asks for one that is not there by default with `name: 1`; `none: 1`
//! leaves all out that were not asked for, `all: 1` leaves none out.

use crate::status::append_metrics;
use crate::{Access, Action, CommandRow, Invocation, StatusSection, VERSION, run_boxed};
use pando_base::Result;
use pando_doc::{DocBuilder, DocRef, Value};

pub(super) const ROW: CommandRow = CommandRow {
    name: "serverStatus",
    help: "returns lots of administrative server statistics",
    run: |invocation, reply| run_boxed(std::future::ready(run(invocation, reply))),
    privileges: Access::Cluster(&[Action::ServerStatus]),
    ..CommandRow::DEFAULT
};

/// The length of a document without fields.
const EMPTY_BYTES: usize = DocRef::EMPTY.size_bytes();

fn run(invocation: &Invocation, reply: &mut DocBuilder) -> Result<()> {
    let (node, body) = (&invocation.node, invocation.body());
    let uptime_ms = node.uptime_ms() as i64;
    reply.append("host", &node.options.host);
    reply.append("version", VERSION);
    reply.append("process", &node.options.process_name);
    reply.append("pid", i64::from(node.machine.facts().process_id));
    reply.append("uptime", (uptime_ms / 1000) as f64);
    reply.append("uptimeMillis", uptime_ms);
    reply.append("uptimeEstimate", uptime_ms / 1000);
    reply.append("localTime", Value::DateTime(node.now_ms()));
    for section in &node.sections {
        let wish = body.get(section.name());
        if is_wanted(body, wish, section.is_included_by_default()) {
            append_section(&**section, invocation, wish, reply);
        }
    }
    if is_wanted(body, body.get("metrics"), true) {
        let mut known = DocBuilder::new();
        append_metrics(&node.metrics, &mut known);
        for element in known.finish().elements() {
            match (element.name == "metrics", element.value) {
                (true, Value::Document(metrics)) => reply.document("metrics", |all| {
                    node.counters.api_versions.append_to(all);
                    all.append_all(metrics);
                }),
                _ => reply.append_element(element),
            }
        }
    }
    Ok(())
}

fn is_wanted(body: DocRef<'_>, wish: Option<Value<'_>>, by_default: bool) -> bool {
    let says = |name| body.get(name).is_some_and(|value| value.is_true());
    match wish {
        Some(wish) => wish.is_true(),
        None if says("all") => true,
        None => by_default && !says("none"),
    }
}

/// A section that stays empty is left out.
fn append_section(
    section: &dyn StatusSection,
    invocation: &Invocation,
    wish: Option<Value<'_>>,
    reply: &mut DocBuilder,
) {
    let mut filled = DocBuilder::new();
    section.fill(invocation, wish, &mut filled);
    if filled.size_bytes() > EMPTY_BYTES {
        reply.append(section.name(), filled.finish());
    }
}
