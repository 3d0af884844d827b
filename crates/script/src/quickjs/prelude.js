// What JavaScript of clients finds beside the language: the types of BSON as the shell has them, and its helpers.
// Runs once in each new scope, before any code of a client. Gives back the functions that the host uses; they hold on to the built-in
// functions that they need, so that nothing a client overwrites changes what the host does.
(function (sumOfText, sleep, sizeOf) {
    'use strict';
    const global = globalThis;
    // As many calls are told of an error.
    Error.stackTraceLimit = 64;
    const KIND = Symbol('bson');
    const VALUE = Symbol('value');
    const INTS = Symbol('ints');
    const {defineProperty, create, keys, freeze, getPrototypeOf} = Object;
    const isArray = Array.isArray;
    const BigIntOf = BigInt, asIntN = BigInt.asIntN;
    const DateOf = Date, RegExpOf = RegExp, ErrorOf = Error, StringOf = String, NumberOf = Number;
    const dateTime = DateOf.prototype.getTime;
    const stringify = JSON.stringify;
    const apply = Reflect.apply;

    // The host knows the kinds by these numbers.
    const K = {
        objectId: 1, long: 2, int: 3, decimal: 4, timestamp: 5, binary: 6, minKey: 7, maxKey: 8, dbPointer: 9, code: 10,
        date: 11, regex: 12, boxed: 13, failure: 14
    };

    function hidden(object, name, value) {
        defineProperty(object, name, {value, writable: true, configurable: true, enumerable: false});
        return object;
    }
    function mark(constructor, kind) {
        defineProperty(constructor.prototype, KIND, {value: kind});
    }
    function methods(constructor, list) {
        for (const name of Reflect.ownKeys(list)) hidden(constructor.prototype, name, list[name]);
    }
    function publish(name, value) {
        hidden(global, name, value);
    }
    function refuse(message) {
        throw new ErrorOf(message);
    }
    function self(object, constructor) {
        return object instanceof constructor ? object : create(constructor.prototype);
    }

    // Errors of the server that pass through code of a client.
    function MongoError(code, message) {
        this.code = code;
        this.message = message;
        hidden(this, 'stack', '');
    }
    MongoError.prototype = create(ErrorOf.prototype);
    methods(MongoError, {name: 'Error', toString() { return 'Error: ' + this.message; }});
    mark(MongoError, K.failure);

    const HEX = /^[0-9a-fA-F]{24}$/;
    let idCount = 0;
    function ObjectId(text) {
        const made = self(this, ObjectId);
        if (text === undefined) {
            const seconds = Math.floor(DateOf.now() / 1000).toString(16).padStart(8, '0');
            const chance = Math.floor(Math.random() * 0x10000000000).toString(16).padStart(10, '0');
            idCount = (idCount + 1) % 0x1000000;
            text = seconds + chance + idCount.toString(16).padStart(6, '0');
        }
        if (text instanceof ObjectId) text = text.str;
        if (typeof text !== 'string' || !HEX.test(text)) refuse('invalid object id: length');
        hidden(made, VALUE, text.toLowerCase());
        return made;
    }
    mark(ObjectId, K.objectId);
    methods(ObjectId, {
        toString() { return 'ObjectId("' + this[VALUE] + '")'; },
        tojson() { return this.toString(); },
        toJSON() { return {$oid: this[VALUE]}; },
        valueOf() { return this[VALUE]; },
        toHexString() { return this[VALUE]; },
        equals(other) { return other instanceof ObjectId && other[VALUE] === this[VALUE]; },
        getTimestamp() { return new DateOf(parseInt(this[VALUE].slice(0, 8), 16) * 1000); }
    });
    defineProperty(ObjectId.prototype, 'str', {get() { return this[VALUE]; }, set() {}});
    hidden(ObjectId, 'isValid', (text) => typeof text === 'string' && HEX.test(text));

    const SAFE = 9007199254740992n;
    function wholeNumber(given, second, third) {
        if (given === undefined) return 0n;
        if (typeof given === 'bigint') return asIntN(64, given);
        if (given instanceof NumberLong) return given[VALUE];
        if (second !== undefined) {
            if (third !== undefined) return asIntN(64, (BigIntOf(second) << 32n) | BigIntOf(third));
            refuse('NumberLong needs 0, 1 or 3 arguments');
        }
        if (typeof given === 'string') {
            if (!/^\s*[-+]?[0-9]+\s*$/.test(given)) refuse('could not convert "' + given + '" to NumberLong');
            const whole = BigIntOf(given.trim().replace(/^\+/, ''));
            if (asIntN(64, whole) !== whole) refuse('could not convert "' + given + '" to NumberLong');
            return whole;
        }
        const number = NumberOf(given);
        if (number !== number) return 0n;
        if (number >= 9223372036854775807) return 9223372036854775807n;
        if (number <= -9223372036854775808) return -9223372036854775808n;
        return BigIntOf(Math.trunc(number));
    }
    function NumberLong(given, second, third) {
        const made = self(this, NumberLong);
        return hidden(made, VALUE, wholeNumber(given, second, third));
    }
    mark(NumberLong, K.long);
    const longMethods = {
        toNumber() { return NumberOf(this[VALUE]); },
        valueOf() { return NumberOf(this[VALUE]); },
        toString() {
            const value = this[VALUE];
            return value >= -SAFE && value <= SAFE && value >= -2147483648n && value <= 2147483647n
                ? 'NumberLong(' + value + ')' : 'NumberLong("' + value + '")';
        },
        tojson() { return this.toString(); },
        toJSON() { return {$numberLong: StringOf(this[VALUE])}; },
        compare(other) {
            const right = wholeNumber(other), left = this[VALUE];
            return left < right ? -1 : left > right ? 1 : 0;
        }
    };
    methods(NumberLong, longMethods);
    defineProperty(NumberLong.prototype, 'floatApprox', {get() { return NumberOf(this[VALUE]); }});
    defineProperty(NumberLong.prototype, 'top', {get() { return NumberOf(this[VALUE] >> 32n); }});
    defineProperty(NumberLong.prototype, 'bottom', {get() { return NumberOf(this[VALUE] & 0xFFFFFFFFn); }});

    function NumberInt(given) {
        const made = self(this, NumberInt);
        return hidden(made, VALUE, (given === undefined ? 0 : NumberOf(given)) | 0);
    }
    mark(NumberInt, K.int);
    methods(NumberInt, {
        toNumber() { return this[VALUE]; },
        valueOf() { return this[VALUE]; },
        toString() { return 'NumberInt(' + this[VALUE] + ')'; },
        tojson() { return this.toString(); },
        toJSON() { return this[VALUE]; }
    });

    function NumberDecimal(given) {
        const made = self(this, NumberDecimal);
        let text = given === undefined ? '0' : given instanceof NumberDecimal ? given[VALUE]
            : given instanceof NumberLong ? StringOf(given[VALUE]) : StringOf(given.valueOf());
        return hidden(made, VALUE, text);
    }
    mark(NumberDecimal, K.decimal);
    methods(NumberDecimal, {
        toString() { return 'NumberDecimal("' + this[VALUE] + '")'; },
        tojson() { return this.toString(); },
        toJSON() { return {$numberDecimal: this[VALUE]}; }
    });

    function Timestamp(seconds, increment) {
        const made = self(this, Timestamp);
        const part = (given, name) => {
            const number = given === undefined ? 0 : NumberOf(given);
            if (!(number >= 0 && number <= 4294967295)) {
                refuse(name + ' must be non-negative and not greater than 4294967295, got ' + number);
            }
            return Math.trunc(number);
        };
        made.t = part(seconds, 'Timestamp time');
        made.i = part(increment, 'Timestamp increment');
        return made;
    }
    mark(Timestamp, K.timestamp);
    methods(Timestamp, {
        toString() { return 'Timestamp(' + this.t + ', ' + this.i + ')'; },
        tojson() { return this.toString(); },
        getTime() { return this.t; },
        getInc() { return this.i; },
        toJSON() { return {$timestamp: {t: this.t, i: this.i}}; }
    });

    const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
    function hexToBase64(text) {
        if (text.length % 2 !== 0 || !/^[0-9a-fA-F]*$/.test(text)) refuse('HexData contains an invalid character');
        let out = '';
        for (let at = 0; at < text.length; at += 6) {
            const part = text.slice(at, at + 6);
            const bits = parseInt(part.padEnd(6, '0'), 16);
            const count = part.length / 2;
            out += LETTERS[bits >> 18] + LETTERS[bits >> 12 & 63] +
                (count > 1 ? LETTERS[bits >> 6 & 63] : '=') + (count > 2 ? LETTERS[bits & 63] : '=');
        }
        return out;
    }
    function base64ToHex(text) {
        let out = '';
        for (let at = 0; at < text.length; at += 4) {
            let bits = 0, count = 0;
            for (let place = 0; place < 4; place++) {
                const value = LETTERS.indexOf(text[at + place]);
                bits = bits << 6 | (value < 0 ? 0 : value);
                if (value >= 0) count++;
            }
            out += bits.toString(16).padStart(6, '0').slice(0, (count - 1) * 2);
        }
        return out;
    }
    function BinData(type, text) {
        const made = self(this, BinData);
        if (arguments.length === 0) refuse('BinData takes 2 arguments -- BinData(subtype,data)');
        if (!(NumberOf(type) >= 0 && NumberOf(type) <= 255)) refuse('BinData subtype must be between 0 and 255');
        if (typeof text !== 'string') refuse('BinData data must be a String');
        if (!/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text)) refuse('invalid base64');
        hidden(made, 'type', NumberOf(type));
        hidden(made, VALUE, text);
        return made;
    }
    mark(BinData, K.binary);
    function dashed(hex) {
        return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
    }
    methods(BinData, {
        base64() { return this[VALUE]; },
        hex() { return base64ToHex(this[VALUE]); },
        length() { return this[VALUE].length / 4 * 3 - (this[VALUE].match(/=*$/)[0].length); },
        toString() {
            if (this.type === 4 && this[VALUE].length === 24) return 'UUID("' + dashed(this.hex()) + '")';
            return 'BinData(' + this.type + ',"' + this[VALUE] + '")';
        },
        tojson() { return this.toString(); },
        toJSON() { return {$binary: this[VALUE], $type: this.type.toString(16).padStart(2, '0')}; }
    });
    defineProperty(BinData.prototype, 'len', {get() { return this.length(); }});
    // Functions that can be called with `new` as well.
    function HexData(type, text) { return new BinData(type, hexToBase64(StringOf(text))); }
    function UUID(text) {
        if (text === undefined) {
            text = '';
            for (let place = 0; place < 32; place++) text += Math.floor(Math.random() * 16).toString(16);
            text = text.slice(0, 12) + '4' + text.slice(13, 16) + '8' + text.slice(17);
        }
        const hex = StringOf(text).replace(/-/g, '');
        if (!/^[0-9a-fA-F]{32}$/.test(hex)) refuse('UUID string must have 32 characters');
        return HexData(4, hex);
    }
    function MD5(text) { return HexData(5, StringOf(text)); }

    function MinKey() { return self(this, MinKey); }
    mark(MinKey, K.minKey);
    methods(MinKey, {toString() { return '{ "$minKey" : 1 }'; }, tojson() { return this.toString(); }, toJSON() { return {$minKey: 1}; }});
    function MaxKey() { return self(this, MaxKey); }
    mark(MaxKey, K.maxKey);
    methods(MaxKey, {toString() { return '{ "$maxKey" : 1 }'; }, tojson() { return this.toString(); }, toJSON() { return {$maxKey: 1}; }});

    function DBPointer(namespace, id) {
        const made = self(this, DBPointer);
        made.ns = namespace;
        made.id = id;
        return made;
    }
    mark(DBPointer, K.dbPointer);
    methods(DBPointer, {
        toString() { return 'DBPointer("' + this.ns + '", ' + this.id + ')'; },
        tojson() { return this.toString(); }
    });
    function DBRef(collection, id, database) {
        const made = self(this, DBRef);
        made.$ref = collection;
        made.$id = id;
        if (database !== undefined) made.$db = database;
        return made;
    }
    methods(DBRef, {
        getRef() { return this.$ref; },
        getId() { return this.$id; },
        getDb() { return this.$db; },
        getCollection() { return this.$ref; },
        toString() { return 'DBRef(' + tojson(this.$ref) + ', ' + tojson(this.$id) + (this.$db === undefined ? '' : ', ' + tojson(this.$db)) + ')'; },
        tojson() { return this.toString(); }
    });
    function Code(code, scope) {
        const made = self(this, Code);
        made.code = code;
        if (scope !== undefined) made.scope = scope;
        return made;
    }
    mark(Code, K.code);
    methods(Code, {
        toString() { return 'Code(' + stringify(this.code) + (this.scope === undefined ? '' : ',' + tojson(this.scope)) + ')'; },
        tojson() { return this.toString(); }
    });

    mark(DateOf, K.date);
    mark(RegExpOf, K.regex);
    for (const boxed of [Number, String, Boolean]) mark(boxed, K.boxed);

    function ISODate(text) {
        if (text === undefined) return new DateOf();
        const parts = /^(\d{4})-?(\d{2})-?(\d{2})(?:[T ](\d{2})(?::?(\d{2})(?::?(\d{2})(\.\d+)?)?)?(Z|[+-]\d{2}(?::?\d{2})?)?)?$/.exec(text);
        if (parts === null) refuse('invalid ISO date: ' + text);
        const number = (place) => parts[place] === undefined ? 0 : NumberOf(parts[place]);
        let time = DateOf.UTC(number(1), number(2) - 1, number(3), number(4), number(5), number(6), Math.round(number(7) * 1000));
        const zone = parts[8];
        if (zone !== undefined && zone !== 'Z') {
            const minutes = NumberOf(zone.slice(1, 3)) * 60 + NumberOf(zone.slice(3).replace(':', '') || 0);
            time -= (zone[0] === '-' ? -minutes : minutes) * 60000;
        }
        return new DateOf(time);
    }
    hidden(DateOf.prototype, 'tojson', function tojson() {
        const text = this.toISOString();
        return 'ISODate("' + (text.endsWith('.000Z') ? text.slice(0, -5) + 'Z' : text) + '")';
    });

    function tojson(value, indent, onOneLine) {
        if (value === null) return 'null';
        switch (typeof value) {
            case 'undefined': return 'undefined';
            case 'string': return stringify(value);
            case 'number': case 'boolean': return StringOf(value);
            case 'function': return value.toString();
            case 'object': return tojsonObject(value, indent, onOneLine);
        }
        throw new ErrorOf("tojson can't handle type " + typeof value);
    }
    function tojsonObject(value, indent, onOneLine) {
        if (typeof value.tojson === 'function') return value.tojson(indent, onOneLine);
        if (value instanceof RegExpOf) return value.toString();
        if (value instanceof ErrorOf) return value.toString();
        indent = indent || '';
        const line = onOneLine ? ' ' : '\n', inner = onOneLine ? '' : indent + '\t', outer = onOneLine ? '' : indent;
        if (isArray(value)) {
            if (value.length === 0) return '[ ]';
            return '[' + line + value.map((item) => inner + tojson(item, inner, onOneLine)).join(',' + line) + line + outer + ']';
        }
        const names = keys(value).filter((name) => typeof value[name] !== 'function' || value.hasOwnProperty(name));
        if (names.length === 0) return '{' + line + line + outer + '}';
        return '{' + line + names.map((name) => inner + stringify(name) + ' : ' + tojson(value[name], inner, onOneLine)).join(',' + line) + line + outer + '}';
    }
    const tojsononeline = (value) => tojson(value, ' ', true);

    function doassert(message) {
        throw typeof message === 'object' ? message : new ErrorOf(message);
    }
    function assert(condition, message) {
        if (!condition) doassert('assert failed' + (message ? ' : ' + message : ''));
    }
    assert.eq = (left, right, message) => {
        if (left == right || tojson(left) === tojson(right)) return;
        doassert('[' + tojson(left) + '] != [' + tojson(right) + '] are not equal' + (message ? ' : ' + message : ''));
    };
    assert.neq = (left, right, message) => { if (left == right) doassert('are equal' + (message ? ' : ' + message : '')); };

    const orders = {
        lt: ['<', (left, right) => left < right], lte: ['<=', (left, right) => left <= right],
        gt: ['>', (left, right) => left > right], gte: ['>=', (left, right) => left >= right]
    };
    for (const name of keys(orders)) {
        const [sign, holds] = orders[name];
        assert[name] = (left, right, message) => {
            if (!holds(left, right)) doassert(tojson(left) + ' is not ' + sign + ' ' + tojson(right) + (message ? ' : ' + message : ''));
        };
    }

    hidden(Array, 'contains', (array, value) => array.some((item) => item == value));
    hidden(Array, 'unique', (array) => array.filter((item, place) => array.findIndex((other) => other == item) === place));
    hidden(Array, 'sum', (array) => array.length === 0 ? null : array.reduce((sum, item) => sum + item));
    hidden(Array, 'avg', (array) => array.length === 0 ? null : Array.sum(array) / array.length);
    hidden(Array, 'stdDev', (array) => {
        const mean = Array.avg(array);
        return Math.sqrt(array.reduce((sum, item) => sum + (item - mean) * (item - mean), 0) / array.length);
    });
    hidden(Array.prototype, 'tojson', function (indent, onOneLine) {
        const copy = [...this];
        return tojsonObject(defineProperty(copy, 'tojson', {value: undefined}), indent, onOneLine);
    });
    hidden(Object, 'extend', (target, source) => { for (const name in source) target[name] = source[name]; return target; });
    hidden(Object, 'keySet', (object) => { const names = []; for (const name in object) names.push(name); return names; });
    hidden(Object, 'bsonsize', (object) => object === null || typeof object !== 'object' ? 0 : sizeOf(object));
    hidden(Object, 'merge', (left, right) => ({...left, ...right}));
    hidden(String.prototype, 'ltrim', String.prototype.trimStart);
    hidden(String.prototype, 'rtrim', String.prototype.trimEnd);
    hidden(NumberOf.prototype, 'toPercentStr', function () { return (this * 100).toFixed(2) + '%'; });
    hidden(NumberOf.prototype, 'zeroPad', function (width) { return StringOf(this).padStart(width, '0'); });

    // The shell's map, whose keys may be values of BSON.
    class BSONMap {
        constructor() { hidden(this, '_data', {}); }
        put(key, value) { const text = tojson(key), old = this._data[text]; this._data[text] = {key, value}; return old && old.value; }
        get(key) { const found = this._data[tojson(key)]; return found === undefined ? null : found.value; }
        values() { return keys(this._data).map((text) => this._data[text].value); }
    }

    // Loops in native code that nobody could stop: over things that only claim to be so long, and searches whose cost is a product.
    const LENGTH_MAX = 1 << 26, PRODUCT_MAX = 2 ** 34;
    function guard(prototype, name, isHarmless) {
        const original = prototype[name];
        if (typeof original !== 'function') return;
        const guarded = {[name](...list) {
            if (!isHarmless(this, list)) throw new RangeError('too long for ' + name);
            return apply(original, this, list);
        }}[name];
        defineProperty(guarded, 'length', {value: original.length});
        defineProperty(guarded, 'toString', {value: () => 'function ' + name + '() {\n    [native code]\n}'});
        hidden(prototype, name, guarded);
    }
    const isShort = (object) => object === null || object === undefined || !(object.length > LENGTH_MAX);
    for (const name of Reflect.ownKeys(Array.prototype)) {
        if (typeof name !== 'string' || name === 'constructor' || name === 'tojson' || name === 'push' || name === 'pop') continue;
        guard(Array.prototype, name, isShort);
    }
    const isCheap = (text, list) => {
        const length = text === null || text === undefined ? 0 : text.length, sought = list[0];
        return !(typeof sought === 'string' && length * sought.length > PRODUCT_MAX);
    };
    for (const name of ['indexOf', 'lastIndexOf', 'includes', 'split', 'replace', 'replaceAll']) guard(String.prototype, name, isCheap);

    const published = {
        ObjectId, ObjectID: ObjectId, NumberLong, NumberInt, NumberDecimal, Timestamp, BinData, HexData, UUID, MD5, MinKey, MaxKey,
        DBPointer, DBRef, Dbref: DBRef, Code, ISODate, tojson, tojsonObject, tojsononeline, doassert, assert, BSONMap,
        isNumber: (value) => typeof value === 'number',
        isObject: (value) => typeof value === 'object' && value !== null,
        isString: (value) => typeof value === 'string',
        hex_md5: (text) => sumOfText(StringOf(text)),
        sleep: (milliseconds) => sleep(NumberOf(milliseconds)),
        print() {}, printjson() {}, printjsononeline() {}, gc() {},
        version: () => '7.0.40'
    };
    for (const name of keys(published)) publish(name, published[name]);

    // Frames as MongoDB's interpreter writes them: name@file:line:column.
    function frames(stack) {
        return stack.split('\n').filter((line) => line.length > 0).map((line) => {
            const parts = /^\s*at (.*?)\s*(?:\((?:eval_script)?:?([^)]*)\))?$/.exec(line);
            if (parts === null) return line;
            return (parts[1] === '<anonymous>' || parts[1] === '<eval>' ? '' : parts[1]) + '@:' + (parts[2] || '');
        }).join('\n');
    }

    const minKey = freeze(new MinKey()), maxKey = freeze(new MaxKey());
    const text = (value) => { const given = StringOf(value); return given.isWellFormed() ? given : given.toWellFormed(); };
    return {
        kind: KIND, ints: INTS, reference: DBRef.prototype, text,
        fail: (code, message) => new MongoError(code, message),
        make(kind, first, second) {
            switch (kind) {
                case K.objectId: return hidden(create(ObjectId.prototype), VALUE, first);
                case K.long: return hidden(create(NumberLong.prototype), VALUE, first);
                case K.decimal: return hidden(create(NumberDecimal.prototype), VALUE, first);
                case K.timestamp: return new Timestamp(first, second);
                case K.binary: return new BinData(first, second);
                case K.minKey: return minKey;
                case K.maxKey: return maxKey;
                case K.dbPointer: return new DBPointer(first, hidden(create(ObjectId.prototype), VALUE, second));
                case K.code: return new Code(first, second);
                case K.date: return new DateOf(first);
                case K.regex: return new RegExpOf(first, second);
            }
        },
        read(kind, object) {
            switch (kind) {
                case K.objectId: case K.long: case K.int: return object[VALUE];
                case K.decimal: return object[VALUE];
                case K.timestamp: return [NumberOf(object.t), NumberOf(object.i)];
                case K.binary: return [object.type, object[VALUE]];
                case K.dbPointer: return [StringOf(object.ns), object.id[VALUE]];
                case K.code: return [object.code, object.scope];
                case K.date: return apply(dateTime, object, []);
                case K.regex: return [object.source, object.flags];
                case K.boxed: return object.valueOf();
            }
        },
        describe(thrown) {
            const isObject = typeof thrown === 'object' && thrown !== null || typeof thrown === 'function';
            if (!isObject) return [0, text(thrown), ''];
            let said, stack = '';
            try { said = text(thrown); } catch (_) { said = 'an error that cannot be told'; }
            // As MongoDB's interpreter tells it, which clients look for.
            if (said === 'RangeError: Maximum call stack size exceeded') said = 'InternalError: too much recursion';
            if (!(thrown instanceof ErrorOf)) said = 'uncaught exception: ' + said;
            try { stack = frames(text(thrown.stack === undefined ? '' : thrown.stack)); } catch (_) {}
            const code = thrown[KIND] === K.failure ? thrown.code : 139;
            return [code, code === 139 ? said : text(thrown.message), stack];
        }
    };
})
