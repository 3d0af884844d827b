//! Scopes by QuickJS.
//!
//! Each scope is a runtime of its own: nothing is shared with other scopes, not even garbage. It may be used from one thread after the
//! other; the runtime's lock sees to it that only one is inside.
//!
//! `prelude.js` defines the types of BSON and gives back the functions by which values are made and read; they are kept with the
//! runtime as [`Host`], out of reach of the clients' code.

mod compile;
mod failure;
mod from_script;
mod to_script;

use crate::interruption::Watch;
use crate::{Emitted, FunctionId, Scope, ScriptLimits};
use failure::Pending;
use md5::Digest;
use pando_base::operation::{current, during};
use pando_base::{Error, ErrorCode, Result, WeakOperation};
use pando_doc::{DocRef, OwnedValue, Value};
use parking_lot::{Condvar, Mutex};
use rquickjs::function::{Args, Rest};
use rquickjs::{Coerced, Context, Ctx, FromJs, Function, JsLifetime, Object, Runtime, Symbol, Value as JsValue};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

const PRELUDE: &str = include_str!("prelude.js");

/// How deep native code may get; threads have at least 2 MB.
const STACK_SIZE_BYTES_MAX: usize = 768 * 1024;

/// Compiling takes milliseconds. It runs code only where a client has closed the function around it, and is done by a thread
/// that others wait for.
const COMPILE_MS_MAX: u64 = 1000;

/// A pause looks this often whether it has to end.
const SLEEP_SLICE_MS: u64 = 5;

/// What the prelude gives to the host, and the functions compiled so far.
#[derive(Clone)]
struct Host<'js> {
    kind: Symbol<'js>,
    ints: Symbol<'js>,
    reference: Object<'js>,
    make: Function<'js>,
    read: Function<'js>,
    describe: Function<'js>,
    fail: Function<'js>,
    text: Function<'js>,
    functions: rquickjs::Array<'js>,
}

// SAFETY: only values of the runtime are in it, and all of them with the same lifetime.
unsafe impl<'js> JsLifetime<'js> for Host<'js> {
    type Changed<'to> = Host<'to>;
}

impl<'js> Host<'js> {
    fn of(ctx: &Ctx<'js>) -> Result<Host<'js>> {
        let host = ctx.userdata::<Host<'js>>().map(|host| (*host).clone());
        host.ok_or_else(|| Error::internal("a scope without its host"))
    }

    fn new(ctx: &Ctx<'js>, made: &Object<'js>) -> rquickjs::Result<Host<'js>> {
        Ok(Host {
            kind: made.get("kind")?,
            ints: made.get("ints")?,
            reference: made.get("reference")?,
            make: made.get("make")?,
            read: made.get("read")?,
            describe: made.get("describe")?,
            fail: made.get("fail")?,
            text: made.get("text")?,
            functions: rquickjs::Array::new(ctx.clone())?,
        })
    }
}

/// What calls emit, while one that may is under way.
#[derive(Default)]
struct Emitting {
    emitted: Emitted,
    size_bytes: usize,
    bytes_max: usize,
}

/// A scope.
pub(crate) struct QuickScope {
    context: Context,
    limits: ScriptLimits,
    maker: Option<WeakOperation>,
    compiled: Mutex<HashMap<String, FunctionId>>,
    emitting: Arc<Mutex<Emitting>>,
    pending: Arc<Pending>,
}

impl QuickScope {
    pub(crate) fn new(limits: ScriptLimits, maker: Option<WeakOperation>) -> Result<QuickScope> {
        let runtime = Runtime::new().map_err(|_| out_of_memory())?;
        runtime.set_max_stack_size(STACK_SIZE_BYTES_MAX);
        let pending = Arc::new(Pending::default());
        let watched = Arc::clone(&pending);
        runtime.set_interrupt_handler(Some(Box::new(move || watched.must_stop())));
        let context = Context::full(&runtime).map_err(|_| out_of_memory())?;
        let (compiled, emitting) = (Mutex::default(), Arc::default());
        let scope = QuickScope { context, limits, maker, compiled, emitting, pending };
        scope.enter(limits.call_ms_max, |ctx| scope.furnish(ctx))?;
        // What the scope itself needs is not the client's.
        runtime.set_memory_limit(limits.heap_bytes_max);
        Ok(scope)
    }

    /// Runs the prelude, and defines the functions that end in Rust.
    fn furnish<'js>(&self, ctx: &Ctx<'js>) -> Result<()> {
        let failed = |error| failure::of(ctx, error, &self.pending);
        let prelude: Function<'_> = ctx.eval(PRELUDE).map_err(failed)?;
        let sum = Function::new(ctx.clone(), |text: String| {
            md5::Md5::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect::<String>()
        });
        let watched = Arc::clone(&self.pending);
        let sleep = Function::new(ctx.clone(), move |milliseconds: f64| sleep(&watched, milliseconds));
        let size = Function::new(ctx.clone(), |ctx: Ctx<'js>, value: JsValue<'js>| {
            let read = Host::of(&ctx).and_then(|host| from_script::value(&host, &ctx, &value, &Pending::default()));
            read.map(|read| from_script::size_bytes(&read) as f64).map_err(|error| failure::throw(&ctx, &error))
        });
        let native = (sum.map_err(failed)?, sleep.map_err(failed)?, size.map_err(failed)?);
        let made: Object<'_> = prelude.call(native).map_err(failed)?;
        let host = Host::new(ctx, &made).map_err(failed)?;
        ctx.store_userdata(host).map_err(|_| Error::internal("the host of a scope could not be kept"))?;
        let emitting = Arc::clone(&self.emitting);
        let emit = Function::new(ctx.clone(), move |ctx: Ctx<'js>, arguments: Rest<JsValue<'js>>| {
            emit(&ctx, &arguments.0, &emitting).map_err(|error| failure::throw(&ctx, &error))
        });
        let emit = emit.and_then(|emit| emit.with_name("emit")).map_err(failed)?;
        ctx.globals().set("emit", emit).map_err(failed)
    }

    /// Works inside, under the watch of the thread's operation, or else of the one that made the scope.
    fn enter<R>(&self, ms_max: u64, work: impl FnOnce(&Ctx<'_>) -> Result<R>) -> Result<R> {
        let maker = if current().is_some() { None } else { self.maker.as_ref().and_then(WeakOperation::upgrade) };
        match maker {
            Some(operation) => during(&operation, || self.enter_watched(ms_max, work)),
            None => self.enter_watched(ms_max, work),
        }
    }

    fn enter_watched<R>(&self, ms_max: u64, work: impl FnOnce(&Ctx<'_>) -> Result<R>) -> Result<R> {
        self.pending.begin(Watch::start(ms_max));
        let done = self.context.with(|ctx| work(&ctx));
        // What stopped it says more than how it ended.
        match self.pending.end() {
            Some(stopped) => Err(stopped),
            None => done,
        }
    }

    fn invoke<'js>(
        &self,
        ctx: &Ctx<'js>,
        function: FunctionId,
        this: Option<DocRef<'_>>,
        arguments: &[Value<'_>],
    ) -> Result<(Host<'js>, JsValue<'js>)> {
        let host = Host::of(ctx)?;
        let failed = |error| failure::of(ctx, error, &self.pending);
        let called: Function<'js> = host.functions.get(function.0).map_err(failed)?;
        let mut args = Args::new_unsized(ctx.clone());
        if let Some(document) = this {
            args.this(to_script::document(&host, ctx, document).map_err(failed)?).map_err(failed)?;
        }
        for argument in arguments {
            args.push_arg(to_script::value(&host, ctx, *argument).map_err(failed)?).map_err(failed)?;
        }
        let given: JsValue<'js> = args.apply(&called).map_err(failed)?;
        // What it has put off is done now or never.
        while !self.pending.must_stop() && ctx.execute_pending_job() {}
        Ok((host, given))
    }
}

impl Scope for QuickScope {
    fn compile(&self, source: &str) -> Result<FunctionId> {
        let mut compiled = self.compiled.lock();
        if let Some(known) = compiled.get(source) {
            return Ok(*known);
        }
        let id = self.enter(self.limits.call_ms_max.min(COMPILE_MS_MAX), |ctx| {
            let host = Host::of(ctx)?;
            let function = compile::function(ctx, source, &self.pending)?;
            let id = host.functions.len();
            host.functions.set(id, function).map_err(|error| failure::of(ctx, error, &self.pending))?;
            Ok(FunctionId(id))
        })?;
        compiled.insert(source.to_owned(), id);
        Ok(id)
    }

    fn set_global(&self, name: &str, value: Value<'_>) -> Result<()> {
        self.enter(self.limits.call_ms_max, |ctx| {
            let host = Host::of(ctx)?;
            let failed = |error| failure::of(ctx, error, &self.pending);
            let value = to_script::value(&host, ctx, value).map_err(failed)?;
            ctx.globals().set(name, value).map_err(failed)
        })
    }

    fn call(&self, function: FunctionId, this: Option<DocRef<'_>>, arguments: &[Value<'_>]) -> Result<OwnedValue> {
        self.enter(self.limits.call_ms_max, |ctx| {
            let (host, given) = self.invoke(ctx, function, this, arguments)?;
            from_script::value(&host, ctx, &given, &self.pending)
        })
    }

    fn test(&self, function: FunctionId, document: DocRef<'_>) -> Result<bool> {
        self.enter(self.limits.call_ms_max, |ctx| {
            let host = Host::of(ctx)?;
            let failed = |error| failure::of(ctx, error, &self.pending);
            let called: Function<'_> = host.functions.get(function.0).map_err(failed)?;
            let object = to_script::document(&host, ctx, document).map_err(failed)?;
            ctx.globals().set("obj", object.clone()).map_err(failed)?;
            let mut args = Args::new(ctx.clone(), 0);
            args.this(object).map_err(failed)?;
            let given: JsValue<'_> = args.apply(&called).map_err(failed)?;
            <Coerced<bool> as FromJs<'_>>::from_js(ctx, given).map(|truth| truth.0).map_err(failed)
        })
    }

    fn emit(&self, function: FunctionId, document: DocRef<'_>, bytes_max: usize) -> Result<Emitted> {
        *self.emitting.lock() = Emitting { bytes_max, ..Emitting::default() };
        let called =
            self.enter(self.limits.call_ms_max, |ctx| self.invoke(ctx, function, Some(document), &[]).map(drop));
        let emitted = std::mem::take(&mut *self.emitting.lock()).emitted;
        called.map(|()| emitted)
    }
}

/// `emit(key, value)`, as the clients' code calls it.
fn emit<'js>(ctx: &Ctx<'js>, arguments: &[JsValue<'js>], emitting: &Mutex<Emitting>) -> Result<()> {
    let [key, value] = arguments else { return Err(Error::location(31220, "emit takes 2 args")) };
    let host = Host::of(ctx)?;
    let pending = Pending::default();
    let key = match from_script::value(&host, ctx, key, &pending)? {
        OwnedValue::Undefined => OwnedValue::Null,
        key => key,
    };
    let value = from_script::value(&host, ctx, value, &pending)?;
    let mut emitting = emitting.lock();
    emitting.size_bytes += from_script::size_bytes(&key) + from_script::size_bytes(&value);
    if emitting.size_bytes > emitting.bytes_max {
        let reason = format!("Size of emitted values exceeds the set size limit of {} bytes", emitting.bytes_max);
        return Err(Error::location(31292, reason));
    }
    emitting.emitted.push((key, value));
    Ok(())
}

/// Waits, but not longer than the call may take.
fn sleep(pending: &Pending, milliseconds: f64) {
    let (lock, wake) = (Mutex::new(()), Condvar::new());
    let mut rest_ms = milliseconds.clamp(0.0, 3_600_000.0) as u64;
    let mut guard = lock.lock();
    while rest_ms > 0 && !pending.must_stop() {
        let slice_ms = rest_ms.min(SLEEP_SLICE_MS);
        wake.wait_for(&mut guard, Duration::from_millis(slice_ms));
        rest_ms -= slice_ms;
    }
}

fn out_of_memory() -> Error {
    Error::new(ErrorCode::JSInterpreterFailure, "Out of memory")
}
