// Documents in and out through the Node driver.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { Binary, Decimal128, Double, Int32, Long, MinKey, MaxKey, ObjectId, Timestamp, UUID, BSONRegExp, Code } from 'mongodb';
import { emptyDatabase, suiteClient } from '../server.mjs';

describe('crud', () => {
  const client = suiteClient();
  let database;
  before(async () => {
    database = await emptyDatabase(client, 'node_crud');
  });

  test('insertOne makes an ObjectId and finds it again', async () => {
    const people = database.collection('one');
    const { acknowledged, insertedId } = await people.insertOne({ name: 'Ada' });
    assert.equal(acknowledged, true);
    assert.ok(insertedId instanceof ObjectId);
    assert.deepEqual(await people.findOne({ _id: insertedId }), { _id: insertedId, name: 'Ada' });
  });

  test('insertMany keeps the order and reports every id', async () => {
    const numbers = database.collection('many');
    const result = await numbers.insertMany([{ _id: 3 }, { _id: 1 }, { _id: 2 }]);
    assert.equal(result.insertedCount, 3);
    assert.deepEqual(result.insertedIds, { 0: 3, 1: 1, 2: 2 });
    assert.deepEqual(await numbers.find().toArray(), [{ _id: 3 }, { _id: 1 }, { _id: 2 }]);
  });

  test('every BSON type survives', async () => {
    const types = database.collection('types');
    const document = {
      _id: new UUID('00112233-4455-6677-8899-aabbccddeeff'),
      double: new Double(1.5), text: 'é\u0000ü', sub: { a: { b: [] } }, list: [1, [2], { c: 3 }],
      binary: new Binary(Buffer.from([0, 255, 7]), 0), yes: true, no: false, nothing: null,
      when: new Date('2020-02-29T12:34:56.789Z'), regex: new BSONRegExp('^a.b', 'im'), code: new Code('return 1'),
      scoped: new Code('return x', { x: 1 }), int: new Int32(-7), stamp: new Timestamp({ t: 7, i: 9 }),
      long: Long.fromString('9007199254740993'), decimal: Decimal128.fromString('1.10'), low: new MinKey(), high: new MaxKey(),
    };
    await types.insertOne(document);
    const found = await types.findOne({}, { promoteValues: false, bsonRegExp: true });
    assert.deepEqual(Object.keys(found), Object.keys(document));
    assert.equal(found.long.toString(), '9007199254740993');
    assert.equal(found.decimal.toString(), '1.10');
    assert.equal(found.double.valueOf(), 1.5);
    assert.equal(found._id.toHexString(), document._id.toHexString());
    assert.equal(found.stamp.toString(), document.stamp.toString());
    assert.equal(found.regex.options, 'im');
    assert.deepEqual(found.scoped.scope, { x: new Int32(1) });
    assert.equal(found.when.getTime(), document.when.getTime());
    assert.ok(found.low instanceof MinKey && found.high instanceof MaxKey);
  });

  test('comparison, logical, element and array operators', async () => {
    const items = database.collection('operators');
    await items.insertMany([
      { _id: 1, a: 1, tags: ['x', 'y'] }, { _id: 2, a: 2, tags: ['y'] }, { _id: 3, a: 'two', tags: [] },
      { _id: 4, tags: ['x', 'y', 'z'], list: [{ k: 1, v: 2 }, { k: 2, v: 1 }] },
    ]);
    const ids = async (filter) => (await items.find(filter).sort({ _id: 1 }).toArray()).map((item) => item._id);
    assert.deepEqual(await ids({ a: { $gte: 1, $lt: 2 } }), [1]);
    assert.deepEqual(await ids({ a: { $in: [1, /^t/] } }), [1, 3]);
    assert.deepEqual(await ids({ $or: [{ a: 2 }, { a: { $exists: false } }] }), [2, 4]);
    assert.deepEqual(await ids({ a: { $not: { $type: 'number' } } }), [3, 4]);
    assert.deepEqual(await ids({ tags: { $all: ['x', 'y'] } }), [1, 4]);
    assert.deepEqual(await ids({ tags: { $size: 0 } }), [3]);
    assert.deepEqual(await ids({ list: { $elemMatch: { k: 1, v: { $gt: 1 } } } }), [4]);
    assert.deepEqual(await ids({ 'list.k': 2 }), [4]);
    assert.deepEqual(await ids({ 'tags.1': 'y' }), [1, 4]);
    assert.deepEqual(await ids({ $nor: [{ a: 1 }, { a: 2 }] }), [3, 4]);
  });

  test('sort, skip, limit and projection', async () => {
    const rows = database.collection('shape');
    await rows.insertMany(Array.from({ length: 10 }, (_, index) => ({ _id: index, half: Math.floor(index / 2), list: [index, index + 1] })));
    const found = await rows.find({}, { projection: { half: 1 } }).sort({ half: -1, _id: 1 }).skip(2).limit(3).toArray();
    assert.deepEqual(found, [{ _id: 6, half: 3 }, { _id: 7, half: 3 }, { _id: 4, half: 2 }]);
    assert.deepEqual(await rows.findOne({ _id: 3 }, { projection: { _id: 0, list: { $slice: -1 } } }), { half: 1, list: [4] });
    assert.deepEqual(await rows.findOne({ _id: 3 }, { projection: { twice: { $multiply: ['$half', 2] } } }), { _id: 3, twice: 2 });
    await assert.rejects(rows.findOne({}, { projection: { half: 1, list: 0 } }), { code: 31254 });
  });

  test('updates count what they match and what they change', async () => {
    const items = database.collection('updates');
    await items.insertMany([{ _id: 1, n: 1 }, { _id: 2, n: 1 }]);
    const one = await items.updateOne({ n: 1 }, { $inc: { n: 4 } });
    assert.deepEqual([one.matchedCount, one.modifiedCount, one.upsertedId], [1, 1, null]);
    const same = await items.updateOne({ _id: 2 }, { $set: { n: 1 } });
    assert.deepEqual([same.matchedCount, same.modifiedCount], [1, 0]);
    const all = await items.updateMany({}, { $push: { log: { $each: [3, 1, 2], $sort: 1, $slice: 2 } }, $currentDate: { at: true } });
    assert.equal(all.modifiedCount, 2);
    assert.deepEqual((await items.findOne({ _id: 2 })).log, [1, 2]);
    const piped = await items.updateMany({}, [{ $set: { double: { $multiply: ['$n', 2] } } }, { $unset: 'at' }]);
    assert.equal(piped.modifiedCount, 2);
    assert.deepEqual(await items.findOne({ _id: 1 }), { _id: 1, n: 5, log: [1, 2], double: 10 });
  });

  test('an upsert tells its id, and array filters reach inside', async () => {
    const items = database.collection('upserts');
    const made = await items.updateOne({ key: 'k' }, { $set: { list: [{ a: 1 }, { a: 5 }] }, $setOnInsert: { new: true } }, { upsert: true });
    assert.deepEqual([made.matchedCount, made.upsertedCount], [0, 1]);
    assert.ok(made.upsertedId instanceof ObjectId);
    await items.updateOne({ key: 'k' }, { $set: { 'list.$[big].big': true } }, { arrayFilters: [{ 'big.a': { $gt: 2 } }] });
    await items.updateOne({ 'list.a': 1 }, { $inc: { 'list.$.a': 10 } });
    const { list, new: isNew } = await items.findOne({ _id: made.upsertedId });
    assert.deepEqual(list, [{ a: 11 }, { a: 5, big: true }]);
    assert.equal(isNew, true);
  });

  test('replaceOne, deleteOne, deleteMany', async () => {
    const items = database.collection('replaced');
    await items.insertMany([{ _id: 1, a: 1 }, { _id: 2, a: 1 }, { _id: 3, a: 1 }]);
    await items.replaceOne({ _id: 1 }, { b: 2 });
    assert.deepEqual(await items.findOne({ _id: 1 }), { _id: 1, b: 2 });
    assert.equal((await items.deleteOne({ a: 1 })).deletedCount, 1);
    assert.equal((await items.deleteMany({})).deletedCount, 2);
    assert.equal(await items.countDocuments(), 0);
  });

  test('findOneAnd... give the document before or after', async () => {
    const jobs = database.collection('jobs');
    await jobs.insertMany([{ _id: 1, at: 2 }, { _id: 2, at: 1 }]);
    const first = await jobs.findOneAndUpdate({}, { $set: { taken: true } }, { sort: { at: 1 } });
    assert.deepEqual(first, { _id: 2, at: 1 });
    const then = await jobs.findOneAndReplace({ _id: 2 }, { done: 1 }, { returnDocument: 'after' });
    assert.deepEqual(then, { _id: 2, done: 1 });
    const gone = await jobs.findOneAndDelete({ _id: 1 }, { projection: { at: 1, _id: 0 }, includeResultMetadata: true });
    assert.deepEqual(gone.value, { at: 2 });
    assert.deepEqual(gone.lastErrorObject, { n: 1 });
    const made = await jobs.findOneAndUpdate({ _id: 9 }, { $inc: { n: 1 } }, { upsert: true, returnDocument: 'after', includeResultMetadata: true });
    assert.deepEqual(made.value, { _id: 9, n: 1 });
    assert.deepEqual(made.lastErrorObject, { n: 1, updatedExisting: false, upserted: 9 });
  });

  test('count and distinct', async () => {
    const items = database.collection('counts');
    await items.insertMany([{ a: [1, 2] }, { a: 2 }, { a: 'x' }, {}]);
    assert.equal(await items.countDocuments({ a: 2 }), 2);
    assert.equal(await items.countDocuments({}, { skip: 1, limit: 2 }), 2);
    assert.equal(await items.estimatedDocumentCount(), 4);
    assert.deepEqual(await items.distinct('a'), [1, 2, 'x']);
    assert.deepEqual(await items.distinct('a', { a: { $type: 'string' } }), ['x']);
  });

  test('errors carry code, name and key', async () => {
    const items = database.collection('errors');
    await items.insertOne({ _id: 1 });
    await assert.rejects(items.insertOne({ _id: 1 }), (error) => {
      assert.equal(error.code, 11000);
      assert.deepEqual(error.keyPattern, { _id: 1 });
      assert.deepEqual(error.keyValue, { _id: 1 });
      assert.match(error.message, /E11000 duplicate key error collection: node_crud\.errors index: _id_ dup key: \{ _id: 1 \}/);
      return true;
    });
    await assert.rejects(items.find({ a: { $nope: 1 } }).toArray(), { code: 2, codeName: 'BadValue', message: 'unknown operator: $nope' });
    await assert.rejects(items.updateOne({}, { $nope: { a: 1 } }), { code: 9 });
    await assert.rejects(database.command({ noSuch: 1 }), { code: 59, codeName: 'CommandNotFound' });
    await assert.rejects(database.command({ ping: 1, noSuchField: 1 }), { code: 40415 });
  });
});
