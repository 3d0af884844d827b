// mongoose: models, validation, population, indexes, time stamps, hooks.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import mongoose from 'mongoose';
import { address } from '../server.mjs';

const { Schema } = mongoose;

describe('mongoose', () => {
  let connection;
  before(async () => {
    connection = await mongoose.createConnection(`${address}node_mongoose?directConnection=true`).asPromise();
    await connection.dropDatabase();
  });
  after(() => connection.close());

  test('a model saves, finds, updates and removes', async () => {
    const Person = connection.model('Person', new Schema({ name: { type: String, required: true }, age: Number, tags: [String] }));
    const ada = await Person.create({ name: 'Ada', age: 36, tags: ['maths'] });
    const found = await Person.findOne({ name: 'Ada' });
    assert.equal(found.id, ada.id);
    found.age += 1;
    found.tags.push('engines');
    await found.save();
    assert.deepEqual((await Person.findById(ada.id).lean()).tags, ['maths', 'engines']);
    const changed = await Person.findByIdAndUpdate(ada.id, { $inc: { age: 1 } }, { returnDocument: 'after' });
    assert.equal(changed.age, 38);
    assert.equal((await Person.deleteOne({ _id: ada.id })).deletedCount, 1);
    assert.equal(await Person.exists({ name: 'Ada' }), null);
  });

  test('validation happens before anything is sent', async () => {
    const Item = connection.model('Item', new Schema({ price: { type: Number, min: 0 }, kind: { type: String, enum: ['a', 'b'] } }));
    await assert.rejects(Item.create({ price: -1, kind: 'c' }), (error) => {
      assert.deepEqual(Object.keys(error.errors).sort(), ['kind', 'price']);
      return error.name === 'ValidationError';
    });
    assert.equal(await Item.countDocuments(), 0);
    await assert.rejects(Item.updateOne({}, { price: 'much' }), { name: 'CastError' });
  });

  test('time stamps and versions', async () => {
    const Note = connection.model('Note', new Schema({ text: String, list: [Number] }, { timestamps: true }));
    const note = await Note.create({ text: 'first', list: [1, 2, 3] });
    assert.ok(note.createdAt instanceof Date && note.updatedAt instanceof Date);
    assert.equal(note.__v, 0);
    note.list.set(0, 9);
    note.list = note.list.filter((one) => one !== 2);
    await note.save();
    const again = await Note.findById(note.id);
    assert.equal(again.__v, 1);
    assert.equal(again.createdAt.getTime(), note.createdAt.getTime());
    assert.ok(again.updatedAt >= note.updatedAt);
    const stale = await Note.findById(note.id);
    again.list = [];
    await again.save();
    stale.list.pull(9);
    stale.list = [4];
    await assert.rejects(stale.save(), { name: 'VersionError' });
  });

  test('unique indexes are built and enforced', async () => {
    const Account = connection.model('Account', new Schema({ email: { type: String, unique: true }, team: { type: String, index: true } }));
    await Account.init();
    assert.deepEqual((await Account.listIndexes()).map((index) => index.name), ['_id_', 'email_1', 'team_1']);
    await Account.create({ email: 'a@example.org' });
    await assert.rejects(Account.create({ email: 'a@example.org' }), { code: 11000 });
    assert.deepEqual(await Account.diffIndexes(), { toDrop: [], toCreate: [] });
    await Account.collection.createIndex({ stray: 1 });
    assert.deepEqual(await Account.syncIndexes(), ['stray_1']);
  });

  test('populate follows references, virtual ones too', async () => {
    const author = new Schema({ name: String });
    author.virtual('books', { ref: 'Book', localField: '_id', foreignField: 'author' });
    const Author = connection.model('Author', author);
    const Book = connection.model('Book', new Schema({ title: String, author: { type: Schema.Types.ObjectId, ref: 'Author' } }));
    const le = await Author.create({ name: 'Le Guin' });
    await Book.create([{ title: 'The Dispossessed', author: le }, { title: 'Tehanu', author: le }]);
    const book = await Book.findOne({ title: 'Tehanu' }).populate('author');
    assert.equal(book.author.name, 'Le Guin');
    const full = await Author.findOne().populate({ path: 'books', options: { sort: { title: 1 } } });
    assert.deepEqual(full.books.map((one) => one.title), ['Tehanu', 'The Dispossessed']);
  });

  test('aggregate, distinct, cursor, bulkSave, bulkWrite', async () => {
    const Sale = connection.model('Sale', new Schema({ shop: String, sum: Schema.Types.Decimal128, n: Number }));
    await Sale.insertMany(Array.from({ length: 150 }, (_, index) => ({ shop: `s${index % 3}`, sum: '1.10', n: index })));
    const totals = await Sale.aggregate([{ $group: { _id: '$shop', sum: { $sum: '$sum' }, n: { $avg: '$n' } } }]).sort('_id');
    assert.deepEqual(totals.map((one) => [one._id, String(one.sum), one.n]), [['s0', '55.00', 73.5], ['s1', '55.00', 74.5], ['s2', '55.00', 75.5]]);
    assert.deepEqual(await Sale.distinct('shop'), ['s0', 's1', 's2']);
    let count = 0;
    for await (const sale of Sale.find({ n: { $gte: 20 } }).cursor({ batchSize: 40 })) count += sale.n >= 20 ? 1 : 0;
    assert.equal(count, 130);
    const some = await Sale.find({ n: { $lt: 3 } });
    for (const one of some) one.shop = 'closed';
    await Sale.bulkSave(some);
    assert.equal(await Sale.countDocuments({ shop: 'closed' }), 3);
    const result = await Sale.bulkWrite([{ deleteMany: { filter: { shop: 'closed' } } }, { updateOne: { filter: { n: -1 }, update: { shop: 'new' }, upsert: true } }]);
    assert.deepEqual([result.deletedCount, result.upsertedCount], [3, 1]);
  });

  test('discriminators, sub-documents, maps, hooks', async () => {
    const calls = [];
    const schema = new Schema({ at: Date, place: { city: String, geo: [Number] }, parts: [{ name: String, n: Number }], extra: { type: Map, of: Number } });
    schema.pre('save', function note() { calls.push('pre'); });
    schema.post('save', () => calls.push('post'));
    const Event = connection.model('Event', schema);
    const Click = Event.discriminator('Click', new Schema({ url: String }));
    const click = await Click.create({ at: new Date(), url: '/', place: { city: 'Fish Lake', geo: [1, 2] }, parts: [{ name: 'a', n: 1 }], extra: { x: 1 } });
    click.parts.id(click.parts[0].id).n = 5;
    click.extra.set('y', 2);
    await click.save();
    assert.deepEqual(calls, ['pre', 'post', 'pre', 'post']);
    const found = await Event.findOne({ 'place.city': 'Fish Lake', parts: { $elemMatch: { name: 'a', n: 5 } } });
    assert.ok(found instanceof Click);
    assert.equal(found.extra.get('y'), 2);
    assert.deepEqual(await Event.findOne().select('place.geo -_id').lean().then((one) => one.place), { geo: [1, 2] });
    assert.equal(await Click.estimatedDocumentCount(), 1);
  });

  test('a collection of a model can be capped, validated and explained', async () => {
    const Line = connection.model('Line', new Schema({ text: String }, { capped: { size: 4096, max: 2 } }));
    await Line.createCollection();
    await Line.create({ text: '1' });
    await Line.create({ text: '2' });
    await Line.create({ text: '3' });
    assert.deepEqual((await Line.find().lean()).map((one) => one.text), ['2', '3']);
    const plan = await Line.find({ text: '2' }).explain();
    assert.equal((plan[0] ?? plan).queryPlanner.winningPlan.stage, 'COLLSCAN');
  });
});
