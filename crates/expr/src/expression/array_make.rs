//! Operators that make arrays: `$concatArrays`, `$range`, `$reverseArray`, `$zip`, `$sortArray`.

use super::array::whole_i32;
use super::parse::Parser;
use super::{Environment, Node, Operand, Values, registry, sort};
use pando_base::{Error, ErrorCode, Result, operation};
use pando_doc::{DocBuilder, Element, OwnedValue, Value};

/// How MongoDB reckons the memory of a range: something for the list, and as much for each number.
const RANGE_BASE_BYTES: i64 = 24;
const RANGE_VALUE_BYTES: i64 = 16;

pub(super) fn concat_arrays<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let mut joined = Values::new();
    for operand in operands {
        match operand.or_null() {
            Value::Array(array) => {
                array.as_doc().raw_elements().try_for_each(|element| joined.push_raw(element))?;
            }
            value if value.is_nullish() => return Ok(Operand::NULL),
            value => {
                let reason = format!("$concatArrays only supports arrays, not {}", value.value_type());
                return Err(Error::location(28664, reason));
            }
        }
    }
    Ok(joined.finish())
}

pub(super) fn range<'a>(operands: &[Operand<'a>], environment: &Environment<'_>) -> Result<Operand<'a>> {
    let (Some(start), Some(end)) = (operands.first(), operands.get(1)) else { return Ok(Operand::NULL) };
    let start = whole_i32(start, (34443, 34444), "$range's starting value")?;
    let end = whole_i32(end, (34445, 34446), "$range's ending value")?;
    let step = operands.get(2).map_or(Ok(1), |step| whole_i32(step, (34447, 34448), "$range's step value"))?;
    if step == 0 {
        return Err(Error::location(34449, "$range requires a non-zero step value"));
    }
    let (mut current, end, step) = (i64::from(start), i64::from(end), i64::from(step));
    let count = (end - current) / step;
    let count = if count >= 0 { count + 1 } else { 0 };
    let limit_bytes = environment.limits().range_bytes_max;
    let needed_bytes = RANGE_BASE_BYTES + count * RANGE_VALUE_BYTES;
    if needed_bytes >= limit_bytes {
        let reason = format!(
            "$range would use too much memory ({needed_bytes} bytes) and cannot spill to disk. Memory limit: {limit_bytes} bytes"
        );
        return Err(Error::new(ErrorCode::ExceededMemoryLimit, reason));
    }
    let mut values = Values::new();
    while (step > 0 && current < end) || (step < 0 && current > end) {
        values.push(Value::Int32(current as i32))?;
        current += step;
    }
    Ok(values.finish())
}

pub(super) fn reverse_array<'a>(operands: &[Operand<'a>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let Some(operand) = operands.first() else { return Ok(Operand::NULL) };
    if operand.is_nullish() {
        return Ok(Operand::NULL);
    }
    match operand.array_operands()? {
        Some(values) => Operand::array(values.into_iter().rev()),
        None => {
            let reason =
                format!("The argument to $reverseArray must be an array, but was of type: {}", operand.type_name());
            Err(Error::location(34435, reason))
        }
    }
}

/// The lists have to stand there as lists, so that their lengths can be compared.
pub(super) fn parse_zip(parser: &mut Parser<'_>, element: Element<'_>) -> Result<Node> {
    let node = parser.named(registry::ZIP, element)?;
    let Value::Document(given) = element.value else { return Ok(node) };
    let list = |name: &str, code: i32| match given.get(name) {
        None => Ok(0),
        Some(Value::Array(array)) => Ok(array.len()),
        Some(other) => {
            let reason = format!("{name} must be an array of expressions, found {}", other.value_type());
            Err(Error::location(code, reason))
        }
    };
    let (inputs, defaults) = (list("inputs", 34461)?, list("defaults", 34462)?);
    let is_longest = match given.get("useLongestLength") {
        None => false,
        Some(Value::Bool(is_longest)) => is_longest,
        Some(other) => {
            let reason = format!("useLongestLength must be a bool, found {}", other.value_type());
            return Err(Error::location(34463, reason));
        }
    };
    if inputs == 0 {
        return Err(Error::location(34465, "$zip requires at least one input array"));
    }
    if defaults > 0 && !is_longest {
        return Err(Error::location(34466, "cannot specify defaults unless useLongestLength is true"));
    }
    if defaults > 0 && defaults != inputs {
        return Err(Error::location(34467, "defaults and inputs must have the same length"));
    }
    Ok(node)
}

/// `inputs`, `useLongestLength`, `defaults`.
pub(super) fn zip<'a>(operands: &[Option<Operand<'a>>], _: &Environment<'_>) -> Result<Operand<'a>> {
    let [Some(inputs), longest, defaults] = operands else { return Ok(Operand::NULL) };
    if inputs.is_nullish() {
        return Ok(Operand::NULL);
    }
    let is_longest = longest.as_ref().is_some_and(Operand::is_true);
    let Some(inputs) = inputs.array_operands()? else {
        let reason = format!("inputs must be an array of expressions, found {}", inputs.type_name());
        return Err(Error::location(34461, reason));
    };
    let mut columns = Vec::new();
    for input in &inputs {
        if input.is_nullish() {
            return Ok(Operand::NULL);
        }
        columns.push(input.array_operands()?.ok_or_else(|| {
            let reason = format!("$zip found a non-array expression in input: {}", input.or_null());
            Error::location(34468, reason)
        })?);
    }
    let defaults = match defaults {
        Some(defaults) => defaults.array_operands()?.unwrap_or_default(),
        None => Vec::new(),
    };
    let lengths = columns.iter().map(Vec::len);
    let length = if is_longest { lengths.max() } else { lengths.min() }.unwrap_or(0);
    let mut rows = Values::new();
    for row in 0..length {
        let cell = |(place, column): (usize, &Vec<Operand<'a>>)| {
            column.get(row).or_else(|| defaults.get(place)).cloned().unwrap_or(Operand::NULL)
        };
        let cells: Vec<Operand<'_>> = columns.iter().enumerate().map(cell).collect();
        rows.array(cells.iter().map(Operand::or_null))?;
    }
    Ok(rows.finish())
}

/// The order of `$sortArray` is no expression: its names may have dots.
pub(super) fn parse_sort_array(parser: &mut Parser<'_>, element: Element<'_>) -> Result<Node> {
    let function = registry::SORT_ARRAY;
    let order = match element.value {
        Value::Document(arguments) => arguments.get("sortBy"),
        _ => None,
    };
    if let Some(order) = order {
        check_order(order)?;
    }
    let Some(Value::Document(order)) = order else { return parser.named(function, element) };
    let mut arguments = DocBuilder::new();
    if let Value::Document(given) = element.value {
        let others = given.elements().filter(|argument| argument.name != "sortBy");
        others.for_each(|argument| arguments.append_element(argument));
    }
    arguments.append("sortBy", Value::Null);
    let arguments = arguments.finish();
    let quoted = Element { name: element.name, value: Value::Document(arguments.view()) };
    let mut node = parser.named(function, quoted)?;
    if let Node::Named { operands, .. } = &mut node
        && let Some(place) = operands.get_mut(1)
    {
        *place = Some(Node::Constant(Some(OwnedValue::Document(order.to_doc()))));
    }
    Ok(node)
}

/// Refuses an order with the codes of `$sortArray`; `$push` has others.
fn check_order(order: Value<'_>) -> Result<()> {
    match order {
        Value::Document(_) => {
            let parsed = sort::Pattern::parse(order);
            parsed.map(|_| ()).map_err(|error| Error::location(2942505, format!("BadValue: {}", error.reason())))
        }
        order if order.is_number() => match order.to_i64_exact() {
            Some(1 | -1) => Ok(()),
            _ => Err(Error::location(2942506, "The $sort element value must be either 1 or -1")),
        },
        _ => {
            let reason = "The $sort is invalid: use 1/-1 to sort the whole element, or {field:1/-1} to sort embedded \
                          fields";
            Err(Error::location(2942507, reason))
        }
    }
}

/// `input`, `sortBy`.
pub(super) fn sort_array<'a>(operands: &[Option<Operand<'a>>], environment: &Environment<'_>) -> Result<Operand<'a>> {
    let [Some(input), Some(sort_by)] = operands else { return Ok(Operand::NULL) };
    if input.is_nullish() {
        return Ok(Operand::NULL);
    }
    let Some(Value::Array(array)) = input.view() else {
        let reason =
            format!("The input argument to $sortArray must be an array, but was of type: {}", input.type_name());
        return Err(Error::location(2942504, reason));
    };
    let pattern = sort::Pattern::parse(sort_by.or_null())?;
    let values: Vec<Value<'_>> = array.values().collect();
    let options = environment.options();
    let values = operation::sort_by(values, |left, right| pattern.compare(*left, *right, &options))?;
    let mut sorted = Values::new();
    values.into_iter().try_for_each(|value| sorted.push(value))?;
    Ok(sorted.finish())
}
