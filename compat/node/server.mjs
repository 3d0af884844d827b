// Where the server is, and clients of it that are closed with the test that made them.
import { after } from 'node:test';
import { MongoClient } from 'mongodb';

export const uri = process.env.PANDO_URI ?? 'mongodb://127.0.0.1:27017/?directConnection=true';

/// The address without options, for tests that give their own.
export const address = uri.replace(/\/\?.*$/, '/');

/// A client for a whole suite; to be called while the suite is described. It connects when it is first used.
export function suiteClient(options = {}) {
  const client = new MongoClient(uri, options);
  after(() => client.close());
  return client;
}

/// A connected client that ends with the test.
export async function connect(t, options = {}, at = uri) {
  const client = new MongoClient(at, options);
  await client.connect();
  t.after(() => client.close());
  return client;
}

/// A database of that name without anything in it.
export async function emptyDatabase(client, name) {
  const database = client.db(name);
  await database.dropDatabase();
  return database;
}

/// The names of the commands that a client sent, in order; the client needs `monitorCommands`.
export function record(client) {
  const commands = [];
  client.on('commandStarted', (event) => commands.push(event));
  return commands;
}

/// Sets the fail point of commands for the length of a test.
export async function failCommand(t, client, mode, data) {
  const admin = client.db('admin');
  await admin.command({ configureFailPoint: 'failCommand', mode, data });
  t.after(() => admin.command({ configureFailPoint: 'failCommand', mode: 'off' }));
}
