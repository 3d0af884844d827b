//! What parsing needs to know beside the text: the collation, the present time, variables given by the command, and which
//! operators are allowed where the expression stands.

use pando_base::Timestamp;
use pando_doc::{Collator, Doc, StringComparator};
use std::fmt;
use std::sync::Arc;

/// A collation that parsed expressions keep.
pub type SharedCollator = Arc<dyn Collator + Send + Sync>;

/// Operators that are not allowed everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// `$expr`.
    pub expr: bool,
    /// `$text`.
    pub text: bool,
    /// `$where` and other JavaScript.
    pub javascript: bool,
    /// `$jsonSchema`.
    pub json_schema: bool,
    /// `$near` and `$nearSphere`.
    pub geo_near: bool,
}

impl Features {
    /// Everything, as in `find`.
    pub const ALL: Features = Features { expr: true, text: true, javascript: true, json_schema: true, geo_near: true };
    /// Nothing special, as in partial filters and `$pull`.
    pub const NONE: Features =
        Features { expr: false, text: false, javascript: false, json_schema: false, geo_near: false };
}

/// The surroundings of an expression.
#[derive(Clone)]
pub struct ParseContext {
    /// The collation of comparisons; by bytes if absent.
    pub collator: Option<SharedCollator>,
    /// `$$NOW`, in milliseconds since 1970.
    pub now: i64,
    /// `$$CLUSTER_TIME`, if there is one.
    pub cluster_time: Option<Timestamp>,
    /// The command's `let`: names and constant values.
    pub variables: Doc,
    /// `$$USER_ROLES`, if known.
    pub user_roles: Option<pando_doc::Array>,
    /// What is allowed here.
    pub features: Features,
}

impl ParseContext {
    /// The surroundings of a `find`, at this time.
    pub fn new(now: i64) -> ParseContext {
        ParseContext {
            collator: None,
            now,
            cluster_time: None,
            variables: Doc::new(),
            user_roles: None,
            features: Features::ALL,
        }
    }

    /// The same with other features.
    #[must_use]
    pub fn with_features(mut self, features: Features) -> ParseContext {
        self.features = features;
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
