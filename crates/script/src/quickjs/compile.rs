//! From source to functions.
//!
//! Clients send a function, an expression, or statements whose last is the result. Only the interpreter knows for certain where a statement
//! ends, so it is asked: what compiles is what was meant, tried from the most to the least specific reading.

use super::failure::{self, Pending};
use pando_base::{Error, Result};
use rquickjs::context::EvalOptions;
use rquickjs::{Ctx, Function, Value as JsValue};

/// Compiles what a client sent.
pub(super) fn function<'js>(ctx: &Ctx<'js>, source: &str, pending: &Pending) -> Result<Function<'js>> {
    let source = source.trim_end_matches(|letter: char| letter == ';' || letter.is_whitespace());
    let failed = |error| failure::of(ctx, error, pending);
    if begins_with_function(source)
        && let Ok(function) = evaluate(ctx, &format!("({source}\n)"))
    {
        return function.into_function().ok_or_else(|| Error::location(10232, "not a function"));
    }
    ctx.catch();
    let body = if source.is_empty() {
        String::new()
    } else if compiles(ctx, &format!("return (\n{source}\n)")) {
        format!("return (\n{source}\n)")
    } else {
        statements(ctx, source, pending)
    };
    let made = evaluate(ctx, &format!("(function() {{ {body}\n}})")).map_err(failed)?;
    made.into_function().ok_or_else(|| Error::location(10232, "not a function"))
}

/// The statements with a `return` before the last, where that is an expression. Each try reads everything, so there may be no end of
/// it for long sources: it is given up when the call has to stop.
fn statements(ctx: &Ctx<'_>, source: &str, pending: &Pending) -> String {
    let ends = source.char_indices().rev().filter(|(_, letter)| matches!(letter, ';' | '\n' | '}'));
    for (place, letter) in ends {
        let (before, last) = source.split_at(place + letter.len_utf8());
        if pending.must_stop() {
            break;
        }
        if last.trim().is_empty() {
            continue;
        }
        let whole = format!("{before} return (\n{last}\n)");
        if compiles(ctx, before) && compiles(ctx, &whole) {
            return whole;
        }
    }
    source.to_owned()
}

/// True if the text is the body of a function.
fn compiles(ctx: &Ctx<'_>, body: &str) -> bool {
    let is_fine = evaluate(ctx, &format!("(function() {{ {body}\n}})")).is_ok_and(|made| made.is_function());
    if !is_fine {
        ctx.catch();
    }
    is_fine
}

fn evaluate<'js>(ctx: &Ctx<'js>, source: &str) -> rquickjs::Result<JsValue<'js>> {
    let mut options = EvalOptions::default();
    options.strict = false;
    ctx.eval_with_options(source, options)
}

/// True if the first word, behind blanks and comments, is `function`.
fn begins_with_function(source: &str) -> bool {
    let mut rest = source.trim_start();
    loop {
        if let Some(comment) = rest.strip_prefix("//") {
            rest = comment.split_once('\n').map_or("", |(_, behind)| behind).trim_start();
        } else if let Some(comment) = rest.strip_prefix("/*") {
            rest = comment.split_once("*/").map_or("", |(_, behind)| behind).trim_start();
        } else {
            let word: String = rest.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
            return word == "function" || word == "async";
        }
    }
}
