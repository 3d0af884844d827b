// Bulk writes: ordered and unordered, what they count and how they fail.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { emptyDatabase, record, suiteClient } from '../server.mjs';

describe('bulk', () => {
  const client = suiteClient({ monitorCommands: true });
  let database;
  before(async () => {
    database = await emptyDatabase(client, 'node_bulk');
  });

  test('all kinds in one', async () => {
    const items = database.collection('kinds');
    const result = await items.bulkWrite([
      { insertOne: { document: { _id: 1, a: 1 } } },
      { insertOne: { document: { _id: 2, a: 1 } } },
      { updateOne: { filter: { _id: 1 }, update: { $set: { a: 2 } } } },
      { updateMany: { filter: {}, update: { $inc: { b: 1 } } } },
      { replaceOne: { filter: { _id: 3 }, replacement: { a: 3 }, upsert: true } },
      { deleteOne: { filter: { a: 1 } } },
      { deleteMany: { filter: { a: 99 } } },
    ]);
    const { insertedCount, matchedCount, modifiedCount, upsertedCount, upsertedIds, deletedCount } = result;
    assert.deepEqual({ insertedCount, matchedCount, modifiedCount, upsertedCount, deletedCount },
      { insertedCount: 2, matchedCount: 3, modifiedCount: 3, upsertedCount: 1, deletedCount: 1 });
    assert.deepEqual(upsertedIds, { 4: 3 });
    assert.deepEqual(await items.find().sort({ _id: 1 }).toArray(), [{ _id: 1, a: 2, b: 1 }, { _id: 3, a: 3 }]);
  });

  test('ordered stops at the first failure', async () => {
    const items = database.collection('ordered');
    await assert.rejects(items.insertMany([{ _id: 1 }, { _id: 1 }, { _id: 2 }]), (error) => {
      assert.equal(error.code, 11000);
      assert.equal(error.insertedCount, 1);
      assert.deepEqual(error.writeErrors.map((one) => one.index), [1]);
      return true;
    });
    assert.equal(await items.countDocuments(), 1);
  });

  test('unordered does what it can and lists every failure', async () => {
    const items = database.collection('unordered');
    await assert.rejects(items.insertMany([{ _id: 1 }, { _id: 1 }, { _id: 2 }, { _id: 2 }, { _id: 3 }], { ordered: false }), (error) => {
      assert.equal(error.insertedCount, 3);
      assert.deepEqual(error.writeErrors.map((one) => [one.index, one.code]), [[1, 11000], [3, 11000]]);
      return true;
    });
    assert.equal(await items.countDocuments(), 3);
  });

  test('more than a batch of 100,000 is split by the driver', async () => {
    const items = database.collection('large');
    const commands = record(client);
    const result = await items.insertMany(Array.from({ length: 100_001 }, (_, index) => ({ _id: index })));
    assert.equal(result.insertedCount, 100_001);
    assert.equal(commands.filter((event) => event.commandName === 'insert').length, 2);
    assert.equal(await items.estimatedDocumentCount(), 100_001);
  });

  test('documents up to 16 MB, not beyond', async () => {
    const items = database.collection('sizes');
    await items.insertOne({ _id: 1, text: 'x'.repeat(16 * 1024 * 1024 - 64) });
    assert.equal((await items.findOne({ _id: 1 })).text.length, 16 * 1024 * 1024 - 64);
    await assert.rejects(items.insertOne({ _id: 2, text: 'x'.repeat(16 * 1024 * 1024) }));
    await assert.rejects(items.updateOne({ _id: 1 }, { $set: { more: 'x'.repeat(1000) } }), { code: 17419 });
    assert.equal(await items.countDocuments(), 1);
  });

  test('w: 0 sends and does not wait', async () => {
    const items = database.collection('unacknowledged');
    const result = await items.insertOne({ _id: 1 }, { writeConcern: { w: 0 } });
    assert.equal(result.acknowledged, false);
    // The next acknowledged command on any connection may overtake it, so ask until it is there.
    while ((await items.countDocuments()) === 0) await new Promise(setImmediate);
  });

  test('a write concern that one member cannot meet is an error after the write', async () => {
    const items = database.collection('concern');
    await assert.rejects(items.insertOne({ _id: 1 }, { writeConcern: { w: 3, wtimeoutMS: 50 } }), (error) => {
      assert.ok([64, 100].includes(error.code ?? error.result?.writeConcernError?.code), String(error.code));
      return true;
    });
    assert.equal(await items.countDocuments(), 1);
  });
});
