//! Which documents of a partition a window holds: by their number, or by the distance of what they are sorted by.

use crate::pipeline::PipelineParser;
use crate::request::{SortKey, SortPattern};
use pando_base::{Error, Result};
use pando_doc::{Number, OwnedValue, Value, compare};
use pando_expr::Expression;
use pando_expr::expression::{TimeUnit, add_to_date};

/// One end of a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bound<T> {
    Unbounded,
    Current,
    At(T),
}

/// Both ends of a window; both belong to it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Bounds {
    Documents(Bound<i64>, Bound<i64>),
    Range { lower: Bound<Number>, upper: Bound<Number>, unit: Option<TimeUnit> },
}

impl Bounds {
    /// The whole partition.
    pub(super) const ALL: Bounds = Bounds::Documents(Bound::Unbounded, Bound::Unbounded);

    pub(super) fn is_whole_partition(&self) -> bool {
        *self == Bounds::ALL
    }

    /// True if every window begins with the first document.
    pub(super) fn begins_with_partition(&self) -> bool {
        matches!(self, Bounds::Documents(Bound::Unbounded, _))
    }

    pub(super) fn parse(value: Value<'_>, sort: Option<&SortPattern>, parser: &PipelineParser) -> Result<Bounds> {
        let refused = |reason: &str| Err(Error::failed_to_parse(reason));
        let Value::Document(window) = value else { return refused("'window' field must be an object") };
        let (documents, range, unit) = (window.get("documents"), window.get("range"), window.get("unit"));
        match (documents, range, unit) {
            (Some(_), Some(_), _) => refused("Window bounds can specify either 'documents' or 'unit', not both."),
            (_, None, Some(_)) => refused("Window bounds can only specify 'unit' with range-based bounds."),
            (None, None, None) if window.is_empty() => Ok(Bounds::ALL),
            (None, None, None) => refused(
                "'window' field can only contain 'documents' as the only argument or 'range' with an optional 'unit' field",
            ),
            (Some(_), None, None) if window.field_count() != 1 => {
                refused("'window' field that specifies documents cannot have other fields")
            }
            (Some(documents), None, None) => parse_documents(documents, sort, parser),
            (None, Some(_), Some(_)) if window.field_count() != 2 => {
                refused("'window' field that specifies unit cannot have other fields besides 'range'")
            }
            (None, Some(_), None) if window.field_count() != 1 => {
                refused("'window' field that specifies range cannot have other fields besides 'unit'")
            }
            (None, Some(range), unit) => parse_range(range, unit, sort, parser),
        }
    }

    /// The first and last place of the window of a document; none if it is empty.
    pub(super) fn endpoints(&self, place: usize, count: usize, keys: &[OwnedValue]) -> Result<Option<(usize, usize)>> {
        match self {
            Bounds::Documents(lower, upper) => Ok(by_number(*lower, *upper, place, count)),
            Bounds::Range { lower, upper, unit } => by_distance(*lower, *upper, *unit, place, keys),
        }
    }
}

fn pair<'a>(value: Value<'a>) -> Result<[Value<'a>; 2]> {
    let ends: Vec<Value<'a>> = match value {
        Value::Array(array) => array.values().collect(),
        _ => Vec::new(),
    };
    let refused = || Error::failed_to_parse(format!("Window bounds must be a 2-element array: {value}"));
    <[Value<'a>; 2]>::try_from(ends).map_err(|_| refused())
}

fn parse_bound<T>(
    value: Value<'_>,
    parser: &PipelineParser,
    read: impl FnOnce(Value<'_>) -> Result<T>,
) -> Result<Bound<T>> {
    match value {
        Value::String(text) if text == "unbounded" => Ok(Bound::Unbounded),
        Value::String(text) if text == "current" => Ok(Bound::Current),
        Value::String(_) => Err(Error::failed_to_parse("Window bounds must be 'unbounded', 'current', or a number.")),
        value => {
            let expression = Expression::parse(value, &parser.context)?.folded()?;
            match expression.as_constant() {
                Some(constant) => read(constant.unwrap_or(Value::Null)).map(Bound::At),
                None => Err(Error::failed_to_parse("Window bounds expression must be a constant.")),
            }
        }
    }
}

fn check_order(lower: Option<Number>, upper: Option<Number>) -> Result<()> {
    if let (Some(lower), Some(upper)) = (lower, upper)
        && compare(Value::from(lower), Value::from(upper)).is_gt()
    {
        let (lower, upper) = (Value::from(lower), Value::from(upper));
        let reason = format!("Lower bound must not exceed upper bound: [{lower}, {upper}]");
        return Err(Error::location(5339900, reason));
    }
    Ok(())
}

fn parse_documents(value: Value<'_>, sort: Option<&SortPattern>, parser: &PipelineParser) -> Result<Bounds> {
    let whole = |value: Value<'_>| {
        let number = value.to_i64_exact().and_then(|whole| i32::try_from(whole).ok());
        number.map(i64::from).ok_or_else(|| Error::failed_to_parse("Numeric document-based bounds must be an integer"))
    };
    let [lower, upper] = pair(value)?;
    let (lower, upper) = (parse_bound(lower, parser, whole)?, parse_bound(upper, parser, whole)?);
    let number = |bound| match bound {
        Bound::Unbounded => None,
        Bound::Current => Some(Number::Int64(0)),
        Bound::At(whole) => Some(Number::Int64(whole)),
    };
    check_order(number(lower), number(upper))?;
    let bounds = Bounds::Documents(lower, upper);
    if sort.is_none() && !bounds.is_whole_partition() {
        return Err(Error::location(5339901, "Document-based bounds require a sortBy"));
    }
    Ok(bounds)
}

fn parse_range(
    range: Value<'_>,
    unit: Option<Value<'_>>,
    sort: Option<&SortPattern>,
    parser: &PipelineParser,
) -> Result<Bounds> {
    let unit = match unit {
        None => None,
        Some(Value::String(name)) => Some(TimeUnit::parse(name)?),
        Some(_) => return Err(Error::failed_to_parse("'unit' must be a string")),
    };
    let number = |value: Value<'_>| {
        let is_whole = value.to_i64_exact().is_some_and(|whole| i32::try_from(whole).is_ok());
        match value.as_number() {
            Some(_) if unit.is_some() && !is_whole => {
                Err(Error::failed_to_parse("With 'unit', range-based bounds must be an integer"))
            }
            Some(number) => Ok(number),
            None => Err(Error::failed_to_parse("Range-based bounds expression must be a number")),
        }
    };
    let [lower, upper] = pair(range)?;
    let (lower, upper) = (parse_bound(lower, parser, number)?, parse_bound(upper, parser, number)?);
    let distance = |bound| match bound {
        Bound::Unbounded => None,
        Bound::Current => Some(Number::Int32(0)),
        Bound::At(number) => Some(number),
    };
    check_order(distance(lower), distance(upper))?;
    let Some([part]) = sort.map(SortPattern::parts) else {
        return Err(Error::location(5339902, "Range-based bounds require sortBy a single field"));
    };
    if !matches!(part.key, SortKey::Path(_)) {
        return Err(Error::location(8947400, "Range-based bounds require a non-expression sortBy"));
    }
    if part.descending {
        return Err(Error::location(8947401, "Range-based bounds require an ascending sortBy"));
    }
    Ok(Bounds::Range { lower, upper, unit })
}

fn by_number(lower: Bound<i64>, upper: Bound<i64>, place: usize, count: usize) -> Option<(usize, usize)> {
    let (place, last) = (place as i64, (count as i64).checked_sub(1)?);
    let offset = |bound| match bound {
        Bound::Unbounded => None,
        Bound::Current => Some(0),
        Bound::At(offset) => Some(offset),
    };
    let from = offset(lower).map_or(0, |offset| place.saturating_add(offset));
    let to = offset(upper).map_or(last, |offset| place.saturating_add(offset));
    if from > last || to < 0 {
        return None;
    }
    Some((from.clamp(0, last) as usize, to.clamp(0, last) as usize))
}

/// Of keys in ascending order, those of the wanted type stand together.
fn by_distance(
    lower: Bound<Number>,
    upper: Bound<Number>,
    unit: Option<TimeUnit>,
    place: usize,
    keys: &[OwnedValue],
) -> Result<Option<(usize, usize)>> {
    let base = keys.get(place).map_or(Value::Null, OwnedValue::view);
    check_base(base, unit)?;
    let fits = |key: &OwnedValue| match unit {
        Some(_) => matches!(key.view(), Value::DateTime(_)),
        None => key.view().is_number(),
    };
    let first_that_fits = || keys.iter().position(fits);
    let from = match lower {
        Bound::Current => Some(place),
        Bound::Unbounded => first_that_fits(),
        Bound::At(delta) => {
            let least = moved(base, delta, unit)?;
            let from = keys.partition_point(|key| compare(key.view(), least.view()).is_lt());
            Some(from).filter(|from| keys.get(*from).is_some_and(fits))
        }
    };
    let Some(from) = from else { return Ok(None) };
    let to = match upper {
        Bound::Current => Some(place),
        Bound::Unbounded => keys.iter().rposition(fits),
        Bound::At(delta) => {
            let most = moved(base, delta, unit)?;
            keys.partition_point(|key| compare(key.view(), most.view()).is_le()).checked_sub(1)
        }
    };
    Ok(to.filter(|to| *to >= from).map(|to| (from, to)))
}

fn check_base(base: Value<'_>, unit: Option<TimeUnit>) -> Result<()> {
    let found = base.value_type();
    match (base, unit) {
        (Value::DateTime(_), Some(_)) => Ok(()),
        (_, Some(_)) => {
            let reason = format!("Invalid range: Expected the sortBy field to be a Date, but it was {found}");
            Err(Error::location(5429513, reason))
        }
        (Value::DateTime(_), None) => Err(Error::location(
            5429413,
            "Invalid range: For windows that involve date or time ranges, a unit must be provided.",
        )),
        (base, None) if base.is_number() => Ok(()),
        _ => {
            let reason = format!("Invalid range: Expected the sortBy field to be a number, but it was {found}");
            Err(Error::location(5429414, reason))
        }
    }
}

fn moved(base: Value<'_>, delta: Number, unit: Option<TimeUnit>) -> Result<OwnedValue> {
    if let (Value::DateTime(date), Some(unit)) = (base, unit) {
        return add_to_date(date, unit, delta.truncated_i64()).map(OwnedValue::DateTime);
    }
    Ok(match base.as_number() {
        Some(Number::Double(double)) => OwnedValue::Double(double + delta.to_double()),
        Some(number) => OwnedValue::Decimal(number.to_decimal() + delta.to_decimal()),
        None => OwnedValue::Null,
    })
}
