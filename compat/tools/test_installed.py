"""The tools themselves, where they are on the path."""
import json
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import bson

import sample
from node import WithNodes, catalog, hashes

SECONDS_MAX = 120


def needs(*tools):
    missing = [tool for tool in tools if shutil.which(tool) is None]
    return unittest.skipIf(missing, f"not installed: {', '.join(missing)}")


class Installed(WithNodes):
    NODES = ("source", "target")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        sample.fill(cls.source)

    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)

    def run_tool(self, tool, node, *arguments):
        """Runs a tool to its end, which must be a good one; what it printed."""
        uri = [] if node is None else [f"--uri={self.servers[node].uri}"]
        done = subprocess.run(
            [tool, *uri, *arguments], cwd=self.directory, capture_output=True, text=True, timeout=SECONDS_MAX
        )
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def check_equal(self):
        self.assertEqual(hashes(self.source, sample.NAME), hashes(self.target, sample.NAME))
        self.assertEqual(catalog(self.source, sample.NAME), catalog(self.target, sample.NAME))
        self.assertEqual(hashes(self.source, "admin"), hashes(self.target, "admin"))

    @needs("mongodump", "mongorestore")
    def test_a_directory(self):
        self.run_tool("mongodump", "source", "--out=dump")
        self.run_tool("mongorestore", "target", "--drop", "dump")
        self.check_equal()

    @needs("mongodump", "mongorestore")
    def test_an_archive_that_is_compressed(self):
        self.run_tool("mongodump", "source", "--archive=all", "--gzip")
        self.run_tool("mongorestore", "target", "--drop", "--archive=all", "--gzip")
        self.check_equal()

    @needs("mongodump", "mongorestore")
    def test_one_database_with_its_users(self):
        self.run_tool("mongodump", "source", f"--db={sample.NAME}", "--dumpDbUsersAndRoles", "--out=dump")
        self.run_tool(
            "mongorestore", "target", "--drop", f"--db={sample.NAME}", "--restoreDbUsersAndRoles", f"dump/{sample.NAME}"
        )
        self.assertEqual(hashes(self.source, sample.NAME), hashes(self.target, sample.NAME))
        users = self.target[sample.NAME].command("usersInfo", 1)["users"]
        self.assertEqual([user["user"] for user in users], ["joe"])

    @needs("mongodump", "mongorestore")
    def test_with_the_oplog(self):
        self.run_tool("mongodump", "source", "--oplog", "--out=dump")
        self.run_tool("mongorestore", "target", "--drop", "--oplogReplay", "dump")
        self.check_equal()

    @needs("mongodump", "mongorestore")
    def test_with_the_ids_of_the_collections(self):
        self.run_tool("mongodump", "source", "--out=dump")
        self.run_tool("mongorestore", "target", "--drop", "--preserveUUID", "dump")
        self.check_equal()
        self.assertEqual(*(self.uuids(client) for client in (self.source, self.target)))

    def uuids(self, client):
        listed = client[sample.NAME].list_collections(filter={"type": "collection", "name": {"$not": bson.Regex("^system")}})
        return {each["name"]: each["info"]["uuid"] for each in listed}

    @needs("mongoexport", "mongoimport")
    def test_exported_documents_are_imported(self):
        where = (f"--db={sample.NAME}", "--collection=types")
        self.run_tool("mongoexport", "source", *where, "--jsonFormat=canonical", "--out=types.json")
        self.run_tool("mongoimport", "target", "--db=imported", "--collection=types", "--drop", "types.json")

        def documents(client, database):
            # As texts: of what is not a number there are several, and the tool chooses another one.
            return repr(list(client[database].types.find().sort("_id")))

        wanted = documents(self.source, sample.NAME)
        self.assertEqual(documents(self.target, "imported"), wanted)
        for mode in ("upsert", "merge"):
            self.target.imported.types.update_many({"_id": {"$gt": 3}}, {"$set": {"value": None}})
            into = ("--db=imported", "--collection=types", f"--mode={mode}")
            self.run_tool("mongoimport", "target", *into, "types.json")
            self.assertEqual(documents(self.target, "imported"), wanted)
        self.run_tool("mongoimport", "target", "--db=imported", "--collection=types", "--mode=delete", "types.json")
        self.assertEqual(self.target.imported.types.count_documents({}), 0)
        rows = self.run_tool(
            "mongoexport", "source", f"--db={sample.NAME}", "--collection=threes", "--type=csv", "--fields=_id,b",
            "--sort={_id: 1}", "--limit=2",
        )
        self.assertEqual(rows.split(), ["_id,b", "3,3", "10,10"])

    @needs("mongostat")
    def test_mongostat(self):
        told = json.loads(self.run_tool("mongostat", "source", "--rowcount=1", "--json").splitlines()[-1])
        (row,) = told.values()
        self.assertEqual((row["set"], row["insert"]), ("rs0", "*0"))
        more = self.run_tool("mongostat", "source", "--rowcount=1", "-O=metrics.document.inserted=ins", "1")
        self.assertNotIn("INVALID", more)

    @needs("mongotop")
    def test_mongotop(self):
        told = json.loads(self.run_tool("mongotop", "source", "--rowcount=1", "--json", "1"))
        self.assertIn(f"{sample.NAME}.items", told["totals"])

    @needs("mongodump", "bsondump")
    def test_bsondump(self):
        self.run_tool("mongodump", "source", f"--db={sample.NAME}", "--collection=types", "--out=dump")
        printed = self.run_tool("bsondump", None, f"dump/{sample.NAME}/types.bson")
        self.assertEqual(len(printed.splitlines()), len(sample.VALUES))

    @needs("mongofiles")
    def test_mongofiles(self):
        (self.directory / "file").write_bytes(bytes(range(256)) * 3000)
        self.run_tool("mongofiles", "target", "--db=files", "put", "file")
        self.assertEqual(self.run_tool("mongofiles", "target", "--db=files", "list").split(), ["file", "768000"])
        self.run_tool("mongofiles", "target", "--db=files", "--local=again", "get", "file")
        self.assertEqual((self.directory / "again").read_bytes(), (self.directory / "file").read_bytes())
        self.run_tool("mongofiles", "target", "--db=files", "delete", "file")
        self.assertEqual(self.target.files["fs.chunks"].count_documents({}), 0)
