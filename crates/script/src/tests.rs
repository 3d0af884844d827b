//! What code of clients may do, what it may not, and what its values become.

use crate::{Script, ScriptLimits};
use pando_base::operation::during;
use pando_base::{ErrorCode, OperationContext};
use pando_doc::{Doc, OwnedValue, Value, doc};

fn script() -> Script {
    Script::new(ScriptLimits::default())
}

fn run(source: &str, document: &Doc) -> pando_base::Result<OwnedValue> {
    let script = script();
    let scope = script.scope()?;
    let function = scope.compile(source)?;
    scope.call(function, Some(document.view()), &[])
}

fn test(source: &str, document: &Doc) -> bool {
    let script = script();
    let scope = script.scope().unwrap();
    scope.test(scope.compile(source).unwrap(), document.view()).unwrap()
}

#[test]
fn u5_functions_expressions_and_statements_are_understood() {
    let document = doc! { "a": 3, "b": "x;y" };
    for source in [
        "this.a == 3",
        "this.a == 3;",
        "return this.a == 3",
        "return this.a == 3;",
        "function() { return this.a == 3; }",
        "function named() { return obj.a == 3 }",
        "// why\nfunction() { return this.a == 3; }",
        "var a = this.a; a == 3",
        "if (this.a == 3) { return true; } return false",
        "if (this.a == 3) { return true; } else { return false; }",
        "this.b == 'x;y'",
        "var s = ';'; var t = this.a;\n t == 3 && s == ';'",
        "{ return this.a == 3 }",
    ] {
        assert!(test(source, &document), "{source}");
    }
    assert!(!test("var x = 1; if (x) { 5 }", &document));
    assert_eq!(run("this.a +", &document).unwrap_err().code(), ErrorCode::JSInterpreterFailure);
}

#[test]
fn u5_values_survive() {
    let every = doc! { "d": 1.0, "i": 1, "l": 5_i64, "s": "é\u{0}x", "n": null, "t": true, "o": { "i": 2, "__proto__": 3, "e": {} },
    "a": [1, 2.0, { "i": 1 }, []], "f": -0.0 };
    let mut builder = pando_doc::DocBuilder::new();
    builder.append_all(every.view());
    let id: pando_doc::ObjectId = "0123456789abcdef01234567".parse().unwrap();
    builder.append("id", Value::ObjectId(id));
    builder.append("u", Value::Undefined);
    builder.append("date", Value::DateTime(-5));
    builder.append("ts", Value::Timestamp(pando_base::Timestamp::new(4_000_000_000, 7)));
    builder.append("bin", Value::Binary { subtype: 4, bytes: &[7; 16] });
    builder.append("bin0", Value::Binary { subtype: 0, bytes: &[1] });
    builder.append("re", Value::Regex { pattern: "^a/b".into(), options: "i".into() });
    builder.append("min", Value::MinKey);
    builder.append("max", Value::MaxKey);
    builder.append("ptr", Value::DbPointer { namespace: "a.b".into(), id });
    builder.append("big", i64::MAX);
    builder.append("dec", Value::Decimal(pando_doc::Decimal128::parse("1.50").unwrap().value));
    builder.append("code", Value::Code("function (a) { return a; }".into()));
    builder.append("ref", doc! { "$ref": "c", "$id": 1 });
    let document = builder.finish();
    let expected = document.to_string().replace("^a/b", "^a\\/b");
    let OwnedValue::Document(same) = run("return this", &document).unwrap() else { panic!("a document") };
    assert_eq!(same.to_string(), expected);
}

#[test]
fn u5_numbers_of_code_are_doubles() {
    let document = doc! { "a": 3, "l": 5_i64 };
    assert_eq!(run("1", &document).unwrap(), OwnedValue::Double(1.0));
    assert_eq!(run("this.a", &document).unwrap(), OwnedValue::Double(3.0));
    assert_eq!(run("this.l", &document).unwrap(), OwnedValue::Int64(5));
    assert_eq!(run("this.l + 1", &document).unwrap(), OwnedValue::Double(6.0));
    assert_eq!(run("NumberInt(7)", &document).unwrap(), OwnedValue::Int32(7));
    assert_eq!(run("NumberLong('9223372036854775807')", &document).unwrap(), OwnedValue::Int64(i64::MAX));
    let changed = run("this.a = 4; this.n = 1; return this", &document).unwrap();
    assert_eq!(changed.view(), Value::Document(doc! { "a": 4, "l": 5_i64, "n": 1.0 }.view()));
}

#[test]
fn u5_helpers_of_the_shell_are_there() {
    let empty = doc! {};
    for (source, expected) in [
        (
            "tojson({a: 1, b: [NumberLong(2), 'x'], c: ObjectId('0123456789abcdef01234567')}, '', true)",
            "{ \"a\" : 1, \"b\" : [ NumberLong(2), \"x\" ], \"c\" : ObjectId(\"0123456789abcdef01234567\") }",
        ),
        ("UUID('01234567-89ab-cdef-0123-456789abcdef').toString()", "UUID(\"01234567-89ab-cdef-0123-456789abcdef\")"),
        ("HexData(0, 'ff00').base64()", "/wA="),
        ("hex_md5('a')", "0cc175b9c0f1b6a831c399e269772661"),
        ("ISODate('2020-01-02T03:04:05.006+01:00').tojson()", "ISODate(\"2020-01-02T02:04:05.006Z\")"),
        ("String(Array.sum([1, 2, 3]))", "6"),
        ("new Timestamp(1, 2).toString()", "Timestamp(1, 2)"),
        ("NumberDecimal('1.5').toString()", "NumberDecimal(\"1.5\")"),
        ("typeof emit", "function"),
        ("String(Object.bsonsize({a: 'x'}))", "14"),
    ] {
        assert_eq!(run(source, &empty).unwrap().view(), Value::String(expected.into()), "{source}");
    }
}

#[test]
fn u5_errors_have_mongodb_codes() {
    let empty = doc! {};
    for (source, code, part) in [
        ("throw new Error('boom')", 139, "Error: boom"),
        ("nothere.x", 139, "ReferenceError"),
        ("throw 'text'", 8, "uncaught exception: text"),
        ("throw {a: 1}", 139, "uncaught exception: [object Object]"),
        ("var a = {}; a.a = a; return a", 17279, "Do you have a cycle?"),
        ("return {'a\\0b': 1}", 16985, "null char"),
        ("emit(1)", 31220, "emit takes 2 args"),
        ("ObjectId('x')", 139, "invalid object id"),
        ("return Symbol('x')", 16662, "unable to convert"),
    ] {
        let error = run(source, &empty).unwrap_err();
        assert_eq!(error.code().number(), code, "{source}: {error}");
        assert!(error.reason().contains(part), "{source}: {error}");
    }
}

#[test]
fn u5_stacks_are_told_as_mongodb_does() {
    let error = run("function() { function inner() { nothere } return inner(); }", &doc! {}).unwrap_err();
    assert!(error.reason().contains("not defined :\ninner@:1:"), "{error}");
}

#[test]
fn u5_what_map_emits_is_taken_as_it_was() {
    let script = script();
    let scope = script.scope().unwrap();
    let map = scope.compile("function() { var o = {n: 1}; emit(this.k, o); o.n = 2; emit(undefined, this); }").unwrap();
    let document = doc! { "k": "a", "i": 1 };
    let emitted = scope.emit(map, document.view(), 1000).unwrap();
    let shown: Vec<String> = emitted.iter().map(|(key, value)| format!("{} {}", key.view(), value.view())).collect();
    let expected = [format!("\"a\" {}", doc! { "n": 1.0 }), format!("null {document}")];
    assert_eq!(shown, expected);
    assert_eq!(scope.emit(map, document.view(), 10).unwrap_err().code().number(), 31292);
}

#[test]
fn u5_scopes_are_apart_and_functions_compiled_once() {
    let script = script();
    let scope = script.scope().unwrap();
    let count = scope.compile("function() { if (typeof n == 'undefined') { n = 0 } return ++n; }").unwrap();
    assert_eq!(scope.call(count, None, &[]).unwrap(), OwnedValue::Double(1.0));
    assert_eq!(scope.call(count, None, &[]).unwrap(), OwnedValue::Double(2.0));
    let again = scope.compile("function() { if (typeof n == 'undefined') { n = 0 } return ++n; }").unwrap();
    assert_eq!(count, again);
    assert_eq!(run("typeof n", &doc! {}).unwrap().view(), Value::String("undefined".into()));
    scope.set_global("factor", Value::Int32(3)).unwrap();
    let times = scope.compile("function(a, b) { return a * b * factor }").unwrap();
    assert_eq!(scope.call(times, None, &[Value::Int32(2), Value::Int64(5)]).unwrap(), OwnedValue::Double(30.0));
}

#[test]
fn u5_endless_code_is_stopped() {
    for source in [
        "while (true) {}",
        "try { while (true) {} } catch (e) { } finally { while (true) {} }",
        "/(a+)+b/.test('a'.repeat(200))",
        "(function again() { try { again() } finally { again() } })()",
        "sleep(1000 * 1000)",
        "return {get a() { while (true) {} }}",
        "Promise.resolve().then(function again() { return Promise.resolve().then(again) })",
    ] {
        let operation = OperationContext::detached();
        operation.kill(ErrorCode::Interrupted);
        let error = during(&operation, || run(source, &doc! {})).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Interrupted, "{source}");
    }
}

/// Functions are compiled while a request is read, when nobody has said yet which operation runs.
#[test]
fn u5_code_that_would_run_while_it_is_compiled_is_stopped() {
    let many = format!("{} if (true) {{}}", "x();\n".repeat(3000));
    for source in ["}); while (true) {}; (function() {", many.as_str()] {
        let operation = OperationContext::detached();
        operation.kill(ErrorCode::Interrupted);
        let script = Script::new(ScriptLimits::default()).made_by(&operation);
        let error = script.scope().and_then(|scope| scope.compile(source)).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Interrupted, "{}", &source[..20]);
    }
}

#[test]
fn u5_loops_in_native_code_are_refused() {
    for source in [
        "Array.prototype.indexOf.call({length: Math.pow(2, 53) - 1}, 1)",
        "new Array(4294967295).forEach(function() {})",
        "'a'.repeat(30000000).indexOf('a'.repeat(10000000) + 'b')",
        "[].includes.apply({length: 1e15}, [1])",
    ] {
        let error = run(source, &doc! {}).unwrap_err();
        assert_eq!(error.code(), ErrorCode::JSInterpreterFailure, "{source}");
        assert!(error.reason().contains("RangeError"), "{error}");
    }
}

#[test]
fn u5_memory_and_depth_are_bounded() {
    for source in [
        "var a = []; while (true) { a.push(new Array(1000).fill('x')) }",
        "var s = 'x'; while (true) { s += s }",
        "'x'.repeat(1 << 29).length",
        "(function again(n) { return again(n + 1) + 1 })(0)",
        "var a = []; for (var i = 0; i < 100000; i++) { a = [a] } JSON.stringify(a)",
        "var a = {}; a.toString = function() { return '' + a }; throw a",
        "new Uint8Array(1 << 30).length",
        "eval('('.repeat(100000))",
    ] {
        let error = run(source, &doc! {}).unwrap_err();
        assert_eq!(error.code(), ErrorCode::JSInterpreterFailure, "{source}: {error}");
    }
    let huge = run("'x'.repeat(17 * 1024 * 1024).split('a').concat(['y'])", &doc! {}).unwrap_err();
    assert_eq!(huge.code(), ErrorCode::BSONObjectTooLarge);
}

#[test]
fn u5_nothing_outside_can_be_reached() {
    for name in [
        "require",
        "process",
        "std",
        "os",
        "fetch",
        "load",
        "db",
        "Mongo",
        "runProgram",
        "cat",
        "ls",
        "removeFile",
        "Deno",
        "import.meta",
        "scriptArgs",
        "quit",
        "passwordPrompt",
        "WebAssembly",
        "Worker",
        "XMLHttpRequest",
    ] {
        let source =
            format!("(function() {{ try {{ return typeof ({name}) }} catch (e) {{ return 'undefined' }} }})()");
        let seen = run(&source, &doc! {}).or_else(|_| run("'undefined'", &doc! {})).unwrap();
        assert_eq!(seen.view(), Value::String("undefined".into()), "{name}");
    }
    let imported = run("import('std').then(function(m) { globalThis.found = m })", &doc! {});
    assert!(imported.is_ok() || imported.is_err_and(|error| error.code() == ErrorCode::JSInterpreterFailure));
}

#[test]
fn u5_tricks_with_prototypes_change_nothing_outside_their_scope() {
    let document = doc! { "a": 1, "__proto__": { "evil": true }, "when": { "x": 1 } };
    assert!(test("return this.evil === undefined && ({}).evil === undefined", &document));
    for source in [
        "Object.prototype.tojson = function() { throw 1 }; return {a: 1}",
        "Object.defineProperty(Object.prototype, 'a', {set() { throw new Error('set') }}); return {a: 1}",
        "Array.prototype.map = null; Date = null; Object.create = null; Symbol = null; return {a: 1}",
        "ObjectId.prototype = null; String = null; return {a: 1}",
    ] {
        let given = run(source, &document).unwrap();
        assert_eq!(given.view(), Value::Document(doc! { "a": 1.0 }.view()), "{source}");
    }
    for source in [
        "return Object.create(ObjectId.prototype)",
        "return Object.create(Date.prototype)",
        "var t = new Timestamp(1, 1); t.t = -5; return t",
        "return new Proxy({}, {ownKeys() { throw new Error('no') }})",
        "var n = NumberDecimal('x'); return n",
    ] {
        assert!(run(source, &document).is_err(), "{source}");
    }
}
