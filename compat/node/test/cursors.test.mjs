// Cursors: batches, their end, their owners; aggregation.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { emptyDatabase, record, suiteClient } from '../server.mjs';

describe('cursors', () => {
  const client = suiteClient({ monitorCommands: true });
  let database;
  let thousand;
  before(async () => {
    database = await emptyDatabase(client, 'node_cursors');
    thousand = database.collection('thousand');
    await thousand.insertMany(Array.from({ length: 1000 }, (_, index) => ({ _id: index, bucket: index % 7 })));
  });

  test('batches arrive in order', async () => {
    const commands = record(client);
    const ids = [];
    for await (const { _id } of thousand.find({}, { batchSize: 300 }).sort({ _id: 1 })) ids.push(_id);
    assert.deepEqual(ids, Array.from({ length: 1000 }, (_, index) => index));
    assert.deepEqual(commands.map((event) => event.commandName), ['find', 'getMore', 'getMore', 'getMore']);
  });

  test('the first batch has 101 documents', async () => {
    const reply = await database.command({ find: 'thousand' });
    assert.equal(reply.cursor.firstBatch.length, 101);
    const rest = await database.command({ getMore: reply.cursor.id, collection: 'thousand' });
    assert.equal(rest.cursor.nextBatch.length, 899);
    assert.equal(Number(rest.cursor.id), 0);
  });

  test('closing early kills it on the server', async () => {
    const commands = record(client);
    const cursor = thousand.find({}, { batchSize: 10 });
    await cursor.next();
    const { id } = cursor;
    await cursor.close();
    assert.ok(commands.some((event) => event.commandName === 'killCursors'));
    await assert.rejects(database.command({ getMore: id, collection: 'thousand' }), { code: 43, codeName: 'CursorNotFound' });
  });

  test('a dropped collection ends its cursors', async () => {
    const doomed = database.collection('doomed');
    await doomed.insertMany(Array.from({ length: 500 }, () => ({})));
    const cursor = doomed.find({}, { batchSize: 10 });
    await cursor.next();
    await doomed.drop();
    await assert.rejects(cursor.toArray(), { code: 175, codeName: 'QueryPlanKilled' });
  });

  test('rewind starts anew, clone is independent, map applies', async () => {
    const cursor = thousand.find({ _id: { $lt: 3 } }).map((item) => item._id * 10);
    assert.deepEqual(await cursor.toArray(), [0, 10, 20]);
    cursor.rewind();
    assert.equal(await cursor.next(), 0);
    assert.equal((await cursor.clone().toArray()).length, 3);
    await cursor.close();
  });

  test('a stream ends', async () => {
    let count = 0;
    for await (const _ of thousand.find().stream()) count += 1;
    assert.equal(count, 1000);
  });

  test('tailable cursors on capped collections see what comes later', async () => {
    const log = await database.createCollection('log', { capped: true, size: 4096 });
    await log.insertOne({ _id: 1 });
    const cursor = log.find({}, { tailable: true, awaitData: true, maxAwaitTimeMS: 200 });
    assert.deepEqual(await cursor.next(), { _id: 1 });
    const waiting = cursor.next();
    await log.insertOne({ _id: 2 });
    assert.deepEqual(await waiting, { _id: 2 });
    await cursor.close();
  });

  test('explain tells the plan', async () => {
    const explained = await thousand.find({ _id: 5 }).explain('executionStats');
    assert.equal(explained.queryPlanner.namespace, 'node_cursors.thousand');
    assert.equal(explained.executionStats.nReturned, 1);
    assert.equal(explained.executionStats.totalDocsExamined, 1);
    const scanned = await thousand.find({ bucket: 1 }).explain('executionStats');
    assert.equal(scanned.queryPlanner.winningPlan.stage, 'COLLSCAN');
    assert.equal(scanned.executionStats.totalDocsExamined, 1000);
  });

  test('aggregation: group, sort, lookup, unwind, facet, out', async () => {
    const groups = await thousand.aggregate([
      { $match: { _id: { $lt: 700 } } }, { $group: { _id: '$bucket', n: { $sum: 1 }, most: { $max: '$_id' } } }, { $sort: { _id: 1 } },
    ]).toArray();
    assert.deepEqual(groups[6], { _id: 6, n: 100, most: 699 });
    await database.collection('names').insertMany([{ _id: 0, name: 'zero' }, { _id: 1, name: 'one' }]);
    const joined = await thousand.aggregate([
      { $match: { _id: { $in: [1, 7] } } }, { $sort: { _id: 1 } },
      { $lookup: { from: 'names', localField: 'bucket', foreignField: '_id', as: 'name' } }, { $unwind: '$name' },
      { $project: { name: '$name.name' } },
    ]).toArray();
    assert.deepEqual(joined, [{ _id: 1, name: 'one' }, { _id: 7, name: 'zero' }]);
    const [facets] = await thousand.aggregate([
      { $facet: { count: [{ $count: 'n' }], first: [{ $sort: { _id: 1 } }, { $limit: 1 }, { $replaceWith: { id: '$_id' } }] } },
    ]).toArray();
    assert.deepEqual(facets, { count: [{ n: 1000 }], first: [{ id: 0 }] });
    await thousand.aggregate([{ $match: { bucket: 0 } }, { $out: 'zeros' }]).toArray();
    assert.equal(await database.collection('zeros').countDocuments(), 143);
    await thousand.aggregate([{ $match: { bucket: 1 } }, { $merge: { into: 'zeros', whenMatched: 'fail' } }]).toArray();
    assert.equal(await database.collection('zeros').countDocuments(), 286);
  });

  test('maxTimeMS ends a query that takes long', async (t) => {
    const admin = client.db('admin');
    await admin.command({ configureFailPoint: 'maxTimeAlwaysTimeOut', mode: 'alwaysOn' });
    t.after(() => admin.command({ configureFailPoint: 'maxTimeAlwaysTimeOut', mode: 'off' }));
    await assert.rejects(thousand.find().maxTimeMS(5000).toArray(), { code: 50, codeName: 'MaxTimeMSExpired' });
  });
});
