// Files in GridFS.
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { GridFSBucket } from 'mongodb';
import { emptyDatabase, suiteClient } from '../server.mjs';

async function bytesOf(stream) {
  const parts = [];
  for await (const part of stream) parts.push(part);
  return Buffer.concat(parts);
}

describe('gridfs', () => {
  const client = suiteClient();
  let database;
  let bucket;
  before(async () => {
    database = await emptyDatabase(client, 'node_gridfs');
    bucket = new GridFSBucket(database, { chunkSizeBytes: 1000 });
  });

  const store = async (name, bytes, options) => {
    const upload = bucket.openUploadStream(name, options);
    await pipeline(Readable.from([bytes]), upload);
    return upload.id;
  };

  test('a file comes back whole and in ranges', async () => {
    const bytes = Buffer.from(Array.from({ length: 4321 }, (_, index) => index % 251));
    const id = await store('numbers', bytes, { metadata: { kind: 'test' } });
    assert.deepEqual(await bytesOf(bucket.openDownloadStream(id)), bytes);
    assert.deepEqual(await bytesOf(bucket.openDownloadStream(id, { start: 990, end: 2010 })), bytes.subarray(990, 2010));
    const [file] = await bucket.find({ _id: id }).toArray();
    assert.deepEqual([file.length, file.chunkSize, file.metadata.kind], [4321, 1000, 'test']);
    assert.equal(await database.collection('fs.chunks').countDocuments({ files_id: id }), 5);
  });

  test('the bucket makes its indexes', async () => {
    await store('indexed', Buffer.from('x'));
    const keys = async (name) => (await database.collection(name).indexes()).map((index) => JSON.stringify(index.key));
    assert.ok((await keys('fs.files')).includes('{"filename":1,"uploadDate":1}'));
    assert.ok((await keys('fs.chunks')).includes('{"files_id":1,"n":1}'));
  });

  test('revisions by name, rename and delete', async () => {
    await store('versions', Buffer.from('one'));
    const second = await store('versions', Buffer.from('two'));
    assert.equal(String(await bytesOf(bucket.openDownloadStreamByName('versions', { revision: 0 }))), 'one');
    assert.equal(String(await bytesOf(bucket.openDownloadStreamByName('versions'))), 'two');
    await bucket.rename(second, 'other');
    assert.equal(String(await bytesOf(bucket.openDownloadStreamByName('other'))), 'two');
    await bucket.delete(second);
    await assert.rejects(bytesOf(bucket.openDownloadStream(second)), /FileNotFound/);
    assert.equal(await database.collection('fs.chunks').countDocuments({ files_id: second }), 0);
  });

  test('an empty file has no chunks', async () => {
    const id = await store('empty', Buffer.alloc(0));
    assert.equal((await bytesOf(bucket.openDownloadStream(id))).length, 0);
    assert.equal(await database.collection('fs.chunks').countDocuments({ files_id: id }), 0);
  });
});
