//! JavaScript of clients: `$where`, `$function`, `$accumulator`, mapReduce.
//!
//! A [`Script`] stands for all the JavaScript of one request. Its [`Scope`], the interpreter with its global variables, is made
//! when the first function is compiled, serves every document of the request, and goes with it: what one client's code leaves behind,
//! no other ever sees. Functions are compiled once for each scope.
//!
//! Invariants: code of a client reaches nothing but the values handed to it; every call ends when its operation has to stop
//! (see [`during`]), or after the time that one call may take; a scope never has more memory than it was given; whatever the code does
//! becomes an error of MongoDB's code, never a panic.
//!
//! The interpreter is behind [`Scope`]; only `quickjs` knows which one it is. This crate must not know collections, expressions or commands.

mod interruption;
mod quickjs;
mod script;

#[cfg(test)]
mod tests;

pub use script::{Script, ScriptLimits, SharedScript, Usage};

use pando_base::Result;
use pando_doc::{DocRef, OwnedValue, Value};

/// A function that a scope has compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FunctionId(usize);

/// What a map function has emitted: pairs of key and value.
pub type Emitted = Vec<(OwnedValue, OwnedValue)>;

/// An interpreter with its global variables.
pub trait Scope: Send + Sync {
    /// Compiles a function, or an expression or statements that become the body of one. The same source gives the same function.
    fn compile(&self, source: &str) -> Result<FunctionId>;

    /// Gives a global variable a value.
    fn set_global(&self, name: &str, value: Value<'_>) -> Result<()>;

    /// Calls a function; without a document, `this` is the global object's.
    fn call(&self, function: FunctionId, this: Option<DocRef<'_>>, arguments: &[Value<'_>]) -> Result<OwnedValue>;

    /// Calls a function with the document as `this` and as the variable `obj`, and tells whether it gave something that counts as true.
    fn test(&self, function: FunctionId, document: DocRef<'_>) -> Result<bool>;

    /// Calls a function with the document as `this`, for what it emits: so many bytes at most.
    fn emit(&self, function: FunctionId, document: DocRef<'_>, bytes_max: usize) -> Result<Emitted>;
}
