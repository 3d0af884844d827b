//! `$rand`: another number at each evaluation. Chance is handed in with the surroundings; this crate has none of its own.

use super::Operand;
use super::parse::Parser;
use super::tree::Node;
use pando_base::{Error, Result};
use pando_doc::{Element, Value};
use std::fmt;
use std::sync::Arc;

/// Gives numbers from 0 up to, and without, 1.
#[derive(Clone)]
pub struct SharedRandom(Arc<dyn Fn() -> f64 + Send + Sync>);

impl SharedRandom {
    /// The numbers of this function.
    pub fn new(next: impl Fn() -> f64 + Send + Sync + 'static) -> SharedRandom {
        SharedRandom(Arc::new(next))
    }

    /// The next number.
    pub fn next(&self) -> f64 {
        (self.0)()
    }
}

impl fmt::Debug for SharedRandom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedRandom")
    }
}

impl PartialEq for SharedRandom {
    fn eq(&self, other: &SharedRandom) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

pub(super) fn parse(parser: &mut Parser<'_>, element: Element<'_>) -> Result<Node> {
    let Value::Document(arguments) = element.value else {
        return Err(Error::location(10065, "invalid parameter: expected an object ($rand)"));
    };
    if !arguments.is_empty() {
        return Err(Error::location(3_040_501, "$rand does not currently accept arguments"));
    }
    let random = parser.context().random.clone();
    random.map(Node::Random).ok_or_else(|| Error::location(5_388_001, "$rand is not allowed in this context"))
}

pub(super) fn evaluate<'a>(random: &SharedRandom) -> Operand<'a> {
    Operand::from(random.next())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Expression, ParseContext};
    use pando_doc::{DocRef, OwnedValue, doc};
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn u6_rand_gives_another_number_each_time() {
        let count = AtomicU32::new(0);
        let next = move || f64::from(count.fetch_add(1, Ordering::Relaxed)) / 8.0;
        let context = ParseContext { random: Some(SharedRandom::new(next)), ..ParseContext::new(0) };
        let written = doc! { "x": { "$add": [{ "$rand": {} }, 1] } };
        let expression = Expression::parse(written.get("x").unwrap(), &context).unwrap().optimize().unwrap();
        let values: Vec<_> =
            (0..2).map(|_| expression.evaluate_document(DocRef::EMPTY).unwrap().into_value().unwrap()).collect();
        assert_eq!(values, [OwnedValue::Double(1.0), OwnedValue::Double(1.125)]);
        for (wrong, code) in [(doc! { "$rand": [] }, 10065), (doc! { "$rand": { "a": 1 } }, 3_040_501)] {
            let error = Expression::parse(Value::Document(wrong.view()), &context).unwrap_err();
            assert_eq!(error.code().number(), code);
        }
    }
}
