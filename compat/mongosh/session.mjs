// What is typed into mongosh, and what it must print: [name, line, pattern or patterns].
//
// A pattern is matched against what was printed between this line and the next. `not(...)` must not match.

export const not = (pattern) => ({ test: (text) => !pattern.test(text), toString: () => `not ${pattern}` });

export const steps = [
  // Looking around
  ['hello', 'db.hello().isWritablePrimary', /^true$/m],
  ['ping', 'db.runCommand({ ping: 1 }).ok', /^1$/m],
  ['version', 'db.version()', /^7\.0\.\d+$/m],
  ['server status', 'const s = db.serverStatus(); [s.process, s.repl.setName, s.connections.current > 0].join()', /^(mongod|pando),rs0,true$/m],
  ['host info', 'db.hostInfo().system.numCores > 0', /^true$/m],
  ['current operations', 'db.currentOp().inprog.some((op) => op.command?.currentOp || op.command?.aggregate)', /^true$/m],
  ['parameters', 'Object.keys(db.adminCommand({ getParameter: "*" })).length > 20', /^true$/m],
  ['use', 'use compat_mongosh', /switched to db compat_mongosh/],
  ['start empty', 'db.dropDatabase()', [/ok: 1/, /dropped: 'compat_mongosh'/]],

  // Documents
  ['insertOne', 'db.c.insertOne({ _id: 1, x: 10, tag: "a" })', [/acknowledged: true/, /insertedId: 1/]],
  ['insertMany', 'db.c.insertMany([{ _id: 2, x: 20, tag: "b" }, { _id: 3, x: 30, tag: "a" }, { _id: 4, x: 40, tag: "b" }])', /'0': 2, '1': 3, '2': 4/],
  ['duplicate', 'db.c.insertOne({ _id: 1 })', /MongoServerError.*E11000 duplicate key error collection: compat_mongosh\.c index: _id_ dup key: \{ _id: 1 \}/],
  ['find', 'db.c.find({ x: { $gt: 15 } }, { tag: 0 }).sort({ x: -1 })', /^\[ \{ _id: 4, x: 40 \}, \{ _id: 3, x: 30 \}, \{ _id: 2, x: 20 \} \]$/m],
  ['skip and limit', 'db.c.find().sort({ _id: 1 }).skip(1).limit(1)', /^\[ \{ _id: 2, x: 20, tag: 'b' \} \]$/m],
  ['none', 'db.c.findOne({ _id: 99 })', /^null$/m],
  ['countDocuments', 'db.c.countDocuments({ tag: "a" })', /^2$/m],
  ['estimatedDocumentCount', 'db.c.estimatedDocumentCount()', /^4$/m],
  ['distinct', 'db.c.distinct("tag")', /^\[ 'a', 'b' \]$/m],
  ['updateOne', 'db.c.updateOne({ _id: 1 }, { $inc: { x: 1 } })', [/matchedCount: 1/, /modifiedCount: 1/, /upsertedCount: 0/]],
  ['updateMany by a pipeline', 'db.c.updateMany({}, [{ $set: { y: { $multiply: ["$x", 2] } } }]).modifiedCount', /^4$/m],
  ['upsert', 'db.c.updateOne({ _id: 5 }, { $set: { x: 50 } }, { upsert: true })', [/insertedId: 5/, /upsertedCount: 1/]],
  ['replaceOne', 'db.c.replaceOne({ _id: 5 }, { x: 55 }).modifiedCount', /^1$/m],
  ['findOneAndUpdate', 'db.c.findOneAndUpdate({ _id: 5 }, { $inc: { x: 1 } }, { returnDocument: "after" })', /^\{ _id: 5, x: 56 \}$/m],
  ['findAndModify', 'db.c.findAndModify({ query: { _id: 5 }, remove: true })', /^\{ _id: 5, x: 56 \}$/m],
  ['bulkWrite', 'db.c.bulkWrite([{ insertOne: { document: { _id: 6 } } }, { deleteOne: { filter: { _id: 6 } } }])', [/insertedCount: 1/, /deletedCount: 1/]],
  ['unknown operator', 'db.c.find({ x: { $nope: 1 } })', /MongoServerError\[BadValue\]: unknown operator: \$nope/],
  ['types', 'db.t.insertOne({ _id: 1, l: Long("5"), d: Decimal128("1.10"), u: UUID("00112233-4455-6677-8899-aabbccddeeff"), t: ISODate("2020-01-01"), r: /a.b/i, n: NumberInt(3), s: Timestamp(1, 2) }); db.t.findOne()',
    [/l: Long\('5'\)/, /d: Decimal128\('1\.10'\)/, /UUID\('00112233-4455-6677-8899-aabbccddeeff'\)/, /ISODate\('2020-01-01T00:00:00\.000Z'\)/, /r: \/a\.b\/i/, /n: 3/, /Timestamp\(\{ t: 1, i: 2 \}\)/]],

  // Cursors
  ['a cursor over batches', 'db.big.insertMany(Array.from({ length: 250 }, (_, i) => ({ _id: i }))); db.big.find().batchSize(50).toArray().length', /^250$/m],
  ['the first twenty', 'db.big.find().sort({ _id: 1 })', [/\{ _id: 0 \}/, /\{ _id: 19 \}/, not(/\{ _id: 20 \}/), /Type "it" for more/]],
  ['it', 'it', [/\{ _id: 20 \}/, /\{ _id: 39 \}/, /Type "it" for more/]],
  ['hasNext and next', 'const cursor = db.big.find().sort({ _id: -1 }).batchSize(2); cursor.next(); cursor.next(); [cursor.hasNext(), cursor.next()._id].join()', /^true,247$/m],
  ['forEach', 'let sum = 0; db.big.find().forEach((one) => { sum += one._id; }); sum', /^31125$/m],

  // Aggregation
  ['group', 'db.c.aggregate([{ $group: { _id: "$tag", n: { $sum: 1 }, s: { $sum: "$x" } } }, { $sort: { _id: 1 } }])', /^\[ \{ _id: 'a', n: 2, s: 41 \}, \{ _id: 'b', n: 2, s: 60 \} \]$/m],
  ['lookup', 'db.d.insertOne({ _id: 1, c: 3 }); db.d.aggregate([{ $lookup: { from: "c", localField: "c", foreignField: "_id", as: "j" } }, { $unwind: "$j" }, { $project: { v: "$j.x" } }])', /^\[ \{ _id: 1, v: 30 \} \]$/m],
  ['facet', 'db.c.aggregate([{ $facet: { a: [{ $count: "n" }], b: [{ $match: { tag: "a" } }, { $count: "n" }] } }])', /a: \[ \{ n: 4 \} \], b: \[ \{ n: 2 \} \]/],
  ['out', 'db.c.aggregate([{ $match: { tag: "a" } }, { $out: "copy" }]); db.copy.countDocuments()', /^2$/m],

  // Indexes and plans
  ['createIndex', 'db.c.createIndex({ x: 1 })', /^x_1$/m],
  ['createIndexes', 'db.c.createIndexes([{ tag: 1, x: -1 }, { y: "hashed" }])', /^\[ 'tag_1_x_-1', 'y_hashed' \]$/m],
  ['getIndexes', 'db.c.getIndexes()', [/\{ v: 2, key: \{ _id: 1 \}, name: '_id_' \}/, /\{ v: 2, key: \{ x: 1 \}, name: 'x_1' \}/, /y: 'hashed'/]],
  ['unique', 'db.c.createIndex({ u: 1 }, { unique: true, sparse: true }); db.c.updateMany({}, { $set: { u: 1 } })', /E11000 duplicate key error collection: compat_mongosh\.c index: u_1 dup key: \{ u: 1 \}/],
  ['explain with an index', 'db.c.find({ x: 30 }).explain()', [/winningPlan: \{/, /stage: 'FETCH'/, /stage: 'IXSCAN'/, /indexName: 'x_1'/, /namespace: 'compat_mongosh\.c'/, /ok: 1/]],
  ['explain with figures', 'db.c.find({ z: 1 }).explain("executionStats").executionStats', [/executionSuccess: true/, /nReturned: 0/, /totalDocsExamined: 4/, /stage: 'COLLSCAN'/]],
  ['explain of an aggregation', 'db.c.explain().aggregate([{ $match: { x: 30 } }])', [/winningPlan/, /IXSCAN/]],
  ['explain of an update', 'db.c.explain().update({ x: 30 }, { $set: { q: 1 } }).queryPlanner.winningPlan.stage', /^UPDATE$/m],
  ['hideIndex', 'db.c.hideIndex("x_1"); db.c.find({ x: 30 }).explain().queryPlanner.winningPlan.stage', /^COLLSCAN$/m],
  ['dropIndex', 'db.c.dropIndex("x_1")', [/nIndexesWas: 5/, /ok: 1/]],
  ['index usage', 'db.c.aggregate([{ $indexStats: {} }]).toArray().map((one) => one.name).sort()', /_id_.*tag_1_x_-1.*u_1.*y_hashed/s],

  // The catalog
  ['show dbs', 'show dbs', [/^compat_mongosh +\d+(\.\d+)? \w+$/m, /^local +\d/m]],
  ['show collections', 'show collections', /^big\nc\ncopy\nd\nt$/m],
  ['capped', 'db.createCollection("cap", { capped: true, size: 4096, max: 2 }); db.cap.insertMany([{ _id: 1 }, { _id: 2 }, { _id: 3 }]); db.cap.find()', /^\[ \{ _id: 2 \}, \{ _id: 3 \} \]$/m],
  ['isCapped', 'db.cap.isCapped()', /^true$/m],
  ['validator', 'db.createCollection("v", { validator: { a: { $type: "int" } } }); db.v.insertOne({ b: 1 })', /Document failed validation/],
  ['what failed', 'try { db.v.insertOne({ a: "x" }); } catch (error) { printjson(error.errInfo.details); }', [/operatorName: '\$type'/, /reason: 'type did not match'/, /consideredType: 'string'/]],
  ['view', 'db.createView("vw", "c", [{ $match: { tag: "a" } }]); db.vw.find({}, { x: 1 }).sort({ _id: 1 })', /^\[ \{ _id: 1, x: 11 \}, \{ _id: 3, x: 30 \} \]$/m],
  ['show collections with a view', 'show collections', [/^vw +\[view\]$/m, /^system\.views$/m]],
  ['getCollectionInfos', 'db.getCollectionInfos({ name: "cap" })[0].options', [/capped: true/, /size: 4096/, /max: 2/]],
  ['database statistics', 'db.stats()', [/db: 'compat_mongosh'/, /collections: Long\('\d+'\)|collections: \d+/, /views: (Long\('1'\)|1)/, /dataSize: \d/, /indexes: /, /ok: 1/]],
  ['collection statistics', 'const st = db.c.stats(); [st.ns, st.count, st.nindexes, st.ok, st.capped, st.totalSize > 0].join()', /^compat_mongosh\.c,4,4,1,false,true$/m],
  ['sizes', '[db.c.dataSize() > 0, db.c.storageSize() >= 0, db.c.totalIndexSize() > 0].join()', /^true,true,true$/m],
  ['latency', 'db.c.latencyStats()[0].latencyStats.reads.ops > 0', /^true$/m],
  ['rename', 'db.copy.renameCollection("copy2"); [db.copy2.countDocuments(), db.copy.countDocuments()].join()', /^2,0$/m],
  ['drop', 'db.copy2.drop()', /^true$/m],
  ['convertToCapped', 'db.t.convertToCapped(4096).ok; db.t.isCapped()', /^true$/m],
  ['validate', 'const valid = db.c.validate({ full: true }); [valid.valid, valid.nrecords, valid.nIndexes].join()', /^true,4,4$/m],
  ['collMod', 'db.runCommand({ collMod: "v", validationLevel: "off" }).ok; db.v.insertOne({ b: 1 }).acknowledged', /^true$/m],
  ['unknown command', 'db.runCommand({ noSuchCommand: 1 })', /MongoServerError\[CommandNotFound\]: no such command: 'noSuchCommand'/],

  // The set and its sessions
  ['rs.status', 'const rst = rs.status(); [rst.set, rst.myState, rst.members.length, rst.members[0].stateStr, rst.members[0].health, rst.ok].join()', /^rs0,1,1,PRIMARY,1,1$/m],
  ['rs.conf', 'const conf = rs.conf(); [conf._id, conf.members.length, conf.protocolVersion].join()', /^rs0,1,1$/m],
  ['rs.hello', 'rs.hello().setName', /^rs0$/m],
  ['oplog', 'const info = db.getReplicationInfo(); [info.logSizeMB > 0, info.usedMB > 0, info.tFirst.length > 0].join()', /^true,true,true$/m],
  ['rs.printSecondaryReplicationInfo', 'rs.printSecondaryReplicationInfo()', not(/Error/)],
  ['session', 'const session = db.getMongo().startSession(); session.getDatabase("compat_mongosh").c.countDocuments()', /^4$/m],
  ['a session reads its writes', 'session.getDatabase("compat_mongosh").c.insertOne({ _id: "s" }); session.getDatabase("compat_mongosh").c.findOne({ _id: "s" })', /^\{ _id: 's' \}$/m],
  ['end of a session', 'session.endSession(); session.hasEnded()', /^true$/m],
  ['read concern', 'db.c.find({ _id: 1 }).readConcern("majority").toArray().length', /^1$/m],
  ['write concern', 'db.c.insertOne({ _id: "w" }, { writeConcern: { w: "majority", j: true, wtimeout: 5000 } }).acknowledged', /^true$/m],
  ['log', 'db.adminCommand({ getLog: "startupWarnings" }).totalLinesWritten >= 0', /^true$/m],
  ['show log', 'show log global', /"c":|"msg":/],
  ['profiling is off', 'db.getProfilingStatus().was', /^0$/m],
  ['clean up', 'db.dropDatabase()', /ok: 1/],
];
