//! `$accumulator`, a reckoning in JavaScript, and `$_internalJsReduce`, the reduce function of mapReduce.

use crate::expression::{Operand, function_source, needs_script};
use crate::limits::value_bytes;
use crate::{Expression, ParseContext};
use pando_base::{Error, Result};
use pando_doc::{Array, ArrayBuilder, Element, OwnedValue, Value};
use pando_script::SharedScript;
use std::sync::Arc;

/// A reduce function gets so many bytes of values at once.
const REDUCE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The functions of a reckoning.
#[derive(Clone, Debug)]
pub struct ScriptFunctions {
    script: SharedScript,
    steps: Steps,
}

#[derive(Clone, Debug, PartialEq)]
enum Steps {
    Accumulator { init: String, accumulate: String, merge: String, finalize: Option<String> },
    Reduce { reduce: String },
}

impl PartialEq for ScriptFunctions {
    fn eq(&self, other: &ScriptFunctions) -> bool {
        self.steps == other.steps
    }
}

impl ScriptFunctions {
    /// As it is written.
    pub(super) const fn name(&self) -> &'static str {
        match self.steps {
            Steps::Accumulator { .. } => "$accumulator",
            Steps::Reduce { .. } => "$_internalJsReduce",
        }
    }

    fn call(&self, source: &str, arguments: &[Value<'_>]) -> Result<OwnedValue> {
        let scope = self.script.scope()?;
        let function = scope.compile(source)?;
        scope.call(function, Some(pando_doc::DocRef::EMPTY), arguments)
    }
}

/// What a reckoning remembers.
#[derive(Clone, Debug)]
pub(super) enum Progress {
    /// What `init` gave and `accumulate` made of it.
    State(OwnedValue),
    /// The key, and the values as they came.
    Values(Option<OwnedValue>, Vec<OwnedValue>),
}

/// One reckoning.
#[derive(Clone, Debug)]
pub(super) struct Scripted {
    functions: Arc<ScriptFunctions>,
    progress: Progress,
    /// How much the values take that wait to be reduced.
    values_bytes: usize,
}

impl Scripted {
    pub(super) fn new(functions: &Arc<ScriptFunctions>, initial: Option<&Operand<'_>>) -> Result<Scripted> {
        let progress = match &functions.steps {
            Steps::Reduce { .. } => Progress::Values(None, Vec::new()),
            Steps::Accumulator { init, .. } => {
                let given = initial.map_or(Value::Null, Operand::or_null);
                let Value::Array(arguments) = given else {
                    let reason = format!("$accumulator initArgs must evaluate to an array: {given}");
                    return Err(Error::location(4_544_711, reason));
                };
                let arguments: Vec<Value<'_>> = arguments.values().collect();
                Progress::State(functions.call(init, &arguments)?)
            }
        };
        Ok(Scripted { functions: Arc::clone(functions), progress, values_bytes: 0 })
    }

    /// Takes one more value.
    pub(super) fn add(&mut self, value: &Operand<'_>) -> Result<()> {
        match (&self.functions.steps, &mut self.progress) {
            (Steps::Accumulator { accumulate, .. }, Progress::State(state)) => {
                let Value::Array(given) = value.or_null() else {
                    let reason = format!("$accumulator accumulateArgs must evaluate to an array: {}", value.or_null());
                    return Err(Error::location(4_544_712, reason));
                };
                let size_bytes = value_bytes(Value::Array(given)) + value_bytes(state.view());
                if size_bytes > REDUCE_BYTES_MAX {
                    let reason = format!("$accumulator arguments exceed max BSON size: {size_bytes}");
                    return Err(Error::location(4_545_000, reason));
                }
                let arguments: Vec<Value<'_>> = std::iter::once(state.view()).chain(given.values()).collect();
                let next = self.functions.call(accumulate, &arguments)?;
                *state = next;
                Ok(())
            }
            (_, Progress::Values(key, values)) => {
                let Some(given) = value.view() else { return Ok(()) };
                let Value::Document(pair) = given else {
                    let reason =
                        format!("$_internalJsReduce requires a document argument, but found {}", given.value_type());
                    return Err(Error::location(31242, reason));
                };
                let (Some(first), Some(second), 2) = (pair.get("k"), pair.get("v"), pair.field_count()) else {
                    let reason = format!(
                        "$_internalJsReduce requires the 'data' argument to have a 'k' and 'v' field. Instead found{pair}"
                    );
                    return Err(Error::location(31251, reason));
                };
                *key = Some(first.to_owned());
                self.values_bytes += value_bytes(second);
                values.push(second.to_owned());
                Ok(())
            }
            _ => Err(Error::internal("a reckoning of another kind")),
        }
    }

    pub(super) fn memory_bytes(&self) -> usize {
        match &self.progress {
            Progress::State(state) => value_bytes(state.view()),
            Progress::Values(..) => self.values_bytes,
        }
    }

    /// What was remembered so far, as a list of values.
    pub(super) fn write(&self, out: &mut ArrayBuilder) {
        match &self.progress {
            Progress::State(state) => out.push(state.view()),
            Progress::Values(key, values) => {
                key.iter().for_each(|key| out.push(key.view()));
                values.iter().for_each(|value| out.push(value.view()));
            }
        }
    }

    /// Goes on with what another has remembered of later values.
    pub(super) fn merge<'v>(&mut self, mut partial: impl Iterator<Item = Value<'v>>) -> Result<()> {
        match (&self.functions.steps, &mut self.progress) {
            (Steps::Accumulator { merge, .. }, Progress::State(state)) => {
                if let Some(other) = partial.next() {
                    *state = self.functions.call(merge, &[state.view(), other])?;
                }
            }
            (_, Progress::Values(key, values)) => {
                if let Some(first) = partial.next() {
                    *key = Some(first.to_owned());
                }
                for value in partial {
                    self.values_bytes += value_bytes(value);
                    values.push(value.to_owned());
                }
            }
            _ => return Err(Error::internal("a reckoning of another kind")),
        }
        Ok(())
    }

    /// The result; none if nothing was added to reduce.
    pub(super) fn finish(&self) -> Result<Option<OwnedValue>> {
        match (&self.functions.steps, &self.progress) {
            (Steps::Accumulator { finalize: Some(finalize), .. }, Progress::State(state)) => {
                self.functions.call(finalize, &[state.view()]).map(Some)
            }
            (_, Progress::State(state)) => Ok(Some(state.clone())),
            (Steps::Reduce { reduce }, Progress::Values(key, values)) if !values.is_empty() => {
                let key = key.as_ref().map_or(Value::Null, OwnedValue::view);
                self.reduce(reduce, key, values.clone()).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Reduces until one value is left: the last ones first, as many as may be handed over at once.
    fn reduce(&self, reduce: &str, key: Value<'_>, mut values: Vec<OwnedValue>) -> Result<OwnedValue> {
        loop {
            let mut taken = ArrayBuilder::new();
            while let Some(value) = values.last() {
                if taken.size_bytes() + value_bytes(key) + value_bytes(value.view()) > REDUCE_BYTES_MAX {
                    if taken.len() < 2 {
                        return Err(Error::location(31392, "Value too large to reduce"));
                    }
                    break;
                }
                taken.push(value.view());
                values.pop();
            }
            let taken: Array = taken.finish();
            let reduced = self.functions.call(reduce, &[key, Value::Array(taken.view())])?;
            if values.is_empty() {
                return Ok(reduced);
            }
            values.push(reduced);
        }
    }
}

type Parsed = (Arc<ScriptFunctions>, Expression, Option<Expression>);

/// Reads `$accumulator`.
pub(super) fn parse_script_accumulator(element: Element<'_>, context: &ParseContext) -> Result<Parsed> {
    let Value::Document(fields) = element.value else {
        let reason = format!("$accumulator expects an object as an argument; found: {}", element.value.value_type());
        return Err(Error::location(4_544_703, reason));
    };
    let (mut init, mut accumulate, mut merge, mut finalize) = (None, None, None, None);
    let (mut initial, mut input) = (None, None);
    for field in fields.elements() {
        match (&**field.name, field.value) {
            (b"init", value) => init = Some(function("init", value, context)?),
            (b"accumulate", value) => accumulate = Some(function("accumulate", value, context)?),
            (b"merge", value) => merge = Some(function("merge", value, context)?),
            (b"finalize", value) => finalize = Some(function("finalize", value, context)?),
            (b"initArgs", value) => initial = Some(Expression::parse(value, context)?.optimize()?),
            (b"accumulateArgs", value) => input = Some(Expression::parse(value, context)?.optimize()?),
            (b"lang", Value::String(language)) if language == "js" => {}
            (b"lang", Value::String(_)) => {
                return Err(Error::location(4_544_705, "$accumulator only supports lang: 'js'"));
            }
            (b"lang", other) => {
                let reason = format!("$accumulator lang must be a string; found: {}", other.value_type());
                return Err(Error::location(4_544_704, reason));
            }
            _ => {
                let reason = format!("$accumulator got an unexpected field: {}", field.name);
                return Err(Error::location(4_544_706, reason));
            }
        }
    }
    let needed = |code: i32, name: &str| {
        let reason = format!("$accumulator missing required argument '{name}'");
        move || Error::location(code, reason.clone())
    };
    let steps = Steps::Accumulator {
        init: init.ok_or_else(needed(4_544_707, "init"))?,
        accumulate: accumulate.ok_or_else(needed(4_544_708, "accumulate"))?,
        merge: merge.ok_or_else(needed(4_544_709, "merge"))?,
        finalize,
    };
    let input = input.ok_or_else(needed(4_544_710, "accumulateArgs"))?;
    let initial = initial.unwrap_or_else(|| Expression::constant(OwnedValue::Array(ArrayBuilder::new().finish())));
    Ok((functions(steps, context)?, input, Some(initial)))
}

/// Reads `$_internalJsReduce`.
pub(super) fn parse_script_reduce(element: Element<'_>, context: &ParseContext) -> Result<Parsed> {
    let Value::Document(fields) = element.value else {
        let reason =
            format!("$_internalJsReduce requires a document argument, but found {}", element.value.value_type());
        return Err(Error::location(31326, reason));
    };
    let (mut reduce, mut input) = (None, None);
    for field in fields.elements() {
        match (&**field.name, field.value) {
            (b"eval", value) => {
                let source = function_source(value).ok_or_else(|| {
                    let reason = format!(
                        "$_internalJsReduce requires the 'eval' argument to be of type string, or code but found {}",
                        value.value_type()
                    );
                    Error::location(31244, reason)
                })?;
                reduce = Some(source).filter(|source| !source.is_empty());
            }
            (b"data", value) => input = Some(Expression::parse(value, context)?.optimize()?),
            _ => {
                let reason = format!("Invalid argument specified to $_internalJsReduce: {field}");
                return Err(Error::location(31243, reason));
            }
        }
    }
    let reduce = reduce.ok_or_else(|| {
        Error::location(31245, format!("$_internalJsReduce requires 'eval' argument, received input: {fields}"))
    })?;
    let input = input.ok_or_else(|| {
        Error::location(31349, format!("$_internalJsReduce requires 'data' argument, received input: {fields}"))
    })?;
    Ok((functions(Steps::Reduce { reduce }, context)?, input, None))
}

fn functions(steps: Steps, context: &ParseContext) -> Result<Arc<ScriptFunctions>> {
    let reason = "Cannot run server-side javascript without the javascript engine enabled";
    let script = SharedScript::clone(needs_script(context, 31264, reason)?);
    // That there is code is known from here on; that it cannot be compiled is told when it is called.
    script.scope()?;
    Ok(Arc::new(ScriptFunctions { script, steps }))
}

/// The source of a function, which has to be constant.
fn function(name: &str, value: Value<'_>, context: &ParseContext) -> Result<String> {
    let expression = Expression::parse(value, context)?.folded()?;
    let Some(constant) = expression.as_constant() else {
        let reason = format!("$accumulator '{name}' must be a constant expression");
        return Err(Error::location(4_544_701, reason));
    };
    constant
        .and_then(function_source)
        .ok_or_else(|| Error::location(4_544_702, format!("$accumulator '{name}' must be a String or Code")))
}

#[cfg(test)]
mod tests {
    use crate::ParseContext;
    use crate::accumulator::{Accumulator, parse_accumulator};
    use crate::expression::Operand;
    use pando_doc::{DocRef, Value, array, doc};
    use pando_script::{Script, ScriptLimits};
    use std::sync::Arc;

    fn context() -> ParseContext {
        ParseContext { script: Some(Arc::new(Script::new(ScriptLimits::default()))), ..ParseContext::new(0) }
    }

    #[test]
    fn u6_accumulator_runs_its_functions() {
        let written = doc! { "$accumulator": {
        "init": "function(n) { return {sum: n, count: 0} }", "initArgs": [100],
        "accumulate": "function(s, a, b) { return {sum: s.sum + a * b, count: s.count + 1} }",
        "accumulateArgs": ["$a", "$b"],
        "merge": "function(x, y) { return {sum: x.sum + y.sum - 100, count: x.count + y.count} }",
        "finalize": "function(s) { return s.sum + '/' + s.count }", "lang": "js" } };
        let (kind, input, initial) = parse_accumulator(written.view().first().unwrap(), &context()).unwrap();
        let initial = initial.unwrap();
        let start = initial.evaluate_document(DocRef::EMPTY).unwrap();
        let reckon = |numbers: &[i32]| {
            let mut accumulator = Accumulator::new(&kind, Some(&start), None).unwrap();
            for number in numbers {
                let document = doc! { "a": *number, "b": 10 };
                accumulator.add(input.evaluate_document(document.view()).unwrap()).unwrap();
            }
            accumulator
        };
        let mut whole = reckon(&[1, 2]);
        assert_eq!(whole.finish().unwrap().unwrap().view(), Value::String("130/2".into()));
        whole.merge(reckon(&[3]).partial().view()).unwrap();
        assert_eq!(whole.finish().unwrap().unwrap().view(), Value::String("160/3".into()));
        assert_eq!(whole.add(Operand::from(5)).unwrap_err().code().number(), 4_544_712);
        let large = array!["x".repeat(pando_doc::USER_SIZE_BYTES_MAX).as_str()];
        assert_eq!(whole.add(Operand::from(large)).unwrap_err().code().number(), 4_545_000);
    }

    #[test]
    fn u6_reduce_gets_the_key_and_all_values() {
        let written =
            doc! { "$_internalJsReduce": { "data": "$e", "eval": "function(k, v) { return k + ':' + v.join() }" } };
        let (kind, input, _) = parse_accumulator(written.view().first().unwrap(), &context()).unwrap();
        let mut accumulator = Accumulator::new(&kind, None, None).unwrap();
        assert!(accumulator.finish().unwrap().is_none());
        for number in 1..4 {
            let document = doc! { "e": { "k": "x", "v": number } };
            accumulator.add(input.evaluate_document(document.view()).unwrap()).unwrap();
        }
        assert_eq!(accumulator.finish().unwrap().unwrap().view(), Value::String("x:3,2,1".into()));
        let wrong = doc! { "v": 1 };
        assert_eq!(accumulator.add(Operand::from(wrong)).unwrap_err().code().number(), 31251);
    }
}
