//! The types of a `$type`.

use pando_base::{Error, ErrorCode, Result};
use pando_doc::{ArrayBuilder, Number, Value, ValueType};

/// A set of types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TypeSet {
    /// True if it was said with "number".
    has_all_numbers: bool,
    /// A bit for each place in `ValueType::ALL`.
    bits: u32,
}

impl TypeSet {
    /// Reads a name, a number, or an array of these.
    pub fn parse(value: Value<'_>) -> Result<TypeSet> {
        let mut set = TypeSet::default();
        match value {
            Value::Array(array) => array.values().try_for_each(|value| set.add_parsed(value))?,
            value => set.add_parsed(value)?,
        }
        Ok(set)
    }

    fn add_parsed(&mut self, value: Value<'_>) -> Result<()> {
        match value {
            Value::String(name) if name == "number" => self.has_all_numbers = true,
            Value::String(name) => {
                let value_type = std::str::from_utf8(name).ok().and_then(ValueType::from_name);
                self.add(value_type.ok_or_else(|| Error::bad_value(format!("Unknown type name alias: {name}")))?);
            }
            value => match value.as_number() {
                Some(number) => self.add(parse_number(number, value)?),
                None => return Err(Error::type_mismatch("type must be represented as a number or a string")),
            },
        }
        Ok(())
    }

    fn add(&mut self, value_type: ValueType) {
        self.bits |= bit(value_type);
    }

    /// True without types.
    pub fn is_empty(&self) -> bool {
        !self.has_all_numbers && self.bits == 0
    }

    /// True if the type is in the set.
    #[inline]
    pub fn contains(&self, value_type: ValueType) -> bool {
        self.has_all_numbers && value_type.is_number() || self.bits & bit(value_type) != 0
    }

    /// The types in the set.
    pub fn types(&self) -> impl Iterator<Item = ValueType> + '_ {
        ValueType::ALL.into_iter().filter(|value_type| self.contains(*value_type))
    }

    /// The set as an array, as `explain` shows it.
    pub fn write(&self, builder: &mut ArrayBuilder) {
        if self.has_all_numbers {
            builder.push("number");
        }
        for value_type in ValueType::ALL.into_iter().filter(|value_type| self.bits & bit(*value_type) != 0) {
            builder.push(value_type.number());
        }
    }
}

fn parse_number(number: Number, value: Value<'_>) -> Result<ValueType> {
    let refused = || Error::new(ErrorCode::BadValue, format!("Invalid numerical type code: {value}"));
    let whole = number.to_i64_exact().and_then(|number| i32::try_from(number).ok()).ok_or_else(refused)?;
    if whole == 0 {
        let reason = "Invalid numerical type code: 0. Instead use {$exists:false}.";
        return Err(Error::bad_value(reason));
    }
    ValueType::from_number(whole).ok_or_else(refused)
}

const fn bit(value_type: ValueType) -> u32 {
    match value_type {
        ValueType::MinKey => 1 << 30,
        ValueType::MaxKey => 1 << 31,
        other => 1 << other.code(),
    }
}
