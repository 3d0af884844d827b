//! The functions of windows, as they are written.

use super::bounds::Bounds;
use crate::pipeline::PipelineParser;
use crate::request::{SortKey, SortPattern};
use pando_base::{Error, Result};
use pando_doc::{Decimal128, DocRef, Element, OwnedValue, Value};
use pando_expr::accumulator::{parse_accumulator, unary_accumulator};
use pando_expr::expression::TimeUnit;
use pando_expr::{AccumulatorKind, Expression};

/// What is reckoned for each document.
#[derive(Debug)]
pub(super) enum WindowFunction {
    /// An accumulator over the window.
    Accumulate {
        kind: AccumulatorKind,
        input: Expression,
        count: Option<Expression>,
        bounds: Bounds,
    },
    /// `$first` and `$last`.
    Edge {
        input: Expression,
        is_last: bool,
        bounds: Bounds,
    },
    Shift {
        by: i64,
        output: Expression,
        default: OwnedValue,
    },
    Rank(Rank),
    Derivative {
        input: Expression,
        unit_milliseconds: Option<i64>,
        bounds: Bounds,
    },
    Integral {
        input: Expression,
        unit_milliseconds: Option<i64>,
        bounds: Bounds,
    },
    Covariance {
        input: Expression,
        is_sample: bool,
        bounds: Bounds,
    },
    ExponentialAverage {
        input: Expression,
        alpha: Decimal128,
    },
    /// `$locf`.
    LastObserved {
        input: Expression,
    },
    LinearFill {
        input: Expression,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rank {
    /// As many as stand before it, and one.
    Sparse,
    Dense,
    Number,
}

fn failed(reason: impl Into<String>) -> Error {
    Error::failed_to_parse(reason.into())
}

/// The functions that are no accumulators.
const FUNCTIONS_OF_WINDOWS: [&str; 9] = [
    "$first",
    "$last",
    "$shift",
    "$locf",
    "$linearFill",
    "$derivative",
    "$integral",
    "$covariancePop",
    "$covarianceSamp",
];

/// What a function may know of its surroundings.
pub(super) struct FunctionParser<'p> {
    pub(super) parser: &'p PipelineParser,
    pub(super) sort: Option<&'p SortPattern>,
}

impl FunctionParser<'_> {
    /// Reads `{$function: argument, window: bounds}`.
    pub(super) fn parse(&self, specification: DocRef<'_>) -> Result<WindowFunction> {
        let Some(operator) = specification.elements().find(|element| element.name.starts_with(b"$")) else {
            let first = specification.first().map_or(String::new(), |first| format!(", {}", first.name));
            return Err(failed(format!("Expected a $-prefixed window function{first}")));
        };
        let name = operator.name;
        match &**name {
            b"$rank" => return self.rank(specification, operator, Rank::Sparse),
            b"$denseRank" => return self.rank(specification, operator, Rank::Dense),
            b"$documentNumber" => return self.rank(specification, operator, Rank::Number),
            b"$expMovingAvg" => return self.exponential_average(specification, operator),
            _ => {}
        }
        let window = match self.window(specification, operator) {
            // That the function is not known is told first.
            Err(error) if FUNCTIONS_OF_WINDOWS.iter().any(|known| name == known) => return Err(error),
            Err(error) => return self.accumulate(operator, None).and(Err(error)),
            Ok(window) => window,
        };
        let input = || self.expression(operator.value);
        match &**name {
            b"$first" | b"$last" => {
                let bounds = self.bounds(window, Bounds::ALL)?;
                Ok(WindowFunction::Edge { input: input()?, is_last: name == "$last", bounds })
            }
            b"$shift" => self.shift(operator, window),
            b"$locf" => {
                refuse_window(operator, window)?;
                Ok(WindowFunction::LastObserved { input: input()? })
            }
            b"$linearFill" => {
                refuse_window(operator, window)?;
                if self.sort.is_none_or(|sort| sort.parts().len() != 1) {
                    let reason =
                        format!("{name} must be specified with a top level sortBy expression with exactly one element");
                    return Err(Error::location(605001, reason));
                }
                self.require_sort("$linearFill")?;
                Ok(WindowFunction::LinearFill { input: input()? })
            }
            b"$derivative" => {
                self.require_sort("$derivative")?;
                let (input, unit_milliseconds) = self.input_and_unit(operator)?;
                let window = window.ok_or_else(|| failed("$derivative requires explicit window bounds"))?;
                let bounds = self.bounds(Some(window), Bounds::ALL)?;
                Ok(WindowFunction::Derivative { input, unit_milliseconds, bounds })
            }
            b"$integral" => {
                self.require_sort("$integral")?;
                let (input, unit_milliseconds) = self.input_and_unit(operator)?;
                let bounds = self.bounds(window, Bounds::ALL)?;
                Ok(WindowFunction::Integral { input, unit_milliseconds, bounds })
            }
            b"$covariancePop" | b"$covarianceSamp" => {
                let bounds = self.bounds(window, Bounds::ALL)?;
                Ok(WindowFunction::Covariance { input: input()?, is_sample: name == "$covarianceSamp", bounds })
            }
            _ => self.accumulate(operator, window),
        }
    }

    fn expression(&self, value: Value<'_>) -> Result<Expression> {
        Expression::parse(value, &self.parser.context)?.optimize()
    }

    fn bounds(&self, window: Option<Value<'_>>, default: Bounds) -> Result<Bounds> {
        window.map_or(Ok(default), |window| Bounds::parse(window, self.sort, self.parser))
    }

    /// The `window` beside the function; nothing else may be there.
    fn window<'a>(&self, specification: DocRef<'a>, operator: Element<'_>) -> Result<Option<Value<'a>>> {
        let mut window = None;
        for element in specification.elements() {
            match &**element.name {
                b"window" => window = Some(element.value),
                _ if element.name == operator.name => {}
                other if other.starts_with(b"$") => {
                    return Err(failed("Cannot specify two functions in window function spec"));
                }
                _ => {
                    let reason = format!("Window function found an unknown argument: {}", element.name);
                    return Err(failed(reason));
                }
            }
        }
        Ok(window)
    }

    fn accumulate(&self, operator: Element<'_>, window: Option<Value<'_>>) -> Result<WindowFunction> {
        let bounds = self.bounds(window, Bounds::ALL);
        let is_unknown = operator.name == "$mergeObjects" || operator.name == "$accumulator";
        let unknown = || failed(format!("Unrecognized window function, {}", operator.name));
        if is_unknown {
            return Err(unknown());
        }
        if let Some(kind) = unary_accumulator(operator.name) {
            let input = self.expression(operator.value)?;
            return Ok(WindowFunction::Accumulate { kind, input, count: None, bounds: bounds? });
        }
        let parsed = parse_accumulator(operator, &self.parser.context);
        let (kind, input, count) =
            parsed.map_err(|error| if error.code().number() == 15952 { unknown() } else { error })?;
        Ok(WindowFunction::Accumulate { kind, input, count, bounds: bounds? })
    }

    fn rank(&self, specification: DocRef<'_>, operator: Element<'_>, rank: Rank) -> Result<WindowFunction> {
        if specification.field_count() != 1 {
            return Err(Error::location(5371601, "Rank style window functions take no other arguments"));
        }
        if !matches!(operator.value, Value::Document(doc) if doc.is_empty()) {
            let reason = format!("{} must be specified with '{{}}' as the value", operator.name);
            return Err(Error::location(5371603, reason));
        }
        if self.sort.is_none_or(|sort| sort.parts().len() != 1) {
            let reason = format!(
                "{} must be specified with a top level sortBy expression with exactly one element",
                operator.name
            );
            return Err(Error::location(5371602, reason));
        }
        Ok(WindowFunction::Rank(rank))
    }

    /// A sort by one field.
    fn require_sort(&self, name: &str) -> Result<()> {
        match self.sort.map(SortPattern::parts) {
            None => Err(failed(format!("{name} requires a sortBy"))),
            Some([part]) if matches!(part.key, SortKey::Path(_)) => Ok(()),
            Some([_]) => Err(failed(format!("{name} requires a non-expression sortBy"))),
            Some(_) => Err(failed(format!("{name} requires a non-compound sortBy"))),
        }
    }

    fn input_and_unit(&self, operator: Element<'_>) -> Result<(Expression, Option<i64>)> {
        let name = operator.name;
        let Value::Document(arguments) = operator.value else {
            let found = operator.value.value_type();
            return Err(failed(format!("{name} expects an object, but got a {found}: {operator}")));
        };
        let (mut input, mut unit) = (None, None);
        for argument in arguments.elements() {
            match (&**argument.name, argument.value) {
                (b"input", value) => input = Some(self.expression(value)?),
                (b"unit", Value::String(text)) => {
                    let length = TimeUnit::parse(text)?.milliseconds();
                    let too_long = || Error::location(5490710, "unit must be 'week' or smaller");
                    unit = Some(length.ok_or_else(too_long)?);
                }
                (b"unit", other) => {
                    return Err(failed(format!("'unit' must be a string, but got {}", other.value_type())));
                }
                _ => return Err(failed(format!("{name} got unexpected argument: {}", argument.name))),
            }
        }
        let input = input.ok_or_else(|| failed(format!("{name} requires an 'input' expression")))?;
        Ok((input, unit))
    }

    fn shift(&self, operator: Element<'_>, window: Option<Value<'_>>) -> Result<WindowFunction> {
        if window.is_some() {
            return Err(failed("$shift does not accept a 'window' field"));
        }
        let Value::Document(arguments) = operator.value else {
            return Err(failed("Argument to $shift must be an object"));
        };
        let (mut by, mut output, mut default) = (None, None, OwnedValue::Null);
        for argument in arguments.elements() {
            match &**argument.name {
                b"by" => {
                    let whole = argument.value.to_i64_exact().filter(|whole| i32::try_from(*whole).is_ok());
                    let refused = || failed(format!("'$shift:by' field must be an integer, but found  {argument}"));
                    by = Some(whole.ok_or_else(refused)?);
                }
                b"output" => output = Some(self.expression(argument.value)?),
                b"default" => {
                    let expression = self.expression(argument.value)?;
                    let constant = expression.as_constant();
                    let refused = || failed("'$shift:default' expression must yield a constant value.");
                    default = constant.ok_or_else(refused)?.map_or(OwnedValue::Null, |value| value.to_owned());
                }
                _ => return Err(failed("Unknown argument in $shift")),
            }
        }
        let output = output.ok_or_else(|| failed("$shift requires an 'output' expression."))?;
        let by = by.ok_or_else(|| failed("$shift requires 'by' as an integer value."))?;
        if self.sort.is_none() {
            return Err(failed("'$shift' requires a sortBy"));
        }
        Ok(WindowFunction::Shift { by, output, default })
    }

    fn exponential_average(&self, specification: DocRef<'_>, operator: Element<'_>) -> Result<WindowFunction> {
        let Value::Document(arguments) = operator.value else {
            return Err(failed("$expMovingAvg must have exactly one argument that is an object"));
        };
        if specification.field_count() != 1 {
            return Err(failed("$expMovingAvg must have exactly one argument that is an object"));
        }
        const FIELDS: &str = "$expMovingAvg sub object must have exactly two fields: An 'input' field, and either an 'N' field or an 'alpha' field";
        let (Some(input), 2) = (arguments.get("input"), arguments.field_count()) else { return Err(failed(FIELDS)) };
        if self.sort.is_none() {
            return Err(failed("$expMovingAvg requires an explicit 'sortBy'"));
        }
        let input = self.expression(input)?;
        let alpha = match (arguments.get("N"), arguments.get("alpha")) {
            (Some(count), _) => alpha_of_count(count)?,
            (None, Some(alpha)) => parse_alpha(alpha)?,
            (None, None) => return Err(failed(format!("Got unrecognized field in $expMovingAvg{FIELDS}"))),
        };
        Ok(WindowFunction::ExponentialAverage { input, alpha })
    }
}

fn refuse_window(operator: Element<'_>, window: Option<Value<'_>>) -> Result<()> {
    match window {
        None => Ok(()),
        Some(_) => Err(failed(format!("'window' field is not allowed in {}", operator.name))),
    }
}

fn alpha_of_count(count: Value<'_>) -> Result<Decimal128> {
    if !count.is_number() {
        return Err(failed(format!("'N' field must be an integer, but found type {}", count.value_type())));
    }
    let Some(whole) = count.to_i64_exact() else {
        let reason = format!(
            "'N' field must be an integer, but found  N: {count}. To use a non-integer, use the 'alpha' argument instead"
        );
        return Err(failed(reason));
    };
    if whole <= 0 {
        return Err(failed(format!("'N' must be greater than zero. Got {whole}")));
    }
    Ok(Decimal128::from(2) / (Decimal128::from(whole) + Decimal128::from(1)))
}

fn parse_alpha(alpha: Value<'_>) -> Result<Decimal128> {
    let Some(number) = alpha.as_number() else { return Err(failed("'alpha' must be a number")) };
    let double = number.to_double();
    if !(double > 0.0 && double < 1.0) {
        return Err(failed(format!("'alpha' must be between 0 and 1 (exclusive), found alpha: {alpha}")));
    }
    Ok(number.to_decimal())
}
