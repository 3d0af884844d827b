// Sessions, retryable writes and reads, compression, and what the handshake tells.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { Long, MongoClient } from 'mongodb';
import { address, connect, emptyDatabase, failCommand, record, suiteClient } from '../server.mjs';

/// The number for a retryable write that the test sends by itself; the driver keeps counting after it.
function nextTransactionNumber(session) {
  session.serverSession.txnNumber += 1;
  return session.serverSession.txnNumber;
}

describe('sessions', () => {
  const client = suiteClient({ monitorCommands: true });
  let database;
  before(async () => {
    database = await emptyDatabase(client, 'node_sessions');
  });

  test('hello tells a primary of a set of one', async () => {
    const hello = await client.db('admin').command({ hello: 1 });
    assert.equal(hello.isWritablePrimary, true);
    assert.equal(hello.setName, 'rs0');
    assert.deepEqual(hello.hosts, [hello.me]);
    assert.deepEqual([hello.maxWireVersion, hello.logicalSessionTimeoutMinutes], [21, 30]);
    assert.deepEqual([hello.maxBsonObjectSize, hello.maxMessageSizeBytes, hello.maxWriteBatchSize], [16777216, 48000000, 100000]);
  });

  test('the set is found by its name', async (t) => {
    const byName = new MongoClient(`${address}?replicaSet=rs0`, { serverSelectionTimeoutMS: 5000 });
    t.after(() => byName.close());
    await byName.db('node_sessions').collection('named').insertOne({ _id: 1 });
    assert.equal(await byName.db('node_sessions').collection('named').countDocuments({}, { readPreference: 'primaryPreferred' }), 1);
  });

  test('explicit sessions are causally consistent', async () => {
    const commands = record(client);
    const items = database.collection('causal');
    await client.withSession(async (session) => {
      await items.insertOne({ _id: 1 }, { session });
      assert.deepEqual(await items.findOne({ _id: 1 }, { session }), { _id: 1 });
      assert.ok(session.operationTime);
    });
    const [insert, find] = commands.filter((event) => ['insert', 'find'].includes(event.commandName));
    assert.equal(String(insert.command.lsid.id), String(find.command.lsid.id));
    assert.ok(find.command.readConcern.afterClusterTime);
  });

  test('snapshot sessions read one moment', async () => {
    const items = database.collection('snapshot');
    await items.insertOne({ _id: 1 }, { writeConcern: { w: 'majority' } });
    await client.withSession({ snapshot: true }, async (session) => {
      assert.equal(await items.countDocuments({}, { session }), 1);
      await items.insertOne({ _id: 2 }, { writeConcern: { w: 'majority' } });
      assert.equal(await items.countDocuments({}, { session }), 1);
    });
    assert.equal(await items.countDocuments(), 2);
  });

  test('a cursor belongs to its session', async () => {
    const items = database.collection('owned');
    await items.insertMany(Array.from({ length: 200 }, () => ({})));
    await client.withSession(async (session) => {
      const reply = await database.command({ find: 'owned', batchSize: 2 }, { session });
      await assert.rejects(database.command({ getMore: reply.cursor.id, collection: 'owned' }), { code: 50738 });
      const more = await database.command({ getMore: reply.cursor.id, collection: 'owned' }, { session });
      assert.equal(more.cursor.nextBatch.length, 198);
    });
  });

  test('writes carry a transaction number and are retried after a lost connection', async (t) => {
    const commands = record(client);
    const items = database.collection('retried');
    await items.insertOne({ _id: 1, n: 0 });
    await failCommand(t, client, { times: 1 }, { failCommands: ['update'], closeConnection: true });
    const result = await items.updateOne({ _id: 1 }, { $inc: { n: 1 } });
    assert.equal(result.modifiedCount, 1);
    assert.deepEqual(await items.findOne({ _id: 1 }), { _id: 1, n: 1 });
    const updates = commands.filter((event) => event.commandName === 'update');
    assert.equal(updates.length, 2);
    assert.equal(String(updates[0].command.txnNumber), String(updates[1].command.txnNumber));
  });

  test('a retried statement is not executed twice', async () => {
    const items = database.collection('twice');
    await client.withSession(async (session) => {
      const txnNumber = nextTransactionNumber(session);
      const command = { update: 'twice', updates: [{ q: { _id: 1 }, u: { $inc: { n: 1 } }, upsert: true }], txnNumber: Long.fromNumber(txnNumber) };
      const first = await database.command(command, { session });
      const second = await database.command(command, { session });
      assert.deepEqual(first.upserted, second.upserted);
      assert.deepEqual(second.retriedStmtIds, [0]);
      await assert.rejects(database.command({ ...command, txnNumber: Long.fromNumber(txnNumber - 1) }, { session }), { code: 225, codeName: 'TransactionTooOld' });
    });
    assert.deepEqual(await items.findOne(), { _id: 1, n: 1 });
  });

  test('findAndModify retried gives the same document', async () => {
    const items = database.collection('image');
    await items.insertOne({ _id: 1, n: 1 });
    await client.withSession(async (session) => {
      const txnNumber = nextTransactionNumber(session);
      const command = { findAndModify: 'image', query: { _id: 1 }, update: { $inc: { n: 1 } }, txnNumber: Long.fromNumber(txnNumber) };
      const first = await database.command(command, { session });
      const second = await database.command(command, { session });
      assert.deepEqual(first.value, { _id: 1, n: 1 });
      assert.deepEqual(second.value, first.value);
    });
    assert.deepEqual(await items.findOne(), { _id: 1, n: 2 });
  });

  test('reads are retried', async (t) => {
    const items = database.collection('reads');
    await items.insertOne({ _id: 1 });
    await failCommand(t, client, { times: 1 }, { failCommands: ['find'], errorCode: 11600 });
    assert.deepEqual(await items.findOne(), { _id: 1 });
  });

  test('endSessions and killSessions are answered', async () => {
    const session = client.startSession();
    await database.collection('ended').findOne({}, { session });
    const { id } = session.id;
    await session.endSession();
    assert.equal((await client.db('admin').command({ endSessions: [{ id }] })).ok, 1);
    assert.equal((await client.db('admin').command({ killSessions: [{ id }] })).ok, 1);
    assert.equal((await client.db('admin').command({ refreshSessions: [{ id }] })).ok, 1);
  });

  test('zlib compresses both ways', async (t) => {
    const squeezed = await connect(t, { compressors: ['zlib'], zlibCompressionLevel: 6 });
    const items = squeezed.db('node_sessions').collection('squeezed');
    const bytes = async () => (await client.db('admin').command({ serverStatus: 1 })).network.compression.zlib;
    const first = await bytes();
    const text = 'pando '.repeat(50_000);
    await items.insertOne({ _id: 1, text });
    assert.equal((await items.findOne({ _id: 1 })).text, text);
    const then = await bytes();
    const grown = (direction, side) => Number(then[direction][side]) - Number(first[direction][side]);
    assert.ok(grown('decompressor', 'bytesOut') > 300_000 && grown('decompressor', 'bytesIn') < 50_000);
    assert.ok(grown('compressor', 'bytesIn') > 300_000 && grown('compressor', 'bytesOut') < 50_000);
  });

  test('the stable API is understood, strictly', async (t) => {
    const strict = await connect(t, { serverApi: { version: '1', strict: true, deprecationErrors: true } });
    const items = strict.db('node_sessions').collection('stable');
    await items.insertOne({ _id: 1 });
    assert.deepEqual(await items.find().toArray(), [{ _id: 1 }]);
    await assert.rejects(strict.db('node_sessions').command({ distinct: 'stable', key: '_id' }), { code: 323, codeName: 'APIStrictError' });
  });

  test('many clients at once', async (t) => {
    const clients = await Promise.all(Array.from({ length: 8 }, () => connect(t, { maxPoolSize: 10 })));
    const work = clients.flatMap((one, index) => Array.from({ length: 25 }, (_, step) =>
      one.db('node_sessions').collection('busy').updateOne({ _id: step }, { $inc: { n: 1 }, $addToSet: { by: index } }, { upsert: true })));
    await Promise.all(work);
    const all = await database.collection('busy').find().toArray();
    assert.equal(all.length, 25);
    assert.ok(all.every((one) => one.n === 8 && one.by.length === 8));
  });
});
