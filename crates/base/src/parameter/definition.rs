//! The definition of a parameter: everything about it but its value.

use super::cell::Cell;
use super::kind::{Kind, Number};
use super::value::ParameterValue;
use crate::{Error, Result};
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

/// When a parameter may be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settable {
    /// At start only.
    AtStartup,
    /// At run time only.
    AtRuntime,
    /// At either.
    Always,
    /// Never: it shows what the server found out or was built with.
    Never,
}

impl Settable {
    /// True if `--setParameter` may set it.
    pub const fn at_startup(self) -> bool {
        matches!(self, Settable::AtStartup | Settable::Always)
    }

    /// True if the command `setParameter` may set it.
    pub const fn at_runtime(self) -> bool {
        matches!(self, Settable::AtRuntime | Settable::Always)
    }
}

/// A limit of a number.
#[derive(Clone, Copy)]
enum Limit<T> {
    None,
    AtLeast(T),
    Above(T),
    AtMost(T),
    Below(T),
}

/// A check of limits: that of a number, which alone can be compared.
type LimitCheck<K> = fn(&Parameter<K>, &<K as Kind>::Value) -> Result<()>;

/// A check beyond limits.
type Validator<K> = fn(&<K as Kind>::View) -> Result<()>;

/// A parameter's definition. It must be a `static`: a set finds its value by the definition's place.
pub struct Parameter<K: Kind + ?Sized> {
    name: &'static str,
    aliases: &'static [&'static str],
    description: &'static str,
    default: K::Default,
    lower: Limit<K::Default>,
    upper: Limit<K::Default>,
    limit_check: Option<LimitCheck<K>>,
    validator: Option<Validator<K>>,
    text_parser: Option<fn(&str) -> Result<ParameterValue>>,
    settable: Settable,
    is_redacted: bool,
    is_for_tests: bool,
    slot: AtomicUsize,
}

/// The last slot given to a definition. Slots are per process and never change, so every set can use them as indexes.
static LAST_SLOT: AtomicUsize = AtomicUsize::new(0);

impl<K: Kind + ?Sized> Parameter<K> {
    /// A parameter that may be set at any time to any value of its type, until the other methods say less.
    pub const fn new(name: &'static str, default: K::Default, description: &'static str) -> Parameter<K> {
        Parameter {
            name,
            aliases: &[],
            description,
            default,
            lower: Limit::None,
            upper: Limit::None,
            limit_check: None,
            validator: None,
            text_parser: None,
            settable: Settable::Always,
            is_redacted: false,
            is_for_tests: false,
            slot: AtomicUsize::new(0),
        }
    }

    /// Says when it may be set.
    pub const fn settable(mut self, settable: Settable) -> Parameter<K> {
        self.settable = settable;
        self
    }

    /// Other names for the same value.
    pub const fn aliases(mut self, aliases: &'static [&'static str]) -> Parameter<K> {
        self.aliases = aliases;
        self
    }

    /// A check beyond bounds. Its error should be `BadValue`.
    pub const fn validator(mut self, validator: fn(&K::View) -> Result<()>) -> Parameter<K> {
        self.validator = Some(validator);
        self
    }

    /// How text becomes a value, for documents.
    pub const fn text_parser(mut self, parser: fn(&str) -> Result<ParameterValue>) -> Parameter<K> {
        self.text_parser = Some(parser);
        self
    }

    /// A secret: shown as "###".
    pub const fn redacted(mut self) -> Parameter<K> {
        self.is_redacted = true;
        self
    }

    /// There only if test commands are enabled.
    pub const fn for_tests(mut self) -> Parameter<K> {
        self.is_for_tests = true;
        self
    }

    /// The name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The default.
    pub fn default_value(&self) -> K::Value {
        K::of_default(self.default)
    }

    /// The index of the value in every set; zero as long as no set has it.
    #[inline]
    pub(super) fn slot(&self) -> usize {
        self.slot.load(Ordering::Relaxed)
    }

    fn check(&self, value: &K::Value) -> Result<()> {
        if let Some(limit_check) = self.limit_check {
            limit_check(self, value)?;
        }
        self.validator.map_or(Ok(()), |validator| validator(K::view(value)))
    }
}

impl<K: Number> Parameter<K> {
    /// The smallest value.
    pub const fn at_least(mut self, minimum: K) -> Parameter<K> {
        self.lower = Limit::AtLeast(minimum);
        self.limit_check = Some(Parameter::check_limits);
        self
    }

    /// The largest value.
    pub const fn at_most(mut self, maximum: K) -> Parameter<K> {
        self.upper = Limit::AtMost(maximum);
        self.limit_check = Some(Parameter::check_limits);
        self
    }

    /// What every value must be above.
    pub const fn above(mut self, limit: K) -> Parameter<K> {
        self.lower = Limit::Above(limit);
        self.limit_check = Some(Parameter::check_limits);
        self
    }

    /// What every value must be below.
    pub const fn below(mut self, limit: K) -> Parameter<K> {
        self.upper = Limit::Below(limit);
        self.limit_check = Some(Parameter::check_limits);
        self
    }

    fn check_limits(&self, value: &K) -> Result<()> {
        [self.lower, self.upper].into_iter().filter(|limit| !limit.allows(*value)).try_for_each(|limit| {
            let reason = format!("Invalid value for parameter {}: {value} is not {limit}", self.name);
            Err(Error::bad_value(reason))
        })
    }
}

impl<T: PartialOrd> Limit<T> {
    /// NaN compares with nothing, so a limit does not allow it.
    fn allows(&self, value: T) -> bool {
        match self {
            Limit::None => true,
            Limit::AtLeast(limit) => value >= *limit,
            Limit::Above(limit) => value > *limit,
            Limit::AtMost(limit) => value <= *limit,
            Limit::Below(limit) => value < *limit,
        }
    }
}

impl<T: fmt::Display> fmt::Display for Limit<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::None => f.write_str("limited"),
            Limit::AtLeast(limit) => write!(f, "greater than or equal to {limit}"),
            Limit::Above(limit) => write!(f, "greater than {limit}"),
            Limit::AtMost(limit) => write!(f, "less than or equal to {limit}"),
            Limit::Below(limit) => write!(f, "less than {limit}"),
        }
    }
}

/// A definition of any type, as lists hold it.
pub trait AnyParameter: Erased + Sync {
    /// The name.
    fn name(&self) -> &'static str;
    /// Other names for the same value.
    fn aliases(&self) -> &'static [&'static str];
    /// The line of documentation.
    fn description(&self) -> &'static str;
    /// When it may be set.
    fn settable(&self) -> Settable;
    /// True if its value is a secret.
    fn is_redacted(&self) -> bool;
    /// True if it is there only with test commands.
    fn is_for_tests(&self) -> bool;
    /// The default.
    fn default_value(&self) -> ParameterValue;
}

/// What a set does with a definition of any type.
pub trait Erased {
    /// Gives the definition its slot, if it has none, and says which.
    #[doc(hidden)]
    fn claim_slot(&self) -> usize;
    /// A place with the default.
    #[doc(hidden)]
    fn make(&self) -> Cell;
    /// The value without its type.
    #[doc(hidden)]
    fn read(&self, cell: &Cell) -> Option<ParameterValue>;
    /// Checks and stores a value.
    #[doc(hidden)]
    fn write(&self, cell: &Cell, value: ParameterValue) -> Result<()>;
    /// Checks and stores what the text says.
    #[doc(hidden)]
    fn write_text(&self, cell: &Cell, text: &str) -> Result<()>;
}

impl<K: Kind + ?Sized> AnyParameter for Parameter<K> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn aliases(&self) -> &'static [&'static str] {
        self.aliases
    }

    fn description(&self) -> &'static str {
        self.description
    }

    fn settable(&self) -> Settable {
        self.settable
    }

    fn is_redacted(&self) -> bool {
        self.is_redacted
    }

    fn is_for_tests(&self) -> bool {
        self.is_for_tests
    }

    fn default_value(&self) -> ParameterValue {
        K::erase(&K::of_default(self.default))
    }
}

impl<K: Kind + ?Sized> Erased for Parameter<K> {
    fn claim_slot(&self) -> usize {
        if self.slot() == 0 {
            let fresh = LAST_SLOT.fetch_add(1, Ordering::Relaxed) + 1;
            // Lost to another set that is being put together: then the other's slot is as good.
            let _ = self.slot.compare_exchange(0, fresh, Ordering::Relaxed, Ordering::Relaxed);
        }
        self.slot()
    }

    fn make(&self) -> Cell {
        let value = K::of_default(self.default);
        debug_assert!(self.check(&value).is_ok(), "the default of {} breaks its own rules", self.name);
        K::make(value)
    }

    fn read(&self, cell: &Cell) -> Option<ParameterValue> {
        K::load(cell).map(|value| K::erase(&value))
    }

    fn write(&self, cell: &Cell, value: ParameterValue) -> Result<()> {
        let value = K::of_value(value).map_err(|error| {
            let reason = format!("Failed validating {}: {}", self.name, error.reason());
            Error::new(error.code(), reason)
        })?;
        self.check(&value)?;
        K::store(cell, value);
        Ok(())
    }

    fn write_text(&self, cell: &Cell, text: &str) -> Result<()> {
        let own = self.text_parser.map(|parser| parser(text));
        let value = own
            .or_else(|| K::of_text(text))
            .unwrap_or_else(|| Err(Error::bad_value(format!("{} cannot be set from text", self.name))))?;
        self.write(cell, value)
    }
}
