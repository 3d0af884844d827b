// Collections, indexes, views, and the questions about them.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { emptyDatabase, suiteClient } from '../server.mjs';

describe('catalog', () => {
  const client = suiteClient();
  let database;
  before(async () => {
    database = await emptyDatabase(client, 'node_catalog');
  });

  const names = async (filter) => (await database.listCollections(filter).toArray()).map((one) => one.name).sort();

  test('create, list, rename, drop', async () => {
    await database.createCollection('a');
    await assert.rejects(database.createCollection('a', { capped: true, size: 4096 }), { code: 48, codeName: 'NamespaceExists' });
    await database.collection('a').insertOne({ _id: 1 });
    const renamed = await database.renameCollection('a', 'b');
    assert.deepEqual(await renamed.findOne(), { _id: 1 });
    assert.deepEqual(await names({ name: { $in: ['a', 'b'] } }), ['b']);
    assert.equal(await renamed.drop(), true);
    assert.deepEqual(await names({ name: 'b' }), []);
  });

  test('listCollections tells options, uuid and the _id index', async () => {
    await database.createCollection('limited', { capped: true, size: 8192, max: 3 });
    const [info] = await database.listCollections({ name: 'limited' }).toArray();
    assert.equal(info.type, 'collection');
    assert.deepEqual(info.options, { capped: true, size: 8192, max: 3 });
    assert.equal(info.info.readOnly, false);
    assert.equal(info.info.uuid.sub_type, 4);
    assert.deepEqual(info.idIndex, { v: 2, key: { _id: 1 }, name: '_id_' });
    const limited = database.collection('limited');
    assert.equal(await limited.isCapped(), true);
    await limited.insertMany([{ _id: 1 }, { _id: 2 }, { _id: 3 }, { _id: 4 }]);
    assert.deepEqual(await limited.find().toArray(), [{ _id: 2 }, { _id: 3 }, { _id: 4 }]);
  });

  test('listDatabases counts bytes', async () => {
    await database.collection('some').insertOne({});
    const { databases } = await client.db().admin().listDatabases();
    const mine = databases.find((one) => one.name === 'node_catalog');
    assert.equal(mine.empty, false);
    assert.ok(databases.some((one) => one.name === 'local'));
  });

  test('indexes: unique, compound, partial, sparse, hashed, hidden', async () => {
    const items = database.collection('indexed');
    const made = await items.createIndexes([
      { key: { a: 1 }, unique: true }, { key: { b: 1, c: -1 }, name: 'bc' }, { key: { d: 1 }, sparse: true },
      { key: { e: 1 }, partialFilterExpression: { e: { $gt: 5 } } }, { key: { f: 'hashed' } }, { key: { g: 1 }, hidden: true },
    ]);
    assert.deepEqual(made, ['a_1', 'bc', 'd_1', 'e_1', 'f_hashed', 'g_1']);
    const listed = Object.fromEntries((await items.indexes()).map((index) => [index.name, index]));
    assert.deepEqual(listed._id_, { v: 2, key: { _id: 1 }, name: '_id_' });
    assert.deepEqual(listed.a_1, { v: 2, key: { a: 1 }, name: 'a_1', unique: true });
    assert.deepEqual(listed.bc.key, { b: 1, c: -1 });
    assert.equal(listed.g_1.hidden, true);
    await items.insertOne({ a: 1, b: 2, c: 3 });
    await assert.rejects(items.insertOne({ a: 1 }), { code: 11000 });
    await assert.rejects(items.createIndex({ a: 1 }, { name: 'other', unique: true }), { code: 85, codeName: 'IndexOptionsConflict' });
    await assert.rejects(items.createIndex({ b: 1 }, { name: 'bc' }), { code: 86, codeName: 'IndexKeySpecsConflict' });
    assert.equal(await items.indexExists(['bc', 'd_1']), true);
    await items.dropIndex('bc');
    await assert.rejects(items.dropIndex('bc'), { code: 27, codeName: 'IndexNotFound' });
    await items.dropIndexes();
    assert.deepEqual((await items.indexes()).map((index) => index.name), ['_id_']);
  });

  test('an index is used, also by a hint, and covers', async () => {
    const items = database.collection('used');
    await items.insertMany(Array.from({ length: 50 }, (_, index) => ({ a: index, b: -index })));
    await items.createIndex({ a: 1 });
    const plan = JSON.stringify((await items.find({ a: { $gt: 40 } }).explain()).queryPlanner.winningPlan);
    assert.match(plan, /IXSCAN/);
    const covered = (await items.find({ a: 7 }, { projection: { _id: 0, a: 1 } }).explain('executionStats')).executionStats;
    assert.equal(covered.totalDocsExamined, 0);
    const hinted = await items.find({ b: -3 }).hint({ a: 1 }).explain();
    assert.match(JSON.stringify(hinted.queryPlanner.winningPlan), /IXSCAN/);
    await assert.rejects(items.find({}).hint('none').toArray(), { code: 2 });
  });

  test('an index that cannot be built tells why', async () => {
    const items = database.collection('twins');
    await items.insertMany([{ a: 1 }, { a: 1 }]);
    await assert.rejects(items.createIndex({ a: 1 }, { unique: true }), { code: 11000 });
    assert.deepEqual((await items.indexes()).map((index) => index.name), ['_id_']);
  });

  test('validators refuse, warn or let existing documents be', async () => {
    const items = await database.createCollection('checked', { validator: { a: { $gt: 0 } } });
    await items.insertOne({ a: 1 });
    await assert.rejects(items.insertOne({ a: 0 }), (error) => {
      assert.equal(error.code, 121);
      assert.equal(error.errInfo.failingDocumentId.toHexString().length, 24);
      assert.equal(error.errInfo.details.operatorName, '$gt');
      return true;
    });
    await items.insertOne({ a: -1 }, { bypassDocumentValidation: true });
    await assert.rejects(items.updateOne({ a: 1 }, { $set: { a: -5 } }), { code: 121 });
    await database.command({ collMod: 'checked', validationLevel: 'moderate' });
    await items.updateOne({ a: -1 }, { $set: { b: 1 } });
    await database.command({ collMod: 'checked', validationAction: 'warn' });
    await items.insertOne({ a: 0 });
    assert.equal(await items.countDocuments(), 3);
  });

  test('views read through their pipeline and cannot be written', async () => {
    const items = database.collection('source');
    await items.insertMany([{ _id: 1, a: 1 }, { _id: 2, a: 2 }, { _id: 3, a: 3 }]);
    const view = await database.createCollection('large', { viewOn: 'source', pipeline: [{ $match: { a: { $gt: 1 } } }, { $set: { big: true } }] });
    assert.deepEqual(await view.find({ a: 3 }).toArray(), [{ _id: 3, a: 3, big: true }]);
    assert.equal(await view.countDocuments(), 2);
    assert.deepEqual(await view.distinct('a'), [2, 3]);
    await assert.rejects(view.insertOne({}), { code: 166 });
    const [info] = await database.listCollections({ name: 'large' }).toArray();
    assert.deepEqual([info.type, info.info.readOnly, info.options.viewOn], ['view', true, 'source']);
  });

  test('stats of a database and of a collection', async () => {
    const items = database.collection('measured');
    await items.insertMany([{ a: 1 }, { a: 2 }]);
    await items.createIndex({ a: 1 });
    const stats = await database.stats();
    assert.equal(stats.db, 'node_catalog');
    assert.ok(stats.collections > 0 && stats.objects >= 2 && stats.indexes >= 2);
    const of = await database.command({ collStats: 'measured' });
    assert.deepEqual([of.ns, of.count, of.nindexes, of.capped], ['node_catalog.measured', 2, 2, false]);
    const [stage] = await items.aggregate([{ $collStats: { storageStats: {}, count: {} } }]).toArray();
    assert.equal(stage.storageStats.count, 2);
    assert.equal(stage.count, 2);
    const uses = await items.aggregate([{ $indexStats: {} }]).toArray();
    assert.deepEqual(uses.map((one) => one.name).sort(), ['_id_', 'a_1']);
  });

  test('validate finds nothing wrong', async () => {
    const items = database.collection('valid');
    await items.insertMany([{ a: [1, 2] }, { a: 3 }]);
    await items.createIndex({ a: 1 });
    const result = await database.command({ validate: 'valid', full: true });
    assert.deepEqual([result.valid, result.nrecords, result.keysPerIndex.a_1], [true, 2, 3]);
  });

  test('dropDatabase takes everything', async () => {
    const doomed = client.db('node_catalog_doomed');
    await doomed.collection('a').insertOne({});
    assert.equal(await doomed.dropDatabase(), true);
    assert.deepEqual(await doomed.listCollections().toArray(), []);
  });
});
