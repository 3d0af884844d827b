//! What parsing needs to know beside the text: the collation, the present time, variables given by the command, and which
//! operators are allowed where the expression stands.

use crate::expression::{Expression, SharedRandom, check_user_variable};
use crate::limits::ExpressionLimits;
use crate::metadata::MetaNeeds;
use crate::update::OplogUpdates;
use bstr::{BStr, BString};
use pando_base::{Error, Result, Timestamp};
pub use pando_doc::SharedCollator;
use pando_doc::{Doc, DocBuilder, DocRef, OwnedValue, StringComparator};
use pando_script::SharedScript;
use std::fmt;

/// Operators that are not allowed everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// `$expr`.
    pub expr: bool,
    /// `$text`.
    pub text: bool,
    /// `$where`.
    pub javascript: bool,
    /// `$function` and its kin.
    pub functions: bool,
    /// `$jsonSchema`.
    pub json_schema: bool,
    /// `$near` and `$nearSphere`.
    pub geo_near: bool,
    /// The keywords of `$jsonSchema` about encrypted fields.
    pub encryption: bool,
}

impl Features {
    /// Everything, as in `find`.
    pub const ALL: Features = Features {
        expr: true,
        text: true,
        javascript: true,
        functions: true,
        json_schema: true,
        geo_near: true,
        encryption: true,
    };
    /// Nothing special, as in partial filters and `$pull`.
    pub const NONE: Features = Features {
        expr: false,
        text: false,
        javascript: false,
        functions: false,
        json_schema: false,
        geo_near: false,
        encryption: false,
    };
}

/// Variables that only the server gives a value.
const CONSTANTS: &[&str] = &["CLUSTER_TIME", "IS_MR", "JS_SCOPE", "NOW", "USER_ROLES"];

/// The surroundings of an expression.
#[derive(Clone)]
pub struct ParseContext {
    /// The collation of comparisons; by bytes if absent.
    pub collator: Option<SharedCollator>,
    /// `$$NOW`, in milliseconds since 1970.
    pub now: i64,
    /// False where `$$NOW` and `$$CLUSTER_TIME` have no values, as in the filters of `count`,
    /// `distinct` and of lists.
    pub has_clocks: bool,
    /// `$$CLUSTER_TIME`, if there is one.
    pub cluster_time: Option<Timestamp>,
    /// The command's `let`: names and constant values.
    pub variables: Doc,
    /// Variables whose expressions gave nothing.
    pub absent_variables: Vec<BString>,
    /// `$$USER_ROLES`, if known.
    pub user_roles: Option<pando_doc::Array>,
    /// Keywords of `$jsonSchema` that nobody knows mean nothing, rather than being refused.
    pub ignores_unknown_keywords: bool,
    /// Where `$rand` takes its numbers from; not allowed if there is nothing.
    pub random: Option<SharedRandom>,
    /// Where JavaScript runs; nowhere if there is nothing.
    pub script: Option<SharedScript>,
    /// `$$JS_SCOPE`: what a mapReduce gives its functions.
    pub javascript_scope: Option<Doc>,
    /// It is a mapReduce that is read as a pipeline.
    pub is_map_reduce: bool,
    /// What is done about changes as the oplog has them; not allowed if there is nothing.
    pub oplog_updates: Option<OplogUpdates>,
    /// What `$meta` has asked for.
    pub metadata: MetaNeeds,
    /// What is allowed here.
    pub features: Features,
    /// How much expressions may take.
    pub limits: ExpressionLimits,
}

impl ParseContext {
    /// The surroundings of a `find`, at this time.
    pub fn new(now: i64) -> ParseContext {
        ParseContext {
            collator: None,
            now,
            has_clocks: true,
            cluster_time: None,
            variables: Doc::new(),
            absent_variables: Vec::new(),
            user_roles: None,
            ignores_unknown_keywords: false,
            random: None,
            script: None,
            javascript_scope: None,
            is_map_reduce: false,
            oplog_updates: None,
            metadata: MetaNeeds::default(),
            features: Features::ALL,
            limits: ExpressionLimits::default(),
        }
    }

    /// Binds the variables of a command's `let`: each is evaluated once, without a document, and may use those before it.
    pub fn bind(&mut self, variables: DocRef<'_>) -> Result<()> {
        for variable in variables.elements() {
            if CONSTANTS.iter().any(|constant| variable.name == *constant) {
                let reason = format!("Attempt to set internal constant: {}", variable.name);
                return Err(Error::location(4738901, reason));
            }
            check_user_variable(variable.name).map_err(|error| error.context("Invalid 'let' parameter"))?;
            let expression = Expression::parse(variable.value, self)?.optimize()?;
            if expression.paths().is_none_or(|paths| !paths.is_empty()) {
                let reason = "Command let Expression tried to access a field, but this is not allowed because Command let expressions run before the query examines any documents.";
                return Err(Error::location(4890500, reason));
            }
            let value = expression.evaluate_document(DocRef::EMPTY)?.into_value();
            self.set_variable(variable.name, value);
        }
        Ok(())
    }

    /// Gives a variable a value, or nothing, whatever it had before.
    pub fn set_variable(&mut self, name: &BStr, value: Option<OwnedValue>) {
        let mut all = DocBuilder::with_capacity(self.variables.size_bytes() + 32);
        self.variables.elements().filter(|known| known.name != name).for_each(|known| all.append_element(known));
        self.absent_variables.retain(|absent| absent != name);
        match value {
            Some(value) => all.append(name, value),
            None => self.absent_variables.push(name.to_owned()),
        }
        self.variables = all.finish();
    }

    /// The same with other features.
    #[must_use]
    pub fn with_features(mut self, features: Features) -> ParseContext {
        self.features = features;
        self
    }

    /// The same without values for the variables that tell the time.
    #[must_use]
    pub fn without_clocks(mut self) -> ParseContext {
        self.has_clocks = false;
        self
    }

    /// The same with a collation.
    #[must_use]
    pub fn with_collator(mut self, collator: Option<SharedCollator>) -> ParseContext {
        self.collator = collator;
        self
    }
}

impl Default for ParseContext {
    fn default() -> ParseContext {
        ParseContext::new(0)
    }
}

impl fmt::Debug for ParseContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParseContext")
            .field("now", &self.now)
            .field("variables", &self.variables)
            .field("features", &self.features)
            .finish_non_exhaustive()
    }
}

/// How the collation compares strings.
pub(crate) fn strings(collator: &Option<SharedCollator>) -> Option<&dyn StringComparator> {
    collator.as_deref().map(|collator| collator as &dyn StringComparator)
}
