//! How success and errors look.

use pando_base::Error;
use pando_doc::{Array, DocBuilder, DocRef};

/// Ends a reply of a command that succeeded.
pub fn append_ok(reply: &mut DocBuilder) {
    reply.append("ok", 1.0);
}

/// Writes the reply of a command that failed into an empty builder.
pub fn append_error(error: &Error, labels: &[&'static str], labels_in_place: Option<&Array>, reply: &mut DocBuilder) {
    debug_assert!(reply.is_empty(), "what a failed command wrote is thrown away");
    reply.append("ok", 0.0);
    reply.append("errmsg", error.reason());
    reply.append("code", error.code().number());
    reply.append("codeName", &*error.code().name());
    if let Some(details) = error.details() {
        reply.append_all(DocRef::trusted(details));
    }
    append_labels(labels, labels_in_place, reply);
}

/// Appends the labels: the ones that a fail point wants, else those given; nothing if there are none.
pub fn append_labels(labels: &[&'static str], labels_in_place: Option<&Array>, reply: &mut DocBuilder) {
    match labels_in_place {
        Some(array) if array.is_empty() => {}
        Some(array) => reply.append("errorLabels", array),
        None if labels.is_empty() => {}
        None => reply.array("errorLabels", |array| labels.iter().for_each(|label| array.push(*label))),
    }
}
