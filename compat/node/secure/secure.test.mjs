// Logging in and encryption through the Node driver, against a server with --auth and requireTLS. The tests run in order: the
// first makes the user that the others need.
import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { join } from 'node:path';
import { MongoClient } from 'mongodb';

const port = process.env.PANDO_PORT;
const certificate = (name) => join(process.env.PANDO_CERTIFICATES, `${name}.pem`);
const subject = 'CN=client,OU=tests,O=Pando\\, Inc.,C=DE';
const trusting = { tls: true, tlsCAFile: certificate('authority') };
const quick = { serverSelectionTimeoutMS: 3000, directConnection: true };
const opened = [];

async function connect(options, host = 'localhost') {
  const client = new MongoClient(`mongodb://${host}:${port}/`, { ...quick, ...options });
  opened.push(client);
  await client.connect();
  await client.db('admin').command({ ping: 1 });
  return client;
}

const as = (username, password, more = {}) => ({ ...trusting, auth: { username, password }, ...more });
const whoAmI = async (client) => {
  const { authInfo } = await client.db('admin').command({ connectionStatus: 1 });
  return authInfo.authenticatedUsers;
};

describe('secure', () => {
  after(() => Promise.all(opened.map((client) => client.close())));

  test('the first user is made from this machine, and then nothing more', async () => {
    const client = await connect(trusting);
    await client.db('admin').command({ createUser: 'root', pwd: 'secret', roles: ['root'] });
    await assert.rejects(client.db('admin').command({ createUser: 'other', pwd: 'x', roles: [] }), { code: 13 });
    await assert.rejects(client.db('shop').collection('items').findOne(), { code: 13 });
  });

  for (const authMechanism of [undefined, 'DEFAULT', 'SCRAM-SHA-1', 'SCRAM-SHA-256']) {
    test(`a password proves who one is: ${authMechanism ?? 'no mechanism named'}`, async () => {
      const client = await connect(as('root', 'secret', authMechanism && { authMechanism }));
      assert.deepEqual(await whoAmI(client), [{ user: 'root', db: 'admin' }]);
    });
  }

  test('passwords are prepared as SASL says', async () => {
    const root = await connect(as('root', 'secret'));
    const mechanisms = ['SCRAM-SHA-256'];
    await root.db('admin').command({ createUser: '\u2168', pwd: '\u2163', roles: [], mechanisms });
    for (const [user, password] of [['\u2168', '\u2163'], ['\u2168', 'IV'], ['IX', 'I\u00adV']]) {
      const attempt = connect(as(user, password, { authMechanism: 'SCRAM-SHA-256' }));
      if (user === 'IX') await assert.rejects(attempt, { code: 18 });
      else assert.equal((await whoAmI(await attempt)).length, 1);
    }
  });

  test('a wrong password, user, database or mechanism is refused', async () => {
    const root = await connect(as('root', 'secret'));
    await root.db('shop').command({ createUser: 'new', pwd: 'p', roles: ['read'], mechanisms: ['SCRAM-SHA-256'] });
    for (const options of [
      as('root', 'wrong'), as('nobody', 'secret'), as('root', 'secret', { authSource: 'shop' }), as('new', 'p'),
    ]) {
      await assert.rejects(connect(options), (error) => error.code === 18 && /Authentication failed/.test(error.message));
    }
    await assert.rejects(connect(as('new', 'p', { authSource: 'shop', authMechanism: 'SCRAM-SHA-1' })), { code: 334 });
    const client = await connect(as('new', 'p', { authSource: 'shop' }));
    await client.db('shop').collection('items').findOne();
    await assert.rejects(client.db('shop').collection('items').insertOne({}), { code: 13 });
    await assert.rejects(client.db('other').collection('items').findOne(), { code: 13 });
  });

  test('a certificate proves who one is', async () => {
    const root = await connect(as('root', 'secret'));
    await root.db('$external').command({ createUser: subject, roles: [{ role: 'read', db: 'shop' }] });
    const options = { ...trusting, tlsCertificateKeyFile: certificate('client'), authMechanism: 'MONGODB-X509', authSource: '$external' };
    const client = await connect(options);
    assert.deepEqual(await whoAmI(client), [{ user: subject, db: '$external' }]);
    await client.db('shop').collection('items').findOne();
    const { tlsCertificateKeyFile, ...without } = options;
    await assert.rejects(connect(without));
  });

  test('connections that are not encrypted are refused', () => assert.rejects(connect({})));

  test('the driver refuses a server that nobody vouches for, or of another name', async () => {
    await assert.rejects(connect({ tls: true }));
    await connect({ tls: true, tlsAllowInvalidCertificates: true });
    await connect({ tls: true, tlsInsecure: true });
    // The certificate names localhost, not this address.
    await assert.rejects(connect(trusting, '127.0.0.2'));
    await connect({ ...trusting, tlsAllowInvalidHostnames: true }, '127.0.0.2');
  });

  test('the server refuses certificates of others, and those that are revoked', async () => {
    for (const name of ['stranger', 'revoked']) {
      await assert.rejects(connect({ ...trusting, tlsCertificateKeyFile: certificate(name) }));
    }
    await connect({ ...trusting, tlsCertificateKeyFile: certificate('client') });
  });
});
