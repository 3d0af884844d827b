"""mongostat, mongotop and Percona's exporter: they are answered with the fields that they read."""
import datetime
import time

import bson

from node import WithNodes


def at(document, path):
    """The value at a dotted path."""
    for part in path.split("."):
        document = document[part]
    return document


class Watching(WithNodes):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.node.shop.items.insert_many([{"_id": number} for number in range(100)])
        cls.node.shop.items.create_index("a")

    def status(self, **options):
        return self.node.admin.command("serverStatus", 1, **options)

    def test_mongostat_reads_serverStatus(self):
        before = self.status(recordStats=0)
        numbers = """
            uptime uptimeMillis pid asserts.regular asserts.user mem.bits mem.resident mem.virtual extra_info.page_faults
            connections.current connections.available connections.totalCreated
            globalLock.totalTime globalLock.currentQueue.total globalLock.currentQueue.readers
            globalLock.currentQueue.writers globalLock.activeClients.readers globalLock.activeClients.writers
            network.bytesIn network.bytesOut network.numRequests
            wiredTiger.concurrentTransactions.read.out wiredTiger.concurrentTransactions.write.out
            wiredTiger.concurrentTransactions.read.available wiredTiger.concurrentTransactions.write.available
            wiredTiger.transaction.transaction_checkpoints
        """.split()
        for path in numbers:
            value = at(before, path.replace("transaction_checkpoints", "transaction checkpoints"))
            self.assertIsInstance(value, (int, float), path)
        for name in ("bytes currently in the cache", "tracked dirty bytes in the cache", "maximum bytes configured"):
            self.assertIsInstance(before["wiredTiger"]["cache"][name], int)
        self.assertEqual(before["storageEngine"]["name"], "wiredTiger")
        self.assertEqual((before["process"], before["repl"]["setName"]), ("mongod", "rs0"))
        self.assertIsInstance(before["localTime"], datetime.datetime)

        items = self.node.shop.items
        items.insert_many([{"n": number} for number in range(30)])
        items.update_many({"n": {"$lt": 10}}, {"$set": {"u": 1}})
        for _ in range(7):
            items.find_one({"n": 3})
        list(items.find({"n": {"$exists": True}}, batch_size=10))
        items.delete_many({"n": {"$exists": True}})
        after = self.status(recordStats=0)
        counted = {name: after["opcounters"][name] - before["opcounters"][name] for name in after["opcounters"]}
        self.assertEqual([counted[name] for name in ("insert", "update", "query", "delete")], [30, 1, 8, 1])
        self.assertEqual(counted["getmore"], 3)
        documents = {name: after["metrics"]["document"][name] - before["metrics"]["document"][name]
                     for name in after["metrics"]["document"]}
        self.assertEqual(documents, {"deleted": 30, "inserted": 30, "returned": 37, "updated": 10})
        self.assertGreater(after["network"]["bytesIn"], before["network"]["bytesIn"])

    def test_mongotop_reads_top(self):
        def of_items():
            return self.node.admin.command("top")["totals"]["shop.items"]

        before = of_items()
        for _ in range(5):
            self.node.shop.items.find_one({"_id": 3})
        self.node.shop.items.update_one({"_id": 3}, {"$inc": {"x": 1}})
        after = of_items()
        grown = {part: after[part]["count"] - before[part]["count"] for part in after}
        self.assertEqual(grown["total"], 6)
        self.assertEqual((grown["queries"], grown["update"]), (5, 1))
        for part in after.values():
            self.assertEqual(sorted(part), ["count", "time"])
        self.assertGreaterEqual(after["readLock"]["count"] - before["readLock"]["count"], 5)

    def first_sample(self):
        """Waits for it: one is taken every second."""
        deadline = time.monotonic() + 60
        while True:
            data = self.node.admin.command("getDiagnosticData", "1")["data"]
            if data or time.monotonic() > deadline:
                return data
            time.sleep(0.1)

    def test_the_exporter_reads_diagnostic_data(self):
        data = self.first_sample()
        for path in """
            serverStatus.asserts.regular serverStatus.connections.current serverStatus.globalLock.currentQueue.total
            serverStatus.metrics.commands.find.total serverStatus.metrics.cursor.open.total
            serverStatus.metrics.cursor.timedOut serverStatus.metrics.document.inserted
            serverStatus.metrics.operation.scanAndOrder serverStatus.metrics.operation.writeConflicts
            serverStatus.metrics.queryExecutor.scanned serverStatus.metrics.queryExecutor.scannedObjects
            serverStatus.metrics.getLastError.wtimeouts serverStatus.metrics.getLastError.wtime.num
            serverStatus.opLatencies.reads.latency serverStatus.opcounters.insert serverStatus.opcountersRepl.insert
            serverStatus.network.bytesIn serverStatus.mem.resident serverStatus.uptime
            replSetGetStatus.myState replSetGetStatus.members
        """.split():
            at(data, path)
        oplog = data["local.oplog.rs.stats"]
        self.assertGreater(oplog["maxSize"], 0)
        self.assertEqual(at(data, "replSetGetStatus.members")[0]["stateStr"], "PRIMARY")

    def test_the_exporter_asks_for_the_rest(self):
        admin = self.node.admin
        admin.command({"isMaster": 1})
        self.assertIn("version", admin.command("buildInfo"))
        self.assertIn("parsed", admin.command("getCmdLineOpts", "1"))
        self.assertEqual(admin.command("getParameter", 1, featureCompatibilityVersion=1)
                         ["featureCompatibilityVersion"]["version"], "7.0")
        self.assertIn("shop.items", admin.command("top", "1")["totals"])
        self.assertEqual(admin.command("replSetGetConfig", "1")["config"]["_id"], "rs0")
        self.assertEqual(admin.command("replSetGetStatus", "1")["members"][0]["health"], 1)
        stats = self.node.shop.command("dbStats", 1, scale=1, freeStorage=1)
        for field in """collections views objects avgObjSize dataSize storageSize freeStorageSize indexes indexSize
                        indexFreeStorageSize totalSize totalFreeStorageSize fsUsedSize fsTotalSize""".split():
            self.assertIn(field, stats)
        slow = admin.command({
            "currentOp": True, "active": True, "microsecs_running": {"$exists": True}, "op": {"$ne": ""},
            "ns": {"$ne": "", "$not": {"$regex": "^admin.*|^local.*"}},
        })
        self.assertEqual(slow["inprog"], [])
        wanted = [
            {"$collStats": {"latencyStats": {"histograms": False}, "storageStats": {"scale": 1}}},
            {"$project": {"storageStats.wiredTiger": 0, "storageStats.indexDetails": 0}},
        ]
        found = list(self.node.shop.items.aggregate(wanted))[0]
        self.assertEqual(found["ns"], "shop.items")
        for path in "latencyStats.reads.latency latencyStats.writes.ops storageStats.count storageStats.size".split():
            self.assertIsInstance(at(found, path), int)
        indexes = {index["name"]: index["accesses"]["ops"] for index in self.node.shop.items.aggregate([{"$indexStats": {}}])}
        self.assertEqual(sorted(indexes), ["_id_", "a_1"])
        profiled = self.node.shop["system.profile"]
        since = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=30)
        self.assertEqual(profiled.count_documents({"ts": {"$gte": since}}), 0)
        names = self.node.shop.list_collections(filter={"$or": [{"name": bson.Regex("items", "i")}]}, nameOnly=True)
        self.assertEqual([each["name"] for each in names], ["items"])
        for database in admin.command("listDatabases", filter={"name": {"$ne": "admin"}}, nameOnly=True)["databases"]:
            self.assertNotEqual(database["name"], "admin")
