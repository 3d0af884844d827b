//! The JavaScript of one request.

use crate::Scope;
use crate::quickjs::QuickScope;
use pando_base::{Error, OperationContext, Result, WeakOperation};
use pando_doc::{Doc, OwnedValue};
use std::fmt;
use std::sync::{Arc, OnceLock};

/// What a request's code may take.
#[derive(Clone, Copy, Debug)]
pub struct ScriptLimits {
    /// Memory.
    pub heap_bytes_max: usize,
    /// Time for one call.
    pub call_ms_max: u64,
}

impl Default for ScriptLimits {
    fn default() -> ScriptLimits {
        ScriptLimits { heap_bytes_max: 100 << 20, call_ms_max: 60_000 }
    }
}

/// The JavaScript of one request: its scope, once there is one.
pub struct Script {
    limits: ScriptLimits,
    /// Global variables, such as the functions of `system.js`.
    globals: Vec<(String, OwnedValue)>,
    /// Who compiles its functions.
    maker: Option<WeakOperation>,
    scope: OnceLock<Arc<dyn Scope>>,
    /// What it was used for first.
    usage: OnceLock<Usage>,
}

/// What code is for. Stored functions are there for filters only, so one request has one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// `$where`.
    Filter,
    /// `$function`, `$accumulator` and their kin.
    Expression,
}

/// As expressions hold it.
pub type SharedScript = Arc<Script>;

impl Script {
    /// A request without code as yet.
    pub fn new(limits: ScriptLimits) -> Script {
        Script { limits, globals: Vec::new(), maker: None, scope: OnceLock::new(), usage: OnceLock::new() }
    }

    /// The same of this operation: what runs outside of [`crate::during`] ends when it has to.
    #[must_use]
    pub fn made_by(mut self, operation: &OperationContext) -> Script {
        self.maker = Some(operation.to_weak());
        self
    }

    /// The same with global variables.
    #[must_use]
    pub fn with_globals(mut self, globals: &Doc) -> Script {
        self.globals.extend(globals.elements().map(|element| (element.name.to_string(), element.value.to_owned())));
        self
    }

    /// Says what the code is for; refused if there is some for something else.
    pub fn use_for(&self, usage: Usage) -> Result<()> {
        if *self.usage.get_or_init(|| usage) == usage {
            return Ok(());
        }
        let reason = "A single operation cannot use both JavaScript aggregation expressions and $where.";
        Err(Error::location(4_649_200, reason))
    }

    /// True once code was compiled.
    pub fn is_used(&self) -> bool {
        self.scope.get().is_some()
    }

    /// The interpreter; made when it is asked for the first time.
    pub fn scope(&self) -> Result<&dyn Scope> {
        if self.scope.get().is_none() {
            let scope = QuickScope::new(self.limits, self.maker.clone())?;
            for (name, value) in &self.globals {
                scope.set_global(name, value.view())?;
            }
            // Another may have been quicker; then that one serves.
            let _ = self.scope.set(Arc::new(scope));
        }
        self.scope.get().map(|scope| &**scope).ok_or_else(|| Error::internal("the scope was just made"))
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Script")
    }
}
