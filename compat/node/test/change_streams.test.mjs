// Change streams as the driver's users have them: watch on collections, databases and the client.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { emptyDatabase, suiteClient } from '../server.mjs';

describe('change streams', () => {
  const client = suiteClient();
  let database;
  before(async () => {
    database = await emptyDatabase(client, 'node_change_streams');
  });

  /// Opens a stream before the test goes on, and closes it behind the test.
  async function watch(t, target, pipeline = [], options = {}) {
    const stream = target.watch(pipeline, { maxAwaitTimeMS: 200, ...options });
    t.after(() => stream.close());
    assert.equal(await stream.tryNext(), null);
    return stream;
  }

  test('a collection tells what happens to it', async (t) => {
    const items = database.collection('items');
    const stream = await watch(t, items);
    await items.insertOne({ _id: 1, a: 1 });
    await items.updateOne({ _id: 1 }, { $set: { a: 2 }, $push: { list: 1 } });
    await items.replaceOne({ _id: 1 }, { b: 1 });
    await items.deleteOne({ _id: 1 });
    const events = [];
    while (events.length < 4) events.push(await stream.next());
    assert.deepEqual(events.map((event) => event.operationType), ['insert', 'update', 'replace', 'delete']);
    assert.deepEqual(events[1].updateDescription.updatedFields, { a: 2, list: [1] });
    const again = items.watch([], { resumeAfter: events[1]._id });
    t.after(() => again.close());
    assert.deepEqual(await again.next(), events[2]);
  });

  test('events come by themselves', async (t) => {
    const items = database.collection('emitted');
    // A stream that gives events by itself is opened when somebody listens: it begins at a time that is known.
    const { operationTime } = await items.insertOne({ _id: 0 }).then(() => database.command({ ping: 1 }));
    const stream = items.watch([{ $match: { 'fullDocument.wanted': true } }], { startAtOperationTime: operationTime });
    t.after(() => stream.close());
    const changed = new Promise((resolve) => stream.once('change', resolve));
    await items.insertMany([{ _id: 1 }, { _id: 2, wanted: true }]);
    assert.deepEqual((await changed).documentKey, { _id: 2 });
  });

  test('a database and the whole deployment', async (t) => {
    const ofDatabase = await watch(t, database);
    const ofAll = await watch(t, client);
    await database.collection('whole').insertOne({ _id: 1 });
    assert.equal((await ofDatabase.next()).ns.coll, 'whole');
    assert.equal((await ofAll.next()).ns.coll, 'whole');
  });

  test('documents before and after', async (t) => {
    await database.createCollection('images', { changeStreamPreAndPostImages: { enabled: true } });
    const items = database.collection('images');
    await items.insertOne({ _id: 1, a: 1 });
    const stream = await watch(t, items, [], { fullDocument: 'required', fullDocumentBeforeChange: 'required' });
    await items.updateOne({ _id: 1 }, { $inc: { a: 1 } });
    await items.updateOne({ _id: 1 }, { $inc: { a: 1 } });
    const event = await stream.next();
    assert.deepEqual([event.fullDocumentBeforeChange, event.fullDocument], [{ _id: 1, a: 1 }, { _id: 1, a: 2 }]);
  });

  test('a transaction is told when it commits', async (t) => {
    const items = database.collection('transacted');
    await items.insertOne({ _id: 0 });
    const stream = await watch(t, items);
    await client.withSession((session) =>
      session.withTransaction(async () => {
        await items.insertOne({ _id: 1 }, { session });
        assert.equal(await stream.tryNext(), null);
        await items.deleteOne({ _id: 0 }, { session });
      }),
    );
    const [insert, remove] = [await stream.next(), await stream.next()];
    assert.deepEqual([insert.operationType, remove.operationType], ['insert', 'delete']);
    assert.ok(insert.lsid && insert.clusterTime.equals(remove.clusterTime));
  });

  test('a collection that is dropped ends its streams', async (t) => {
    const items = database.collection('dropped');
    await items.insertOne({ _id: 1 });
    const stream = await watch(t, items);
    await items.drop();
    assert.equal((await stream.next()).operationType, 'drop');
    const end = await stream.next();
    assert.equal(end.operationType, 'invalidate');
    const after = items.watch([], { startAfter: end._id });
    t.after(() => after.close());
    const next = after.next();
    await items.insertOne({ _id: 2 });
    assert.equal((await next).operationType, 'insert');
  });
});
