//! The values of a server's parameters.

use super::cell::Cell;
use super::definition::{AnyParameter, Parameter};
use super::kind::Kind;
use super::value::ParameterValue;
use crate::{Error, ErrorCode, Result, bail, ensure};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt;

/// What is told when a parameter changes.
type Subscriber = Box<dyn Fn(&ParameterValue) + Send + Sync>;

/// What may refuse a change at run time, for what the server is doing.
type Guard = Box<dyn Fn() -> Result<()> + Send + Sync>;

/// All parameters of one server.
pub struct ParameterSet {
    by_name: BTreeMap<&'static str, (&'static dyn AnyParameter, usize)>,
    /// By slot; slots of definitions that are not in this set are empty.
    cells: Vec<Option<Cell>>,
    test_commands_enabled: bool,
    subscribers: Mutex<BTreeMap<&'static str, Vec<Subscriber>>>,
    guards: Mutex<BTreeMap<&'static str, Guard>>,
}

impl ParameterSet {
    /// Puts the lists together, every value at its default. Two definitions of one name are a defect.
    pub fn new(lists: &[&[&'static dyn AnyParameter]], test_commands_enabled: bool) -> Result<ParameterSet> {
        let mut set = ParameterSet::empty();
        set.test_commands_enabled = test_commands_enabled;
        for parameter in lists.iter().flat_map(|list| list.iter()) {
            set.add(*parameter)?;
        }
        Ok(set)
    }

    /// A set without parameters: every read gives the default.
    pub fn empty() -> ParameterSet {
        ParameterSet {
            by_name: BTreeMap::new(),
            cells: Vec::new(),
            test_commands_enabled: false,
            subscribers: Mutex::default(),
            guards: Mutex::default(),
        }
    }

    fn add(&mut self, parameter: &'static dyn AnyParameter) -> Result<()> {
        let slot = parameter.claim_slot();
        for name in std::iter::once(parameter.name()).chain(parameter.aliases().iter().copied()) {
            let before = self.by_name.insert(name, (parameter, slot));
            ensure!(before.is_none(), ErrorCode::InternalError, "two parameters are called {name}");
        }
        if self.cells.len() <= slot {
            self.cells.resize_with(slot + 1, || None);
        }
        if let Some(cell) = self.cells.get_mut(slot) {
            *cell = Some(parameter.make());
        }
        Ok(())
    }

    /// The value; the default, if the set does not have the parameter.
    #[inline]
    pub fn get<K: Kind + ?Sized>(&self, parameter: &'static Parameter<K>) -> K::Value {
        let cell = self.cells.get(parameter.slot()).and_then(Option::as_ref);
        cell.and_then(K::load).unwrap_or_else(|| parameter.default_value())
    }

    /// Sets a value from the server's own code: the rules on values hold, those on who may set it when do not.
    pub fn set<K: Kind + ?Sized>(&self, parameter: &'static Parameter<K>, value: K::Value) -> Result<()> {
        let (definition, cell) = self.find(parameter.name()).ok_or_else(|| unknown(parameter.name()))?;
        self.write(definition, |definition| definition.write(cell, K::erase(&value)))
    }

    /// Sets what the command line says (`--setParameter name=text`, or the configuration file's).
    pub fn set_from_text(&self, name: &str, text: &str) -> Result<()> {
        let Some((definition, cell)) = self.find(name) else {
            bail!(ErrorCode::BadValue, "Unknown --setParameter '{name}'");
        };
        ensure!(
            self.is_enabled(definition),
            ErrorCode::BadValue,
            "--setParameter '{name}' only available when used with 'enableTestCommands'"
        );
        ensure!(
            definition.settable().at_startup(),
            ErrorCode::BadValue,
            "Cannot use --setParameter to set \"{name}\" at startup"
        );
        self.write(definition, |definition| definition.write_text(cell, text))
            .map_err(|error| Error::bad_value(format!("Bad value for parameter \"{name}\": {}", error.reason())))
    }

    /// Whether the command `setParameter` may set it, whatever the value. The command asks this of all names it was given
    /// before it sets the first.
    pub fn check_settable(&self, name: &str) -> Result<()> {
        let (definition, _) = self.find(name).ok_or_else(|| unknown(name))?;
        ensure!(self.is_enabled(definition), ErrorCode::InvalidOptions, "Server parameter: '{name}' is disabled");
        ensure!(
            definition.settable().at_runtime(),
            ErrorCode::IllegalOperation,
            "not allowed to change [{name}] at runtime"
        );
        self.guards.lock().get(definition.name()).map_or(Ok(()), |guard| guard())
    }

    /// Sets a value at run time and gives the one before, as it is shown.
    pub fn set_from_value(&self, name: &str, value: ParameterValue) -> Result<ParameterValue> {
        self.check_settable(name)?;
        let (definition, cell) = self.find(name).ok_or_else(|| unknown(name))?;
        let before = self.shown(definition, cell);
        self.write(definition, |definition| definition.write(cell, value))?;
        Ok(before)
    }

    /// The value as it is shown, secrets as "###"; `None` if there is no such parameter or it is disabled.
    pub fn show(&self, name: &str) -> Option<ParameterValue> {
        let (definition, cell) = self.find(name).filter(|(definition, _)| self.is_enabled(*definition))?;
        Some(self.shown(definition, cell))
    }

    /// Every enabled parameter with its value as it is shown, by name.
    pub fn list(&self) -> impl Iterator<Item = (&'static dyn AnyParameter, ParameterValue)> + '_ {
        self.list_names()
            .filter(|(name, definition, _)| *name == definition.name())
            .map(|(_, found, value)| (found, value))
    }

    /// The same for every name, also the other names of a parameter.
    pub fn list_names(&self) -> impl Iterator<Item = (&'static str, &'static dyn AnyParameter, ParameterValue)> + '_ {
        let found = self.by_name.keys().filter_map(|name| self.find(name).map(|(found, cell)| (*name, found, cell)));
        found
            .filter(|(_, definition, _)| self.is_enabled(*definition))
            .map(|(name, definition, cell)| (name, definition, self.shown(definition, cell)))
    }

    /// Has the function asked before each change of the parameter at run time; its error refuses the change.
    pub fn guard<K: Kind + ?Sized>(
        &self,
        parameter: &'static Parameter<K>,
        guard: impl Fn() -> Result<()> + Send + Sync + 'static,
    ) {
        debug_assert!(self.find(parameter.name()).is_some(), "{} is not in the set", parameter.name());
        self.guards.lock().insert(parameter.name(), Box::new(guard));
    }

    /// Calls the function after each change of the parameter.
    pub fn subscribe<K: Kind + ?Sized>(
        &self,
        parameter: &'static Parameter<K>,
        subscriber: impl Fn(&ParameterValue) + Send + Sync + 'static,
    ) {
        debug_assert!(self.find(parameter.name()).is_some(), "{} is not in the set", parameter.name());
        self.subscribers.lock().entry(parameter.name()).or_default().push(Box::new(subscriber));
    }

    fn find(&self, name: &str) -> Option<(&'static dyn AnyParameter, &Cell)> {
        let (definition, slot) = self.by_name.get(name)?;
        Some((*definition, self.cells.get(*slot)?.as_ref()?))
    }

    fn is_enabled(&self, definition: &dyn AnyParameter) -> bool {
        self.test_commands_enabled || !definition.is_for_tests()
    }

    fn shown(&self, definition: &dyn AnyParameter, cell: &Cell) -> ParameterValue {
        if definition.is_redacted() {
            return ParameterValue::String("###".to_owned());
        }
        definition.read(cell).unwrap_or_else(|| definition.default_value())
    }

    /// Writes and tells the subscribers under one lock, so that they hear of changes in the order they were made.
    fn write(
        &self,
        definition: &'static dyn AnyParameter,
        write: impl FnOnce(&dyn AnyParameter) -> Result<()>,
    ) -> Result<()> {
        let subscribers = self.subscribers.lock();
        write(definition)?;
        let Some(interested) = subscribers.get(definition.name()) else {
            return Ok(());
        };
        if let Some(value) = self.find(definition.name()).and_then(|(definition, cell)| definition.read(cell)) {
            interested.iter().for_each(|subscriber| subscriber(&value));
        }
        Ok(())
    }
}

fn unknown(name: &str) -> Error {
    let reason = format!("attempted to set unrecognized parameter [{name}], use help:true to see options ");
    Error::new(ErrorCode::InvalidOptions, reason)
}

impl fmt::Debug for ParameterSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.list().map(|(definition, value)| (definition.name(), value))).finish()
    }
}
